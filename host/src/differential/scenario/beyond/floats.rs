//! Floating-point types as the PTX ISA describes them, by a table of their numbers.

/// A type with a sign, so many bits of exponent and fraction, and this bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatType {
    pub exponent: u32,
    pub fraction: u32,
    bias: i32,
    /// Codes of the greatest exponent that are numbers: none, all but the last, or all.
    numbers_at_top: u64,
}

impl FloatType {
    /// Half precision.
    pub const F16: Self = Self {
        exponent: 5,
        fraction: 10,
        bias: 15,
        numbers_at_top: 0,
    };

    /// The type that a qualifier names; its packed forms too.
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.split('x').next()?;
        let (exponent, fraction, bias, numbers_at_top) = match name {
            "f16" => return Some(Self::F16),
            "bf16" => (8, 7, 127, 0),
            "tf32" => (8, 10, 127, 0),
            "f32" => (8, 23, 127, 0),
            "e4m3" => (4, 3, 7, 7),
            "e5m2" => (5, 2, 15, 0),
            "e2m3" => (2, 3, 1, 8),
            "e3m2" => (3, 2, 3, 4),
            "e2m1" => (2, 1, 1, 2),
            _ => return None,
        };
        Some(Self {
            exponent,
            fraction,
            bias,
            numbers_at_top,
        })
    }

    /// The bits of a number.
    pub fn bits(self) -> u32 {
        1 + self.exponent + self.fraction
    }

    /// Whether there is a NaN; else all codes are numbers.
    pub fn has_nan(self) -> bool {
        self.finite() < 1 << (self.exponent + self.fraction)
    }

    /// How many codes without sign are finite numbers.
    pub fn finite(self) -> u64 {
        (((1 << self.exponent) - 1) << self.fraction) + self.numbers_at_top
    }

    /// Whether a code is a NaN.
    pub fn is_nan(self, code: u64) -> bool {
        let magnitude = code & ((1 << (self.bits() - 1)) - 1);
        let infinity = u64::from(self.numbers_at_top == 0);
        magnitude >= self.finite() + infinity
    }

    /// The number of a code without sign, which is finite.
    pub fn number(self, code: u64) -> f64 {
        let (field, fraction) = (code >> self.fraction, code % (1 << self.fraction));
        let ulps = |whole: u64, exponent: i32| {
            whole as f64 * 2f64.powi(exponent - self.bias - self.fraction as i32)
        };
        match field {
            0 => ulps(fraction, 1),
            _ => ulps((1 << self.fraction) + fraction, field as i32),
        }
    }

    /// What a code stands for.
    pub fn value(self, code: u64) -> f64 {
        let sign = 1 << (self.bits() - 1);
        let magnitude = match code & (sign - 1) {
            _ if self.is_nan(code) => return f64::NAN,
            finite if finite < self.finite() => self.number(finite),
            _ => f64::INFINITY,
        };
        if code & sign == 0 {
            magnitude
        } else {
            -magnitude
        }
    }

    /// The code of the greatest number that is not greater than `magnitude`; it is found by halving, since greater
    /// codes are greater numbers.
    pub fn at_most(self, magnitude: f64) -> u64 {
        let (mut low, mut high) = (0, self.finite());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.number(middle) <= magnitude {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The code of a number that the type has.
    pub fn code(self, number: f64) -> u64 {
        let code = self.at_most(number.abs());
        debug_assert_eq!(self.number(code), number.abs(), "{self:?} has no {number}");
        u64::from(number < 0.0) << (self.bits() - 1) | code
    }

    /// The same of a whole number, without a search.
    pub fn whole(self, number: i64) -> u64 {
        let magnitude = number.unsigned_abs();
        let Some(exponent) = magnitude.checked_ilog2() else {
            return 0;
        };
        let digits = magnitude << self.fraction >> exponent;
        let field = u64::from(exponent) + self.bias as u64;
        let code = (field << self.fraction) + digits - (1 << self.fraction);
        debug_assert!(
            digits << exponent == magnitude << self.fraction && code < self.finite(),
            "{self:?} has no {number}"
        );
        u64::from(number < 0) << (self.bits() - 1) | code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_numbers_of_the_isa() {
        let of = |name| FloatType::parse(name).unwrap();
        let greatest = |name| {
            let of = of(name);
            of.number(of.finite() - 1)
        };
        assert_eq!(greatest("e4m3x2"), 448.0);
        assert_eq!(greatest("e5m2"), 57344.0);
        assert_eq!(greatest("f16x2"), 65504.0);
        assert_eq!(greatest("f32"), f64::from(f32::MAX));
        assert_eq!(
            ["e2m3x2", "e3m2x2", "e2m1x2"].map(greatest),
            [7.5, 28.0, 6.0]
        );
        assert_eq!(
            ["e2m3", "e3m2", "e2m1"].map(|name| of(name).number(1)),
            [0.125, 0.0625, 0.5]
        );
        assert!(
            ["e2m3", "e3m2", "e2m1"]
                .iter()
                .all(|name| !of(name).has_nan())
        );
        assert!(
            ["f16", "e4m3", "e5m2"]
                .iter()
                .all(|name| of(name).has_nan())
        );
        assert!(of("e4m3").is_nan(0x7f) && of("e4m3").is_nan(0xff) && !of("e4m3").is_nan(0x7e));
        assert!(of("e5m2").is_nan(0x7d) && of("e5m2").value(0xfc) == f64::NEG_INFINITY);
        assert_eq!(of("tf32").code(-1.5), 0x5fe00);
        assert_eq!(of("bf16").at_most(1.01), 0x3f81);
    }

    #[test]
    fn whole_numbers_have_the_codes_that_a_search_finds() {
        for name in ["f16", "bf16", "f32", "e4m3", "e5m2"] {
            let of = FloatType::parse(name).unwrap();
            let exact = 2 << of.fraction.min(10);
            for number in -exact..=exact {
                assert_eq!(
                    of.whole(number),
                    of.code(number as f64),
                    "{number} in {name}"
                );
            }
        }
    }
}
