//! How far apart two machine functions are.

use super::Function;
use crate::inspect::Difference;
use serde::Serialize;
use std::fmt;

/// The four classes of a comparison, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The same sequence of instructions, registers renamed.
    Identical,
    /// The same opcodes with modifiers, each as often, in another order or with other operands.
    Equivalent,
    /// Rust needs a part of the C++ side's opcodes and nothing else.
    Fewer,
    /// Rust needs an opcode that the C++ side does not, or more of one.
    Differs,
}

impl Class {
    /// Whether Rust is as good as C++.
    pub fn is_equal(self) -> bool {
        self != Self::Differs
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Identical => "identical",
            Self::Equivalent => "equivalent",
            Self::Fewer => "fewer",
            Self::Differs => "differs",
        })
    }
}

/// The result of [`compare`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// How far apart the functions are.
    pub class: Class,
    /// Which opcodes each side has more of.
    pub difference: Difference,
}

/// Compares two functions instruction by instruction.
pub fn compare(rust: &Function, cxx: &Function) -> Comparison {
    let difference = Difference::of(&rust.opcodes(), &cxx.opcodes());
    let class = if !difference.only_rust.is_empty() {
        Class::Differs
    } else if !difference.only_cxx.is_empty() {
        Class::Fewer
    } else if rust.renamed() == cxx.renamed() {
        Class::Identical
    } else {
        Class::Equivalent
    };
    Comparison { class, difference }
}

/// The opcodes of two whole kernels as sets, and their sizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpcodeComparison {
    /// Opcodes with modifiers that only the Rust kernel uses.
    pub only_rust: Vec<String>,
    /// Opcodes with modifiers that only the C++ kernel uses.
    pub only_cxx: Vec<String>,
    /// The number of instructions of both: Rust, C++.
    pub instructions: [usize; 2],
}

impl OpcodeComparison {
    /// Whether both kernels use the same opcodes.
    pub fn is_equal(&self) -> bool {
        self.only_rust.is_empty() && self.only_cxx.is_empty()
    }
}

/// Compares which opcodes two kernels use, not how often or in which order.
pub fn compare_opcodes(rust: &Function, cxx: &Function) -> OpcodeComparison {
    let (left, right) = (rust.opcodes(), cxx.opcodes());
    OpcodeComparison {
        only_rust: left.not_in(&right),
        only_cxx: right.not_in(&left),
        instructions: [rust.instructions.len(), cxx.instructions.len()],
    }
}
