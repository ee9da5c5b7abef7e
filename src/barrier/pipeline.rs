//! A ring of buffers between threads that fill them and threads that use them.

use core::mem;
use core::ptr;

use super::instructions::cp_async_mbarrier_arrive_noinc;
use super::scope::{Block, Cluster, SharedScope};
use super::{Barrier, Parity};
use crate::target::{Has, Target, ptx_70, ptx_78, ptx_80, ptx_86, sm_80, sm_90};
use crate::{
    cp_async_bulk_bar, mbarrier_arrive_sem_scope_space, scope_cluster, sem_relaxed, space_cluster,
    space_global, space_shared,
};

/// The barriers of a ring of `STAGES` buffers, in shared memory: for each, one that completes a phase
/// when the buffer is full and one that completes a phase when it is empty.
///
/// A producer [acquires](Producer::acquire) an empty slot, fills its buffer and commits it; a
/// consumer [waits](Consumer::wait) for a full slot, uses its buffer and releases it. Both go around
/// the ring by themselves and keep count of the phases. What a producer wrote before it committed, a
/// consumer sees, and what a consumer read before it released is not overwritten.
///
/// Double buffering with one thread that feeds the copy engine, and all threads of the block as
/// consumers:
///
/// ```no_run
/// use cuda_ptx::barrier::Pipeline;
/// use cuda_ptx::{get_sreg_ntid_x, get_sreg_tid_x, shared};
///
/// const LEN: usize = 1024;
///
/// shared! {
///     static PIPE: Pipeline<2>;
///     #[align(128)]
///     static TILES: [[f32; LEN]; 2];
/// }
///
/// # fn block_sync() {}
/// # fn consume(tile: *const [f32; LEN]) {}
/// # unsafe fn f(input: *const f32, n: usize) { unsafe {
/// let (pipe, tiles) = (PIPE.as_mut_ptr(), TILES.as_mut_ptr().cast::<[f32; LEN]>());
/// if get_sreg_tid_x() == 0 {
///     Pipeline::init(pipe, 1, get_sreg_ntid_x());
/// }
/// block_sync();
/// let (mut producer, mut consumer) = (Pipeline::producer(pipe), Pipeline::consumer(pipe));
/// let mut fill = |i: usize| {
///     if get_sreg_tid_x() == 0 && i < n {
///         producer.acquire().commit_bulk(tiles, input.add(i * LEN), 4 * LEN as u32);
///     }
/// };
/// fill(0);
/// for i in 0..n {
///     fill(i + 1);
///     let slot = consumer.wait();
///     consume(slot.buffer(tiles));
///     slot.release();
/// }
/// # } }
/// ```
///
/// A slot is filled once for each time that it was empty:
///
/// ```compile_fail,E0382
/// # use cuda_ptx::barrier::Producer;
/// # fn f(mut producer: Producer<2>) {
/// let slot = producer.acquire();
/// slot.commit();
/// slot.commit();
/// # }
/// ```
///
/// and released once for each time that it was full:
///
/// ```compile_fail,E0382
/// # use cuda_ptx::barrier::Consumer;
/// # fn f(mut consumer: Consumer<2>) {
/// let slot = consumer.wait();
/// slot.release();
/// slot.release();
/// # }
/// ```
///
/// Only the holder of a slot knows where its buffer is, so nobody fills it before it was released or
/// uses it after that:
///
/// ```compile_fail,E0382
/// # use cuda_ptx::barrier::Consumer;
/// # fn f(mut consumer: Consumer<2>, tiles: *mut [f32; 1024]) {
/// let slot = consumer.wait();
/// slot.release();
/// let tile = slot.buffer(tiles);
/// # }
/// ```
///
/// A producer does not wait for full slots:
///
/// ```compile_fail,E0599
/// # fn f(mut producer: cuda_ptx::barrier::Producer<2>) {
/// producer.wait();
/// # }
/// ```
///
/// nor a consumer for empty ones:
///
/// ```compile_fail,E0599
/// # fn f(mut consumer: cuda_ptx::barrier::Consumer<2>) {
/// consumer.acquire();
/// # }
/// ```
///
/// A ring has at least one stage:
///
/// ```compile_fail,E0080
/// # use cuda_ptx::barrier::Pipeline;
/// # let pipe = core::ptr::null_mut();
/// # unsafe {
/// Pipeline::<0>::init(pipe, 1, 1);
/// # }
/// ```
///
/// `S` is the scope of those who fill the buffers, `E` that of those who use them. A buffer that a
/// copy writes in several CTAs at once is empty when all of them have used it; there `E` is
/// [`Cluster`], and consumers [release](FullSlot::release_relaxed_at) it in each.
#[repr(C)]
pub struct Pipeline<const STAGES: usize, S = Block, E = S> {
    full: [Barrier<S>; STAGES],
    empty: [Barrier<E>; STAGES],
}

