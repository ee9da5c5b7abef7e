//! PTX ISA versions and GPU architectures.

use std::fmt;

/// A PTX ISA version: 80 is 8.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Isa(pub u16);

/// The versions, oldest first.
pub const KNOWN_ISAS: &[Isa] = &[
    Isa(10),
    Isa(11),
    Isa(12),
    Isa(13),
    Isa(14),
    Isa(15),
    Isa(20),
    Isa(21),
    Isa(22),
    Isa(23),
    Isa(30),
    Isa(31),
    Isa(32),
    Isa(40),
    Isa(41),
    Isa(42),
    Isa(43),
    Isa(50),
    Isa(60),
    Isa(61),
    Isa(62),
    Isa(63),
    Isa(64),
    Isa(65),
    Isa(70),
    Isa(71),
    Isa(72),
    Isa(73),
    Isa(74),
    Isa(75),
    Isa(76),
    Isa(77),
    Isa(78),
    Isa(80),
    Isa(81),
    Isa(82),
    Isa(83),
    Isa(84),
    Isa(85),
    Isa(86),
    Isa(87),
    Isa(88),
    Isa(90),
    Isa(91),
    Isa(92),
    Isa(93),
    Isa(94),
    Isa(95),
];

/// Every architecture, oldest first.
const ARCHITECTURES: &[&str] = &[
    "20", "21", "30", "32", "35", "37", "50", "52", "53", "60", "61", "62", "70", "72", "75", "80",
    "86", "87", "88", "89", "90", "90a", "100", "100a", "100f", "103", "103a", "103f", "107",
    "107a", "107f", "110", "110a", "110f", "120", "120a", "120f", "121", "121a", "121f",
];

/// Every architecture the project knows, as in `sm_90a`.
pub fn all_architectures() -> impl Iterator<Item = String> {
    ARCHITECTURES.iter().map(|name| format!("sm_{name}"))
}

/// The values of the cfg `cuda_ptx_sm` for a build for `architecture` (as in `sm_90a`): its own
/// name, and all that it includes.
pub fn included_architectures(architecture: &str) -> Vec<&'static str> {
    let target = architecture.trim_start_matches("sm_");
    ARCHITECTURES
        .iter()
        .copied()
        .filter(|name| includes(name, target))
        .collect()
}

impl Isa {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let version = text
            .split_once('.')
            .and_then(|(major, minor)| {
                let minor: u16 = minor.parse().ok().filter(|&minor| minor < 10)?;
                Some(Isa(major.parse::<u16>().ok()? * 10 + minor))
            })
            .filter(|version| KNOWN_ISAS.contains(version));
        version.ok_or_else(|| format!("`{text}` is not a PTX ISA version (as in `PTX 8.0`)"))
    }
}

/// The PTX ISA versions that have an instruction: since one, and in rare cases until one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Isas {
    /// The oldest.
    pub first: Isa,
    /// The newest, if it is gone from later ones.
    pub last: Option<Isa>,
}

impl Isas {
    /// `8.0`, or `9.3 to 9.4`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (first, last) = match text.split_once(" to ") {
            Some((first, last)) => (first, Some(Isa::parse(last)?)),
            None => (text, None),
        };
        let first = Isa::parse(first)?;
        Ok(Isas { first, last })
    }

    /// Whether `isa` is one of them.
    pub fn contain(self, isa: Isa) -> bool {
        self.first <= isa && self.last.is_none_or(|last| isa <= last)
    }

    /// The marker type of the device crate, e.g. `ptx_80`; `None` for versions that are taken for
    /// granted, those of `sm_70` and before. That a newer version has dropped an instruction is
    /// left out: ptxas goes on accepting it.
    pub fn marker(self) -> Option<String> {
        (self.first > Isa(60)).then(|| format!("ptx_{}", self.first.0))
    }
}

impl fmt::Display for Isas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            Some(last) => write!(f, "{} to {last}", self.first),
            None => write!(f, "{}", self.first),
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 10, self.0 % 10)
    }
}

/// A set of architectures: `sm_90` means that one and all later ones, `sm_90a` only itself, and
/// `sm_100f` both `sm_100f` and `sm_100a`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Targets {
    names: Vec<String>,
    except: Vec<String>,
}

impl Targets {
    /// `sm_90`, or several as in `sm_90a 100f 103f`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let expected = || format!("expected architectures as in `sm_90a 100f`, found `{text}`");
        let names: Vec<String> = text
            .strip_prefix("sm_")
            .ok_or_else(expected)?
            .split_whitespace()
            .map(str::to_string)
            .collect();
        for name in &names {
            if !ARCHITECTURES.contains(&name.as_str()) {
                return Err(format!("unknown architecture `sm_{name}`"));
            }
        }
        if names.is_empty() || (names.len() > 1 && names.iter().any(|name| is_plain(name))) {
            return Err(expected());
        }
        Ok(Targets {
            names,
            except: Vec::new(),
        })
    }

    /// These without `architecture`.
    pub(super) fn without(mut self, architectures: &Targets) -> Self {
        self.except.extend(architectures.names.iter().cloned());
        self
    }

    /// Whether `architecture` (as in `sm_90a`) is one of them.
    pub fn allow(&self, architecture: &str) -> bool {
        let Some(name) = architecture.strip_prefix("sm_") else {
            return false;
        };
        let one_of = |set: &[String]| set.iter().any(|member| includes(member, name));
        ARCHITECTURES.contains(&name) && one_of(&self.names) && !one_of(&self.except)
    }

    /// The members of the set, as in `90a`.
    pub fn members(&self) -> impl Iterator<Item = &'static str> + '_ {
        ARCHITECTURES
            .iter()
            .copied()
            .filter(|name| self.allow(&format!("sm_{name}")))
    }

    /// The oldest architecture, as in `90`, if these are that one and all later ones.
    pub fn oldest(&self) -> Option<&str> {
        match self.names.as_slice() {
            [name] if is_plain(name) && self.except.is_empty() => Some(name),
            _ => None,
        }
    }

    /// The marker type of the device crate, e.g. `sm_90` or `sm_100f_103f`; `None` for what is
    /// taken for granted, `sm_70` and later.
    pub fn marker(&self) -> Option<String> {
        if self.oldest().is_some_and(|oldest| number(oldest) <= 70) {
            return None;
        }
        let mut marker = format!("sm_{}", self.names.join("_"));
        if !self.except.is_empty() {
            marker += &format!("_not_{}", self.except.join("_"));
        }
        Some(marker)
    }
}

impl fmt::Display for Targets {
    /// `sm_90 and later`, or `sm_90a, sm_100a/f`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |name: &String| match name.strip_suffix('f') {
            Some(number) => format!("sm_{number}a/f"),
            None if is_plain(name) => format!("sm_{name} and later"),
            None => format!("sm_{name}"),
        };
        let list = |names: &[String]| names.iter().map(name).collect::<Vec<_>>().join(", ");
        f.write_str(&list(&self.names))?;
        if !self.except.is_empty() {
            write!(f, "; not {}", list(&self.except))?;
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    name.ends_with(|c: char| c.is_ascii_digit())
}

fn number(name: &str) -> u32 {
    name.trim_end_matches(['a', 'f']).parse().unwrap_or(0)
}

fn includes(member: &str, name: &str) -> bool {
    match member.strip_suffix('f') {
        Some(family) => number(name).to_string() == family && !is_plain(name),
        None if is_plain(member) => number(name) >= number(member),
        None => member == name,
    }
}
