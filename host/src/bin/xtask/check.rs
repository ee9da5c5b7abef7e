//! `cargo xtask check`: a kernel on the CPU, under many schedules.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::Args;
use cuda_ptx_host::build::{self, Arch, KernelCrate};
use cuda_ptx_host::exec::{Argument, Deviations, Job, Options, Program, Violation};

/// What to run.
#[derive(Args)]
pub struct Check {
    /// The kernel crate's Cargo.toml.
    #[arg(long, required_unless_present = "ptx", conflicts_with = "ptx")]
    manifest_path: Option<PathBuf>,
    /// PTX that was built before, by any compiler.
    #[arg(long)]
    ptx: Option<PathBuf>,
    /// The architecture that the crate is built for.
    #[arg(long, default_value_t = Arch::SM_90A)]
    arch: Arch,
    /// A TOML file with `kernel`, `grid`, `block`, `cluster`, `shared` and `arguments`.
    #[arg(long, conflicts_with_all = ["kernel", "grid", "block", "cluster", "shared", "argument"])]
    job: Option<PathBuf>,
    /// The kernel.
    #[arg(long, required_unless_present = "job")]
    kernel: Option<String>,
    /// CTAs in x, y, z.
    #[arg(long, value_delimiter = ',', default_value = "1")]
    grid: Vec<u32>,
    /// Threads of a CTA in x, y, z.
    #[arg(long, value_delimiter = ',', default_value = "32")]
    block: Vec<u32>,
    /// CTAs of a cluster in x, y, z.
    #[arg(long, value_delimiter = ',')]
    cluster: Vec<u32>,
    /// Bytes of dynamic shared memory.
    #[arg(long, default_value_t = 0)]
    shared: u32,
    /// An argument, in order: `u32:7`, `f32:0.5`, `count:4096` (a buffer of 0, 1, 2, …), `floats:4096`,
    /// `zeros:BYTES`, `new:BYTES` (not to be read before it is written), `file:PATH`.
    #[arg(long = "arg")]
    argument: Vec<Argument>,
    /// How many schedules, or `all`: those with the fewest deviations from the plainest schedule first.
    #[arg(long, default_value = "100")]
    schedules: Schedules,
    /// With `--schedules all`, the most that are run.
    #[arg(long, default_value_t = 10_000)]
    limit: usize,
    /// The seed of the first schedule.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// One schedule that `--schedules all` has named.
    #[arg(long, conflicts_with_all = ["schedules", "seed"])]
    schedule: Option<Deviations>,
}

/// Which schedules to run.
#[derive(Clone, Copy)]
enum Schedules {
    Seeds(u64),
    All,
}

impl FromStr for Schedules {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "all" => Ok(Self::All),
            number => number
                .parse()
                .map(Self::Seeds)
                .with_context(|| format!("expected a number or `all`, found `{text}`")),
        }
    }
}

/// Runs the kernel and names what is wrong with it.
pub fn run(check: Check) -> Result<()> {
    let text = match (&check.ptx, &check.manifest_path) {
        (Some(path), _) => read(path)?,
        (None, Some(manifest)) => {
            let folder = tempfile::tempdir().context("cannot make a folder for the PTX")?;
            let out = folder.path().join("kernels.ptx");
            build::build(&KernelCrate::new(manifest, check.arch), &out)?;
            read(&out)?
        }
        (None, None) => bail!("expected `--manifest-path` or `--ptx`"),
    };
    let program = Program::parse(&text)?;
    let job = match check.job {
        Some(path) => {
            toml::from_str(&read(&path)?).with_context(|| format!("in {}", path.display()))?
        }
        None => Job {
            kernel: check.kernel.context("expected `--kernel` or `--job`")?,
            grid: check.grid,
            block: check.block,
            cluster: check.cluster,
            shared: check.shared,
            arguments: check.argument,
        },
    };
    let wrong = match (check.schedule, check.schedules) {
        (Some(schedule), _) => {
            let options = Options {
                deviations: Some(schedule),
                ..Options::default()
            };
            job.run(&program, &options)?;
            println!("`{}`: no mistake under this schedule", job.kernel);
            false
        }
        (None, Schedules::Seeds(count)) => {
            let seeds = check.seed..check.seed.saturating_add(count);
            by_seeds(&job, &program, seeds)?
        }
        (None, Schedules::All) => all(&job, &program, check.limit)?,
    };
    if wrong {
        bail!("the kernel is wrong");
    }
    Ok(())
}

/// Runs the schedules of some seeds. Whether any has a mistake.
fn by_seeds(job: &Job, program: &Program, seeds: Range<u64>) -> Result<bool> {
    let findings = job.explore(program, seeds)?;
    let violations = findings.violations.iter();
    print_kinds(violations.map(|(seed, violation)| (format!("seed {seed}"), violation)));
    let total = findings.silent + findings.violations.len() as u64;
    println!(
        "`{}`: {} of {total} schedules without a mistake, {} instructions of threads, {} copies",
        job.kernel, findings.silent, findings.stats.thread_instructions, findings.stats.copies
    );
    Ok(!findings.violations.is_empty())
}

/// Runs every schedule, up to a limit. Whether any has a mistake.
fn all(job: &Job, program: &Program, limit: usize) -> Result<bool> {
    let coverage = job.explore_all(program, limit)?;
    let violations = coverage.violations.iter();
    print_kinds(
        violations.map(|(deviations, violation)| (format!("--schedule {deviations}"), violation)),
    );
    let which = match coverage.complete {
        true => "all there are".to_owned(),
        false => format!(
            "all with up to {} deviations, not all there are",
            coverage.deviations
        ),
    };
    println!(
        "`{}`: {} of {} schedules without a mistake ({which})",
        job.kernel,
        coverage.runs - coverage.violations.len() as u64,
        coverage.runs
    );
    Ok(!coverage.violations.is_empty())
}

/// Each kind of mistake once, with the first schedule that finds it.
fn print_kinds<'v>(violations: impl Iterator<Item = (String, &'v Violation)>) {
    let mut kinds: BTreeMap<(&str, u32), (u64, String)> = BTreeMap::new();
    for (schedule, violation) in violations {
        let kind = (violation.check.name(), violation.line);
        let first = || (0, format!("the first has the {schedule}): {violation}"));
        kinds.entry(kind).or_insert_with(first).0 += 1;
    }
    for (count, first) in kinds.values() {
        println!("under {count} schedules ({first}");
    }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
