//! Mean and variance of parts, merged as Chan, Golub and LeVeque do: no large numbers are subtracted.

use core::arch::asm;
use core::arch::nvptx::_syncthreads;

use cuda_ptx::{get_sreg_tid_x, shared, shfl_sync_bfly};

use crate::Quad;

const WARP: u32 = 32;
/// Warps of the largest block.
const WARPS: u32 = 16;
/// ε.
const EPSILON: f32 = 1e-5;

shared! {
    static OF_WARPS: [Moments; WARPS as usize];
}

/// The mean of some elements, and the sum of the squares of their distances from it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Moments {
    pub mean: f32,
    pub m2: f32,
}

impl Moments {
    /// Those of two parts of `count` elements each, the same whichever comes first.
    #[inline(always)]
    pub fn merge(self, other: Self, count: f32) -> Self {
        let distance = other.mean - self.mean;
        Self {
            mean: 0.5 * (self.mean + other.mean),
            m2: self.m2 + other.m2 + distance * distance * (0.5 * count),
        }
    }

    /// What the elements, `count` in all, are multiplied by: the inverse of their deviation.
    #[inline(always)]
    pub fn scale(self, count: u32) -> f32 {
        let variance = self.m2 / count as f32 + EPSILON;
        let deviation: f32;
        // SAFETY: arithmetic on registers.
        unsafe {
            asm!("sqrt.rn.f32 {}, {};", out(reg32) deviation, in(reg32) variance, options(pure, nomem, nostack))
        }
        1.0 / deviation
    }

    /// Those of the elements at `data`, which all threads of the block share; the first warp gets them.
    #[inline(always)]
    pub unsafe fn of_block<const THREADS: u32>(data: *const Quad, quads: usize) -> Self {
        let thread = get_sreg_tid_x();
        let mut moments = Self::of_thread::<THREADS>(data, quads);
        let mut count = (quads as u32 * 4 / THREADS) as f32;
        moments = moments.merge_lanes(WARP, &mut count);
        let of_warps = OF_WARPS.as_mut_ptr().cast::<Self>();
        if thread % WARP == 0 {
            *of_warps.add((thread / WARP) as usize) = moments;
        }
        _syncthreads();
        if thread < WARP {
            let warps = THREADS / WARP;
            moments = *of_warps.add((thread % warps) as usize);
            moments = moments.merge_lanes(warps, &mut count);
        }
        moments
    }

    /// Those of every `THREADS`th group of four.
    #[inline(always)]
    unsafe fn of_thread<const THREADS: u32>(data: *const Quad, quads: usize) -> Self {
        let mine = || (get_sreg_tid_x() as usize..quads).step_by(THREADS as usize);
        let mut sums = [0.0; 4];
        for i in mine() {
            let x = (*data.add(i)).0;
            sums = [0, 1, 2, 3].map(|i| sums[i] + x[i]);
        }
        let mean = (sums[0] + sums[1] + (sums[2] + sums[3])) / (quads as u32 * 4 / THREADS) as f32;
        let mut squares = [0.0; 4];
        for i in mine() {
            let x = (*data.add(i)).0;
            squares = [0, 1, 2, 3].map(|i| squares[i] + (x[i] - mean) * (x[i] - mean));
        }
        Self { mean, m2: squares[0] + squares[1] + (squares[2] + squares[3]) }
    }

    /// Merges those of every `lanes` neighbouring lanes, each of `count` elements; all of them get the
    /// result.
    #[inline(always)]
    unsafe fn merge_lanes(mut self, lanes: u32, count: &mut f32) -> Self {
        let mut distance = 1;
        while distance < lanes {
            let of_lane = |x| shfl_sync_bfly(x, distance, WARP - 1, u32::MAX);
            self = self.merge(Self { mean: of_lane(self.mean), m2: of_lane(self.m2) }, *count);
            *count *= 2.0;
            distance *= 2;
        }
        self
    }
}
