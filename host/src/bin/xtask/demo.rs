//! `cargo xtask demo`: the main job.

use std::path::Path;

use anyhow::{Result, bail};
use cuda_ptx_host::build::Arch;
use cuda_ptx_host::demo::{self, GpuRun, Images, Report};
use cuda_ptx_host::{guide, toolchain};

/// Builds, compares and, where there is a GPU, runs the guide's kernels.
pub fn run(input: Option<&Path>, json: Option<&Path>) -> Result<()> {
    if let Some(path) = input {
        guide::check_input(path)?;
    }
    let toolchain = toolchain::setup_report()?;
    let images = Images::build(Arch::SM_90A, &toolchain::target_dir().join("demo"))?;
    let comparisons = demo::compare(&images)?;
    let run = GpuRun::launch(&images, input)?;
    let report = Report::new(toolchain, comparisons, &run);
    print!("{}", report.table());
    if let Some(path) = json {
        report.write_json(path)?;
    }
    if !report.holds() {
        bail!("not every row holds");
    }
    Ok(())
}
