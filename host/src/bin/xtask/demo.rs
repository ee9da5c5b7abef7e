//! `cargo xtask demo`: the main job.

use std::path::Path;

use anyhow::{Result, bail};
use cuda_ptx_host::build::Arch;
use cuda_ptx_host::demo::{self, CpuRun, GpuRun, Images, Report};
use cuda_ptx_host::exec::On;
use cuda_ptx_host::{guide, toolchain};

/// Builds, compares and runs the guide's kernels.
pub fn run(input: Option<&Path>, json: Option<&Path>, on: On, schedules: u64) -> Result<()> {
    if let Some(path) = input {
        guide::check_input(path)?;
    }
    let toolchain = toolchain::setup_report()?;
    let images = Images::build(Arch::SM_90A, &toolchain::target_dir().join("demo"))?;
    let comparisons = demo::compare(&images)?;
    let gpu = match on {
        On::Cpu => GpuRun::skipped("the kernels were to run on the CPU"),
        _ => GpuRun::launch(&images, input)?,
    };
    let cpu = if on == On::Cpu || on == On::Auto && gpu.gpu.is_none() {
        CpuRun::launch(&images, input, schedules)?
    } else {
        CpuRun::skipped("the kernels were to run on the GPU")
    };
    let report = Report::new(toolchain, comparisons, &gpu, &cpu);
    print!("{}", report.table());
    if let Some(path) = json {
        report.write_json(path)?;
    }
    if !report.holds() {
        bail!("not every row holds");
    }
    Ok(())
}
