//! Layer normalisation of long rows: by clusters, and by a block for each row, in one run.
//!
//! `cargo run --release` measures on the GPU; `-- --on cpu` executes a few rows on the CPU.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use cuda_ptx_host::driver::{Arguments, Driver, Launch, Module};
use cuda_ptx_host::exec::{Grid, Memory, Options, Program};
use cust::device::{Device, DeviceAttribute};
use cust::memory::{CopyDestination, DeviceBuffer};
use measure::{Competitor, Contest, Outcome, Quartiles, Record, Work};

const CUBIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.cubin"));
const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));

const CLUSTER: u32 = 8;
const KERNELS: [&str; 2] = ["layer_norm", "layer_norm_plain"];
/// Threads of their CTAs.
const THREADS: [u32; 2] = [256, 512];
/// Elements of a row.
const LENGTHS: [usize; 3] = [16384, 32768, 65536];

/// Layer normalisation of long rows.
#[derive(Parser)]
struct Cli {
    /// What executes the kernels.
    #[arg(long, value_enum, default_value = "gpu")]
    on: Processor,
    /// Elements of all rows together on the GPU.
    #[arg(long, default_value_t = 1 << 29)]
    elements: usize,
    /// Rounds that are measured.
    #[arg(long, default_value_t = 50)]
    rounds: usize,
    /// Also writes the results into this file, beside those of the other examples.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Processor {
    Gpu,
    Cpu,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.on {
        Processor::Cpu => on_cpu(),
        Processor::Gpu => on_gpu(cli.elements, cli.rounds, cli.json.as_deref()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Random numbers from `low` to `low + 2`.
fn random(seed: u64, count: usize, low: f32) -> Vec<f32> {
    let number = |index| {
        let x = (seed << 40 | index as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ x >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        low + (x >> 40) as f32 / (1 << 23) as f32
    };
    (0..count).map(number).collect()
}

/// A row; rows have different means.
fn input(row: usize, length: usize) -> Vec<f32> {
    random(row as u64, length, (row % 7) as f32 - 3.0)
}

/// What both kernels multiply by and add.
fn parameters(length: usize) -> [Vec<f32>; 2] {
    [random(1 << 20, length, 0.5), random(2 << 20, length, -1.0)]
}

/// Compares a row with the result in double precision.
fn check_row(row: usize, found: &[f32], [gamma, beta]: &[Vec<f32>; 2]) -> Result<()> {
    let x: Vec<f64> = input(row, found.len()).into_iter().map(f64::from).collect();
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
    let scale = 1.0 / (variance + 1e-5).sqrt();
    for (column, found) in found.iter().enumerate() {
        let expected = (x[column] - mean) * scale * f64::from(gamma[column]) + f64::from(beta[column]);
        // Also false if it is not a number.
        let close = (f64::from(*found) - expected).abs() < 1e-5 * (1.0 + expected.abs());
        ensure!(close, "row {row}, column {column}: expected {expected}, found {found}");
    }
    Ok(())
}

/// The dynamic shared memory of a CTA of the cluster: four slices of rows, and those of γ and β.
fn shared_bytes(length: usize) -> u32 {
    6 * 4 * (length as u32 / CLUSTER)
}

/// Executes a few rows under several schedules.
fn on_cpu() -> Result<()> {
    const LENGTH: usize = 8192;
    // Enough to go around the ring.
    const ROWS: usize = 7;
    const SCHEDULES: u64 = 8;
    let program = Program::parse(PTX)?;
    let parameters = parameters(LENGTH);
    let bytes = |numbers: &[f32]| -> Vec<u8> { numbers.iter().flat_map(|x| x.to_le_bytes()).collect() };
    for kernel in KERNELS {
        for schedule in 0..SCHEDULES {
            let mut memory = Memory::new();
            let rows: Vec<f32> = (0..ROWS).flat_map(|row| input(row, LENGTH)).collect();
            let output = memory.uninitialised(4 * ROWS * LENGTH);
            let buffers =
                [&rows, &parameters[0], &parameters[1]].map(|numbers| memory.upload(&bytes(numbers)));
            let mut arguments = vec![output.address().to_le_bytes().to_vec()];
            arguments.extend(buffers.map(|buffer| buffer.address().to_le_bytes().to_vec()));
            arguments.extend([ROWS, LENGTH].map(|x| (x as u32).to_le_bytes().to_vec()));
            // One cluster for all rows.
            let (blocks, threads) =
                if kernel == KERNELS[0] { (CLUSTER, THREADS[0]) } else { (ROWS as u32, THREADS[1]) };
            let mut grid = Grid::new([blocks, 1, 1], [threads, 1, 1]);
            grid.shared_bytes = shared_bytes(LENGTH);
            let options = Options { seed: schedule, ..Options::default() };
            program.run(kernel, &grid, &arguments, &mut memory, &options)?;
            let found: Vec<f32> = memory
                .download(output)
                .chunks_exact(4)
                .map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]))
                .collect();
            for (row, found) in found.chunks(LENGTH).enumerate() {
                check_row(row, found, &parameters)
                    .with_context(|| format!("{kernel}, schedule {schedule}"))?;
            }
        }
        println!("{kernel}: {ROWS} rows of {LENGTH} elements, right under {SCHEDULES} schedules");
    }
    Ok(())
}

/// The matrix and the parameters on the GPU.
struct Matrix<'d> {
    driver: &'d Driver,
    rows: usize,
    length: usize,
    input: DeviceBuffer<f32>,
    output: DeviceBuffer<f32>,
    parameters: [DeviceBuffer<f32>; 2],
    clusters: u32,
}

