//! C = A · Bᵀ with the tensor cores of Hopper. A has M rows of K elements, B has N.
//!
//! Two CTAs, a cluster, compute 256 by 256 elements of C at a time, 128 rows each, and then the next
//! ones. In each, one warp keeps a ring of tiles of A and B filled by tensor copies, and two
//! warpgroups multiply them. Both CTAs need the same tile of B: each loads half of it for both.

#![no_std]
#![feature(abi_ptx, asm_experimental_arch, stdarch_nvptx)]

mod ring;
mod schedule;
mod store;

use core::arch::nvptx::_syncthreads;

use cuda_ptx::warpgroup::{Accumulator, Descriptor, Swizzle, wgmma_mma_async};
use cuda_ptx::*;

use ring::{Cursor, SLAB, STAGE_BYTES};
use schedule::Schedule;
use store::{Boxes, Output};

panic_trap!();

/// Threads of a warpgroup.
const WARPGROUP: u32 = 128;
/// One warpgroup that loads, and two that multiply.
const THREADS: u32 = 3 * WARPGROUP;
/// CTAs of a cluster, above one another in C.
const CLUSTER: u32 = 2;
/// Rows of C that a warpgroup computes, and a CTA.
const ROWS: u32 = 64;
const CTA_ROWS: u32 = 2 * ROWS;
/// Columns of C that a CTA computes.
const COLUMNS: u32 = 256;
/// Bytes along K that one multiplication takes.
const STEP: u32 = 32;

/// The three matrices and their sizes.
struct Product {
    a: GridConstant<TensorMap>,
    b: GridConstant<TensorMap>,
    c: GridConstant<TensorMap>,
    m: u32,
    n: u32,
    /// Elements along K, and of a slab.
    k: u32,
    slab: u32,
    /// See [`Schedule::new`].
    group: u32,
}

/// The kernel: barriers first, then every warpgroup takes its role.
#[inline(always)]
unsafe fn multiply<T: Input, U: Output>(product: Product) {
    let thread = get_sreg_tid_x();
    if thread == 0 {
        ring::init();
        fence_mbarrier_init(sem_release, scope_cluster);
        prefetch_tensormap(product.a.as_ptr());
        prefetch_tensormap(product.b.as_ptr());
        prefetch_tensormap(product.c.as_ptr());
    }
    // Before anyone uses a barrier of the other CTA.
    _syncthreads();
    barrier_cluster_arrive();
    barrier_cluster_wait();

    // Registers go from the threads that copy to those that hold C.
    match thread / WARPGROUP {
        0 => {
            setmaxnreg_dec(n32::<24>);
            if thread == 0 {
                load(&product);
            }
        }
        warpgroup => {
            setmaxnreg_inc(n32::<240>);
            compute::<T, U>(&product, warpgroup - 1);
        }
    }
}

/// One thread starts all copies.
#[inline(always)]
unsafe fn load(product: &Product) {
    let rank = get_sreg_cluster_ctarank();
    let half = COLUMNS / CLUSTER;
    let both = (1 << CLUSTER) - 1;
    let (from, to) = (space_global, space_cluster);
    let (map_a, map_b) = (product.a.as_ptr(), product.b.as_ptr());
    let mut cursor = Cursor::LOADING;
    for (row, column) in Schedule::new(product.m, product.n, product.group) {
        let row_a = (row + rank * CTA_ROWS) as i32;
        let row_b = (column + rank * half) as i32;
        for k in (0..product.k).step_by(product.slab as usize) {
            let stage = cursor.empty();
            let [a, b] = stage.tiles();
            let _ = stage.full().arrive_tx(STAGE_BYTES);
            let full = stage.full().native_handle();
            let k = k as i32;
            cp_async_bulk_tensor_bar(to, from, a, map_a, [k, row_a], full);
            let b = b.add((rank * half * SLAB) as usize);
            cp_async_bulk_tensor_bar_cta_mask(to, from, b, map_b, [k, row_b], full, both);
        }
    }
    // The other CTA still arrives here: this one must not end before.
    cursor.drain();
}

