//! What the guide takes from `cooperative_groups::this_thread_block()`, for one-dimensional blocks.

use cuda_ptx::{get_sreg_ctaid_x, get_sreg_nctaid_x, get_sreg_ntid_x, get_sreg_tid_x};

/// The number of this thread in its block.
#[inline(always)]
pub fn thread_rank() -> u32 {
    get_sreg_tid_x()
}

/// The number of threads of a block.
#[inline(always)]
pub fn size() -> u32 {
    get_sreg_ntid_x()
}

/// The number of this block in the grid.
#[inline(always)]
pub fn index() -> u32 {
    get_sreg_ctaid_x()
}

/// The number of blocks of the grid.
#[inline(always)]
pub fn grid_size() -> u32 {
    get_sreg_nctaid_x()
}

/// `__syncthreads()`: no thread goes on before all threads of the block are here, and then each
/// sees what the others wrote.
///
/// # Safety
/// Every thread of the block calls this, the same number of times.
#[inline(always)]
pub unsafe fn sync() {
    // Elsewhere the kernels are only type-checked.
    #[cfg(target_arch = "nvptx64")]
    core::arch::nvptx::_syncthreads();
}

/// `__syncwarp()`: the lanes of the warp go on together.
///
/// # Safety
/// Every lane of the warp calls this.
#[inline(always)]
pub unsafe fn sync_warp() {
    // Elsewhere the kernels are only type-checked.
    #[cfg(target_arch = "nvptx64")]
    core::arch::asm!("bar.warp.sync 0xffffffff;", options(nostack));
}

/// The thread whose result a thread reads, half a block and one thread on: with more than two
/// warps, always one of another warp.
#[inline(always)]
pub fn partner(rank: u32, size: u32) -> u32 {
    let partner = rank + size / 2 + 1;
    // Modulo `size`: below it, the difference wraps around to a large number.
    partner.min(partner.wrapping_sub(size))
}
