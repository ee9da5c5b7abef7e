#include "common.cuh"

constexpr uint32_t OPEN = 1000000;

SITUATION(arrive_converged) {
  init_barriers(1, OPEN);
  uint64_t* bar = barrier(0);
  uint64_t sink = 0;
  TIMED(block_sync(), true, (uint32_t)sink, { EIGHT({ sink ^= mbarrier_arrive(bar); }) });
}

SITUATION(arrive_diverged) {
  init_barriers(1, OPEN);
  uint64_t* bar = barrier(0);
  uint32_t lanes = blockDim.x < 32 ? blockDim.x : 32;
  uint64_t sink = 0;
  TIMED(block_sync(), true, (uint32_t)sink, {
    for (uint32_t turn = 0; turn < lanes; turn = opaque(turn + 1)) {
      if (turn == thread() % 32) {
        sink ^= mbarrier_arrive(bar);
      }
    }
  });
}

SITUATION(arrive_elected) {
  init_barriers(1, OPEN);
  uint64_t* bar = barrier(0);
  uint64_t sink = 0;
  TIMED(block_sync(), thread() % 32 == 0, (uint32_t)sink, { EIGHT({ sink ^= mbarrier_arrive(bar); }) });
}

SITUATION(wait_ready) {
  init_barriers(1, 1);
  uint64_t* bar = barrier(0);
  uint32_t sink = 0;
  TIMED(block_sync(), true, sink, { EIGHT({ sink += mbarrier_try_wait_parity(bar, 1u); }) });
}

SITUATION(test_ready) {
  init_barriers(1, 1);
  uint64_t* bar = barrier(0);
  uint32_t sink = 0;
  TIMED(block_sync(), true, sink, { EIGHT({ sink += mbarrier_test_wait_parity(bar, 1u); }) });
}

SITUATION(test_pending) {
  init_barriers(1, 1);
  uint64_t* bar = barrier(0);
  uint32_t sink = 0;
  TIMED(block_sync(), true, sink, { EIGHT({ sink += mbarrier_test_wait_parity(bar, 0u); }) });
}

SITUATION(wait_gives_up) {
  init_barriers(1, 1);
  uint64_t* bar = barrier(0);
  uint32_t sink = 0;
  TIMED(block_sync(), true, sink, { sink += mbarrier_try_wait_parity(bar, 0u); });
}

SITUATION(wait_gives_up_hint) {
  init_barriers(1, 1);
  uint64_t* bar = barrier(0);
  uint32_t sink = 0;
  TIMED(block_sync(), true, sink, { sink += mbarrier_try_wait_parity(bar, 0u, p); });
}

SITUATION(arrive_wait) {
  init_barriers(1, 1);
  uint64_t* bar = barrier(0);
  uint32_t parity = 0;
  TIMED(block_sync(), true, parity, {
    mbarrier_arrive(bar);
    wait(bar, parity);
    parity ^= 1;
  });
}

SITUATION(expect_wait) {
  init_barriers(1, 1);
  uint64_t* bar = barrier(0);
  uint32_t parity = 0;
  TIMED(block_sync(), true, parity, {
    arm(bar, p);
    wait(bar, parity);
    parity ^= 1;
  });
}

SITUATION(phase_of_block) {
  init_barriers(1, blockDim.x);
  uint64_t* bar = barrier(0);
  uint32_t parity = 0;
  TIMED(block_sync(), true, parity, {
    mbarrier_arrive(bar);
    wait(bar, parity);
    parity ^= 1;
  });
}

SITUATION(syncthreads) {
  init_barriers(1, 1);
  TIMED(block_sync(), true, 0, { block_sync(); });
}

SITUATION(phase_round_trip) {
  init_barriers(2, 1);
  uint32_t warp = thread() / 32;
  uint64_t* own = barrier(warp);
  uint64_t* other = barrier(1 - warp);
  uint32_t parity = 0;
  TIMED(block_sync(), thread() % 32 == 0, parity, {
    if (warp == 0) {
      mbarrier_arrive(other);
    }
    wait(own, parity);
    parity ^= 1;
    if (warp == 1) {
      mbarrier_arrive(other);
    }
  });
}
