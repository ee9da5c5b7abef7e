//! The whole benchmark: jobs in child processes one after the other, whatever becomes of each.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use super::images::{Form, Images, Untimed};
use super::job::{Clocks, FormsJob, Measured};
use super::pairs::Latency;
use super::situation_job::{SituationJob, SituationPoint};
use super::situations::{SITUATIONS, Situation};
use crate::child::{self, ChildJob};
use crate::driver::Driver;

/// Forms of a job. A form takes some 30 ms, and 300 ms if it depends on places.
const FORMS_PER_JOB: usize = 20;

/// What a job may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Forms of a function that may fail before the others are not tried.
const FAILURES: usize = 1;

/// Everything that was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// The GPU.
    pub gpu: String,
    /// The CUDA version of the driver.
    pub driver: String,
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// The clock of the multiprocessors before and after each job, in MHz.
    pub clock_mhz: Vec<Clocks>,
    /// How long everything took.
    pub seconds: Option<f64>,
    /// The forms that the architecture has.
    pub forms: usize,
    /// Forms of `cuda::ptx` that only others have.
    pub elsewhere: usize,
    /// Forms that `cuda::ptx` lacks and only others have.
    pub elsewhere_beyond: usize,
    /// The links that join the steps of a chain, each alone.
    pub links: Vec<Measured>,
    /// Those that were timed.
    pub timed: Vec<Measured>,
    /// Those that were not, with the reasons.
    pub untimed: Vec<Untimed>,
    /// The situations, each at all its points.
    pub situations: Vec<SituationResult>,
}

/// What a situation costs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SituationResult {
    /// The kernel.
    pub kernel: String,
    /// What it shows.
    pub title: String,
    /// What `at` of a point counts.
    pub axis: String,
    /// Its points; none if it failed.
    pub points: Vec<SituationPoint>,
    /// Why there are none.
    pub failure: Option<String>,
}

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Options<'a> {
    /// Only forms whose family, kernel or instruction contains this, and such situations.
    pub filter: Option<&'a str>,
    /// Where the results are written as soon as they are there.
    pub json: Option<&'a Path>,
    /// Whether all chains and situations are timed a second time, in the reverse order.
    pub repeat: bool,
}

/// Times the forms and the situations.
///
/// # Errors
/// If there is no GPU, nothing fits the filter, or the images were not built.
pub fn run(folder: &Path, options: &Options) -> Result<Results> {
    let Options {
        filter,
        json,
        repeat,
    } = *options;
    let forms = Images::in_folder(folder).forms()?;
    let fits = |texts: [&str; 3]| filter.is_none_or(|f| texts.iter().any(|text| text.contains(f)));
    let wanted = |form: &Form| fits([&form.family, &form.kernel, &form.form]);
    let queue = Vec::from_iter(forms.timed.into_iter().filter(wanted));
    let untimed = Vec::from_iter(
        forms
            .untimed
            .into_iter()
            .filter(|form| fits([&form.family, &form.form, ""])),
    );
    let none_fits = queue.is_empty()
        && untimed.is_empty()
        && !SITUATIONS.iter().any(|s| fits([s.kernel, s.title, ""]));
    if none_fits {
        bail!(
            "neither form nor situation fits the filter `{}`",
            filter.unwrap_or_default()
        );
    }
    let begin = Instant::now();
    let mut results = {
        let driver = Driver::open()?;
        Results {
            gpu: driver.gpu_name()?,
            driver: driver.cuda_version().to_string(),
            multiprocessors: driver.sm_count()?,
            clock_mhz: Vec::new(),
            seconds: None,
            forms: queue.len() + untimed.len(),
            elsewhere: forms.elsewhere,
            elsewhere_beyond: forms.elsewhere_beyond,
            links: Vec::new(),
            timed: Vec::new(),
            untimed,
            situations: Vec::new(),
        }
    };
    let situations = Vec::from_iter(SITUATIONS.iter().filter(|s| fits([s.kernel, s.title, ""])));
    let once = forms.links.len() + queue.len() + situations.len();
    let progress = progress(if repeat { 2 * once } else { once });
    let save = |results: &Results| json.map_or(Ok(()), |path| results.write(path));
    let (links, failure) = run_job(
        folder,
        &forms.links,
        true,
        &progress,
        &mut results.clock_mhz,
    )?;
    if let Some(reason) = failure {
        bail!("the links that join the steps of a chain cannot be timed: {reason}");
    }
    results.links = links;
    // The barriers of the newest layout last: not every GPU is known to have them.
    let (newest, others) = queue
        .into_iter()
        .partition(|form: &Form| form.kernel.contains("_phase"));
    results.run_all(folder, others, &progress, &save)?;
    for situation in &situations {
        results.situations.push(run_situation(folder, situation));
        progress.inc(1);
    }
    save(&results)?;
    results.run_all(folder, newest, &progress, &save)?;
    if repeat {
        results.run_again(folder, &situations, &progress)?;
    }
    results.seconds = Some(begin.elapsed().as_secs_f64());
    save(&results)?;
    progress.finish_and_clear();
    Ok(results)
}

