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
pub(crate) mod device;
mod expect;
mod faults;
mod input;
mod launches;
mod pairs;
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
pub use pairs::{Pairs, PairsJob};
pub use timing::{Timing, TimingJob};

/// Ample time for any [`Job`] or [`TimingJob`] with generated input.
pub const LIMIT: Duration = Duration::from_secs(120);

/// A kernel of the guide: a listing in one of the flavours that the guide has it in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// Initialisation, and one phase.
    InitBarrier,
    /// The same with `cuda::barrier`.
    InitBarrierBarrier,
    /// The same with the C primitives.
    InitBarrierPrimitives,
    /// Phase after phase, by tokens.
    PhasesBarrier,
    /// Updates of a barrier by a converged and by a diverged warp.
    WarpEntanglement,
    /// Explicit phase tracking by parity.
    SplitArriveWait,
    /// The same with `cuda::barrier`.
    SplitArriveWaitBarrier,
    /// The same with the C primitives.
    SplitArriveWaitPrimitives,
    /// Threads that drop out.
    EarlyExit,
    /// The same with `cuda::barrier`.
    EarlyExitBarrier,
    /// The same with the C primitives.
    EarlyExitPrimitives,
    /// A completion function.
    PsumBarrier,
    /// A transaction count of 0.
    TrackKernel,
    /// The same with `cuda::barrier`.
    TrackKernelBarrier,
    /// A bulk copy.
    TrackBulkCopy,
    /// The same with `cuda::memcpy_async`.
    TrackBulkCopyBarrier,
    /// Producer and consumer, double-buffered.
    ProducerConsumer,
    /// The same with `cuda::barrier`.
    ProducerConsumerBarrier,
    /// The same with the C primitives.
    ProducerConsumerPrimitives,
    /// The same with a pipeline.
    ProducerConsumerPipeline,
}

/// All cases, in the guide's order.
#[must_use]
pub fn cases() -> [Case; 20] {
    [
        Case::InitBarrier,
        Case::InitBarrierBarrier,
        Case::InitBarrierPrimitives,
        Case::PhasesBarrier,
        Case::WarpEntanglement,
        Case::SplitArriveWait,
        Case::SplitArriveWaitBarrier,
        Case::SplitArriveWaitPrimitives,
        Case::EarlyExit,
        Case::EarlyExitBarrier,
        Case::EarlyExitPrimitives,
        Case::PsumBarrier,
        Case::TrackKernel,
        Case::TrackKernelBarrier,
        Case::TrackBulkCopy,
        Case::TrackBulkCopyBarrier,
        Case::ProducerConsumer,
        Case::ProducerConsumerBarrier,
        Case::ProducerConsumerPrimitives,
        Case::ProducerConsumerPipeline,
    ]
}

impl Case {
    /// The kernel's name in the images.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InitBarrier => "init_barrier",
            Self::InitBarrierBarrier => "init_barrier_barrier",
            Self::InitBarrierPrimitives => "init_barrier_primitives",
            Self::PhasesBarrier => "phases_barrier",
            Self::WarpEntanglement => "warp_entanglement",
            Self::SplitArriveWait => "split_arrive_wait",
            Self::SplitArriveWaitBarrier => "split_arrive_wait_barrier",
            Self::SplitArriveWaitPrimitives => "split_arrive_wait_primitives",
            Self::EarlyExit => "early_exit",
            Self::EarlyExitBarrier => "early_exit_barrier",
            Self::EarlyExitPrimitives => "early_exit_primitives",
            Self::PsumBarrier => "psum_barrier",
            Self::TrackKernel => "track_kernel",
            Self::TrackKernelBarrier => "track_kernel_barrier",
            Self::TrackBulkCopy => "track_bulk_copy",
            Self::TrackBulkCopyBarrier => "track_bulk_copy_barrier",
            Self::ProducerConsumer => "producer_consumer",
            Self::ProducerConsumerBarrier => "producer_consumer_barrier",
            Self::ProducerConsumerPrimitives => "producer_consumer_primitives",
            Self::ProducerConsumerPipeline => "producer_consumer_pipeline",
        }
    }

    /// The case of a kernel.
    #[must_use]
    pub fn of_kernel(name: &str) -> Option<Self> {
        cases().into_iter().find(|case| case.name() == name)
    }

    /// Whether the kernel is in the `cuda::ptx` flavour.
    #[must_use]
    pub fn is_ptx(self) -> bool {
        matches!(
            self,
            Self::InitBarrier
                | Self::WarpEntanglement
                | Self::SplitArriveWait
                | Self::EarlyExit
                | Self::TrackKernel
                | Self::TrackBulkCopy
                | Self::ProducerConsumer
        )
    }

    /// Why the Rust kernel is made of other instructions than its twin, if it is so by design.
    #[must_use]
    pub fn differs_by_design(self) -> Option<&'static str> {
        match self {
            Self::PsumBarrier => Some(
                "by design: waits suspend on an mbarrier object, where the C++ class polls a flag",
            ),
            Self::TrackBulkCopyBarrier => Some(
                "by design: a proxy fence keeps the copy behind earlier stores to its destination, \
                 which the C++ function leaves to its caller; and the thread that copies is not elected",
            ),
            _ => None,
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
            Case::InitBarrier
            | Case::InitBarrierBarrier
            | Case::InitBarrierPrimitives
            | Case::TrackKernel
            | Case::TrackKernelBarrier => session.exchange(),
            Case::WarpEntanglement => session.warp_entanglement(),
            Case::PhasesBarrier
            | Case::SplitArriveWait
            | Case::SplitArriveWaitBarrier
            | Case::SplitArriveWaitPrimitives => session.split_arrive_wait(),
            Case::EarlyExit | Case::EarlyExitBarrier | Case::EarlyExitPrimitives => {
                session.early_exit()
            }
            Case::PsumBarrier => session.psum(),
            Case::TrackBulkCopy | Case::TrackBulkCopyBarrier => session.track_bulk_copy(),
            Case::ProducerConsumer
            | Case::ProducerConsumerBarrier
            | Case::ProducerConsumerPrimitives
            | Case::ProducerConsumerPipeline => session.producer_consumer(self.input.as_deref()),
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

/// The bytes of an image.
pub(crate) fn read_image(path: &std::path::Path) -> Result<Vec<u8>> {
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
