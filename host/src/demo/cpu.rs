//! The guide's kernels on the CPU, which executes their PTX.

use std::path::Path;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result};

use super::{GpuResult, Images};
use crate::exec::Program;
use crate::guide::{self, Job, Language, Outcome};

/// What became of the launches.
#[derive(Debug, Clone)]
pub struct CpuRun {
    /// Why nothing was executed, if so.
    skipped: Option<String>,
    /// Per kernel, what went wrong.
    failures: Vec<(&'static str, String)>,
    total: Outcome,
    schedules: u64,
}

impl CpuRun {
    /// Executes every case of both languages under as many schedules as asked for, smaller than on a
    /// GPU.
    ///
    /// # Errors
    /// If an image cannot be read or has an instruction that is not executed.
    pub fn launch(images: &Images, input: Option<&Path>, schedules: u64) -> Result<Self> {
        let programs = [
            (Language::Rust, images.rust_ptx()),
            (Language::Cpp, images.cpp_ptx()),
        ]
        .map(|(language, path)| {
            let read = || Program::parse(&std::fs::read_to_string(&path)?);
            let program = read().with_context(|| format!("cannot execute {}", path.display()))?;
            Ok::<_, anyhow::Error>((language, path, program))
        });
        let [rust, cpp] = programs;
        let programs = [rust?, cpp?];
        let cases = guide::cases();
        let jobs = programs.iter().flat_map(|(language, path, program)| {
            cases.map(move |case| {
                let job = Job {
                    case,
                    language: *language,
                    image: path.clone(),
                    input: input.map(Path::to_path_buf),
                };
                (job, program)
            })
        });
        let jobs: Mutex<Vec<_>> = Mutex::new(jobs.collect());
        let results = Mutex::new(Vec::new());
        let workers = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some((job, program)) = take(&jobs) {
                        let result = run(&job, program, schedules);
                        lock(&results).push((job, result));
                    }
                });
            }
        });
        let mut run = Self {
            skipped: None,
            failures: Vec::new(),
            total: Outcome {
                launches: 0,
                elements: 0,
            },
            schedules,
        };
        for (job, result) in lock(&results).drain(..) {
            match result {
                Ok(outcome) => {
                    run.total.launches += outcome.launches;
                    run.total.elements += outcome.elements;
                }
                Err(error) => run
                    .failures
                    .push((job.case.name(), format!("on the CPU: {error:#}"))),
            }
        }
        Ok(run)
    }

    /// Nothing was executed.
    #[must_use]
    pub fn skipped(reason: impl Into<String>) -> Self {
        Self {
            skipped: Some(reason.into()),
            failures: Vec::new(),
            total: Outcome {
                launches: 0,
                elements: 0,
            },
            schedules: 0,
        }
    }

    /// How a kernel did, and what there is to say of it.
    #[must_use]
    pub fn result(&self, kernel: &str) -> (GpuResult, String) {
        if self.skipped.is_some() {
            return (GpuResult::Skipped, String::new());
        }
        if guide::Case::of_kernel(kernel).is_none() {
            return (
                GpuResult::Failed,
                "no launch of this kernel is known".to_owned(),
            );
        }
        let of_kernel = self.failures.iter().filter(|(name, _)| *name == kernel);
        let reasons: Vec<&str> = of_kernel.map(|(_, reason)| reason.as_str()).collect();
        match reasons.is_empty() {
            true => (GpuResult::Ok, String::new()),
            false => (GpuResult::Failed, reasons.join("; ")),
        }
    }

    /// What was executed, in one line; nothing if nothing was.
    #[must_use]
    pub fn summary(&self) -> Option<String> {
        if self.skipped.is_some() {
            return None;
        }
        let Outcome { launches, elements } = self.total;
        let schedules = self.schedules;
        let schedules = match schedules {
            1 => "one schedule".to_owned(),
            n => format!("{n} schedules"),
        };
        Some(format!(
            "executed on the CPU under {schedules}: {launches} launches, {elements} elements \
             checked; smaller than on a GPU, `producer_consumer` streams at most {} floats",
            guide::CPU_LEN
        ))
    }
}

fn run(job: &Job, program: &Program, schedules: u64) -> Result<Outcome> {
    let mut total = Outcome {
        launches: 0,
        elements: 0,
    };
    for schedule in 0..schedules {
        // Launches count schedules up; far apart, no two runs share any.
        let outcome = job.run_on_cpu(program, schedule << 32)?;
        total.launches += outcome.launches;
        total.elements += outcome.elements;
    }
    Ok(total)
}

fn take<T>(jobs: &Mutex<Vec<T>>) -> Option<T> {
    lock(jobs).pop()
}

/// A worker that panicked has lost its own result alone.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
