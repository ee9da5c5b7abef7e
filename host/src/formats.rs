//! The narrow floating-point types of the PTX ISA: what their bits mean, and how a number is rounded to them.
//!
//! A number is an `f64`, which holds every value of every format here, and the product of any two of them.

/// How a number that a format lacks becomes one that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Round {
    /// To nearest, ties to even: `.rn`.
    #[default]
    Near,
    /// To nearest, ties away from zero: `.rna`.
    NearAway,
    /// Towards zero: `.rz`.
    Zero,
    /// Down: `.rm`.
    Down,
    /// Up: `.rp`.
    Up,
}

/// What the codes above the greatest finite number are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Top {
    /// Infinity and NaN, as in IEEE 754.
    Infinity,
    /// One NaN.
    Nan,
    /// There are none.
    Finite,
}

/// A floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    signed: bool,
    exponent_bits: u32,
    fraction_bits: u32,
    bias: i32,
    top: Top,
}

/// Half precision.
pub const F16: Format = Format::new(5, 10, 15, Top::Infinity);
/// The upper half of an `f32`.
pub const BF16: Format = Format::new(8, 7, 127, Top::Infinity);
/// An `f32` with a fraction of 10 bits; a register has its 19 bits at the top.
pub const TF32: Format = Format::new(8, 10, 127, Top::Infinity);
/// Single precision.
pub const F32: Format = Format::new(8, 23, 127, Top::Infinity);
/// 8 bits with a fraction of 3, without infinity.
pub const E4M3: Format = Format::new(4, 3, 7, Top::Nan);
/// 8 bits with a fraction of 2.
pub const E5M2: Format = Format::new(5, 2, 15, Top::Infinity);
/// 6 bits with a fraction of 3, all numbers.
pub const E2M3: Format = Format::new(2, 3, 1, Top::Finite);
/// 6 bits with a fraction of 2, all numbers.
pub const E3M2: Format = Format::new(3, 2, 3, Top::Finite);
/// 4 bits with a fraction of 1, all numbers.
pub const E2M1: Format = Format::new(2, 1, 1, Top::Finite);
/// Powers of two: an exponent of 8 bits without sign and without zero.
pub const UE8M0: Format = Format {
    signed: false,
    ..Format::new(8, 0, 127, Top::Nan)
};

impl Format {
    const fn new(exponent_bits: u32, fraction_bits: u32, bias: i32, top: Top) -> Self {
        Self {
            signed: true,
            exponent_bits,
            fraction_bits,
            bias,
            top,
        }
    }

    /// The bits of a number.
    pub fn bits(self) -> u32 {
        u32::from(self.signed) + self.exponent_bits + self.fraction_bits
    }

    /// Whether the smallest code is zero; else it is a number like the others.
    fn has_zero(self) -> bool {
        self.fraction_bits > 0
    }

    /// The exponent of the numbers of the smallest exponent field that is not subnormal.
    fn least_exponent(self) -> i32 {
        i32::from(self.has_zero()) - self.bias
    }

    /// Every code has bits for the magnitude; these are all of them.
    fn magnitudes(self) -> u64 {
        (1 << (self.exponent_bits + self.fraction_bits)) - 1
    }

    /// The code of the greatest finite number.
    pub fn max(self) -> u64 {
        self.magnitudes()
            - match self.top {
                Top::Infinity => 1 << self.fraction_bits,
                Top::Nan => 1,
                Top::Finite => 0,
            }
    }

    /// The code of the NaN that conversions give, which has all bits but the sign; of the greatest number, if there is
    /// no NaN.
    pub fn nan(self) -> u64 {
        self.magnitudes()
    }

    /// The number of a code.
    pub fn decode(self, code: u64) -> f64 {
        let magnitude = code & self.magnitudes();
        let negative =
            self.signed && code > self.magnitudes() && code & (self.magnitudes() + 1) != 0;
        let value = if magnitude <= self.max() {
            let field = (magnitude >> self.fraction_bits) as i32;
            let fraction = magnitude & ((1 << self.fraction_bits) - 1);
            let normal = field > 0 || !self.has_zero();
            let whole = fraction + (u64::from(normal) << self.fraction_bits);
            let exponent = if normal {
                field - self.bias
            } else {
                1 - self.bias
            };
            whole as f64 * 2f64.powi(exponent - self.fraction_bits as i32)
        } else if self.top == Top::Infinity && magnitude == self.max() + 1 {
            f64::INFINITY
        } else {
            f64::NAN
        };
        if negative { -value } else { value }
    }

