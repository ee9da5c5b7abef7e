//! The C primitives: `cuda_awbarrier_primitives.h` and `cuda_pipeline_primitives.h`, with the names
//! and the meaning that they have there.
//!
//! ```no_run
//! use cuda_ptx::awbarrier::*;
//! use cuda_ptx::{get_sreg_ntid_x, get_sreg_tid_x, shared};
//!
//! shared! { static BAR: __mbarrier_t; }
//!
//! # fn block_sync() {}
//! # unsafe {
//! let bar = BAR.as_mut_ptr();
//! if get_sreg_tid_x() == 0 {
//!     __mbarrier_init(bar, get_sreg_ntid_x());
//! }
//! block_sync();
//! let token = __mbarrier_arrive(bar);
//! // Work that needs no other thread.
//! while !__mbarrier_try_wait(bar, token, 1000) {}
//! # }
//! ```
//!
//! New code is better off with [`barrier`](crate::barrier), which compiles to the same instructions
//! and does not let a token be waited for twice, or with the functions of
//! [`mbarrier`], which have all forms of the instructions. Where the C function
//! traps because the GPU is too old, the function here does not exist.

#![cfg_attr(not(target_arch = "nvptx64"), allow(unused, unreachable_code))]
// The names are those of the C headers.
#![allow(non_camel_case_types, non_snake_case)]

use crate::address::{as_ptr_gmem, as_ptr_smem};
use crate::asm::asm;
use crate::mbarrier;
use crate::target::{Has, Target, ptx_70, ptx_71, ptx_78, sm_80, sm_90};

/// A barrier: an mbarrier object in shared memory.
pub type __mbarrier_t = u64;

/// The phase that an arrival counted for.
pub type __mbarrier_token_t = u64;

/// The largest expected count that the C header promises on every GPU: 16,383.
///
/// The mbarrier objects of `sm_80` and later count up to
/// [`Barrier::<Block>::MAX_COUNT`](crate::barrier::Barrier::MAX_COUNT), 1,048,575.
#[inline(always)]
#[must_use]
pub const fn __mbarrier_maximum_count() -> u32 {
    (1 << 14) - 1
}

/// Initialises a barrier that expects `expected_count` arrivals in each phase.
///
/// ```text
/// mbarrier.init.shared.b64 [barrier], expected_count;
///     PTX ISA 7.0, sm_80 and later
/// ```
///
/// # Safety
///
/// As for [`mbarrier_init`](fn@crate::mbarrier_init).
#[inline(always)]
pub unsafe fn __mbarrier_init(barrier: *mut __mbarrier_t, expected_count: u32)
where
    for<'a> Target: Has<ptx_70> + Has<sm_80>,
{
    unsafe { mbarrier::mbarrier_init(barrier, expected_count) }
}

/// Ends the life of a barrier, so that its memory can be used for something else.
///
/// ```text
/// mbarrier.inval.shared.b64 [barrier];
///     PTX ISA 7.0, sm_80 and later
/// ```
///
/// # Safety
///
/// As for [`mbarrier_inval`](fn@crate::mbarrier_inval).
#[inline(always)]
pub unsafe fn __mbarrier_inval(barrier: *mut __mbarrier_t)
where
    for<'a> Target: Has<ptx_70> + Has<sm_80>,
{
    unsafe { mbarrier::mbarrier_inval(barrier) }
}

/// Arrives, without waiting.
///
/// ```text
/// mbarrier.arrive.shared.b64 token, [barrier];
///     PTX ISA 7.0, sm_80 and later
/// ```
///
/// # Safety
///
/// As for [`mbarrier_arrive`](fn@crate::mbarrier_arrive).
#[inline(always)]
pub unsafe fn __mbarrier_arrive(barrier: *mut __mbarrier_t) -> __mbarrier_token_t
where
    for<'a> Target: Has<ptx_70> + Has<sm_80>,
{
    unsafe { mbarrier::mbarrier_arrive(barrier) }
}

/// Arrives, and lowers the count that later phases expect by one.
///
/// ```text
/// mbarrier.arrive_drop.shared.b64 token, [barrier];
///     PTX ISA 7.0, sm_80 and later
/// ```
///
/// # Safety
///
/// As for [`mbarrier_arrive`](fn@crate::mbarrier_arrive); the thread does not arrive in later phases,
/// and one other at least does.
#[inline(always)]
pub unsafe fn __mbarrier_arrive_and_drop(barrier: *mut __mbarrier_t) -> __mbarrier_token_t
where
    for<'a> Target: Has<ptx_70> + Has<sm_80>,
{
    let token: u64;
    unsafe {
        asm!(
            "mbarrier.arrive_drop.shared.b64 {token}, [{barrier}];",
            token = out(reg64) token,
            barrier = in(reg32) as_ptr_smem(barrier),
            // Not `nomem`: the arrival publishes what the thread wrote.
            options(nostack),
        );
    }
    token
}

