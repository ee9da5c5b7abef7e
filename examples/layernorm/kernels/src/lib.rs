//! Layer normalisation of long rows: `y = (x - mean) / sqrt(variance + ε) · γ + β`, with mean and
//! variance of the row.
//!
//! A cluster has a row, each CTA a slice of it in registers. The row is read once from global memory and
//! written once. The CTAs tell each other the moments of their slices while the next row comes.

#![no_std]
#![feature(abi_ptx, core_float_math, stdarch_nvptx)]

mod exchange;
mod moments;
mod plain;

use core::arch::nvptx::_syncthreads;
use core::array;
use core::f32::math::mul_add;

use cuda_ptx::barrier::{Block, EmptySlot, FullSlot, Pipeline};
use cuda_ptx::*;

use moments::Moments;

panic_trap!();

const WARP: u32 = 32;
/// Warps that share a slice.
const WARPS: u32 = 16;
/// What a thread has of a slice: so many groups of four elements.
const QUADS: usize = 4;
const ELEMENTS: u32 = 4 * QUADS as u32;
/// The most CTAs of a cluster.
const CTAS: u32 = 16;
/// Slices on their way to a CTA.
const STAGES: usize = 2;

/// Four neighbouring elements, which are loaded and stored at once.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Quad([f32; 4]);

/// A warp's part of a slice: neighbouring lanes have neighbouring quads.
type Part = [[Quad; WARP as usize]; QUADS];
type Slice = [Part; WARPS as usize];

extern_shared! {
    /// The ring of slices.
    #[align(128)]
    static SLICES: [Slice];
}
shared! {
    static RING: Pipeline<STAGES>;
}

kernel! {
    /// Normalises `rows` rows of `length` elements.
    ///
    /// # Safety
    /// A cluster has 1, 2, 4, 8 or 16 CTAs of 544 threads, with 64 KiB of dynamic shared memory each;
    /// `length` is 8192 times as much.
    #[launch_bounds((WARPS + 1) * WARP, 1)]
    pub fn layer_norm(output: *mut f32, input: *const f32, gamma: *const f32, beta: *const f32, rows: u32, length: u32) {
        unsafe { normalise(Rows { output, input, gamma, beta, rows, length }) }
    }
}

/// The arguments of the kernels.
#[derive(Clone, Copy)]
struct Rows {
    output: *mut f32,
    input: *const f32,
    gamma: *const f32,
    beta: *const f32,
    rows: u32,
    length: u32,
}

#[inline(always)]
unsafe fn normalise(all: Rows) {
    let (warp, ctas) = (get_sreg_tid_x() / WARP, get_sreg_cluster_nctarank());
    if get_sreg_tid_x() == 0 {
        Pipeline::init(RING.as_mut_ptr(), 1, WARPS);
        exchange::init(ctas);
        fence_mbarrier_init(sem_release, scope_cluster);
    }
    // Before anyone uses a barrier of another CTA.
    _syncthreads();
    barrier_cluster_arrive();
    barrier_cluster_wait();

    // The place of this CTA's slice in each row.
    let slice = |numbers: *const f32, row: u32| {
        let first = row as usize * all.length as usize;
        numbers.wrapping_add(first).cast::<Slice>().wrapping_add(get_sreg_cluster_ctarank() as usize)
    };
    let (mut row, mut turn) = (get_sreg_clusterid_x(), 0);
    let step = get_sreg_nclusterid_x();

    if warp == WARPS {
        // One warp loads slices, and sends what the others find of them.
        let mut ring = Pipeline::producer(RING.as_mut_ptr());
        let load = |slot: EmptySlot<Block>, row| unsafe {
            if get_sreg_laneid() == 0 && row < all.rows {
                slot.commit_bulk(SLICES.as_mut_ptr(), slice(all.input, row), size_of::<Slice>() as u32);
            } else {
                slot.leave();
            }
        };
        for ahead in 0..STAGES as u32 {
            load(ring.acquire(), row + ahead * step);
        }
        while row < all.rows {
            let slot = ring.acquire();
            exchange::send(turn, slot.stage(), ctas);
            load(slot, row + STAGES as u32 * step);
            (row, turn) = (row + step, turn + 1);
        }
        return exchange::finish(turn);
    }

    let part = |slice: *const Slice| slice.cast::<Part>().wrapping_add(warp as usize);
    let [gamma, beta] = [all.gamma, all.beta].map(|it| unsafe { load(part(slice(it, 0))) });
    let mut ring = Pipeline::consumer(RING.as_mut_ptr());
    let mut begin = |row: u32| {
        (row < all.rows).then(|| unsafe {
            let slot = ring.wait();
            let x = load(part(slot.buffer(SLICES.as_mut_ptr())));
            tell(slot, Moments::of_quads(&x).of_lanes(WARP, ELEMENTS as f32));
            x
        })
    };
    let mut next = begin(row);
    while let Some(x) = next {
        // The moments of a row are on their way while those of the next one are computed.
        next = begin(row + step);
        let moments = exchange::receive(turn, ctas);
        let (mean, scale) = (moments.mean, moments.scale(all.length as f32));
        let output = part(slice(all.output, row)).cast::<Quad>().cast_mut().add(get_sreg_laneid() as usize);
        for i in 0..QUADS {
            let (Quad(x), Quad(gamma), Quad(beta)) = (x[i], gamma[i], beta[i]);
            let y = [0, 1, 2, 3].map(|i| mul_add((x[i] - mean) * scale, gamma[i], beta[i]));
            *output.add(i * WARP as usize) = Quad(y);
        }
        (row, turn) = (row + step, turn + 1);
    }
}

/// This lane's quads.
#[inline(always)]
unsafe fn load(part: *const Part) -> [Quad; QUADS] {
    let first = part.cast::<Quad>().add(get_sreg_laneid() as usize);
    array::from_fn(|i| unsafe { *first.add(i * WARP as usize) })
}

/// Releases a slice that all lanes have loaded, with the moments of this warp's part.
#[inline(always)]
unsafe fn tell(slot: FullSlot<Block>, moments: Moments) {
    bar_warp_sync(u32::MAX);
    if get_sreg_laneid() == 0 {
        exchange::leave(slot.stage(), moments);
        slot.release();
    } else {
        slot.leave();
    }
}
