//! The same without clusters: a block for each row, which reads it from global memory three times.

use core::arch::nvptx::_syncthreads;

use cuda_ptx::{get_sreg_ctaid_x, get_sreg_tid_x, kernel, shared};

use crate::moments::Moments;
use crate::{Quad, Rows};

/// Threads of a CTA: more than the other kernel has, because nothing else hides the loads' latency.
const THREADS: u32 = 512;

shared! {
    static OF_ROW: Moments;
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

    let moments = Moments::of_block::<THREADS>(input, quads);
    if thread == 0 {
        *OF_ROW.as_mut_ptr() = moments;
    }
    _syncthreads();
    let moments = *OF_ROW.as_mut_ptr();

    let (mean, scale) = (moments.mean, moments.scale(all.length));
    for i in (thread as usize..quads).step_by(THREADS as usize) {
        let (x, gamma, beta) = ((*input.add(i)).0, (*gamma.add(i)).0, (*beta.add(i)).0);
        *output.add(i) = Quad([0, 1, 2, 3].map(|i| (x[i] - mean) * scale * gamma[i] + beta[i]));
    }
}