/// Counts `count` arrivals that do not complete the phase.
///
/// The C headers have this without the leading `__mbarrier`, as an internal function.
///
/// ```text
/// mbarrier.arrive.noComplete.shared.b64 token, [barrier], count;
///     PTX ISA 7.0, sm_80 and later
/// ```
///
/// # Safety
///
/// As for [`mbarrier_arrive_no_complete`](fn@crate::mbarrier_arrive_no_complete): the phase lacks
/// more than `count` arrivals.
#[inline(always)]
pub unsafe fn __mbarrier_arrive_noComplete(
    barrier: *mut __mbarrier_t,
    count: u32,
) -> __mbarrier_token_t
where
    for<'a> Target: Has<ptx_70> + Has<sm_80>,
{
    unsafe { mbarrier::mbarrier_arrive_no_complete(barrier, count) }
}

/// Counts `count` arrivals that do not complete the phase, and lowers the count that later phases
/// expect by as many.
///
/// The C headers have this without the leading `__mbarrier`, as an internal function.
///
/// ```text
/// mbarrier.arrive_drop.noComplete.shared.b64 token, [barrier], count;
///     PTX ISA 7.0, sm_80 and later
/// ```
///
/// # Safety
///
/// As for [`__mbarrier_arrive_and_drop`]; the phase lacks more than `count` arrivals.
#[inline(always)]
pub unsafe fn __mbarrier_arrive_and_drop_noComplete(
    barrier: *mut __mbarrier_t,
    count: u32,
) -> __mbarrier_token_t
where
    for<'a> Target: Has<ptx_70> + Has<sm_80>,
{
    let token: u64;
    unsafe {
        asm!(
            "mbarrier.arrive_drop.noComplete.shared.b64 {token}, [{barrier}], {count};",
            token = out(reg64) token,
            barrier = in(reg32) as_ptr_smem(barrier),
            count = in(reg32) count,
            // Not `nomem`: the arrivals publish what the thread wrote.
            options(nostack),
        );
    }
    token
}

/// Whether the phase of `token` is complete.
///
/// ```text
/// mbarrier.test_wait.shared.b64 complete, [barrier], token;
///     PTX ISA 7.0, sm_80 and later
/// ```
///
/// # Safety
///
/// As for [`mbarrier_test_wait`](fn@crate::mbarrier_test_wait).
#[inline(always)]
#[must_use = "only `true` means that the phase is complete"]
pub unsafe fn __mbarrier_test_wait(barrier: *mut __mbarrier_t, token: __mbarrier_token_t) -> bool
where
    for<'a> Target: Has<ptx_70> + Has<sm_80>,
{
    unsafe { mbarrier::mbarrier_test_wait(barrier, token) }
}

/// Whether the phase of this parity, the current or the last one, is complete: `false` is the
/// parity of the first phase.
///
/// ```text
/// mbarrier.test_wait.parity.shared.b64 complete, [barrier], phase_parity;
///     PTX ISA 7.1, sm_80 and later
/// ```
///
/// # Safety
///
/// As for [`mbarrier_test_wait_parity`](fn@crate::mbarrier_test_wait_parity).
#[inline(always)]
#[must_use = "only `true` means that the phase is complete"]
pub unsafe fn __mbarrier_test_wait_parity(barrier: *mut __mbarrier_t, phase_parity: bool) -> bool
where
    for<'a> Target: Has<ptx_71> + Has<sm_80>,
{
    unsafe { mbarrier::mbarrier_test_wait_parity(barrier, phase_parity.into()) }
}

/// Waits for the phase of `token` for about `max_sleep_nanosec` nanoseconds at most, and returns
/// whether it is complete.
///
/// ```text
/// mbarrier.try_wait.shared.b64 complete, [barrier], token, max_sleep_nanosec;
///     PTX ISA 7.8, sm_90 and later
/// ```
///
/// # Safety
///
/// As for [`mbarrier_try_wait`](fn@crate::mbarrier_try_wait).
#[inline(always)]
#[must_use = "only `true` means that the phase is complete"]
pub unsafe fn __mbarrier_try_wait(
    barrier: *mut __mbarrier_t,
    token: __mbarrier_token_t,
    max_sleep_nanosec: u32,
) -> bool
where
    for<'a> Target: Has<ptx_78> + Has<sm_90>,
{
    let complete: u32;
    unsafe {
        asm!(
            "{{",
            ".reg .pred p;",
            "mbarrier.try_wait.shared.b64 p, [{barrier}], {token}, {max_sleep_nanosec};",
            "selp.b32 {complete}, 1, 0, p;",
            "}}",
            complete = out(reg32) complete,
            barrier = in(reg32) as_ptr_smem(barrier),
            token = in(reg64) token,
            max_sleep_nanosec = in(reg32) max_sleep_nanosec,
            // Not `nomem`: what the arrivals published is read behind it.
            options(nostack),
        );
    }
    complete != 0
}

