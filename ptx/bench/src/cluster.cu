#include "common.cuh"

#define PING_PONG(name, order)                                     \
  SITUATION(name) {                                                \
    init_barriers(1, 1);                                           \
    uint32_t rank = get_sreg_cluster_ctarank();                    \
    uint64_t* own = fixed(barrier(0));                             \
    uint64_t* other = fixed(map_to(own, p - rank % (p + 1)));      \
    bool busy = thread() == 0 && (rank == 0 || rank == p);         \
    uint32_t parity = 0;                                           \
    if (busy && rank == 0) {                                       \
      mbarrier_arrive(order, scope_cluster, space_cluster, other); \
    }                                                              \
    TIMED(cluster_sync(), busy, parity, {                          \
      wait(own, parity);                                           \
      parity = opaque(parity ^ 1);                                 \
      mbarrier_arrive(order, scope_cluster, space_cluster, other); \
    });                                                            \
    if (busy && rank == p) {                                       \
      wait(own, parity);                                           \
    }                                                              \
    cluster_sync();                                                \
  }
PING_PONG(remote_arrive, sem_release)
PING_PONG(remote_arrive_relaxed, sem_relaxed)

SITUATION(remote_copy) {
  init_barriers(1, 1);
  uint32_t rank = get_sreg_cluster_ctarank();
  uint64_t* own = fixed(barrier(0));
  uint8_t* shared = fixed(buffer(0));
  uint64_t* other = fixed(map_to(own, p - rank % (p + 1)));
  uint8_t* target = fixed(map_to(buffer(q), p - rank % (p + 1)));
  uint32_t parity = 0;
  bool busy = thread() == 0 && (rank == 0 || rank == p);
  if (busy && rank == 0) {
    cp_async_bulk(space_cluster, space_shared, target, shared, q, other);
  }
  TIMED(cluster_sync(), busy, parity, {
    arm(own, q);
    wait(own, parity);
    parity = opaque(parity ^ 1);
    cp_async_bulk(space_cluster, space_shared, target, shared, q, other);
  });
  if (busy && rank == p) {
    arm(own, q);
    wait(own, parity);
  }
  cluster_sync();
}

SITUATION(remote_read) {
  init_barriers(1, 1);
  uint32_t rank = get_sreg_cluster_ctarank();
  *(uint32_t*)buffer(1024 + thread() * 4) = get_sreg_clusterid_y();
  uint8_t* target = fixed(map_to(buffer(1024 + thread() * 4), p));
  uint32_t address = shared_address(target);
  TIMED(cluster_sync(), rank == 0, address, { EIGHT({ address += load_cluster(address); }) });
}

SITUATION(remote_write) {
  init_barriers(1, 1);
  uint32_t rank = get_sreg_cluster_ctarank();
  uint8_t* target = fixed(map_to(buffer(1024 + thread() * 4), p));
  uint32_t address = shared_address(target);
  TIMED(cluster_sync(), rank == 0, 0, {
    store_cluster(address, passes);
    store_cluster(address + 128, passes);
    store_cluster(address + 256, passes);
    store_cluster(address + 384, passes);
    store_cluster(address + 512, passes);
    store_cluster(address + 640, passes);
    store_cluster(address + 768, passes);
    store_cluster(address + 896, passes);
  });
}

SITUATION(cluster_barrier) {
  init_barriers(1, 1);
  TIMED(cluster_sync(), true, 0, { cluster_sync(); });
}
