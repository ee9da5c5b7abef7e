//! Explicit phase tracking.

use cuda_ptx::barrier::{Barrier, Parity};
use cuda_ptx::{kernel, mbarrier_arrive, shared};

use crate::block;
use crate::compute::compute;

shared! {
    static BAR: Barrier;
    /// Two, for the reason given in `split_arrive_wait`.
    static TILES: [[u32; 1024]; 2];
}

kernel! {
    /// As [`split_arrive_wait`](crate::split_arrive_wait).
    ///
    /// The guide goes from the barrier to its native handle for both steps; here the wait has a
    /// function of its own.
    ///
    /// # Safety
    /// `data` has one element for each thread of the grid.
    #[launch_bounds(1024)]
    pub fn split_arrive_wait_barrier(iteration_count: u32, data: *mut u32) {
        let tiles = TILES.as_mut_ptr().cast::<u32>();
        let mut parity = Parity::EVEN; // The first phase is phase 0.
        let (rank, size) = (block::thread_rank(), block::size());
        let partner = block::partner(rank, size);
        let data = data.add((block::index() * size + rank) as usize);

        if rank == 0 {
            Barrier::init(BAR.as_mut_ptr(), size);
        }
        block::sync();
        let bar: &Barrier = Barrier::from_ptr(BAR.as_mut_ptr());

        let mut value = *data;
        let mut i = 0;
        while i < iteration_count {
            let tile = tiles.add((i % 2 * 1024) as usize);
            *tile.add(rank as usize) = value;

            let _ = mbarrier_arrive(bar.native_handle());

            value = compute(value, i);

            bar.wait_parity(parity.advance());

            value ^= *tiles.add((i % 2 * 1024 + partner) as usize);
            i += 1;
        }
        *data = value;
    }
}
