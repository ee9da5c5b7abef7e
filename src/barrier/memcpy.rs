//! Copies from global to shared memory that a barrier waits for.

use core::mem;

use super::Barrier;
use super::scope::SharedScope;
use crate::awbarrier::{__pipeline_arrive_on, cp_async_ca};
use crate::target::{Has, Target, ptx_70, ptx_80, ptx_86, sm_80, sm_90};
use crate::{
    cp_async_bulk_bar, elect_sync, fence_proxy_async_space, get_sreg_laneid, get_sreg_ntid_x,
    get_sreg_ntid_y, get_sreg_ntid_z, get_sreg_tid_x, get_sreg_tid_y, get_sreg_tid_z, space_global,
    space_shared,
};

/// Copies `size` bytes from global to shared memory in one thread; the barrier's current phase waits
/// for them.
///
/// The call returns at once. The data are there for all who wait for the phase, in which this thread
/// arrives afterwards:
///
/// ```no_run
/// # use cuda_ptx::barrier::{AlignedSize, Barrier, memcpy_async};
/// # unsafe fn f(bar: &Barrier, tile: *mut f32, input: *const f32) {
/// # unsafe {
/// memcpy_async(tile, input, AlignedSize::<16>(4096), bar);
/// bar.arrive_and_wait();
/// # }
/// # }
/// ```
///
/// How they are copied depends on the greater of the alignment of `T` and that which the
/// [`Size`] promises:
///
/// | alignment | copied by | the last bytes, fewer than a chunk |
/// |---|---|---|
/// | 16 bytes and more | one bulk copy, by the copy engine | ordinary loads and stores |
/// | 8 or 4 bytes | `cp.async`, in chunks of so many bytes | the same |
/// | 2 or 1 | ordinary loads and stores | |
///
/// A bulk copy is preceded by a proxy fence, so that it does not overtake ordinary stores to the
/// destination. If there are none, [`cp_async_bulk_bar`] saves the fence.
///
/// # Safety
///
/// - `dst` points to `size` bytes in this CTA's shared memory and `src` to so many in global memory,
///   both as aligned as said.
/// - Nobody reads or writes the destination, or writes the source, before the phase is complete.
/// - The phase is not complete before this thread arrives in it, after this call.
#[inline(always)]
pub unsafe fn memcpy_async<T: Copy, S: SharedScope>(
    dst: *mut T,
    src: *const T,
    size: impl Size,
    barrier: &Barrier<S>,
) where
    for<'a> Target: Has<ptx_70> + Has<sm_80> + Has<ptx_80> + Has<ptx_86> + Has<sm_90>,
{
    unsafe { memcpy_async_group(&ThisThread, dst, src, size, barrier) }
}

/// As [`memcpy_async`], by all threads of a group together.
///
/// # Safety
///
/// As for [`memcpy_async`]; all threads of the group call this with the same arguments, and each
/// arrives in the phase afterwards.
#[inline(always)]
pub unsafe fn memcpy_async_group<T: Copy, S: SharedScope>(
    group: &impl Group,
    dst: *mut T,
    src: *const T,
    size: impl Size,
    barrier: &Barrier<S>,
) where
    for<'a> Target: Has<ptx_70> + Has<sm_80> + Has<ptx_80> + Has<ptx_86> + Has<sm_90>,
{
    let alignment = alignment(mem::align_of::<T>(), &size);
    let size = size.bytes();
    let (dst, src) = (dst.cast::<u8>(), src.cast::<u8>());
    let whole = size / alignment * alignment;
    unsafe {
        match alignment {
            16 if whole > 0 => {
                if group.elect() {
                    copy_bulk(dst, src, whole as u32, barrier);
                }
            }
            16 => {}
            8 => copy_chunks::<8, S>(group, dst, src, whole, barrier),
            4 => copy_chunks::<4, S>(group, dst, src, whole, barrier),
            2 => copy_plain::<u16>(group, dst, src, 0..whole),
            _ => copy_plain::<u8>(group, dst, src, 0..whole),
        }
        copy_plain::<u8>(group, dst, src, whole..size);
    }
}

/// The alignment that counts: at most 16 bytes.
#[inline(always)]
fn alignment<Z: Size>(of_type: usize, _: &Z) -> usize {
    of_type.max(Z::ALIGNMENT).min(16)
}

#[inline(always)]
unsafe fn copy_bulk<S: SharedScope>(dst: *mut u8, src: *const u8, size: u32, barrier: &Barrier<S>)
where
    for<'a> Target: Has<ptx_80> + Has<ptx_86> + Has<sm_90>,
{
    fence_proxy_async_space(space_shared);
    barrier.expect_tx(size);
    unsafe {
        cp_async_bulk_bar(
            space_shared,
            space_global,
            dst,
            src,
            size,
            barrier.native_handle(),
        );
    }
}