/// Waits for the phase of this parity, the current or the last one, for about `max_sleep_nanosec`
/// nanoseconds at most, and returns whether it is complete: `false` is the parity of the first
/// phase.
///
/// ```text
/// mbarrier.try_wait.parity.shared.b64 complete, [barrier], phase_parity, max_sleep_nanosec;
///     PTX ISA 7.8, sm_90 and later
/// ```
///
/// # Safety
///
/// As for [`mbarrier_try_wait_parity`](fn@crate::mbarrier_try_wait_parity).
#[inline(always)]
#[must_use = "only `true` means that the phase is complete"]
pub unsafe fn __mbarrier_try_wait_parity(
    barrier: *mut __mbarrier_t,
    phase_parity: bool,
    max_sleep_nanosec: u32,
) -> bool
where
    for<'a> Target: Has<ptx_78> + Has<sm_90>,
{
    let complete: u32;
    unsafe {
        asm!(
            "{{",
            ".reg .pred p;",
            "mbarrier.try_wait.parity.shared.b64 p, [{barrier}], {phase_parity}, {max_sleep_nanosec};",
            "selp.b32 {complete}, 1, 0, p;",
            "}}",
            complete = out(reg32) complete,
            barrier = in(reg32) as_ptr_smem(barrier),
            phase_parity = in(reg32) u32::from(phase_parity),
            max_sleep_nanosec = in(reg32) max_sleep_nanosec,
            // Not `nomem`: what the arrivals published is read behind it.
            options(nostack),
        );
    }
    complete != 0
}

/// How many arrivals the phase lacked before the arrival that returned `token`.
///
/// The lanes of a warp that arrive together arrive once: all get the count before any of them.
///
/// ```text
/// mbarrier.pending_count.b64 count, token;
///     PTX ISA 7.0, sm_80 and later
/// ```
#[inline(always)]
#[must_use]
pub fn __mbarrier_token_pending_count(token: __mbarrier_token_t) -> u32
where
    for<'a> Target: Has<ptx_70> + Has<sm_80>,
{
    mbarrier::mbarrier_pending_count(token)
}

/// Starts a copy of `size_and_align` bytes from global to shared memory.
///
/// The copy belongs to the thread's next [`__pipeline_commit`] and [`__pipeline_arrive_on`].
///
/// ```text
/// cp.async.cg.shared.global [dst_shared], [src_global], 16;
/// cp.async.ca.shared.global [dst_shared], [src_global], size_and_align;
///     PTX ISA 7.0, sm_80 and later
/// ```
///
/// - `size_and_align`: bytes, 4, 8 or 16. 16 bytes do not go through the L1 cache.
///
/// # Panics
///
/// If `size_and_align` is another number.
///
/// # Safety
///
/// `dst_shared` points to so many bytes in this CTA's shared memory and `src_global` to so many in
/// global memory, both aligned to `size_and_align`. Nobody reads or writes the destination, or
/// writes the source, until the copy is complete.
#[inline(always)]
pub unsafe fn __pipeline_memcpy_async<T, U>(
    dst_shared: *mut T,
    src_global: *const U,
    size_and_align: usize,
) where
    for<'a> Target: Has<ptx_70> + Has<sm_80>,
{
    unsafe { __pipeline_memcpy_async_zfill(dst_shared, src_global, size_and_align, 0) }
}

