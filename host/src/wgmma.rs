//! The matrix products of `ptx/wgmma` on the GPU.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::build::{self, Arch, KernelCrate};
use crate::driver::{Arguments, DataType, Driver, Launch, Swizzle, TensorMapBuilder};
use crate::formats;
use crate::guide::{self, check, random};
use crate::toolchain;

/// The tile of C that a CTA computes.
const ROWS: u32 = 64;
const COLUMNS: u32 = 256;
/// Bytes of a row of A or B that are copied at once, and how many times there is room for that.
const SLAB: u32 = 128;
const STAGES: u32 = 4;

/// CTAs in x and y, and slabs: less than, as many as, and more than there is room for.
const SIZES: [([u32; 2], u32); 5] = [
    ([1, 1], 1),
    ([1, 2], 3),
    ([2, 1], 4),
    ([2, 3], 9),
    ([3, 2], 64),
];

/// Builds the cubin into `folder`.
///
/// # Errors
/// If a tool is missing or the kernels do not build.
pub fn build(arch: Arch, folder: &Path) -> Result<PathBuf> {
    let manifest = toolchain::workspace_root().join("ptx/wgmma/Cargo.toml");
    build::build(&KernelCrate::new(manifest, arch), &cubin(folder))?;
    Ok(cubin(folder))
}

/// Where [`build()`] puts the cubin.
#[must_use]
pub fn cubin(folder: &Path) -> PathBuf {
    folder.join("wgmma-rust.cubin")
}

/// The type of the elements of A and B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Element {
    /// bf16.
    Bf16,
    /// 8-bit floating point with 4 bits of exponent.
    E4m3,
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

    fn bytes(self) -> usize {
        match self {
            Self::Bf16 => 2,
            Self::E4m3 => 1,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Bf16 => DataType::Bf16,
            Self::E4m3 => DataType::U8,
        }
    }

    /// What an element of C may be off, as a part of the sum of the magnitudes of its products.
    ///
    /// The tensor cores of Hopper align the products of a step, of 32 bytes along K, with the greatest of
    /// them, and drop bits below: those of bf16 keep the 24 bits of `f32`, those of 8-bit types about 14. An
    /// H200 was off by 1.0e-6 and by more than 4.9e-4.
    fn tolerance(self) -> f64 {
        match self {
            Self::Bf16 => 1.0 / f64::from(1 << 18),
            Self::E4m3 => 1.0 / f64::from(1 << 9),
        }
    }

    /// The element of these bits.
    fn value(self, bits: u16) -> f64 {
        match self {
            Self::Bf16 => formats::BF16.decode(bits.into()),
            Self::E4m3 => formats::E4M3.decode(bits.into()),
        }
    }

    /// An element for a random number: every number of small magnitude in bf16, every number in e4m3.
    fn random(self, number: u32) -> u16 {
        match self {
            // Sign and mantissa are random; the exponent is from -4 to 3.
            Self::Bf16 => (number & 0x807F | (123 + (number >> 8 & 7)) << 7) as u16,
            // Not the two NaN.
            Self::E4m3 if number & 0x7F == 0x7F => 0,
            Self::E4m3 => (number & 0xFF) as u16,
        }
    }
}

/// Products of several sizes by the kernel of one element type.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// A cubin with the kernels.
    pub image: PathBuf,
    /// The element type.
    pub element: Element,
}

/// What [`Job::run`] did.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// How many launches.
    pub launches: u32,
    /// How far the worst element of C was off, as a part of the sum of the magnitudes of its products.
    pub error: f64,
    /// How far it may be off.
    pub tolerance: f64,
}

impl Job {
    /// Runs the kernel and checks every element.
    ///
    /// # Errors
    /// If there is no GPU, a launch fails, or an element is wrong.
    pub fn run(&self) -> Result<Outcome> {
        let driver = Driver::open()?;
        let module = driver.load(&guide::read_image(&self.image)?)?;
        let kernel = module.function(self.element.kernel())?;
        let mut outcome = Outcome {
            launches: 0,
            error: 0.0,
            tolerance: self.element.tolerance(),
        };
        for ([x, y], slabs) in SIZES {
            let depth = (slabs * SLAB) as usize / self.element.bytes();
            let a = Matrix::random(self.element, 1, (y * ROWS) as usize, depth);
            let b = Matrix::random(self.element, 2, (x * COLUMNS) as usize, depth);
            let (device_a, device_b) = (driver.upload(&a.bytes())?, driver.upload(&b.bytes())?);
            let map = |buffer: &_, rows, tile| a.map(buffer, rows, tile).encode(&driver);
            let c = driver.upload(&check::poison::<f32>(a.rows * b.rows))?;
            let arguments = Arguments::new()
                .tensor_map(map(&device_a, a.rows, ROWS)?)
                .tensor_map(map(&device_b, b.rows, COLUMNS)?)
                .pointer(&c)
                .u32(slabs);
            let shared = STAGES * (ROWS + COLUMNS) * SLAB;
            let launch = Launch::new((x, y), 128).shared(shared);
            // SAFETY: these are the kernel's parameters; the grid has a CTA for each tile of C.
            unsafe { kernel.launch(&launch, &arguments)? };
            let error = a
                .check_product(&b, &driver.download(&c)?)
                .with_context(|| format!("{} by {} rows of {depth} elements", a.rows, b.rows))?;
            outcome.error = outcome.error.max(error);
            outcome.launches += 1;
        }
        Ok(outcome)
    }
}

