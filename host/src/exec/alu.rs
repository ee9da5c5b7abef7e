//! Arithmetic on the 32 lanes of a warp.
//!
//! Each function chooses the operation once and then runs over all lanes; lanes that do not take part
//! are computed, too, and thrown away by the caller. So no input may panic.

use super::float::{self, Arithmetic};
use super::op::{
    AtomOp, Binary, Cmp, FloatMode, Permute, Round, Ternary, Ty, Unary, mask, sign_extend,
};

/// One value for each lane.
pub type Lanes = [u64; 32];

#[inline(always)]
fn map(a: &Lanes, out: &mut Lanes, f: impl Fn(u64) -> u64) {
    for lane in 0..32 {
        out[lane] = f(a[lane]);
    }
}

#[inline(always)]
fn map2(a: &Lanes, b: &Lanes, out: &mut Lanes, f: impl Fn(u64, u64) -> u64) {
    for lane in 0..32 {
        out[lane] = f(a[lane], b[lane]);
    }
}

#[inline(always)]
fn map3(a: &Lanes, b: &Lanes, c: &Lanes, out: &mut Lanes, f: impl Fn(u64, u64, u64) -> u64) {
    for lane in 0..32 {
        out[lane] = f(a[lane], b[lane], c[lane]);
    }
}

/// `f(a, b)` in every lane.
pub fn binary(f: Binary, ty: Ty, mode: FloatMode, a: &Lanes, b: &Lanes, out: &mut Lanes) {
    if ty.float() && !matches!(f, Binary::And | Binary::Or | Binary::Xor) {
        return float_binary(f, ty, mode, a, b, out);
    }
    let (bits, signed) = (ty.bits(), ty.signed());
    let m = mask(bits);
    let ext = |x: u64| sign_extend(x, bits);
    match f {
        Binary::Add if mode.sat => map2(a, b, out, |x, y| saturate(ext(x) + ext(y))),
        Binary::Sub if mode.sat => map2(a, b, out, |x, y| saturate(ext(x) - ext(y))),
        Binary::Add => map2(a, b, out, |x, y| x.wrapping_add(y) & m),
        Binary::Sub => map2(a, b, out, |x, y| x.wrapping_sub(y) & m),
        Binary::MulLo => map2(a, b, out, |x, y| x.wrapping_mul(y) & m),
        Binary::MulWide if signed => map2(a, b, out, |x, y| {
            ext(x).wrapping_mul(ext(y)) as u64 & mask(bits * 2)
        }),
        Binary::MulWide => map2(a, b, out, |x, y| (x & m).wrapping_mul(y & m)),
        Binary::MulHi => map2(a, b, out, |x, y| mul_hi(ty, x, y)),
        Binary::Div => map2(a, b, out, |x, y| divide(ty, x, y, false)),
        Binary::Rem => map2(a, b, out, |x, y| divide(ty, x, y, true)),
        Binary::Min if signed => map2(a, b, out, |x, y| ext(x).min(ext(y)) as u64 & m),
        Binary::Max if signed => map2(a, b, out, |x, y| ext(x).max(ext(y)) as u64 & m),
        Binary::Min => map2(a, b, out, |x, y| (x & m).min(y & m)),
        Binary::Max => map2(a, b, out, |x, y| (x & m).max(y & m)),
        Binary::And => map2(a, b, out, |x, y| x & y),
        Binary::Or => map2(a, b, out, |x, y| x | y),
        Binary::Xor => map2(a, b, out, |x, y| x ^ y),
        Binary::Bmsk { clamp } => map2(a, b, out, |x, y| bit_mask(x & m, y & m, clamp)),
        // A shift by the width or more leaves nothing, or copies of the sign.
        Binary::Shl => map2(a, b, out, |x, y| shift_left(x, y, bits) & m),
        Binary::Shr if signed => map2(a, b, out, |x, y| {
            (ext(x) >> (y & mask(32)).min(63)) as u64 & m
        }),
        Binary::Shr => map2(a, b, out, |x, y| {
            let y = y & mask(32);
            if y >= u64::from(bits) {
                0
            } else {
                (x & m) >> y
            }
        }),
    }
}

fn shift_left(x: u64, y: u64, bits: u32) -> u64 {
    let y = y & mask(32);
    if y >= u64::from(bits) { 0 } else { x << y }
}

