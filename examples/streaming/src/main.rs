//! Copy, scale and sum: Rust beside its C++ twin, the driver's copy and CUB, in one run.
//!
//! `cargo run --release` measures on the GPU; `-- --on cpu` executes small arrays on the CPU.

mod cpu;
mod data;
mod gpu;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use data::{Operation, Type};

/// Copy, scale and sum at the speed of the memory.
#[derive(Parser)]
struct Cli {
    /// What executes the kernels.
    #[arg(long, value_enum, default_value = "gpu")]
    on: Processor,
    /// Bytes of the array on the GPU, a multiple of 16.
    #[arg(long, default_value_t = 4 << 30)]
    bytes: u64,
    /// Rounds that are measured.
    #[arg(long, default_value_t = 50)]
    rounds: usize,
    /// Tries many shapes of the ring instead, and prints the best ones.
    #[arg(long)]
    tune: bool,
    /// Also writes the results into this file, beside those of the other examples.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Processor {
    Gpu,
    Cpu,
}

/// The shape of the warps' rings.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    stages: u32,
    tile_bytes: u32,
    warps: u32,
    blocks: u32,
    hints: u32,
}

impl Shape {
    /// The fastest one on an H200, by `--tune`.
    fn of(operation: Operation) -> Self {
        match operation {
            Operation::Copy | Operation::Scale(_) => Self { stages: 8, tile_bytes: 4 << 10, warps: 1, blocks: 264, hints: 0 },
            Operation::Sum(_) => Self { stages: 3, tile_bytes: 8 << 10, warps: 8, blocks: 132, hints: 0 },
        }
    }

    /// The dynamic shared memory of a block: every warp's ring, and two barriers for each of its
    /// buffers.
    fn shared_bytes(self) -> u32 {
        self.warps * self.stages * (self.tile_bytes + 16)
    }

    fn kernel(self, operation: Operation) -> String {
        let stages = self.stages;
        match operation {
            Operation::Copy => format!("copy_{stages}"),
            Operation::Scale(Type::F32) => format!("scale_f32_{stages}"),
            Operation::Scale(Type::Bf16) => format!("scale_bf16_{stages}"),
            Operation::Sum(Type::F32) => format!("sum_f32_{stages}"),
            Operation::Sum(Type::Bf16) => format!("sum_bf16_{stages}"),
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    anyhow::ensure!(cli.bytes.is_multiple_of(16), "--bytes: expected a multiple of 16, found {}", cli.bytes);
    match cli.on {
        Processor::Cpu => cpu::run(),
        Processor::Gpu if cli.tune => gpu::tune(cli.bytes),
        Processor::Gpu => gpu::run(cli.bytes, cli.rounds, cli.json.as_deref()),
    }
}
