//! The corpus under compute-sanitizer: each image under each tool, and what was reported of which
//! kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::{Job, LEVELS, Warps, cases, image};
use crate::child::{self, ChildJob};
use crate::driver::Driver;
use crate::driver::isolate::ChildFailure;
use crate::driver::sanitizer::{Sanitizer, Tool};

/// Reports that a tool writes for one process at most.
const REPORTS: u32 = 200;

/// After so many kernels that end their process, each alone, the tool is taken for broken on this image.
const CRASHES: usize = 3;

/// ptxas writes a `wgmma.commit_group` that has no multiplication before it as one of which nothing is executed
/// (`HGMMA RZ, gdesc[URZ], RZ, !UPT`). memcheck takes its empty descriptor for a read of the first 2048 bytes of shared
/// memory, which the kernels do not have, and ends them.
const EMPTY_GROUP: &str = "_wgmma_commit";

/// What to run, and for how long.
#[derive(Debug)]
pub struct Options {
    /// The tools.
    pub tools: Vec<Tool>,
    /// The optimisation levels of the images.
    pub levels: Vec<char>,
    /// For everything together; what has not begun by then is not run, and reported so.
    pub limit: Duration,
    /// Where the first of equal reports go, word by word.
    pub log: PathBuf,
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
    /// Kernels that the tool is wrong about, which are not run under it.
    left_out: Vec<String>,
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
    /// The first of them.
    #[serde(skip)]
    first: String,
}