fn bit_mask(position: u64, width: u64, clamp: bool) -> u64 {
    let wide = clamp && width >= 32;
    if clamp && position >= 32 {
        return 0;
    }
    let (position, width) = (position & 31, if wide { 32 } else { width & 31 });
    (mask(width as u32) << position) & mask(32)
}

fn saturate(x: i64) -> u64 {
    x.clamp(i32::MIN.into(), i32::MAX.into()) as u64 & mask(32)
}

fn mul_hi(ty: Ty, x: u64, y: u64) -> u64 {
    let bits = ty.bits();
    let product = if ty.signed() {
        i128::from(sign_extend(x, bits)) * i128::from(sign_extend(y, bits))
    } else {
        (u128::from(x & mask(bits)) * u128::from(y & mask(bits))) as i128
    };
    (product >> bits) as u64 & mask(bits)
}

/// Division by zero is undefined; the GPU gives all ones, and so does this.
fn divide(ty: Ty, x: u64, y: u64, remainder: bool) -> u64 {
    let bits = ty.bits();
    let m = mask(bits);
    if y & m == 0 {
        return if remainder { x & m } else { m };
    }
    let value = if ty.signed() {
        let (x, y) = (sign_extend(x, bits), sign_extend(y, bits));
        if remainder {
            x.wrapping_rem(y) as u64
        } else {
            x.wrapping_div(y) as u64
        }
    } else if remainder {
        (x & m) % (y & m)
    } else {
        (x & m) / (y & m)
    };
    value & m
}

fn float_binary(f: Binary, ty: Ty, mode: FloatMode, a: &Lanes, b: &Lanes, out: &mut Lanes) {
    let f = match f {
        Binary::Add => Arithmetic::Add,
        Binary::Sub => Arithmetic::Sub,
        Binary::MulLo => Arithmetic::Mul,
        Binary::Div => Arithmetic::Div,
        Binary::Min => Arithmetic::Min,
        _ => Arithmetic::Max,
    };
    match ty {
        Ty::F32 if f == Arithmetic::Add && mode == FloatMode::default() => {
            map2(a, b, out, |x, y| {
                float::arithmetic32(Arithmetic::Add, FloatMode::default(), x, y)
            })
        }
        Ty::F32 => map2(a, b, out, |x, y| float::arithmetic32(f, mode, x, y)),
        Ty::F64 => map2(a, b, out, |x, y| float::arithmetic64(f, mode, x, y)),
        Ty::F16x2 | Ty::Bf16x2 => map2(a, b, out, |x, y| {
            let low = float::arithmetic16(ty, f, mode, x, y);
            let high = float::arithmetic16(ty, f, mode, x >> 16, y >> 16);
            high << 16 | low
        }),
        _ => map2(a, b, out, |x, y| float::arithmetic16(ty, f, mode, x, y)),
    }
}

/// `f(a)` in every lane.
pub fn unary(f: Unary, ty: Ty, mode: FloatMode, a: &Lanes, out: &mut Lanes) {
    let bits = ty.bits();
    let m = mask(bits);
    let sign = match ty {
        Ty::F16x2 | Ty::Bf16x2 => 0x8000_8000,
        _ => 1 << (bits - 1),
    };
    let flushes = |x: u64| {
        let subnormal = f32::from_bits(x as u32).is_subnormal();
        if mode.ftz && ty == Ty::F32 && subnormal {
            x & sign
        } else {
            x
        }
    };
    match f {
        Unary::Neg if ty.float() => map(a, out, |x| float::quiet(ty, x, flushes(x) ^ sign)),
        Unary::Abs if ty.float() => map(a, out, |x| float::quiet(ty, x, flushes(x) & !sign)),
        Unary::Neg => map(a, out, |x| x.wrapping_neg() & m),
        Unary::Abs => map(a, out, |x| sign_extend(x, bits).wrapping_abs() as u64 & m),
        Unary::Not => map(a, out, |x| !x & m),
        Unary::Cnot => map(a, out, |x| u64::from(x & m == 0)),
        Unary::Popc => map(a, out, |x| u64::from((x & m).count_ones())),
        Unary::Clz => map(a, out, |x| u64::from((x & m).leading_zeros() - (64 - bits))),
        Unary::Brev => map(a, out, |x| x.reverse_bits() >> (64 - bits)),
        Unary::Bfind(shift) => map(a, out, |x| bfind(ty, x, shift)),
        Unary::Sqrt => map(a, out, |x| float::root_or_reciprocal(ty, true, mode, x)),
        Unary::Rcp => map(a, out, |x| float::root_or_reciprocal(ty, false, mode, x)),
    }
}

