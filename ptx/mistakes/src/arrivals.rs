//! Counts of arrivals, and the life of a barrier.

use cuda_ptx::*;

use crate::{rank, row, size, sync};

shared! {
    static BAR: u64;
    static WORDS: [u32; 1024];
}

/// Initialised by thread 0 and published.
unsafe fn start(count: u32) -> *mut u64 {
    let bar = BAR.as_mut_ptr();
    if rank() == 0 {
        mbarrier_init(bar, count);
    }
    sync();
    bar
}

unsafe fn arrive_and_wait(bar: *mut u64) {
    let token = mbarrier_arrive(bar);
    while !mbarrier_try_wait(bar, token) {}
}

/// A thread that leaves early must drop out, or the others wait for it for ever.
unsafe fn plain_return<const RIGHT: bool>(_: *const u32, _: *mut u32) {
    let bar = start(size());
    if rank() == 5 {
        if RIGHT {
            let _ = mbarrier_arrive_drop(sem_release, scope_cta, space_shared, bar, 1);
        }
        return;
    }
    arrive_and_wait(bar);
    arrive_and_wait(bar);
}
row!(early_return, early_return_right, plain_return);

/// The arrival count is the number of arrivals that really come.
unsafe fn count_too_high<const RIGHT: bool>(_: *const u32, _: *mut u32) {
    let bar = start(if RIGHT { size() } else { size() + 1 });
    arrive_and_wait(bar);
}
row!(count_high, count_high_right, count_too_high);

/// A count of 1 is for one elected thread: 32 arrivals are 32 phases.
unsafe fn all_lanes_arrive<const RIGHT: bool>(_: *const u32, output: *mut u32) {
    let bar = start(1);
    if RIGHT {
        if rank() == 0 {
            let _ = mbarrier_arrive(bar);
        }
        while !mbarrier_try_wait_parity(bar, 0) {}
    } else {
        arrive_and_wait(bar);
    }
    *output.add(rank() as usize) = 1;
}
row!(lanes_arrive, lanes_arrive_right, all_lanes_arrive);

/// An arrival may count as no more than the phase still misses.
unsafe fn arrive_twice_over<const RIGHT: bool>(_: *const u32, _: *mut u32) {
    let bar = start(size());
    let token = if rank() == 0 {
        // Thread 1 leaves its arrival to thread 0.
        mbarrier_arrive_count(bar, if RIGHT { 2 } else { size() + 1 })
    } else if rank() == 1 {
        return;
    } else {
        mbarrier_arrive(bar)
    };
    while !mbarrier_try_wait(bar, token) {}
}
row!(over_arrival, over_arrival_right, arrive_twice_over);

/// An arrival count starts at 1.
unsafe fn count_of_zero<const RIGHT: bool>(input: *const u32, _: *mut u32) {
    // The first number of the input is 0.
    let count = *input + if RIGHT { size() } else { 0 };
    let bar = start(count);
    arrive_and_wait(bar);
}
row!(count_zero, count_zero_right, count_of_zero);

/// `arrive_drop` is for ever: it does not skip one phase.
unsafe fn drop_one_phase<const RIGHT: bool>(_: *const u32, _: *mut u32) {
    let bar = start(size());
    if rank() == 3 && !RIGHT {
        let token = mbarrier_arrive_drop(sem_release, scope_cta, space_shared, bar, 1);
        while !mbarrier_try_wait(bar, token) {}
    } else {
        arrive_and_wait(bar);
    }
    sync();
    arrive_and_wait(bar);
}
row!(drop_once, drop_once_right, drop_one_phase);

/// Threads other than the initialising one need a barrier before they use it.
unsafe fn no_sync_after_init<const RIGHT: bool>(_: *const u32, _: *mut u32) {
    let bar = BAR.as_mut_ptr();
    if rank() == 0 {
        mbarrier_init(bar, size());
    }
    if RIGHT {
        sync();
    }
    arrive_and_wait(bar);
}
row!(unsynced_init, unsynced_init_right, no_sync_after_init);

