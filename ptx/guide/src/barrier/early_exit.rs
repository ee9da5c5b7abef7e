//! Early exit.

use cuda_ptx::barrier::Barrier;
use cuda_ptx::{kernel, shared};

use crate::block;
use crate::compute::compute;

shared! {
    static BAR: Barrier;
    /// Two, for the reason given in `split_arrive_wait`.
    static TILES: [[u32; 1024]; 2];
}

kernel! {
    /// As [`early_exit`](crate::early_exit).
    ///
    /// # Safety
    /// `leave_at` and `data` have one element for each thread of the grid, and in each block some
    /// thread stays to the end.
    #[launch_bounds(1024)]
    pub fn early_exit_barrier(iteration_count: u32, leave_at: *const u32, data: *mut u32) {
        let tiles = TILES.as_mut_ptr().cast::<u32>();
        let (rank, size) = (block::thread_rank(), block::size());
        let partner = block::partner(rank, size);
        let global = (block::index() * size + rank) as usize;
        let data = data.add(global);
        let leave_at = *leave_at.add(global);

        if rank == 0 {
            Barrier::init(BAR.as_mut_ptr(), size);
        }
        *tiles.add(rank as usize) = 0;
        *tiles.add((1024 + rank) as usize) = 0;
        block::sync();
        let bar = Barrier::from_ptr(BAR.as_mut_ptr());

        let mut value = *data;
        for i in 0..iteration_count {
            let tile = tiles.add((i % 2 * 1024) as usize);
            if i == leave_at {
                *tile.add(rank as usize) = !value;
                bar.arrive_and_drop();
                *data = value;
                return;
            }
            *tile.add(rank as usize) = value;

            let token = bar.arrive();
            value = compute(value, i);
            token.wait();

            value ^= *tile.add(partner as usize);
        }
        *data = value;
    }
}
