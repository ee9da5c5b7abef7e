//! A cluster's barrier, arrived at from another block.

use cuda_ptx::barrier::{Barrier, Parity};
use cuda_ptx::*;

use crate::{CLUSTER, load, store};

/// The same place in the other block of a pair.
#[inline(always)]
unsafe fn map_other(bar: *mut u64) -> *mut u64 {
    #[cfg(target_arch = "nvptx64")]
    {
        let other: *mut u64;
        core::arch::asm!(
            "mapa.u64 {other}, {bar}, {rank};",
            other = out(reg64) other,
            bar = in(reg64) bar,
            rank = in(reg32) get_sreg_cluster_ctarank() ^ 1,
            options(pure, nomem, nostack),
        );
        other
    }
    #[cfg(not(target_arch = "nvptx64"))]
    bar
}

kernel! {
    #[cluster_dim(2, 1, 1)]
    pub fn cluster__barrier(n: u32, out: *mut u32) {
        if get_sreg_tid_x() == 0 {
            Barrier::init(CLUSTER.as_mut_ptr(), 2 * n);
        }
        barrier_cluster_arrive();
        barrier_cluster_wait();
        let bar = Barrier::from_ptr(CLUSTER.as_mut_ptr());
        store(n);
        let other = bar.remote(get_sreg_cluster_ctarank() ^ 1);
        other.arrive();
        bar.arrive().wait();
        other.arrive_n(2);
        bar.arrive_n(3).wait();
        other.expect_tx(16);
        other.arrive_tx(32);
        bar.wait_parity(Parity::EVEN);
        bar.expect_tx(16);
        *out.add(1) = bar.arrive_tx(16).is_complete() as u32;
        other.arrive_and_drop();
        bar.arrive_and_drop();
        *out = load();
        barrier_cluster_arrive();
        barrier_cluster_wait();
    }

    #[cluster_dim(2, 1, 1)]
    pub fn cluster__ptx(n: u32, out: *mut u32) {
        let bar = CLUSTER.as_mut_ptr().cast::<u64>();
        if get_sreg_tid_x() == 0 {
            mbarrier_init(bar, 2 * n);
            fence_mbarrier_init(sem_release, scope_cluster);
        }
        barrier_cluster_arrive();
        barrier_cluster_wait();
        store(n);
        let other = map_other(bar);
        mbarrier_arrive_sem_scope_space(sem_release, scope_cluster, space_cluster, other);
        let state = mbarrier_arrive_sem_scope_space(sem_release, scope_cluster, space_shared, bar);
        while !mbarrier_try_wait_sem_scope(sem_acquire, scope_cluster, bar, state) {}
        mbarrier_arrive_sem_scope_space_count(sem_release, scope_cluster, space_cluster, other, 2);
        let state = mbarrier_arrive_sem_scope_space_count(sem_release, scope_cluster, space_shared, bar, 3);
        while !mbarrier_try_wait_sem_scope(sem_acquire, scope_cluster, bar, state) {}
        mbarrier_expect_tx(sem_relaxed, scope_cluster, space_cluster, other, 16);
        mbarrier_arrive_expect_tx(sem_release, scope_cluster, space_cluster, other, 32);
        while !mbarrier_try_wait_parity_sem_scope(sem_acquire, scope_cluster, bar, 0) {}
        mbarrier_expect_tx(sem_relaxed, scope_cluster, space_shared, bar, 16);
        let state = mbarrier_arrive_expect_tx(sem_release, scope_cluster, space_shared, bar, 16);
        *out.add(1) = mbarrier_test_wait_sem_scope(sem_acquire, scope_cluster, bar, state) as u32;
        mbarrier_arrive_drop(sem_release, scope_cluster, space_cluster, other, 1);
        let _ = mbarrier_arrive_drop(sem_release, scope_cluster, space_shared, bar, 1);
        *out = load();
        barrier_cluster_arrive();
        barrier_cluster_wait();
    }
}
