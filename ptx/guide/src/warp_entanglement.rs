//! Warp entanglement: lanes that arrive together update the barrier once, lanes that arrive one by
//! one update it each.

use cuda_ptx::{kernel, mbarrier_arrive, mbarrier_init, mbarrier_pending_count, shared};

use crate::block;

shared! {
    static BAR: u64;
    /// The count of pending arrivals that each thread found when it arrived.
    static FOUND: [u32; 1024];
}

/// How many different counts the lanes of the warp found: how often they updated the barrier.
#[inline(always)]
unsafe fn updates(found: u32) -> u32 {
    let rank = block::thread_rank();
    let warp = FOUND.as_mut_ptr().cast::<u32>().add((rank / 32 * 32) as usize);
    *warp.add((rank % 32) as usize) = found;
    block::sync();
    let mut updates = 0;
    for lane in 0..32 {
        let mut first = true;
        for earlier in 0..lane {
            first &= *warp.add(earlier) != *warp.add(lane);
        }
        updates += first as u32;
    }
    block::sync();
    updates
}

kernel! {
    /// Counts the updates of the barrier by each warp: `out[2 * warp]` when its lanes arrive together,
    /// `out[2 * warp + 1]` when they arrive one by one. The guide says 1 and 32.
    ///
    /// # Safety
    /// `out` has two elements for each warp of the grid, and all warps are whole.
    #[launch_bounds(1024)]
    pub fn warp_entanglement(out: *mut u32) {
        let bar = BAR.as_mut_ptr();
        let (rank, size) = (block::thread_rank(), block::size());
        let warp = (block::index() * size + rank) / 32;
        let out = out.add(2 * warp as usize);

        // Two arrivals of each thread, and one that never comes: the phase does not end.
        if rank == 0 {
            mbarrier_init(bar, 2 * size + 1);
        }
        block::sync();

        let converged = mbarrier_pending_count(mbarrier_arrive(bar));
        let converged = updates(converged);

        let mut diverged = 0;
        for lane in 0..32 {
            if rank % 32 == lane {
                diverged = mbarrier_pending_count(mbarrier_arrive(bar));
            }
            block::sync_warp();
        }
        let diverged = updates(diverged);

        if rank % 32 == 0 {
            *out = converged;
            *out.add(1) = diverged;
        }
    }
}
