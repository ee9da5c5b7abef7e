//! C = A · Bᵀ: Rust beside cuBLASLt, in one run.
//!
//! `cargo run --release` measures on the GPU; `-- --on cpu` executes small products on the CPU.

mod cpu;
mod cublas;
mod matrix;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use cuda_ptx_host::driver::{
    Arguments, DataType, Driver, Function, L2Promotion, Launch, Swizzle, TensorMap, TensorMapBuilder,
};
use cust::memory::DeviceBuffer;
use measure::{Competitor, Contest, Outcome, Quartiles, Record, Work};

use cublas::{Cublas, Plan};
use matrix::{Input, Output};

const CUBIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.cubin"));

/// The ring of tiles, and the boxes of C, as the kernels have them.
const SHARED_BYTES: u32 = 4 * (128 + 256) * 128 + 2 * 2 * 64 * 128;
const THREADS: u32 = 384;

/// The kernels, and the error that they may have: that of rounding to bf16, or of summing in f32.
type Kernel = (&'static str, Input, Output, f64);
const KERNELS: [Kernel; 3] = [
    ("gemm_bf16_bf16", Input::Bf16, Output::Bf16, 4e-3),
    ("gemm_bf16_f32", Input::Bf16, Output::F32, 1e-4),
    ("gemm_e4m3_bf16", Input::E4m3, Output::Bf16, 1e-2),
];

/// Sizes as M, N, K; the last ones are no multiples of the tiles.
const SIZES: [[u64; 3]; 5] =
    [[4096, 4096, 4096], [8192, 8192, 8192], [16384, 16384, 16384], [5003, 7688, 3024], [1000, 11000, 2000]];

/// Matrix products at the speed of the tensor cores.
#[derive(Parser)]
struct Cli {
    /// What executes the kernels.
    #[arg(long, value_enum, default_value = "gpu")]
    on: Processor,
    /// One size alone: M, N and K.
    #[arg(long, num_args = 3, value_names = ["M", "N", "K"])]
    size: Option<Vec<u64>>,
    /// One kernel alone.
    #[arg(long)]
    kernel: Option<String>,
    /// Rounds that are measured.
    #[arg(long, default_value_t = 30)]
    rounds: usize,
    /// Rows of clusters' tiles that are computed together.
    #[arg(long, default_value_t = 8)]
    group: u32,
    /// Launches one kernel once and checks it, for profilers.
    #[arg(long)]
    once: bool,
    /// Also writes the results into this file, beside those of the other examples.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Processor {
    Gpu,
    Cpu,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    let kernels = KERNELS.map(|kernel| kernel.0);
    ensure!(
        cli.kernel.as_ref().is_none_or(|name| kernels.contains(&name.as_str())),
        "--kernel: expected one of {kernels:?}"
    );
    let size = match cli.size.as_deref() {
        Some([m, n, k]) => Some([*m, *n, *k]),
        _ => None,
    };
    if cli.on == Processor::Cpu {
        return cpu::run(cli.kernel.as_deref(), size, cpu::SCHEDULES);
    }
    let sizes = size.map_or(SIZES.to_vec(), |size| vec![size]);
    let driver = Driver::open()?;
    let module = driver.load(CUBIN)?;
    let cublas = Cublas::open(&driver);
    if let Err(error) = &cublas {
        eprintln!("nothing to compare with: {error:#}");
    }
    let mut outcomes = Vec::new();
    for kernel in KERNELS.into_iter().filter(|kernel| cli.kernel.as_ref().is_none_or(|name| name == kernel.0))
    {
        for size in &sizes {
            let product = Product::new(&driver, module.function(kernel.0)?, kernel, *size, cli.group)?;
            let checked = product.check().with_context(|| format!("{}, {size:?}", kernel.0))?;
            if cli.once {
                println!("{}, {size:?}: {checked}", kernel.0);
                continue;
            }
            let outcome = product.measure(cublas.as_ref().ok(), &checked, cli.rounds)?;
            println!("{}", outcome.summary());
            outcomes.push(outcome);
        }
    }
    if let Some(path) = &cli.json {
        measure::write(path, "gemm", &Record::new(&driver, outcomes)?)?;
    }
    Ok(())
}

/// One kernel and its matrices.
struct Product<'d> {
    driver: &'d Driver,
    kernel: Function<'d>,
    size: [u64; 3],
    input: Input,
    output: Output,
    tolerance: f64,
    group: u32,
    a: DeviceBuffer<u8>,
    b: DeviceBuffer<u8>,
    c: DeviceBuffer<u8>,
    host: [Vec<u8>; 2],
}

impl<'d> Product<'d> {
    fn new(
        driver: &'d Driver,
        kernel: Function<'d>,
        (_, input, output, tolerance): Kernel,
        size: [u64; 3],
        group: u32,
    ) -> Result<Self> {
        let [m, n, k] = size;
        let host = [input.random((m * k) as usize, 1 << 40), input.random((n * k) as usize, 2 << 40)];
        let (a, b) = (driver.upload(&host[0])?, driver.upload(&host[1])?);
        // Not a number: what is left out is found.
        let c = driver.upload(&vec![0xff; (m * n) as usize * output.bytes()])?;
        Ok(Self { driver, kernel, size, input, output, tolerance, group, a, b, c, host })
    }

