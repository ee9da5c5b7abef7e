//! Tracking an asynchronous memory operation: `memcpy_async` into shared memory.

use cuda_ptx::barrier::{AlignedSize, Barrier, ThisBlock, memcpy_async_group};
use cuda_ptx::{kernel, shared};

use crate::block;

const TILE_LEN: u32 = 1024;

shared! {
    static BAR: Barrier;
    #[align(128)]
    static TILE: [u32; TILE_LEN as usize];
}

kernel! {
    /// As [`track_bulk_copy`](crate::track_bulk_copy).
    ///
    /// # Safety
    /// `input` and `out` have `n` elements, `input` is aligned to 16 bytes, and there is a block for
    /// each 1024 elements.
    #[launch_bounds(1024)]
    pub fn track_bulk_copy_barrier(n: u32, input: *const u32, out: *mut u32) {
        let tile = TILE.as_mut_ptr().cast::<u32>();
        let (rank, size) = (block::thread_rank(), block::size());
        let start = block::index() * TILE_LEN;
        let len = (n - start).min(TILE_LEN);
        let (input, out) = (input.add(start as usize), out.add(start as usize));

        if rank == 0 {
            Barrier::init(BAR.as_mut_ptr(), size);
        }
        block::sync();
        let bar: &Barrier = Barrier::from_ptr(BAR.as_mut_ptr());

        // One bulk copy, and ordinary ones of what is behind its last 16 bytes.
        memcpy_async_group(&ThisBlock, tile, input, AlignedSize::<16>(len as usize * 4), bar);
        bar.arrive_and_wait();

        let mut k = rank;
        while k < len {
            *out.add(k as usize) = *tile.add((len - 1 - k) as usize);
            k += size;
        }
    }
}
