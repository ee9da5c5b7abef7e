#include "common.cuh"

constexpr uint32_t REGION = 16 << 20;
constexpr uint32_t SHARE = 64 << 10;

#define STREAM_IN(name, wait)                                                                            \
  SITUATION(name) {                                                                                      \
    init_barriers(q, 1);                                                                                 \
    uint32_t stage = 0, parity = 0, offset = blockIdx.x * SHARE;                                         \
    if (thread() == 0) {                                                                                 \
      while (stage < q) {                                                                                \
        arm(barrier(stage), p);                                                                          \
        cp_async_bulk(space_cluster, space_global, buffer(stage * p), data + offset, p, barrier(stage)); \
        offset = (offset + p) % REGION;                                                                  \
        stage += 1;                                                                                      \
      }                                                                                                  \
      stage = 0;                                                                                         \
    }                                                                                                    \
    TIMED(block_sync(), thread() == 0, parity, {                                                         \
      wait(barrier(stage), parity);                                                                      \
      arm(barrier(stage), p);                                                                            \
      cp_async_bulk(space_cluster, space_global, buffer(stage * p), data + offset, p, barrier(stage));   \
      offset = (offset + p) % REGION;                                                                    \
      stage += 1;                                                                                        \
      if (stage == q) {                                                                                  \
        stage = 0;                                                                                       \
        parity = opaque(parity ^ 1);                                                                     \
      }                                                                                                  \
    });                                                                                                  \
    if (thread() == 0) {                                                                                 \
      for (uint32_t left = q; left > 0; --left) {                                                        \
        wait(barrier(stage), parity);                                                                    \
        stage += 1;                                                                                      \
        if (stage == q) {                                                                                \
          stage = 0;                                                                                     \
          parity = opaque(parity ^ 1);                                                                   \
        }                                                                                                \
      }                                                                                                  \
    }                                                                                                    \
  }
STREAM_IN(bulk_load, wait)
// The same, and each wait tests again and again.
STREAM_IN(bulk_load_tested, test)
// The same on all multiprocessors.
STREAM_IN(chip_load, wait)

SITUATION(bulk_load_apart) {
  init_barriers(1, 1);
  uint64_t* bar = fixed(barrier(0));
  uint8_t* shared = fixed(buffer(0));
  uint32_t parity = 0;
  uint64_t offset = 0;
  TIMED(block_sync(), thread() == 0, parity, {
    arm(bar, p);
    cp_async_bulk(space_cluster, space_global, shared, data + offset, p, bar);
    wait(bar, parity);
    parity = opaque(parity ^ 1);
    offset += q;
  });
}

#define CHIP_WRITE(name, ...)                        \
  SITUATION(name) {                                  \
    init_barriers(1, 1);                             \
    uint32_t stage = 0, offset = blockIdx.x * SHARE; \
    TIMED(block_sync(), thread() == 0, offset, {     \
      uint8_t* to = data + offset;                   \
      uint8_t* from = buffer(stage * p);             \
      __VA_ARGS__;                                   \
      cp_async_bulk_commit_group();                  \
      cp_async_bulk_wait_group_read(n32_t<3>{});     \
      offset = (offset + p) % REGION;                \
      stage += 1;                                    \
      if (stage == q) {                              \
        stage = 0;                                   \
      }                                              \
    });                                              \
    cp_async_bulk_wait_group(n32_t<0>{});            \
  }
CHIP_WRITE(chip_store, cp_async_bulk(space_global, space_shared, to, from, p))
CHIP_WRITE(chip_add, cp_reduce_async_bulk(space_global, space_shared, op_add, (uint32_t*)to, (const uint32_t*)from, p))

SITUATION(bulk_store) {
  init_barriers(1, 1);
  uint8_t* shared = fixed(buffer(0));
  uint32_t offset = 0;
  TIMED(block_sync(), thread() == 0, offset, {
    cp_async_bulk(space_global, space_shared, data + offset, shared, p);
    cp_async_bulk_commit_group();
    cp_async_bulk_wait_group(n32_t<0>{});
    offset = (offset + p) % REGION;
  });
}

