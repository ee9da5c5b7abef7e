//! Bulk reductions, and what the operations of a reduction are.

use super::{Case, Random, Scenario};
use crate::differential::form::Form;
use crate::driver::Launch;

/// The type of an element of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Unsigned, of so many bits.
    Unsigned(u32),
    /// Signed, of so many bits.
    Signed(u32),
    /// IEEE of so many bits: 16, 32 or 64.
    Float(u32),
    /// bfloat16.
    Bf16,
}

/// An operation of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sum.
    Add,
    /// Lesser.
    Min,
    /// Greater.
    Max,
    /// Up, and to zero from the operand on.
    Inc,
    /// Down, and to the operand from zero or above it.
    Dec,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl Operation {
    /// The one that the opcode names.
    pub fn of(instruction: &str) -> Option<Self> {
        let operation = |part| {
            Some(match part {
                "add" => Self::Add,
                "min" => Self::Min,
                "max" => Self::Max,
                "inc" => Self::Inc,
                "dec" => Self::Dec,
                "and" => Self::And,
                "or" => Self::Or,
                "xor" => Self::Xor,
                _ => return None,
            })
        };
        instruction.split('.').find_map(operation)
    }
}

impl Element {
    /// From its name in PTX.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "bf16" => Self::Bf16,
            "f16" | "f32" | "f64" => Self::Float(name[1..].parse().ok()?),
            "s32" | "s64" => Self::Signed(name[1..].parse().ok()?),
            "u32" | "u64" | "b32" | "b64" => Self::Unsigned(name[1..].parse().ok()?),
            _ => return None,
        })
    }

    /// Its size.
    pub fn bytes(self) -> usize {
        match self {
            Self::Unsigned(bits) | Self::Signed(bits) | Self::Float(bits) => bits as usize / 8,
            Self::Bf16 => 2,
        }
    }

    /// An element as the low bytes of a word. Floats are normal numbers, so that neither NaN nor the
    /// flushing of subnormal numbers plays a part; sums of them are rounded.
    pub fn random(self, random: &mut Random) -> u64 {
        let word = random.word();
        let signed = |magnitude: f64| if word & 1 == 0 { magnitude } else { -magnitude };
        let float = signed(
            (1.0 + (word >> 12) as f64 / (1u64 << 52) as f64) * f64::from(1 << (word >> 1 & 7)),
        );
        match self {
            Self::Unsigned(bits) | Self::Signed(bits) => {
                // Often small, so that `inc` and `dec` wrap.
                let value = if word & 6 == 0 { word >> 8 & 7 } else { word };
                value & u64::MAX >> (64 - bits)
            }
            Self::Float(64) => float.to_bits(),
            Self::Float(32) => (float as f32).to_bits().into(),
            Self::Float(_) => narrow(float as f32, 5, 10),
            Self::Bf16 => narrow(float as f32, 8, 7),
        }
    }

    /// What is in memory after a reduction with `operand`.
    pub fn apply(self, operation: Operation, memory: u64, operand: u64) -> u64 {
        match self {
            Self::Unsigned(bits) => {
                let kept = u64::MAX >> (64 - bits);
                kept & match operation {
                    Operation::Add => memory.wrapping_add(operand),
                    Operation::Min => memory.min(operand),
                    Operation::Max => memory.max(operand),
                    Operation::Inc if memory >= operand => 0,
                    Operation::Inc => memory + 1,
                    Operation::Dec if memory == 0 || memory > operand => operand,
                    Operation::Dec => memory - 1,
                    Operation::And => memory & operand,
                    Operation::Or => memory | operand,
                    Operation::Xor => memory ^ operand,
                }
            }
            Self::Signed(bits) => {
                let unused = 64 - bits;
                let signed = |word: u64| (word << unused) as i64 >> unused;
                let (memory, operand) = (signed(memory), signed(operand));
                let result = match operation {
                    Operation::Min => memory.min(operand),
                    Operation::Max => memory.max(operand),
                    _ => memory.wrapping_add(operand),
                };
                result as u64 & u64::MAX >> unused
            }
            Self::Float(64) => {
                let result = choose(operation, f64::from_bits(memory), f64::from_bits(operand));
                result.to_bits()
            }
            Self::Float(32) => {
                let (memory, operand) = (
                    f32::from_bits(memory as u32),
                    f32::from_bits(operand as u32),
                );
                // An f64 holds the sum of two such f32 exactly, so this rounds once.
                let result = choose(operation, f64::from(memory), f64::from(operand)) as f32;
                result.to_bits().into()
            }
            Self::Float(_) => {
                let result = choose(operation, widen(memory, 5, 10), widen(operand, 5, 10));
                narrow(result as f32, 5, 10)
            }
            Self::Bf16 => {
                let result = choose(operation, widen(memory, 8, 7), widen(operand, 8, 7));
                narrow(result as f32, 8, 7)
            }
        }
    }

    /// Whether the PTX ISA has this reduction of such elements.
    pub fn takes(self, operation: Operation) -> bool {
        match operation {
            Operation::Add => self != Self::Signed(64),
            Operation::Min | Operation::Max => !matches!(self, Self::Float(32 | 64)),
            Operation::Inc | Operation::Dec => self == Self::Unsigned(32),
            Operation::And | Operation::Or | Operation::Xor => matches!(self, Self::Unsigned(_)),
        }
    }

    /// So many bytes of elements.
    pub fn random_bytes(self, len: usize, random: &mut Random) -> Vec<u8> {
        let count = len / self.bytes();
        self.to_bytes(&Vec::from_iter((0..count).map(|_| self.random(random))))
    }

    /// Elements one behind the other.
    pub fn to_bytes(self, elements: &[u64]) -> Vec<u8> {
        let bytes = |element: &u64| element.to_le_bytes().into_iter().take(self.bytes());
        elements.iter().flat_map(bytes).collect()
    }
}

