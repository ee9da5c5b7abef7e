//! The qualifiers of an opcode.

use anyhow::{Context, Result};

use super::super::op::*;
use super::super::parse::Operand;

/// The qualifiers of one opcode. Each is taken by what understands it; what is left is not executed.
pub struct Quals<'a> {
    pub parts: Vec<&'a str>,
}

impl<'a> Quals<'a> {
    pub fn take(&mut self, name: &str) -> bool {
        let found = self.parts.iter().position(|part| *part == name);
        if let Some(at) = found {
            self.parts.remove(at);
        }
        found.is_some()
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[(&str, T)]) -> Option<T> {
        choices
            .iter()
            .find_map(|(name, value)| self.take(name).then_some(*value))
    }

    /// The last type among the qualifiers.
    pub fn ty(&mut self) -> Result<Ty> {
        let at = self
            .parts
            .iter()
            .rposition(|part| Ty::parse(part).is_some())
            .context("expected a type")?;
        Ok(Ty::parse(self.parts.remove(at)).expect("the position is that of a type"))
    }

    pub fn space(&mut self) -> Space {
        self.one_of(&[
            ("global", Space::Global),
            ("shared", Space::Shared),
            ("shared::cta", Space::Shared),
            ("shared::cluster", Space::Shared),
            ("local", Space::Local),
            ("const", Space::Const),
            ("param", Space::Param),
            ("param::entry", Space::Param),
            ("param::func", Space::Param),
        ])
        .unwrap_or(Space::Generic)
    }

    pub fn round(&mut self) -> Round {
        self.one_of(&[
            ("rn", Round::Near),
            ("rz", Round::Zero),
            ("rm", Round::Down),
            ("rp", Round::Up),
        ])
        .unwrap_or_default()
    }

    pub fn float_mode(&mut self) -> FloatMode {
        FloatMode {
            round: self.round(),
            ftz: self.take("ftz"),
            sat: self.take("sat"),
            nan: self.take("NaN"),
        }
    }

    /// Scope, cache and eviction hints, which change no result.
    pub fn hints(&mut self) {
        self.parts.retain(|part| {
            !matches!(
                *part,
                "cta"
                    | "cluster"
                    | "gpu"
                    | "sys"
                    | "ca"
                    | "cg"
                    | "cs"
                    | "lu"
                    | "cv"
                    | "wb"
                    | "wt"
                    | "nc"
            ) && !part.starts_with("L1::")
                && !part.starts_with("L2::")
        });
    }

    /// The operands without a cache policy, which changes no result.
    pub fn without_policy<'o, 'p>(&self, operands: &'o [Operand<'p>]) -> &'o [Operand<'p>] {
        match operands {
            [rest @ .., _] if self.parts.contains(&"L2::cache_hint") => rest,
            all => all,
        }
    }

    pub fn strength(&mut self) -> Strength {
        // `.mmio.relaxed` has both.
        let mmio = self.take("mmio");
        let strong = ["relaxed", "acquire", "release", "volatile", "acq_rel"];
        if strong.into_iter().any(|name| self.take(name)) || mmio {
            Strength::Strong
        } else {
            self.take("weak");
            Strength::Weak
        }
    }
}
