//! Interleaved rounds of everything that does one piece of work.

use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result};
use cuda_ptx_host::driver::Driver;
use cust::event::{Event, EventFlags};
use serde::{Deserialize, Serialize};

/// What is done, and how fast the hardware could at best.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Work {
    /// Bytes read and written, and the peak of the memory in bytes per second.
    Bytes {
        /// Bytes of one launch.
        moved: f64,
        /// Bytes per second.
        peak: f64,
    },
    /// Floating-point operations, and the peak of the tensor cores in operations per second.
    Flops {
        /// Operations of one launch.
        done: f64,
        /// Operations per second.
        peak: f64,
    },
}

impl Work {
    /// The least time that the hardware allows, in milliseconds.
    #[must_use]
    pub fn roofline_ms(self) -> f64 {
        match self {
            Work::Bytes { moved, peak } => moved / peak * 1e3,
            Work::Flops { done, peak } => done / peak * 1e3,
        }
    }

    /// What so many milliseconds mean, as in `4321 GB/s`.
    #[must_use]
    pub fn rate(self, ms: f64) -> String {
        match self {
            Work::Bytes { moved, .. } => format!("{:.0} GB/s", moved / ms / 1e6),
            Work::Flops { done, .. } => format!("{:.1} TFLOP/s", done / ms / 1e9),
        }
    }
}

/// Something that does the work: queues it on the driver's stream.
pub struct Competitor<'a> {
    name: &'static str,
    launch: Box<dyn FnMut() -> Result<()> + 'a>,
}

impl<'a> Competitor<'a> {
    /// A competitor.
    pub fn new(name: &'static str, launch: impl FnMut() -> Result<()> + 'a) -> Self {
        Self { name, launch: Box::new(launch) }
    }
}

/// The same work, done by several competitors.
#[derive(Clone, Copy, Debug)]
pub struct Contest<'a> {
    /// Its name.
    pub name: &'a str,
    /// What every competitor does.
    pub work: Work,
    /// What was checked before.
    pub checked: &'a str,
    /// How many rounds are measured.
    pub rounds: usize,
}

impl Contest<'_> {
    /// Has everyone launch once in every round, each time starting with another one.
    ///
    /// # Errors
    /// If a launch fails.
    pub fn run(&self, driver: &Driver, mut competitors: Vec<Competitor>) -> Result<Outcome> {
        let mut times = vec![Vec::new(); competitors.len()];
        // The first two rounds warm up.
        for round in 0..self.rounds + 2 {
            for turn in 0..competitors.len() {
                let index = (round + turn) % competitors.len();
                let competitor = &mut competitors[index];
                let ms = time(driver, &mut competitor.launch)
                    .with_context(|| format!("{}, {}", self.name, competitor.name))?;
                if round >= 2 {
                    times[index].push(ms);
                }
            }
        }
        let entries = competitors.iter().zip(times).map(|(competitor, times)| Entry {
            name: competitor.name.to_owned(),
            ms: Quartiles::of(&times),
            times_ms: times,
        });
        let mut outcome = Outcome::new(self.name, self.work, entries.collect());
        outcome.checked = self.checked.to_owned();
        Ok(outcome)
    }
}

/// The time between events before and after a launch, in milliseconds.
///
/// The stream is held until all is queued, so that the events are apart by what the GPU does, not by how long
/// the launch takes on the CPU.
///
/// # Errors
/// If the launch fails.
pub fn time(driver: &Driver, launch: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    let (start, stop) = (Event::new(EventFlags::DEFAULT)?, Event::new(EventFlags::DEFAULT)?);
    let (queued, all_queued) = mpsc::channel::<()>();
    // A launch that waits for the GPU, as the first one of a kernel may, is not held for ever.
    let hold = move || {
        let _ = all_queued.recv_timeout(Duration::from_millis(2));
    };
    driver.stream().add_callback(Box::new(hold))?;
    start.record(driver.stream())?;
    launch()?;
    stop.record(driver.stream())?;
    drop(queued);
    driver.synchronize()?;
    Ok(f64::from(stop.elapsed_time_f32(&start)?))
}

/// What a contest gave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Its name.
    pub name: String,
    /// What everyone did.
    pub work: Work,
    /// What was checked before.
    pub checked: String,
    /// The least time that the hardware allows, in milliseconds.
    pub roofline_ms: f64,
    /// The competitors.
    pub entries: Vec<Entry>,
    /// The first competitor against every other.
    pub ratios: Vec<Ratio>,
}

