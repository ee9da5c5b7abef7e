//! The guide's kernels on the GPU: their launches, inputs and expected results.
//!
//! A [`Case`] is one kernel with all its launch shapes. A [`Job`] runs a case of one image; it can be
//! sent to a child process, since a kernel that is wrong may hang:
//!
//! ```no_run
//! use std::time::Duration;
//! use cuda_ptx_host::driver::isolate::{self, Isolate};
//! use cuda_ptx_host::guide::{self, Job, Language};
//!
//! # fn main() -> anyhow::Result<()> {
//! if std::env::args().nth(1).as_deref() == Some("guide-job") {
//!     isolate::serve(|job: Job| job.run());
//! }
//! for case in guide::cases() {
//!     let job = Job { case, language: Language::Rust, image: "guide-rust.cubin".into(), input: None };
//!     let outcome: guide::Outcome = Isolate::new(["guide-job"]).run(&job, guide::LIMIT)?;
//!     println!("{}: {} launches", case.name(), outcome.launches);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Every launch gets input of its own, which no other has: data left in shared memory by an earlier
//! one are then wrong. Outputs are poisoned before, and every element is checked, also some behind
//! the end. Results are integers, or floats added in an order that the launch shape fixes, so the
//! expectation is exact.

pub(crate) mod check;
mod device;
mod expect;
mod faults;
mod input;
mod launches;
pub(crate) mod random;
mod stream;
mod timing;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::driver::Driver;
use crate::exec::Program;
use device::{Device, Kernel};

pub use expect::StreamShape;
pub use faults::{Fault, FaultJob};
pub use input::CPU_LEN;
pub use timing::{Timing, TimingJob};

/// Ample time for any [`Job`] or [`TimingJob`] with generated input.
pub const LIMIT: Duration = Duration::from_secs(120);

/// A kernel of the guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// Initialisation, and one phase.
    InitBarrier,
    /// Explicit phase tracking by parity.
    SplitArriveWait,
    /// Threads that drop out.
    EarlyExit,
    /// A transaction count of 0.
    TrackKernel,
    /// A bulk copy.
    TrackBulkCopy,
    /// Producer and consumer, double-buffered.
    ProducerConsumer,
}

/// All cases, in the guide's order.
#[must_use]
pub fn cases() -> [Case; 6] {
    [
        Case::InitBarrier,
        Case::SplitArriveWait,
        Case::EarlyExit,
        Case::TrackKernel,
        Case::TrackBulkCopy,
        Case::ProducerConsumer,
    ]
}

impl Case {
    /// The kernel's name in the images.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InitBarrier => "init_barrier",
            Self::SplitArriveWait => "split_arrive_wait",
            Self::EarlyExit => "early_exit",
            Self::TrackKernel => "track_kernel",
            Self::TrackBulkCopy => "track_bulk_copy",
            Self::ProducerConsumer => "producer_consumer",
        }
    }
}

/// What an image was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// The kernels of `ptx/guide`.
    Rust,
    /// Their twins.
    Cpp,
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Rust => "Rust",
            Self::Cpp => "C++",
        })
    }
}

/// All launches of one case.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// The kernel.
    pub case: Case,
    /// The image's language.
    pub language: Language,
    /// A cubin or PTX with the kernels.
    pub image: PathBuf,
    /// A file of raw little-endian `f32` that `producer_consumer` streams, instead of generated
    /// numbers.
    pub input: Option<PathBuf>,
}

/// What a job that found nothing wrong did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// How often the kernel ran.
    pub launches: u64,
    /// How many output elements were checked.
    pub elements: u64,
}

impl Job {
    /// Runs the launches in this process, until one is wrong.
    ///
    /// # Errors
    /// If there is no GPU, the image or the input cannot be read, a launch fails, or a result is
    /// wrong; the message has the launch shape and the first wrong element.
    pub fn run(&self) -> Result<Outcome> {
        let driver = Driver::open()?;
        let image = read_image(&self.image)?;
        let module = driver.load(&image)?;
        let kernel = Kernel::Gpu(module.function(self.case.name())?);
        self.launch_all(launches::Session::new(Device::Gpu(&driver), kernel, self))
    }

    /// Runs smaller launches on the CPU, which executes the PTX of the image; `schedule` is the seed
    /// of the first launch.
    ///
    /// # Errors
    /// If the image is no PTX that is executed, a mistake is found, or a result is wrong.
    pub fn run_on_cpu(&self, program: &Program, schedule: u64) -> Result<Outcome> {
        self.launch_all(launches::Session::new(
            Device::cpu(program, schedule),
            Kernel::Cpu(self.case.name()),
            self,
        ))
    }

    fn launch_all(&self, mut session: launches::Session) -> Result<Outcome> {
        match self.case {
            Case::InitBarrier | Case::TrackKernel => session.exchange(),
            Case::SplitArriveWait => session.split_arrive_wait(),
            Case::EarlyExit => session.early_exit(),
            Case::TrackBulkCopy => session.track_bulk_copy(),
            Case::ProducerConsumer => session.producer_consumer(self.input.as_deref()),
        }
        .with_context(|| format!("{} in {}", self.case.name(), self.language))?;
        Ok(session.outcome())
    }
}

/// Fails if the file cannot be the input of `producer_consumer`: raw little-endian `f32`.
///
/// # Errors
/// If it is missing, empty, or its length is not a multiple of 4 bytes; the message says what was
/// expected.
pub fn check_input(path: &std::path::Path) -> Result<()> {
    input::open(path).map(drop)
}

fn read_image(path: &std::path::Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read the image {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_survives_the_way_to_a_child_process() {
        for case in cases() {
            let job = Job {
                case,
                language: Language::Cpp,
                image: "x.cubin".into(),
                input: Some("y.f32".into()),
            };
            let json = serde_json::to_string(&job).unwrap();
            assert!(json.contains(&format!("\"{}\"", case.name())), "{json}");
            let back: Job = serde_json::from_str(&json).unwrap();
            assert_eq!((back.case, back.language), (case, Language::Cpp));
        }
    }
}