#[inline(always)]
unsafe fn copy_chunks<const CHUNK: usize, S: SharedScope>(
    group: &impl Group,
    dst: *mut u8,
    src: *const u8,
    size: usize,
    barrier: &Barrier<S>,
) where
    for<'a> Target: Has<ptx_70> + Has<sm_80>,
{
    unsafe {
        let mut at = group.rank() as usize * CHUNK;
        while at < size {
            cp_async_ca::<CHUNK, _, _>(dst.add(at), src.add(at), CHUNK as u32);
            at += group.size() as usize * CHUNK;
        }
        __pipeline_arrive_on(barrier.native_handle());
    }
}

/// By ordinary loads and stores, which the thread's arrival publishes.
#[inline(always)]
unsafe fn copy_plain<T: Copy>(
    group: &impl Group,
    dst: *mut u8,
    src: *const u8,
    range: core::ops::Range<usize>,
) {
    let chunk = mem::size_of::<T>();
    let mut at = range.start + group.rank() as usize * chunk;
    while at < range.end {
        unsafe { *dst.add(at).cast::<T>() = *src.add(at).cast::<T>() };
        at += group.size() as usize * chunk;
    }
}

/// How many bytes to copy: a `usize` or `u32`, or an [`AlignedSize`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a size in bytes",
    note = "there is: usize | u32 | AlignedSize<ALIGNMENT>"
)]
pub trait Size: Copy + sealed::Sealed {
    /// The alignment in bytes that source and destination have at least.
    #[doc(hidden)]
    const ALIGNMENT: usize = 1;
    #[doc(hidden)]
    fn bytes(self) -> usize;
}

/// A size in bytes that also promises that source and destination are aligned to `ALIGNMENT` bytes,
/// a power of two: `cuda::aligned_size_t<ALIGNMENT>`.
///
/// ```compile_fail,E0080
/// # use cuda_ptx::barrier::{AlignedSize, Barrier, memcpy_async};
/// # let (bar, dst, src): (&Barrier, *mut u8, *const u8) = unsafe { core::mem::zeroed() };
/// # unsafe {
/// memcpy_async(dst, src, AlignedSize::<48>(96), bar);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlignedSize<const ALIGNMENT: usize>(
    /// Bytes.
    pub usize,
);

impl Size for usize {
    #[inline(always)]
    fn bytes(self) -> usize {
        self
    }
}

impl Size for u32 {
    #[inline(always)]
    fn bytes(self) -> usize {
        self as usize
    }
}

impl<const ALIGNMENT: usize> Size for AlignedSize<ALIGNMENT> {
    const ALIGNMENT: usize = {
        assert!(
            ALIGNMENT.is_power_of_two(),
            "an alignment is a power of two"
        );
        ALIGNMENT
    };

    #[inline(always)]
    fn bytes(self) -> usize {
        self.0
    }
}

/// Threads that do something together: [`ThisThread`], [`ThisWarp`] or [`ThisBlock`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a group of threads",
    note = "there is: ThisThread | ThisWarp | ThisBlock"
)]
pub trait Group: sealed::Sealed {
    /// How many threads there are.
    fn size(&self) -> u32;
    /// The number of this one among them.
    fn rank(&self) -> u32;
    /// Whether this thread is the one that acts for all.
    ///
    /// # Safety
    ///
    /// All threads of the group call this.
    unsafe fn elect(&self) -> bool {
        self.rank() == 0
    }
}

/// The calling thread alone.
#[derive(Clone, Copy, Debug)]
pub struct ThisThread;

/// The 32 threads of the calling thread's warp.
#[derive(Clone, Copy, Debug)]
pub struct ThisWarp;

/// The threads of the calling thread's block.
#[derive(Clone, Copy, Debug)]
pub struct ThisBlock;

impl Group for ThisThread {
    #[inline(always)]
    fn size(&self) -> u32 {
        1
    }

    #[inline(always)]
    fn rank(&self) -> u32 {
        0
    }
}

impl Group for ThisWarp
where
    for<'a> Target: Has<ptx_80> + Has<sm_90>,
{
    #[inline(always)]
    fn size(&self) -> u32 {
        32
    }

    #[inline(always)]
    fn rank(&self) -> u32 {
        get_sreg_laneid()
    }

    #[inline(always)]
    unsafe fn elect(&self) -> bool {
        unsafe { elect_sync(!0) }
    }
}

impl Group for ThisBlock {
    #[inline(always)]
    fn size(&self) -> u32 {
        get_sreg_ntid_x() * get_sreg_ntid_y() * get_sreg_ntid_z()
    }

    #[inline(always)]
    fn rank(&self) -> u32 {
        let row = get_sreg_tid_z() * get_sreg_ntid_y() + get_sreg_tid_y();
        row * get_sreg_ntid_x() + get_sreg_tid_x()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for usize {}
    impl Sealed for u32 {}
    impl<const ALIGNMENT: usize> Sealed for super::AlignedSize<ALIGNMENT> {}
    impl Sealed for super::ThisThread {}
    impl Sealed for super::ThisWarp {}
    impl Sealed for super::ThisBlock {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greater_promise_counts_up_to_16_bytes() {
        assert_eq!(alignment(4, &100u32), 4);
        assert_eq!(alignment(4, &AlignedSize::<16>(100)), 16);
        assert_eq!(alignment(8, &AlignedSize::<2>(100)), 8);
        assert_eq!(alignment(128, &100usize), 16);
    }
}