impl Report {
    /// Whether all kernels ran and are right, and the tools found nothing.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.runs.iter().all(|run| self.is_right(run))
    }

    fn is_right(&self, run: &Run) -> bool {
        run.right + run.left_out.len() == self.kernels.len()
            && run.reports.is_empty()
            && run.failures.is_empty()
    }

    /// A line for each run, and one for each finding.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut lines = Vec::new();
        for run in &self.runs {
            lines.push(format!(
                "{} {} at level {}: {} of {} kernels right, {} left out, {} reports ({:.1} s)",
                if self.is_right(run) { "ok" } else { "FAILED" },
                run.tool,
                run.level,
                run.right,
                self.kernels.len(),
                run.left_out.len(),
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
    fn new(tool: Tool, level: char) -> Self {
        Self {
            tool: tool.to_string(),
            level,
            seconds: 0.0,
            left_out: Vec::new(),
            right: 0,
            reports: Vec::new(),
            failures: Vec::new(),
            summary: Vec::new(),
        }
    }

    /// The tool's words, one report of a kind.
    fn log(&self) -> String {
        let mut lines = vec![format!("== {} at level {}", self.tool, self.level)];
        for found in &self.reports {
            lines.push(format!("{}\n  (and {} more)", found.first, found.count - 1));
        }
        lines.extend(self.summary.iter().cloned());
        lines.join("\n") + "\n"
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
    let mut report = Report {
        gpu,
        driver: cuda,
        sanitizer: Sanitizer::find(Tool::Memcheck)?.version()?,
        seconds: 0.0,
        kernels: cases(Warps::Apart)
            .into_iter()
            .map(|case| case.kernel)
            .collect(),
        runs: Vec::new(),
    };
    let start = Instant::now();
    let mut log = String::new();
    for &level in &options.levels {
        for &tool in &options.tools {
            let mut process = Process {
                sanitizer: Sanitizer::find(tool)?,
                image: image(folder, level),
                end: start + options.limit,
                text: String::new(),
                crashes: 0,
            };
            let begin = Instant::now();
            let mut run = Run::new(tool, level);
            let wrong = |kernel: &String| tool == Tool::Memcheck && kernel.ends_with(EMPTY_GROUP);
            let kernels: Vec<String>;
            (run.left_out, kernels) = report.kernels.iter().cloned().partition(wrong);
            process.run(&kernels, &mut run)?;
            (run.reports, run.summary) = findings(&process.text, &report.kernels);
            run.seconds = begin.elapsed().as_secs_f64();
            eprintln!("{tool} at level {level}: {:.1} s", run.seconds);
            log += &run.log();
            report.runs.push(run);
        }
    }
    report.seconds = start.elapsed().as_secs_f64();
    fs::write(&options.log, log)
        .with_context(|| format!("cannot write {}", options.log.display()))?;
    Ok(report)
}

/// How one image is run under one tool.
struct Process {
    sanitizer: Sanitizer,
    image: PathBuf,
    end: Instant,
    /// What the tool wrote.
    text: String,
    /// Kernels that ended their process, each alone.
    crashes: usize,
}

impl Process {
    /// Runs kernels in one process. One that fails spoils it: the ones after it get another.
    fn run(&mut self, mut kernels: &[String], run: &mut Run) -> Result<()> {
        while !kernels.is_empty() {
            let failure = match self.start(kernels)? {
                None => {
                    run.right += kernels.len();
                    return Ok(());
                }
                Some(failure) => failure.headline(),
            };
            // A job's failure begins with the kernel's name.
            let failed = kernels
                .iter()
                .position(|kernel| failure.starts_with(&format!("{kernel}: ")));
            let Some(failed) = failed else {
                return self.halve(kernels, failure, run);
            };
            run.right += failed;
            run.failures.push(failure);
            kernels = &kernels[failed + 1..];
        }
        Ok(())
    }

    /// What goes wrong with kernels in one process, if anything does.
    fn start(&mut self, kernels: &[String]) -> Result<Option<ChildFailure>> {
        let job = ChildJob::Corpus(Job {
            image: self.image.clone(),
            kernels: Some(kernels.to_vec()),
            // The rule of CUDA C++ that it checks is stricter than that of PTX.
            warps: match self.sanitizer.tool() {
                Tool::Synccheck => Warps::Together,
                _ => Warps::Apart,
            },
        });
        let log = tempfile::NamedTempFile::new()?;
        let sanitizer = self.sanitizer.log(log.path(), REPORTS);
        let left = self.end.saturating_duration_since(Instant::now());
        let result = child::run_under::<usize>(&sanitizer, &job, left);
        self.text += &fs::read_to_string(log.path())?;
        Ok(match result {
            // What it found is in the log.
            Ok(_) | Err(ChildFailure::Sanitizer { .. }) => None,
            Err(failure) => Some(failure),
        })
    }

    /// Finds the kernels that end their process without a word.
    fn halve(&mut self, kernels: &[String], failure: String, run: &mut Run) -> Result<()> {
        if let [kernel] = kernels {
            self.crashes += 1;
            run.failures.push(format!("{kernel}: {failure}"));
            return Ok(());
        }
        let (first, second) = kernels.split_at(kernels.len() / 2);
        for half in [first, second] {
            if self.crashes >= CRASHES || Instant::now() >= self.end {
                run.failures.push(format!(
                    "{} kernels, {} to {}, were not run: {failure}",
                    half.len(),
                    half[0],
                    half[half.len() - 1]
                ));
            } else {
                self.run(half, run)?;
            }
        }
        Ok(())
    }
}

/// The reports in a log, and its summary.
fn findings(log: &str, kernels: &[String]) -> (Vec<Finding>, Vec<String>) {
    let mut reports: Vec<String> = Vec::new();
    let mut summary: Vec<String> = Vec::new();
    for line in log.lines() {
        let line = line.trim_start_matches('=');
        let line = line.strip_prefix(' ').unwrap_or(line);
        if line.contains("SUMMARY") {
            if !summary.iter().any(|known| known == line) {
                summary.push(line.to_owned());
            }
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
    let mut findings: Vec<Finding> = Vec::new();
    for report in reports {
        let kernel = report
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .find(|word| kernels.iter().any(|kernel| kernel == word))
            .map(str::to_owned);
        let what = report.lines().next().unwrap_or_default();
        let what = what.split(" at ").next().unwrap_or(what).to_owned();
        match findings
            .iter_mut()
            .find(|known| known.kernel == kernel && known.what == what)
        {
            Some(known) => known.count += 1,
            None => findings.push(Finding {
                kernel,
                what,
                count: 1,
                first: report,
            }),
        }
    }
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
        let found: Vec<_> = findings
            .iter()
            .map(|found| (found.kernel.as_deref(), &*found.what, found.count))
            .collect();
        assert_eq!(
            found,
            [
                (
                    Some("order_exchange"),
                    "Error: Race reported between Write access",
                    2
                ),
                (
                    Some("join_shfl"),
                    "Barrier error detected. Divergent thread(s) in warp.",
                    1
                ),
                (None, "Internal error", 1),
            ]
        );
        assert!(findings[0].first.ends_with("[1024 hazards]"));
        assert_eq!(summary, ["ERROR SUMMARY: 4 errors"]);
    }

    #[test]
    fn a_clean_log_has_no_findings() {
        let log = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n";
        assert_eq!(findings(log, &[]).0, []);
    }
}
