//! Mean and variance of parts, merged as Chan, Golub and LeVeque do: no large numbers are subtracted.

use core::f32::math::{mul_add, sqrt};

use cuda_ptx::shfl_sync_bfly;

use crate::{Quad, WARP};

/// ε.
const EPSILON: f32 = 1e-5;

/// The mean of some elements, and the sum of the squares of their distances from it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct Moments {
    pub mean: f32,
    pub m2: f32,
}

impl Moments {
    /// Those of a thread's elements.
    #[inline(always)]
    pub fn of_quads<const QUADS: usize>(quads: &[Quad; QUADS]) -> Self {
        let mut sums = [0.0; 4];
        for Quad(x) in quads {
            sums = [0, 1, 2, 3].map(|i| sums[i] + x[i]);
        }
        let mean = (sums[0] + sums[1] + (sums[2] + sums[3])) / (4 * QUADS) as f32;
        let mut squares = [0.0; 4];
        for Quad(x) in quads {
            squares = [0, 1, 2, 3].map(|i| mul_add(x[i] - mean, x[i] - mean, squares[i]));
        }
        Self { mean, m2: squares[0] + squares[1] + (squares[2] + squares[3]) }
    }

    /// Those of every `lanes` neighbouring lanes, each of `count` elements; all of them get the result.
    #[inline(always)]
    pub unsafe fn of_lanes(mut self, lanes: u32, mut count: f32) -> Self {
        let mut distance = 1;
        while distance < lanes {
            let of_lane = |x| shfl_sync_bfly(x, distance, WARP - 1, u32::MAX);
            self = self.merge(Self { mean: of_lane(self.mean), m2: of_lane(self.m2) }, count);
            count *= 2.0;
            distance *= 2;
        }
        self
    }

    /// Those of two parts of `count` elements each, the same whichever comes first.
    #[inline(always)]
    fn merge(self, other: Self, count: f32) -> Self {
        let distance = other.mean - self.mean;
        Self {
            mean: 0.5 * (self.mean + other.mean),
            m2: mul_add(distance * distance, 0.5 * count, self.m2 + other.m2),
        }
    }

    /// What the elements, `count` in all, are multiplied by: the inverse of their deviation.
    #[inline(always)]
    pub fn scale(self, count: f32) -> f32 {
        1.0 / sqrt(self.m2 / count + EPSILON)
    }
}
