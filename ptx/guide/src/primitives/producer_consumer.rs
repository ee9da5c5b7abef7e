//! Producer and consumer, with the copies that the C primitives have: 16 bytes at a time, by each
//! thread of the producer's warp.

use cuda_ptx::awbarrier::{
    __mbarrier_arrive, __mbarrier_init, __mbarrier_t, __mbarrier_try_wait, __pipeline_arrive_on,
    __pipeline_memcpy_async,
};
use cuda_ptx::{kernel, shared};

use crate::block;
use crate::producer_consumer::{BUFFER, Chunks, Float4, WARP_SIZE, add_share, block_sum};

shared! {
    /// 0 and 1: `buffer_0` and `buffer_1` are ready to be filled; 2 and 3: they are filled.
    static BAR: [__mbarrier_t; 4];
}

/// What one warp does: fills the buffers in turn.
#[inline(always)]
unsafe fn produce(
    ready: *mut __mbarrier_t,
    filled: *mut __mbarrier_t,
    buffer: *mut f32,
    input: *const f32,
    chunks: Chunks,
) {
    let mut slot = 0;
    let mut start = chunks.first();
    while start < chunks.n {
        let token1 = __mbarrier_arrive(ready.add(slot));
        while !__mbarrier_try_wait(ready.add(slot), token1, 1000) {}

        let target = buffer.add(slot * chunks.buffer_len as usize);
        fill(target, input.add(start as usize), chunks.len(start));

        // The buffer is filled when this thread has arrived and its copies are complete. (The guide
        // forgets the `&` of `filled[i % 2]`.)
        __pipeline_arrive_on(filled.add(slot));
        let _ = __mbarrier_arrive(filled.add(slot));
        slot ^= 1;
        start += chunks.stride();
    }
}

/// Starts the copies of one buffer.
#[inline(always)]
unsafe fn fill(target: *mut f32, source: *const f32, len: u32) {
    let rank = block::thread_rank();
    let whole = len / 4 * 4;
    let mut k = rank * 4;
    while k < whole {
        __pipeline_memcpy_async(target.add(k as usize), source.add(k as usize), 16);
        k += WARP_SIZE * 4;
    }
    if whole + rank < len {
        let k = (whole + rank) as usize;
        __pipeline_memcpy_async(target.add(k), source.add(k), 4);
    }
}

/// What the other warps do: each thread adds up its share of the buffers.
#[inline(always)]
unsafe fn consume(
    ready: *mut __mbarrier_t,
    filled: *mut __mbarrier_t,
    buffer: *const f32,
    chunks: Chunks,
) -> f32 {
    // Both buffers are ready for their first fill.
    let _ = __mbarrier_arrive(ready);
    let _ = __mbarrier_arrive(ready.add(1));

    let mut sum = Float4 { x: 0.0, y: 0.0, z: 0.0, w: 0.0 };
    let mut slot = 0;
    let mut start = chunks.first();
    while start < chunks.n {
        let token3 = __mbarrier_arrive(filled.add(slot));
        while !__mbarrier_try_wait(filled.add(slot), token3, 1000) {}

        add_share(&mut sum, buffer.add(slot * chunks.buffer_len as usize), chunks.len(start));

        // The buffer is ready to be filled again.
        let _ = __mbarrier_arrive(ready.add(slot));
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
    pub fn producer_consumer_primitives(n: u64, input: *const f32, out: *mut f32, buffer_len: u32) {
        let ready = BAR.as_mut_ptr().cast::<__mbarrier_t>();
        let filled = ready.add(2);
        let buffer = BUFFER.as_mut_ptr();
        let rank = block::thread_rank();
        let chunks = Chunks { n, buffer_len };

        // Every thread of the block arrives on each of the four.
        if rank < 4 {
            __mbarrier_init(ready.add(rank as usize), block::size());
        }
        block::sync();

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
