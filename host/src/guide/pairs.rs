//! The run time of every kernel in both languages, measured in pairs.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::check::{guarded, poisoned};
use super::device::{Buffer, Device};
use super::expect::TILE_LEN;
use super::launches::exits;
use super::stream::{self, Stream};
use super::timing::{FEWEST_PAIRS, WARM_UP, quantile, sorted};
use super::{Case, cases, random, read_image};
use crate::driver::{Arguments, Driver, Function, Launch};

/// Phases of the kernels that have many.
const ITERATIONS: u32 = 1000;
/// Phases of `psum`, in each of which one thread adds up the block's elements.
const SUMS: u32 = 200;
/// Elements that are copied or summed: 256 MiB.
const LEN: usize = 1 << 26;
/// Blocks to a multiprocessor of the kernels that have a phase or two.
const SHORT_BLOCKS_PER_SM: u32 = 64;

/// A comparison of two images, kernel by kernel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PairsJob {
    /// The Rust kernels.
    pub rust_image: PathBuf,
    /// Their C++ twins.
    pub cpp_image: PathBuf,
    /// How many pairs of launches of each kernel, at least 15.
    pub pairs: u32,
}

/// How long a kernel ran. Pairs of figures are Rust's and C++'s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pairs {
    /// The kernel's name.
    pub kernel: String,
    /// The median times, in microseconds.
    pub median_microseconds: [f64; 2],
    /// The median over the pairs of Rust's time divided by C++'s: below 1, Rust is faster.
    pub ratio: f64,
    /// The quartiles of the same.
    pub ratio_quartiles: [f64; 2],
}

impl PairsJob {
    /// Launches each kernel in both languages in turn, with the first of each pair in turn too. What
    /// they compute is not checked here.
    ///
    /// # Errors
    /// As for [`Job::run`](super::Job::run), and if `pairs` is less than 15.
    pub fn run(&self) -> Result<Vec<Pairs>> {
        anyhow::ensure!(
            self.pairs >= FEWEST_PAIRS,
            "{} pairs of launches: expected at least {FEWEST_PAIRS} for a median",
            self.pairs
        );
        let driver = Driver::open()?;
        let rust = driver.load(&read_image(&self.rust_image)?)?;
        let cpp = driver.load(&read_image(&self.cpp_image)?)?;
        let one = |case: Case| {
            let kernels = [rust.function(case.name())?, cpp.function(case.name())?];
            self.time(&driver, case, &kernels)
                .with_context(|| case.name())
        };
        cases().into_iter().map(one).collect()
    }

    fn time(&self, driver: &Driver, case: Case, kernels: &[Function; 2]) -> Result<Pairs> {
        let device = Device::Gpu(driver);
        let work = Work::of(case, &device, driver)?;
        let mut times = Vec::new();
        for pair in 0..WARM_UP + self.pairs {
            let mut of_pair = [0.0; 2];
            for turn in 0..2 {
                let side = (pair as usize + turn) % 2;
                // SAFETY: both are the kernel of the case, and these are its arguments.
                let milliseconds =
                    unsafe { kernels[side].time_launch(&work.launch, &work.arguments)? };
                of_pair[side] = f64::from(milliseconds) * 1e3;
            }
            if pair >= WARM_UP {
                times.push(of_pair);
            }
        }
        Ok(Pairs::new(case.name(), &times))
    }
}

impl Pairs {
    fn new(kernel: &str, times: &[[f64; 2]]) -> Self {
        let median = |side: usize| quantile(&sorted(times.iter().map(|pair| pair[side])), 0.5);
        let ratios = sorted(times.iter().map(|[rust, cpp]| rust / cpp));
        Self {
            kernel: kernel.to_owned(),
            median_microseconds: [median(0), median(1)],
            ratio: quantile(&ratios, 0.5),
            ratio_quartiles: [quantile(&ratios, 0.25), quantile(&ratios, 0.75)],
        }
    }
}

/// A launch that is long enough to be timed.
struct Work<'d> {
    launch: Launch,
    arguments: Arguments,
    _buffers: Vec<Buffer<u32>>,
    _stream: Option<Stream<'d>>,
}

