//! All forms on the GPU, in child processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::execute::{FailingJob, Finding, Job, Outputs, check_runnable};
use super::golden::Golden;
use super::images::Images;
use super::misuse::{self, Misuse};
use super::mutants::MUTANTS;
use super::report::{MutantLine, Provenance, Report, today};
use super::scenario;
use crate::child::{self, ChildJob};
use crate::driver::Driver;
use crate::driver::isolate::ChildFailure;

/// Forms of a child process.
const BATCH: usize = 32;

/// Ample time for a batch.
const BATCH_LIMIT: Duration = Duration::from_secs(40);

/// Ample time for one form.
const FORM_LIMIT: Duration = Duration::from_secs(10);

/// Child processes at a time.
const WORKERS: usize = 4;

/// The seeds of a run.
pub const SEEDS: [u64; 3] = [1, 2, 3];

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// One form, by the name of its kernel.
    pub form: Option<String>,
    /// One seed, not all.
    pub seed: Option<u64>,
    /// A file for what each launch gives that is not just what is expected; only with one form.
    pub outputs: Option<PathBuf>,
}

/// Runs the forms and gives the report.
///
/// # Errors
///
/// There is no GPU, the images are not there, or the form asked for does not exist.
pub fn run(folder: &Path, options: &Options) -> Result<(Report, Golden)> {
    let start = Instant::now();
    let images = Images::in_folder(folder)?;
    let driver = Driver::open()?;
    let (device, cuda) = (driver.gpu_name()?, driver.cuda_version().to_string());
    drop(driver);
    let sanitizer = child::sanitizer().map(|sanitizer| sanitizer.tool().to_string());
    let seeds = match options.seed {
        Some(seed) => vec![seed],
        None if sanitizer.is_some() => vec![SEEDS[0]],
        None => SEEDS.to_vec(),
    };
    let forms = match &options.form {
        None => runnable(&images),
        Some(name) => {
            let is_it = |entry: &super::Entry| entry.form.kernel == *name;
            let form = images
                .entries
                .iter()
                .position(is_it)
                .with_context(|| format!("there is no form {name}"))?;
            check_runnable(&images, form)?;
            vec![form]
        }
    };
    if let (Some(file), [form]) = (&options.outputs, &forms[..]) {
        write_outputs(folder, *form, &seeds, file)?;
    }
    let findings = run_forms(folder, &images, &forms, &seeds);
    let whole = options.form.is_none();
    let (misuse, mutants) = if whole && sanitizer.is_none() {
        (run_misuse(folder), run_mutants(folder, &images))
    } else {
        (Vec::new(), Vec::new())
    };
    let golden = Golden {
        device: device.clone(),
        driver: cuda.clone(),
        date: today(),
        cccl: images.cccl.clone(),
        forms: findings
            .values()
            .filter_map(|finding| {
                let digest = finding.digests.first()?.clone();
                Some((images.entries[finding.form].form.kernel.clone(), digest))
            })
            .collect(),
    };
    let provenance = Provenance {
        device,
        driver: cuda,
        date: today(),
        cccl: images.cccl.clone(),
        sanitizer,
        seconds: start.elapsed().as_secs(),
    };
    let report = Report::new(
        provenance, &images, whole, &seeds, &findings, misuse, mutants,
    );
    Ok((report, golden))
}

fn runnable(images: &Images) -> Vec<usize> {
    let entries = images.entries.iter().enumerate();
    entries
        .filter(|(_, entry)| entry.reason.is_none())
        .map(|(form, _)| form)
        .collect()
}

/// Calls `act` for every item, a few at a time.
fn in_parallel<T: Sync, R: Send>(items: &[T], act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = act(item);
                    results
                        .lock()
                        .unwrap_or_else(|poison| poison.into_inner())
                        .push(result);
                }
            });
        }
    });
    results
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner())
}

fn run_forms(
    folder: &Path,
    images: &Images,
    forms: &[usize],
    seeds: &[u64],
) -> BTreeMap<usize, Finding> {
    let batches = Vec::from_iter(forms.chunks(BATCH));
    let findings = in_parallel(&batches, |batch| run_batch(folder, images, batch, seeds));
    findings
        .into_iter()
        .flatten()
        .map(|finding| (finding.form, finding))
        .collect()
}

