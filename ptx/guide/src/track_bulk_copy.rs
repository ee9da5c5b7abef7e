//! Tracking an asynchronous memory operation: a bulk copy into shared memory.

use cuda_ptx::{
    cp_async_bulk_bar, kernel, mbarrier_arrive, mbarrier_arrive_expect_tx, mbarrier_init,
    mbarrier_try_wait, scope_cta, sem_release, shared, space_global, space_shared,
};

use crate::block;

/// The elements that a block copies.
const TILE_LEN: u32 = 1024;

shared! {
    static BAR: u64;
    #[align(128)]
    static TILE: [u32; TILE_LEN as usize];
}

kernel! {
    /// Reverses each tile of `TILE_LEN` elements; the last tile may be shorter.
    ///
    /// # Safety
    /// `input` and `out` have `n` elements, `input` is aligned to 16 bytes, and the grid has one block
    /// for each tile.
    #[launch_bounds(1024)]
    pub fn track_bulk_copy(n: u32, input: *const u32, out: *mut u32) {
        let bar = BAR.as_mut_ptr();
        let tile = TILE.as_mut_ptr().cast::<u32>();
        let (rank, size) = (block::thread_rank(), block::size());
        let start = block::index() * TILE_LEN;
        let len = (n - start).min(TILE_LEN);
        let (input, out) = (input.add(start as usize), out.add(start as usize));

        if rank == 0 {
            mbarrier_init(bar, size);
        }
        block::sync();

        // A bulk copy moves a multiple of 16 bytes. The elements behind the last one, at most three,
        // are copied by the threads; the one barrier publishes both.
        let whole = len / 4 * 4;
        let mut k = whole + rank;
        while k < len {
            *tile.add(k as usize) = *input.add(k as usize);
            k += size;
        }
        let token = if rank == 0 && whole > 0 {
            // The phase ends when all threads have arrived and these bytes have. Nothing else wrote
            // to the target, so no proxy fence is needed before the copy; the wait orders it with
            // the reads behind it.
            let bytes = whole * 4;
            let token = mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, bar, bytes);
            cp_async_bulk_bar(space_shared, space_global, tile, input, bytes, bar);
            token
        } else {
            mbarrier_arrive(bar)
        };
        while !mbarrier_try_wait(bar, token) {}

        let mut k = rank;
        while k < len {
            *out.add(k as usize) = *tile.add((len - 1 - k) as usize);
            k += size;
        }
    }
}
