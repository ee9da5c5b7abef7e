//! The corpus under compute-sanitizer: each image under each tool, and what was reported of which
//! kernel.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::{Job, LEVELS, cases, image};
use crate::child::{self, ChildJob};
use crate::driver::Driver;
use crate::driver::isolate::ChildFailure;
use crate::driver::sanitizer::{Sanitizer, Tool};

/// Reports that a log holds at most.
const REPORTS: u32 = 200;

/// What to run, and for how long.
#[derive(Debug)]
pub struct Options {
    /// The tools.
    pub tools: Vec<Tool>,
    /// The optimisation levels of the images.
    pub levels: Vec<char>,
    /// For everything together; what has not begun by then is not run, and reported so.
    pub limit: Duration,
    /// Where the logs go.
    pub logs: PathBuf,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Report {
    gpu: String,
    /// The CUDA version that the driver supports.
    driver: String,
    sanitizer: String,
    seconds: f64,
    /// The kernels of each run.
    kernels: Vec<String>,
    runs: Vec<Run>,
}

/// One image under one tool.
#[derive(Debug, Serialize)]
struct Run {
    tool: String,
    level: char,
    seconds: f64,
    /// Kernels that left in memory what they must.
    right: usize,
    /// What the tool reported; kernels that are not named have no report.
    reports: Vec<Finding>,
    /// Kernels that failed or were wrong, and why the rest was not run, if it was not.
    failures: Vec<String>,
    /// The tool's own summary.
    summary: Vec<String>,
}

/// Equal reports of one kernel.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct Finding {
    /// None where the report does not say.
    kernel: Option<String>,
    what: String,
    count: usize,
}

impl Report {
    /// Whether all kernels ran and are right, and the tools found nothing.
    #[must_use]
    pub fn holds(&self) -> bool {
        let holds = |run: &Run| run.holds(self.kernels.len());
        self.runs.iter().all(holds)
    }

    /// A line for each run, and one for each finding.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut lines = Vec::new();
        for run in &self.runs {
            lines.push(format!(
                "{} {} at level {}: {} of {} kernels right, {} reports ({:.1} s)",
                if run.holds(self.kernels.len()) {
                    "ok"
                } else {
                    "FAILED"
                },
                run.tool,
                run.level,
                run.right,
                self.kernels.len(),
                run.reports.iter().map(|found| found.count).sum::<usize>(),
                run.seconds,
            ));
            for found in &run.reports {
                let kernel = found.kernel.as_deref().unwrap_or("(no kernel named)");
                lines.push(format!("    {kernel}: {} × {}", found.count, found.what));
            }
            lines.extend(run.failures.iter().map(|failure| format!("    {failure}")));
        }
        lines.join("\n")
    }
}

impl Run {
    fn holds(&self, kernels: usize) -> bool {
        self.right == kernels && self.reports.is_empty() && self.failures.is_empty()
    }
}

