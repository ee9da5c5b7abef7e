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

/// The kernel that gives a row to a cluster, and the one that gives it to a block.
const CLUSTERS: &str = "layer_norm";
const PLAIN: &str = "layer_norm_plain";
/// Threads of their blocks.
const THREADS: u32 = 544;
const PLAIN_THREADS: u32 = 512;
/// How many blocks of the second one fit on a multiprocessor.
const MOST_PLAIN: u32 = 2048 / PLAIN_THREADS;
/// Elements of the slice that a block of a cluster has, and the dynamic shared memory for two of them.
const SLICE: usize = 8192;
const SHARED_BYTES: u32 = 2 * 4 * SLICE as u32;
/// Elements of a row.
const LENGTHS: [usize; 5] = [SLICE, 2 * SLICE, 4 * SLICE, 8 * SLICE, 16 * SLICE];

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
        Processor::Cpu => on_cpu(&CASES, SCHEDULES),
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

/// Rows on the CPU, and their length: enough of them for one cluster to use its inboxes again, and the largest
/// cluster.
const CASES: [[usize; 2]; 3] = [[37, SLICE], [37, 4 * SLICE], [3, 16 * SLICE]];
const SCHEDULES: u64 = 4;

/// Executes a few rows under so many schedules.
fn on_cpu(cases: &[[usize; 2]], schedules: u64) -> Result<()> {
    let program = Program::parse(PTX)?;
    for &[rows, length] in cases {
        let blocks = (length / SLICE) as u32;
        let mut clusters = Grid::new([blocks, 1, 1], [THREADS, 1, 1]);
        clusters.shared_bytes = SHARED_BYTES;
        clusters.cluster = Some([blocks, 1, 1]);
        let plain = Grid::new([rows as u32, 1, 1], [PLAIN_THREADS, 1, 1]);
        for (kernel, grid) in [(CLUSTERS, clusters), (PLAIN, plain)] {
            for schedule in 0..schedules {
                execute(&program, kernel, &grid, [rows, length], schedule)
                    .with_context(|| format!("{kernel}, {rows} rows of {length}, schedule {schedule}"))?;
            }
            println!("{kernel}: {rows} rows of {length} elements, right under {schedules} schedules");
        }
    }
    Ok(())
}

fn execute(
    program: &Program,
    kernel: &str,
    grid: &Grid,
    [rows, length]: [usize; 2],
    seed: u64,
) -> Result<()> {
    let bytes = |numbers: &[f32]| -> Vec<u8> { numbers.iter().flat_map(|x| x.to_le_bytes()).collect() };
    let parameters = parameters(length);
    let x: Vec<f32> = (0..rows).flat_map(|row| input(row, length)).collect();
    let mut memory = Memory::new();
    let output = memory.uninitialised(4 * rows * length);
    let buffers = [&x, &parameters[0], &parameters[1]].map(|numbers| memory.upload(&bytes(numbers)));
    let mut arguments = vec![output.address().to_le_bytes().to_vec()];
    arguments.extend(buffers.map(|buffer| buffer.address().to_le_bytes().to_vec()));
    arguments.extend([rows, length].map(|x| (x as u32).to_le_bytes().to_vec()));
    let options = Options { seed, ..Options::default() };
    program.run(kernel, grid, &arguments, &mut memory, &options)?;
    let found: Vec<f32> = memory
        .download(output)
        .chunks_exact(4)
        .map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]))
        .collect();
    let mut found = found.chunks(length).enumerate();
    found.try_for_each(|(row, found)| check_row(row, found, &parameters))
}

/// The matrix and the parameters on the GPU.
struct Matrix<'d> {
    driver: &'d Driver,
    rows: usize,
    length: usize,
    input: DeviceBuffer<f32>,
    output: DeviceBuffer<f32>,
    parameters: [DeviceBuffer<f32>; 2],
}

