//! Producer and consumer, each of which waits for the barrier that the other arrives on.

use cuda_ptx::barrier::Barrier;
use cuda_ptx::{cp_async_bulk_bar, kernel, shared, space_global, space_shared};

use crate::block;
use crate::producer_consumer::{BUFFER, Chunks, Float4, WARP_SIZE, add_share, block_sum};

shared! {
    /// Whether the two buffers are ready to be filled, and whether they are filled.
    static BAR: [[Barrier; 2]; 2];
}

/// What one warp does: fills the buffers in turn.
#[inline(always)]
unsafe fn produce(
    ready: &[Barrier; 2],
    filled: &[Barrier; 2],
    buffer: *mut f32,
    input: *const f32,
    chunks: Chunks,
) {
    let mut slot = 0;
    let mut start = chunks.first();
    while start < chunks.n {
        // Wait for the buffer to be ready to be filled.
        ready.get_unchecked(slot).arrive_and_wait();
        let target = buffer.add(slot * chunks.buffer_len as usize);
        fill(filled.get_unchecked(slot), target, input.add(start as usize), chunks.len(start));
        slot ^= 1;
        start += chunks.stride();
    }
}

/// Fills one buffer and arrives on its barrier, without waiting.
#[inline(always)]
unsafe fn fill(filled: &Barrier, target: *mut f32, source: *const f32, len: u32) {
    let rank = block::thread_rank();
    let whole = len / 4 * 4;
    if whole + rank < len {
        let k = (whole + rank) as usize;
        *target.add(k) = *source.add(k);
    }
    if rank == 0 && whole > 0 {
        let bytes = whole * 4;
        let _ = filled.arrive_tx(bytes);
        cp_async_bulk_bar(space_shared, space_global, target, source, bytes, filled.native_handle());
    } else {
        let _ = filled.arrive();
    }
}

/// What the other warps do: each thread adds up its share of the buffers.
#[inline(always)]
unsafe fn consume(ready: &[Barrier; 2], filled: &[Barrier; 2], buffer: *const f32, chunks: Chunks) -> f32 {
    // Both buffers are ready for their first fill.
    let _ = ready.get_unchecked(0).arrive();
    let _ = ready.get_unchecked(1).arrive();

    let mut sum = Float4 { x: 0.0, y: 0.0, z: 0.0, w: 0.0 };
    let mut slot = 0;
    let mut start = chunks.first();
    while start < chunks.n {
        // Wait for the buffer to be filled.
        filled.get_unchecked(slot).arrive_and_wait();
        add_share(&mut sum, buffer.add(slot * chunks.buffer_len as usize), chunks.len(start));
        // The buffer is ready to be filled again.
        let _ = ready.get_unchecked(slot).arrive();
        slot ^= 1;
        start += chunks.stride();
    }
    (sum.x + sum.y) + (sum.z + sum.w)
}

kernel! {
    /// As [`producer_consumer`](crate::producer_consumer).
    ///
    /// # Safety
    /// As there.
    #[launch_bounds(1024)]
    pub fn producer_consumer_barrier(n: u64, input: *const f32, out: *mut f32, buffer_len: u32) {
        let buffer = BUFFER.as_mut_ptr();
        let rank = block::thread_rank();
        let chunks = Chunks { n, buffer_len };

        // Every thread of the block arrives on each of the four.
        if rank < 4 {
            Barrier::init(BAR.as_mut_ptr().cast::<Barrier>().add(rank as usize), block::size());
        }
        block::sync();
        let [ready, filled] = &*BAR.as_mut_ptr();

        let mut sum = 0.0;
        if rank < WARP_SIZE {
            produce(ready, filled, buffer, input, chunks);
        } else {
            sum = consume(ready, filled, buffer, chunks);
        }

        let sum = block_sum(sum);
        if rank == 0 {
            *out.add(block::index() as usize) = sum;
        }
    }
}
