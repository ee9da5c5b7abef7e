//! Known differences in machine code and their reasons.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde::Deserialize;

/// The reasons, in the order of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explained {
    #[serde(default)]
    differs: Vec<Entry>,
}

/// Forms that differ for one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Opcodes, in which `*` stands for anything.
    forms: Vec<String>,
    /// The architectures; all if there are none.
    #[serde(default)]
    architectures: Vec<String>,
    /// Why Rust needs other instructions.
    pub reason: String,
}

impl Explained {
    /// The list of this project.
    ///
    /// # Errors
    ///
    /// The file is malformed.
    pub fn load() -> Result<Self> {
        Self::parse(include_str!("explained.toml"))
    }

    fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context("host/src/parity/explained.toml")
    }

    /// The reasons that are not among those `used`.
    pub fn unused(&self, used: &BTreeSet<&str>) -> Vec<&str> {
        let reasons = self.differs.iter().map(|entry| entry.reason.as_str());
        reasons.filter(|reason| !used.contains(reason)).collect()
    }

    /// Why the form with this opcode differs on `architecture`.
    pub fn reason(&self, opcode: &str, architecture: &str) -> Option<&str> {
        let fits = |entry: &&Entry| {
            let here = entry.architectures.is_empty()
                || entry.architectures.iter().any(|it| it == architecture);
            here && entry.forms.iter().any(|pattern| matches(pattern, opcode))
        };
        self.differs
            .iter()
            .find(fits)
            .map(|entry| entry.reason.as_str())
    }
}

/// Whether `text` is `pattern`, with any text for each `*`.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((beginning, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(beginning) else {
        return false;
    };
    (0..=text.len()).any(|skipped| matches(rest, &text[skipped..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_list_is_well_formed() {
        Explained::load().unwrap();
    }

    #[test]
    fn a_reason_holds_for_its_forms_and_architectures() {
        let list = "[[differs]]\nforms = [\"a.b\", \"c.*\"]\narchitectures = [\"sm_90a\"]\nreason = \"so\"\n";
        let explained = Explained::parse(list).unwrap();
        assert_eq!(explained.reason("a.b", "sm_90a"), Some("so"));
        assert_eq!(explained.reason("c.d.e", "sm_90a"), Some("so"));
        assert_eq!(explained.reason("a.b.c", "sm_90a"), None);
        assert_eq!(explained.reason("a.b", "sm_100a"), None);
    }

    #[test]
    fn a_star_stands_for_anything_anywhere() {
        assert!(matches("a.*.d", "a.b.c.d") && matches("*", "") && matches("a*b*c", "abxbc"));
        assert!(!matches("a.*.d", "a.d") && !matches("a*b", "ab.c") && !matches("a*", "b"));
    }

    #[test]
    fn a_reason_that_nothing_needs_is_found() {
        let explained =
            Explained::parse("[[differs]]\nforms = [\"a\"]\nreason = \"so\"\n").unwrap();
        assert_eq!(explained.unused(&BTreeSet::new()), ["so"]);
        assert!(explained.unused(&BTreeSet::from(["so"])).is_empty());
    }

    #[test]
    fn a_misspelt_key_is_an_error() {
        assert!(Explained::parse("[[differs]]\nform = []\nreason = \"\"\n").is_err());
    }
}
