//! The convergent operations, each as a function of one number, so that a shape can be written once.
//!
//! An operation that takes or returns no number hands its argument on.

use core::arch::asm;

use cuda_ptx::*;

const WARP: u32 = u32::MAX;

/// `bar.sync`, as a kernel author writes it.
#[inline(always)]
pub unsafe fn bar_sync(x: u32) -> u32 {
    asm!("bar.sync 0;", options(nostack));
    x
}

/// The barrier whose threads need not be converged.
#[inline(always)]
pub unsafe fn barrier_sync(x: u32) -> u32 {
    asm!("barrier.sync 0;", options(nostack));
    x
}

/// `__syncthreads()` as core binds it: LLVM knows that it is convergent, MIR does not.
#[inline(always)]
pub unsafe fn syncthreads(x: u32) -> u32 {
    core::arch::nvptx::_syncthreads();
    x
}

/// `__syncwarp()`.
#[inline(always)]
pub unsafe fn bar_warp_sync(x: u32) -> u32 {
    asm!("bar.warp.sync {};", in(reg32) WARP, options(nostack));
    x
}

/// `elect.sync`: 1 in the elected thread, 0 in the others.
#[inline(always)]
pub unsafe fn elect(x: u32) -> u32 {
    x.wrapping_add(elect_sync(WARP) as u32)
}

/// The first half of a cluster's barrier.
#[inline(always)]
pub unsafe fn cluster_arrive(x: u32) -> u32 {
    barrier_cluster_arrive();
    x
}

/// The second half of a cluster's barrier.
#[inline(always)]
pub unsafe fn cluster_wait(x: u32) -> u32 {
    barrier_cluster_wait();
    x
}