fn choose(operation: Operation, memory: f64, operand: f64) -> f64 {
    match operation {
        Operation::Min => memory.min(operand),
        Operation::Max => memory.max(operand),
        _ => memory + operand,
    }
}

/// The value of a normal number, or zero, with this many bits of exponent and fraction.
fn widen(bits: u64, exponent_bits: u32, fraction_bits: u32) -> f64 {
    let fraction = bits & ((1 << fraction_bits) - 1);
    let exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    let sign = if bits >> (exponent_bits + fraction_bits) & 1 == 0 {
        1.0
    } else {
        -1.0
    };
    if exponent == 0 {
        // No operand is subnormal; a difference may be zero.
        return sign
            * fraction as f64
            * 2f64.powi(2 - (1 << (exponent_bits - 1)) - fraction_bits as i32);
    }
    let bias = (1 << (exponent_bits - 1)) - 1;
    sign * (1.0 + fraction as f64 / f64::from(1u32 << fraction_bits))
        * 2f64.powi(exponent as i32 - bias)
}

/// Rounded to nearest, ties to even. The number is far from overflow and from subnormal numbers, or zero.
fn narrow(value: f32, exponent_bits: u32, fraction_bits: u32) -> u64 {
    let bits = value.to_bits();
    let sign = u64::from(bits >> 31) << (exponent_bits + fraction_bits);
    let magnitude = bits & 0x7fff_ffff;
    if magnitude == 0 {
        return sign;
    }
    let dropped = 23 - fraction_bits;
    let half = 1 << (dropped - 1);
    let odd = magnitude >> dropped & 1;
    let rounded = (magnitude + half - 1 + odd) >> dropped;
    let rebias = (127 - ((1 << (exponent_bits - 1)) - 1)) << fraction_bits;
    sign | u64::from(rounded - rebias)
}

/// Bytes of shared memory for the data of each side.
const REGION: usize = 8192;

