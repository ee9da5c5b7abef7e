//! `cvt` of packed and narrow floating-point numbers, and `cvt.pack`.

use super::alu::Lanes;
use super::op::*;
use crate::formats::{self, Format, Round};

/// How numbers lie in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    format: Format,
    /// How many there are.
    pub count: u32,
    /// The bits from one to the next.
    stride: u32,
    /// The bits below the lowest that it does not use.
    padding: u32,
}

impl Packed {
    /// The type that a qualifier names.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, count) = match text.split_once('x') {
            Some((name, count)) => (name, count.parse().ok()?),
            None => (text, 1),
        };
        let (format, stride) = match name {
            "f16" => (formats::F16, 16),
            "bf16" => (formats::BF16, 16),
            "tf32" => (formats::TF32, 32),
            "f32" => (formats::F32, 32),
            "e4m3" => (formats::E4M3, 8),
            "e5m2" => (formats::E5M2, 8),
            "e2m3" => (formats::E2M3, 8),
            "e3m2" => (formats::E3M2, 8),
            "ue8m0" => (formats::UE8M0, 8),
            "e2m1" => (formats::E2M1, 4),
            _ => return None,
        };
        let padding = if format == formats::TF32 { 13 } else { 0 };
        Some(Self {
            format,
            count,
            stride,
            padding,
        })
    }

    /// The bits of all of them.
    pub fn bits(self) -> u32 {
        self.count * self.stride
    }

    /// The numbers in a register, the highest first.
    fn decode(self, bits: u64) -> impl Iterator<Item = f64> {
        let at = (0..self.count)
            .rev()
            .map(move |place| bits >> (place * self.stride));
        at.map(move |bits| {
            self.format
                .decode(bits >> self.padding & mask(self.format.bits()))
        })
    }
}

/// A conversion of the numbers of some registers, the highest first, into one.
#[derive(Clone, Debug)]
pub struct Conversion {
    pub to: Packed,
    pub from: Packed,
    pub round: Round,
    /// `.rs`: the operand with random bits that round instead, an equal part of them each number.
    pub random: Option<Src>,
    /// `.satfinite`.
    pub saturates: bool,
    /// What is negative becomes zero.
    pub relu: bool,
    pub dst: Dst,
    pub srcs: Vec<Src>,
}

impl Conversion {
    /// The result in one lane.
    pub fn of(&self, srcs: &[Lanes], random: Option<&Lanes>, lane: usize) -> u64 {
        let numbers = srcs.iter().flat_map(|src| self.from.decode(src[lane]));
        let codes = numbers.enumerate().map(|(from_top, number)| {
            let number = if self.relu && number <= 0.0 {
                0.0
            } else {
                number
            };
            let to = self.to.format;
            let code = match random {
                None => to.encode(number, self.round, self.saturates),
                Some(random) => {
                    let width = 32 / self.to.count;
                    let place = self.to.count - 1 - from_top as u32;
                    let bits = random[lane] >> (width * place) & mask(width);
                    let part = bits as f64 / 2f64.powi(width as i32);
                    to.encode_randomly(number, part, self.saturates)
                }
            };
            code << self.to.padding
        });
        codes.fold(0, |bits, code| bits << self.to.stride | code)
    }
}

/// `cvt.pack`: two integers clamped to so many bits, above each other and above the low bits of a third operand.
#[derive(Clone, Debug)]
pub struct IntegerPack {
    pub bits: u32,
    pub signed: bool,
    pub dst: Dst,
    pub a: Src,
    pub b: Src,
    pub c: Option<Src>,
}

impl IntegerPack {
    /// The result for the three operands.
    pub fn of(&self, a: u64, b: u64, c: u64) -> u64 {
        let (low, high) = match self.signed {
            true => (-(1i64 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        };
        let clamp = |bits: u64| i64::from(bits as i32).clamp(low, high) as u64 & mask(self.bits);
        (c << (2 * self.bits) | clamp(a) << self.bits | clamp(b)) & mask(32)
    }
}
