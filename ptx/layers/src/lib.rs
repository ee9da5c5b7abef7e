//! What the typed layer and the C primitives compile to, beside the same in intrinsics.
//!
//! Kernels come in groups. The names of a group differ behind `__`: `NAME__ptx` uses the functions of
//! the crate's root, `NAME__barrier` those of [`cuda_ptx::barrier`], `NAME__awbarrier` the C
//! primitives. All of a group must be the same machine code; `tests/layers.rs` compares it.

#![no_std]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(abi_ptx, asm_experimental_arch, stdarch_nvptx)
)]
#![allow(non_snake_case)]

mod cluster;
mod pipeline;
mod primitives;
mod waits;

use cuda_ptx::barrier::{Barrier, Cluster};
use cuda_ptx::shared;

shared! {
    // One object for all layers: the machine code depends on where it lies.
    static BAR: Barrier;
    static CLUSTER: Barrier<Cluster>;
    #[align(128)]
    static TILES: [[u32; 256]; 4];
}

/// Work that the compiler cannot move across a barrier: it stores to and loads from shared memory.
#[inline(always)]
unsafe fn store(value: u32) {
    *TILES.as_mut_ptr().cast::<u32>().add(cuda_ptx::get_sreg_tid_x() as usize) = value;
}

#[inline(always)]
unsafe fn load() -> u32 {
    *TILES.as_mut_ptr().cast::<u32>().add(255 - cuda_ptx::get_sreg_tid_x() as usize)
}

#[inline(always)]
unsafe fn sync() {
    #[cfg(target_arch = "nvptx64")]
    core::arch::nvptx::_syncthreads();
}

cuda_ptx::panic_trap!();
