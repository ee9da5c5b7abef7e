//! The matrices that are multiplied, and the comparison of their product.

use std::thread;

use anyhow::{Result, bail, ensure};
use cust::memory::DevicePointer;
use serde::{Deserialize, Serialize};

use super::SLAB;
use super::model::Model;
use crate::driver::{DataType, Swizzle, TensorMapBuilder};
use crate::formats::{BF16, E4M3, Format};
use crate::guide::{check, random};

/// The type of the elements of A and B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Element {
    /// bf16.
    Bf16,
    /// 8-bit floating point with 4 bits of exponent.
    E4m3,
}

/// What the elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Many, of all sizes.
    Any,
    /// Those whose sums all fit: the product is exact.
    Exact,
}

impl Element {
    /// All that there are kernels for.
    pub const ALL: [Self; 2] = [Self::Bf16, Self::E4m3];

    /// The kernel.
    #[must_use]
    pub fn kernel(self) -> &'static str {
        match self {
            Self::Bf16 => "tile_bf16",
            Self::E4m3 => "tile_e4m3",
        }
    }

    /// The bytes of an element.
    pub fn bytes(self) -> usize {
        self.format().bits() as usize / 8
    }

    fn format(self) -> Format {
        match self {
            Self::Bf16 => BF16,
            Self::E4m3 => E4M3,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Bf16 => DataType::Bf16,
            Self::E4m3 => DataType::U8,
        }
    }

    /// How it is multiplied.
    fn model(self) -> Model {
        let (places, least) = match self {
            Self::Bf16 => (23, 2f64.powi(2 * -126)),
            Self::E4m3 => (13, 2f64.powi(2 * -6)),
        };
        let step = 32 / self.bytes();
        Model {
            step,
            places,
            least,
        }
    }

    /// An element for a random number.
    fn random(self, numbers: Numbers, number: u32) -> u16 {
        match (numbers, self) {
            // 1 or 2, and their negatives.
            (Numbers::Exact, Self::Bf16) => (number & 0x8000 | (0x3F80 + (number & 0x80))) as u16,
            (Numbers::Exact, Self::E4m3) => (number & 0x80 | (0x38 + (number & 8))) as u16,
            // Sign and mantissa are random; the exponent is from -4 to 3.
            (Numbers::Any, Self::Bf16) => (number & 0x807F | (123 + (number >> 8 & 7)) << 7) as u16,
            // Every number: not the two NaN.
            (Numbers::Any, Self::E4m3) if number & 0x7F == 0x7F => 0,
            (Numbers::Any, Self::E4m3) => (number & 0xFF) as u16,
        }
    }
}

/// How far elements of a product are off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Error {
    /// The worst, as a part of what it may be off.
    pub of_bound: f64,
    /// The worst, as a part of the sum of the magnitudes of its products.
    pub of_products: f64,
}

impl Error {
    /// The greater of both.
    pub fn max(self, other: Self) -> Self {
        Self {
            of_bound: self.of_bound.max(other.of_bound),
            of_products: self.of_products.max(other.of_products),
        }
    }
}

/// A matrix, row by row.
pub struct Matrix {
    element: Element,
    pub rows: usize,
    bits: Vec<u16>,
}