/// What each launch of a form gives, also behind one that fails.
fn write_outputs(folder: &Path, form: usize, seeds: &[u64], file: &Path) -> Result<()> {
    std::fs::write(file, "").with_context(|| format!("cannot write {}", file.display()))?;
    let mut outputs = Outputs {
        file: file.to_path_buf(),
        skip: 0,
    };
    loop {
        let job = ChildJob::Differential(Job {
            folder: folder.to_path_buf(),
            forms: vec![form],
            seeds: seeds.to_vec(),
            mutant: None,
            outputs: Some(outputs.clone()),
            sanitized: child::sanitizer().is_some(),
        });
        let Err(failure) = child::run::<Vec<Finding>>(&job, FORM_LIMIT) else {
            return Ok(());
        };
        eprintln!("{}", failure.headline());
        let begun = outputs.begun()?;
        if begun == outputs.skip {
            return Ok(());
        }
        outputs.skip = begun;
    }
}

/// A batch in a child process. If that fails, each form in one of its own, to find the culprit.
fn run_batch(folder: &Path, images: &Images, forms: &[usize], seeds: &[u64]) -> Vec<Finding> {
    let job = |forms: &[usize]| {
        ChildJob::Differential(Job {
            folder: folder.to_path_buf(),
            forms: forms.to_vec(),
            seeds: seeds.to_vec(),
            mutant: None,
            outputs: None,
            sanitized: child::sanitizer().is_some(),
        })
    };
    let mut findings = match child::run::<Vec<Finding>>(&job(forms), BATCH_LIMIT) {
        Ok(findings) => findings,
        Err(_) => forms
            .iter()
            .map(
                |&form| match child::run::<Vec<Finding>>(&job(&[form]), FORM_LIMIT) {
                    Ok(mut findings) => findings.remove(0),
                    Err(failure) => Finding::failed(form, failure.to_string()),
                },
            )
            .collect(),
    };
    for finding in &mut findings {
        if must_fail(images, finding.form) {
            run_failing(folder, finding);
        }
        if let Some(difference) = &finding.difference {
            let form = &images.entries[finding.form].form;
            let seed = finding
                .seed
                .map_or(String::new(), |seed| format!(" --seed {seed}"));
            eprintln!(
                "FAILED {form}: {difference}\n  again: run differential --form {}{seed}",
                form.kernel
            );
        }
    }
    findings
}

fn must_fail(images: &Images, form: usize) -> bool {
    let scenario = scenario::of(&images.entries[form].form);
    scenario.is_ok_and(|scenario| (scenario.cases)(1).iter().any(|case| case.expected.fails))
}

/// Both languages must end with an error, and with the same one.
fn run_failing(folder: &Path, finding: &mut Finding) {
    let names = [false, true].map(|cpp| {
        let job = ChildJob::Failing(FailingJob {
            folder: folder.to_path_buf(),
            form: finding.form,
            cpp,
        });
        match child::run::<()>(&job, FORM_LIMIT) {
            Err(ChildFailure::Driver { error, .. }) => Ok(error.name.to_string()),
            Err(failure) => Err(failure.headline()),
            Ok(()) => Err("no error".to_owned()),
        }
    });
    finding.runs += 2;
    let [rust, cpp] = names;
    finding.rust_vs_cpp &= rust == cpp;
    finding.vs_isa &= rust.is_ok() && cpp.is_ok();
    if !finding.holds() && finding.difference.is_none() {
        finding.difference = Some(format!(
            "expected the same error in both languages, found {rust:?} and {cpp:?}"
        ));
    }
}

fn run_misuse(folder: &Path) -> Vec<misuse::Outcome> {
    in_parallel(&Misuse::ALL, |misuse| misuse.observe(folder))
}

/// Each mutant must be noticed.
fn run_mutants(folder: &Path, images: &Images) -> Vec<MutantLine> {
    let run = |mutant: &super::Mutant| {
        let forms = runnable(images).into_iter().filter(|&form| {
            mutant
                .functions
                .contains(&images.entries[form].form.function.as_str())
        });
        let job = ChildJob::Differential(Job {
            folder: folder.to_path_buf(),
            forms: forms.collect(),
            seeds: vec![SEEDS[0]],
            mutant: Some(mutant.name.to_owned()),
            outputs: None,
            sanitized: child::sanitizer().is_some(),
        });
        let noticed = match child::run::<Vec<Finding>>(&job, FORM_LIMIT) {
            Err(failure) => Some(failure.headline()),
            Ok(findings) => findings
                .into_iter()
                .find(|finding| !finding.holds())
                .map(|finding| {
                    let form = &images.entries[finding.form].form;
                    format!("{form}: {}", finding.difference.unwrap_or_default())
                }),
        };
        MutantLine::new(mutant, noticed)
    };
    in_parallel(&MUTANTS, run)
}
