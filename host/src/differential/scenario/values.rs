//! Functions of values alone: `bfind`, `bmsk`, `prmt`, `shl`, `shr`.

use super::{Case, Random, Scenario};
use crate::differential::form::Form;
use crate::driver::Launch;

/// Tuples of operands in a launch.
const SIZES: [u64; 3] = [1, 33, 1000];

pub fn scenario(form: &Form) -> Option<Scenario> {
    let arity = form.operands.len() as u64;
    let arguments = (0..arity).map(|k| format!("get(input, 1 + {arity} * i + {k})"));
    let body = format!(
        "var n = get(input, 0);\n\
         var i = thread();\n\
         while (i < n) {{\n\
         @r = ({})\n\
         put(output, i, r);\n\
         i = i + threads();\n\
         }}\n",
        Vec::from_iter(arguments).join("; ")
    );
    let form = form.clone();
    expected(&form, &[0, 0, 0])?;
    Some(Scenario::new(body, move |seed| {
        SIZES.iter().map(|&n| case(&form, seed, n)).collect()
    }))
}

fn case(form: &Form, seed: u64, n: u64) -> Case {
    let mut random = Random::new(seed ^ n << 32, &form.instruction);
    let mut input = vec![n];
    let mut output = Vec::new();
    for tuple in 0..n {
        let operands =
            Vec::from_iter((0..form.operands.len()).map(|k| operand(&mut random, k, tuple)));
        let result = expected(form, &operands).expect("a form with a scenario has expectations");
        output.push(result);
        input.extend(operands);
    }
    Case::new(format!("{n} tuples"), Launch::new(1, 128), input).gives_words(output)
}

/// Edge values first, then all magnitudes; later operands are mostly small, as amounts are.
fn operand(random: &mut Random, position: usize, tuple: u64) -> u64 {
    const EDGES: [u64; 12] = [
        0,
        1,
        u64::MAX,
        1 << 63,
        1 << 31,
        (1 << 31) - 1,
        1 << 15,
        (1 << 15) - 1,
        i64::MAX as u64,
        0xffff_ffff,
        0x8000_0000_0000_0001,
        0x0000_0001_0000_0000,
    ];
    if position > 0 && random.below(4) > 0 {
        return random.below(70);
    }
    match EDGES.get(tuple as usize) {
        Some(edge) => *edge,
        None => random.word() >> random.below(64),
    }
}

/// The result as the low bytes of a word; `None` for a form that is not of this kind.
fn expected(form: &Form, operands: &[u64]) -> Option<u64> {
    let a = operands[0];
    let b = operands.get(1).copied().unwrap_or_default() as u32;
    Some(match form.instruction.split('.').next()? {
        "bfind" => bfind(form.last(), a, form.says("shiftamt")).into(),
        "bmsk" => bmsk(a as u32, b, form.says("wrap")).into(),
        "prmt" => prmt(
            form.last(),
            [a as u32, b],
            operands.get(2).copied().unwrap_or_default() as u32,
        )
        .into(),
        "shl" => shl(width(form.last())?, a, b),
        "shr" => shr(form.last(), a, b)?,
        _ => return None,
    })
}

fn width(ty: &str) -> Option<u32> {
    ty[1..].parse().ok()
}

/// The highest bit that differs from the sign, or −1.
fn bfind(ty: &str, value: u64, shift_amount: bool) -> u32 {
    let significant = match ty {
        "u32" => u64::from(value as u32),
        "u64" => value,
        "s32" => {
            let value = value as i32;
            u64::from(if value < 0 { !value } else { value } as u32)
        }
        _ => {
            let value = value as i64;
            (if value < 0 { !value } else { value }) as u64
        }
    };
    let top = if ty.ends_with("32") { 31 } else { 63 };
    match significant.checked_ilog2() {
        None => u32::MAX,
        Some(bit) if shift_amount => top - bit,
        Some(bit) => bit,
    }
}

