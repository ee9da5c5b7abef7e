//! What a host program does in its child processes: every job that launches kernels.

use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Result;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bench;
use crate::differential::{execute, misuse};
use crate::driver::isolate::{self, ChildFailure, Isolate};
use crate::driver::sanitizer::{SLOWDOWN, Sanitizer, Tool};
use crate::{barriers, corpus, guide, ported, wgmma};

/// The first argument of a child process; no command has this name.
const ARGUMENT: &str = "isolated-job";

/// A job for a child process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ChildJob {
    /// The launches of a kernel of the guide.
    Guide(guide::Job),
    /// A paired timing.
    Timing(guide::TimingJob),
    /// Paired timings of every kernel of the guide.
    Pairs(guide::PairsJob),
    /// The launches of the ported kernel.
    Ported(ported::Job),
    /// The matrix products of one element type.
    Wgmma(wgmma::Job),
    /// The kernels with typed barriers.
    Barriers(barriers::Job),
    /// Timing of instruction forms.
    Bench(bench::job::FormsJob),
    /// Timing of a situation.
    Situation(bench::situation_job::SituationJob),
    /// The runnable kernels of the corpus.
    Corpus(corpus::Job),
    /// A kernel that must fail.
    Fault(guide::FaultJob),
    /// Forms in both languages.
    Differential(execute::Job),
    /// A form that makes its launch fail.
    Failing(execute::FailingJob),
    /// A rule broken on purpose.
    Misuse(misuse::Job),
}

/// Does the job and never returns, if this process is a child. A program that runs jobs calls this
/// first in `main`.
pub fn serve_if_child() {
    if std::env::args().nth(1).as_deref() == Some(ARGUMENT) {
        isolate::serve(perform);
    }
}

fn perform(job: ChildJob) -> Result<Value> {
    Ok(match job {
        ChildJob::Guide(job) => serde_json::to_value(job.run()?)?,
        ChildJob::Timing(job) => serde_json::to_value(job.run()?)?,
        ChildJob::Pairs(job) => serde_json::to_value(job.run()?)?,
        ChildJob::Ported(job) => serde_json::to_value(job.run()?)?,
        ChildJob::Wgmma(job) => serde_json::to_value(job.run()?)?,
        ChildJob::Barriers(job) => serde_json::to_value(job.run()?)?,
        ChildJob::Bench(job) => serde_json::to_value(job.run()?)?,
        ChildJob::Situation(job) => serde_json::to_value(job.run()?)?,
        ChildJob::Corpus(job) => serde_json::to_value(job.run()?)?,
        ChildJob::Fault(job) => serde_json::to_value(job.run()?)?,
        ChildJob::Differential(job) => serde_json::to_value(job.run()?)?,
        ChildJob::Failing(job) => serde_json::to_value(job.run()?)?,
        ChildJob::Misuse(job) => serde_json::to_value(job.run()?)?,
    })
}

/// What looks at child processes, if anything does.
static SANITIZER: OnceLock<Sanitizer> = OnceLock::new();

/// Has compute-sanitizer look at all child processes from now on.
///
/// # Errors
/// If it is not installed.
pub fn sanitize(tool: Tool) -> Result<()> {
    let sanitizer = Sanitizer::find(tool)?;
    SANITIZER.get_or_init(|| sanitizer);
    Ok(())
}

/// What looks at child processes. A caller leaves out jobs that break rules on purpose, and timing.
#[must_use]
pub fn sanitizer() -> Option<&'static Sanitizer> {
    SANITIZER.get()
}

/// Runs a job in a child process under a sanitizer of its own, for at most `limit`.
///
/// # Errors
/// If the job fails, hangs or ends its process, or the sanitizer finds something.
pub fn run_under<R: DeserializeOwned>(
    sanitizer: &Sanitizer,
    job: &ChildJob,
    limit: Duration,
) -> Result<R, ChildFailure> {
    Isolate::new([ARGUMENT]).under(sanitizer).run(job, limit)
}

/// Runs a job in a child process, for at most `limit`, which is longer under a sanitizer.
///
/// # Errors
/// If the job fails, hangs or ends its process, or the sanitizer finds something; whatever happens, later jobs are
/// not concerned.
pub fn run<R: DeserializeOwned>(job: &ChildJob, limit: Duration) -> Result<R, ChildFailure> {
    let isolate = Isolate::new([ARGUMENT]);
    match sanitizer() {
        None => isolate.run(job, limit),
        Some(sanitizer) => isolate.under(sanitizer).run(job, limit * SLOWDOWN),
    }
}
