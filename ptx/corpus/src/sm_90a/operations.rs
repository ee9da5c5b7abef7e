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
    barrier_cta_sync(0);
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
    cuda_ptx::bar_warp_sync(WARP);
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

/// The barrier whose warps are converged.
#[inline(always)]
pub unsafe fn barrier_sync_aligned(x: u32) -> u32 {
    barrier_cta_sync_aligned(0);
    x
}

/// How many threads of the CTA have an odd number, added.
#[inline(always)]
pub unsafe fn barrier_red(x: u32) -> u32 {
    x.wrapping_add(barrier_cta_red_popc(0, x & 1 != 0))
}

/// Whether any thread of the CTA has an odd number, added.
#[inline(always)]
pub unsafe fn barrier_red_aligned(x: u32) -> u32 {
    x.wrapping_add(barrier_cta_red_or_aligned(0, x & 1 != 0) as u32)
}

/// An arrival at a barrier that nobody waits at.
#[inline(always)]
pub unsafe fn barrier_arrive(x: u32) -> u32 {
    barrier_cta_arrive(1, 256);
    x
}

/// The same by converged warps.
#[inline(always)]
pub unsafe fn barrier_arrive_aligned(x: u32) -> u32 {
    barrier_cta_arrive_aligned(1, 256);
    x
}

/// The sum of the warp's numbers.
#[inline(always)]
pub unsafe fn redux(x: u32) -> u32 {
    redux_sync(op_add, x, WARP)
}

/// Which lanes have an odd number, added.
#[inline(always)]
pub unsafe fn ballot(x: u32) -> u32 {
    x.wrapping_add(vote_sync_ballot(x & 1 != 0, WARP))
}

/// Whether any lane has an odd number, added.
#[inline(always)]
pub unsafe fn vote_any(x: u32) -> u32 {
    x.wrapping_add(vote_sync_any(x & 1 != 0, WARP) as u32)
}

/// Which lanes have the same number, added.
#[inline(always)]
pub unsafe fn match_any(x: u32) -> u32 {
    x.wrapping_add(match_any_sync(x, WARP))
}

/// All lanes if they have one number, else none, added.
#[inline(always)]
pub unsafe fn match_all(x: u32) -> u32 {
    let mut same = false;
    x.wrapping_add(match_all_sync(x, WARP, &mut same))
}

/// The lanes that happen to execute this together, added.
#[inline(always)]
pub unsafe fn active(x: u32) -> u32 {
    x.wrapping_add(activemask())
}

/// `elect.sync` with the elected lane, added.
#[inline(always)]
pub unsafe fn elect_leader(x: u32) -> u32 {
    let mut leader = 0;
    let elected = elect_sync_leader(WARP, &mut leader);
    x.wrapping_add(leader).wrapping_add(elected as u32)
}

/// The warp's matrix of 8 by 8 halves, transposed.
#[inline(always)]
pub unsafe fn movmatrix(x: u32) -> u32 {
    movmatrix_m8n8_trans(x)
}

/// A matrix of bytes multiplied by itself, with the numbers added.
#[inline(always)]
pub unsafe fn mma(x: u32) -> u32 {
    let c = [x as i32; 2];
    let [low, high] = mma_sync_m8n8k16(element_u8, element_u8, [x], [x], c);
    (low ^ high.wrapping_mul(3)) as u32
}

/// A sparse matrix of zeros multiplied, with the numbers added.
#[inline(always)]
pub unsafe fn mma_sp(x: u32) -> u32 {
    const FIRST_TWO: u32 = 0x4444_4444;
    let c = [x as i32; 4];
    let selector = n32::<0>;
    let [.., d] = mma_sp_ordered_metadata_sync_m16n8k32(
        element_s8, element_s8, [0; 2], [x; 2], c, FIRST_TWO, selector,
    );
    d as u32
}

/// What comes before a warpgroup's multiplications.
#[inline(always)]
pub unsafe fn wgmma_fence(x: u32) -> u32 {
    cuda_ptx::wgmma_fence();
    x
}

/// Makes a group of a warpgroup's multiplications.
#[inline(always)]
pub unsafe fn wgmma_commit(x: u32) -> u32 {
    wgmma_commit_group();
    x
}

/// Waits for a warpgroup's multiplications.
#[inline(always)]
pub unsafe fn wgmma_wait(x: u32) -> u32 {
    wgmma_wait_group(n32::<0>);
    x
}

/// A warpgroup's multiplication; one of D's registers.
#[inline(always)]
pub unsafe fn wgmma_mma(x: u32) -> u32 {
    let mut d = [x as f32; 4];
    let matrix = u64::from(x);
    wgmma_mma_async(element_bf16, element_bf16, &mut d, matrix, matrix, true);
    d[0].to_bits()
}

/// The first half of a cluster's barrier, by converged warps.
#[inline(always)]
pub unsafe fn cluster_arrive_aligned(x: u32) -> u32 {
    barrier_cluster_arrive_release_aligned();
    x
}

/// Both halves of a cluster's barrier, by converged warps.
#[inline(always)]
pub unsafe fn cluster_aligned(x: u32) -> u32 {
    barrier_cluster_arrive_relaxed_aligned();
    barrier_cluster_wait_acquire_aligned();
    x
}

/// Lets the grids that depend on this one start.
#[inline(always)]
pub unsafe fn dependents(x: u32) -> u32 {
    griddepcontrol_launch_dependents();
    x
}

/// Waits for the grids that this one depends on.
#[inline(always)]
pub unsafe fn dependencies(x: u32) -> u32 {
    griddepcontrol_wait();
    x
}
