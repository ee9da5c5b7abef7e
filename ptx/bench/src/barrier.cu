#include "common.cuh"

constexpr uint32_t OPEN = 1000000;

SITUATION(arrive_converged) {
  init_barriers(1, OPEN);
  uint64_t* bar = fixed(barrier(0));
  uint32_t sink = 0;
  TIMED(block_sync(), true, sink, { EIGHT({ sink = opaque(sink ^ (uint32_t)mbarrier_arrive(bar)); }) });
}

SITUATION(arrive_diverged) {
  init_barriers(1, OPEN);
  uint64_t* bar = fixed(barrier(0));
  uint32_t lane = opaque(thread() % 32), lanes = opaque(blockDim.x < 32 ? blockDim.x : 32);
  uint32_t sink = 0;
  TIMED(block_sync(), true, sink, {
    _Pragma("unroll 1")
    for (uint32_t turn = 0; turn < lanes; turn = opaque(turn + 1)) {
      if (turn == lane) {
        sink = opaque(sink ^ (uint32_t)mbarrier_arrive(bar));
      }
    }
  });
}

SITUATION(arrive_elected) {
  init_barriers(1, OPEN);
  uint64_t* bar = fixed(barrier(0));
  uint32_t sink = 0;
  TIMED(block_sync(), thread() % 32 == 0, sink, { EIGHT({ sink = opaque(sink ^ (uint32_t)mbarrier_arrive(bar)); }) });
}

SITUATION(arrive_unused) {
  init_barriers(1, OPEN);
  uint64_t* bar = fixed(barrier(0));
  TIMED(block_sync(), true, 0, { EIGHT({ mbarrier_arrive(bar); }) });
}

SITUATION(wait_ready) {
  init_barriers(1, 1);
  uint64_t* bar = fixed(barrier(0));
  uint32_t sink = 0;
  TIMED(block_sync(), true, sink, { EIGHT({ sink = opaque(sink ^ mbarrier_try_wait_parity(bar, 1u)); }) });
}

SITUATION(test_ready) {
  init_barriers(1, 1);
  uint64_t* bar = fixed(barrier(0));
  uint32_t sink = 0;
  TIMED(block_sync(), true, sink, { EIGHT({ sink = opaque(sink ^ mbarrier_test_wait_parity(bar, 1u)); }) });
}

SITUATION(test_pending) {
  init_barriers(1, 1);
  uint64_t* bar = fixed(barrier(0));
  uint32_t sink = 0;
  TIMED(block_sync(), true, sink, { EIGHT({ sink = opaque(sink ^ mbarrier_test_wait_parity(bar, 0u)); }) });
}

SITUATION(wait_gives_up) {
  init_barriers(1, 1);
  uint64_t* bar = fixed(barrier(0));
  uint32_t sink = 0;
  TIMED(block_sync(), true, sink, { sink = opaque(sink ^ mbarrier_try_wait_parity(bar, 0u)); });
}

SITUATION(wait_gives_up_hint) {
  init_barriers(1, 1);
  uint64_t* bar = fixed(barrier(0));
  uint32_t sink = 0;
  TIMED(block_sync(), true, sink, { sink = opaque(sink ^ mbarrier_try_wait_parity(bar, 0u, p)); });
}

SITUATION(arrive_wait) {
  init_barriers(1, 1);
  uint64_t* bar = fixed(barrier(0));
  uint32_t parity = 0;
  TIMED(block_sync(), true, parity, {
    mbarrier_arrive(bar);
    wait(bar, parity);
    parity = opaque(parity ^ 1);
  });
}

SITUATION(expect_wait) {
  init_barriers(1, 1);
  uint64_t* bar = fixed(barrier(0));
  uint32_t parity = 0;
  TIMED(block_sync(), true, parity, {
    arm(bar, p);
    wait(bar, parity);
    parity = opaque(parity ^ 1);
  });
}

SITUATION(phase_of_block) {
  init_barriers(1, blockDim.x);
  uint64_t* bar = fixed(barrier(0));
  uint32_t parity = 0;
  TIMED(block_sync(), true, parity, {
    mbarrier_arrive(bar);
    wait(bar, parity);
    parity = opaque(parity ^ 1);
  });
}

SITUATION(syncthreads) {
  init_barriers(1, 1);
  TIMED(block_sync(), true, 0, { block_sync(); });
}

SITUATION(phase_round_trip) {
  init_barriers(2, 1);
  uint32_t warp = thread() / 32;
  uint64_t* own = fixed(barrier(warp));
  uint64_t* other = fixed(barrier(1 - warp));
  uint32_t parity = 0;
  if (thread() == 0) {
    mbarrier_arrive(other);
  }
  TIMED(block_sync(), thread() % 32 == 0, parity, {
    wait(own, parity);
    parity = opaque(parity ^ 1);
    mbarrier_arrive(other);
  });
}