SITUATION(bulk_store_read) {
  init_barriers(1, 1);
  uint8_t* shared = fixed(buffer(0));
  uint32_t offset = 0;
  TIMED(block_sync(), thread() == 0, offset, {
    cp_async_bulk(space_global, space_shared, data + offset, shared, p);
    cp_async_bulk_commit_group();
    cp_async_bulk_wait_group_read(n32_t<0>{});
    offset = (offset + p) % REGION;
  });
  cp_async_bulk_wait_group(n32_t<0>{});
}

SITUATION(bulk_add) {
  init_barriers(1, 1);
  uint8_t* shared = fixed(buffer(0));
  uint32_t offset = 0;
  TIMED(block_sync(), thread() == 0, offset, {
    cp_reduce_async_bulk(space_global, space_shared, op_add, (uint32_t*)(data + offset), (const uint32_t*)shared, p);
    cp_async_bulk_commit_group();
    cp_async_bulk_wait_group(n32_t<0>{});
    offset = (offset + p) % REGION;
  });
}

SITUATION(load_multicast) {
  init_barriers(1, 1);
  uint32_t lane = thread();
  uint8_t* shared = fixed(buffer(0));
  uint64_t* bar = fixed(barrier(0));
  uint32_t mask = opaque((1u << q) - 1), rank = get_sreg_cluster_ctarank();
  uint32_t parity = 0, offset = 0;
  TIMED(cluster_sync(), true, parity, {
    if (opaque(lane) == 0) {
      arm(bar, p);
      if (opaque(rank) == 0) {
        cp_async_bulk(space_cluster, space_global, shared, data + offset, p, bar, (uint16_t)mask);
      }
      wait(bar, parity);
    }
    parity = opaque(parity ^ 1);
    offset = (offset + p) % REGION;
    cluster_sync();
  });
}

SITUATION(load_separate) {
  init_barriers(1, 1);
  uint32_t lane = thread();
  uint8_t* shared = fixed(buffer(0));
  uint64_t* bar = fixed(barrier(0));
  uint32_t parity = 0, offset = 0;
  TIMED(cluster_sync(), true, parity, {
    if (opaque(lane) == 0) {
      arm(bar, p);
      cp_async_bulk(space_cluster, space_global, shared, data + offset, p, bar);
      wait(bar, parity);
    }
    parity = opaque(parity ^ 1);
    offset = (offset + p) % REGION;
    cluster_sync();
  });
}

#define TENSOR_LOAD(name, ...)                                                     \
  SITUATION(name) {                                                                \
    init_barriers(1, 1);                                                           \
    uint8_t* shared = fixed(buffer(0));                                            \
    uint64_t* bar = fixed(barrier(0));                                             \
    const uint8_t* map = maps + q * 128;                                           \
    uint32_t parity = 0;                                                           \
    int32_t tile = 0;                                                              \
    TIMED(block_sync(), thread() == 0, parity, {                                   \
      arm(bar, p);                                                                 \
      const int32_t coords[] = {__VA_ARGS__};                                      \
      cp_async_bulk_tensor(space_cluster, space_global, shared, map, coords, bar); \
      wait(bar, parity);                                                           \
      parity = opaque(parity ^ 1);                                                 \
      tile = (tile + 256) % 65536;                                                 \
    });                                                                            \
  }
TENSOR_LOAD(tensor_load_1d, tile)
TENSOR_LOAD(tensor_load_2d, 0, tile)
TENSOR_LOAD(tensor_load_3d, 0, 0, tile)
TENSOR_LOAD(tensor_load_4d, 0, 0, 0, tile)
TENSOR_LOAD(tensor_load_5d, 0, 0, 0, 0, tile)

#define CP_ASYNC(name, cache)                                                                             \
  SITUATION(name) {                                                                                       \
    init_barriers(1, 1);                                                                                  \
    uint32_t to = shared_address(buffer(thread() % 256 * 16));                                            \
    const uint8_t* from = data + thread() * 16;                                                           \
    TIMED(block_sync(), true, 0, {                                                                        \
      EIGHT({                                                                                             \
        asm volatile("cp.async." cache ".shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory"); \
        asm volatile("cp.async." cache ".shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory"); \
      })                                                                                                  \
    });                                                                                                   \
    asm volatile("cp.async.wait_all;" ::: "memory");                                                      \
  }
CP_ASYNC(cp_async_ca, "ca")
CP_ASYNC(cp_async_cg, "cg")
