//! What the GPU gave, recorded, so that expectations can be checked where there is none.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::agreement::Found;
use super::images::Entry;
use super::scenario::{self, Case, Word};
use crate::guide::random::hash;

/// How many of the first words are recorded as they are.
const SHOWN: usize = 4;

/// What the launches of one form and seed gave: the words that the ISA decides, and global memory. What it leaves open,
/// such as a sum of floats within a tolerance, is no part of it, so that it is the same on every GPU and on the CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// The seed.
    pub seed: u64,
    /// Of all launches.
    pub hash: String,
    /// The first words of output that the ISA decides, of the first launch.
    pub first: Vec<String>,
}

impl Digest {
    /// Of no launches yet.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            hash: format!("{:016x}", hash(seed, 0)),
            first: Vec::new(),
        }
    }

    /// Adds a launch: the words of output and the memory that the case decides.
    pub fn add(&mut self, case: &Case, found: &Found) {
        let decided = case
            .expected
            .output
            .iter()
            .zip(&found.output)
            .filter_map(|(word, found)| match word {
                Word::Is(_) => Some(*found),
                Word::Masked(_, mask) => Some(found & mask),
                _ => None,
            });
        let decided = Vec::from_iter(decided);
        if self.first.is_empty() {
            self.first = decided
                .iter()
                .take(SHOWN)
                .map(|word| format!("{word:x}"))
                .collect();
        }
        let memory = &found.memory[..case.expected.memory.len()];
        let bytes = memory.chunks(8).map(|bytes| {
            bytes
                .iter()
                .fold(0, |word, byte| word << 8 | u64::from(*byte))
        });
        let before = u64::from_str_radix(&self.hash, 16).unwrap_or_default();
        let all = decided.into_iter().chain(bytes).fold(before, hash);
        self.hash = format!("{all:016x}");
    }

    /// What the launches must give.
    pub(super) fn expected(seed: u64, cases: &[Case]) -> Self {
        let mut digest = Self::new(seed);
        for case in cases.iter().filter(|case| !case.expected.fails) {
            let word = |word: &Word| match word {
                Word::Is(word) | Word::Masked(word, _) => *word,
                _ => 0,
            };
            let found = Found {
                output: case.expected.output.iter().map(word).collect(),
                memory: case.expected.memory.clone(),
            };
            digest.add(case, &found);
        }
        digest
    }
}

/// A file of recorded outputs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Golden {
    /// Where they are from: the GPU.
    pub device: String,
    /// The CUDA version of its driver.
    pub driver: String,
    /// The day.
    pub date: String,
    /// The release of CCCL that lists the forms.
    pub cccl: String,
    /// By the name of the kernel.
    pub forms: BTreeMap<String, Digest>,
}

impl Golden {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// It is not there, or not one of recorded outputs.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("cannot understand {}", path.display()))
    }

    /// Compares the expectations of the forms that can be run with what was recorded, and counts the forms.
    ///
    /// # Errors
    ///
    /// How many forms have other expectations or are missing, and the first of them.
    pub fn check(&self, entries: &[Entry]) -> Result<usize> {
        let mut compared = 0;
        let mut differences = Vec::new();
        for entry in entries.iter().filter(|entry| entry.reason.is_none()) {
            let form = &entry.form;
            let Some(recorded) = self.forms.get(&form.kernel) else {
                differences.push(format!("nothing was recorded of {form}"));
                continue;
            };
            let scenario = scenario::of(form).map_err(anyhow::Error::msg)?;
            let expected = Digest::expected(recorded.seed, &(scenario.cases)(recorded.seed));
            if *recorded != expected {
                differences.push(format!(
                    "{form}, {}: the GPU gave {recorded:?}, the expectation is {expected:?}",
                    form.kernel
                ));
            }
            compared += 1;
        }
        match &differences[..] {
            [] => Ok(compared),
            [first, ..] => bail!(
                "{} forms are not as recorded; if their launches were changed, record again on a GPU \
                 (`run differential --golden FILE`): {first}",
                differences.len()
            ),
        }
    }
}
