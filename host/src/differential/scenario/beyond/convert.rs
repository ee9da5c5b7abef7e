//! `cvt` of narrow and packed floating-point types.
//!
//! The expected code is that of the neighbour which the definition of the rounding picks, out of the table of all
//! numbers of the type.

use super::floats::FloatType;
use super::{Scenario, missing};
use crate::differential::form::Form;
use crate::differential::scenario::{Case, Random, Word};
use crate::driver::Launch;

/// Conversions of a launch.
const COUNT: usize = 1024;

/// How a form converts.
#[derive(Clone, Debug)]
struct Conversion {
    to: FloatType,
    from: FloatType,
    /// Numbers in the result, and the bits from one to the next; the same of an operand.
    lanes: usize,
    stride: u32,
    from_lanes: usize,
    from_stride: u32,
    /// Bits below the result that do not count: those behind the fraction of tf32.
    open: u32,
    rounding: Rounding,
    saturates: bool,
    relu: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rounding {
    NearestEven,
    NearestAway,
    TowardsZero,
    Down,
    Up,
    /// Away from zero if random bits and those that are dropped have a carry.
    Random,
}

/// Why others than to bf16x2 are not.
const RANDOM: &str = "more bits than there are random ones may be dropped, and the ISA does not say in words where these are added";

pub fn scenario(form: &Form) -> Result<Scenario, String> {
    if form.instruction.starts_with("cvt.pack") {
        return integer_pack(form);
    }
    let conversion = Conversion::of(form).ok_or_else(|| missing(form))?;
    if conversion.rounding == Rounding::Random && form.last() == "f32" && !form.says("bf16x2") {
        return Err(RANDOM.to_owned());
    }
    let body = body(conversion.operands());
    let name = form.instruction.clone();
    Ok(Scenario::new(body, move |seed| {
        vec![conversion.case(Random::new(seed, &name))]
    }))
}

impl Conversion {
    fn of(form: &Form) -> Option<Self> {
        let parts = Vec::from_iter(form.instruction.split('.'));
        let [.., to_name, from_name] = parts[..] else {
            return None;
        };
        let (to, from) = (FloatType::parse(to_name)?, FloatType::parse(from_name)?);
        let lanes = |name: &str| {
            name.split_once('x')
                .map_or(Some(1), |(_, n)| n.parse().ok())
        };
        let rounding = match parts[1] {
            "rn" => Rounding::NearestEven,
            "rna" => Rounding::NearestAway,
            "rz" => Rounding::TowardsZero,
            "rm" => Rounding::Down,
            "rp" => Rounding::Up,
            "rs" => Rounding::Random,
            _ => return None,
        };
        // Numbers of 6 bits have a byte each.
        let stride = |of: FloatType| match of.bits() {
            19 => 32,
            6 => 8,
            bits => bits,
        };
        if form.says("scaled::n2::ue8m0") {
            return None;
        }
        let tf32 = to_name == "tf32";
        Some(Self {
            to,
            from,
            lanes: lanes(to_name)?,
            stride: stride(to),
            from_lanes: lanes(from_name)?,
            from_stride: stride(from),
            open: if tf32 { 32 - to.bits() } else { 0 },
            rounding,
            saturates: form.says("satfinite"),
            relu: form.says("relu"),
        })
    }

    /// How many operands have numbers, and one more if there is one with random bits.
    fn operands(&self) -> usize {
        self.lanes / self.from_lanes + usize::from(self.rounding == Rounding::Random)
    }

