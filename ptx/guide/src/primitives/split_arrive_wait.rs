//! Explicit phase tracking.

use cuda_ptx::awbarrier::{
    __mbarrier_arrive, __mbarrier_init, __mbarrier_t, __mbarrier_try_wait_parity,
};
use cuda_ptx::{kernel, shared};

use crate::block;
use crate::compute::compute;

shared! {
    static BAR: __mbarrier_t;
    /// Two, for the reason given in `split_arrive_wait`.
    static TILES: [[u32; 1024]; 2];
}

kernel! {
    /// As [`split_arrive_wait`](crate::split_arrive_wait).
    ///
    /// # Safety
    /// `data` has one element for each thread of the grid.
    #[launch_bounds(1024)]
    pub fn split_arrive_wait_primitives(iteration_count: u32, data: *mut u32) {
        let bar = BAR.as_mut_ptr();
        let tiles = TILES.as_mut_ptr().cast::<u32>();
        let (rank, size) = (block::thread_rank(), block::size());
        let partner = block::partner(rank, size);
        let data = data.add((block::index() * size + rank) as usize);

        if rank == 0 {
            __mbarrier_init(bar, size);
        }
        block::sync();

        let mut value = *data;
        let mut i = 0;
        while i < iteration_count {
            let tile = tiles.add((i % 2 * 1024) as usize);
            *tile.add(rank as usize) = value;

            let _ = __mbarrier_arrive(bar);

            value = compute(value, i);

            // Of phase `i`. A `bool` that is flipped costs a predicate that becomes an integer again.
            let parity = i % 2 != 0;
            while !__mbarrier_try_wait_parity(bar, parity, 1000) {}

            value ^= *tiles.add((i % 2 * 1024 + partner) as usize);
            i += 1;
        }
        *data = value;
    }
}
