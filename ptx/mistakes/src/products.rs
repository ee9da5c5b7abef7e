//! Multiplications of warpgroups that run ahead.

use cuda_ptx::warpgroup::{Accumulator, Descriptor, Swizzle, wgmma_mma_async};
use cuda_ptx::*;

use crate::{TILE_LEN, rank, row, size, sync};

/// 64 rows of A and 8 of B, of 32 bytes, in matrices of 8 rows of 16 bytes.
const A_WORDS: u32 = 64 * 8;
const B_WORDS: u32 = 8 * 8;

shared! {
    #[align(128)]
    static A: [u32; A_WORDS as usize];
    #[align(128)]
    static B: [u32; B_WORDS as usize];
}

type Sums = Accumulator<i32, 4>;

unsafe fn word_of_a(index: u32) -> *mut u32 {
    A.as_mut_ptr().cast::<u32>().add(index as usize)
}

unsafe fn word_of_b(index: u32) -> *mut u32 {
    B.as_mut_ptr().cast::<u32>().add(index as usize)
}

/// Each thread writes its part of A and B.
unsafe fn fill(input: *const u32) {
    for index in (rank()..A_WORDS).step_by(size() as usize) {
        *word_of_a(index) = *input.add((index % TILE_LEN) as usize);
    }
    if rank() < B_WORDS {
        *word_of_b(rank()) = *input.add(rank() as usize);
    }
}

/// [`fill`], and what lets multiplications see it.
unsafe fn prepare(input: *const u32) {
    fill(input);
    fence_proxy_async();
    sync();
}

unsafe fn multiply(sums: &mut Sums, add: bool) {
    let a = Descriptor::k_major(word_of_a(0), Swizzle::None);
    let b = Descriptor::k_major(word_of_b(0), Swizzle::None);
    wgmma_mma_async(element_u8, element_s8, sums, a.bits(), b.bits(), add);
}

unsafe fn store(sums: &mut Sums, output: *mut u32) {
    sums.for_each(|index, sum| *output.add((index * size() + rank()) as usize) = *sum as u32);
}

/// Sums are read when the multiplication is over.
unsafe fn read_early<const RIGHT: bool>(input: *const u32, output: *mut u32) {
    prepare(input);
    let mut sums = Sums::zero();
    sums.fence();
    wgmma_fence();
    multiply(&mut sums, true);
    wgmma_commit_group();
    if RIGHT {
        wgmma_wait_group(n32::<0>);
    } else {
        wgmma_wait_group(n32::<1>);
    }
    sums.fence();
    store(&mut sums, output);
    wgmma_wait_group(n32::<0>);
}
row!(early_sums, early_sums_right, read_early);

/// `wgmma.fence` is between what writes the registers of sums and the multiplication.
unsafe fn no_fence<const RIGHT: bool>(input: *const u32, output: *mut u32) {
    prepare(input);
    let mut sums = Sums::zero();
    sums.fence();
    if RIGHT {
        wgmma_fence();
    }
    multiply(&mut sums, true);
    wgmma_commit_group();
    wgmma_wait_group(n32::<0>);
    sums.fence();
    store(&mut sums, output);
}
row!(unfenced_sums, unfenced_sums_right, no_fence);

/// A matrix is written again when the multiplications that read it are over.
unsafe fn overwrite<const RIGHT: bool>(input: *const u32, output: *mut u32) {
    prepare(input);
    let mut sums = Sums::zero();
    sums.fence();
    wgmma_fence();
    multiply(&mut sums, true);
    wgmma_commit_group();
    if RIGHT {
        wgmma_wait_group(n32::<0>);
    }
    sync();
    if rank() < B_WORDS {
        *word_of_b(rank()) = !rank();
    }
    wgmma_wait_group(n32::<0>);
    sums.fence();
    store(&mut sums, output);
}
row!(matrix_overwritten, matrix_overwritten_right, overwrite);

/// What ordinary stores wrote is fenced before multiplications read it.
unsafe fn no_proxy_fence<const RIGHT: bool>(input: *const u32, output: *mut u32) {
    fill(input);
    if RIGHT {
        fence_proxy_async();
    }
    sync();
    let mut sums = Sums::zero();
    sums.fence();
    wgmma_fence();
    multiply(&mut sums, true);
    wgmma_commit_group();
    wgmma_wait_group(n32::<0>);
    sums.fence();
    store(&mut sums, output);
}
row!(unfenced_matrix, unfenced_matrix_right, no_proxy_fence);

/// All warps of a warpgroup multiply the same matrices.
unsafe fn another_matrix<const RIGHT: bool>(input: *const u32, output: *mut u32) {
    prepare(input);
    let mut sums = Sums::zero();
    let first = if RIGHT || rank() < 32 { 0 } else { 4 };
    let a = Descriptor::k_major(word_of_a(first), Swizzle::None).bits();
    let b = Descriptor::k_major(word_of_b(0), Swizzle::None).bits();
    sums.fence();
    wgmma_fence();
    wgmma_mma_async(element_u8, element_s8, &mut sums, a, b, true);
    wgmma_commit_group();
    wgmma_wait_group(n32::<0>);
    sums.fence();
    store(&mut sums, output);
}
row!(warps_apart, warps_apart_right, another_matrix);