impl Matrix<'_> {
    /// Generates the rows, some at a time, on all cores.
    fn fill(&mut self) -> Result<()> {
        let workers = std::thread::available_parallelism()?.get();
        let length = self.length;
        for first in (0..self.rows).step_by(workers) {
            let count = workers.min(self.rows - first);
            let rows: Vec<f32> = std::thread::scope(|scope| {
                let rows: Vec<_> =
                    (first..first + count).map(|row| scope.spawn(move || input(row, length))).collect();
                rows.into_iter().flat_map(|row| row.join().expect("a row is generated")).collect()
            });
            self.input.index(first * length..(first + count) * length).copy_from(&rows)?;
        }
        Ok(())
    }

    fn arguments(&self) -> Arguments {
        let [gamma, beta] = &self.parameters;
        Arguments::new()
            .pointer(&self.output)
            .pointer(&self.input)
            .pointer(gamma)
            .pointer(beta)
            .u32(self.rows as u32)
            .u32(self.length as u32)
    }

    /// Queues the kernel with so many clusters.
    fn launch(&self, module: &Module, clusters: u32) -> Result<()> {
        let blocks = (self.length / SLICE) as u32;
        let launch = Launch::new(clusters * blocks, THREADS).shared(SHARED_BYTES).cluster([blocks, 1, 1]);
        // SAFETY: the arguments are those of the kernels; the buffers live until the next synchronisation.
        unsafe { module.function(CLUSTERS)?.launch(&launch, &self.arguments())? };
        Ok(())
    }

    /// Queues the kernel without clusters, for so many blocks on a multiprocessor.
    fn launch_plain(&self, module: &Module, blocks: u32) -> Result<()> {
        // Shared memory that they do not use keeps more away.
        let shared =
            if blocks == MOST_PLAIN { 0 } else { self.driver.shared_bytes_per_block()? / (blocks + 1) };
        let launch = Launch::new(self.rows as u32, PLAIN_THREADS).shared(shared);
        // SAFETY: as above.
        unsafe { module.function(PLAIN)?.launch(&launch, &self.arguments())? };
        Ok(())
    }

    /// Finds out how many clusters are fastest: on which multiprocessors a GPU can place one differs from GPU
    /// to GPU, and one too many waits until another has ended.
    fn fit(&self, module: &Module) -> Result<u32> {
        let most = self.driver.sm_count()? / (self.length / SLICE) as u32;
        self.fastest(most - most / 4..=most, |clusters| self.launch(module, clusters))
    }

    /// Finds out how many blocks on a multiprocessor are fastest: the fewer, the more of the rows in work stay in
    /// the caches.
    fn fit_plain(&self, module: &Module) -> Result<u32> {
        self.fastest(1..=MOST_PLAIN, |blocks| self.launch_plain(module, blocks))
    }

    fn fastest(&self, counts: impl Iterator<Item = u32>, launch: impl Fn(u32) -> Result<()>) -> Result<u32> {
        let mut best = (f64::MAX, 0);
        for count in counts {
            let mut times = [0.0; 3];
            for ms in &mut times {
                *ms = measure::time(self.driver, &mut || launch(count))?;
            }
            let ms = Quartiles::of(&times).median;
            if ms < best.0 {
                best = (ms, count);
            }
        }
        Ok(best.1)
    }

    /// Forgets what the kernels computed: what the next one leaves out is zero.
    fn clear(&mut self) -> Result<()> {
        // The old one is freed first.
        self.output = self.driver.zeroed(0)?;
        self.output = self.driver.zeroed(self.rows * self.length)?;
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
    };
    matrix.fill()?;
    matrix.clear()?;
    let (clusters, rows_each) = (matrix.fit(module)?, matrix.fit_plain(module)?);
    matrix.clear()?;
    matrix.launch(module, clusters)?;
    let checked = matrix.check(&parameters).context(CLUSTERS)?;
    matrix.clear()?;
    matrix.launch_plain(module, rows_each)?;
    matrix.check(&parameters).context(PLAIN)?;
    let device = Device::get_device(0)?;
    let clock_hz = f64::from(device.get_attribute(DeviceAttribute::MemoryClockRate)?) * 1e3;
    let bus_bytes = f64::from(device.get_attribute(DeviceAttribute::GlobalMemoryBusWidth)?) / 8.0;
    // Every element is read and written once at least; the memory makes two transfers in a clock.
    let work = Work::Bytes { moved: (8 * rows * length) as f64, peak: 2.0 * clock_hz * bus_bytes };
    let name = format!("layer norm, {rows} rows of {length} f32");
    let blocks = length / SLICE;
    let checked = format!(
        "{checked} rows checked in double precision; {clusters} clusters of {blocks} blocks, {rows_each} rows on a multiprocessor"
    );
    let competitors = vec![
        Competitor::new("clusters", || matrix.launch(module, clusters)),
        Competitor::new("a block for each row", || matrix.launch_plain(module, rows_each)),
    ];
    Contest { name: &name, work, checked: &checked, rounds }.run(driver, competitors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_normalised_on_the_cpu() {
        on_cpu(&[[37, 2 * SLICE]], 1).unwrap();
    }
}