/// As [`__pipeline_memcpy_async`], but the last `zfill` bytes become zeros and are not read.
///
/// ```text
/// cp.async.cg.shared.global [dst_shared], [src_global], 16, src_size;
/// cp.async.ca.shared.global [dst_shared], [src_global], size_and_align, src_size;
///     PTX ISA 7.0, sm_80 and later
/// ```
///
/// - `zfill`: bytes, up to `size_and_align`.
///
/// # Panics
///
/// If `size_and_align` is not 4, 8 or 16, or `zfill` is more.
///
/// # Safety
///
/// As for [`__pipeline_memcpy_async`]; the source needs only `size_and_align - zfill` bytes.
#[inline(always)]
pub unsafe fn __pipeline_memcpy_async_zfill<T, U>(
    dst_shared: *mut T,
    src_global: *const U,
    size_and_align: usize,
    zfill: usize,
) where
    for<'a> Target: Has<ptx_70> + Has<sm_80>,
{
    assert!(
        zfill <= size_and_align,
        "__pipeline_memcpy_async: zfill is larger than size_and_align"
    );
    let src_size = (size_and_align - zfill) as u32;
    unsafe {
        match size_and_align {
            16 => cp_async_cg(dst_shared, src_global, src_size),
            8 => cp_async_ca::<8, _, _>(dst_shared, src_global, src_size),
            4 => cp_async_ca::<4, _, _>(dst_shared, src_global, src_size),
            _ => panic!("__pipeline_memcpy_async: size_and_align must be 4, 8 or 16"),
        }
    }
}

/// Copies through the L2 cache alone, 16 bytes.
#[inline(always)]
pub(crate) unsafe fn cp_async_cg<T, U>(dst: *mut T, src: *const U, src_size: u32) {
    unsafe {
        asm!(
            "cp.async.cg.shared.global [{dst}], [{src}], 16, {src_size};",
            dst = in(reg32) as_ptr_smem(dst),
            src = in(reg64) as_ptr_gmem(src),
            src_size = in(reg32) src_size,
            // Not `nomem`: it reads and writes memory.
            options(nostack),
        );
    }
}

/// Copies through both caches, `SIZE` bytes.
#[inline(always)]
pub(crate) unsafe fn cp_async_ca<const SIZE: usize, T, U>(
    dst: *mut T,
    src: *const U,
    src_size: u32,
) {
    unsafe {
        asm!(
            "cp.async.ca.shared.global [{dst}], [{src}], {SIZE}, {src_size};",
            dst = in(reg32) as_ptr_smem(dst),
            src = in(reg64) as_ptr_gmem(src),
            SIZE = const SIZE,
            src_size = in(reg32) src_size,
            // Not `nomem`: it reads and writes memory.
            options(nostack),
        );
    }
}

/// Makes a group of the thread's copies since the last one.
///
/// ```text
/// cp.async.commit_group;
///     PTX ISA 7.0, sm_80 and later
/// ```
#[inline(always)]
pub fn __pipeline_commit()
where
    for<'a> Target: Has<ptx_70> + Has<sm_80>,
{
    unsafe {
        // Not `nomem`: the copies it groups must stay before it.
        asm!("cp.async.commit_group;", options(nostack));
    }
}

/// Waits until all of the thread's groups but the last `prior` are complete; more than 8 count as 8.
///
/// The data are then visible to this thread alone.
///
/// ```text
/// cp.async.wait_group prior;
///     PTX ISA 7.0, sm_80 and later
/// ```
#[inline(always)]
pub fn __pipeline_wait_prior(prior: usize)
where
    for<'a> Target: Has<ptx_70> + Has<sm_80>,
{
    match prior {
        0 => wait_group::<0>(),
        1 => wait_group::<1>(),
        2 => wait_group::<2>(),
        3 => wait_group::<3>(),
        4 => wait_group::<4>(),
        5 => wait_group::<5>(),
        6 => wait_group::<6>(),
        7 => wait_group::<7>(),
        _ => wait_group::<8>(),
    }
}

#[inline(always)]
fn wait_group<const N: u32>() {
    unsafe {
        // Not `nomem`, other than in C: loads of what was copied must stay behind it.
        asm!("cp.async.wait_group {N};", N = const N, options(nostack));
    }
}

/// Makes the barrier's current phase wait for the thread's copies so far: they lack one arrival
/// more, which is made when they are complete.
///
/// ```text
/// cp.async.mbarrier.arrive.shared.b64 [barrier];
///     PTX ISA 7.0, sm_80 and later
/// ```
///
/// # Safety
///
/// `barrier` points to an mbarrier object in this CTA's shared memory. Its phase does not complete
/// before this is executed, for instance because this thread arrives in it later.
#[inline(always)]
pub unsafe fn __pipeline_arrive_on(barrier: *mut __mbarrier_t)
where
    for<'a> Target: Has<ptx_70> + Has<sm_80>,
{
    unsafe {
        asm!(
            "cp.async.mbarrier.arrive.shared.b64 [{barrier}];",
            barrier = in(reg32) as_ptr_smem(barrier),
            // Not `nomem`: it changes the object, and the copies must stay before it.
            options(nostack),
        );
    }
}
