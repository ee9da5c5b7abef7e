//! Initialisation: one thread sets the expected arrival count before any thread arrives.

use cuda_ptx::{kernel, mbarrier_arrive, mbarrier_init, mbarrier_try_wait, shared};

use crate::block;

shared! {
    static BAR: u64;
    static TILE: [u32; 1024];
}

kernel! {
    /// Gives each thread what its partner in the block read: `out[k] = input[partner of k]`.
    ///
    /// The guide ends after the initialisation; one phase follows here, so that there is a result.
    ///
    /// # Safety
    /// `input` and `out` have one element for each thread of the grid.
    #[launch_bounds(1024)]
    pub fn init_barrier(input: *const u32, out: *mut u32) {
        let bar = BAR.as_mut_ptr();
        let tile = TILE.as_mut_ptr().cast::<u32>();
        let (rank, size) = (block::thread_rank(), block::size());
        let global = (block::index() * size + rank) as usize;

        if rank == 0 {
            // A single thread initialises the total expected arrival count.
            mbarrier_init(bar, size);
        }
        block::sync();

        *tile.add(rank as usize) = *input.add(global);
        // An arrival releases and a wait acquires: who leaves the wait sees all tiles written.
        let token = mbarrier_arrive(bar);
        while !mbarrier_try_wait(bar, token) {}
        *out.add(global) = *tile.add(block::partner(rank, size) as usize);
    }
}
