//! The matrix products of `ptx/wgmma` in Rust and C++, on the GPU and on the CPU.

mod matrix;
mod model;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

pub use self::matrix::{Element, Error};
use self::matrix::{Matrix, Numbers, check_equal};
use crate::build::{self, Arch, CppTwin, KernelCrate};
use crate::driver::{Arguments, Driver, Launch, TensorMap, TensorMapBuilder};
use crate::exec::Program;
use crate::guide::device::{Device, Kernel};
use crate::guide::{self, check};
use crate::toolchain;

/// The tile of C that a CTA computes.
const ROWS: u32 = 64;
const COLUMNS: u32 = 256;
/// Bytes of a row of A or B that are copied at once, and how many times there is room for that.
const SLAB: u32 = 128;
const STAGES: u32 = 4;

/// CTAs in x and y, and slabs.
type Size = ([u32; 2], u32);

/// Less slabs than, as many as, and more than there is room for.
const SIZES: [Size; 5] = [
    ([1, 1], 1),
    ([1, 2], 3),
    ([2, 1], 4),
    ([2, 3], 9),
    ([3, 2], 64),
];
const CPU_SIZE: Size = ([1, 1], 6);

/// The crate of the kernels in Rust.
#[must_use]
pub fn manifest() -> PathBuf {
    toolchain::workspace_root().join("ptx/wgmma/Cargo.toml")
}

/// The kernels in C++.
#[must_use]
pub fn twin(arch: Arch) -> CppTwin {
    CppTwin::new(
        toolchain::workspace_root().join("ptx/wgmma/src/tile.cu"),
        arch,
    )
}

/// Builds the cubins of both languages into `folder`.
///
/// # Errors
/// If a tool is missing or the kernels do not build.
pub fn build(arch: Arch, folder: &Path) -> Result<[PathBuf; 2]> {
    let cubins = cubins(folder);
    build::build(&KernelCrate::new(manifest(), arch), &cubins[0])?;
    twin(arch).cubin(&cubins[1])?;
    Ok(cubins)
}

/// Where [`build()`] puts the cubins: Rust, C++.
#[must_use]
pub fn cubins(folder: &Path) -> [PathBuf; 2] {
    ["wgmma-rust.cubin", "wgmma-cpp.cubin"].map(|name| folder.join(name))
}

/// Products of several sizes by the kernels of one element type in both languages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// Cubins with the kernels: Rust, C++.
    pub images: [PathBuf; 2],
    /// The element type.
    pub element: Element,
}

/// What [`Job::run`] did.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// How many launches.
    pub launches: u32,
    /// How far the worst element of C was off.
    pub error: Error,
}

impl Job {
    /// Runs the kernels and checks every element. Both languages must give the same bits.
    ///
    /// # Errors
    /// If there is no GPU, a launch fails, or an element is wrong.
    pub fn run(&self) -> Result<Outcome> {
        let driver = Driver::open()?;
        let device = Device::Gpu(&driver);
        let [rust, cpp] = &self.images;
        let rust = driver.load(&guide::read_image(rust)?)?;
        let cpp = driver.load(&guide::read_image(cpp)?)?;
        let name = self.element.kernel();
        let [rust, cpp] = [rust.function(name)?, cpp.function(name)?].map(Kernel::Gpu);
        let mut outcome = Outcome {
            launches: 0,
            error: Error::default(),
        };
        for size in SIZES {
            for numbers in [Numbers::Exact, Numbers::Any] {
                let product = Product::new(self.element, numbers, size);
                let encode = |map: TensorMapBuilder| Ok(map.encode(&driver)?);
                let rust = product.launch(&device, &rust, &encode)?;
                let cpp = product.launch(&device, &cpp, &encode)?;
                let error = product.check(&rust)?;
                check_equal(&rust, &cpp).with_context(|| product.name())?;
                outcome.error = outcome.error.max(error);
                outcome.launches += 2;
            }
        }
        Ok(outcome)
    }
}

/// Executes the kernel of an element type on the CPU under one schedule; gives the products of each launch.
///
/// # Errors
/// A mistake that the CPU finds, or a wrong element.
pub fn run_on_cpu(program: &Program, element: Element, schedule: u64) -> Result<Vec<Vec<f32>>> {
    let device = Device::cpu(program, schedule);
    let kernel = Kernel::Cpu(element.kernel());
    let encode = |map: TensorMapBuilder| map.encode_for_cpu().map_err(anyhow::Error::msg);
    let mut products = Vec::new();
    for numbers in [Numbers::Exact, Numbers::Any] {
        let product = Product::new(element, numbers, CPU_SIZE);
        let found = product.launch(&device, &kernel, &encode)?;
        product.check(&found)?;
        products.push(found);
    }
    Ok(products)
}

/// Two matrices to multiply.
struct Product {
    element: Element,
    numbers: Numbers,
    size: Size,
    a: Matrix,
    b: Matrix,
}

impl Product {
    fn new(element: Element, numbers: Numbers, size: Size) -> Self {
        let ([x, y], slabs) = size;
        let depth = (slabs * SLAB) as usize / element.bytes();
        let random = |seed, rows| Matrix::random(element, numbers, seed, rows as usize, depth);
        Self {
            element,
            numbers,
            size,
            a: random(1, y * ROWS),
            b: random(2, x * COLUMNS),
        }
    }

    fn name(&self) -> String {
        let ([x, y], slabs) = self.size;
        format!(
            "{:?}, {:?} numbers, {x} by {y} tiles of {slabs} slabs",
            self.element, self.numbers
        )
    }

    /// C, as a kernel leaves it.
    fn launch(
        &self,
        device: &Device,
        kernel: &Kernel,
        encode: &dyn Fn(TensorMapBuilder) -> Result<TensorMap>,
    ) -> Result<Vec<f32>> {
        let ([x, y], slabs) = self.size;
        let (a, b) = (
            device.upload(&self.a.bytes())?,
            device.upload(&self.b.bytes())?,
        );
        let c = check::poisoned::<f32>(device, self.a.rows * self.b.rows)?;
        let arguments = Arguments::new()
            .tensor_map(encode(self.a.map(a.address(), ROWS))?)
            .tensor_map(encode(self.b.map(b.address(), COLUMNS))?)
            .u64(c.address())
            .u32(slabs);
        let launch = Launch::new((x, y), 128).shared(STAGES * (ROWS + COLUMNS) * SLAB);
        // SAFETY: these are the kernel's parameters; the grid has a CTA for each tile of C.
        unsafe { device.launch(kernel, &launch, &arguments) }.with_context(|| self.name())?;
        device.download(&c)
    }

    fn check(&self, found: &[f32]) -> Result<Error> {
        self.a
            .check_product(&self.b, self.numbers, found)
            .with_context(|| self.name())
    }
}
