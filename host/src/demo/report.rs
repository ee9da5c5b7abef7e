//! What a demonstration found: the JSON of `demo --json`, and the table.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::{Table, presets};
use serde::Serialize;

use super::compare::{Comparison, Verdict};
use super::cpu::CpuRun;
use super::gpu::GpuRun;
use crate::guide::Case;
use crate::toolchain::SetupReport;

/// How a kernel did on the GPU or the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GpuResult {
    /// Every case was right in both languages.
    Ok,
    /// A case was wrong, hung or faulted.
    Failed,
    /// It did not run.
    Skipped,
}

/// One kernel.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The kernel's name.
    pub name: String,
    /// The set of mirrored PTX instructions.
    pub ptx: Verdict,
    /// The set of SASS opcodes.
    pub sass: Verdict,
    /// SASS instructions: Rust, C++.
    pub sass_insns: [usize; 2],
    /// The launches.
    pub gpu: GpuResult,
    /// The launches that the CPU executed.
    pub cpu: GpuResult,
    /// What differs, failed or did not run, and why; empty if there is nothing to say.
    pub reason: String,
}

impl Row {
    fn new(comparison: Comparison, run: &GpuRun, cpu_run: &CpuRun) -> Self {
        let (gpu, gpu_reason) = run.result(&comparison.name);
        let (cpu, cpu_reason) = cpu_run.result(&comparison.name);
        let remarks = comparison.remarks.join("; ");
        let reasons = [remarks.as_str(), &cpu_reason, &gpu_reason];
        Self {
            name: comparison.name,
            ptx: comparison.ptx,
            sass: comparison.sass,
            sass_insns: comparison.sass_insns,
            gpu,
            cpu,
            reason: reasons
                .into_iter()
                .filter(|reason| !reason.is_empty())
                .collect::<Vec<_>>()
                .join("; "),
        }
    }

    /// The same instructions, and nothing wrong on the GPU or the CPU. Whole kernels may differ in SASS: the
    /// compilers schedule and unroll differently.
    fn holds(&self) -> bool {
        let by_design = || Case::of_kernel(&self.name).and_then(Case::differs_by_design);
        (self.ptx == Verdict::Equal || by_design().is_some())
            && self.gpu != GpuResult::Failed
            && self.cpu != GpuResult::Failed
    }
}

/// The whole demonstration.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The GPU's name, if there is one.
    pub gpu: Option<String>,
    /// The tools that built the kernels.
    pub toolchain: SetupReport,
    /// One row a kernel.
    pub kernels: Vec<Row>,
    /// Why nothing was run, if so; the rows' reasons have it, too.
    #[serde(skip)]
    not_run: Option<String>,
    /// What the CPU executed, if anything.
    #[serde(skip)]
    executed: Option<String>,
}

impl Report {
    /// Joins what was compared with what was run.
    #[must_use]
    pub fn new(
        toolchain: SetupReport,
        comparisons: Vec<Comparison>,
        run: &GpuRun,
        cpu_run: &CpuRun,
    ) -> Self {
        let kernels = comparisons
            .into_iter()
            .map(|comparison| Row::new(comparison, run, cpu_run))
            .collect();
        Self {
            gpu: run.gpu.clone(),
            toolchain,
            kernels,
            not_run: run.skip_reason().map(str::to_owned),
            executed: cpu_run.summary(),
        }
    }

    /// Whether every row holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.kernels.iter().all(Row::holds)
    }

    /// The table, with what was not run and why below it.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_FULL_CONDENSED);
        table.set_header([
            "kernel",
            "PTX",
            "SASS",
            "SASS instructions\nRust / C++",
            "GPU",
            "CPU",
        ]);
        for row in &self.kernels {
            let [rust, cpp] = row.sass_insns;
            table.add_row([
                row.name.clone(),
                row.ptx.as_str().to_owned(),
                row.sass.as_str().to_owned(),
                format!("{rust} / {cpp}"),
                format!("{:?}", row.gpu).to_lowercase(),
                format!("{:?}", row.cpu).to_lowercase(),
            ]);
        }
        let mut text = format!("{table}\n");
        let not_run = self.not_run.as_deref().unwrap_or_default();
        for row in &self.kernels {
            let reason = row.reason.trim_end_matches(not_run).trim_end_matches("; ");
            if !reason.is_empty() {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{}: {reason}", row.name);
            }
        }
        if !not_run.is_empty() {
            let _ = writeln!(text, "nothing was run on a GPU: {not_run}");
        }
        if let Some(executed) = &self.executed {
            let _ = writeln!(text, "{executed}");
        }
        text
    }

    /// Writes the JSON.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_json(&self, path: &Path) -> Result<()> {
        let json = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))
    }
}
