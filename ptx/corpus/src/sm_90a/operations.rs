//! The convergent operations, each as a function of one number, so that a shape can be written once.
//!
//! An operation that takes or returns no number hands its argument on.

use core::arch::asm;

use cuda_ptx::*;

const WARP: u32 = u32::MAX;

shared! {
    /// Rows of matrices, and a tensor map.
    #[align(128)]
    static ROWS: [u32; 256];
}

/// The row that this lane gives to matrix instructions.
#[inline(always)]
fn row() -> *mut u16 {
    ROWS.as_mut_ptr()
        .cast::<u16>()
        .wrapping_add(8 * get_sreg_laneid() as usize)
}

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

/// A lane's neighbour's number, added to its own.
#[inline(always)]
pub unsafe fn shfl(x: u32) -> u32 {
    x.wrapping_add(shfl_sync_bfly(x, 1, 0x1f, WARP))
}

/// A warpgroup asks for more registers.
#[inline(always)]
pub unsafe fn setmaxnreg_inc(x: u32) -> u32 {
    cuda_ptx::setmaxnreg_inc(n32::<168>);
    x
}

/// A warpgroup gives registers back.
#[inline(always)]
pub unsafe fn setmaxnreg_dec(x: u32) -> u32 {
    cuda_ptx::setmaxnreg_dec(n32::<40>);
    x
}

/// The lane's part of a matrix in shared memory.
#[inline(always)]
pub unsafe fn ldmatrix(x: u32) -> u32 {
    let mut fragment = [0];
    ldmatrix_m8n8(space_shared, &mut fragment, row());
    x ^ fragment[0]
}

/// Stores the lane's part of a matrix to shared memory.
#[inline(always)]
pub unsafe fn stmatrix(x: u32) -> u32 {
    stmatrix_m8n8(row(), [x]);
    x
}

/// Publishes a tensor map.
#[inline(always)]
pub unsafe fn tensormap(x: u32) -> u32 {
    let global = (0x100 * x as usize) as *mut TensorMap;
    tensormap_cp_fenceproxy(
        sem_release,
        scope_gpu,
        global,
        ROWS.as_mut_ptr(),
        n32::<128>,
    );
    x
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