/// A barrier is invalidated before it is initialised again.
unsafe fn init_again<const RIGHT: bool>(_: *const u32, _: *mut u32) {
    let bar = start(size());
    arrive_and_wait(bar);
    sync();
    if rank() == 0 {
        if RIGHT {
            mbarrier_inval(bar);
        }
        mbarrier_init(bar, size());
    }
    sync();
    arrive_and_wait(bar);
}
row!(reinit, reinit_right, init_again);

/// After `mbarrier.inval` there is no barrier.
unsafe fn arrive_after_inval<const RIGHT: bool>(_: *const u32, _: *mut u32) {
    let bar = start(size());
    arrive_and_wait(bar);
    if RIGHT {
        sync();
        arrive_and_wait(bar);
    }
    sync();
    if rank() == 0 {
        mbarrier_inval(bar);
    }
    sync();
    if !RIGHT {
        arrive_and_wait(bar);
    }
}
row!(use_after_inval, use_after_inval_right, arrive_after_inval);

/// A barrier's 8 bytes are nobody else's.
unsafe fn store_to_barrier<const RIGHT: bool>(_: *const u32, _: *mut u32) {
    let bar = start(size());
    if rank() == 0 {
        let word = if RIGHT {
            WORDS.as_mut_ptr().cast()
        } else {
            bar
        };
        word.write_volatile(0);
    }
    arrive_and_wait(bar);
}
row!(barrier_as_data, barrier_as_data_right, store_to_barrier);

/// `__syncthreads()` is for all threads of the CTA at once.
unsafe fn sync_in_branch<const RIGHT: bool>(_: *const u32, output: *mut u32) {
    let words = WORDS.as_mut_ptr().cast::<u32>();
    words.add(rank() as usize).write_volatile(rank());
    if RIGHT {
        sync();
    }
    if rank() % 2 == 0 {
        if !RIGHT {
            sync();
        }
        *output.add(rank() as usize) = words.add((rank() ^ 1) as usize).read_volatile();
    } else if !RIGHT {
        sync();
        *output.add(rank() as usize) = words.add((rank() ^ 1) as usize).read_volatile() + 1;
    }
}
row!(divergent_sync, divergent_sync_right, sync_in_branch);

/// Another CTA's barrier is used after `fence.mbarrier_init` and a barrier of the cluster.
unsafe fn remote_without_cluster_barrier<const RIGHT: bool>(_: *const u32, _: *mut u32) {
    let bar = BAR.as_mut_ptr();
    let peer = get_sreg_cluster_ctarank() ^ 1;
    if rank() == 0 {
        mbarrier_init(bar, 1);
        fence_mbarrier_init(sem_release, scope_cluster);
    }
    if RIGHT {
        barrier_cluster_arrive_sem(sem_relaxed);
        barrier_cluster_wait();
    }
    if rank() == 0 {
        let remote = mapa(space_cluster, bar, peer);
        mbarrier_arrive_sem_scope_space(sem_release, scope_cluster, space_cluster, remote);
    }
    sync();
    while !mbarrier_try_wait_parity(bar, 0) {}
    barrier_cluster_arrive();
    barrier_cluster_wait();
}
row!(
    remote_unsynced,
    remote_unsynced_right,
    remote_without_cluster_barrier
);

/// A relaxed arrival at the cluster's barrier publishes an initialisation only with
/// `fence.mbarrier_init`.
unsafe fn remote_without_fence<const RIGHT: bool>(_: *const u32, _: *mut u32) {
    let bar = BAR.as_mut_ptr();
    let peer = get_sreg_cluster_ctarank() ^ 1;
    if rank() == 0 {
        mbarrier_init(bar, 1);
        if RIGHT {
            fence_mbarrier_init(sem_release, scope_cluster);
        }
    }
    barrier_cluster_arrive_sem(sem_relaxed);
    barrier_cluster_wait();
    if rank() == 0 {
        let remote = mapa(space_cluster, bar, peer);
        mbarrier_arrive_sem_scope_space(sem_release, scope_cluster, space_cluster, remote);
        while !mbarrier_try_wait_parity(bar, 0) {}
    }
    barrier_cluster_arrive();
    barrier_cluster_wait();
}
row!(remote_unfenced, remote_unfenced_right, remote_without_fence);