    /// The code of a number. What is too great becomes the greatest number if it `saturates`, and else what `round`
    /// makes of it. A format without sign takes the magnitude.
    pub fn encode(self, value: f64, round: Round, saturates: bool) -> u64 {
        let negative = self.signed && value.is_sign_negative();
        let away = match round {
            Round::Up => !negative,
            Round::Down => negative,
            _ => false,
        };
        let overflows = away || matches!(round, Round::Near | Round::NearAway);
        self.neighbour(value, saturates, overflows, |whole, rest| match round {
            Round::Near => rest > 0.5 || rest == 0.5 && whole & 1 == 1,
            Round::NearAway => rest >= 0.5,
            _ => rest > 0.0 && away,
        })
    }

    /// The code of a number, away from zero if `random` and what is dropped, both in units of the last place, are one
    /// unit together, and else towards zero.
    pub fn encode_randomly(self, value: f64, random: f64, saturates: bool) -> u64 {
        self.neighbour(value, saturates, true, |_, rest| rest + random >= 1.0)
    }

    /// The code of one of the two neighbours of a number: of that away from zero if `up` says so of the last place and of
    /// what is behind it. What is too great becomes the greatest number if it `saturates`, or unless it `overflows`.
    fn neighbour(
        self,
        value: f64,
        saturates: bool,
        overflows: bool,
        up: impl Fn(u64, f64) -> bool,
    ) -> u64 {
        if value.is_nan() {
            return self.nan();
        }
        let negative = self.signed && value.is_sign_negative();
        let sign = u64::from(negative) << (self.exponent_bits + self.fraction_bits);
        let value = value.abs();
        let code = if value.is_finite() {
            self.magnitude(value, up)
        } else {
            u64::MAX
        };
        if code <= self.max() {
            return sign | code;
        }
        let overflows = overflows || value.is_infinite();
        sign | match self.top {
            Top::Infinity if overflows && !saturates => self.max() + 1,
            Top::Nan if overflows && !saturates => return self.nan(),
            _ => self.max(),
        }
    }

    /// The code of a finite number without sign, as if there were no greatest one.
    fn magnitude(self, value: f64, up: impl Fn(u64, f64) -> bool) -> u64 {
        let exponent = (value.to_bits() >> 52) as i32 - 1023;
        let exponent = exponent.max(self.least_exponent());
        // In units of the last place of the numbers with this exponent, which is exact.
        let scaled = value * 2f64.powi(self.fraction_bits as i32 - exponent);
        let (whole, rest) = (scaled.floor() as u64, scaled.fract());
        // The leading bit, and what carries out of the fraction, counts as one more in the field of the exponent.
        let field = (exponent - self.least_exponent()) as u64;
        let code = (field << self.fraction_bits) + whole + u64::from(up(whole, rest));
        code.saturating_sub(u64::from(!self.has_zero()))
    }
}

/// The sum of numbers, rounded to odd: exact, or of the two neighbours of the exact sum the one whose last bit is set.
/// To round it again to a format with two bits less gives the same as to round the exact sum.
pub fn exact_sum(terms: impl IntoIterator<Item = f64>) -> f64 {
    // Numbers whose bits do not overlap, smallest first, that have the same sum.
    let mut parts: Vec<f64> = Vec::new();
    let mut beyond = 0.0;
    for term in terms {
        if !term.is_finite() {
            beyond += term;
            continue;
        }
        let (mut sum, mut kept) = (term, 0);
        for at in 0..parts.len() {
            let (high, low) = two_sum(sum, parts[at]);
            sum = high;
            if low != 0.0 {
                parts[kept] = low;
                kept += 1;
            }
        }
        parts.truncate(kept);
        parts.push(sum);
    }
    if beyond != 0.0 {
        return beyond;
    }
    let mut sum = parts.pop().unwrap_or(0.0);
    while let Some(part) = parts.pop() {
        let (high, low) = two_sum(sum, part);
        sum = high;
        if low != 0.0 {
            // What is left is smaller than the last place of `low`.
            let even = sum.to_bits() & 1 == 0;
            return match (even, low > 0.0) {
                (false, _) => sum,
                (true, true) => sum.next_up(),
                (true, false) => sum.next_down(),
            };
        }
    }
    sum
}

