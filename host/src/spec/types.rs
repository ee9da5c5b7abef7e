//! Types of arguments and results.

use std::fmt;

use super::tag::{Tag, TagTable};

/// The type of an argument or result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A tag: an empty value whose type selects the instruction.
    Tag(Tag),
    /// `n32<N>`: an immediate operand, from `low` to `high` in steps of `step`.
    Immediate {
        /// Least value.
        low: i64,
        /// Greatest value.
        high: i64,
        /// Distance of two values.
        step: i64,
        /// Whether only powers of two are allowed.
        powers: bool,
    },
    /// A value in a register.
    Scalar(Scalar),
    /// A generic pointer, converted to an address of `space`.
    Pointer {
        /// The state space that the instruction wants an address of.
        space: Space,
        /// `*mut` or `*const`.
        mutable: bool,
        /// What it points to.
        to: Scalar,
        /// How many of them, if it points to an array.
        len: Option<usize>,
    },
    /// Values in several registers.
    Array {
        /// Element type.
        of: Scalar,
        /// Number of elements.
        len: usize,
    },
    /// Values in several registers that are read and written: `&mut [T; len]`.
    InOut {
        /// Element type.
        of: Scalar,
        /// Number of elements.
        len: usize,
    },
    /// An output written through a reference: `&mut T`, or `&mut [T; len]`.
    Out {
        /// Element type.
        of: Scalar,
        /// Number of elements, if it is an array.
        len: Option<usize>,
    },
}

/// How the C++ twin of a form that `cuda::ptx` lacks is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Twin {
    /// As inline assembly of the same text.
    Assembly,
    /// As this expression, in which words are names of arguments: a function of CUDA.
    Expression(String),
}

/// A state space, as far as the conversion of a pointer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Shared memory, of this CTA or of another in the cluster: a 32-bit address.
    Shared,
    /// Global memory: a 64-bit address.
    Global,
    /// A generic address, as it is.
    Generic,
}

/// What fits one register, or two or four for the wide ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Scalar {
    U8,
    U16,
    U32,
    U64,
    I16,
    I32,
    I64,
    F32,
    F64,
    F16,
    Bf16,
    F16x2,
    Bf16x2,
    Bool,
    U128,
    /// Any type of this many bits: 8, 16, 32, 64, 128 or 256.
    Bits(u16),
    /// Behind a pointer: any type (`void` in C++).
    Any,
}

const SCALARS: &[(&str, Scalar)] = &[
    ("u8", Scalar::U8),
    ("u16", Scalar::U16),
    ("u32", Scalar::U32),
    ("u64", Scalar::U64),
    ("i16", Scalar::I16),
    ("s16", Scalar::I16),
    ("i32", Scalar::I32),
    ("s32", Scalar::I32),
    ("i64", Scalar::I64),
    ("s64", Scalar::I64),
    ("f32", Scalar::F32),
    ("f64", Scalar::F64),
    ("f16", Scalar::F16),
    ("bf16", Scalar::Bf16),
    ("f16x2", Scalar::F16x2),
    ("bf16x2", Scalar::Bf16x2),
    ("bool", Scalar::Bool),
    ("u128", Scalar::U128),
    ("b8", Scalar::Bits(8)),
    ("b16", Scalar::Bits(16)),
    ("b32", Scalar::Bits(32)),
    ("b64", Scalar::Bits(64)),
    ("b128", Scalar::Bits(128)),
    ("b256", Scalar::Bits(256)),
    ("_", Scalar::Any),
];

impl Scalar {
    /// Its bits in registers.
    pub fn bits(self) -> u16 {
        match self {
            Scalar::U8 => 8,
            Scalar::U16 | Scalar::I16 | Scalar::F16 | Scalar::Bf16 => 16,
            Scalar::U64 | Scalar::I64 | Scalar::F64 => 64,
            Scalar::U128 => 128,
            Scalar::Bits(bits) => bits,
            _ => 32,
        }
    }

    /// How many words of 64 bits have room for it.
    pub fn words(self) -> usize {
        usize::from(self.bits().div_ceil(64))
    }

    /// The C++ type; for [`Scalar::Bits`] the unsigned integer of that size, and above 64 bits a structure.
    pub fn cxx(self) -> &'static str {
        match self {
            Scalar::U8 | Scalar::Bits(8) => "uint8_t",
            Scalar::U16 | Scalar::Bits(16) => "uint16_t",
            Scalar::U32 | Scalar::Bits(32) => "uint32_t",
            Scalar::U64 | Scalar::Bits(64) => "uint64_t",
            Scalar::I16 => "int16_t",
            Scalar::I32 => "int32_t",
            Scalar::I64 => "int64_t",
            Scalar::F32 => "float",
            Scalar::F64 => "double",
            Scalar::F16 => "__half",
            Scalar::Bf16 => "__nv_bfloat16",
            Scalar::F16x2 => "__half2",
            Scalar::Bf16x2 => "__nv_bfloat162",
            Scalar::Bool => "bool",
            Scalar::U128 | Scalar::Bits(128) => "bits128",
            Scalar::Bits(_) => "bits256",
            Scalar::Any => "void",
        }
    }

    /// The Rust type; for [`Scalar::Bits`] the unsigned integer of that size.
    pub fn rust(self) -> &'static str {
        match self {
            Scalar::U8 | Scalar::Bits(8) => "u8",
            Scalar::U16 | Scalar::Bits(16) => "u16",
            Scalar::U32 | Scalar::Bits(32) => "u32",
            Scalar::U64 | Scalar::Bits(64) => "u64",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
            Scalar::F16 => "f16",
            Scalar::Bf16 => "bf16",
            Scalar::F16x2 => "f16x2",
            Scalar::Bf16x2 => "bf16x2",
            Scalar::Bool => "bool",
            Scalar::U128 => "u128",
            Scalar::Bits(128) => "[u64; 2]",
            Scalar::Bits(_) => "[u64; 4]",
            Scalar::Any => "()",
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        SCALARS
            .iter()
            .find(|(name, _)| *name == text)
            .map(|&(_, scalar)| scalar)
            .ok_or_else(|| {
                let known: Vec<&str> = SCALARS.iter().map(|&(name, _)| name).collect();
                format!("unknown type `{text}`; the types are {}", known.join(", "))
            })
    }
}

