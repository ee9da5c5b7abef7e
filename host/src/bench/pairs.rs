//! Launches in pairs, Rust and C++ in turn, and what stands for all pairs of a chain.

use anyhow::{Result, ensure};
use cust::memory::DeviceBuffer;
use serde::{Deserialize, Serialize};

use super::statistics::{Line, median, median_interval, trimmed_mean};
use crate::driver::{Arguments, Driver, Function, Launch};

/// Pairs before the first that counts.
const WARM_UP: usize = 2;
/// Several times what the L2 cache holds, in bytes.
const EVICTING: usize = 256 << 20;
/// What a warp records: start, end, sink, multiprocessor.
pub const RECORD: usize = 4;

/// What stands for the values of all pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The median: the pairs differ by chance only.
    Median,
    /// The mean of the middle 80 %: pairs take one of two times, by their place in memory or by what ran before, so that
    /// the median is the one or the other.
    TrimmedMean,
}

impl Statistic {
    fn of(self, values: &[f64]) -> f64 {
        match self {
            Self::Median => median(values),
            Self::TrimmedMean => trimmed_mean(values),
        }
    }
}

/// Cycles of chains of one warp.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// What the lines are laid through.
    pub statistic: Statistic,
    /// Cycles per step, the cycles that reading the clock takes, and how straight the line is.
    pub fit: [Line; 2],
    /// The median of Rust's slope over C++'s, pair by pair.
    pub ratio: f64,
    /// Its interval of 95 %.
    pub ratio_interval: [f64; 2],
    /// For each length the cycles of each pair.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cycles: Vec<Vec<[u64; 2]>>,
}

impl Latency {
    /// Of the cycles of each pair, for each of `lengths`.
    pub fn new(statistic: Statistic, cycles: Vec<Vec<[u64; 2]>>, lengths: &[u32]) -> Self {
        let line = |y: &dyn Fn(usize) -> f64| {
            let points = lengths
                .iter()
                .enumerate()
                .map(|(i, n)| (f64::from(*n), y(i)));
            Line::through(&points.collect::<Vec<_>>())
        };
        let fit =
            [0, 1].map(|side| line(&|length| statistic.of(&side_of_all(&cycles[length], side))));
        let pairs = cycles.first().map_or(0, Vec::len);
        let ratios = (0..pairs).filter_map(|pair| {
            let slope = |side: usize| line(&|length| cycles[length][pair][side] as f64).slope;
            match (slope(0), slope(1)) {
                // What is read once costs nothing in a loop.
                (rust, cpp) if rust == cpp => Some(1.0),
                (_, 0.0) => None,
                (rust, cpp) => Some(rust / cpp),
            }
        });
        let mut ratios = Vec::from_iter(ratios);
        if ratios.is_empty() {
            ratios.push(1.0);
        }
        Self {
            statistic,
            fit,
            ratio: median(&ratios),
            ratio_interval: median_interval(&ratios),
            cycles,
        }
    }

    /// Cycles per step in Rust and in C++.
    pub fn slopes(&self) -> [f64; 2] {
        self.fit.map(|line| line.slope)
    }

    /// What stands for the cycles of one length.
    pub fn of_length(&self, length: usize, side: usize) -> f64 {
        self.statistic.of(&side_of_all(&self.cycles[length], side))
    }
}

fn side_of_all(pairs: &[[u64; 2]], side: usize) -> Vec<f64> {
    pairs.iter().map(|pair| pair[side] as f64).collect()
}

/// Fills the L2 cache with something else.
pub fn evict(driver: &Driver) -> Result<()> {
    drop(driver.zeroed::<u8>(EVICTING)?);
    Ok(driver.synchronize()?)
}

/// How many launches give so many pairs.
pub fn launches(pairs: usize) -> usize {
    2 * (WARM_UP + pairs)
}

