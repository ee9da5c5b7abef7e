//! Mistakes with barriers, copies and multiplications, each beside its correction.
//!
//! A row is a function with a parameter `RIGHT`; the kernel `NAME` makes the mistake, and
//! `NAME_right` does not. `tests/mistakes.rs` runs both on the CPU under many schedules: the mistake
//! must be found by name, and the correction must be silent. Launch shapes are in that test.

#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, stdarch_nvptx))]

mod arrivals;
mod copies;
mod memory;
mod phases;
mod products;

use cuda_ptx::{get_sreg_ntid_x, get_sreg_tid_x};

/// Makes the two kernels of a row. Each takes an input and an output of 4096 numbers.
#[macro_export]
macro_rules! row {
    ($wrong:ident, $right:ident, $row:ident) => {
        cuda_ptx::kernel! {
            /// The mistake.
            pub fn $wrong(input: *const u32, output: *mut u32) { $row::<false>(input, output) }
        }
        cuda_ptx::kernel! {
            /// The correction.
            pub fn $right(input: *const u32, output: *mut u32) { $row::<true>(input, output) }
        }
    };
}

/// Elements of a tile.
const TILE_LEN: u32 = 64;

/// Bytes of a tile.
const TILE_BYTES: u32 = TILE_LEN * 4;

fn rank() -> u32 {
    get_sreg_tid_x()
}

fn size() -> u32 {
    get_sreg_ntid_x()
}

/// `__syncthreads()`.
unsafe fn sync() {
    #[cfg(target_arch = "nvptx64")]
    core::arch::nvptx::_syncthreads();
}

cuda_ptx::panic_trap!();