impl Type {
    /// Reads a type as the notation writes it.
    pub(super) fn parse(text: &str, tags: &TagTable) -> Result<Self, String> {
        if let Some(tag) = tags.constant(text) {
            return Ok(Type::Tag(tag));
        }
        if let Some(range) = text.strip_prefix("n32 ") {
            return immediate(range);
        }
        if let Some(rest) = text.strip_prefix("inout ") {
            return match array(rest)? {
                Some((of, len)) => Ok(Type::InOut { of, len }),
                None => Err(format!("expected `inout [T; N]`, found `{text}`")),
            };
        }
        if let Some(rest) = text.strip_prefix("&mut ") {
            return Ok(match array(rest)? {
                Some((of, len)) => Type::Out { of, len: Some(len) },
                None => Type::Out {
                    of: Scalar::parse(rest)?,
                    len: None,
                },
            });
        }
        if let Some((of, len)) = array(text)? {
            return Ok(Type::Array { of, len });
        }
        for (word, space) in [
            ("shared ", Space::Shared),
            ("global ", Space::Global),
            ("generic ", Space::Generic),
        ] {
            if let Some(pointer) = text.strip_prefix(word) {
                return pointer_to(pointer.trim(), space);
            }
        }
        match Scalar::parse(text)? {
            Scalar::Any => Err("`_` stands for any type, behind a pointer only".to_string()),
            scalar => Ok(Type::Scalar(scalar)),
        }
    }
}

fn pointer_to(text: &str, space: Space) -> Result<Type, String> {
    let (mutable, to) = if let Some(to) = text.strip_prefix("*mut ") {
        (true, to)
    } else if let Some(to) = text.strip_prefix("*const ") {
        (false, to)
    } else {
        return Err(format!("expected `*mut T` or `*const T`, found `{text}`"));
    };
    let (to, len) = match array(to.trim())? {
        Some((of, len)) => (of, Some(len)),
        None => (Scalar::parse(to.trim())?, None),
    };
    Ok(Type::Pointer {
        space,
        mutable,
        to,
        len,
    })
}

/// `[T; 4]`, `[T; x4]`, `[T; 2*x4]`, `[T; 8/2]`: of the length only digits count.
fn array(text: &str) -> Result<Option<(Scalar, usize)>, String> {
    let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) else {
        return Ok(None);
    };
    let (of, len) = inner
        .split_once(';')
        .ok_or_else(|| format!("expected `[T; N]`, found `{text}`"))?;
    let number = |text: &str| {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        digits
            .parse::<usize>()
            .map_err(|_| format!("`{}` is not an array length", text.trim()))
    };
    let (factors, divisor) = match len.split_once('/') {
        Some((factors, divisor)) => (factors, number(divisor)?),
        None => (len, 1),
    };
    let factors = factors
        .split('*')
        .map(number)
        .collect::<Result<Vec<_>, _>>()?;
    let product: usize = factors.iter().product();
    if divisor == 0 || !product.is_multiple_of(divisor) {
        return Err(format!("`{len}` is not a whole number"));
    }
    Ok(Some((Scalar::parse(of.trim())?, product / divisor)))
}

/// `0..=15`, or `24..=256 step 8`, or `4..=16 powers`, or `0..`, or one value.
fn immediate(text: &str) -> Result<Type, String> {
    let expected = || format!("expected `n32 LOW..=HIGH [step STEP]`, found `n32 {text}`");
    let (text, powers) = match text.strip_suffix(" powers") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let (range, step) = text.split_once(" step ").unwrap_or((text, "1"));
    let number = |text: &str| text.trim().parse::<i64>().map_err(|_| expected());
    if let Some(low) = range.strip_suffix("..") {
        return Ok(Type::Immediate {
            low: number(low)?,
            high: i64::from(i32::MAX),
            step: 1,
            powers,
        });
    }
    let (low, high) = range.split_once("..=").unwrap_or((range, range));
    Ok(Type::Immediate {
        low: number(low)?,
        high: number(high)?,
        step: number(step)?,
        powers,
    })
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Shared => "shared",
            Space::Global => "global",
            Space::Generic => "generic",
        })
    }
}
