//! Copy, scale and sum: Rust beside its C++ twin, the driver's copy and CUB, in one run.
//!
//! `cargo run --release` measures on the GPU; `-- --on cpu` executes small arrays on the CPU.

mod cpu;
mod data;
mod gpu;
mod shapes;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};

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
    /// Also writes the results into this file, beside those of the other examples.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Also writes the times of all shapes that were tried into this file.
    #[arg(long)]
    shapes: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Processor {
    Gpu,
    Cpu,
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
        Processor::Cpu => cpu::run(cpu::SCHEDULES),
        Processor::Gpu => gpu::run(cli.bytes, cli.rounds, cli.json.as_deref(), cli.shapes.as_deref()),
    }
}
