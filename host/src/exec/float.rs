//! Floating-point arithmetic with the rounding rules of the PTX ISA.
//!
//! Rust rounds to nearest. A directed rounding is the nearest result moved by one unit where the
//! sign of the error says so; narrow formats are computed in `f64`, which is wide enough that
//! rounding twice is harmless, and rounded by [`Format::encode`].

use super::op::{FloatMode, Round, Ty};
use crate::formats::{self, Format};

/// The NaN that arithmetic on `f32` gives.
const NAN32: u32 = 0x7fff_ffff;
/// The NaN that arithmetic on `f64` gives.
const NAN64: u64 = 0xfff8_0000_0000_0000;

/// The format of one element.
pub fn format(ty: Ty) -> Format {
    match ty {
        Ty::F16 | Ty::F16x2 => formats::F16,
        Ty::Bf16 | Ty::Bf16x2 => formats::BF16,
        _ => formats::F32,
    }
}

/// The value of a 16-bit float.
pub fn widen(ty: Ty, bits: u64) -> f64 {
    format(ty).decode(bits)
}

/// The 16-bit float nearest to `value` in the direction of `round`.
pub fn narrow(ty: Ty, value: f64, round: Round) -> u64 {
    format(ty).encode(value, round, false)
}

/// `nearest`, moved if the exact value lies on its other side for `round`. `error` has the sign of
/// exact − nearest.
fn direct32(nearest: f32, error: f64, finite: bool, round: Round) -> f32 {
    if round == Round::Near || nearest.is_nan() {
        return nearest;
    }
    if nearest.is_infinite() {
        let stays =
            !finite || round == Round::Up && nearest > 0.0 || round == Round::Down && nearest < 0.0;
        return if stays {
            nearest
        } else {
            f32::MAX.copysign(nearest)
        };
    }
    let down = match round {
        Round::Zero => nearest > 0.0 || nearest == 0.0 && error > 0.0,
        Round::Down => true,
        _ => false,
    };
    match (error < 0.0, error > 0.0) {
        (true, _) if down => nearest.next_down(),
        (_, true) if !down => nearest.next_up(),
        _ => nearest,
    }
}

fn direct64(nearest: f64, error: f64, finite: bool, round: Round) -> f64 {
    if round == Round::Near || nearest.is_nan() {
        return nearest;
    }
    if nearest.is_infinite() {
        let stays =
            !finite || round == Round::Up && nearest > 0.0 || round == Round::Down && nearest < 0.0;
        return if stays {
            nearest
        } else {
            f64::MAX.copysign(nearest)
        };
    }
    let down = match round {
        Round::Zero => nearest > 0.0 || nearest == 0.0 && error > 0.0,
        Round::Down => true,
        _ => false,
    };
    match (error < 0.0, error > 0.0) {
        (true, _) if down => nearest.next_down(),
        (_, true) if !down => nearest.next_up(),
        _ => nearest,
    }
}

fn flush32(value: f32, ftz: bool) -> f32 {
    if ftz && value.is_subnormal() {
        0f32.copysign(value)
    } else {
        value
    }
}

fn finish32(value: f32, mode: FloatMode) -> u64 {
    let mut value = flush32(value, mode.ftz);
    if mode.sat {
        value = saturate(f64::from(value)) as f32;
    }
    u64::from(if value.is_nan() {
        NAN32
    } else {
        value.to_bits()
    })
}

/// `.sat`: NaN and −0 become +0.
fn saturate(value: f64) -> f64 {
    if value > 0.0 { value.min(1.0) } else { 0.0 }
}

/// The first NaN of the operands, made quiet: what `f64` arithmetic gives if there is one.
fn nan_operand(operands: &[f64]) -> Option<u64> {
    let nan = operands.iter().find(|it| it.is_nan())?;
    Some(nan.to_bits() | 1 << 51)
}

/// The sign of an exact sum of 0, which depends on the rounding unless both operands have it.
fn zero_sum(a_negative: bool, b_negative: bool, round: Round) -> f64 {
    if a_negative == b_negative && a_negative || a_negative != b_negative && round == Round::Down {
        -0.0
    } else {
        0.0
    }
}

fn finish64(value: f64) -> u64 {
    if value.is_nan() {
        NAN64
    } else {
        value.to_bits()
    }
}

/// What an arithmetic instruction does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
}

