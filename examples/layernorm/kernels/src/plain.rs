//! The same without clusters: a block for each row, which reads it from global memory three times.

use core::arch::nvptx::_syncthreads;

use cuda_ptx::{get_sreg_ctaid_x, get_sreg_laneid, get_sreg_tid_x, kernel, shared};

use crate::moments::Moments;
use crate::{Quad, Rows, WARP};

/// Threads of a CTA.
const THREADS: u32 = 512;
const WARPS: u32 = THREADS / WARP;

shared! {
    static OF_WARPS: [Moments; WARPS as usize];
}

kernel! {
    /// Normalises a row of `length` elements for each CTA of the grid.
    ///
    /// # Safety
    /// `length` is a multiple of 2048. The CTAs have 512 threads.
    #[launch_bounds(THREADS)]
    pub fn layer_norm_plain(output: *mut f32, input: *const f32, gamma: *const f32, beta: *const f32, rows: u32, length: u32) {
        unsafe { normalise(Rows { output, input, gamma, beta, rows, length }) }
    }
}

#[inline(always)]
unsafe fn normalise(all: Rows) {
    let (thread, row) = (get_sreg_tid_x(), get_sreg_ctaid_x());
    let quads = all.length as usize / 4;
    let first = row as usize * quads;
    let (input, output) = (all.input.cast::<Quad>().add(first), all.output.cast::<Quad>().add(first));
    let (gamma, beta) = (all.gamma.cast::<Quad>(), all.beta.cast::<Quad>());
    let mine = || (thread as usize..quads).step_by(THREADS as usize);

    let mut sums = [0.0; 4];
    for i in mine() {
        let x = (*input.add(i)).0;
        sums = [0, 1, 2, 3].map(|i| sums[i] + x[i]);
    }
    let count = (all.length / THREADS) as f32;
    let mean = (sums[0] + sums[1] + (sums[2] + sums[3])) / count;
    let mut squares = [0.0; 4];
    for i in mine() {
        let x = (*input.add(i)).0;
        squares = [0, 1, 2, 3].map(|i| squares[i] + (x[i] - mean) * (x[i] - mean));
    }
    let m2 = squares[0] + squares[1] + (squares[2] + squares[3]);
    let of_warp = Moments { mean, m2 }.of_lanes(WARP, count);
    let of_warps = OF_WARPS.as_mut_ptr().cast::<Moments>();
    let lane = get_sreg_laneid();
    if lane == 0 {
        *of_warps.add((thread / WARP) as usize) = of_warp;
    }
    _syncthreads();
    // Every warp merges those of all.
    let moments = (*of_warps.add((lane % WARPS) as usize)).of_lanes(WARPS, count * WARP as f32);

    let (mean, scale) = (moments.mean, moments.scale(all.length as f32));
    for i in mine() {
        let (x, gamma, beta) = ((*input.add(i)).0, (*gamma.add(i)).0, (*beta.add(i)).0);
        *output.add(i) = Quad([0, 1, 2, 3].map(|i| (x[i] - mean) * scale * gamma[i] + beta[i]));
    }
}