/// Launches both kernels in turn, the first of each pair in turn too; each launch has a part of `records` of
/// `size` words.
///
/// # Safety
/// As for [`Function::launch`], with the arguments that `arguments` makes of the address of the part and the number
/// of the launch.
pub unsafe fn launch_in_turn(
    driver: &Driver,
    functions: &[Function; 2],
    launch: &Launch,
    records: &DeviceBuffer<u64>,
    size: usize,
    arguments: impl Fn(u64, usize) -> Arguments,
) -> Result<()> {
    for turn in 0..records.len() / size {
        let out = records.as_device_ptr().as_raw() + (turn * size * 8) as u64;
        // SAFETY: the caller's promise.
        unsafe { functions[side_of(turn)].launch(launch, &arguments(out, turn))? };
    }
    Ok(driver.synchronize()?)
}

/// Reads the records of each launch that counts.
pub fn in_pairs<T: Copy + Default>(
    records: &[u64],
    size: usize,
    read: impl Fn(&[u64]) -> T,
) -> Result<Vec<[T; 2]>> {
    let pairs = records.len() / size / 2 - WARM_UP;
    let mut pairs = vec![[T::default(); 2]; pairs];
    for (turn, records) in records.chunks(size).enumerate().skip(2 * WARM_UP) {
        ensure!(records[1] > records[0], "the first warp recorded no time");
        pairs[turn / 2 - WARM_UP][side_of(turn)] = read(records);
    }
    Ok(pairs)
}

/// Rust and C++ in turn, and who is first in turn too.
fn side_of(turn: usize) -> usize {
    (turn + turn / 2) % 2
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: [u32; 4] = [64, 128, 192, 256];

    #[test]
    fn each_side_is_first_in_every_other_pair() {
        let sides: Vec<_> = (0..8).map(side_of).collect();
        assert_eq!(sides, [0, 1, 1, 0, 0, 1, 1, 0]);
    }

    #[test]
    fn records_are_read_as_they_were_launched() {
        // Two pairs to warm up and three that count; a launch records its number.
        let records = Vec::from_iter((0..launches(3) as u64).flat_map(|turn| [0, 1 + turn]));
        let pairs = in_pairs(&records, 2, |record| record[1] - 1).unwrap();
        assert_eq!(pairs, [[4, 5], [7, 6], [8, 9]]);
    }

    #[test]
    fn a_chain_that_costs_twice_as_much_has_twice_the_slope() {
        let cycles = LENGTHS.map(|n| vec![[u64::from(10 * n + 7), u64::from(5 * n + 3)]; 15]);
        let latency = Latency::new(Statistic::Median, cycles.to_vec(), &LENGTHS);
        assert!((latency.fit[0].slope - 10.0).abs() < 1e-9);
        assert!((latency.fit[1].intercept - 3.0).abs() < 1e-9);
        assert!((latency.ratio - 2.0).abs() < 1e-9);
    }

    #[test]
    fn of_places_that_cost_one_of_two_times_the_mean_moves_little_where_the_median_jumps() {
        let slope = |near: usize, statistic| {
            let of_place = |n: u32, place| u64::from(n * if place < near { 440 } else { 590 });
            let cycles = LENGTHS.map(|n| Vec::from_iter((0..240).map(|p| [of_place(n, p); 2])));
            Latency::new(statistic, cycles.to_vec(), &LENGTHS).fit[0].slope
        };
        let jump = |statistic| slope(118, statistic) / slope(122, statistic);
        assert!(jump(Statistic::Median) > 1.3);
        assert!(jump(Statistic::TrimmedMean) < 1.01);
    }

    #[test]
    fn chains_that_cost_nothing_cost_the_same() {
        let cycles = vec![vec![[40, 40]; 3], vec![[40, 40]; 3], vec![[40, 41]; 3]];
        let latency = Latency::new(Statistic::Median, cycles, &[64, 128, 192]);
        assert!(latency.ratio.is_finite());
        let nothing = Latency::new(
            Statistic::Median,
            vec![vec![[40, 40]; 3]; 3],
            &[64, 128, 192],
        );
        assert_eq!(nothing.ratio, 1.0);
    }
}
