//! What picks a schedule: a seed, or the choices in which it deviates from the plainest one.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result};

use super::Options;

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

/// The choices of a schedule that are not the plainest: which choice of the run, and what was chosen.
///
/// In the plainest schedule a warp goes on until it waits, and copies are moved when nothing else can
/// be done. `12=1,40=3` deviates from it in the choices 12 and 40.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deviations(Vec<(u32, u32)>);

impl fmt::Display for Deviations {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let choices = self.0.iter().map(|(at, what)| format!("{at}={what}"));
        match Vec::from_iter(choices).join(",") {
            choices if choices.is_empty() => write!(f, "plain"),
            choices => write!(f, "{choices}"),
        }
    }
}

impl FromStr for Deviations {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "plain" {
            return Ok(Self::default());
        }
        let choice = |text: &str| {
            let (at, what) = text.split_once('=')?;
            Some((at.parse().ok()?, what.parse().ok()?))
        };
        let choices = text.split(',').map(choice).collect::<Option<_>>();
        Ok(Self(choices.with_context(|| {
            format!("expected `plain`, or choices such as `12=1,40=3`, found `{text}`")
        })?))
    }
}

impl Deviations {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Makes the choices of a run.
pub struct Chooser {
    rng: Rng,
    plan: Option<Plan>,
}

/// Choices that are to be made, and what choices there were.
struct Plan {
    deviations: Deviations,
    /// The number of possibilities of each choice of the run.
    arities: Vec<u32>,
    /// A deviation changed nothing, so another schedule is the same.
    redundant: bool,
}

impl Chooser {
    pub fn of(options: &Options) -> Self {
        match &options.deviations {
            Some(deviations) => Self::planned(deviations.clone()),
            None => Self::seeded(options.seed),
        }
    }

    /// For one cluster of a grid that runs apart.
    pub fn of_part(seed: u64, cluster: u32) -> Self {
        let mut rng = Rng(seed);
        Self::seeded(rng.next() ^ u64::from(cluster) << 32)
    }

    fn seeded(seed: u64) -> Self {
        Self {
            rng: Rng(seed),
            plan: None,
        }
    }

    pub fn planned(deviations: Deviations) -> Self {
        Self {
            plan: Some(Plan {
                deviations,
                arities: Vec::new(),
                redundant: false,
            }),
            ..Self::seeded(0)
        }
    }

    /// Whether choices are made one by one, to have them all.
    pub fn is_planned(&self) -> bool {
        self.plan.is_some()
    }

    /// A number below `bound`; 0 is the plainest.
    pub fn below(&mut self, bound: usize) -> usize {
        match &mut self.plan {
            None => ((self.rng.next() >> 32) as usize * bound.max(1)) >> 32,
            Some(_) if bound < 2 => 0,
            Some(plan) => {
                let number = plan.arities.len() as u32;
                plan.arities.push(bound as u32);
                let mut deviations = plan.deviations.0.iter();
                let chosen = deviations.find(|(at, _)| *at == number);
                chosen.map_or(0, |(_, what)| (*what as usize).min(bound - 1))
            }
        }
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        match self.is_planned() {
            true => self.below(2) == 1,
            false => self.below(n) == 0,
        }
    }

    /// What was chosen turned out to be what happens anyway.
    pub fn note_redundant(&mut self) {
        if let Some(plan) = &mut self.plan {
            plan.redundant = true;
        }
    }

    /// The schedules with one deviation more, behind those of this one, at most `limit`.
    pub fn more_deviations(&self, limit: usize) -> Vec<Deviations> {
        let Some(plan) = self.plan.as_ref().filter(|plan| !plan.redundant) else {
            return Vec::new();
        };
        let first = plan.deviations.0.last().map_or(0, |(at, _)| at + 1);
        let choices = (first..).zip(plan.arities.iter().skip(first as usize));
        let others = choices.flat_map(|(at, arity)| (1..*arity).map(move |what| (at, what)));
        let more = others.map(|other| {
            let mut deviations = plan.deviations.clone();
            deviations.0.push(other);
            deviations
        });
        more.take(limit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_read_as_they_are_written() {
        for text in ["plain", "12=1", "12=1,40=3"] {
            assert_eq!(text.parse::<Deviations>().unwrap().to_string(), text);
        }
        assert!("12".parse::<Deviations>().is_err());
    }

    #[test]
    fn every_sequence_of_choices_is_had_once() {
        // Two choices of three possibilities, a third one behind some of them.
        let run = |chooser: &mut Chooser| {
            let (a, b) = (chooser.below(3), chooser.below(3));
            (a, b, if a == b { chooser.below(2) } else { 0 })
        };
        let mut all = Vec::new();
        let mut left = vec![Deviations::default()];
        while let Some(deviations) = left.pop() {
            let mut chooser = Chooser::planned(deviations);
            all.push(run(&mut chooser));
            left.extend(chooser.more_deviations(100));
        }
        all.sort_unstable();
        let len = all.len();
        all.dedup();
        assert_eq!((len, all.len()), (12, 12));
    }
}