impl Matrix<'_> {
    /// Queues one of the kernels.
    fn launch(&self, module: &Module, kernel: &str) -> Result<()> {
        let function = module.function(kernel)?;
        let [gamma, beta] = &self.parameters;
        let arguments = Arguments::new()
            .pointer(&self.output)
            .pointer(&self.input)
            .pointer(gamma)
            .pointer(beta)
            .u32(self.rows as u32)
            .u32(self.length as u32);
        let launch = if kernel == KERNELS[0] {
            Launch::new(self.clusters * CLUSTER, THREADS[0]).shared(shared_bytes(self.length))
        } else {
            Launch::new(self.rows as u32, THREADS[1])
        };
        // SAFETY: the arguments are those of the kernels; the buffers live until the next synchronisation.
        unsafe { function.launch(&launch, &arguments)? };
        Ok(())
    }

    /// Finds out how many clusters run at the same time: on which multiprocessors a GPU can place one
    /// differs from GPU to GPU, and one too many waits until another has ended.
    fn fit(&mut self, module: &Module) -> Result<()> {
        // A block takes 1 KiB of its own.
        let blocks = (self.driver.shared_bytes_per_block()? + 1024) / (shared_bytes(self.length) + 2048);
        let most = self.driver.sm_count()? / CLUSTER;
        let mut best = (f64::MAX, 0);
        for clusters in (most - most / 4..=most).map(|clusters| clusters * blocks) {
            self.clusters = clusters;
            let mut times = [0.0; 3];
            for ms in &mut times {
                *ms = measure::time(self.driver, &mut || self.launch(module, KERNELS[0]))?;
            }
            let ms = Quartiles::of(&times).median;
            if ms < best.0 {
                best = (ms, clusters);
            }
        }
        self.clusters = best.1;
        Ok(())
    }

    /// Checks rows from all over the matrix.
    fn check(&self, parameters: &[Vec<f32>; 2]) -> Result<usize> {
        self.driver.synchronize()?;
        let mut found = vec![0.0; self.length];
        let rows = (0..self.rows).step_by((self.rows / 61).max(1));
        let count = rows.len();
        for row in rows {
            self.output.index(row * self.length..(row + 1) * self.length).copy_to(&mut found)?;
            check_row(row, &found, parameters)?;
        }
        Ok(count)
    }
}

/// Checks and measures both kernels.
fn on_gpu(elements: usize, rounds: usize, json: Option<&Path>) -> Result<()> {
    let driver = Driver::open()?;
    let module = driver.load(CUBIN)?;
    let mut outcomes = Vec::new();
    for length in LENGTHS {
        let outcome = measure(&driver, &module, elements / length, length, rounds)?;
        println!("{}", outcome.summary());
        outcomes.push(outcome);
    }
    if let Some(path) = json {
        measure::write(path, "layernorm", &Record::new(&driver, outcomes)?)?;
    }
    Ok(())
}

fn measure(driver: &Driver, module: &Module, rows: usize, length: usize, rounds: usize) -> Result<Outcome> {
    let parameters = parameters(length);
    let mut matrix = Matrix {
        driver,
        rows,
        length,
        input: driver.zeroed(rows * length)?,
        output: driver.zeroed(0)?,
        parameters: [driver.upload(&parameters[0])?, driver.upload(&parameters[1])?],
        clusters: 1,
    };
    for row in 0..rows {
        matrix.input.index(row * length..(row + 1) * length).copy_from(&input(row, length))?;
    }
    matrix.output = driver.zeroed(rows * length)?;
    matrix.fit(module)?;
    let mut checked = 0;
    for kernel in KERNELS {
        // The old one is freed first, and what a kernel leaves out is zero.
        matrix.output = driver.zeroed(0)?;
        matrix.output = driver.zeroed(rows * length)?;
        matrix.launch(module, kernel)?;
        checked = matrix.check(&parameters).with_context(|| kernel.to_owned())?;
    }
    let device = Device::get_device(0)?;
    let clock_hz = f64::from(device.get_attribute(DeviceAttribute::MemoryClockRate)?) * 1e3;
    let bus_bytes = f64::from(device.get_attribute(DeviceAttribute::GlobalMemoryBusWidth)?) / 8.0;
    // Every element is read and written once at least; the memory makes two transfers in a clock.
    let work = Work::Bytes { moved: (8 * rows * length) as f64, peak: 2.0 * clock_hz * bus_bytes };
    let name = format!("layer norm, {rows} rows of {length} f32");
    let checked = format!("{checked} rows checked in double precision; {} clusters", matrix.clusters);
    let competitors = vec![
        Competitor::new("clusters", || matrix.launch(module, KERNELS[0])),
        Competitor::new("a block for each row", || matrix.launch(module, KERNELS[1])),
    ];
    Contest { name: &name, work, checked: &checked, rounds }.run(driver, competitors)
}