impl<const STAGES: usize, S: SharedScope, E: SharedScope> Pipeline<STAGES, S, E> {
    /// Initialises the barriers; all buffers are empty.
    ///
    /// One thread does this; the others take their roles after a synchronisation that follows.
    ///
    /// # Safety
    ///
    /// - `pipeline` points to memory in this CTA's shared memory that nobody uses otherwise.
    /// - `producers` is how many commits fill a buffer, `consumers` how many releases empty it, both
    ///   from 1 to [`Barrier::MAX_COUNT`]. A single elected thread can commit or release for many.
    #[inline(always)]
    pub unsafe fn init(pipeline: *mut Self, producers: u32, consumers: u32) {
        const { assert!(STAGES > 0, "a pipeline has at least one stage") }
        unsafe {
            let full = ptr::addr_of_mut!((*pipeline).full).cast::<Barrier<S>>();
            let empty = ptr::addr_of_mut!((*pipeline).empty).cast::<Barrier<E>>();
            for stage in 0..STAGES {
                Barrier::init(full.add(stage), producers);
                Barrier::init(empty.add(stage), consumers);
            }
        }
    }

    /// Makes this thread a producer.
    ///
    /// A thread that does both things is also a [`consumer`](Self::consumer).
    ///
    /// # Safety
    ///
    /// - `pipeline` points to an initialised pipeline, which stays one for all of `'p`, and the
    ///   initialisation happens before this.
    /// - The thread becomes a producer of it once: a second one would begin at phase 0 again.
    #[inline(always)]
    pub unsafe fn producer<'p>(pipeline: *const Self) -> Producer<'p, STAGES, S, E> {
        Producer {
            pipeline: unsafe { &*pipeline },
            // The wait for the phase before the first one returns at once.
            cursor: Cursor::new(Parity::ODD),
        }
    }

    /// Makes this thread a consumer.
    ///
    /// # Safety
    ///
    /// As for [`producer`](Self::producer).
    #[inline(always)]
    pub unsafe fn consumer<'p>(pipeline: *const Self) -> Consumer<'p, STAGES, S, E> {
        Consumer {
            pipeline: unsafe { &*pipeline },
            cursor: Cursor::new(Parity::EVEN),
        }
    }
}

/// Where a thread is in the ring, and the parity of the phase that it waits for there.
struct Cursor<const STAGES: usize> {
    stage: u32,
    parity: Parity,
}

impl<const STAGES: usize> Cursor<STAGES> {
    fn new(parity: Parity) -> Self {
        Self { stage: 0, parity }
    }

    /// Goes on to the next stage, and returns this one.
    #[inline(always)]
    fn advance(&mut self) -> u32 {
        let stage = self.stage;
        self.stage += 1;
        if self.stage == STAGES as u32 {
            self.stage = 0;
            self.parity.advance();
        }
        stage
    }

    /// The element of this stage.
    #[inline(always)]
    fn pick<'p, T>(&self, ring: &'p [T; STAGES]) -> &'p T {
        // SAFETY: a stage is less than `STAGES`.
        unsafe { ring.get_unchecked(self.stage as usize) }
    }
}

/// A thread's place among those that fill the buffers of a [`Pipeline`].
pub struct Producer<'p, const STAGES: usize, S = Block, E = S> {
    pipeline: &'p Pipeline<STAGES, S, E>,
    cursor: Cursor<STAGES>,
}