/// Runs the images in `folder`.
///
/// # Errors
/// If a level has no image, there is no GPU or no compute-sanitizer, or the logs cannot be written.
pub fn run(folder: &Path, options: &Options) -> Result<Report> {
    if let Some(level) = options.levels.iter().find(|level| !LEVELS.contains(level)) {
        bail!("expected optimisation levels among {LEVELS:?}, found '{level}'");
    }
    let driver = Driver::open()?;
    let (gpu, cuda) = (driver.gpu_name()?, driver.cuda_version().to_string());
    drop(driver);
    fs::create_dir_all(&options.logs)
        .with_context(|| format!("cannot create {}", options.logs.display()))?;
    let mut report = Report {
        gpu,
        driver: cuda,
        sanitizer: Sanitizer::find(Tool::Memcheck)?.version()?,
        seconds: 0.0,
        kernels: cases().into_iter().map(|case| case.kernel).collect(),
        runs: Vec::new(),
    };
    let start = Instant::now();
    for &level in &options.levels {
        for &tool in &options.tools {
            let log = options.logs.join(format!("{tool}-{level}.log"));
            let left = options.limit.saturating_sub(start.elapsed());
            let sanitizer = Sanitizer::find(tool)?;
            let run = under(&sanitizer, &image(folder, level), level, &log, left)?;
            eprintln!("{tool} at level {level}: {:.1} s", run.seconds);
            report.runs.push(run);
        }
    }
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

/// Runs one image under one tool. A kernel that fails spoils its process: the ones after it get
/// another.
fn under(
    sanitizer: &Sanitizer,
    image: &Path,
    level: char,
    log: &Path,
    limit: Duration,
) -> Result<Run> {
    let start = Instant::now();
    let mut kernels: Vec<String> = cases().into_iter().map(|case| case.kernel).collect();
    let names = kernels.clone();
    let mut run = Run {
        tool: sanitizer.tool().to_string(),
        level,
        seconds: 0.0,
        right: 0,
        reports: Vec::new(),
        failures: Vec::new(),
        summary: Vec::new(),
    };
    let mut text = String::new();
    while !kernels.is_empty() {
        let left = limit.saturating_sub(start.elapsed());
        if left.is_zero() {
            run.failures.push(not_run(&kernels, "the time was over"));
            break;
        }
        let job = ChildJob::Corpus(Job {
            image: image.to_path_buf(),
            kernels: Some(kernels.clone()),
        });
        let result = child::run_under::<usize>(&sanitizer.log(log, REPORTS), &job, left);
        text += &fs::read_to_string(log).unwrap_or_default();
        let failure = match result {
            // What it found is in the log.
            Ok(_) | Err(ChildFailure::Sanitizer { .. }) => {
                run.right += kernels.len();
                break;
            }
            Err(failure) => failure.headline(),
        };
        // A job's failure begins with the kernel's name.
        let failed = kernels
            .iter()
            .position(|kernel| failure.starts_with(&format!("{kernel}: ")));
        let Some(failed) = failed else {
            run.failures.push(not_run(&kernels, &failure));
            break;
        };
        run.right += failed;
        run.failures.push(failure);
        kernels.drain(..=failed);
    }
    fs::write(log, &text).with_context(|| format!("cannot write {}", log.display()))?;
    (run.reports, run.summary) = findings(&text, &names);
    run.seconds = start.elapsed().as_secs_f64();
    Ok(run)
}

fn not_run(kernels: &[String], why: &str) -> String {
    format!(
        "not known of {} kernels, {} to {}: {why}",
        kernels.len(),
        kernels[0],
        kernels[kernels.len() - 1]
    )
}

/// The reports in a log, and its summary.
fn findings(log: &str, kernels: &[String]) -> (Vec<Finding>, Vec<String>) {
    let mut reports: Vec<String> = Vec::new();
    let mut summary = Vec::new();
    for line in log.lines() {
        let line = line.trim_start_matches('=');
        let line = line.strip_prefix(' ').unwrap_or(line);
        if line.contains("SUMMARY") {
            summary.push(line.to_owned());
        } else if line.starts_with(' ') {
            // The lines of a report behind its first are indented.
            if let Some(report) = reports.last_mut() {
                report.push('\n');
                report.push_str(line);
            }
        } else if !line.is_empty() && !line.starts_with("COMPUTE-SANITIZER") {
            reports.push(line.to_owned());
        }
    }
    let mut counts: BTreeMap<(Option<&str>, &str), usize> = BTreeMap::new();
    for report in &reports {
        let kernel = report
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .find(|word| kernels.iter().any(|kernel| kernel == word));
        let what = report.lines().next().unwrap_or_default();
        let what = what.split(" at ").next().unwrap_or(what);
        *counts.entry((kernel, what)).or_default() += 1;
    }
    let findings = counts
        .into_iter()
        .map(|((kernel, what), count)| Finding {
            kernel: kernel.map(str::to_owned),
            what: what.to_owned(),
            count,
        })
        .collect();
    (findings, summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_counted_by_kernel() {
        let log = "\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at order_exchange+0x1a0 in order.rs:30
=========     and Read access at order_exchange+0x2b0 in order.rs:33 [1024 hazards]
=========
========= Error: Race reported between Write access at order_exchange+0x1c0 in order.rs:31
=========     and Read access at order_exchange+0x2b0 in order.rs:33 [32 hazards]
=========
========= Barrier error detected. Divergent thread(s) in warp.
=========     at __nv_helper+0x20 in shapes.rs:12
=========     by thread (1,0,0) in block (0,0,0)
=========         Device Frame: join_shfl+0x90 in shapes.rs:40
=========
========= Internal error
========= ERROR SUMMARY: 4 errors
";
        let kernels = ["order_exchange", "join_shfl"].map(String::from);
        let (findings, summary) = findings(log, &kernels);
        let found = |kernel: Option<&str>, what: &str, count| Finding {
            kernel: kernel.map(String::from),
            what: what.to_owned(),
            count,
        };
        assert_eq!(
            findings,
            [
                found(None, "Internal error", 1),
                found(
                    Some("join_shfl"),
                    "Barrier error detected. Divergent thread(s) in warp.",
                    1
                ),
                found(
                    Some("order_exchange"),
                    "Error: Race reported between Write access",
                    2
                ),
            ]
        );
        assert_eq!(summary, ["ERROR SUMMARY: 4 errors"]);
    }

    #[test]
    fn a_clean_log_has_no_findings() {
        let log = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n";
        assert_eq!(findings(log, &[]).0, []);
    }
}