fn min_max(f: Arithmetic, a: f64, b: f64, nan: bool) -> f64 {
    if a.is_nan() || b.is_nan() {
        return match (a.is_nan(), b.is_nan()) {
            (true, true) => f64::NAN,
            _ if nan => f64::NAN,
            (true, false) => b,
            _ => a,
        };
    }
    // −0 is less than +0.
    let a_less = a < b || a == b && a.is_sign_negative();
    if a_less == (f == Arithmetic::Min) {
        a
    } else {
        b
    }
}

/// `f32` arithmetic on bits.
#[inline(always)]
pub fn arithmetic32(f: Arithmetic, mode: FloatMode, a: u64, b: u64) -> u64 {
    let a = flush32(f32::from_bits(a as u32), mode.ftz);
    let b = flush32(f32::from_bits(b as u32), mode.ftz);
    let b = if f == Arithmetic::Sub { -b } else { b };
    let value = match f {
        Arithmetic::Add | Arithmetic::Sub => a + b,
        Arithmetic::Mul => a * b,
        Arithmetic::Div => a / b,
        _ => min_max(f, f64::from(a), f64::from(b), mode.nan) as f32,
    };
    if mode.round == Round::Near {
        return finish32(value, mode);
    }
    let error = match f {
        Arithmetic::Mul => f64::from(a) * f64::from(b) - f64::from(value),
        _ => {
            // The rest of a sum is a number of the same format.
            let part = value - a;
            f64::from((a - (value - part)) + (b - part))
        }
    };
    let finite = a.is_finite() && b.is_finite();
    let mut value = direct32(value, error, finite, mode.round);
    if value == 0.0 && error == 0.0 && f != Arithmetic::Mul {
        value = zero_sum(a.is_sign_negative(), b.is_sign_negative(), mode.round) as f32;
    }
    finish32(value, mode)
}

/// A number with the sign of a × b − `value`, which is the nearest to it.
fn product_error(a: f64, b: f64, value: f64) -> f64 {
    if value == 0.0 {
        // What was lost is all there was.
        let lost = a != 0.0 && b != 0.0;
        return if lost { a.signum() * b.signum() } else { 0.0 };
    }
    if value.abs() > 2f64.powi(-900) {
        return a.mul_add(b, -value);
    }
    // So small a product may lose its own error.
    let scale = 2f64.powi(1000);
    let (small, large) = if a.abs() < b.abs() { (a, b) } else { (b, a) };
    (small * scale).mul_add(large, -(value * scale))
}

/// `f64` arithmetic on bits.
pub fn arithmetic64(f: Arithmetic, mode: FloatMode, a: u64, b: u64) -> u64 {
    let (a, b) = (f64::from_bits(a), f64::from_bits(b));
    if !matches!(f, Arithmetic::Min | Arithmetic::Max)
        && let Some(nan) = nan_operand(&[a, b])
    {
        return nan;
    }
    let b = if f == Arithmetic::Sub { -b } else { b };
    let value = match f {
        Arithmetic::Add | Arithmetic::Sub => a + b,
        Arithmetic::Mul => a * b,
        Arithmetic::Div => a / b,
        _ => min_max(f, a, b, mode.nan),
    };
    if mode.round == Round::Near {
        return finish64(value);
    }
    let error = match f {
        Arithmetic::Mul => product_error(a, b, value),
        _ => {
            let part = value - a;
            (a - (value - part)) + (b - part)
        }
    };
    let finite = a.is_finite() && b.is_finite();
    let mut value = direct64(value, error, finite, mode.round);
    if value == 0.0 && error == 0.0 && f != Arithmetic::Mul {
        value = zero_sum(a.is_sign_negative(), b.is_sign_negative(), mode.round);
    }
    finish64(value)
}

/// Arithmetic on one 16-bit float.
pub fn arithmetic16(ty: Ty, f: Arithmetic, mode: FloatMode, a: u64, b: u64) -> u64 {
    let (a, b) = (widen(ty, a & 0xffff), widen(ty, b & 0xffff));
    let value = match f {
        Arithmetic::Add => a + b,
        Arithmetic::Sub => a - b,
        Arithmetic::Mul => a * b,
        Arithmetic::Div => a / b,
        _ => min_max(f, a, b, mode.nan),
    };
    let value = if mode.sat { saturate(value) } else { value };
    narrow(ty, value, mode.round)
}

