//! Barriers among the threads of a cluster.

use cuda_ptx::barrier::{Barrier, Cluster, Parity};
use cuda_ptx::{
    barrier_cluster_arrive, barrier_cluster_wait, get_sreg_cluster_ctarank,
    get_sreg_cluster_nctarank, get_sreg_ntid_x, get_sreg_tid_x, kernel, shared,
};

use crate::thread;

shared! {
    static BAR: Barrier<Cluster>;
}

/// In each phase every thread shows a number and reads that of its twin in the block before.
///
/// All arrive in block 0, whose threads then release the other blocks. Without such a leader, a
/// block could get arrivals for the next phase before it has all of this one, and arrivals have
/// no names.
#[inline(always)]
unsafe fn exchange(phases: u32, shown: *mut u32, out: *mut u32) {
    let (rank, threads) = thread();
    let (own, blocks) = (get_sreg_cluster_ctarank(), get_sreg_cluster_nctarank());
    let size = get_sreg_ntid_x();
    if get_sreg_tid_x() == 0 {
        let expected = if own == 0 { threads } else { size };
        Barrier::init(BAR.as_mut_ptr(), expected);
    }
    barrier_cluster_arrive();
    barrier_cluster_wait();

    let bar = Barrier::from_ptr(BAR.as_mut_ptr());
    let before = (rank + threads - size) % threads;
    let mut parity = Parity::EVEN;
    let mut value = rank;
    for phase in 0..phases {
        let shown = shown.add((phase * threads) as usize);
        *shown.add(rank as usize) = value;
        bar.remote(0).arrive();
        bar.wait_parity(parity.advance());
        if own == 0 {
            for block in 1..blocks {
                bar.remote(block).arrive();
            }
        }
        value = 3 * value + *shown.add(before as usize);
    }
    *out.add(rank as usize) = value;

    barrier_cluster_arrive();
    barrier_cluster_wait();
}

kernel! {
    /// For a cluster of the launch's size.
    pub fn cluster_exchange(phases: u32, shown: *mut u32, out: *mut u32) {
        exchange(phases, shown, out);
    }

    /// For a cluster of two blocks.
    #[cluster_dim(2, 1, 1)]
    pub fn cluster_exchange_of_two(phases: u32, shown: *mut u32, out: *mut u32) {
        exchange(phases, shown, out);
    }
}