    fn case(&self, mut random: Random) -> Case {
        let operands = self.lanes / self.from_lanes;
        let (mut input, mut output, mut nans) = (Vec::new(), Vec::new(), Vec::new());
        let mask = (1 << self.from.bits()) - 1;
        for i in 0..COUNT {
            let (mut word, mut known, mut random_bits) = (0, u64::MAX, 0);
            for operand in 0..operands {
                let mut packed = 0;
                for lane in 0..self.from_lanes {
                    let code = self.number(i, &mut random) & mask;
                    packed = packed << self.from_stride | code;
                    // The first operand, and the upper part of one, is the upper part of the result.
                    let from_top = operand * self.from_lanes + lane;
                    let shift = self.stride * (self.lanes - 1 - from_top) as u32 + self.open;
                    let bits = self.random_bits(code, &mut random);
                    random_bits = random_bits << 16 | bits;
                    match self.expected(code, bits) {
                        Some(code) => word |= code << shift,
                        None => {
                            known &= !(((1 << self.to.bits()) - 1) << shift);
                            if !self.passes_for_infinity(code) {
                                nans.push((i, shift));
                            }
                        }
                    }
                }
                input.push(packed);
            }
            if self.rounding == Rounding::Random {
                input.push(random_bits);
            }
            known &= !((1 << self.open) - 1);
            output.push(match known {
                u64::MAX => Word::Is(word),
                _ => Word::Masked(word, known),
            });
        }
        let to = self.to;
        Case::new(
            "numbers, their neighbours and halves between",
            Launch::new(1, 64),
            input,
        )
        .gives(output)
        .relation(move |output| {
            let code = |(word, shift): (usize, u32)| output[word] >> shift & ((1 << to.bits()) - 1);
            match nans.iter().find(|at| !to.is_nan(code(**at))) {
                None => Ok(()),
                Some((word, shift)) => Err(format!(
                    "word {word}: expected a NaN from bit {shift} on, found {:#x}",
                    output[*word]
                )),
            }
        })
    }

    /// The code of a number to convert: one near a number of the result's type, near the middle of two, or anything.
    fn number(&self, i: usize, random: &mut Random) -> u64 {
        if self.from.bits() <= 8 {
            return if i < 256 {
                i as u64 + random.below(2) * 13
            } else {
                random.word()
            };
        }
        let sign = random.below(2) << (self.from.bits() - 1);
        let infinity = ((1 << self.from.exponent) - 1) << self.from.fraction;
        let special = [
            0,
            1,
            infinity - 1,
            infinity,
            infinity + 1,
            infinity | 1 << (self.from.fraction - 1),
        ];
        let magnitude = match i % 8 {
            0 => special[random.below(special.len() as u64) as usize],
            1 => return random.word(),
            2 => self.from.at_most(self.to.number(self.to.finite() - 1)) + random.below(3) - 1,
            _ => {
                // Types of few numbers in turn, others here and there.
                let below = match self.to.finite() {
                    few @ ..1024 => (i as u64 + random.below(7) * 131) % (few - 1),
                    many => random.below(many - 1),
                };
                let (low, high) = (self.to.number(below), self.to.number(below + 1));
                let place = [
                    low,
                    low,
                    (low + high) / 2.0,
                    (low + high) / 2.0,
                    (low + high) / 2.0,
                ];
                let at = self.from.at_most(place[i % 5]);
                at.saturating_add_signed(random.below(3) as i64 - 1)
            }
        };
        sign | magnitude
    }

    /// 16 random bits for a number, as often as not just enough for a carry, or one too few.
    fn random_bits(&self, code: u64, random: &mut Random) -> u64 {
        if self.rounding != Rounding::Random {
            return 0;
        }
        let enough = 0x1_0000 - (code & 0xffff);
        match random.below(4) {
            0 => enough & 0xffff,
            1 => enough - 1,
            _ => random.word() & 0xffff,
        }
    }

    /// Whether an H200 takes this NaN for an infinity: `rna` to tf32 does not look at the bits that it drops.
    fn passes_for_infinity(&self, code: u64) -> bool {
        self.open > 0
            && matches!(self.rounding, Rounding::NearestAway)
            && !self.to.is_nan(code >> self.open)
    }