fn progress(length: usize) -> ProgressBar {
    let progress = ProgressBar::new(length as u64);
    progress.set_style(
        ProgressStyle::with_template("{bar:30} {pos}/{len} measurements, {eta} left")
            .expect("the template is valid"),
    );
    progress
}

impl Results {
    /// Results written earlier.
    ///
    /// # Errors
    /// If the file cannot be read or holds something else.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("cannot understand {}", path.display()))
    }

    /// Writes JSON, one form a line.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let head = Self {
            clock_mhz: Vec::new(),
            links: Vec::new(),
            timed: Vec::new(),
            situations: Vec::new(),
            ..self.clone()
        };
        let mut text = serde_json::to_string_pretty(&head)?;
        for (list, elements) in [
            ("clock_mhz", lines(&self.clock_mhz)?),
            ("links", lines(&self.links)?),
            ("timed", lines(&self.timed)?),
            ("situations", lines(&self.situations)?),
        ] {
            let (empty, full) = (format!("\"{list}\": []"), format!("\"{list}\": {elements}"));
            text = text.replacen(&empty, &full, 1);
        }
        fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
    }

    /// One line.
    #[must_use]
    pub fn summary(&self) -> String {
        format!(
            "{}: {} of {} forms timed, {} listed with a reason; {} situations, {} of them failed",
            self.gpu,
            self.timed.len(),
            self.forms,
            self.untimed.len(),
            self.situations.len(),
            self.situations
                .iter()
                .filter(|s| s.failure.is_some())
                .count()
        )
    }

    fn run_all(
        &mut self,
        folder: &Path,
        mut queue: Vec<Form>,
        progress: &ProgressBar,
        save: &dyn Fn(&Self) -> Result<()>,
    ) -> Result<()> {
        let mut failures: HashMap<String, usize> = HashMap::new();
        while !queue.is_empty() {
            let rest = queue.split_off(queue.len().min(FORMS_PER_JOB));
            let mut batch = std::mem::replace(&mut queue, rest);
            let (measured, failure) = run_job(folder, &batch, true, progress, &mut self.clock_mhz)?;
            let done = measured.len();
            self.timed.extend(measured);
            save(self)?;
            let Some(reason) = failure else {
                continue;
            };
            // The form after the last result is the one that failed; those behind it are tried again.
            let mut left = batch.split_off(done.min(batch.len() - 1));
            let culprit = left.remove(0);
            let function = function_of(&culprit).to_owned();
            progress.suspend(|| eprintln!("{}: {reason}", culprit.form));
            self.untimed.push(untimed(&culprit, reason));
            progress.inc(1);
            let count = failures.entry(function.clone()).or_default();
            *count += 1;
            left.append(&mut queue);
            queue = left;
            if *count >= FAILURES {
                let (skipped, others) = queue
                    .into_iter()
                    .partition(|form| function_of(form) == function);
                let skipped: Vec<Form> = skipped;
                progress.inc(skipped.len() as u64);
                let reason =
                    format!("not tried: {FAILURES} forms of the function failed before it");
                self.untimed
                    .extend(skipped.iter().map(|form| untimed(form, reason.clone())));
                queue = others;
            }
        }
        Ok(())
    }
}