/// The place of the most significant bit that is not a copy of the sign.
fn bfind(ty: Ty, x: u64, shift: bool) -> u64 {
    let bits = ty.bits();
    let x = if ty.signed() && sign_extend(x, bits) < 0 {
        !x & mask(bits)
    } else {
        x & mask(bits)
    };
    if x == 0 {
        return mask(32);
    }
    let place = 63 - x.leading_zeros();
    u64::from(if shift { bits - 1 - place } else { place })
}

/// `f(a, b, c)` in every lane.
pub fn ternary(f: Ternary, ty: Ty, mode: FloatMode, [a, b, c]: [&Lanes; 3], out: &mut Lanes) {
    let bits = ty.bits();
    let m = mask(bits);
    let ext = |x: u64| sign_extend(x, bits);
    match f {
        Ternary::MadLo => map3(a, b, c, out, |x, y, z| {
            x.wrapping_mul(y).wrapping_add(z) & m
        }),
        Ternary::MadHi => map3(a, b, c, out, |x, y, z| mul_hi(ty, x, y).wrapping_add(z) & m),
        Ternary::MadWide if ty.signed() => map3(a, b, c, out, |x, y, z| {
            (ext(x).wrapping_mul(ext(y)) as u64).wrapping_add(z) & mask(bits * 2)
        }),
        Ternary::MadWide => map3(a, b, c, out, |x, y, z| {
            (x & m).wrapping_mul(y & m).wrapping_add(z) & mask(bits * 2)
        }),
        Ternary::Fma => map3(a, b, c, out, |x, y, z| float::fma(ty, mode, x, y, z)),
        Ternary::Sad => map3(a, b, c, out, |x, y, z| {
            let distance = if ty.signed() {
                ext(x).abs_diff(ext(y))
            } else {
                (x & m).abs_diff(y & m)
            };
            distance.wrapping_add(z) & m
        }),
        Ternary::Bfe => map3(a, b, c, out, |x, y, z| bfe(ty, x, y, z)),
        Ternary::Prmt(Permute::Selector) => map3(a, b, c, out, prmt),
        Ternary::Prmt(mode) => map3(a, b, c, out, |x, y, z| permute(mode, x, y, z)),
        Ternary::ShfL { clamp } => map3(a, b, c, out, |x, y, z| {
            let shift = if clamp { (z & m).min(32) } else { z & 31 };
            ((y << 32 | x & m) << shift >> 32) & m
        }),
        Ternary::ShfR { clamp } => map3(a, b, c, out, |x, y, z| {
            let shift = if clamp { (z & m).min(32) } else { z & 31 };
            (y << 32 | x & m) >> shift & m
        }),
        Ternary::Lop3(table) => map3(a, b, c, out, |x, y, z| lop3(table, x, y, z) & m),
        Ternary::Dp4a { a_signed, b_signed } => {
            map3(a, b, c, out, |x, y, z| dp4a(x, y, z, a_signed, b_signed))
        }
    }
}

fn bfe(ty: Ty, x: u64, position: u64, length: u64) -> u64 {
    let bits = ty.bits();
    let (position, length) = ((position & 255) as u32, (length & 255) as u32);
    let x = x & mask(bits);
    if length == 0 {
        return 0;
    }
    let sign_at = (position + length - 1).min(bits - 1);
    let field = if position >= 64 { 0 } else { x >> position };
    let field = field & mask(length.min(64));
    let kept = bits.saturating_sub(position).min(length);
    if ty.signed() && x >> sign_at & 1 == 1 {
        (field | !mask(kept)) & mask(bits)
    } else {
        field
    }
}

/// `bfi`: `a`'s low bits put into `b`.
pub fn bfi(ty: Ty, a: u64, b: u64, position: u64, length: u64) -> u64 {
    let bits = ty.bits();
    let (position, length) = ((position & 255) as u32, (length & 255) as u32);
    if position >= bits {
        return b & mask(bits);
    }
    let field = mask(length.min(64)) << position & mask(bits);
    b & !field & mask(bits) | a << position & field
}

