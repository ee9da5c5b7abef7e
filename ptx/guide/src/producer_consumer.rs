//! Producer and consumer: warp 0 streams an array through two buffers in shared memory, the other
//! warps add it up.

use cuda_ptx::{
    cp_async_bulk_bar, extern_shared, kernel, mbarrier_arrive, mbarrier_arrive_expect_tx,
    mbarrier_init, mbarrier_try_wait, scope_cta, sem_release, shared, space_global, space_shared,
};

use crate::block;

pub(crate) const WARP_SIZE: u32 = 32;

extern_shared! {
    /// `buffer_0` and, `buffer_len` elements on, `buffer_1`.
    #[align(128)]
    pub(crate) static BUFFER: [f32];
}

shared! {
    /// 0 and 1: `buffer_0` and `buffer_1` are ready to be filled; 2 and 3: they are filled.
    static BAR: [u64; 4];
    static PARTIAL: [f32; 1024];
}

/// Four neighbouring elements, which one instruction loads.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct Float4 {
    pub x: f32,
    pub y: f32,
    pub z: f32,
    pub w: f32,
}

/// The part of the input that a block works through: the chunks of `buffer_len` elements whose
/// numbers are the block's own plus multiples of the grid's size. The last chunk of the input may be
/// shorter.
#[derive(Clone, Copy)]
pub(crate) struct Chunks {
    pub n: u64,
    pub buffer_len: u32,
}

impl Chunks {
    pub fn first(self) -> u64 {
        u64::from(block::index()) * u64::from(self.buffer_len)
    }

    pub fn stride(self) -> u64 {
        u64::from(block::grid_size()) * u64::from(self.buffer_len)
    }

    pub fn len(self, start: u64) -> u32 {
        (self.n - start).min(u64::from(self.buffer_len)) as u32
    }
}

/// What one warp does: fills the buffers in turn.
#[inline(always)]
unsafe fn produce(
    ready: *mut u64,
    filled: *mut u64,
    buffer: *mut f32,
    input: *const f32,
    chunks: Chunks,
) {
    let mut slot = 0;
    let mut start = chunks.first();
    while start < chunks.n {
        // Wait for the buffer to be ready to be filled. (The guide forgets the `&` of `ready[i % 2]`.)
        let token1 = mbarrier_arrive(ready.add(slot));
        while !mbarrier_try_wait(ready.add(slot), token1) {}

        let target = buffer.add(slot * chunks.buffer_len as usize);
        fill(
            filled.add(slot),
            target,
            input.add(start as usize),
            chunks.len(start),
        );

        slot ^= 1;
        start += chunks.stride();
    }
}

/// Fills one buffer and arrives on its barrier, without waiting.
///
/// The copy overwrites what the consumers have read. Their arrivals came after their reads and this
/// thread has waited for them, so the copy is ordered behind the reads; a proxy fence would be needed
/// if they had written.
#[inline(always)]
unsafe fn fill(filled: *mut u64, target: *mut f32, source: *const f32, len: u32) {
    let rank = block::thread_rank();
    // A bulk copy moves a multiple of 16 bytes; the lanes copy the elements behind the last one, at
    // most three. These are the end of the input: no copy into this buffer follows.
    let whole = len / 4 * 4;
    if whole + rank < len {
        let k = (whole + rank) as usize;
        *target.add(k) = *source.add(k);
    }
    if rank == 0 && whole > 0 {
        let bytes = whole * 4;
        let _ = mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, filled, bytes);
        cp_async_bulk_bar(space_shared, space_global, target, source, bytes, filled);
    } else {
        let _ = mbarrier_arrive(filled);
    }
}

/// What the other warps do: each thread adds up its share of the buffers.
#[inline(always)]
unsafe fn consume(ready: *mut u64, filled: *mut u64, buffer: *const f32, chunks: Chunks) -> f32 {
    // Both buffers are ready for their first fill.
    let _ = mbarrier_arrive(ready);
    let _ = mbarrier_arrive(ready.add(1));

    let mut sum = Float4 {
        x: 0.0,
        y: 0.0,
        z: 0.0,
        w: 0.0,
    };
    let mut slot = 0;
    let mut start = chunks.first();
    while start < chunks.n {
        // Wait for the buffer to be filled. (The guide waits with `token3x` for `token3`.)
        let token3 = mbarrier_arrive(filled.add(slot));
        while !mbarrier_try_wait(filled.add(slot), token3) {}

        add_share(
            &mut sum,
            buffer.add(slot * chunks.buffer_len as usize),
            chunks.len(start),
        );

        // The buffer is ready to be filled again.
        let _ = mbarrier_arrive(ready.add(slot));
        slot ^= 1;
        start += chunks.stride();
    }
    (sum.x + sum.y) + (sum.z + sum.w)
}

/// Adds every `consumers`-th group of four elements to `sum`, and what is behind the last whole group.
#[inline(always)]
pub(crate) unsafe fn add_share(sum: &mut Float4, buffer: *const f32, len: u32) {
    let consumer = block::thread_rank() - WARP_SIZE;
    let consumers = block::size() - WARP_SIZE;
    let groups = len / 4;
    let mut k = consumer;
    while k < groups {
        let group = *buffer.cast::<Float4>().add(k as usize);
        sum.x += group.x;
        sum.y += group.y;
        sum.z += group.z;
        sum.w += group.w;
        k += consumers;
    }
    let k = groups * 4 + consumer;
    if k < len {
        sum.x += *buffer.add(k as usize);
    }
}

/// The sum over all threads of the block, in an order that depends on its size alone.
#[inline(always)]
pub(crate) unsafe fn block_sum(value: f32) -> f32 {
    let partial = PARTIAL.as_mut_ptr().cast::<f32>();
    let rank = block::thread_rank();
    *partial.add(rank as usize) = value;
    block::sync();
    let mut width = block::size();
    while width > 1 {
        let half = width.div_ceil(2);
        if rank + half < width {
            *partial.add(rank as usize) += *partial.add((rank + half) as usize);
        }
        block::sync();
        width = half;
    }
    *partial
}

kernel! {
    /// The sum of each block's chunks of `input`: one element of `out` for each block.
    ///
    /// # Safety
    /// `input` has `n` elements and is aligned to 16 bytes; `out` has one for each block. A block has
    /// at least two warps, `buffer_len` is a multiple of 4 below 2^18, and there is dynamic shared
    /// memory for `2 * buffer_len` elements.
    #[launch_bounds(1024)]
    pub fn producer_consumer(n: u64, input: *const f32, out: *mut f32, buffer_len: u32) {
        let ready = BAR.as_mut_ptr().cast::<u64>();
        let filled = ready.add(2);
        let buffer = BUFFER.as_mut_ptr();
        let rank = block::thread_rank();
        let chunks = Chunks { n, buffer_len };

        // Every thread of the block arrives on each of the four.
        if rank < 4 {
            mbarrier_init(ready.add(rank as usize), block::size());
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