impl<'p, const STAGES: usize, S: SharedScope, E: SharedScope> Producer<'p, STAGES, S, E> {
    /// Waits until the next buffer is empty.
    ///
    /// A producer may hold several slots, which must be fewer than the wait needs: of `STAGES` that
    /// are neither committed nor released, none becomes empty.
    #[inline(always)]
    pub fn acquire(&mut self) -> EmptySlot<'p, S> {
        self.cursor
            .pick(&self.pipeline.empty)
            .wait_parity(self.cursor.parity);
        self.take()
    }

    /// The next buffer, if it is empty.
    #[inline(always)]
    pub fn try_acquire(&mut self) -> Option<EmptySlot<'p, S>> {
        self.cursor
            .pick(&self.pipeline.empty)
            .is_parity_complete(self.cursor.parity)
            .then(|| self.take())
    }

    /// Waits until all buffers are empty, once the thread has committed all that it acquired.
    ///
    /// A CTA whose barriers those of others reach must not end before.
    #[inline(always)]
    pub fn drain(mut self) {
        for _ in 0..STAGES {
            self.acquire().leave();
        }
    }

    #[inline(always)]
    fn take(&mut self) -> EmptySlot<'p, S> {
        let full = self.cursor.pick(&self.pipeline.full);
        let stage = self.cursor.advance();
        EmptySlot { full, stage }
    }
}

/// A thread's place among those that use the buffers of a [`Pipeline`].
pub struct Consumer<'p, const STAGES: usize, S = Block, E = S> {
    pipeline: &'p Pipeline<STAGES, S, E>,
    cursor: Cursor<STAGES>,
}

impl<'p, const STAGES: usize, S: SharedScope, E: SharedScope> Consumer<'p, STAGES, S, E> {
    /// Waits until the next buffer is full.
    ///
    /// A consumer may hold several slots and release them in any order, as when the work on one
    /// still runs while it waits for the next.
    #[inline(always)]
    pub fn wait(&mut self) -> FullSlot<'p, E> {
        self.cursor
            .pick(&self.pipeline.full)
            .wait_parity(self.cursor.parity);
        self.take()
    }

    /// The next buffer, if it is full.
    #[inline(always)]
    pub fn try_wait(&mut self) -> Option<FullSlot<'p, E>> {
        self.cursor
            .pick(&self.pipeline.full)
            .is_parity_complete(self.cursor.parity)
            .then(|| self.take())
    }

    #[inline(always)]
    fn take(&mut self) -> FullSlot<'p, E> {
        let empty = self.cursor.pick(&self.pipeline.empty);
        let stage = self.cursor.advance();
        FullSlot { empty, stage }
    }
}

/// A buffer that a producer has to fill. One that is dropped is committed.
#[must_use = "a slot that is dropped at once is committed before its buffer is filled"]
pub struct EmptySlot<'p, S: SharedScope> {
    full: &'p Barrier<S>,
    stage: u32,
}

impl<'p, S: SharedScope> EmptySlot<'p, S> {
    /// The number of the buffer in the ring.
    #[inline(always)]
    #[must_use]
    pub fn stage(&self) -> usize {
        self.stage as usize
    }

    /// The buffer, given the first one of the ring.
    #[inline(always)]
    #[must_use]
    pub fn buffer<T>(&self, ring: *mut T) -> *mut T {
        ring.wrapping_add(self.stage())
    }

    /// The buffer is filled, by what this thread wrote: makes one of the commits that it needs.
    #[inline(always)]
    pub fn commit(self) {
        // By `drop`.
    }

    /// The buffer is full when `bytes` more of asynchronous copies have been written to it, in
    /// addition to all commits. Returns the mbarrier object on which they are to complete.
    ///
    /// The copies can start after this:
    ///
    /// ```no_run
    /// # use cuda_ptx::{barrier::Producer, cp_async_bulk_bar, space_global, space_shared};
    /// # unsafe fn f(mut producer: Producer<'_, 2>, tiles: *mut [f32; 64], a: *const f32, b: *const f32) {
    /// # unsafe {
    /// let slot = producer.acquire();
    /// let tile = slot.buffer(tiles).cast::<f32>();
    /// let full = slot.commit_tx(256);
    /// cp_async_bulk_bar(space_shared, space_global, tile, a, 128, full);
    /// cp_async_bulk_bar(space_shared, space_global, tile.add(32), b, 128, full);
    /// # }
    /// # }
    /// ```
    #[inline(always)]
    #[must_use = "copies must complete on this, else the buffer never becomes full"]
    pub fn commit_tx(self, bytes: u32) -> *mut u64 {
        let _ = self.full.arrive_tx(bytes);
        self.forget().native_handle()
    }