fn prmt(a: u64, b: u64, selector: u64) -> u64 {
    let bytes = (a & mask(32) | b << 32).to_le_bytes();
    let byte = |at: u32| {
        let choice = selector >> (4 * at) & 15;
        let byte = bytes[(choice & 7) as usize];
        let byte = match choice & 8 {
            0 => byte,
            _ => ((byte as i8) >> 7) as u8,
        };
        u64::from(byte) << (8 * at)
    };
    byte(0) | byte(1) | byte(2) | byte(3)
}

/// The modes of `prmt` in which the selector is a number from 0 to 3.
fn permute(mode: Permute, a: u64, b: u64, selector: u64) -> u64 {
    let bytes = (a & mask(32) | b << 32).to_le_bytes();
    let n = (selector & 3) as usize;
    let from = |at: usize| match mode {
        Permute::Selector | Permute::F4e => n + at,
        Permute::B4e => (n + 8 - at) % 8,
        Permute::Rc8 => n,
        Permute::Ecl => n.max(at),
        Permute::Ecr => n.min(at),
        Permute::Rc16 => 2 * (n & 1) + (at & 1),
    };
    (0..4).fold(0, |word, at| word | u64::from(bytes[from(at)]) << (8 * at))
}

fn lop3(table: u8, a: u64, b: u64, c: u64) -> u64 {
    let mut out = 0;
    for (row, (x, y, z)) in [
        (!a, !b, !c),
        (!a, !b, c),
        (!a, b, !c),
        (!a, b, c),
        (a, !b, !c),
        (a, !b, c),
        (a, b, !c),
        (a, b, c),
    ]
    .into_iter()
    .enumerate()
    {
        if table >> row & 1 == 1 {
            out |= x & y & z;
        }
    }
    out
}

fn dp4a(a: u64, b: u64, c: u64, a_signed: bool, b_signed: bool) -> u64 {
    let byte = |x: u64, at: u32, signed: bool| {
        let byte = (x >> (8 * at)) as u8;
        if signed {
            i64::from(byte as i8)
        } else {
            i64::from(byte)
        }
    };
    let sum: i64 = (0..4)
        .map(|at| byte(a, at, a_signed) * byte(b, at, b_signed))
        .sum();
    c.wrapping_add(sum as u64) & mask(32)
}

/// The lanes in which the comparison holds.
pub fn compare(cmp: Cmp, ty: Ty, ftz: bool, a: &Lanes, b: &Lanes) -> u32 {
    #[inline(always)]
    fn lanes(a: &Lanes, b: &Lanes, f: impl Fn(u64, u64) -> bool) -> u32 {
        (0..32).fold(0, |bits, lane| {
            bits | u32::from(f(a[lane], b[lane])) << lane
        })
    }
    if ty.float() {
        return lanes(a, b, |x, y| compare_floats(cmp, ty, ftz, x, y));
    }
    let bits = ty.bits();
    let m = mask(bits);
    if ty.signed() {
        let ext = |x: u64| sign_extend(x, bits);
        return match cmp {
            Cmp::Eq => lanes(a, b, |x, y| x & m == y & m),
            Cmp::Ne => lanes(a, b, |x, y| x & m != y & m),
            Cmp::Lt => lanes(a, b, |x, y| ext(x) < ext(y)),
            Cmp::Le => lanes(a, b, |x, y| ext(x) <= ext(y)),
            Cmp::Gt => lanes(a, b, |x, y| ext(x) > ext(y)),
            _ => lanes(a, b, |x, y| ext(x) >= ext(y)),
        };
    }
    match cmp {
        Cmp::Eq => lanes(a, b, |x, y| x & m == y & m),
        Cmp::Ne => lanes(a, b, |x, y| x & m != y & m),
        Cmp::Lt | Cmp::Lo => lanes(a, b, |x, y| x & m < y & m),
        Cmp::Le | Cmp::Ls => lanes(a, b, |x, y| x & m <= y & m),
        Cmp::Gt | Cmp::Hi => lanes(a, b, |x, y| x & m > y & m),
        _ => lanes(a, b, |x, y| x & m >= y & m),
    }
}