impl Matrix {
    pub fn random(
        element: Element,
        numbers: Numbers,
        seed: u64,
        rows: usize,
        columns: usize,
    ) -> Self {
        let random = random::integers(seed, rows * columns);
        let bits = random
            .into_iter()
            .map(|number| element.random(numbers, number));
        Self {
            element,
            rows,
            bits: bits.collect(),
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let bytes = self.element.bytes();
        let bits = self.bits.iter();
        bits.flat_map(|bits| bits.to_le_bytes().into_iter().take(bytes))
            .collect()
    }

    fn columns(&self) -> usize {
        self.bits.len() / self.rows
    }

    fn values(&self) -> Vec<f64> {
        let format = self.element.format();
        self.bits
            .iter()
            .map(|bits| format.decode(u64::from(*bits)))
            .collect()
    }

    /// A map of the matrix at an address, in boxes of `tile` rows.
    pub fn map(&self, address: u64, tile: u32) -> TensorMapBuilder {
        let slab = SLAB / self.element.bytes() as u32;
        let dims = [self.columns() as u64, self.rows as u64];
        let address = DevicePointer::<u8>::from_raw(address);
        TensorMapBuilder::tiled(self.element.data_type(), address, &dims, &[slab, tile])
            .swizzle(Swizzle::Bytes128)
    }

    /// Compares what was found with the product of this matrix and the other transposed.
    pub fn check_product(&self, other: &Self, numbers: Numbers, found: &[f32]) -> Result<Error> {
        let (product, behind) = found.split_at(self.rows * other.rows);
        check::check(&[], behind)?;
        let (a, b) = (self.values(), other.values());
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let part = self.rows.div_ceil(workers);
        thread::scope(|scope| {
            let parts = a
                .chunks(part * self.columns())
                .zip(product.chunks(part * other.rows))
                .enumerate();
            let workers: Vec<_> = parts
                .map(|(number, (a, found))| {
                    let b = &b;
                    scope.spawn(move || self.check_rows((a, number * part), b, numbers, found))
                })
                .collect();
            workers
                .into_iter()
                .try_fold(Error::default(), |error, worker| {
                    Ok(error.max(
                        worker
                            .join()
                            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
                    ))
                })
        })
    }

    fn check_rows(
        &self,
        (a, first): (&[f64], usize),
        b: &[f64],
        numbers: Numbers,
        found: &[f32],
    ) -> Result<Error> {
        let (columns, model) = (self.columns(), self.element.model());
        let mut worst = Error::default();
        let mut found = found.iter();
        for (row, a) in a.chunks(columns).enumerate() {
            for (column, (b, found)) in b.chunks(columns).zip(&mut found).enumerate() {
                let place = || format!("row {}, column {column}", first + row);
                let sum = model.sum(a, b);
                ensure!(
                    numbers == Numbers::Any || sum.bound == 0.0,
                    "{}: expected a sum that fits, found {sum:?}",
                    place()
                );
                let error = (f64::from(*found) - sum.exact).abs();
                if error.is_nan() || error > sum.bound {
                    bail!(
                        "{}: expected {}, found {found}, which is off by {error:e} and may be by {:e}",
                        place(),
                        sum.exact,
                        sum.bound
                    );
                }
                if sum.bound > 0.0 {
                    let magnitude: f64 = a.iter().zip(b).map(|(a, b)| (a * b).abs()).sum();
                    worst = worst.max(Error {
                        of_bound: error / sum.bound,
                        of_products: error / magnitude,
                    });
                }
            }
        }
        Ok(worst)
    }
}

/// Compares the products of two languages, bit by bit.
pub fn check_equal(rust: &[f32], cpp: &[f32]) -> Result<()> {
    let bits = |product: &[f32]| Vec::from_iter(product.iter().map(|x| x.to_bits()));
    let (rust, cpp) = (bits(rust), bits(cpp));
    let differs = rust.iter().zip(&cpp).position(|(rust, cpp)| rust != cpp);
    match differs {
        None => Ok(()),
        Some(i) => bail!(
            "element {i}: expected the bits of Rust, {:#x}, found {:#x} in C++",
            rust[i],
            cpp[i]
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(bits: &[u16]) -> Matrix {
        Matrix {
            element: Element::Bf16,
            rows: 1,
            bits: bits.to_vec(),
        }
    }

    #[test]
    fn a_wrong_element_is_found() {
        let (one, two) = (0x3F80, 0x4000);
        let (a, b) = (matrix(&[one, two]), matrix(&[two, two]));
        let check = |found: &[f32]| {
            a.check_product(&b, Numbers::Exact, &[found, &check::poison(0)].concat())
        };
        assert_eq!(check(&[6.0]).unwrap(), Error::default());
        for wrong in [6f32.next_down(), f32::NAN] {
            assert!(check(&[wrong]).is_err());
        }
        assert!(check(&[6.0, 1.0]).is_err());
    }

    #[test]
    fn elements_are_numbers_and_exact_ones_have_sums_that_fit() {
        for element in Element::ALL {
            let finite = |number| {
                element
                    .format()
                    .decode(element.random(Numbers::Any, number).into())
                    .is_finite()
            };
            assert!((0..1 << 16).all(finite), "{element:?}");
            let [a, b] =
                [1, 2].map(|seed| Matrix::random(element, Numbers::Exact, seed, 1, 1024).values());
            let sum = element.model().sum(&a, &b);
            assert_eq!(sum.bound, 0.0, "{element:?}");
            assert!(
                a.iter().all(|x| [1.0, 2.0].contains(&x.abs())) && a.iter().any(|x| *x == -2.0)
            );
        }
    }
}