/// A matrix, row by row.
struct Matrix {
    element: Element,
    rows: usize,
    bits: Vec<u16>,
}

impl Matrix {
    fn random(element: Element, seed: u64, rows: usize, columns: usize) -> Self {
        let numbers = random::integers(seed, rows * columns);
        let bits = numbers
            .into_iter()
            .map(|number| element.random(number))
            .collect();
        Self {
            element,
            rows,
            bits,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let bytes = self.element.bytes();
        self.bits
            .iter()
            .flat_map(|bits| bits.to_le_bytes().into_iter().take(bytes))
            .collect()
    }

    /// A map of a matrix of `rows` rows, as long as the own, in boxes of `tile` rows.
    fn map(
        &self,
        buffer: &cust::memory::DeviceBuffer<u8>,
        rows: usize,
        tile: u32,
    ) -> TensorMapBuilder {
        let columns = (self.bits.len() / self.rows) as u64;
        let slab = SLAB / self.element.bytes() as u32;
        let dims = [columns, rows as u64];
        TensorMapBuilder::tiled(
            self.element.data_type(),
            buffer.as_device_ptr(),
            &dims,
            &[slab, tile],
        )
        .swizzle(Swizzle::Bytes128)
    }

    /// Compares what the GPU found with the product of this matrix and the other transposed; gives how
    /// far the worst element is off.
    fn check_product(&self, other: &Self, found: &[f32]) -> Result<f64> {
        let columns = self.bits.len() / self.rows;
        let values = |matrix: &Self| -> Vec<f64> {
            matrix
                .bits
                .iter()
                .map(|bits| self.element.value(*bits))
                .collect()
        };
        let (a, b) = (values(self), values(other));
        let mut worst = 0f64;
        for (i, found) in found[..self.rows * other.rows].iter().enumerate() {
            let row = &a[i / other.rows * columns..][..columns];
            let column = &b[i % other.rows * columns..][..columns];
            let (mut sum, mut magnitude) = (0.0, 0.0);
            for (a, b) in row.iter().zip(column) {
                sum += a * b;
                magnitude += (a * b).abs();
            }
            let error = (f64::from(*found) - sum).abs() / magnitude;
            if error.is_nan() || error > self.element.tolerance() {
                bail!(
                    "row {}, column {}: expected {sum}, found {found}, which is off by {error:.1e} of the products' magnitudes and may be by {:.1e}",
                    i / other.rows,
                    i % other.rows,
                    self.element.tolerance()
                );
            }
            worst = worst.max(error);
        }
        check::check(&[], &found[self.rows * other.rows..])?;
        Ok(worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_element_is_found() {
        let matrix = |bits: &[u16]| Matrix {
            element: Element::Bf16,
            rows: 1,
            bits: bits.to_vec(),
        };
        let (one, two) = (0x3F80, 0x4000);
        let (a, b) = (matrix(&[one, two]), matrix(&[two, two]));
        let with_guard = |value: f32| [vec![value], check::poison(0)].concat();
        assert_eq!(a.check_product(&b, &with_guard(6.0)).unwrap(), 0.0);
        for wrong in [5.999, f32::NAN] {
            assert!(a.check_product(&b, &with_guard(wrong)).is_err());
        }
        let beyond = [vec![6.0, 1.0], check::poison(0)].concat();
        assert!(a.check_product(&b, &beyond).is_err());
    }

    #[test]
    fn random_elements_are_finite() {
        for element in Element::ALL {
            let finite = |number| element.value(element.random(number)).is_finite();
            assert!((0..1 << 16).all(finite), "{element:?}");
        }
    }
}