/// A competitor's times.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Milliseconds.
    pub ms: Quartiles,
    /// The time of every round, in milliseconds.
    pub times_ms: Vec<f64>,
}

/// How many times as fast the first competitor is as another, round by round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ratio {
    /// The other.
    pub than: String,
    /// More than 1 where the first is faster.
    pub speed: Quartiles,
}

impl Outcome {
    fn new(name: &str, work: Work, entries: Vec<Entry>) -> Self {
        let (first, others) = entries.split_first().expect("a contest has competitors");
        let ratios = others.iter().map(|other| {
            let pairs = other.times_ms.iter().zip(&first.times_ms);
            let speeds: Vec<f64> = pairs.map(|(other, first)| other / first).collect();
            Ratio { than: other.name.clone(), speed: Quartiles::of(&speeds) }
        });
        Self {
            name: name.to_owned(),
            work,
            checked: String::new(),
            roofline_ms: work.roofline_ms(),
            ratios: ratios.collect(),
            entries,
        }
    }

    /// A few lines for people.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut text = format!("{}, at best {:.3} ms; {}\n", self.name, self.roofline_ms, self.checked);
        for (index, entry) in self.entries.iter().enumerate() {
            let Quartiles { low, median, high } = entry.ms;
            text += &format!(
                "  {:<26} {median:8.4} ms ({low:.4} to {high:.4}), {}, {:.1} % of the roofline",
                entry.name,
                self.work.rate(median),
                100.0 * self.roofline_ms / median,
            );
            if let Some(Quartiles { low, median, high }) =
                index.checked_sub(1).map(|other| self.ratios[other].speed)
            {
                let first = &self.entries[0].name;
                text += &format!("; {first} is {median:.4} times as fast ({low:.4} to {high:.4})");
            }
            text += "\n";
        }
        text
    }
}

impl Outcome {
    /// Rows of a Markdown table: the first competitor, and how many times as fast it is as each other one.
    #[must_use]
    pub fn table(&self) -> String {
        let (first, others) = self.entries.split_first().expect("a contest has competitors");
        let speed = |entry: &Entry| self.work.rate(entry.ms.median);
        let mut contest = format!("{} | {:.4} ms, {}", self.name, first.ms.median, speed(first));
        let mut rows = String::new();
        for (other, ratio) in others.iter().zip(&self.ratios) {
            let Quartiles { low, median, high } = ratio.speed;
            let (than, rate) = (&other.name, speed(other));
            rows += &format!("| {contest} | {than}, {rate} | {median:.3} ({low:.3} to {high:.3}) |\n");
            contest = " |".to_owned();
        }
        rows
    }
}

/// The median, and the quartiles around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quartiles {
    /// A quarter of the values is below.
    pub low: f64,
    /// Half of the values is below.
    pub median: f64,
    /// A quarter of the values is above.
    pub high: f64,
}

impl Quartiles {
    /// Of some values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let place = part * (sorted.len() - 1) as f64;
            let below = place.floor() as usize;
            let above = (below + 1).min(sorted.len() - 1);
            sorted[below] + (sorted[above] - sorted[below]) * place.fract()
        };
        Self { low: at(0.25), median: at(0.5), high: at(0.75) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_interpolated() {
        let quartiles = Quartiles::of(&[4.0, 1.0, 3.0, 2.0]);
        let expected = Quartiles { low: 1.75, median: 2.5, high: 3.25 };
        assert_eq!(quartiles, expected);
    }

    #[test]
    fn the_first_is_compared_round_by_round() {
        let entry = |name: &str, times: &[f64]| Entry {
            name: name.to_owned(),
            ms: Quartiles::of(times),
            times_ms: times.to_vec(),
        };
        let work = Work::Bytes { moved: 1e9, peak: 1e12 };
        let entries = vec![entry("a", &[1.0, 2.0, 4.0]), entry("b", &[2.0, 4.0, 4.0])];
        let outcome = Outcome::new("x", work, entries);
        assert_eq!(outcome.roofline_ms, 1.0);
        assert_eq!(outcome.ratios[0].speed.median, 2.0);
        let row = "| x | 2.0000 ms, 500 GB/s | b, 250 GB/s | 2.000 (1.500 to 2.000) |\n";
        assert_eq!(outcome.table(), row);
    }
}
