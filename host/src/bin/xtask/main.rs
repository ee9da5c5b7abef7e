//! `cargo xtask`: the project's commands.

mod check;
mod demo;
mod test;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use cuda_ptx_host::bench::runner::Results;
use cuda_ptx_host::build::{self, Arch, Isa, KernelCrate};
use cuda_ptx_host::bundle::Bundle;
use cuda_ptx_host::exec::On;
use cuda_ptx_host::{bench, child, generate, link, parity};

/// Builds, compares, runs and measures GPU kernels written with cuda-ptx.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Builds a kernel crate to PTX or to a cubin, through the link stage.
    Build {
        /// The kernel crate's Cargo.toml.
        #[arg(long)]
        manifest_path: PathBuf,
        /// The architecture, for instance sm_90a.
        #[arg(long)]
        arch: Arch,
        /// The newest PTX ISA version that may be used, for instance 8.6.
        #[arg(long)]
        isa: Option<Isa>,
        /// The Cargo profile.
        #[arg(long, default_value = "release")]
        profile: String,
        /// What to write; the ending, .ptx or .cubin, says which.
        #[arg(long)]
        out: PathBuf,
    },
    /// Writes the device crate's generated sources from `spec/`.
    Gen {
        /// Write nothing; fail if a file would change.
        #[arg(long)]
        check: bool,
    },
    /// Builds the guide's kernels in Rust and C++, compares them, and runs both.
    Demo {
        /// A file of raw little-endian f32 that `producer_consumer` streams, instead of generated
        /// numbers.
        #[arg(long)]
        input: Option<PathBuf>,
        /// Also writes the report as JSON.
        #[arg(long)]
        json: Option<PathBuf>,
        /// Where the kernels run.
        #[arg(long, value_enum, default_value = "auto")]
        on: On,
        /// Under how many schedules the CPU executes each kernel.
        #[arg(long, default_value_t = 1)]
        schedules: u64,
    },
    /// Runs a kernel on the CPU under many schedules, and names mistakes in its use of barriers and
    /// copies.
    Check(check::Check),
    /// Makes a folder that runs on a GPU machine without Rust or a compiler: `DIR/run demo|test`.
    Bundle {
        /// The folder.
        dir: PathBuf,
    },
    /// Compares every form of `cuda::ptx` with its mirror: PTX, and machine code for each architecture.
    Parity {
        /// One family of `spec/`, for instance mbarrier.
        #[arg(long)]
        family: Option<String>,
        /// One architecture, for instance sm_90a.
        #[arg(long)]
        arch: Option<String>,
        /// Compares the forms that `cuda::ptx` lacks instead, with what C++ has for them.
        #[arg(long)]
        beyond: bool,
        /// Also writes the result here.
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Lists what a release of CCCL has that `spec/` has not, and the other way round.
    Sync {
        /// A folder with CCCL's headers: a toolkit, or an unpacked wheel nvidia-cuda-cccl.
        #[arg(long)]
        cccl: PathBuf,
    },
    /// Builds the kernels that time every form, in Rust and in C++, into a folder.
    BenchKernels {
        /// The folder.
        dir: PathBuf,
    },
    /// Makes the tables and the charts of a benchmark's results.
    BenchReport {
        /// The JSON that `DIR/run bench --json` wrote.
        json: PathBuf,
        /// Where the charts go.
        #[arg(long, default_value = "benches/charts")]
        charts: PathBuf,
        /// Instead says how the medians compare with those of this other run.
        #[arg(long)]
        against: Option<PathBuf>,
    },
    /// Runs everything that CI checks.
    Test {
        /// Where kernels run: with `cpu`, no test uses a GPU; with `gpu`, there must be one.
        #[arg(long, value_enum, default_value = "auto")]
        on: On,
    },
}

fn main() -> ExitCode {
    if let Some(code) = link::run_as_linker() {
        return code;
    }
    child::serve_if_child();
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Build {
            manifest_path,
            arch,
            isa,
            profile,
            out,
        } => {
            let mut kernels = KernelCrate::new(manifest_path, arch).profile(profile);
            if let Some(isa) = isa {
                kernels = kernels.isa(isa);
            }
            build::build(&kernels, &out)
        }
        Command::Demo {
            input,
            json,
            on,
            schedules,
        } => demo::run(input.as_deref(), json.as_deref(), on, schedules),
        Command::Check(check) => check::run(check),
        Command::Bundle { dir } => Bundle::build(Arch::SM_90A, &dir).map(drop),
        Command::Parity {
            family,
            arch,
            beyond,
            json,
        } => parity::run(&parity::Options {
            family,
            arch,
            beyond,
            json,
        }),
        Command::Sync { cccl } => parity::sync::run(&cccl),
        Command::BenchKernels { dir } => bench::images::Images::build(Arch::SM_90A, &dir).map(drop),
        Command::BenchReport {
            json,
            charts,
            against,
        } => bench_report(&json, &charts, against.as_deref()),
        Command::Test { on } => test::run(on),
        Command::Gen { check } => generate::run(check),
    }
}

fn bench_report(json: &Path, charts: &Path, against: Option<&Path>) -> Result<()> {
    let results = Results::read(json)?;
    let Some(other) = against else {
        return results.report(&json.with_extension("md"), charts);
    };
    match results.against(&Results::read(other)?) {
        Some(agreement) => println!("{agreement}"),
        None => println!("the two have nothing in common"),
    }
    Ok(())
}
