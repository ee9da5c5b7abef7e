//! Version numbers as the tools print them.

use std::fmt;

/// `major.minor.patch`; parts that a tool does not print are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    /// Reads the number that `text` begins with: `1.97.0-nightly (…)`, `22.1.8`, `13.5`.
    pub fn parse(text: &str) -> Option<Self> {
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let mut parts = text[..end].split('.').map(|part| part.parse::<u32>().ok());
        Some(Self {
            major: parts.next()??,
            minor: parts.next().flatten().unwrap_or(0),
            patch: parts.next().flatten().unwrap_or(0),
        })
    }

    /// Reads the number that follows the first `label` in a tool's output.
    pub fn after(label: &str, output: &str) -> Option<Self> {
        let start = output.find(label)? + label.len();
        Self::parse(output[start..].trim_start())
    }

    /// Reads CCCL's encoding, `major * 1000000 + minor * 1000 + patch`.
    pub fn from_cccl(number: u32) -> Self {
        Self {
            major: number / 1_000_000,
            minor: number / 1000 % 1000,
            patch: number % 1000,
        }
    }

    /// `(major, minor)`: what compatibility is promised over.
    pub fn release(self) -> (u32, u32) {
        (self.major, self.minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(major: u32, minor: u32, patch: u32) -> Option<Version> {
        Some(Version {
            major,
            minor,
            patch,
        })
    }

    #[test]
    fn versions_are_read_as_the_tools_print_them() {
        let nvcc = "nvcc: NVIDIA (R) Cuda compiler driver\n\
                    Cuda compilation tools, release 13.5, V13.5.37\n";
        let rustc = "rustc 1.97.0-nightly (e50aa6fba 2026-05-19)\n\
                     release: 1.97.0-nightly\nLLVM version: 22.1.4\n";
        assert_eq!(Version::after(", V", nvcc), version(13, 5, 37));
        assert_eq!(Version::after("release:", rustc), version(1, 97, 0));
        assert_eq!(Version::after("LLVM version:", rustc), version(22, 1, 4));
        assert_eq!(
            Version::after("LLVM version", "Debian LLVM version 22.1.8\n"),
            version(22, 1, 8)
        );
        assert_eq!(Version::parse("1.96.0+dfsg1-1~deb12u2"), version(1, 96, 0));
        assert_eq!(Version::parse("13"), version(13, 0, 0));
        assert_eq!(version(3, 5, 0), Some(Version::from_cccl(3_005_000)));
    }

    #[test]
    fn text_without_a_number_is_no_version() {
        assert_eq!(Version::parse("(none)"), None);
        assert_eq!(Version::parse(""), None);
        assert_eq!(Version::after("release", "no such word"), None);
    }

    #[test]
    fn order_is_numeric() {
        assert!(Version::parse("1.100.0") > Version::parse("1.96.0"));
        assert!(Version::parse("13.5.37") > Version::parse("13.5.4"));
    }
}