impl<'d> Work<'d> {
    fn of(case: Case, device: &'d Device, driver: &Driver) -> Result<Self> {
        let sms = driver.sm_count()?;
        let integers = |len: usize| device.upload(&random::integers(case as u64, len));
        let work = |launch, arguments, buffers| Self {
            launch,
            arguments,
            _buffers: buffers,
            _stream: None,
        };
        Ok(match case {
            Case::InitBarrier
            | Case::InitBarrierBarrier
            | Case::InitBarrierPrimitives
            | Case::TrackKernel
            | Case::TrackKernelBarrier
            | Case::WarpEntanglement => {
                let launch = Launch::new(SHORT_BLOCKS_PER_SM * sms, 1024);
                let len = (SHORT_BLOCKS_PER_SM * sms * 1024) as usize;
                let (input, output) = (integers(len)?, poisoned(device, len)?);
                let arguments = Arguments::new().u64(input.address()).u64(output.address());
                work(launch, arguments, vec![input, output])
            }
            Case::PhasesBarrier
            | Case::SplitArriveWait
            | Case::SplitArriveWaitBarrier
            | Case::SplitArriveWaitPrimitives => {
                let data = random::integers(case as u64, (2 * sms * 1024) as usize);
                let data = guarded(device, &data)?;
                let arguments = Arguments::new().u32(ITERATIONS).u64(data.address());
                work(Launch::new(2 * sms, 1024), arguments, vec![data])
            }
            Case::EarlyExit | Case::EarlyExitBarrier | Case::EarlyExitPrimitives => {
                let data = random::integers(case as u64, (2 * sms * 1024) as usize);
                let data = guarded(device, &data)?;
                let leave_at = exits(case as u64, 2 * sms, 1024, ITERATIONS.into());
                let leave_at = device.upload(&leave_at)?;
                let arguments = Arguments::new()
                    .u32(ITERATIONS)
                    .u64(leave_at.address())
                    .u64(data.address());
                work(Launch::new(2 * sms, 1024), arguments, vec![data, leave_at])
            }
            Case::PsumBarrier => {
                // As many threads as in the guide.
                let (grid, block) = (8 * sms, 128);
                let n = SUMS * block;
                let (data, sums) = (
                    integers((grid * n) as usize)?,
                    poisoned(device, grid as usize)?,
                );
                let arguments = Arguments::new()
                    .u32(n)
                    .u64(data.address())
                    .u64(sums.address());
                work(Launch::new(grid, block), arguments, vec![data, sums])
            }
            Case::TrackBulkCopy | Case::TrackBulkCopyBarrier => {
                let (input, output) = (integers(LEN)?, poisoned(device, LEN)?);
                let arguments = Arguments::new()
                    .u32(LEN as u32)
                    .u64(input.address())
                    .u64(output.address());
                let launch = Launch::new((LEN / TILE_LEN) as u32, 256);
                work(launch, arguments, vec![input, output])
            }
            Case::ProducerConsumer
            | Case::ProducerConsumerBarrier
            | Case::ProducerConsumerPrimitives
            | Case::ProducerConsumerPipeline => {
                let data = random::floats(case as u64, LEN);
                let stream = Stream::new(device, &data, stream::full_shape(driver)?)?;
                Self {
                    launch: stream.launch(),
                    arguments: stream.arguments(),
                    _buffers: Vec::new(),
                    _stream: Some(stream),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratio_are_those_of_the_pairs() {
        let pairs = Pairs::new("k", &[[1.0, 2.0], [4.0, 2.0], [2.0, 2.0]]);
        assert_eq!(pairs.median_microseconds, [2.0, 2.0]);
        assert_eq!(pairs.ratio, 1.0);
        assert_eq!(pairs.ratio_quartiles, [0.75, 1.5]);
    }

    #[test]
    fn too_few_pairs_are_refused() {
        let job = PairsJob {
            rust_image: "a".into(),
            cpp_image: "b".into(),
            pairs: 14,
        };
        let error = job.run().unwrap_err().to_string();
        assert!(error.contains("14 pairs"), "{error}");
    }
}