/// A warpgroup multiplies 64 rows of A by the columns of B, tile by tile.
#[inline(always)]
unsafe fn compute<T: Input, U: Output>(product: &Product, warpgroup: u32) {
    let thread = get_sreg_tid_x() % WARPGROUP;
    let first_row = get_sreg_cluster_ctarank() * CTA_ROWS + warpgroup * ROWS;
    let mut cursor = Cursor::USING;
    let mut boxes = Boxes::new(ring::boxes(), warpgroup);
    let mut sums = Accumulator::zero();
    for (row, column) in Schedule::new(product.m, product.n, product.group) {
        let mut used = None;
        sums.fence();
        for k in (0..product.k).step_by(product.slab as usize) {
            let stage = cursor.full();
            let [a, b] = stage.tiles();
            let a = Descriptor::k_major(a.add((warpgroup * ROWS * SLAB) as usize), Swizzle::Bytes128);
            let b = Descriptor::k_major(b, Swizzle::Bytes128);
            wgmma_fence();
            for step in 0..SLAB / STEP {
                let (a, b) = (a.advance(step * STEP), b.advance(step * STEP));
                // The first one replaces what the registers hold.
                T::multiply(&mut sums, a, b, k > 0 || step > 0);
            }
            wgmma_commit_group();
            // While these multiplications run, those of the slab before are complete.
            wgmma_wait_group(n32::<1>);
            if let Some(used) = used.replace(stage) {
                used.release(thread);
            }
        }
        wgmma_wait_group(n32::<0>);
        sums.fence();
        if let Some(used) = used {
            used.release(thread);
        }
        boxes.store::<U>(&mut sums, product.c.as_ptr(), row + first_row, column);
    }
    cp_async_bulk_wait_group(n32::<0>);
}

/// The type of the elements of A and B.
trait Input {
    /// Bytes of an element.
    const BYTES: u32;
    /// Adds the product of a step to the sums, or replaces them by it.
    unsafe fn multiply(sums: &mut Accumulator<f32, 128>, a: Descriptor, b: Descriptor, add: bool);
}

macro_rules! inputs {
    ($($name:ident: $bytes:literal $type:ident;)*) => {$(
        struct $name;
        impl Input for $name {
            const BYTES: u32 = $bytes;
            #[inline(always)]
            unsafe fn multiply(sums: &mut Accumulator<f32, 128>, a: Descriptor, b: Descriptor, add: bool) {
                wgmma_mma_async($type, $type, sums, a.bits(), b.bits(), add);
            }
        }
    )*};
}

inputs! {
    Bf16: 2 element_bf16;
    E4m3: 1 element_e4m3;
}

macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident: $input:ident, $output:path;)*) => {$(
        kernel! {
            $(#[$doc])*
            ///
            /// # Safety
            /// The maps describe A and B with boxes of 128 rows of 128 bytes, and C with boxes of 64 rows
            /// of 128 bytes, all with a swizzle of 128 bytes. The grid has an even number of CTAs of 384
            /// threads, and 224 KiB of dynamic shared memory each.
            #[launch_bounds(THREADS, 1)]
            #[cluster_dim(CLUSTER, 1, 1)]
            pub fn $name(a: GridConstant<TensorMap>, b: GridConstant<TensorMap>, c: GridConstant<TensorMap>, m: u32, n: u32, k: u32, group: u32) {
                unsafe { multiply::<$input, $output>(Product { a, b, c, m, n, k, slab: SLAB / $input::BYTES, group }) }
            }
        }
    )*};
}

kernels! {
    /// C of bf16 from A and B of bf16.
    gemm_bf16_bf16: Bf16, store::Bf16;
    /// C of f32 from A and B of bf16.
    gemm_bf16_f32: Bf16, store::F32;
    /// C of bf16 from A and B of e4m3.
    gemm_e4m3_bf16: E4m3, store::Bf16;
}
