//! What a bundle checks on a GPU beyond the demonstration: PTX that the driver compiles, kernels that
//! hang and fault, the driver module's own tests, every form in both languages, and how fast the
//! stream is in both.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use crate::bundle::Bundle;
use crate::child::{self, ChildJob};
use crate::differential;
use crate::driver::Driver;
use crate::driver::isolate::ChildFailure;
use crate::guide::{
    self, Case, Fault, FaultJob, Job, Language, Outcome, Pairs, PairsJob, Timing, TimingJob,
};
use crate::{barriers, corpus, ported, wgmma};

/// Enough for a kernel that returns at once.
const HANG_LIMIT: Duration = Duration::from_secs(10);

/// How many pairs of launches are timed.
const PAIRS: u32 = 101;

/// Everything that was checked.
#[derive(Debug, Serialize)]
pub struct SelfTest {
    gpu: String,
    /// The CUDA version that the driver supports.
    driver: String,
    /// The tool of compute-sanitizer that looked at it; what breaks rules on purpose, and timing, was left out then.
    #[serde(skip_serializing_if = "Option::is_none")]
    sanitizer: Option<String>,
    checks: Vec<Check>,
    /// `producer_consumer` in both languages; absent if it failed.
    producer_consumer: Option<Timing>,
    /// Every kernel of the guide in both languages; empty if one failed.
    kernels: Vec<Pairs>,
    /// Every form in both languages; absent if it could not be run.
    differential: Option<differential::report::Report>,
    /// What the name of a check must have in it.
    #[serde(skip)]
    filter: String,
}

/// One check.
#[derive(Debug, Serialize)]
struct Check {
    name: String,
    passed: bool,
    seconds: f64,
    /// What happened, or what was wrong.
    remark: String,
}

impl SelfTest {
    /// Runs the checks that have `filter` in their name, also behind one that fails.
    ///
    /// # Errors
    /// If there is no GPU to run them on, or no check has such a name.
    pub fn run(bundle: &Bundle, filter: &str) -> Result<Self> {
        let driver = Driver::open()?;
        let mut test = Self {
            gpu: driver.gpu_name()?,
            driver: driver.cuda_version().to_string(),
            sanitizer: child::sanitizer().map(|sanitizer| sanitizer.tool().to_string()),
            checks: Vec::new(),
            producer_consumer: None,
            kernels: Vec::new(),
            differential: None,
            filter: filter.to_owned(),
        };
        drop(driver);
        let images = bundle.images();
        for case in guide::cases() {
            for (language, image) in [
                (Language::Rust, images.rust_cubin()),
                (Language::Rust, images.rust_ptx()),
                (Language::Cpp, images.cpp_cubin()),
            ] {
                test.guide(case, language, image);
            }
        }
        for (language, image) in [Language::Rust, Language::Cpp]
            .into_iter()
            .zip(bundle.ported())
        {
            test.check(format!("transpose_multicast in {language}, cubin"), || {
                let job = ChildJob::Ported(ported::Job { image });
                let launches: u32 = child::run(&job, guide::LIMIT)?;
                Ok(format!("{launches} launches"))
            });
        }
        test.check("typed barriers beyond the guide", || {
            let job = ChildJob::Barriers(barriers::Job {
                image: bundle.barriers(),
            });
            let launches: u32 = child::run(&job, guide::LIMIT)?;
            Ok(format!("{launches} launches"))
        });
        for element in wgmma::Element::ALL {
            test.check(format!("{} in Rust and C++, cubin", element.kernel()), || {
                let job = ChildJob::Wgmma(wgmma::Job {
                    images: bundle.wgmma(),
                    element,
                });
                let outcome: wgmma::Outcome = child::run(&job, guide::LIMIT)?;
                Ok(format!(
                    "{} launches, off by at most {:.2} of what the model allows, and by {:.1e} of the products' magnitudes",
                    outcome.launches, outcome.error.of_bound, outcome.error.of_products
                ))
            });
        }
        for level in corpus::LEVELS {
            test.check(format!("the corpus at level {level}"), || {
                let kernels = corpus::run_in_child(&bundle.corpus(level))?;
                Ok(format!("{kernels} kernels"))
            });
        }
        test.differential(bundle);
        if child::sanitizer().is_none() {
            test.faults(bundle);
            test.check("the driver module's tests", || driver_tests(bundle));
            test.timing(bundle);
        }
        Ok(test)
    }

    /// Whether all checks passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }

    /// The timing, and how many checks passed.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut lines = Vec::new();
        if let Some(timing) = &self.producer_consumer {
            let [rust, cpp] = timing.gigabytes_per_second;
            let [low, high] = timing.ratio_quartiles;
            lines.push(format!(
                "producer_consumer, {} bytes: Rust {rust:.0} GB/s, C++ {cpp:.0} GB/s; time of Rust / C++ {:.3} (quartiles {low:.3} to {high:.3}, {} pairs)",
                timing.bytes, timing.ratio, timing.milliseconds.len()
            ));
        }
        for pairs in &self.kernels {
            let [rust, cpp] = pairs.median_microseconds;
            let [low, high] = pairs.ratio_quartiles;
            lines.push(format!(
                "{}: Rust {rust:.1} us, C++ {cpp:.1} us; time of Rust / C++ {:.3} (quartiles {low:.3} to {high:.3})",
                pairs.kernel, pairs.ratio
            ));
        }
        let failed = self.checks.iter().filter(|check| !check.passed).count();
        lines.push(format!(
            "{} passed, {failed} failed",
            self.checks.len() - failed
        ));
        lines.join("\n")
    }

    fn check(&mut self, name: impl Into<String>, run: impl FnOnce() -> Result<String>) {
        let name = name.into();
        if !name.contains(&self.filter) {
            return;
        }
        let start = Instant::now();
        let result = run();
        let check = Check {
            name,
            passed: result.is_ok(),
            seconds: start.elapsed().as_secs_f64(),
            remark: result.unwrap_or_else(|error| format!("{error:#}")),
        };
        eprintln!("{}", check.line());
        self.checks.push(check);
    }

    fn guide(&mut self, case: Case, language: Language, image: PathBuf) {
        let kind = image.extension().unwrap_or_default().display().to_string();
        let job = ChildJob::Guide(Job {
            case,
            language,
            image,
            input: None,
        });
        self.check(format!("{} in {language}, {kind}", case.name()), || {
            let outcome: Outcome = child::run(&job, guide::LIMIT)?;
            Ok(format!(
                "{} launches, {} elements",
                outcome.launches, outcome.elements
            ))
        });
    }

    /// A kernel that hangs is killed, one that faults is named, and the next one runs.
    fn faults(&mut self, bundle: &Bundle) {
        let job = |fault| {
            ChildJob::Fault(FaultJob {
                fault,
                image: bundle.faults(),
            })
        };
        self.check(
            "a kernel that hangs is killed at its limit",
            || match child::run::<()>(&job(Fault::Hang), HANG_LIMIT) {
                Err(failure @ ChildFailure::Hung { .. }) => Ok(failure.headline()),
                other => bail!("expected a hung kernel, found {other:?}"),
            },
        );
        self.check(
            "a kernel that faults is reported by name",
            || match child::run::<()>(&job(Fault::Fault), guide::LIMIT) {
                Err(ChildFailure::Driver { error, .. })
                    if &*error.name == "CUDA_ERROR_ILLEGAL_ADDRESS" =>
                {
                    Ok(error.name.to_string())
                }
                other => bail!("expected CUDA_ERROR_ILLEGAL_ADDRESS, found {other:?}"),
            },
        );
        let panics = [
            (Fault::Panic, bundle.faults(), "n is not zero"),
            (
                Fault::OddCopy,
                bundle.debug_faults(),
                "cp.async.bulk: `size` is not a multiple of 16",
            ),
        ];
        for (fault, image, message) in panics {
            self.check(format!("a panic says where, and \"{message}\""), || {
                let job = ChildJob::Fault(FaultJob { fault, image });
                match child::run::<()>(&job, guide::LIMIT) {
                    Err(failure) if is_reported_panic(&failure, message) => {
                        Ok(failure.output().trim().to_owned())
                    }
                    other => bail!("expected CUDA_ERROR_ASSERT and the message, found {other:?}"),
                }
            });
        }
        self.guide(
            Case::InitBarrier,
            Language::Rust,
            bundle.images().rust_cubin(),
        );
    }

    fn differential(&mut self, bundle: &Bundle) {
        let mut found = None;
        self.check("every form in Rust, in C++ and by the PTX ISA", || {
            let (report, _) =
                differential::run(bundle.folder(), &differential::Options::default())?;
            let summary = report.summary();
            let holds = report.holds();
            found = Some(report);
            ensure!(holds, "{summary}");
            Ok(summary)
        });
        self.differential = found;
    }

    fn timing(&mut self, bundle: &Bundle) {
        let images = bundle.images();
        let job = ChildJob::Timing(TimingJob {
            rust_image: images.rust_cubin(),
            cpp_image: images.cpp_cubin(),
            input: None,
            pairs: PAIRS,
        });
        let mut timing = None;
        self.check("producer_consumer, timed in pairs", || {
            timing = Some(child::run::<Timing>(&job, guide::LIMIT)?);
            Ok(format!("{PAIRS} pairs"))
        });
        self.producer_consumer = timing;

        let images = bundle.images();
        let job = ChildJob::Pairs(PairsJob {
            rust_image: images.rust_cubin(),
            cpp_image: images.cpp_cubin(),
            pairs: PAIRS,
        });
        let mut kernels = Vec::new();
        self.check("every kernel, timed in pairs", || {
            kernels = child::run::<Vec<Pairs>>(&job, guide::LIMIT)?;
            Ok(format!("{} kernels, {PAIRS} pairs each", kernels.len()))
        });
        self.kernels = kernels;
    }
}

impl Check {
    fn line(&self) -> String {
        let verdict = if self.passed { "ok" } else { "FAILED" };
        format!(
            "{verdict} {} ({:.1} s): {}",
            self.name, self.seconds, self.remark
        )
    }
}

/// Whether the driver wrote the panic's message, and its file and line.
fn is_reported_panic(failure: &ChildFailure, message: &str) -> bool {
    let ChildFailure::Driver { error, output, .. } = failure else {
        return false;
    };
    &*error.name == "CUDA_ERROR_ASSERT" && output.contains(".rs:") && output.contains(message)
}

fn driver_tests(bundle: &Bundle) -> Result<String> {
    let output = Command::new(bundle.gpu_tests())
        .arg("--include-ignored")
        .output()
        .with_context(|| format!("cannot run {}", bundle.gpu_tests().display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{text}");
    let summary = text
        .lines()
        .rev()
        .find(|line| line.starts_with("test result:"));
    Ok(summary.context("the tests wrote no summary")?.to_owned())
}
