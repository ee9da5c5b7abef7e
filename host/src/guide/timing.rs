//! How fast `producer_consumer` streams in both languages.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::device::Device;
use super::expect::block_sums;
use super::{Case, Language, input, read_image, stream};
use crate::driver::Driver;

/// The fewest pairs that give a median worth quoting.
pub const FEWEST_PAIRS: u32 = 15;

/// Pairs before the first that counts.
pub const WARM_UP: u32 = 3;

/// A comparison of two images.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TimingJob {
    /// The Rust kernels.
    pub rust_image: PathBuf,
    /// Their C++ twins.
    pub cpp_image: PathBuf,
    /// A file of raw little-endian `f32` to stream, instead of generated numbers.
    pub input: Option<PathBuf>,
    /// How many pairs of launches, at least 15.
    pub pairs: u32,
}

/// What a [`TimingJob`] measured. Pairs of figures are Rust's and C++'s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The GPU.
    pub gpu: String,
    /// The bytes that each launch reads.
    pub bytes: u64,
    /// The time of each launch, in milliseconds, pair by pair.
    pub milliseconds: Vec<[f32; 2]>,
    /// The median times, in milliseconds.
    pub median_milliseconds: [f64; 2],
    /// What the median times mean, in 10^9 bytes per second.
    pub gigabytes_per_second: [f64; 2],
    /// The median over the pairs of Rust's time divided by C++'s: below 1, Rust is faster.
    pub ratio: f64,
    /// The quartiles of the same.
    pub ratio_quartiles: [f64; 2],
}

impl TimingJob {
    /// Launches both kernels in turn on the same array, with the first of each pair in turn too, and
    /// checks their sums.
    ///
    /// # Errors
    /// As for [`Job::run`](super::Job::run), and if `pairs` is less than 15.
    pub fn run(&self) -> Result<Timing> {
        if self.pairs < FEWEST_PAIRS {
            bail!(
                "{} pairs of launches: expected at least {FEWEST_PAIRS} for a median",
                self.pairs
            );
        }
        let driver = Driver::open()?;
        let data = input::load(&driver, self.input.as_deref(), 0)?;
        let shape = stream::full_shape(&driver)?;
        let expected = block_sums(&data, shape);

        let modules = [
            driver.load(&read_image(&self.rust_image)?)?,
            driver.load(&read_image(&self.cpp_image)?)?,
        ];
        let [rust, cpp] = &modules;
        let name = Case::ProducerConsumer.name();
        let kernels = [rust.function(name)?, cpp.function(name)?];
        let device = Device::Gpu(&driver);
        let stream = stream::Stream::new(&device, &data, shape)?;
        let (launch, arguments) = (stream.launch(), stream.arguments());

        let mut milliseconds = Vec::new();
        for pair in 0..WARM_UP + self.pairs {
            let mut times = [0.0; 2];
            for turn in 0..2 {
                let side = (pair as usize + turn) % 2;
                // SAFETY: both are `producer_consumer`, and these are its arguments.
                times[side] = unsafe { kernels[side].time_launch(&launch, &arguments)? };
                if pair == 0 {
                    let language = [Language::Rust, Language::Cpp][side];
                    stream
                        .check_sums(&expected)
                        .with_context(|| format!("{name} in {language}"))?;
                }
            }
            if pair >= WARM_UP {
                milliseconds.push(times);
            }
        }
        stream.check_sums(&expected)?;
        Ok(Timing::new(
            driver.gpu_name()?,
            size_of_val(data.as_slice()) as u64,
            milliseconds,
        ))
    }
}

impl Timing {
    fn new(gpu: String, bytes: u64, milliseconds: Vec<[f32; 2]>) -> Self {
        let of_side = |side: usize| sorted(milliseconds.iter().map(|times| times[side].into()));
        let median_milliseconds = [0, 1].map(|side| quantile(&of_side(side), 0.5));
        let ratio = |times: &[f32; 2]| f64::from(times[0]) / f64::from(times[1]);
        let ratios = sorted(milliseconds.iter().map(ratio));
        Self {
            gpu,
            bytes,
            median_milliseconds,
            gigabytes_per_second: median_milliseconds.map(|ms| bytes as f64 / ms / 1e6),
            ratio: quantile(&ratios, 0.5),
            ratio_quartiles: [quantile(&ratios, 0.25), quantile(&ratios, 0.75)],
            milliseconds,
        }
    }
}

pub fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Between the two nearest values, in proportion.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len() - 1) as f64;
    let (low, high) = (
        sorted[place.floor() as usize],
        sorted[place.ceil() as usize],
    );
    low + (high - low) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_ratio_and_spread_are_those_of_the_pairs() {
        let milliseconds = vec![[1.0, 2.0], [4.0, 2.0], [2.0, 2.0], [2.0, 4.0], [8.0, 2.0]];
        let timing = Timing::new("G".into(), 4_000_000, milliseconds);
        assert_eq!(timing.median_milliseconds, [2.0, 2.0]);
        assert_eq!(timing.gigabytes_per_second, [2.0, 2.0]);
        // Sorted ratios: 0.5 0.5 1 2 4.
        assert_eq!(timing.ratio, 1.0);
        assert_eq!(timing.ratio_quartiles, [0.5, 2.0]);
    }

    #[test]
    fn a_quantile_lies_between_its_neighbours() {
        assert_eq!(quantile(&[1.0, 3.0], 0.5), 2.0);
        assert_eq!(quantile(&[1.0, 2.0, 5.0], 0.75), 3.5);
        assert_eq!(quantile(&[9.0], 0.25), 9.0);
    }

    #[test]
    fn too_few_pairs_are_refused() {
        let job = TimingJob {
            rust_image: "a".into(),
            cpp_image: "b".into(),
            input: None,
            pairs: 14,
        };
        let error = job.run().unwrap_err().to_string();
        assert!(error.contains("14 pairs"), "{error}");
    }
}
