//! `cargo xtask check`: a kernel on the CPU, under many schedules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use cuda_ptx_host::build::{self, Arch, KernelCrate};
use cuda_ptx_host::exec::{Argument, Job, Program};

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
    /// How many schedules.
    #[arg(long, default_value_t = 100)]
    schedules: u64,
    /// The seed of the first schedule.
    #[arg(long, default_value_t = 0)]
    seed: u64,
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
    let seeds = check.seed..check.seed.saturating_add(check.schedules);
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
    let findings = job.explore(&program, seeds)?;
    let mut kinds: BTreeMap<(&str, u32), (u64, u64, String)> = BTreeMap::new();
    for (seed, violation) in &findings.violations {
        let kind = kinds
            .entry((violation.check.name(), violation.line))
            .or_insert_with(|| (0, *seed, violation.to_string()));
        kind.0 += 1;
    }
    for (count, seed, text) in kinds.values() {
        println!("under {count} schedules (the first has the seed {seed}): {text}");
    }
    let total = findings.silent + findings.violations.len() as u64;
    println!(
        "`{}`: {} of {total} schedules without a mistake, {} instructions of threads, {} copies",
        job.kernel, findings.silent, findings.stats.thread_instructions, findings.stats.copies
    );
    if !findings.violations.is_empty() {
        bail!("the kernel is wrong");
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
