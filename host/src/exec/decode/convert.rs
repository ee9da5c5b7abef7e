//! `cvt`.

use anyhow::{Context, Result, bail, ensure};

use super::super::convert::{Conversion, IntegerPack, Packed};
use super::super::op::*;
use super::super::parse::Operand;
use super::*;

impl<'a> Decoder<'_, 'a> {
    pub(super) fn cvt(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        if q.take("pack") {
            return self.integer_pack(q, o);
        }
        if let [.., to, from] = q.parts[..]
            && let (Some(to), Some(from)) = (Packed::parse(to), Packed::parse(from))
            && !is_plain(q)
        {
            q.parts.truncate(q.parts.len() - 2);
            return self.conversion(to, from, q, o);
        }
        let integral = q.one_of(&[
            ("rni", Round::Near),
            ("rzi", Round::Zero),
            ("rmi", Round::Down),
            ("rpi", Round::Up),
        ]);
        let float = q.one_of(&[
            ("rn", Round::Near),
            ("rz", Round::Zero),
            ("rm", Round::Down),
            ("rp", Round::Up),
        ]);
        let (sat, ftz) = (q.take("sat"), q.take("ftz"));
        let from = q.ty()?;
        let to = q.ty()?;
        expect(o, 2)?;
        Ok(Op::Cvt {
            dst: self.dst(&o[0])?,
            to,
            from,
            round: integral.or(float),
            integral: integral.is_some(),
            sat,
            ftz,
            a: self.src(&o[1], from)?,
        })
    }

    /// A conversion of packed or narrow numbers, or one with `.relu` or `.satfinite`.
    fn conversion(&self, to: Packed, from: Packed, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let by_random_bits = q.take("rs");
        // Each half of the operand has as many bits as a number of .bf16 lacks of one of .f32, and they have the same
        // exponents.
        ensure!(
            !by_random_bits || Packed::parse("bf16x2") == Some(to),
            "more bits than there are random ones may be dropped, and the ISA does not say in words where these are added"
        );
        let round = q.one_of(&[
            ("rn", Round::Near),
            ("rna", Round::NearAway),
            ("rz", Round::Zero),
            ("rp", Round::Up),
        ]);
        ensure!(round.is_some() != by_random_bits, "expected one rounding");
        let (saturates, relu) = (q.take("satfinite"), q.take("relu"));
        let (dst, srcs) = o.split_first().context("expected operands")?;
        let (random, srcs) = match srcs.split_last() {
            Some((random, srcs)) if by_random_bits => (Some(self.src(random, Ty::B32)?), srcs),
            _ => (None, srcs),
        };
        ensure!(
            srcs.len() as u32 * from.count == to.count,
            "expected as many numbers as the result has"
        );
        let ty = if from.bits() == 32 { Ty::F32 } else { Ty::B32 };
        Ok(Op::Convert(Box::new(Conversion {
            to,
            from,
            round: round.unwrap_or_default(),
            random,
            saturates,
            relu,
            dst: self.dst(dst)?,
            srcs: srcs
                .iter()
                .map(|src| self.src(src, ty))
                .collect::<Result<_>>()?,
        })))
    }

    fn integer_pack(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        ensure!(q.take("sat"), "expected `.sat`");
        let third = q.take("b32");
        ensure!(q.take("s32"), "expected `.s32`");
        let [to] = q.parts[..] else {
            bail!("expected the type to convert to");
        };
        q.parts.clear();
        let (signed, bits) = match to.split_at_checked(1) {
            Some(("s", bits)) => (true, bits),
            Some(("u", bits)) => (false, bits),
            _ => bail!("expected an integer type, found `.{to}`"),
        };
        let bits = bits.parse()?;
        ensure!(
            if third { bits <= 8 } else { bits == 16 },
            "expected two of 16 bits, or smaller ones above a third operand"
        );
        expect(o, if third { 4 } else { 3 })?;
        Ok(Op::IntegerPack(IntegerPack {
            bits,
            signed,
            dst: self.dst(&o[0])?,
            a: self.src(&o[1], Ty::S32)?,
            b: self.src(&o[2], Ty::S32)?,
            c: if third {
                Some(self.src(&o[3], Ty::B32)?)
            } else {
                None
            },
        }))
    }
}

/// Whether it is a conversion as there is one between any two types.
fn is_plain(q: &Quals) -> bool {
    let names = ["f16", "bf16", "f32", "f64"];
    let plain = |part: &&str| {
        Ty::parse(part).is_none() && Packed::parse(part).is_none() || names.contains(part)
    };
    let narrow = ["relu", "satfinite", "rna", "rs"];
    q.parts
        .iter()
        .all(|part| plain(part) && !narrow.contains(part))
}
