//! The program of a bundle: `run demo` and `run test` on a GPU machine that has no Rust and no
//! compiler. `cargo xtask bundle` makes the folder it runs from.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use cuda_ptx_host::bundle::Bundle;
use cuda_ptx_host::corpus::sanitize;
use cuda_ptx_host::demo::{CpuRun, GpuRun, Report};
use cuda_ptx_host::differential::{self, Options};
use cuda_ptx_host::driver::sanitizer::Tool;
use cuda_ptx_host::selftest::SelfTest;
use cuda_ptx_host::{bench, child, guide};

/// Runs prebuilt cuda-ptx kernels on this machine's GPU.
#[derive(Parser)]
#[command(name = "run")]
struct Cli {
    /// Has compute-sanitizer look at everything that `differential` or `test` launches, but for misuse on purpose.
    #[arg(long, global = true, value_name = "TOOL")]
    sanitizer: Option<Tool>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the guide's kernels in Rust and C++, and prints how they compare.
    Demo {
        /// A file of raw little-endian f32 that `producer_consumer` streams, instead of generated
        /// numbers.
        #[arg(long)]
        input: Option<PathBuf>,
        /// Also writes the report as JSON.
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Runs every form in Rust and C++ on the same inputs, and compares with what the PTX ISA says.
    Differential {
        /// One form alone, by the name of its kernel in the report.
        #[arg(long)]
        form: Option<String>,
        /// One seed of the inputs alone.
        #[arg(long)]
        seed: Option<u64>,
        /// Also writes every word that is not just what is expected, a line of JSON for each launch.
        #[arg(long, requires = "form")]
        outputs: Option<PathBuf>,
        /// Also writes the report as JSON.
        #[arg(long)]
        json: Option<PathBuf>,
        /// Also records the outputs, for checks without a GPU.
        #[arg(long, conflicts_with = "form")]
        golden: Option<PathBuf>,
    },
    /// Times every instruction form in Rust and C++.
    Bench {
        /// Only what has this in its family, function or instruction.
        #[arg(long)]
        filter: Option<String>,
        /// Also writes the results as JSON.
        #[arg(long)]
        json: Option<PathBuf>,
        /// Times all chains and situations twice, to see whether the figures come out again.
        #[arg(long)]
        repeat: bool,
    },
    /// Runs the corpus under compute-sanitizer, each image under each tool.
    Sanitize {
        /// These tools, separated by commas.
        #[arg(
            long,
            value_delimiter = ',',
            default_value = "memcheck,racecheck,synccheck"
        )]
        tools: Vec<Tool>,
        /// The images of these optimisation levels, as in `30s`.
        #[arg(long, default_value = "3012sz")]
        levels: String,
        /// Seconds for everything; what has not begun by then is reported as not run.
        #[arg(long, default_value_t = 240)]
        limit: u64,
        /// Where to write the tools' words, the first of equal reports.
        #[arg(long)]
        log: PathBuf,
        /// Also writes the results as JSON.
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Checks everything that needs a GPU.
    Test {
        /// Only the checks that have this in their name.
        #[arg(long)]
        filter: Option<String>,
        /// Also writes the results as JSON.
        #[arg(long)]
        json: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    child::serve_if_child();
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    if let Some(tool) = cli.sanitizer {
        child::sanitize(tool)?;
    }
    match cli.command {
        Command::Demo { input, json } => demo(input.as_deref(), json.as_deref()),
        Command::Differential {
            form,
            seed,
            outputs,
            json,
            golden,
        } => {
            let options = Options {
                form,
                seed,
                outputs,
            };
            differential(&options, json.as_deref(), golden.as_deref())
        }
        Command::Bench {
            filter,
            json,
            repeat,
        } => run_bench(&bench::runner::Options {
            filter: filter.as_deref(),
            json: json.as_deref(),
            repeat,
        }),
        Command::Sanitize {
            tools,
            levels,
            limit,
            log,
            json,
        } => {
            let options = sanitize::Options {
                tools,
                levels: levels.chars().collect(),
                limit: Duration::from_secs(limit),
                log,
            };
            run_sanitizer(&options, json.as_deref())
        }
        Command::Test { filter, json } => test(&filter.unwrap_or_default(), json.as_deref()),
    }
}

fn demo(input: Option<&Path>, json: Option<&Path>) -> Result<()> {
    if let Some(path) = input {
        guide::check_input(path)?;
    }
    let bundle = Bundle::of_this_program()?;
    let run = GpuRun::launch(&bundle.images(), input)?;
    let cpu = match run.gpu {
        Some(_) => CpuRun::skipped("the kernels were to run on the GPU"),
        None => CpuRun::launch(&bundle.images(), input, 1)?,
    };
    let (toolchain, comparisons) = bundle.into_findings();
    let report = Report::new(toolchain, comparisons, &run, &cpu);
    print!("{}", report.table());
    if let Some(path) = json {
        report.write_json(path)?;
    }
    if let Some(reason) = run.skip_reason() {
        bail!("nothing was run on a GPU, which is what this program is for: {reason}");
    }
    if !report.holds() {
        bail!("not every row holds");
    }
    Ok(())
}

fn differential(options: &Options, json: Option<&Path>, golden: Option<&Path>) -> Result<()> {
    let bundle = Bundle::of_this_program()?;
    let (report, outputs) = differential::run(bundle.folder(), options)?;
    println!("{}", report.summary());
    if let Some(path) = json {
        std::fs::write(path, report.to_json()?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = golden {
        write_json(path, &outputs)?;
    }
    if !report.holds() {
        bail!("not every form agrees");
    }
    Ok(())
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<()> {
    std::fs::write(path, serde_json::to_string_pretty(value)? + "\n")
        .with_context(|| format!("cannot write {}", path.display()))
}

fn run_bench(options: &bench::runner::Options) -> Result<()> {
    let folder = Bundle::of_this_program()?.folder().to_path_buf();
    let results = bench::runner::run(&folder, options)?;
    println!("{}", results.summary());
    if let Some(agreement) = results.repeated() {
        println!("{agreement}");
    }
    Ok(())
}

fn run_sanitizer(options: &sanitize::Options, json: Option<&Path>) -> Result<()> {
    let report = sanitize::run(Bundle::of_this_program()?.folder(), options)?;
    println!("{}", report.summary());
    if let Some(path) = json {
        write_json(path, &report)?;
    }
    if !report.holds() {
        bail!("not every kernel is right and without a report");
    }
    Ok(())
}

fn test(filter: &str, json: Option<&Path>) -> Result<()> {
    let test = SelfTest::run(&Bundle::of_this_program()?, filter)?;
    println!("{}", test.summary());
    if let Some(path) = json {
        write_json(path, &test)?;
    }
    if !test.passed() {
        bail!("not every check passed");
    }
    Ok(())
}
