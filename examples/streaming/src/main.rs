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
}

#[derive(Clone, Copy, ValueEnum)]
enum Processor {
    Gpu,
    Cpu,
}

/// How the array is shared among the warps.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    tile_bytes: u32,
    warps: u32,
    blocks: u32,
}

impl Shape {
    /// The dynamic shared memory of a block: for every warp four tiles, and for each of them two barriers and
    /// its number.
    fn shared_bytes(self) -> u32 {
        self.warps * 4 * (self.tile_bytes + 20)
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Self { tile_bytes, warps, blocks } = self;
        write!(f, "{blocks} blocks of {warps} warps, tiles of {tile_bytes} bytes")
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
        Processor::Cpu => cpu::run(cpu::SCHEDULES),
        Processor::Gpu => gpu::run(cli.bytes, cli.rounds, cli.json.as_deref()),
    }
}