fn compare_floats(cmp: Cmp, ty: Ty, ftz: bool, a: u64, b: u64) -> bool {
    let value = |bits: u64| {
        let value = float::value(ty, bits);
        if ftz && ty == Ty::F32 && (value as f32).is_subnormal() {
            0.0
        } else {
            value
        }
    };
    let (x, y) = (value(a), value(b));
    let unordered = x.is_nan() || y.is_nan();
    match cmp {
        Cmp::Eq => x == y,
        Cmp::Ne => !unordered && x != y,
        Cmp::Lt => x < y,
        Cmp::Le => x <= y,
        Cmp::Gt => x > y,
        Cmp::Ge => x >= y,
        Cmp::Equ => unordered || x == y,
        Cmp::Neu => unordered || x != y,
        Cmp::Ltu | Cmp::Lo => unordered || x < y,
        Cmp::Leu | Cmp::Ls => unordered || x <= y,
        Cmp::Gtu | Cmp::Hi => unordered || x > y,
        Cmp::Geu | Cmp::Hs => unordered || x >= y,
        Cmp::Num => !unordered,
        Cmp::Nan => unordered,
    }
}

/// `cvt` in every lane.
#[allow(clippy::too_many_arguments)]
pub fn convert(
    to: Ty,
    from: Ty,
    round: Option<Round>,
    integral: bool,
    sat: bool,
    ftz: bool,
    dst_bits: u32,
    a: &Lanes,
    out: &mut Lanes,
) {
    let near = round.unwrap_or_default();
    match (to.float(), from.float()) {
        (true, true) => map(a, out, |x| {
            float::float_to_float(to, from, round, integral, sat, ftz, x)
        }),
        (false, true) => map(a, out, |x| {
            extend(to, float::float_to_int(to, from, near, ftz, x), dst_bits)
        }),
        (true, false) => map(a, out, |x| float::int_to_float(to, integer(from, x), near)),
        (false, false) if sat => map(a, out, |x| {
            let (low, high) = if to.signed() {
                (-(1i128 << (to.bits() - 1)), (1i128 << (to.bits() - 1)) - 1)
            } else {
                (0, (1i128 << to.bits()) - 1)
            };
            extend(to, integer(from, x).clamp(low, high) as u64, dst_bits)
        }),
        (false, false) if from.signed() => {
            map(a, out, |x| {
                extend(to, sign_extend(x, from.bits()) as u64, dst_bits)
            });
        }
        (false, false) => map(a, out, |x| extend(to, x & mask(from.bits()), dst_bits)),
    }
}

fn integer(ty: Ty, x: u64) -> i128 {
    if ty.signed() {
        sign_extend(x, ty.bits()).into()
    } else {
        (x & mask(ty.bits())).into()
    }
}

/// A value of a type in a register that may be wider.
pub fn extend(ty: Ty, x: u64, register_bits: u32) -> u64 {
    if ty.signed() {
        sign_extend(x, ty.bits()) as u64 & mask(register_bits)
    } else {
        x & mask(ty.bits())
    }
}

