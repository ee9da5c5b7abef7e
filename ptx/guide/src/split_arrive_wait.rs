//! Explicit phase tracking: a thread arrives, computes, and only then waits, phase after phase, with
//! the parity of the phase instead of a token.

use cuda_ptx::{kernel, mbarrier_arrive, mbarrier_init, mbarrier_try_wait_parity, shared};

use crate::block;
use crate::compute::compute;

shared! {
    static BAR: u64;
    /// Two, because a thread may write the values of the next phase while others still read those of
    /// this one. Not three: nobody reaches the phase after it before all have arrived at the next.
    static TILES: [[u32; 1024]; 2];
}

kernel! {
    /// In each iteration, every thread shows its value, computes on, and mixes in what its partner
    /// has shown. One value read too early changes all later ones.
    ///
    /// The guide's data are floats; these are integers, so that there is one right result.
    ///
    /// # Safety
    /// `data` has one element for each thread of the grid.
    #[launch_bounds(1024)]
    pub fn split_arrive_wait(iteration_count: u32, data: *mut u32) {
        let bar = BAR.as_mut_ptr();
        let tiles = TILES.as_mut_ptr().cast::<u32>();
        let mut parity = 0; // The first phase is phase 0.
        let (rank, size) = (block::thread_rank(), block::size());
        let partner = block::partner(rank, size);
        let data = data.add((block::index() * size + rank) as usize);

        if rank == 0 {
            mbarrier_init(bar, size);
        }
        block::sync();

        let mut value = *data;
        let mut i = 0;
        while i < iteration_count {
            let tile = tiles.add((i % 2 * 1024) as usize);
            *tile.add(rank as usize) = value;

            // This thread arrives, which does not block it.
            let _ = mbarrier_arrive(bar);

            value = compute(value, i);

            // All have arrived when the phase of this parity is over. A thread is never more than
            // one phase behind, so one bit is enough.
            while !mbarrier_try_wait_parity(bar, parity) {}
            parity ^= 1;

            value ^= *tiles.add((i % 2 * 1024 + partner) as usize);
            i += 1;
        }
        *data = value;
    }
}
