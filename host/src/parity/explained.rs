//! Known differences in machine code and their reasons.

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
    /// Opcodes, or their beginning and `*`.
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

fn matches(pattern: &str, opcode: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => opcode.starts_with(beginning),
        None => opcode == pattern,
    }
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
    fn a_misspelt_key_is_an_error() {
        assert!(Explained::parse("[[differs]]\nform = []\nreason = \"\"\n").is_err());
    }
}