    fn maps(&self) -> Result<[TensorMap; 3]> {
        let [m, n, k] = self.size;
        let map = |element: DataType, buffer: &DeviceBuffer<u8>, columns, rows, box_rows| {
            let box_columns = 128 / element.bytes() as u32;
            TensorMapBuilder::tiled(
                element,
                buffer.as_device_ptr(),
                &[columns, rows],
                &[box_columns, box_rows],
            )
            .swizzle(Swizzle::Bytes128)
            .l2_promotion(L2Promotion::Bytes256)
            .encode(self.driver)
        };
        let (input, output) = (self.input.data_type(), self.output.data_type());
        Ok([
            map(input, &self.a, k, m, 128)?,
            map(input, &self.b, k, n, 128)?,
            map(output, &self.c, n, m, 64)?,
        ])
    }

    /// Queues the kernel.
    fn launch(&self, maps: &[TensorMap; 3]) -> Result<()> {
        let [m, n, k] = self.size.map(|x| x as u32);
        let arguments = maps.iter().fold(Arguments::new(), |arguments, map| arguments.tensor_map(*map));
        // One cluster of two for every two multiprocessors.
        let blocks = self.driver.sm_count()? / 2 * 2;
        let launch = Launch::new(blocks, THREADS).shared(SHARED_BYTES);
        // SAFETY: the arguments are those of the kernel; the matrices live until the next synchronisation.
        unsafe { self.kernel.launch(&launch, &arguments.u32(m).u32(n).u32(k).u32(self.group))? };
        Ok(())
    }

    /// Compares rows from all over C with the product in double precision; says how far off they are.
    fn check(&self) -> Result<String> {
        self.launch(&self.maps()?)?;
        let c = self.driver.download(&self.c)?;
        let [m, n, _] = self.size.map(|x| x as usize);
        let rows = [0, 63, 64, 129, m / 3, m / 2, m - m / 5, m - 1];
        let expected = matrix::rows(self.input, &self.host[0], &self.host[1], self.size, &rows);
        // By column, as `expected` is.
        let found = (0..n).flat_map(|column| rows.map(|row| self.output.number(&c, row * n + column)));
        let error = matrix::relative_error(found.zip(expected));
        // A number that is not one makes this false.
        ensure!(
            error < self.tolerance,
            "relative norm of the error: expected less than {}, found {error:.2e}",
            self.tolerance
        );
        let missing = (0..m * n).filter(|index| self.output.number(&c, *index).is_nan()).count();
        ensure!(missing == 0, "{missing} elements of {} were not written", m * n);
        Ok(format!("relative norm of the error {error:.2e} on {} rows", rows.len()))
    }

    fn measure(&self, cublas: Option<&Cublas>, checked: &str, rounds: usize) -> Result<Outcome> {
        let [m, n, k] = self.size;
        let maps = self.maps()?;
        let plan = match cublas {
            Some(cublas) => Some(cublas.plan(self.size, self.input, self.output)?),
            None => None,
        };
        let other: DeviceBuffer<u8> = self.driver.zeroed(self.c.len())?;
        let mut competitors = vec![Competitor::new("Rust", || self.launch(&maps))];
        if let Some(plan) = &plan {
            let launch = |algorithm| plan.launch(algorithm, &self.a, &self.b, &other);
            competitors.push(Competitor::new("cuBLASLt, first algorithm", move || launch(0)));
            let best = self.fastest(plan, &other)?;
            competitors.push(Competitor::new("cuBLASLt, fastest algorithm", move || launch(best)));
        }
        // Multiply-adds of a multiprocessor in a clock, dense.
        let flops = match self.input {
            Input::Bf16 => 4096.0,
            Input::E4m3 => 8192.0,
        };
        let peak = flops * f64::from(self.driver.sm_count()?) * f64::from(self.driver.sm_clock_khz()?) * 1e3;
        let work = Work::Flops { done: 2.0 * (m * n * k) as f64, peak };
        let name = format!("{}, {m} by {n} by {k}", self.kernel.name());
        let outcome = Contest { name: &name, work, checked, rounds }.run(self.driver, competitors)?;
        if plan.is_some() {
            self.compare(&other)?;
        }
        Ok(outcome)
    }

    /// The number of the algorithm that is fastest here.
    fn fastest(&self, plan: &Plan, c: &DeviceBuffer<u8>) -> Result<usize> {
        let mut best = (f64::MAX, 0);
        for algorithm in 0..plan.len() {
            let mut times = Vec::new();
            for _ in 0..4 {
                times.push(measure::time(self.driver, &mut || plan.launch(algorithm, &self.a, &self.b, c))?);
            }
            let ms = Quartiles::of(&times[1..]).median;
            if ms < best.0 {
                best = (ms, algorithm);
            }
        }
        Ok(best.1)
    }

    /// Compares all of C with what cuBLAS found.
    fn compare(&self, other: &DeviceBuffer<u8>) -> Result<()> {
        let (c, other) = (self.driver.download(&self.c)?, self.driver.download(other)?);
        let number = |matrix: &[u8], index| self.output.number(matrix, index);
        let elements = c.len() / self.output.bytes();
        let error =
            matrix::relative_error((0..elements).map(|index| (number(&c, index), number(&other, index))));
        ensure!(
            error < 2.0 * self.tolerance,
            "all of C, compared with cuBLAS: relative norm of the difference {error:.2e}"
        );
        Ok(())
    }
}