pub fn scenario(form: &Form) -> Option<Scenario> {
    let element = Element::of(form.last())?;
    let operation = Operation::of(&form.instruction)?;
    let to_global = form.has("space_global");
    // Block 0 reduces into the last block of the cluster, or into global memory.
    let load = "ptr bar = shared;\n\
        ptr data = at(shared, 1024);\n\
        ptr source = at(shared, 9216);\n\
        var size = get(input, 0);\n\
        var target = get(input, 1);\n\
        var i = thread();\n\
        while (i < 1024) {\n\
        store(at(source, 8 * i), 8, get(input, 2 + i));\n\
        store(at(data, 8 * i), 8, load(at(memory, 8 * i), 8));\n\
        i = i + threads();\n\
        }\n\
        if (thread() == 0) { bar_init(bar, 1); bar_fence(); }\n\
        proxy_fence();\n\
        cluster_sync();\n";
    let act = if to_global {
        "if (thread() == 0) {\n\
         @ = (memory; source; size)\n\
         bulk_commit();\n\
         bulk_wait();\n\
         }\n"
    } else {
        "if (thread() == 0) {\n\
         if (cluster_rank() == target) { bar_expect(bar, size); bar_arrive(bar, 1); }\n\
         if (cluster_rank() == 0) {\n\
         ptr to = remote(data, target);\n\
         ptr signal = remote(bar, target);\n\
         @ = (to; source; size; signal)\n\
         }\n\
         }\n\
         if (cluster_rank() == target) { bar_wait(bar, 0); }\n"
    };
    let show = "cluster_sync();\n\
        i = thread();\n\
        while (i < 1024) {\n\
        put(output, i + 1024 * cluster_rank(), load(at(data, 8 * i), 8));\n\
        i = i + threads();\n\
        }\n";
    let name = form.instruction.clone();
    let cases = move |seed: u64| {
        let case = |(size, blocks): (usize, u32)| {
            let mut random = Random::new(seed ^ (size as u64) << 32, &name);
            let count = REGION / element.bytes();
            let memory = Vec::from_iter((0..count).map(|_| element.random(&mut random)));
            let operand = Vec::from_iter((0..count).map(|_| element.random(&mut random)));
            let mut reduced = memory.clone();
            for (memory, operand) in reduced
                .iter_mut()
                .zip(&operand)
                .take(size / element.bytes())
            {
                *memory = element.apply(operation, *memory, *operand);
            }
            let [memory, operand, reduced] =
                [memory, operand, reduced].map(|list| element.to_bytes(&list));
            let target = u64::from(blocks - 1);
            let input = [size as u64, target]
                .into_iter()
                .chain(super::words(&operand))
                .collect();
            let launch = Launch::new(blocks, 128).cluster([blocks, 1, 1]);
            let case = Case::new(format!("{size} bytes, cluster of {blocks}"), launch, input)
                .memory(memory.clone());
            if to_global {
                return case.gives_words(super::words(&memory)).leaves(reduced);
            }
            let block = |rank: u64| if rank == target { &reduced } else { &memory };
            let output = Vec::from_iter((0..=target).flat_map(|rank| super::words(block(rank))));
            case.gives_words(output)
        };
        let shapes = if to_global {
            [(16, 1), (240, 1), (REGION, 1)]
        } else {
            [(16, 2), (240, 1), (REGION, 4)]
        };
        shapes.map(case).into()
    };
    Some(Scenario::new([load, act, show].concat(), cases).shared(1024 + 2 * REGION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_wrap_at_the_operand() {
        let u32 = Element::Unsigned(32);
        assert_eq!(
            [3, 4, 9].map(|memory| u32.apply(Operation::Inc, memory, 4)),
            [4, 0, 0]
        );
        assert_eq!(
            [0, 3, 9].map(|memory| u32.apply(Operation::Dec, memory, 4)),
            [4, 2, 4]
        );
    }

    #[test]
    fn signs_are_those_of_the_type() {
        assert_eq!(
            Element::Signed(32).apply(Operation::Min, 0xffff_ffff, 1),
            0xffff_ffff
        );
        assert_eq!(
            Element::Unsigned(32).apply(Operation::Min, 0xffff_ffff, 1),
            1
        );
        assert_eq!(Element::Signed(64).apply(Operation::Add, u64::MAX, 1), 0);
    }

    #[test]
    fn halves_are_rounded_to_even() {
        let f16 = Element::Float(16);
        // 2048 + 1 is halfway between 2048 and 2050; 2050 + 1 between 2050 and 2052.
        assert_eq!(f16.apply(Operation::Add, 0x6800, 0x3c00), 0x6800);
        assert_eq!(f16.apply(Operation::Add, 0x6801, 0x3c00), 0x6802);
        assert_eq!(f16.apply(Operation::Add, 0x3c00, 0xbc00), 0);
        // 1.0 is 0x3f80 as bfloat16; 256 + 1 rounds to 256.
        assert_eq!(Element::Bf16.apply(Operation::Add, 0x4380, 0x3f80), 0x4380);
        assert_eq!(Element::Bf16.apply(Operation::Min, 0xc000, 0x3f80), 0xc000);
    }
}
