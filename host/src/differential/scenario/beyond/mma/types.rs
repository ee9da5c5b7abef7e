//! The types of the elements of matrices.

use crate::differential::scenario::beyond::floats::FloatType;

/// The type of an element of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    Float(FloatType),
    Double,
    Int { bits: u32, signed: bool },
}

impl Element {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "f64" => Self::Double,
            "b1" => Self::Int {
                bits: 1,
                signed: false,
            },
            "s8" | "u8" | "s4" | "u4" => Self::Int {
                bits: name[1..].parse().ok()?,
                signed: name.starts_with('s'),
            },
            _ => Self::Float(FloatType::parse(name)?),
        })
    }

    /// The bits it takes.
    pub fn bits(self) -> u32 {
        match self {
            // In the upper bits of a register.
            Self::Float(float) if float.bits() == 19 => 32,
            Self::Float(float) => float.bits(),
            Self::Double => 64,
            Self::Int { bits, .. } => bits,
        }
    }

    pub fn encode(self, value: f64) -> u64 {
        match self {
            Self::Float(float) => float.code(value) << (self.bits() - float.bits()),
            Self::Double => value.to_bits(),
            Self::Int { bits, .. } => value as i64 as u64 & ((1 << bits) - 1),
        }
    }
}

/// The type of C and D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    Half,
    Single,
    Double,
    Int,
}

impl Sum {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "f16" => Self::Half,
            "f32" => Self::Single,
            "f64" => Self::Double,
            "s32" => Self::Int,
            _ => return None,
        })
    }

    pub fn encode(self, value: f64) -> u64 {
        match self {
            Self::Half => half().code(value),
            Self::Single => u64::from((value as f32).to_bits()),
            Self::Double => value.to_bits(),
            Self::Int => u64::from(value as i64 as u32),
        }
    }

    pub fn value(self, bits: u64) -> f64 {
        match self {
            Self::Half => half().value(bits & 0xffff),
            Self::Single => f64::from(f32::from_bits(bits as u32)),
            Self::Double => f64::from_bits(bits),
            Self::Int => f64::from(bits as i32),
        }
    }

    /// Elements in a register.
    pub fn per_register(self) -> usize {
        if self == Self::Half { 2 } else { 1 }
    }
}

/// Half precision.
pub fn half() -> FloatType {
    FloatType::parse("f16").expect("it is a type")
}
