//! C = A · Bᵀ with the tensor cores of Hopper. A has M rows of K elements, B has N.
//!
//! Two CTAs, a cluster, compute 256 by 256 elements of C at a time, 128 rows each, and then the next
//! ones. In each, one warp keeps a ring of tiles of A and B filled by tensor copies, and two
//! warpgroups multiply them. Both CTAs need the same tile of B: each loads half of it for both.

#![no_std]
#![feature(abi_ptx, asm_experimental_arch, stdarch_nvptx)]

mod schedule;
mod store;

use core::arch::nvptx::_syncthreads;

use cuda_ptx::barrier::{Barrier, Cluster, Parity};
use cuda_ptx::warpgroup::{Accumulator, Descriptor, Swizzle, wgmma_mma_async};
use cuda_ptx::*;

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

/// Bytes of a row of a tile of A or B, along K: the swizzle of the copies and of the descriptors.
const SLAB: u32 = 128;
/// Bytes along K that one multiplication takes.
const STEP: u32 = 32;
/// Slabs in the ring.
const STAGES: usize = if cfg!(feature = "wide") { 3 } else { 4 };
const A_BYTES: u32 = CTA_ROWS * SLAB;
const B_BYTES: u32 = COLUMNS * SLAB;

extern_shared! {
    /// The ring's tiles of A, those of B, and the boxes that C leaves in.
    #[align(1024)]
    static TILES: [u8];
}
shared! {
    /// Complete when a stage of this CTA has been loaded.
    static FULL: [Barrier; STAGES];
    /// Complete when the warpgroups of both CTAs have used a stage: its next tile comes for both.
    static EMPTY: [Barrier<Cluster>; STAGES];
}

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

/// Where a thread is in the ring.
struct Cursor {
    stage: usize,
    parity: Parity,
}

impl Cursor {
    fn advance(&mut self) {
        self.stage += 1;
        if self.stage == STAGES {
            self.stage = 0;
            self.parity.advance();
        }
    }
}

#[inline(always)]
unsafe fn barrier<S>(ring: &Shared<[Barrier<S>; STAGES]>, stage: usize) -> &Barrier<S> {
    &*ring.as_mut_ptr().cast::<Barrier<S>>().add(stage)
}

/// The tiles of A and B of a stage.
unsafe fn tiles(stage: usize) -> [*mut u8; 2] {
    let (a, b) = (A_BYTES as usize, B_BYTES as usize);
    let ring = TILES.as_mut_ptr();
    [ring.add(stage * a), ring.add(STAGES * a + stage * b)]
}

/// The kernel: barriers first, then every warpgroup takes its role.
#[inline(always)]
unsafe fn multiply<T: Input, U: Output>(product: Product) {
    let thread = get_sreg_tid_x();
    if thread == 0 {
        let (full, empty) = (FULL.as_mut_ptr().cast::<Barrier>(), EMPTY.as_mut_ptr().cast::<Barrier<Cluster>>());
        for stage in 0..STAGES {
            Barrier::init(full.add(stage), 1);
            Barrier::init(empty.add(stage), 2 * CLUSTER);
        }
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
    let mut cursor = Cursor { stage: 0, parity: Parity::ODD };
    for (row, column) in Schedule::new(product.m, product.n, product.group) {
        let row_a = (row + rank * CTA_ROWS) as i32;
        let row_b = (column + rank * half) as i32;
        for k in (0..product.k).step_by(product.slab as usize) {
            barrier(&EMPTY, cursor.stage).wait_parity(cursor.parity);
            let full = barrier(&FULL, cursor.stage);
            let _ = full.arrive_tx(A_BYTES + B_BYTES);
            let full = full.native_handle();
            let [a, b] = tiles(cursor.stage);
            let b = b.add((rank * half * SLAB) as usize);
            let k = k as i32;
            cp_async_bulk_tensor_bar(space_cluster, space_global, a, product.a.as_ptr(), [k, row_a], full);
            let both = (1 << CLUSTER) - 1;
            cp_async_bulk_tensor_bar_cta_mask(space_cluster, space_global, b, product.b.as_ptr(), [k, row_b], full, both);
            cursor.advance();
        }
    }
    // The other CTA still arrives here: this one must not end before.
    for _ in 0..STAGES {
        barrier(&EMPTY, cursor.stage).wait_parity(cursor.parity);
        cursor.advance();
    }
}

/// A warpgroup multiplies 64 rows of A by the columns of B, tile by tile.
#[inline(always)]
unsafe fn compute<T: Input, U: Output>(product: &Product, warpgroup: u32) {
    let thread = get_sreg_tid_x() % WARPGROUP;
    let row_in_cluster = get_sreg_cluster_ctarank() * CTA_ROWS + warpgroup * ROWS;
    let mut cursor = Cursor { stage: 0, parity: Parity::EVEN };
    let mut boxes = Boxes::new(tiles(STAGES)[1], warpgroup);
    let mut sums = Accumulator::zero();
    // One thread for each CTA tells it that a stage has been read. Nothing was written there: the
    // arrival has no memory accesses to order.
    let release = |stage| {
        if thread < CLUSTER {
            let empty = barrier(&EMPTY, stage).remote(thread).native_handle();
            mbarrier_arrive_sem_scope_space(sem_relaxed, scope_cluster, space_cluster, empty);
        }
    };
    for (row, column) in Schedule::new(product.m, product.n, product.group) {
        let mut used = None;
        sums.fence();
        for k in (0..product.k).step_by(product.slab as usize) {
            barrier(&FULL, cursor.stage).wait_parity(cursor.parity);
            let [a, b] = tiles(cursor.stage);
            let a = Descriptor::k_major(a.add((warpgroup * ROWS * SLAB) as usize), Swizzle::Bytes128);
            let b = Descriptor::k_major(b, Swizzle::Bytes128);
            wgmma_fence();
            for step in 0..SLAB / STEP {
                let (a, b) = (a.advance(step * STEP), b.advance(step * STEP));
                T::multiply(&mut sums, a, b, k > 0 || step > 0);
            }
            wgmma_commit_group();
            // While these multiplications run, those of the slab before are complete.
            wgmma_wait_group(n32::<1>);
            if let Some(used) = used.replace(cursor.stage) {
                release(used);
            }
            cursor.advance();
        }
        wgmma_wait_group(n32::<0>);
        sums.fence();
        if let Some(used) = used {
            release(used);
        }
        boxes.store::<U>(&mut sums, product.c.as_ptr(), row + row_in_cluster, column);
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