/// What an atomic operation leaves in memory.
pub fn atomic(f: AtomOp, ty: Ty, old: u64, b: u64, c: u64) -> u64 {
    let bits = ty.bits();
    let m = mask(bits);
    let ext = |x: u64| sign_extend(x, bits);
    let (old, b) = (old & m, b & m);
    match f {
        AtomOp::And => old & b,
        AtomOp::Or => old | b,
        AtomOp::Xor => old ^ b,
        AtomOp::Exch => b,
        AtomOp::Cas if old == b => c & m,
        AtomOp::Cas => old,
        AtomOp::Add if ty.float() => {
            let mut out = [0; 32];
            let mode = FloatMode::default();
            binary(Binary::Add, ty, mode, &[old; 32], &[b; 32], &mut out);
            out[0]
        }
        AtomOp::Min | AtomOp::Max if ty.float() => {
            let mut out = [0; 32];
            let f = if f == AtomOp::Min {
                Binary::Min
            } else {
                Binary::Max
            };
            binary(f, ty, FloatMode::default(), &[old; 32], &[b; 32], &mut out);
            out[0]
        }
        AtomOp::Add => old.wrapping_add(b) & m,
        AtomOp::Inc if old >= b => 0,
        AtomOp::Inc => old + 1,
        AtomOp::Dec if old == 0 || old > b => b,
        AtomOp::Dec => old - 1,
        AtomOp::Min if ty.signed() => ext(old).min(ext(b)) as u64 & m,
        AtomOp::Max if ty.signed() => ext(old).max(ext(b)) as u64 & m,
        AtomOp::Min => old.min(b),
        AtomOp::Max => old.max(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(f: Binary, ty: Ty, a: u64, b: u64) -> u64 {
        let mut out = [0; 32];
        binary(f, ty, FloatMode::default(), &[a; 32], &[b; 32], &mut out);
        out[7]
    }

    #[test]
    fn shifts_past_the_width_leave_zero_or_the_sign() {
        assert_eq!(one(Binary::Shl, Ty::B32, 1, 32), 0);
        assert_eq!(one(Binary::Shr, Ty::U32, 0x8000_0000, 40), 0);
        assert_eq!(one(Binary::Shr, Ty::S32, 0x8000_0000, 40), 0xffff_ffff);
        assert_eq!(one(Binary::Shr, Ty::S32, 0x8000_0000, 4), 0xf800_0000);
    }

    #[test]
    fn products_have_their_high_and_wide_halves() {
        assert_eq!(one(Binary::MulHi, Ty::U32, 0xffff_ffff, 2), 1);
        assert_eq!(one(Binary::MulHi, Ty::S32, 0xffff_ffff, 2), 0xffff_ffff);
        assert_eq!(
            one(Binary::MulWide, Ty::S32, 0xffff_ffff, 2),
            (-2i64) as u64
        );
        assert_eq!(one(Binary::MulWide, Ty::U32, 0xffff_ffff, 2), 0x1_ffff_fffe);
        assert_eq!(one(Binary::MulHi, Ty::U64, u64::MAX, 16), 15);
    }

    #[test]
    fn no_division_panics() {
        assert_eq!(one(Binary::Div, Ty::U32, 5, 0), 0xffff_ffff);
        assert_eq!(one(Binary::Div, Ty::S64, 1 << 63, u64::MAX), 1 << 63);
        assert_eq!(
            one(Binary::Rem, Ty::S32, (-7i64) as u64 & mask(32), 4),
            (-3i64) as u64 & mask(32)
        );
    }

    #[test]
    fn fields_are_taken_out_and_put_in() {
        assert_eq!(bfe(Ty::U32, 0xabcd_1234, 8, 8), 0x12);
        assert_eq!(bfe(Ty::S32, 0x0000_8000, 8, 8), 0xffff_ff80);
        assert_eq!(bfi(Ty::B32, 0xff, 0, 4, 8), 0xff0);
        assert_eq!(bfi(Ty::B32, 0xff, 7, 32, 8), 7);
    }

    #[test]
    fn bit_masks_stay_within_the_word() {
        assert_eq!(bit_mask(4, 8, true), 0xff0);
        assert_eq!(bit_mask(28, 8, true), 0xf000_0000);
        assert_eq!((bit_mask(32, 1, true), bit_mask(32, 1, false)), (0, 1));
        assert_eq!(
            (bit_mask(0, 32, true), bit_mask(0, 32, false)),
            (mask(32), 0)
        );
    }

    #[test]
    fn bytes_are_permuted() {
        assert_eq!(prmt(0x3322_1100, 0x7766_5544, 0x7531), 0x7755_3311);
        assert_eq!(prmt(0x0000_0080, 0, 0x0008), 0x8080_80ff);
    }

    #[test]
    fn a_table_of_three_inputs_is_looked_up_bit_by_bit() {
        let (a, b, c) = (0xf0, 0xcc, 0xaa);
        assert_eq!(lop3(0xf0, a, b, c) & 0xff, a);
        assert_eq!(lop3(0x96, a, b, c) & 0xff, a ^ b ^ c);
        assert_eq!(lop3(0xe8, a, b, c) & 0xff, a & b | a & c | b & c);
    }

    #[test]
    fn increments_wrap_at_their_bound() {
        assert_eq!(atomic(AtomOp::Inc, Ty::U32, 3, 3, 0), 0);
        assert_eq!(atomic(AtomOp::Inc, Ty::U32, 2, 3, 0), 3);
        assert_eq!(atomic(AtomOp::Dec, Ty::U32, 0, 9, 0), 9);
    }
}