/// `fma.rn`.
pub fn fma(ty: Ty, mode: FloatMode, a: u64, b: u64, c: u64) -> u64 {
    if ty == Ty::F64 {
        let [a, b, c] = [a, b, c].map(f64::from_bits);
        return nan_operand(&[a, b, c]).unwrap_or_else(|| finish64(a.mul_add(b, c)));
    }
    let value = |bits: u64| flush32(f32::from_bits(bits as u32), mode.ftz);
    finish32(value(a).mul_add(value(b), value(c)), mode)
}

/// `sqrt.rn` and `rcp.rn`.
pub fn root_or_reciprocal(ty: Ty, root: bool, mode: FloatMode, a: u64) -> u64 {
    if ty == Ty::F64 {
        let a = f64::from_bits(a);
        let value = if root { a.sqrt() } else { 1.0 / a };
        return nan_operand(&[a]).unwrap_or_else(|| finish64(value));
    }
    let a = flush32(f32::from_bits(a as u32), mode.ftz);
    finish32(if root { a.sqrt() } else { 1.0 / a }, mode)
}

/// The value of a float of any type.
pub fn value(ty: Ty, bits: u64) -> f64 {
    match ty {
        Ty::F32 => f64::from(f32::from_bits(bits as u32)),
        Ty::F64 => f64::from_bits(bits),
        _ => widen(ty, bits & 0xffff),
    }
}

/// `result` of `neg` or `abs`, but for a NaN: `f64` keeps it, the others make it canonical.
pub fn quiet(ty: Ty, operand: u64, result: u64) -> u64 {
    match ty {
        Ty::F64 if value(ty, operand).is_nan() => operand | 1 << 51,
        Ty::F32 if value(ty, operand).is_nan() => u64::from(NAN32),
        Ty::F16 | Ty::Bf16 if value(ty, operand).is_nan() => 0x7fff,
        Ty::F16x2 | Ty::Bf16x2 => {
            let half = |bits: u64, result: u64| {
                if widen(ty, bits & 0xffff).is_nan() {
                    0x7fff
                } else {
                    result & 0xffff
                }
            };
            half(operand >> 16, result >> 16) << 16 | half(operand, result)
        }
        _ => result,
    }
}

/// A float of any type from an `f64`.
fn from_f64(ty: Ty, value: f64, round: Round, ftz: bool) -> u64 {
    match ty {
        Ty::F64 => finish64(value),
        Ty::F32 => {
            let nearest = value as f32;
            let error = value - f64::from(nearest);
            let result = direct32(nearest, error, value.is_finite(), round);
            let mode = FloatMode {
                ftz,
                ..FloatMode::default()
            };
            finish32(result, mode)
        }
        _ => narrow(ty, value, round),
    }
}

fn round_to_integer(value: f64, round: Round) -> f64 {
    match round {
        Round::Near => value.round_ties_even(),
        Round::NearAway => value.round(),
        Round::Zero => value.trunc(),
        Round::Down => value.floor(),
        Round::Up => value.ceil(),
    }
}

/// A NaN in the wider or narrower format: quiet, with its sign and the upper bits of its payload.
/// `None` where the result is the canonical one.
fn convert_nan(to: Ty, from: Ty, ftz: bool, bits: u64) -> Option<u64> {
    let bits32 = |bits: u64| if ftz { u64::from(NAN32) } else { bits };
    match (to, from) {
        (Ty::F64, Ty::F64) => Some(bits | 1 << 51),
        (Ty::F64, Ty::F32) => {
            let bits = bits32(bits);
            Some(bits >> 31 << 63 | 0x7ff8 << 48 | (bits & 0x3f_ffff) << 29)
        }
        (Ty::F32, Ty::F64) => Some(bits >> 63 << 31 | 0x7fc0_0000 | bits >> 29 & 0x3f_ffff),
        (Ty::F64, Ty::F16) => Some((bits >> 15 & 1) << 63 | 0x7ff8 << 48 | (bits & 0x3ff) << 42),
        (Ty::F16, Ty::F64) => Some(bits >> 63 << 15 | 0x7e00 | bits >> 42 & 0x3ff),
        (Ty::F32, Ty::Bf16) => Some((bits & 0xffff) << 16 | 1 << 22),
        _ => None,
    }
}

/// `cvt` between floats.
pub fn float_to_float(
    to: Ty,
    from: Ty,
    round: Option<Round>,
    integral: bool,
    sat: bool,
    ftz: bool,
    bits: u64,
) -> u64 {
    let mut x = value(from, bits);
    if x.is_nan()
        && !sat
        && let Some(nan) = convert_nan(to, from, ftz, bits)
    {
        return nan;
    }
    if ftz && from == Ty::F32 {
        x = f64::from(flush32(x as f32, true));
    }
    if integral {
        x = round_to_integer(x, round.unwrap_or_default());
    }
    if sat {
        x = saturate(x);
    }
    let round = if integral { None } else { round };
    from_f64(to, x, round.unwrap_or_default(), ftz)
}

