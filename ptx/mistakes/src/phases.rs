//! Waits for the wrong phase.

use cuda_ptx::*;

use crate::{TILE_BYTES, TILE_LEN, rank, row, size, sync};

shared! {
    static BARS: [u64; 2];
    #[align(128)]
    static TILE: [u32; TILE_LEN as usize];
}

unsafe fn start(counts: [u32; 2]) -> [*mut u64; 2] {
    let bars = BARS.as_mut_ptr().cast::<u64>();
    if rank() == 0 {
        mbarrier_init(bars, counts[0]);
        mbarrier_init(bars.add(1), counts[1]);
    }
    sync();
    [bars, bars.add(1)]
}

/// The first wait for "full" has parity 0: parity 1 is over before it begins.
unsafe fn wrong_first_parity<const RIGHT: bool>(input: *const u32, output: *mut u32) {
    let [full, _] = start([1, 1]);
    let tile = TILE.as_mut_ptr().cast::<u32>();
    if rank() == 0 {
        let _ = mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, full, TILE_BYTES);
        cp_async_bulk_bar(space_shared, space_global, tile, input, TILE_BYTES, full);
    }
    let parity = if RIGHT { 0 } else { 1 };
    while !mbarrier_try_wait_parity(full, parity) {}
    *output.add(rank() as usize) = *tile.add(rank() as usize);
}
row!(first_parity, first_parity_right, wrong_first_parity);

/// The first wait for "empty" has parity 1: nobody has filled anything yet.
unsafe fn wait_for_empty<const RIGHT: bool>(_: *const u32, _: *mut u32) {
    let [full, empty] = start([1, size() - 1]);
    let mut parity = 0;
    for _ in 0..3 {
        if rank() == 0 {
            let first = if RIGHT { 1 } else { 0 };
            while !mbarrier_try_wait_parity(empty, parity ^ first) {}
            let _ = mbarrier_arrive(full);
        } else {
            while !mbarrier_try_wait_parity(full, parity) {}
            let _ = mbarrier_arrive(empty);
        }
        parity ^= 1;
    }
}
row!(empty_parity, empty_parity_right, wait_for_empty);

/// A waiter lags at most one phase: a parity is one bit.
unsafe fn two_phases_behind<const RIGHT: bool>(_: *const u32, _: *mut u32) {
    let [bar, _] = start([1, 1]);
    if rank() == 0 {
        let _ = mbarrier_arrive(bar);
    }
    while !mbarrier_try_wait_parity(bar, 0) {}
    sync();
    if rank() == 0 {
        let _ = mbarrier_arrive(bar);
        if !RIGHT {
            let _ = mbarrier_arrive(bar);
        }
    }
    sync();
    while !mbarrier_try_wait_parity(bar, 1) {}
}
row!(parity_lag, parity_lag_right, two_phases_behind);

/// A state is that of the current phase or of the one before it.
unsafe fn old_state<const RIGHT: bool>(_: *const u32, _: *mut u32) {
    let [bar, _] = start([size(), 1]);
    let first = mbarrier_arrive(bar);
    while !mbarrier_try_wait(bar, first) {}
    let second = mbarrier_arrive(bar);
    while !mbarrier_try_wait(bar, second) {}
    let again = if RIGHT { second } else { first };
    while !mbarrier_try_wait(bar, again) {}
}
row!(stale_state, stale_state_right, old_state);

/// A state belongs to the barrier that gave it.
unsafe fn state_of_another_barrier<const RIGHT: bool>(_: *const u32, _: *mut u32) {
    let [a, b] = start([size(), size()]);
    let of_a = mbarrier_arrive(a);
    let of_b = mbarrier_arrive(b);
    while !mbarrier_try_wait(a, if RIGHT { of_a } else { of_b }) {}
    while !mbarrier_try_wait(b, of_b) {}
}
row!(foreign_state, foreign_state_right, state_of_another_barrier);

/// Who waits by polling sees the same as who suspends.
unsafe fn poll_for_ever<const RIGHT: bool>(_: *const u32, _: *mut u32) {
    let [bar, _] = start([size(), 1]);
    let token = if rank() == 1 && !RIGHT {
        return;
    } else {
        mbarrier_arrive(bar)
    };
    while !mbarrier_test_wait(bar, token) {}
}
row!(endless_poll, endless_poll_right, poll_for_ever);