/// The nearest number to a sum, and what it lacks.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: [(Format, &str); 9] = [
        (F16, "f16"),
        (BF16, "bf16"),
        (TF32, "tf32"),
        (E4M3, "e4m3"),
        (E5M2, "e5m2"),
        (E2M3, "e2m3"),
        (E3M2, "e3m2"),
        (E2M1, "e2m1"),
        (UE8M0, "ue8m0"),
    ];

    #[test]
    fn the_numbers_that_name_a_format_are_its_own() {
        let known = [
            (F16, 0x7bff, 65504.0),
            (F16, 0x0001, 2f64.powi(-24)),
            (F16, 0xbc00, -1.0),
            (BF16, 0x7f7f, f64::from(f32::from_bits(0x7f7f_0000))),
            (TF32, 0x1fc00, 1.0),
            (TF32, 0x1fc01, 1.0 + 2f64.powi(-10)),
            (E4M3, 0x7e, 448.0),
            (E4M3, 0x01, 2f64.powi(-9)),
            (E4M3, 0xb9, -1.125),
            (E5M2, 0x7b, 57344.0),
            (E5M2, 0x01, 2f64.powi(-16)),
            (E5M2, 0xfc, f64::NEG_INFINITY),
            (E2M3, 0x1f, 7.5),
            (E2M3, 0x21, -0.125),
            (E3M2, 0x1f, 28.0),
            (E3M2, 0x01, 0.0625),
            (E2M1, 0x7, 6.0),
            (E2M1, 0x9, -0.5),
            (UE8M0, 0x00, 2f64.powi(-127)),
            (UE8M0, 0x7f, 1.0),
            (UE8M0, 0xfe, 2f64.powi(127)),
        ];
        for (format, code, value) in known {
            assert_eq!(format.decode(code), value, "{format:?} {code:#x}");
        }
        for (format, code) in [(E4M3, 0x7f), (E4M3, 0xff), (E5M2, 0x7d), (UE8M0, 0xff)] {
            assert!(format.decode(code).is_nan(), "{format:?} {code:#x}");
        }
        let bits = NARROW.map(|(format, _)| format.bits());
        assert_eq!(bits, [16, 16, 19, 8, 8, 6, 6, 4, 8]);
    }

    #[test]
    fn every_code_is_that_of_its_number_in_every_rounding() {
        for (format, name) in NARROW {
            for code in 0..1u64 << format.bits() {
                let value = format.decode(code);
                if value.is_nan() {
                    assert_eq!(
                        format.encode(value, Round::Near, true),
                        format.nan(),
                        "{name}"
                    );
                    continue;
                }
                for round in ROUNDS {
                    assert_eq!(format.encode(value, round, false), code, "{name} {code:#x}");
                }
            }
        }
    }

    const ROUNDS: [Round; 5] = [
        Round::Near,
        Round::NearAway,
        Round::Zero,
        Round::Down,
        Round::Up,
    ];

    /// Which of two neighbours a number between them becomes, from the definition of each rounding; `upper` is
    /// farther from zero.
    fn takes_upper(round: Round, place: std::cmp::Ordering, lower: u64, negative: bool) -> bool {
        match round {
            Round::Near => place.is_gt() || place.is_eq() && lower & 1 == 1,
            Round::NearAway => place.is_ge(),
            Round::Zero => false,
            Round::Down => negative,
            Round::Up => !negative,
        }
    }

    #[test]
    fn numbers_between_any_two_neighbours_go_where_the_rounding_says() {
        for (format, name) in NARROW {
            for lower in 0..format.max() {
                let (low, high) = (format.decode(lower), format.decode(lower + 1));
                let middle = (low + high) / 2.0;
                let between = [
                    low.next_up(),
                    middle.next_down(),
                    middle,
                    middle.next_up(),
                    high.next_down(),
                ];
                for (value, round) in between
                    .into_iter()
                    .flat_map(|it| ROUNDS.map(|round| (it, round)))
                {
                    let place = value.total_cmp(&middle);
                    for negative in [false, format.signed] {
                        let sign = u64::from(negative) * (format.magnitudes() + 1);
                        let upper = takes_upper(round, place, lower, negative);
                        // Powers of two alone have no even and odd ones among their codes; to nearest is not used.
                        if !format.has_zero() && matches!(round, Round::Near) && place.is_eq() {
                            continue;
                        }
                        let expected = sign | (lower + u64::from(upper));
                        let signed = if negative { -value } else { value };
                        let found = format.encode(signed, round, false);
                        assert_eq!(found, expected, "{name}: {signed:e} {round:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_too_great_saturates_or_goes_where_the_format_has_a_place_for_it() {
        for (format, name) in NARROW {
            let max = format.max();
            let (beyond, near) = (2.0 * format.decode(max), format.decode(max).next_up());
            for value in [beyond, near, f64::INFINITY] {
                for round in ROUNDS {
                    assert_eq!(
                        format.encode(value, round, true),
                        max,
                        "{name}: {value:e} {round:?}"
                    );
                }
            }
            let top = if format.top == Top::Finite {
                max
            } else {
                max + 1
            };
            assert_eq!(format.encode(beyond, Round::Near, false), top, "{name}");
            assert_eq!(
                format.encode(f64::INFINITY, Round::Zero, false),
                top,
                "{name}"
            );
            assert_eq!(format.encode(near, Round::Up, false), top, "{name}");
            assert_eq!(format.encode(beyond, Round::Zero, false), max, "{name}");
            assert_eq!(format.encode(near, Round::Near, false), max, "{name}");
        }
        assert_eq!(F16.encode(65519.9, Round::Near, false), 0x7bff);
        assert_eq!(F16.encode(65520.0, Round::Near, false), 0x7c00);
        assert_eq!(F16.encode(-65520.0, Round::Up, false), 0xfbff);
    }

    #[test]
    fn less_than_the_smallest_power_of_two_is_that_power() {
        for round in [Round::Zero, Round::Up] {
            assert_eq!(UE8M0.encode(0.0, round, true), 0);
            assert_eq!(UE8M0.encode(2f64.powi(-140), round, true), 0);
        }
        assert_eq!(UE8M0.encode(-3.0, Round::Zero, true), 0x80);
        assert_eq!(UE8M0.encode(-3.0, Round::Up, true), 0x81);
    }

    #[test]
    fn numbers_far_below_the_smallest_vanish_or_become_it() {
        for (format, name) in NARROW.iter().filter(|(format, _)| format.has_zero()) {
            assert_eq!(
                format.encode(f64::from_bits(1), Round::Near, false),
                0,
                "{name}"
            );
            assert_eq!(
                format.encode(f64::from_bits(1), Round::Up, false),
                1,
                "{name}"
            );
            assert_eq!(
                format.encode(-0.0, Round::Up, false),
                format.magnitudes() + 1,
                "{name}"
            );
        }
    }

    #[test]
    fn random_bits_carry_out_of_what_is_dropped() {
        let third = 1.0 + 2f64.powi(-7) * 0.375;
        for (random, code) in [
            (0.0, 0x3f80),
            (0.624, 0x3f80),
            (0.625, 0x3f81),
            (0.999, 0x3f81),
        ] {
            assert_eq!(BF16.encode_randomly(third, random, false), code);
            assert_eq!(BF16.encode_randomly(-third, random, false), code | 0x8000);
        }
        assert_eq!(BF16.encode_randomly(1.0, 0.999, false), 0x3f80);
        let greatest = f64::from(f32::MAX);
        assert_eq!(BF16.encode_randomly(greatest, 0.0, false), 0x7f7f);
        assert_eq!(BF16.encode_randomly(greatest, 0.5, false), 0x7f80);
        assert_eq!(BF16.encode_randomly(greatest, 0.5, true), 0x7f7f);
        assert_eq!(BF16.encode_randomly(f64::INFINITY, 0.0, false), 0x7f80);
        assert_eq!(BF16.encode_randomly(f64::NAN, 0.0, false), 0x7fff);
    }

    #[test]
    fn single_precision_is_rusts() {
        for value in [0.0, -1.5, 1e-45, 3e38, 1e39, 0.1, 1.0 + 2f64.powi(-24)] {
            let expected = u64::from((value as f32).to_bits());
            assert_eq!(F32.encode(value, Round::Near, false), expected, "{value:e}");
            assert_eq!(F32.decode(expected), f64::from(value as f32), "{value:e}");
        }
    }

    #[test]
    fn a_sum_is_exact_or_odd() {
        let (one, tiny) = (1.0, 2f64.powi(-200));
        assert_eq!(exact_sum([1e300, one, -1e300]), one);
        assert_eq!(exact_sum([one, tiny]), one.next_up());
        assert_eq!(exact_sum([one, -tiny]), one.next_down());
        assert_eq!(exact_sum([one.next_up(), tiny]), one.next_up());
        assert_eq!(exact_sum([one.next_up(), -tiny]), one.next_up());
        // A tie in half precision that only the smallest term decides.
        let half = 2f64.powi(-11);
        let rounded = |terms: [f64; 3]| F16.encode(exact_sum(terms), Round::Near, false);
        assert_eq!(rounded([one, half, tiny]), 0x3c01);
        assert_eq!(rounded([one, half, -tiny]), 0x3c00);
        assert_eq!(exact_sum([]), 0.0);
        assert_eq!(exact_sum([one, f64::INFINITY]), f64::INFINITY);
        assert!(exact_sum([f64::INFINITY, f64::NEG_INFINITY]).is_nan());
    }
}