    /// The code of the result for a code and 16 random bits; none if it is a NaN, whose bits the ISA leaves open.
    fn expected(&self, code: u64, random_bits: u64) -> Option<u64> {
        let number = self.from.value(code);
        if number.is_nan() {
            // Types without NaN have their greatest number instead.
            return (!self.to.has_nan()).then(|| self.to.finite() - 1);
        }
        let (code, number) = if self.relu && number.is_sign_negative() {
            (0, 0.0)
        } else {
            (code, number)
        };
        let sign = u64::from(number.is_sign_negative()) << (self.to.bits() - 1);
        let greatest = self.to.finite() - 1;
        let magnitude = number.abs();
        let low = self.to.at_most(magnitude);
        // Above the greatest number it is as if the next power of two were there.
        let (below, above) = match low == greatest {
            true => (
                self.to.number(low),
                2.0 * self.to.number(low) - self.to.number(low - 1),
            ),
            false => (self.to.number(low), self.to.number(low + 1)),
        };
        let (to_below, to_above) = (magnitude - below, above - magnitude);
        let up = match self.rounding {
            Rounding::TowardsZero => false,
            Rounding::Down => sign != 0 && to_below > 0.0,
            Rounding::Up => sign == 0 && to_below > 0.0,
            Rounding::NearestAway => to_above <= to_below,
            Rounding::NearestEven => to_above < to_below || to_above == to_below && low % 2 == 1,
            Rounding::Random => (code & 0xffff) + random_bits > 0xffff,
        };
        let rounded = low + u64::from(up);
        if rounded <= greatest && number.is_finite() {
            return Some(sign | rounded);
        }
        // Towards zero, only what is infinite already is so.
        let infinite = !self.saturates && (rounded > greatest || number.is_infinite());
        Some(sign | (greatest + u64::from(infinite)))
    }
}

/// The threads take turns to convert so many operands each.
fn body(operands: usize) -> String {
    let loads = (0..operands).map(|k| format!("get(input, {operands} * i + {k})"));
    format!(
        "var i = thread();\n\
         while (i < {COUNT}) {{\n\
         @r = ({})\n\
         put(output, i, r);\n\
         i = i + threads();\n\
         }}\n",
        Vec::from_iter(loads).join("; ")
    )
}

/// `cvt.pack`: two integers, clamped.
fn integer_pack(form: &Form) -> Result<Scenario, String> {
    let parts = Vec::from_iter(form.instruction.split('.'));
    let ["cvt", "pack", "sat", to, "s32", ref third @ ..] = parts[..] else {
        return Err(missing(form));
    };
    let third = !third.is_empty();
    let (signed, bits) = to.split_at(1);
    let (signed, bits): (bool, u32) = (signed == "s", bits.parse().map_err(|_| missing(form))?);
    let body = body(if third { 3 } else { 2 });
    let name = form.instruction.clone();
    Ok(Scenario::new(body, move |seed| {
        let mut random = Random::new(seed, &name);
        let (mut input, mut output) = (Vec::new(), Vec::new());
        let field = (1u64 << bits) - 1;
        for _ in 0..COUNT {
            // Numbers on both sides of both ends of the range.
            let number = |random: &mut Random| {
                let near = random.below(2 << bits) as i64 - (1 << bits);
                if random.below(4) == 0 {
                    random.word() as i32
                } else {
                    near as i32
                }
            };
            let (a, b) = (number(&mut random), number(&mut random));
            let clamp = |it: i32| {
                let it = i64::from(it);
                let (low, high) = match signed {
                    true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
                    false => (0, (1 << bits) - 1),
                };
                it.clamp(low, high) as u64 & field
            };
            input.extend([a, b].map(|it| u64::from(it as u32)));
            let mut word = clamp(a) << bits | clamp(b);
            if third {
                let c = random.word() & 0xffff_ffff;
                input.push(c);
                word |= c << (2 * bits) & 0xffff_ffff;
            }
            output.push(word);
        }
        vec![
            Case::new(
                "numbers about the ends of the range",
                Launch::new(1, 64),
                input,
            )
            .gives_words(output),
        ]
    }))
}