    /// Fills the buffer by one bulk copy of `bytes` from global memory.
    ///
    /// `ring` is the first buffer of the ring, in this CTA's shared memory.
    ///
    /// # Safety
    ///
    /// - The buffer and `src` are aligned to 16 bytes and have `bytes` bytes, a multiple of 16.
    /// - Nobody writes the source before the buffer is full.
    /// - If threads wrote to the buffer with ordinary stores, each has executed
    ///   [`fence_proxy_async_space`](fn@crate::fence_proxy_async_space) before it released it.
    #[inline(always)]
    pub unsafe fn commit_bulk<T, U>(self, ring: *mut T, src: *const U, bytes: u32)
    where
        for<'a> Target: Has<ptx_86> + Has<sm_90>,
    {
        let buffer = self.buffer(ring);
        let full = self.commit_tx(bytes);
        unsafe { cp_async_bulk_bar(space_shared, space_global, buffer, src, bytes, full) }
    }

    /// Makes one of the commits when the `cp.async` copies that this thread has started are complete.
    ///
    /// ```text
    /// cp.async.mbarrier.arrive.noinc.shared.b64 [full];
    ///     PTX ISA 7.0, sm_80 and later
    /// ```
    #[inline(always)]
    pub fn commit_cp_async(self)
    where
        for<'a> Target: Has<ptx_70> + Has<sm_80>,
    {
        let full = self.forget().native_handle();
        // SAFETY: it is the mbarrier object of a slot.
        unsafe { cp_async_mbarrier_arrive_noinc(full) }
    }

    /// Ends the slot without a commit: another thread makes it for this one too, after a
    /// synchronisation of both.
    #[inline(always)]
    pub fn leave(self) {
        self.forget();
    }

    /// Ends the slot without a commit; the caller makes it.
    #[inline(always)]
    fn forget(self) -> &'p Barrier<S> {
        let full = self.full;
        mem::forget(self);
        full
    }
}

impl<S: SharedScope> Drop for EmptySlot<'_, S> {
    #[inline(always)]
    fn drop(&mut self) {
        let _ = self.full.arrive();
    }
}

/// A buffer that a consumer can use. One that is dropped is released.
#[must_use = "a slot that is dropped at once is released before its buffer is used"]
pub struct FullSlot<'p, S: SharedScope> {
    empty: &'p Barrier<S>,
    stage: u32,
}

impl<S: SharedScope> FullSlot<'_, S> {
    /// The number of the buffer in the ring.
    #[inline(always)]
    #[must_use]
    pub fn stage(&self) -> usize {
        self.stage as usize
    }

    /// The buffer, given the first one of the ring.
    #[inline(always)]
    #[must_use]
    pub fn buffer<T>(&self, ring: *mut T) -> *mut T {
        ring.wrapping_add(self.stage())
    }

    /// The buffer is used: makes one of the releases that it needs.
    #[inline(always)]
    pub fn release(self) {
        // By `drop`.
    }

    /// Ends the slot without a release: another thread makes it for this one too, after a
    /// synchronisation of both.
    #[inline(always)]
    pub fn leave(self) {
        mem::forget(self);
    }
}

impl FullSlot<'_, Cluster> {
    /// Makes one of the releases that the buffer of the CTA with this rank needs, in place of one in
    /// this CTA.
    ///
    /// ```text
    /// mapa.u64 remote, empty, rank;
    /// mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [remote];
    ///     PTX ISA 8.0, sm_90 and later
    /// ```
    ///
    /// # Safety
    ///
    /// - The cluster has a CTA of this rank, which does not end before, and has initialised the same
    ///   pipeline.
    /// - No thread has read or written the buffer itself: the arrival is relaxed. It was used by
    ///   asynchronous operations, as `wgmma` is, which have completed.
    #[inline(always)]
    pub unsafe fn release_relaxed_at(self, rank: u32)
    where
        for<'a> Target: Has<ptx_78> + Has<ptx_80> + Has<sm_90>,
    {
        unsafe {
            let empty = self.empty.remote(rank).native_handle();
            mbarrier_arrive_sem_scope_space(sem_relaxed, scope_cluster, space_cluster, empty);
        }
        self.leave();
    }
}

impl<S: SharedScope> Drop for FullSlot<'_, S> {
    #[inline(always)]
    fn drop(&mut self) {
        let _ = self.empty.arrive();
    }
}
