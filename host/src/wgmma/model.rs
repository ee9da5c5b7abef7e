//! How far off a tensor core of Hopper may be.
//!
//! The ISA leaves the precision of sums to the hardware. What is known of Hopper: one instruction adds the products of
//! its step along K and the sum so far in fixed point. All of them are shifted to the greatest exponent among them, bits
//! below so many places are dropped, and so are they of the result. There are 23 places, a fraction of `f32`, for 16-bit
//! types, and 13 for 8-bit types ("DeepSeek-V3 Technical Report", section 3.5.2, which counts 14 bits with the first;
//! "Accurate Models of NVIDIA Tensor Cores" by Khattak and Mikaitis).
//!
//! So the error depends on the numbers: a term that has no bits below the last place loses none.

/// What an instruction adds up, and to how many places.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Products of one step.
    pub step: usize,
    /// Binary places behind the first of the greatest number.
    pub places: i32,
    /// The least product whose factors are not subnormal: exponents stay where its is.
    pub least: f64,
}

/// A sum of products.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sum {
    /// As it is.
    pub exact: f64,
    /// How far a tensor core may be off.
    pub bound: f64,
}

impl Model {
    /// The last place of numbers that are aligned with `greatest`.
    fn unit(&self, greatest: f64) -> f64 {
        let exponent = (greatest.to_bits() >> 52) as i32 - 1023;
        2f64.powi(exponent - self.places)
    }

    /// Adds up the products of two rows.
    pub fn sum(&self, a: &[f64], b: &[f64]) -> Sum {
        let mut sum = Sum {
            exact: 0.0,
            bound: 0.0,
        };
        for (a, b) in a.chunks(self.step).zip(b.chunks(self.step)) {
            self.add(&mut sum, a, b);
        }
        sum
    }

    /// Adds a step.
    fn add(&self, sum: &mut Sum, a: &[f64], b: &[f64]) {
        let products = || a.iter().zip(b).map(|(a, b)| a * b);
        let so_far = sum.exact.abs() + sum.bound;
        let greatest = products().fold(so_far.max(self.least), |most, product| {
            most.max(product.abs())
        });
        let unit = self.unit(greatest);
        // Towards zero: a term is off by less than the last place, and by no more than itself.
        let lost = |term: f64| {
            if (term / unit).fract() == 0.0 {
                0.0
            } else {
                unit.min(term.abs())
            }
        };
        let of_sum = if sum.bound == 0.0 {
            lost(sum.exact)
        } else {
            unit
        };
        sum.bound += products().map(lost).sum::<f64>() + of_sum;
        sum.exact += products().sum::<f64>();
        // The result, too.
        let unit = self.unit(sum.exact.abs() + sum.bound);
        if sum.bound > 0.0 || (sum.exact / unit).fract() != 0.0 {
            sum.bound += unit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guide::random;

    const MODEL: Model = Model {
        step: 32,
        places: 13,
        least: 1.0 / 4096.0,
    };

    /// What the model computes: every term of a step without what is below the last place, and then the sum.
    fn computed(a: &[f64], b: &[f64]) -> f64 {
        a.chunks(MODEL.step)
            .zip(b.chunks(MODEL.step))
            .fold(0.0, |sum, (a, b)| {
                let terms: Vec<f64> = a.iter().zip(b).map(|(a, b)| a * b).chain([sum]).collect();
                let greatest = terms
                    .iter()
                    .fold(MODEL.least, |most, term| most.max(term.abs()));
                let cut = |term: f64, unit: f64| (term / unit).trunc() * unit;
                let sum: f64 = terms
                    .iter()
                    .map(|term| cut(*term, MODEL.unit(greatest)))
                    .sum();
                if sum == 0.0 {
                    0.0
                } else {
                    cut(sum, MODEL.unit(sum.abs()))
                }
            })
    }

    fn rows(seed: u64, len: usize, exponents: u32) -> [Vec<f64>; 2] {
        [1, 2].map(|row| {
            let numbers = random::integers(2 * seed + row, len);
            let number = |bits: u32| {
                let size = f64::from(8 + bits % 8) / 8.0
                    * 2f64.powi((bits >> 8) as i32 % exponents as i32);
                if bits & 0x80 == 0 { size } else { -size }
            };
            numbers
                .into_iter()
                .map(|bits| number(bits & 0xffff))
                .collect()
        })
    }

    #[test]
    fn what_the_model_computes_is_within_its_bound() {
        for seed in 0..200 {
            let [a, b] = rows(seed, 1024, 1 + seed as u32 % 14);
            let sum = MODEL.sum(&a, &b);
            let error = (computed(&a, &b) - sum.exact).abs();
            assert!(error <= sum.bound, "{error} is more than {sum:?}");
        }
    }

    #[test]
    fn the_bound_is_of_the_size_of_the_error() {
        let [a, b] = rows(7, 4096, 8);
        let sum = MODEL.sum(&a, &b);
        let error = (computed(&a, &b) - sum.exact).abs();
        assert!(
            error > 0.0 && sum.bound < 200.0 * error,
            "{error} and {sum:?}"
        );
        // Less than what a lost product, of a median size, would do.
        let mut sizes: Vec<f64> = a.iter().zip(&b).map(|(a, b)| (a * b).abs()).collect();
        sizes.sort_by(f64::total_cmp);
        assert!(sum.bound < 4.0 * sizes[sizes.len() - 1], "{sum:?}");
    }

    #[test]
    fn sums_that_fit_are_exact() {
        let [a, b] = [[1.0, -2.0].repeat(512), [2.0, 0.5].repeat(512)];
        assert_eq!(
            MODEL.sum(&a, &b),
            Sum {
                exact: 512.0,
                bound: 0.0
            }
        );
        // 2^14 and 1 have 15 places.
        let mut a = vec![0.0; 64];
        (a[0], a[40]) = (16384.0, 1.0);
        let sum = MODEL.sum(&a, &[1.0; 64]);
        assert_eq!((sum.exact, sum.bound > 0.0), (16385.0, true));
    }
}
