//! What the typed barriers do beyond the guide: scopes, completion functions, timed waits, copies of
//! every alignment, and rings that threads fill.
//!
//! `host/src/barriers.rs` launches them, on the GPU in a bundle's `run test` and on the CPU under many
//! schedules in `tests/barriers.rs`.

#![no_std]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(abi_ptx, stdarch_nvptx)
)]

mod cluster;
mod copies;
mod grid;
mod rings;
mod waits;

use cuda_ptx::{get_sreg_ctaid_x, get_sreg_nctaid_x, get_sreg_ntid_x, get_sreg_tid_x};

/// `__syncthreads()`.
#[inline(always)]
unsafe fn sync() {
    // Elsewhere the kernels are only type-checked.
    #[cfg(target_arch = "nvptx64")]
    core::arch::nvptx::_syncthreads();
}

/// The number of this thread in the grid, and how many there are.
#[inline(always)]
fn thread() -> (u32, u32) {
    let size = get_sreg_ntid_x();
    (
        get_sreg_ctaid_x() * size + get_sreg_tid_x(),
        get_sreg_nctaid_x() * size,
    )
}

cuda_ptx::panic_trap!();
