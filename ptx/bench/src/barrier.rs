//! Arrivals by the number of threads, waits, and round trips of a phase.

use cuda_ptx::*;

use crate::common::{
    arm, barrier, block_sync, fixed, init_barriers, nounroll, opaque, thread, wait,
};

/// So many arrivals that no phase completes.
const OPEN: u32 = 1_000_000;

situation! {
    /// All threads of the block arrive at one barrier, the lanes of a warp together; 8 arrivals a step.
    fn arrive_converged(out, _data, _maps, steps, passes, _p, _q) {
        init_barriers(1, OPEN);
        let bar = fixed(barrier(0));
        let mut sink = 0u32;
        timed!(out, steps, passes, block_sync(), true, sink, {
            eight!({ sink = opaque(sink ^ mbarrier_arrive(bar) as u32); })
        });
    }
}

situation! {
    /// The same, the lanes of a warp one after the other; 1 arrival a step.
    fn arrive_diverged(out, _data, _maps, steps, passes, _p, _q) {
        init_barriers(1, OPEN);
        let bar = fixed(barrier(0));
        let (lane, lanes) = (opaque(thread() % 32), opaque(get_sreg_ntid_x().min(32)));
        let mut sink = 0u32;
        timed!(out, steps, passes, block_sync(), true, sink, {
            let mut turn = 0;
            while turn < lanes {
                nounroll();
                if turn == lane {
                    sink = opaque(sink ^ mbarrier_arrive(bar) as u32);
                }
                turn = opaque(turn + 1);
            }
        });
    }
}

situation! {
    /// One lane of each warp arrives; 8 arrivals a step.
    fn arrive_elected(out, _data, _maps, steps, passes, _p, _q) {
        init_barriers(1, OPEN);
        let bar = fixed(barrier(0));
        let mut sink = 0u32;
        timed!(out, steps, passes, block_sync(), thread() % 32 == 0, sink, {
            eight!({ sink = opaque(sink ^ mbarrier_arrive(bar) as u32); })
        });
    }
}

situation! {
    /// All threads of the block arrive at one barrier and drop the state; 8 arrivals a step.
    fn arrive_unused(out, _data, _maps, steps, passes, _p, _q) {
        init_barriers(1, OPEN);
        let bar = fixed(barrier(0));
        timed!(out, steps, passes, block_sync(), true, 0, {
            eight!({ let _ = mbarrier_arrive(bar); });
        });
    }
}

situation! {
    /// `try_wait.parity` for a phase that is complete; 8 waits a step.
    fn wait_ready(out, _data, _maps, steps, passes, _p, _q) {
        init_barriers(1, 1);
        let bar = fixed(barrier(0));
        let mut sink = 0u32;
        timed!(out, steps, passes, block_sync(), true, sink, {
            // The phase before the first counts as complete.
            eight!({ sink = opaque(sink ^ mbarrier_try_wait_parity(bar, 1) as u32); })
        });
    }
}

situation! {
    /// `test_wait.parity` for a phase that is complete; 8 tests a step.
    fn test_ready(out, _data, _maps, steps, passes, _p, _q) {
        init_barriers(1, 1);
        let bar = fixed(barrier(0));
        let mut sink = 0u32;
        timed!(out, steps, passes, block_sync(), true, sink, {
            eight!({ sink = opaque(sink ^ mbarrier_test_wait_parity(bar, 1) as u32); })
        });
    }
}

situation! {
    /// `test_wait.parity` for a phase that is not complete; 8 tests a step.
    fn test_pending(out, _data, _maps, steps, passes, _p, _q) {
        init_barriers(1, 1);
        let bar = fixed(barrier(0));
        let mut sink = 0u32;
        timed!(out, steps, passes, block_sync(), true, sink, {
            eight!({ sink = opaque(sink ^ mbarrier_test_wait_parity(bar, 0) as u32); })
        });
    }
}

situation! {
    /// One `try_wait.parity` that gives up, after the system's time limit.
    fn wait_gives_up(out, _data, _maps, steps, passes, _p, _q) {
        init_barriers(1, 1);
        let bar = fixed(barrier(0));
        let mut sink = 0u32;
        timed!(out, steps, passes, block_sync(), true, sink, {
            sink = opaque(sink ^ mbarrier_try_wait_parity(bar, 0) as u32);
        });
    }
}

situation! {
    /// One `try_wait.parity` that gives up, with a hint of `p` nanoseconds.
    fn wait_gives_up_hint(out, _data, _maps, steps, passes, p, _q) {
        init_barriers(1, 1);
        let bar = fixed(barrier(0));
        let mut sink = 0u32;
        timed!(out, steps, passes, block_sync(), true, sink, {
            sink = opaque(sink ^ mbarrier_try_wait_parity_suspend_time_hint(bar, 0, p) as u32);
        });
    }
}

situation! {
    /// One thread completes a phase by `arrive` and waits for it.
    fn arrive_wait(out, _data, _maps, steps, passes, _p, _q) {
        init_barriers(1, 1);
        let bar = fixed(barrier(0));
        let mut parity = 0;
        timed!(out, steps, passes, block_sync(), true, parity, {
            let _ = mbarrier_arrive(bar);
            wait(bar, parity);
            parity = opaque(parity ^ 1);
        });
    }
}

situation! {
    /// One thread completes a phase by `arrive.expect_tx` of `p` bytes, 0, and waits for it.
    fn expect_wait(out, _data, _maps, steps, passes, p, _q) {
        init_barriers(1, 1);
        let bar = fixed(barrier(0));
        let mut parity = 0;
        timed!(out, steps, passes, block_sync(), true, parity, {
            arm(bar, p);
            wait(bar, parity);
            parity = opaque(parity ^ 1);
        });
    }
}

situation! {
    /// All threads of the block arrive and wait: what `__syncthreads()` does.
    fn phase_of_block(out, _data, _maps, steps, passes, _p, _q) {
        init_barriers(1, get_sreg_ntid_x());
        let bar = fixed(barrier(0));
        let mut parity = 0;
        timed!(out, steps, passes, block_sync(), true, parity, {
            let _ = mbarrier_arrive(bar);
            wait(bar, parity);
            parity = opaque(parity ^ 1);
        });
    }
}

situation! {
    /// `__syncthreads()`.
    fn syncthreads(out, _data, _maps, steps, passes, _p, _q) {
        init_barriers(1, 1);
        timed!(out, steps, passes, block_sync(), true, 0, { block_sync(); });
    }
}

situation! {
    /// Two warps in turn: each waits for the other's arrival, then arrives. A step is a round trip; warp 0 has
    /// arrived once more, before the first.
    fn phase_round_trip(out, _data, _maps, steps, passes, _p, _q) {
        init_barriers(2, 1);
        let warp = thread() / 32;
        let (own, other) = (fixed(barrier(warp)), fixed(barrier(1 - warp)));
        let mut parity = 0;
        if thread() == 0 {
            let _ = mbarrier_arrive(other);
        }
        timed!(out, steps, passes, block_sync(), thread() % 32 == 0, parity, {
            wait(own, parity);
            parity = opaque(parity ^ 1);
            let _ = mbarrier_arrive(other);
        });
    }
}
