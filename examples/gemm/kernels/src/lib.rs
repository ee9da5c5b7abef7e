//! C = A · Bᵀ with the tensor cores of Hopper. A has M rows of K elements, B has N.
//!
//! Two CTAs, a cluster, compute 256 by 256 elements of C at a time, 128 rows each, and then the next
//! ones. In each, one warp keeps a ring of tiles of A and B filled by tensor copies, and two
//! warpgroups multiply them. Both CTAs need the same tile of B: each loads half of it for both.

#![no_std]
#![feature(abi_ptx, stdarch_nvptx)]

mod schedule;
mod store;

use core::arch::nvptx::_syncthreads;

use cuda_ptx::barrier::{Block, Cluster, FullSlot, Pipeline};
use cuda_ptx::warpgroup::{Accumulator, Descriptor, Swizzle, wgmma_mma_async};
use cuda_ptx::*;

use schedule::Schedule;
use store::store;

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
/// Bytes of a row of a tile of A or B, along K: the swizzle of the copies and of the descriptors.
const SLAB: u32 = 128;
/// Bytes along K that one multiplication takes.
const STEP: u32 = 32;
/// Tiles of A and B in the ring, and their bytes.
const STAGES: u32 = 4;
const A_BYTES: u32 = CTA_ROWS * SLAB;
const B_BYTES: u32 = COLUMNS * SLAB;

extern_shared! {
    /// The ring's tiles of A, those of B, and the boxes that C leaves in.
    #[align(1024)]
    static TILES: [u8];
}
shared! {
    /// A stage is full when this CTA's copies have come, and empty when the warpgroups of both CTAs have
    /// used it, because half of B comes from the other one.
    static RING: Pipeline<{ STAGES as usize }, Block, Cluster>;
}

/// What a thread of a warpgroup holds of 64 rows by 256 columns of C.
type Sums = Accumulator<f32, 128>;

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

/// The kernel: barriers first, then every warpgroup takes its role. `multiply` adds the product of what
/// two descriptors describe to the sums, or replaces them by it; `pair` makes two sums elements of C.
#[inline(always)]
unsafe fn gemm<P>(
    product: Product,
    multiply: impl Fn(&mut Sums, u64, u64, bool),
    pair: impl Fn([f32; 2]) -> P,
) {
    let thread = get_sreg_tid_x();
    if thread == 0 {
        Pipeline::init(RING.as_mut_ptr(), 1, 2 * CLUSTER);
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
            compute(&product, warpgroup - 1, multiply, pair);
        }
    }
}

/// The tiles of A and B of a stage.
#[inline(always)]
unsafe fn tiles(stage: usize) -> [*mut u8; 2] {
    let stage = stage as u32;
    let (a, b) = (stage * A_BYTES, STAGES * A_BYTES + stage * B_BYTES);
    [a, b].map(|offset| TILES.as_mut_ptr().add(offset as usize))
}

/// One thread starts all copies.
#[inline(always)]
unsafe fn load(product: &Product) {
    let rank = get_sreg_cluster_ctarank();
    let half = COLUMNS / CLUSTER;
    let both = (1 << CLUSTER) - 1;
    let (from, to) = (space_global, space_cluster);
    let (map_a, map_b) = (product.a.as_ptr(), product.b.as_ptr());
    let mut ring = Pipeline::producer(RING.as_mut_ptr());
    for (row, column) in Schedule::new(product) {
        let row_a = (row + rank * CTA_ROWS) as i32;
        let row_b = (column + rank * half) as i32;
        for k in (0..product.k).step_by(product.slab as usize) {
            let k = k as i32;
            let stage = ring.acquire();
            let [a, b] = tiles(stage.stage());
            let full = stage.commit_tx(A_BYTES + B_BYTES);
            cp_async_bulk_tensor_bar(to, from, a, map_a, [k, row_a], full);
            let b = b.add((rank * half * SLAB) as usize);
            cp_async_bulk_tensor_bar_cta_mask(to, from, b, map_b, [k, row_b], full, both);
        }
    }
    // The other CTA still releases stages here: this one must not end before.
    ring.drain();
}

/// A warpgroup multiplies 64 rows of A by the columns of B, tile by tile.
#[inline(always)]
unsafe fn compute<P>(
    product: &Product,
    warpgroup: u32,
    multiply: impl Fn(&mut Sums, u64, u64, bool),
    pair: impl Fn([f32; 2]) -> P,
) {
    let thread = get_sreg_tid_x() % WARPGROUP;
    let first_row = get_sreg_cluster_ctarank() * CTA_ROWS + warpgroup * ROWS;
    let mut ring = Pipeline::consumer(RING.as_mut_ptr());
    let mut sums = Accumulator::zero();
    for (row, column) in Schedule::new(product) {
        let mut used = None;
        sums.fence();
        for k in (0..product.k).step_by(product.slab as usize) {
            let stage = ring.wait();
            let [a, b] = tiles(stage.stage());
            let a = Descriptor::k_major(a.add((warpgroup * ROWS * SLAB) as usize), Swizzle::Bytes128);
            let b = Descriptor::k_major(b, Swizzle::Bytes128);
            wgmma_fence();
            for step in 0..SLAB / STEP {
                let [a, b] = [a, b].map(|matrix| matrix.advance(step * STEP).bits());
                // The first one replaces what the registers hold.
                multiply(&mut sums, a, b, k > 0 || step > 0);
            }
            wgmma_commit_group();
            // While these multiplications run, those of the slab before are complete.
            wgmma_wait_group(n32::<1>);
            if let Some(used) = used.replace(stage) {
                release(used, thread);
            }
        }
        wgmma_wait_group(n32::<0>);
        sums.fence();
        if let Some(used) = used {
            release(used, thread);
        }
        store(&mut sums, warpgroup, product.c.as_ptr(), [column, row + first_row], &pair);
    }
    cp_async_bulk_wait_group(n32::<0>);
}

/// Tells both CTAs that a warpgroup has used a stage: a thread of it for each of them.
#[inline(always)]
unsafe fn release(stage: FullSlot<Cluster>, thread: u32) {
    if thread < CLUSTER {
        stage.release_relaxed_at(thread);
    } else {
        stage.leave();
    }
}

macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident: $type:ident of $bytes:literal bytes, $pair:expr;)*) => {$(
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
                unsafe {
                    let product = Product { a, b, c, m, n, k, slab: SLAB / $bytes, group };
                    gemm(product, |sums, a, b, add| wgmma_mma_async($type, $type, sums, a, b, add), $pair)
                }
            }
        }
    )*};
}

kernels! {
    /// C of bf16 from A and B of bf16.
    gemm_bf16_bf16: element_bf16 of 2 bytes, |[low, high]| cvt_rn_bf16x2_f32(high, low);
    /// C of f32 from A and B of bf16.
    gemm_bf16_f32: element_bf16 of 2 bytes, |[low, high]| u64::from(high.to_bits()) << 32 | u64::from(low.to_bits());
    /// C of bf16 from A and B of e4m3.
    gemm_e4m3_bf16: element_e4m3 of 1 bytes, |[low, high]| cvt_rn_bf16x2_f32(high, low);
}
