//! Early exit: a thread that leaves a sequence of phases drops out of the barrier, and the others go
//! on without it.

use cuda_ptx::{
    kernel, mbarrier_arrive, mbarrier_arrive_drop, mbarrier_init, mbarrier_try_wait, scope_cta,
    sem_release, shared, space_shared,
};

use crate::block;
use crate::compute::compute;

shared! {
    static BAR: u64;
    /// Two, for the reason given in `split_arrive_wait`.
    static TILES: [[u32; 1024]; 2];
}

kernel! {
    /// As `split_arrive_wait`, with tokens; but each thread leaves before iteration `leave_at`, after
    /// showing a last value. Threads whose partner has left go on reading what it left behind.
    ///
    /// The guide shows this for `cuda::barrier` and for the C primitives only.
    ///
    /// # Safety
    /// `leave_at` and `data` have one element for each thread of the grid, and in each block some
    /// thread stays to the end: the expected arrival count must not become 0.
    #[launch_bounds(1024)]
    pub fn early_exit(iteration_count: u32, leave_at: *const u32, data: *mut u32) {
        let bar = BAR.as_mut_ptr();
        let tiles = TILES.as_mut_ptr().cast::<u32>();
        let (rank, size) = (block::thread_rank(), block::size());
        let partner = block::partner(rank, size);
        let global = (block::index() * size + rank) as usize;
        let data = data.add(global);
        let leave_at = *leave_at.add(global);

        if rank == 0 {
            mbarrier_init(bar, size);
        }
        *tiles.add(rank as usize) = 0;
        *tiles.add((1024 + rank) as usize) = 0;
        block::sync();

        let mut value = *data;
        for i in 0..iteration_count {
            let tile = tiles.add((i % 2 * 1024) as usize);
            if i == leave_at {
                *tile.add(rank as usize) = !value;
                // Arrives in this phase, which publishes the last value, and is not expected in
                // later ones. A bare `return` would leave the others waiting for ever.
                let _ = mbarrier_arrive_drop(sem_release, scope_cta, space_shared, bar, 1);
                *data = value;
                return;
            }
            *tile.add(rank as usize) = value;

            let token = mbarrier_arrive(bar);
            value = compute(value, i);
            while !mbarrier_try_wait(bar, token) {}

            value ^= *tile.add(partner as usize);
        }
        *data = value;
    }
}
