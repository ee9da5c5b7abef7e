//! Initialisation.

use cuda_ptx::barrier::Barrier;
use cuda_ptx::{kernel, shared};

use crate::block;

shared! {
    static BAR: Barrier;
    static TILE: [u32; 1024];
}

kernel! {
    /// As [`init_barrier`](crate::init_barrier).
    ///
    /// # Safety
    /// `input` and `out` have one element for each thread of the grid.
    #[launch_bounds(1024)]
    pub fn init_barrier_barrier(input: *const u32, out: *mut u32) {
        let tile = TILE.as_mut_ptr().cast::<u32>();
        let (rank, size) = (block::thread_rank(), block::size());
        let global = (block::index() * size + rank) as usize;

        if rank == 0 {
            Barrier::init(BAR.as_mut_ptr(), size);
        }
        block::sync();
        let bar = Barrier::from_ptr(BAR.as_mut_ptr());

        *tile.add(rank as usize) = *input.add(global);
        bar.arrive_and_wait();
        *out.add(global) = *tile.add(block::partner(rank, size) as usize);
    }
}
