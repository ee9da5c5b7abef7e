//! The operations on tensor memory that a warp executes together, as functions of one number.

use cuda_ptx::*;

shared! {
    /// Where an allocation puts its address.
    static COLUMNS: u32;
}

/// Allocates columns.
#[inline(always)]
pub unsafe fn tcgen05_alloc(x: u32) -> u32 {
    cuda_ptx::tcgen05_alloc(cta_group_1, COLUMNS.as_mut_ptr(), 32);
    x
}

/// Gives columns back.
#[inline(always)]
pub unsafe fn tcgen05_dealloc(x: u32) -> u32 {
    cuda_ptx::tcgen05_dealloc(cta_group_1, x, 32);
    x
}

/// Ends the right to allocate.
#[inline(always)]
pub unsafe fn tcgen05_relinquish(x: u32) -> u32 {
    tcgen05_relinquish_alloc_permit(cta_group_1);
    x
}

/// Loads one word for each lane; it is valid after the wait only.
#[inline(always)]
pub unsafe fn tcgen05_ld(x: u32) -> u32 {
    let mut out = [0u32];
    tcgen05_ld_32x32b(&mut out, x);
    out[0]
}

/// Stores one word for each lane.
#[inline(always)]
pub unsafe fn tcgen05_st(x: u32) -> u32 {
    tcgen05_st_32x32b(x, [x]);
    x
}

/// Waits for the loads of this thread.
#[inline(always)]
pub unsafe fn tcgen05_wait_ld(x: u32) -> u32 {
    cuda_ptx::tcgen05_wait_ld();
    x
}

/// Waits for the stores of this thread.
#[inline(always)]
pub unsafe fn tcgen05_wait_st(x: u32) -> u32 {
    cuda_ptx::tcgen05_wait_st();
    x
}

/// Starts a multiplication that leaves A in the collector buffer.
#[inline(always)]
pub unsafe fn tcgen05_mma(x: u32) -> u32 {
    let (matrix, odd) = (u64::from(x), x & 1 != 0);
    tcgen05_mma_collector(
        kind_f16, cta_group_1, collector_a_fill, x, matrix, matrix, x, odd,
    );
    x
}

/// Starts a multiplication with A shifted.
#[inline(always)]
pub unsafe fn tcgen05_mma_ashift(x: u32) -> u32 {
    let (matrix, odd) = (u64::from(x), x & 1 != 0);
    cuda_ptx::tcgen05_mma_ashift(
        kind_f16, cta_group_1, collector_a_lastuse, x, x, matrix, x, odd,
    );
    x
}

/// Starts a sparse multiplication that leaves B in a collector buffer.
#[inline(always)]
pub unsafe fn tcgen05_mma_ws_sp(x: u32) -> u32 {
    let (matrix, odd) = (u64::from(x), x & 1 != 0);
    cuda_ptx::tcgen05_mma_ws_sp(
        cta_group_1, kind_f16, collector_b1_fill, x, matrix, matrix, x, x, odd,
    );
    x
}
