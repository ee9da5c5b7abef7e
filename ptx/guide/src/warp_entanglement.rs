//! Warp entanglement: lanes that arrive together update the barrier once, lanes that arrive one by
//! one update it each.

use cuda_ptx::{kernel, mbarrier_arrive, mbarrier_init, mbarrier_pending_count, shared};

use crate::block;

shared! {
    static BAR: u64;
    static TILE: [u32; 1024];
}

kernel! {
    /// Tells each thread how many arrivals the phase lacked before the update that its arrival was
    /// part of: `converged[k]` when its warp arrives together, `diverged[k]` when lane by lane. A warp
    /// has made as many updates as its lanes have found counts.
    ///
    /// # Safety
    /// `converged` and `diverged` have one element for each thread of the grid, and warps are whole.
    #[launch_bounds(1024)]
    pub fn warp_entanglement(converged: *mut u32, diverged: *mut u32) {
        let bar = BAR.as_mut_ptr();
        let tile = TILE.as_mut_ptr().cast::<u32>();
        let (rank, size) = (block::thread_rank(), block::size());
        let global = (block::index() * size + rank) as usize;

        // Two arrivals of each thread, and one that never comes: the phase does not end.
        if rank == 0 {
            mbarrier_init(bar, 2 * size + 1);
        }
        block::sync();

        *tile.add(rank as usize) = mbarrier_pending_count(mbarrier_arrive(bar));
        block::sync();
        *converged.add(global) = *tile.add(rank as usize);

        // Four lanes a round, as nvcc would write the loop out; all at once would be too much code.
        let mut first = 0;
        while first < size.min(32) {
            for lane in first..first + 4 {
                if rank % 32 == lane {
                    *tile.add(rank as usize) = mbarrier_pending_count(mbarrier_arrive(bar));
                }
                block::sync_warp();
            }
            first += 4;
        }
        *diverged.add(global) = *tile.add(rank as usize);
    }
}