impl Results {
    /// Times all chains and situations a second time, from the last to the first.
    fn run_again(
        &mut self,
        folder: &Path,
        situations: &[&Situation],
        progress: &ProgressBar,
    ) -> Result<()> {
        for &situation in situations.iter().rev() {
            let again = run_situation(folder, situation);
            let first = self
                .situations
                .iter_mut()
                .find(|s| s.kernel == again.kernel);
            let points = first.into_iter().flat_map(|first| &mut first.points);
            for (point, again) in points.zip(again.points) {
                point.again = Some(again.operation);
            }
            progress.inc(1);
        }
        let forms = self.timed.iter().chain(&self.links).rev();
        let forms = Vec::from_iter(forms.map(|measured| measured.form.clone()));
        for batch in forms.chunks(FORMS_PER_JOB) {
            let (again, failure) = run_job(folder, batch, false, progress, &mut self.clock_mhz)?;
            if let Some(reason) = failure {
                progress.suspend(|| eprintln!("a second run failed: {reason}"));
            }
            let mut again: HashMap<_, _> = again
                .into_iter()
                .map(|measured| (measured.form.kernel, measured.latency))
                .collect();
            for measured in self.timed.iter_mut().chain(&mut self.links) {
                if let Some(latency) = again.remove(&measured.form.kernel) {
                    // The raw points of the first run are enough.
                    measured.again = Some(Latency {
                        cycles: Vec::new(),
                        ..latency
                    });
                }
            }
        }
        Ok(())
    }
}

/// A list in JSON, one element a line.
fn lines<T: Serialize>(elements: &[T]) -> Result<String> {
    let lines = elements
        .iter()
        .map(serde_json::to_string)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(format!("[\n{}\n  ]", lines.join(",\n")))
}

fn run_situation(folder: &Path, situation: &Situation) -> SituationResult {
    let job = ChildJob::Situation(SituationJob {
        folder: folder.to_path_buf(),
        kernel: situation.kernel.to_owned(),
    });
    let (points, failure) = match child::run::<Vec<SituationPoint>>(&job, LIMIT) {
        Ok(points) => (points, None),
        Err(failure) => (Vec::new(), Some(failure.headline())),
    };
    SituationResult {
        kernel: situation.kernel.to_owned(),
        title: situation.title.to_owned(),
        axis: situation.axis.to_owned(),
        points,
        failure,
    }
}

/// The kernel's name up to what tells variants apart, and up to its newest operands.
fn function_of(form: &Form) -> &str {
    let (function, _) = form
        .kernel
        .split_once("_sem_scope_")
        .unwrap_or((&form.kernel, ""));
    function.split("__").next().unwrap_or(function)
}

fn untimed(form: &Form, reason: String) -> Untimed {
    Untimed {
        form: form.form.clone(),
        family: form.family.clone(),
        beyond: form.beyond,
        reason,
    }
}

/// What a job measured, and why it ended early if it did.
fn run_job(
    folder: &Path,
    batch: &[Form],
    throughput: bool,
    progress: &ProgressBar,
    clocks: &mut Vec<Clocks>,
) -> Result<(Vec<Measured>, Option<String>)> {
    let file = tempfile::NamedTempFile::new().context("cannot make a temporary file")?;
    let job = ChildJob::Bench(FormsJob {
        folder: folder.to_path_buf(),
        forms: batch.to_vec(),
        throughput,
        results: file.path().to_path_buf(),
    });
    let (start, done) = (progress.position(), AtomicBool::new(false));
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let text = fs::read(file.path()).unwrap_or_default();
                let lines = text.iter().filter(|byte| **byte == b'\n').count();
                progress.set_position(start + lines as u64);
                thread::sleep(Duration::from_millis(200));
            }
        });
        let outcome = child::run::<Clocks>(&job, LIMIT);
        done.store(true, Ordering::Relaxed);
        outcome
    });
    let text = fs::read_to_string(file.path())?;
    let whole_lines = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    let measured = whole_lines
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<Vec<Measured>, _>>()?;
    progress.set_position(start + measured.len() as u64);
    let failure = match outcome {
        Ok(clock) => {
            clocks.push(clock);
            None
        }
        Err(failure) => Some(failure.headline()),
    };
    Ok((measured, failure))
}