/// `count` ones from bit `position` on.
fn bmsk(position: u32, count: u32, wrap: bool) -> u32 {
    let (position, count) = if wrap {
        (position % 32, count % 32)
    } else {
        (position.min(32), count.min(32))
    };
    let ones = (1u64 << count) - 1;
    (ones << position) as u32
}

fn prmt(mode: &str, [a, b]: [u32; 2], selector: u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    let s = (selector % 4) as usize;
    let pattern: [usize; 4] = match mode {
        "f4e" => [0, 1, 2, 3].map(|i| s + i),
        "b4e" => [0, 1, 2, 3].map(|i| (8 + s - i) % 8),
        "rc8" => [s; 4],
        "ecl" => [0, 1, 2, 3].map(|i| s.max(i)),
        "ecr" => [0, 1, 2, 3].map(|i| s.min(i)),
        "rc16" => [0, 1, 0, 1].map(|i| s % 2 * 2 + i),
        _ => {
            let pick = |i: u32| {
                let control = selector >> (4 * i) & 0xf;
                let byte = bytes[(control % 8) as usize];
                match control / 8 {
                    0 => byte,
                    _ => ((byte as i8) >> 7) as u8,
                }
            };
            return u32::from_le_bytes([0, 1, 2, 3].map(pick));
        }
    };
    u32::from_le_bytes(pattern.map(|i| bytes[i]))
}

fn shl(width: u32, value: u64, amount: u32) -> u64 {
    let kept = u64::MAX >> (64 - width);
    if amount >= width {
        0
    } else {
        value << amount & kept
    }
}

fn shr(ty: &str, value: u64, amount: u32) -> Option<u64> {
    let width = width(ty)?;
    let kept = u64::MAX >> (64 - width);
    let value = value & kept;
    if ty.starts_with('s') {
        let unused = 64 - width;
        let extended = (value << unused) as i64 >> unused;
        return Some((extended >> amount.min(63)) as u64 & kept);
    }
    Some(if amount >= width { 0 } else { value >> amount })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leading_bit_is_found_below_the_sign() {
        assert_eq!(bfind("u32", 0x8000_0000, false), 31);
        assert_eq!(bfind("s32", 0xffff_fff0, false), 3);
        assert_eq!(bfind("u64", 1, true), 63);
        assert_eq!(
            [bfind("s64", u64::MAX, false), bfind("u32", 1 << 32, true)],
            [u32::MAX; 2]
        );
    }

    #[test]
    fn masks_are_clamped_or_wrap() {
        assert_eq!(bmsk(4, 8, false), 0xff0);
        assert_eq!(bmsk(28, 40, false), 0xf000_0000);
        assert_eq!([bmsk(32, 3, false), bmsk(32, 3, true)], [0, 7]);
    }

    #[test]
    fn bytes_are_picked_by_selector_and_mode() {
        let ab = [0x0302_01f0, 0x0706_0504];
        assert_eq!(prmt("b32", ab, 0x7_0_8_4), 0x07f0_ff04);
        assert_eq!(prmt("f4e", ab, 2), 0x0504_0302);
        assert_eq!(prmt("b4e", ab, 1), 0x0607_f001);
        assert_eq!(prmt("ecl", ab, 2), 0x0302_0202);
        assert_eq!(prmt("ecr", ab, 1), 0x0101_01f0);
        assert_eq!(prmt("rc16", ab, 3), 0x0302_0302);
    }

    #[test]
    fn shifts_beyond_the_width_leave_what_fills() {
        assert_eq!(
            [shl(16, 0x1_8001, 1), shl(32, 1, 32), shl(64, 1, 63)],
            [2, 0, 1 << 63]
        );
        assert_eq!(shr("s16", 0x8000, 70), Some(0xffff));
        assert_eq!(shr("b32", 0xffff_ffff_8000_0000, 31), Some(1));
    }
}
