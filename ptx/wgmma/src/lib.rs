//! C = A · Bᵀ by warpgroups: a CTA computes a tile of C, of 64 rows and 256 columns, from tiles of A and B
//! that tensor copies bring.
//!
//! The rows of A and B run along K, in slabs of 128 bytes: the swizzle of the tensor copies and of the
//! descriptors. A ring of [`STAGES`] slabs is filled ahead. `tile.cu` is the same in C++.

#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, stdarch_nvptx))]

use core::arch::nvptx::_syncthreads;
use cuda_ptx::warpgroup::{Accumulator, Descriptor, Multiplies, Swizzle};
use cuda_ptx::*;

panic_trap!();

/// Threads of a CTA: one warpgroup.
const THREADS: u32 = 128;
/// The tile of C.
const ROWS: u32 = 64;
const COLUMNS: u32 = 256;
/// Bytes of a row of a slab, along K.
const SLAB: u32 = 128;
/// Bytes along K that one multiplication takes.
const STEP: u32 = 32;
/// How many slabs there is room for.
const STAGES: u32 = 4;

const A_BYTES: u32 = ROWS * SLAB;
const STAGE_BYTES: u32 = (ROWS + COLUMNS) * SLAB;

extern_shared! { #[align(1024)] static SLABS: [u8]; }
shared! { static FULL: [u64; STAGES as usize]; }

type Tile = Accumulator<f32, { COLUMNS as usize / 2 }>;

kernel! {
    /// C = A · Bᵀ with A and B of `bf16` and C of `f32`.
    ///
    /// # Safety
    /// `a` and `b` describe A and B with boxes of 64 and of 256 rows of 128 bytes, swizzled by 128 bytes.
    /// `c` has 64 rows for each CTA in y, and 256 columns for each in x. There are `slabs` times 128
    /// bytes in a row of A and B, and 4 times 40 KiB of dynamic shared memory.
    #[launch_bounds(THREADS)]
    pub fn tile_bf16(a: GridConstant<TensorMap>, b: GridConstant<TensorMap>, c: *mut f32, slabs: u32) {
        tile(element_bf16, a, b, c, (slabs, SLAB / 2));
    }
}

kernel! {
    /// C = A · Bᵀ with A and B of `e4m3` and C of `f32`.
    ///
    /// # Safety
    /// As for `tile_bf16`.
    #[launch_bounds(THREADS)]
    pub fn tile_e4m3(a: GridConstant<TensorMap>, b: GridConstant<TensorMap>, c: *mut f32, slabs: u32) {
        tile(element_e4m3, a, b, c, (slabs, SLAB));
    }
}

#[inline(always)]
unsafe fn tile<T: Copy>(
    ty: T,
    a: GridConstant<TensorMap>,
    b: GridConstant<TensorMap>,
    c: *mut f32,
    (slabs, elements): (u32, u32),
) where
    (T, T): Multiplies<f32, Columns = warpgroup::BySteps8>,
{
    let full = FULL.as_mut_ptr().cast::<u64>();
    let thread = get_sreg_tid_x();
    let copies = Copies {
        a,
        b,
        full,
        slabs,
        elements,
    };
    if thread == 0 {
        for stage in 0..STAGES {
            mbarrier_init(full.add(stage as usize), 1);
        }
        fence_mbarrier_init(sem_release, scope_cluster);
        for slab in 0..STAGES {
            copies.start(slab);
        }
    }
    _syncthreads();

    let mut tile = Tile::zero();
    tile.fence();
    for slab in 0..slabs {
        let stage = slab % STAGES;
        while !mbarrier_try_wait_parity(full.add(stage as usize), slab / STAGES % 2) {}
        let a = Descriptor::k_major(stage_of_a(stage), Swizzle::Bytes128);
        let b = Descriptor::k_major(stage_of_b(stage), Swizzle::Bytes128);
        wgmma_fence();
        for step in 0..SLAB / STEP {
            let (a, b) = (a.advance(step * STEP), b.advance(step * STEP));
            wgmma_mma_async(ty, ty, &mut tile, a.bits(), b.bits(), true);
        }
        wgmma_commit_group();
        // All but the newest slab's multiplications are complete, by all warps: its stage is free.
        wgmma_wait_group(n32::<1>);
        _syncthreads();
        if thread == 0 && slab > 0 {
            copies.start(slab - 1 + STAGES);
        }
    }
    wgmma_wait_group(n32::<0>);
    tile.fence();
    store(&mut tile, c);
}

/// The copies of slabs of A and B.
#[derive(Clone, Copy)]
struct Copies {
    a: GridConstant<TensorMap>,
    b: GridConstant<TensorMap>,
    full: *mut u64,
    slabs: u32,
    /// Elements in a row of a slab.
    elements: u32,
}

impl Copies {
    /// Starts those of a slab, if there is one.
    #[inline(always)]
    unsafe fn start(&self, slab: u32) {
        if slab >= self.slabs {
            return;
        }
        let stage = slab % STAGES;
        let full = self.full.add(stage as usize);
        let _ = mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, full, STAGE_BYTES);
        // Coordinates count elements, of which a box has one slab's.
        let column = (slab * self.elements) as i32;
        let (row_a, row_b) = (get_sreg_ctaid_y() * ROWS, get_sreg_ctaid_x() * COLUMNS);
        let (a, b) = (stage_of_a(stage), stage_of_b(stage));
        let (from, to) = (space_global, space_shared);
        cp_async_bulk_tensor_bar(to, from, a, self.a.as_ptr(), [column, row_a as i32], full);
        cp_async_bulk_tensor_bar(to, from, b, self.b.as_ptr(), [column, row_b as i32], full);
    }
}

/// Where a slab of A lies.
#[inline(always)]
unsafe fn stage_of_a(stage: u32) -> *mut u8 {
    SLABS
        .as_mut_ptr()
        .byte_add((stage * STAGE_BYTES) as usize)
        .cast()
}

/// Where a slab of B lies.
#[inline(always)]
unsafe fn stage_of_b(stage: u32) -> *mut u8 {
    stage_of_a(stage).add(A_BYTES as usize)
}

/// Each thread writes what it holds of the tile, two neighbours at a time.
#[inline(always)]
unsafe fn store(tile: &mut Tile, c: *mut f32) {
    let width = get_sreg_nctaid_x() * COLUMNS;
    let (first_row, first_column) = (get_sreg_ctaid_y() * ROWS, get_sreg_ctaid_x() * COLUMNS);
    tile.for_each_pair(|index, pair| {
        let (row, column) = Tile::position(get_sreg_tid_x(), index);
        let place = (first_row + row) as usize * width as usize + (first_column + column) as usize;
        *c.add(place).cast::<[f32; 2]>() = pair;
    });
}