/// `cvt` of a float to an integer: clamped to its range.
pub fn float_to_int(to: Ty, from: Ty, round: Round, ftz: bool, bits: u64) -> u64 {
    let mut x = value(from, bits);
    if ftz && from == Ty::F32 {
        x = f64::from(flush32(x as f32, true));
    }
    if x.is_nan() {
        let zero = from != Ty::F64 && to.bits() < 64;
        return if zero { 0 } else { 1 << (to.bits() - 1) };
    }
    let x = round_to_integer(x, round);
    let (low, high) = match (to.signed(), to.bits()) {
        (true, bits) => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        (false, bits) => (0, (1i128 << bits) - 1),
    };
    (x as i128).clamp(low, high) as u64 & super::op::mask(to.bits())
}

/// `cvt` of an integer to a float.
pub fn int_to_float(to: Ty, x: i128, round: Round) -> u64 {
    match to {
        Ty::F64 => {
            let nearest = x as f64;
            let error = (x - nearest as i128) as f64;
            finish64(direct64(nearest, error, true, round))
        }
        Ty::F32 => {
            let nearest = x as f32;
            let error = (x - nearest as i128) as f64;
            finish32(direct32(nearest, error, true, round), FloatMode::default())
        }
        _ => {
            // Round to odd first, so that the second rounding sees that something was lost.
            let nearest = x as f64;
            let error = x - nearest as i128;
            let odd = match (error == 0 || nearest.to_bits() & 1 == 1, error > 0) {
                (true, _) => nearest,
                (false, true) => nearest.next_up(),
                (false, false) => nearest.next_down(),
            };
            narrow(to, odd, round)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(round: Round) -> FloatMode {
        FloatMode {
            round,
            ..FloatMode::default()
        }
    }

    fn add(a: f32, b: f32, round: Round) -> f32 {
        let (a, b) = (u64::from(a.to_bits()), u64::from(b.to_bits()));
        f32::from_bits(arithmetic32(Arithmetic::Add, mode(round), a, b) as u32)
    }

    #[test]
    fn directed_sums_are_the_neighbours_of_the_exact_one() {
        let tiny = 2f32.powi(-40);
        assert_eq!(add(1.0, tiny, Round::Near), 1.0);
        assert_eq!(add(1.0, tiny, Round::Up), 1.0f32.next_up());
        assert_eq!(add(1.0, tiny, Round::Down), 1.0);
        assert_eq!(add(1.0, -tiny, Round::Down), 1.0f32.next_down());
        assert_eq!(add(-1.0, tiny, Round::Zero), (-1.0f32).next_up());
        assert_eq!(add(f32::MAX, f32::MAX, Round::Zero), f32::MAX);
        assert_eq!(add(f32::MAX, f32::MAX, Round::Near), f32::INFINITY);
        assert!(add(1.0, -1.0, Round::Down).is_sign_negative());
    }

    #[test]
    fn nan_of_arithmetic_is_the_canonical_one() {
        let inf = u64::from(f32::INFINITY.to_bits());
        let found = arithmetic32(Arithmetic::Sub, FloatMode::default(), inf, inf);
        assert_eq!(found, 0x7fff_ffff);
    }

    #[test]
    fn conversions_to_integers_clamp_and_name_nan() {
        let bits = |x: f32| u64::from(x.to_bits());
        let to = |ty, x, round| float_to_int(ty, Ty::F32, round, false, bits(x));
        assert_eq!(to(Ty::U32, -1.0, Round::Zero), 0);
        assert_eq!(to(Ty::S32, 3e9, Round::Zero), 0x7fff_ffff);
        assert_eq!(to(Ty::S32, 2.5, Round::Near), 2);
        assert_eq!(to(Ty::S32, f32::NAN, Round::Zero), 0);
        assert_eq!(to(Ty::S64, f32::NAN, Round::Zero), 1 << 63);
    }

    #[test]
    fn the_lesser_of_two_zeros_is_negative() {
        let (zero, minus) = (0u64, u64::from((-0f32).to_bits()));
        let least = arithmetic32(Arithmetic::Min, FloatMode::default(), zero, minus);
        assert_eq!(least, minus);
    }
}
