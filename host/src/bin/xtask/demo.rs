//! `cargo xtask demo`: the main job.

use std::path::Path;

use anyhow::{Result, bail};
use cuda_ptx_host::build::Arch;
use cuda_ptx_host::demo::{self, GpuResult, Images, Report, Row};
use cuda_ptx_host::toolchain;

/// Builds, compares and, where there is a GPU, runs the guide's kernels.
pub fn run(json: Option<&Path>) -> Result<()> {
    let toolchain = toolchain::setup_report()?;
    let images = Images::build(Arch::SM_90A, &toolchain::target_dir().join("demo"))?;
    let comparisons = demo::compare(&images)?;
    let rows = comparisons
        .into_iter()
        .map(|comparison| Row::new(comparison, GpuResult::Skipped, ""))
        .collect();
    let report = Report {
        gpu: None,
        toolchain,
        kernels: rows,
    };
    print!("{}", report.table());
    if let Some(path) = json {
        report.write_json(path)?;
    }
    if !report.holds() {
        bail!("not every row holds");
    }
    Ok(())
}
