//! Tracking asynchronous memory operations, with nothing to track: the transaction count is 0.

use cuda_ptx::{
    kernel, mbarrier_arrive_expect_tx, mbarrier_init, mbarrier_try_wait, scope_cluster,
    sem_release, shared, space_shared,
};

use crate::block;

shared! {
    static BAR: u64;
    static TILE: [u32; 1024];
}

kernel! {
    /// As `init_barrier`, but each arrival also adds 0 to the expected transaction count.
    ///
    /// # Safety
    /// `input` and `out` have one element for each thread of the grid.
    #[launch_bounds(1024)]
    pub fn track_kernel(input: *const u32, out: *mut u32) {
        let bar = BAR.as_mut_ptr();
        let tile = TILE.as_mut_ptr().cast::<u32>();
        let (rank, size) = (block::thread_rank(), block::size());
        let global = (block::index() * size + rank) as usize;

        if rank == 0 {
            mbarrier_init(bar, size);
        }
        block::sync();

        *tile.add(rank as usize) = *input.add(global);
        // The guide passes an arrival count of 1 as well, which this instruction does not have: it
        // is one arrival. The last argument is the transaction count.
        let token = mbarrier_arrive_expect_tx(sem_release, scope_cluster, space_shared, bar, 0);
        while !mbarrier_try_wait(bar, token) {}
        *out.add(global) = *tile.add(block::partner(rank, size) as usize);
    }
}
