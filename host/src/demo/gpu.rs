//! The guide's kernels on the GPU of this machine, if it has one that they are built for.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{GpuResult, Images};
use crate::child::{self, ChildJob};
use crate::driver::Driver;
use crate::guide::{self, Job, Language, Outcome};

/// What became of the launches.
#[derive(Debug, Clone)]
pub struct GpuRun {
    /// The GPU's name, if there is one.
    pub gpu: Option<String>,
    /// Why nothing was launched, if so.
    skipped: Option<String>,
    /// Per kernel, what went wrong.
    failures: Vec<(&'static str, String)>,
}

impl GpuRun {
    /// Launches every case of both languages, each in a child process of its own.
    ///
    /// # Errors
    /// If there is a GPU that cannot be used. That there is none is not an error: everything is
    /// then skipped, with the reason.
    pub fn launch(images: &Images, input: Option<&Path>) -> Result<Self> {
        let gpu = match usable_gpu()? {
            Ok(gpu) => gpu,
            Err(reason) => return Ok(Self::skipped(reason)),
        };
        let mut failures = Vec::new();
        for case in guide::cases() {
            for (language, image) in [
                (Language::Rust, images.rust_cubin()),
                (Language::Cpp, images.cpp_cubin()),
            ] {
                if let Err(failure) = launch(case, language, image, input) {
                    failures.push((case.name(), format!("in {language}: {failure}")));
                }
            }
        }
        Ok(Self {
            gpu: Some(gpu),
            skipped: None,
            failures,
        })
    }

    /// Nothing was launched.
    #[must_use]
    pub fn skipped(reason: impl Into<String>) -> Self {
        Self {
            gpu: None,
            skipped: Some(reason.into()),
            failures: Vec::new(),
        }
    }

    /// Why nothing was launched, if so.
    #[must_use]
    pub fn skip_reason(&self) -> Option<&str> {
        self.skipped.as_deref()
    }

    /// How a kernel did, and what there is to say of it.
    #[must_use]
    pub fn result(&self, kernel: &str) -> (GpuResult, String) {
        if let Some(reason) = &self.skipped {
            return (GpuResult::Skipped, reason.clone());
        }
        if guide::Case::of_kernel(kernel).is_none() {
            return (
                GpuResult::Failed,
                "no launch of this kernel is known".to_owned(),
            );
        }
        let reasons: Vec<&str> = self
            .failures
            .iter()
            .filter(|(name, _)| *name == kernel)
            .map(|(_, reason)| reason.as_str())
            .collect();
        match reasons.is_empty() {
            true => (GpuResult::Ok, String::new()),
            false => (GpuResult::Failed, reasons.join("; ")),
        }
    }
}

/// The GPU's name, or why there is none for the images.
fn usable_gpu() -> Result<Result<String, String>> {
    let driver = match Driver::open() {
        Ok(driver) => driver,
        Err(error) if error.is_absence() => return Ok(Err(error.to_string())),
        Err(error) => return Err(error.into()),
    };
    let (name, capability) = (driver.gpu_name()?, driver.compute_capability()?);
    if (capability.major, capability.minor) != (9, 0) {
        return Ok(Err(format!(
            "the kernels are built for compute capability 9.0, and {name} has {capability}"
        )));
    }
    Ok(Ok(name))
}

fn launch(
    case: guide::Case,
    language: Language,
    image: PathBuf,
    input: Option<&Path>,
) -> Result<Outcome, String> {
    let job = Job {
        case,
        language,
        image,
        input: input.map(Path::to_path_buf),
    };
    child::run(&ChildJob::Guide(job), guide::LIMIT).map_err(|failure| failure.headline())
}
