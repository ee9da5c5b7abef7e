//! Initialisation.

use cuda_ptx::awbarrier::{__mbarrier_arrive, __mbarrier_init, __mbarrier_t, __mbarrier_try_wait};
use cuda_ptx::{kernel, shared};

use crate::block;

shared! {
    static BAR: __mbarrier_t;
    static TILE: [u32; 1024];
}

kernel! {
    /// As [`init_barrier`](crate::init_barrier).
    ///
    /// # Safety
    /// `input` and `out` have one element for each thread of the grid.
    #[launch_bounds(1024)]
    pub fn init_barrier_primitives(input: *const u32, out: *mut u32) {
        let bar = BAR.as_mut_ptr();
        let tile = TILE.as_mut_ptr().cast::<u32>();
        let (rank, size) = (block::thread_rank(), block::size());
        let global = (block::index() * size + rank) as usize;

        if rank == 0 {
            __mbarrier_init(bar, size);
        }
        block::sync();

        *tile.add(rank as usize) = *input.add(global);
        let token = __mbarrier_arrive(bar);
        while !__mbarrier_try_wait(bar, token, 1000) {}
        *out.add(global) = *tile.add(block::partner(rank, size) as usize);
    }
}
