//! Integers, floats, comparisons.

use anyhow::{Context, Result, bail, ensure};

use super::super::op::*;
use super::super::parse::Operand;
use super::*;

impl<'a> Decoder<'_, 'a> {
    pub(super) fn binary(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        if q.take("cc") {
            return self.carry_form(name == "sub", false, true, q, o);
        }
        let f = match name {
            "add" => Binary::Add,
            "sub" => Binary::Sub,
            "mul" if q.take("hi") => Binary::MulHi,
            "mul" if q.take("wide") => Binary::MulWide,
            "mul" => {
                q.take("lo");
                Binary::MulLo
            }
            "div" => Binary::Div,
            "rem" => Binary::Rem,
            "min" => Binary::Min,
            "max" => Binary::Max,
            "and" => Binary::And,
            "or" => Binary::Or,
            "xor" => Binary::Xor,
            "shl" => Binary::Shl,
            "shr" => Binary::Shr,
            _ => Binary::Bmsk {
                clamp: {
                    let clamp = q.take("clamp");
                    ensure!(clamp || q.take("wrap"), "expected `.clamp` or `.wrap`");
                    clamp
                },
            },
        };
        let ty = q.ty()?;
        let mode = q.float_mode();
        expect(o, 3)?;
        if ty == Ty::Pred {
            let f = match f {
                Binary::And => Logic::And,
                Binary::Or => Logic::Or,
                _ => Logic::Xor,
            };
            return Ok(Op::PredLogic {
                f,
                dst: self.pred_dst(&o[0])?,
                a: self.pred(&o[1])?,
                b: self.pred(&o[2])?,
            });
        }
        let shift = matches!(f, Binary::Shl | Binary::Shr);
        let b_ty = if shift { Ty::U32 } else { ty };
        if ty.float() {
            let known = match f {
                Binary::Add | Binary::Sub | Binary::MulLo => true,
                Binary::Div => matches!(ty, Ty::F32 | Ty::F64),
                Binary::Min | Binary::Max => true,
                _ => false,
            };
            ensure!(known, "no such operation on floats is known");
            ensure!(
                mode.round == Round::Near || f != Binary::Div,
                "only division to nearest is executed"
            );
        } else if mode.sat {
            ensure!(
                ty == Ty::S32 && matches!(f, Binary::Add | Binary::Sub),
                "`.sat` is executed on `.s32` sums alone"
            );
        }
        Ok(Op::Binary {
            f,
            ty,
            mode,
            dst: self.dst(&o[0])?,
            a: self.src(&o[1], ty)?,
            b: self.src(&o[2], b_ty)?,
        })
    }

    pub(super) fn carry(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let out = q.take("cc");
        self.carry_form(name == "subc", true, out, q, o)
    }

    pub(super) fn carry_form(
        &self,
        sub: bool,
        carry_in: bool,
        carry_out: bool,
        q: &mut Quals,
        o: &[Operand],
    ) -> Result<Op> {
        let ty = q.ty()?;
        expect(o, 3)?;
        Ok(Op::Carry {
            sub,
            carry_in,
            carry_out,
            ty,
            dst: self.dst(&o[0])?,
            a: self.src(&o[1], ty)?,
            b: self.src(&o[2], ty)?,
        })
    }

    pub(super) fn ternary(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let mut mode = FloatMode::default();
        let (f, ty, count, c_ty);
        match name {
            "mad" | "madc" if q.take("cc") || name == "madc" => {
                let carry_out = name == "mad" || q.take("cc");
                let hi = q.take("hi");
                q.take("lo");
                let ty = q.ty()?;
                expect(o, 4)?;
                return Ok(Op::MadCarry {
                    hi,
                    carry_in: name == "madc",
                    carry_out,
                    ty,
                    dst: self.dst(&o[0])?,
                    a: self.src(&o[1], ty)?,
                    b: self.src(&o[2], ty)?,
                    c: self.src(&o[3], ty)?,
                });
            }
            "mad" => {
                f = if q.take("hi") {
                    Ternary::MadHi
                } else if q.take("wide") {
                    Ternary::MadWide
                } else if q.take("lo") {
                    Ternary::MadLo
                } else {
                    Ternary::Fma
                };
                ty = q.ty()?;
                mode = q.float_mode();
                ensure!(
                    ty.float() == (f == Ternary::Fma) && !mode.sat | ty.float(),
                    "no such form of `mad` is known"
                );
                count = 4;
                c_ty = match (f, ty) {
                    (Ternary::MadWide, Ty::U16 | Ty::S16) => Ty::U32,
                    (Ternary::MadWide, _) => Ty::U64,
                    _ => ty,
                };
            }
            "fma" => {
                f = Ternary::Fma;
                ty = q.ty()?;
                mode = q.float_mode();
                ensure!(
                    matches!(ty, Ty::F32 | Ty::F64) && mode.round == Round::Near,
                    "`fma` is executed on `.f32` and `.f64`, to nearest"
                );
                (count, c_ty) = (4, ty);
            }
            "sad" => (f, ty, count, c_ty) = sad_like(Ternary::Sad, q.ty()?),
            "bfe" => {
                f = Ternary::Bfe;
                (ty, count, c_ty) = (q.ty()?, 4, Ty::U32);
            }
            "prmt" => {
                f = Ternary::Prmt(
                    q.one_of(&[
                        ("f4e", Permute::F4e),
                        ("b4e", Permute::B4e),
                        ("rc8", Permute::Rc8),
                        ("ecl", Permute::Ecl),
                        ("ecr", Permute::Ecr),
                        ("rc16", Permute::Rc16),
                    ])
                    .unwrap_or(Permute::Selector),
                );
                (ty, count, c_ty) = (q.ty()?, 4, Ty::U32);
            }
            "shf" => {
                let left = q.take("l");
                ensure!(left || q.take("r"), "expected `.l` or `.r`");
                let clamp = q.take("clamp");
                ensure!(clamp || q.take("wrap"), "expected `.clamp` or `.wrap`");
                f = if left {
                    Ternary::ShfL { clamp }
                } else {
                    Ternary::ShfR { clamp }
                };
                (ty, count, c_ty) = (q.ty()?, 4, Ty::U32);
            }
            "lop3" => {
                ty = q.ty()?;
                expect(o, 5)?;
                let Operand::Int(table) = o[4] else {
                    bail!("expected an immediate table");
                };
                f = Ternary::Lop3(table as u8);
                (count, c_ty) = (5, ty);
            }
            "dp4a" => {
                let second = q.ty()?;
                let first = q.ty()?;
                f = Ternary::Dp4a {
                    a_signed: first == Ty::S32,
                    b_signed: second == Ty::S32,
                };
                (ty, count, c_ty) = (Ty::B32, 4, Ty::B32);
            }
            _ => bail!("no such instruction is known"),
        }
        expect(o, count)?;
        let b_ty = if f == Ternary::Bfe { Ty::U32 } else { ty };
        Ok(Op::Ternary {
            f,
            ty,
            mode,
            dst: self.dst(&o[0])?,
            a: self.src(&o[1], ty)?,
            b: self.src(&o[2], b_ty)?,
            c: self.src(&o[3], c_ty)?,
        })
    }

    pub(super) fn unary(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let f = match name {
            "neg" => Unary::Neg,
            "not" => Unary::Not,
            "abs" => Unary::Abs,
            "popc" => Unary::Popc,
            "clz" => Unary::Clz,
            "brev" => Unary::Brev,
            "bfind" => Unary::Bfind(q.take("shiftamt")),
            "cnot" => Unary::Cnot,
            "sqrt" => Unary::Sqrt,
            _ => Unary::Rcp,
        };
        let ty = q.ty()?;
        let rounded = ["rn", "rz", "rm", "rp"]
            .iter()
            .any(|it| q.parts.contains(it));
        let mode = q.float_mode();
        expect(o, 2)?;
        if matches!(f, Unary::Sqrt | Unary::Rcp) {
            ensure!(
                rounded && mode.round == Round::Near,
                "only `.rn` is executed: an approximation is the hardware's own"
            );
        }
        if ty == Ty::Pred {
            let a = self.pred(&o[1])?;
            return Ok(Op::PredMov {
                dst: self.pred_dst(&o[0])?,
                a: PredSrc {
                    negated: !a.negated,
                    ..a
                },
            });
        }
        Ok(Op::Unary {
            f,
            ty,
            mode,
            dst: self.dst(&o[0])?,
            a: self.src(&o[1], ty)?,
        })
    }

    pub(super) fn compare(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let cmp = q
            .one_of(&[
                ("eq", Cmp::Eq),
                ("ne", Cmp::Ne),
                ("lt", Cmp::Lt),
                ("le", Cmp::Le),
                ("gt", Cmp::Gt),
                ("ge", Cmp::Ge),
                ("lo", Cmp::Lo),
                ("ls", Cmp::Ls),
                ("hi", Cmp::Hi),
                ("hs", Cmp::Hs),
                ("equ", Cmp::Equ),
                ("neu", Cmp::Neu),
                ("ltu", Cmp::Ltu),
                ("leu", Cmp::Leu),
                ("gtu", Cmp::Gtu),
                ("geu", Cmp::Geu),
                ("num", Cmp::Num),
                ("nan", Cmp::Nan),
            ])
            .context("expected a comparison")?;
        let logic = q.one_of(&[("and", Logic::And), ("or", Logic::Or), ("xor", Logic::Xor)]);
        let ty = q.ty()?;
        let ftz = q.take("ftz");
        ensure!(
            !matches!(ty, Ty::F16x2 | Ty::Bf16x2),
            "comparisons of packed floats are not executed"
        );
        if name == "set" {
            let to = q.ty()?;
            expect(o, 3)?;
            ensure!(logic.is_none(), "`set` with a predicate is not executed");
            // By the ISA it is 1.0; an H200 (driver 580) gives the integer 1 for `.f32.s32`.
            ensure!(!to.float(), "`set` with a float as result is not executed");
            let one = mask(to.bits());
            return Ok(Op::Set {
                cmp,
                ty,
                ftz,
                one,
                dst: self.dst(&o[0])?,
                a: self.src(&o[1], ty)?,
                b: self.src(&o[2], ty)?,
            });
        }
        expect(o, if logic.is_some() { 4 } else { 3 })?;
        let (p, second) = match &o[0] {
            Operand::Pair(p, second) => (&**p, Some(&**second)),
            p => (p, None),
        };
        let target = |operand: &Operand| match operand {
            Operand::Sink => Ok(None),
            other => self.pred_dst(other).map(Some),
        };
        Ok(Op::Setp {
            cmp,
            ty,
            ftz,
            p: target(p)?,
            q: second.map(target).transpose()?.flatten(),
            a: self.src(&o[1], ty)?,
            b: self.src(&o[2], ty)?,
            with: logic
                .map(|logic| Ok::<_, anyhow::Error>((logic, self.pred(&o[3])?)))
                .transpose()?,
        })
    }

    pub(super) fn bfi(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let ty = q.ty()?;
        expect(o, 5)?;
        Ok(Op::Bfi {
            ty,
            dst: self.dst(&o[0])?,
            a: self.src(&o[1], ty)?,
            b: self.src(&o[2], ty)?,
            position: self.src(&o[3], Ty::U32)?,
            length: self.src(&o[4], Ty::U32)?,
        })
    }

    pub(super) fn selp(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let ty = q.ty()?;
        expect(o, 4)?;
        Ok(Op::Selp {
            dst: self.dst(&o[0])?,
            a: self.src(&o[1], ty)?,
            b: self.src(&o[2], ty)?,
            p: self.pred(&o[3])?,
        })
    }
}

fn sad_like(f: Ternary, ty: Ty) -> (Ternary, Ty, usize, Ty) {
    (f, ty, 4, ty)
}
