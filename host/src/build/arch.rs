//! GPU architectures and PTX ISA versions.

use std::fmt;
use std::str::FromStr;

use anyhow::{Error, bail};

/// A PTX target such as `sm_90a`: compute capability and the suffix of architecture-specific (`a`)
/// or family-specific (`f`) code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arch {
    /// Ten times the compute capability, 90 for 9.0.
    pub number: u32,
    /// `a`, `f` or nothing.
    pub suffix: Option<char>,
}

/// The architectures that ptxas 13.5 assembles for.
const KNOWN: [&str; 26] = [
    "sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a",
    "sm_100f", "sm_103", "sm_103a", "sm_103f", "sm_107", "sm_107a", "sm_107f", "sm_110", "sm_110a",
    "sm_110f", "sm_120", "sm_120a", "sm_120f", "sm_121", "sm_121a", "sm_121f",
];

impl Arch {
    /// The architecture of the H100 and H200, with its own instructions.
    pub const SM_90A: Self = Self {
        number: 90,
        suffix: Some('a'),
    };

    /// The name of the virtual architecture, `compute_90a`.
    #[must_use]
    pub fn compute(self) -> String {
        self.to_string().replace("sm_", "compute_")
    }

    /// What rustc and LLVM compile for: they do not know sm_107, whose family sm_100 is.
    #[must_use]
    pub fn llvm_cpu(self) -> String {
        let number = if self.number == 107 { 100 } else { self.number };
        Self { number, ..self }.to_string()
    }

    /// The lowest PTX ISA version that has this target.
    ///
    /// PTX ISA: [PTX release notes](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#release-notes).
    #[must_use]
    pub fn first_isa(self) -> Isa {
        let family = self.suffix == Some('f');
        let (major, minor) = match self.number {
            75 => (6, 3),
            80 => (7, 0),
            86 => (7, 1),
            87 => (7, 4),
            89 => (7, 8),
            90 if self.suffix.is_none() => (7, 8),
            90 => (8, 0),
            100 if !family => (8, 6),
            120 if !family => (8, 7),
            88 | 110 => (9, 0),
            107 => (9, 4),
            _ => (8, 8),
        };
        Isa { major, minor }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "sm_{}", self.number)?;
        self.suffix.map_or(Ok(()), |suffix| write!(f, "{suffix}"))
    }
}

impl FromStr for Arch {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        if !KNOWN.contains(&name) {
            bail!(
                "`{name}` is not an architecture that can be built for; expected one of {}",
                KNOWN.join(", ")
            );
        }
        let digits = name.trim_start_matches("sm_");
        let suffix = digits.chars().last().filter(char::is_ascii_alphabetic);
        let number = digits.trim_end_matches(['a', 'f']).parse()?;
        Ok(Self { number, suffix })
    }
}

/// A PTX ISA version such as 8.7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Isa {
    /// 8 of 8.7.
    pub major: u32,
    /// 7 of 8.7.
    pub minor: u32,
}

/// The PTX ISA versions since 6.2: 6.3 has the oldest of the [`KNOWN`] architectures.
const ISA_VERSIONS: [(u32, u32); 28] = [
    (6, 2),
    (6, 3),
    (6, 4),
    (6, 5),
    (7, 0),
    (7, 1),
    (7, 2),
    (7, 3),
    (7, 4),
    (7, 5),
    (7, 6),
    (7, 7),
    (7, 8),
    (8, 0),
    (8, 1),
    (8, 2),
    (8, 3),
    (8, 4),
    (8, 5),
    (8, 6),
    (8, 7),
    (8, 8),
    (9, 0),
    (9, 1),
    (9, 2),
    (9, 3),
    (9, 4),
    (9, 5),
];

impl Isa {
    /// The newest version that rustc knows, and the default: drivers since CUDA 12.8 load it.
    pub const RUSTC_NEWEST: Self = Self { major: 8, minor: 7 };
    /// The newest version that LLVM 22 writes.
    pub const LLVM_NEWEST: Self = Self { major: 9, minor: 0 };

    /// All versions up to this one, oldest first.
    pub fn and_older(self) -> impl Iterator<Item = Self> {
        ISA_VERSIONS
            .into_iter()
            .map(|(major, minor)| Self { major, minor })
            .filter(move |version| *version <= self)
    }

    /// As LLVM, rustc and `__cccl_ptx_isa` write it: 87 for 8.7.
    #[must_use]
    pub fn number(self) -> u32 {
        self.major * 10 + self.minor
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Isa {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let version = text
            .split_once('.')
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        match version {
            Some((major, minor)) if ISA_VERSIONS.contains(&(major, minor)) => {
                Ok(Self { major, minor })
            }
            _ => bail!("`{text}` is not a PTX ISA version from 6.3 to 9.5"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_parsed_and_printed() {
        for name in KNOWN {
            let arch: Arch = name.parse().unwrap();
            assert_eq!(arch.to_string(), name);
            assert!(ISA_VERSIONS.contains(&(arch.first_isa().major, arch.first_isa().minor)));
        }
        assert_eq!(Arch::SM_90A, "sm_90a".parse().unwrap());
        assert_eq!(Arch::SM_90A.compute(), "compute_90a");
    }

    #[test]
    fn an_unknown_architecture_lists_the_known_ones() {
        for name in ["sm_42", "90", "sm_90f", ""] {
            let error = name.parse::<Arch>().unwrap_err().to_string();
            assert!(error.contains("sm_90a"), "{error}");
        }
    }

    #[test]
    fn isa_versions_are_ordered() {
        let isa: Isa = "8.0".parse().unwrap();
        assert_eq!(isa.number(), 80);
        assert_eq!(isa.and_older().last(), Some(isa));
        assert!("8.9".parse::<Isa>().is_err());
    }
}
