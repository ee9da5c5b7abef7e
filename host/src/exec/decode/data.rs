//! `mov`, loads, stores, atomics, matrices.

use anyhow::{Context, Result, bail, ensure};

use super::super::op::*;
use super::super::parse::Operand;
use super::*;

impl<'a> Decoder<'_, 'a> {
    pub(super) fn mov(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let ty = q.ty()?;
        expect(o, 2)?;
        if ty == Ty::Pred {
            let dst = self.pred_dst(&o[0])?;
            return Ok(match &o[1] {
                Operand::Name("%is_explicit_cluster", 0) => Op::PredExplicitCluster { dst },
                Operand::Int(value) => Op::PredImm {
                    dst,
                    value: *value != 0,
                },
                a => Op::PredMov {
                    dst,
                    a: self.pred(a)?,
                },
            });
        }
        if ty == Ty::B128 {
            let ([low, high], [from_low, from_high]) = (halves(&o[0])?, halves(&o[1])?);
            return Ok(Op::MovPair {
                dsts: [self.dst_or_sink(&low)?, self.dst_or_sink(&high)?],
                srcs: [
                    self.src(&from_low, Ty::B64)?,
                    self.src(&from_high, Ty::B64)?,
                ],
            });
        }
        match (&o[0], &o[1]) {
            (Operand::Vector(parts), a) => {
                let bits = ty.bits() / parts.len() as u32;
                Ok(Op::Unpack {
                    bits,
                    parts: parts
                        .iter()
                        .map(|part| self.dst_or_sink(part))
                        .collect::<Result<_>>()?,
                    a: self.src(a, ty)?,
                })
            }
            (dst, Operand::Vector(parts)) => {
                let bits = ty.bits() / parts.len() as u32;
                let part_ty = match bits {
                    8 => Ty::B8,
                    16 => Ty::B16,
                    _ => Ty::B32,
                };
                Ok(Op::Pack {
                    dst: self.dst(dst)?,
                    bits,
                    parts: parts
                        .iter()
                        .map(|part| self.src(part, part_ty))
                        .collect::<Result<_>>()?,
                })
            }
            (dst, Operand::Name(name, 0)) if name.starts_with('%') => {
                let dst = self.dst(dst)?;
                Ok(match special(name) {
                    Some(which) => Op::Special { dst, which },
                    None => bail!("no special register `{name}` is known"),
                })
            }
            (dst, Operand::Name(name, plus)) if let Some(Symbol::Frame(at)) = self.symbol(name) => {
                Ok(Op::Special {
                    dst: self.dst(dst)?,
                    which: Special::Frame {
                        offset: at.wrapping_add_signed(*plus as i32),
                        generic: false,
                    },
                })
            }
            (dst, a) => Ok(Op::Mov {
                dst: self.dst(dst)?,
                a: self.src(a, ty)?,
            }),
        }
    }

    pub(super) fn memory(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        if q.take("async") {
            return self.store_async(q, o, None);
        }
        ensure!(!q.take("bulk"), "`st.bulk` is not executed");
        let strength = q.strength();
        let mut space = q.space();
        let lanes = q
            .one_of(&[("v2", 2), ("v4", 4), ("v8", 8)])
            .unwrap_or(1usize);
        q.take("unified");
        let ty = q.ty()?;
        let o = q.without_policy(o);
        q.hints();
        expect(o, 2)?;
        let (value, address) = if name == "st" {
            (&o[1], &o[0])
        } else {
            (&o[0], &o[1])
        };
        let addr = match self.frame_address(address) {
            Some(offset) => {
                space = Space::Frame;
                Addr {
                    base: Src::Imm(0),
                    offset,
                }
            }
            None => self.addr(address)?,
        };
        let values = match value {
            Operand::Vector(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        ensure!(values.len() == lanes, "expected {lanes} registers");
        let halved;
        let (ty, values) = if ty == Ty::B128 {
            let pairs: Vec<_> = values.iter().map(halves).collect::<Result<_>>()?;
            halved = pairs.concat();
            (Ty::B64, halved.as_slice())
        } else {
            (ty, values)
        };
        Ok(if name == "st" {
            Op::St {
                space,
                ty,
                srcs: values
                    .iter()
                    .map(|value| self.src(value, ty))
                    .collect::<Result<_>>()?,
                addr,
                strength,
            }
        } else {
            Op::Ld {
                space,
                ty,
                dsts: values
                    .iter()
                    .map(|value| self.dst_or_sink(value))
                    .collect::<Result<_>>()?,
                addr,
                strength,
            }
        })
    }

    pub(super) fn atom<'o>(&self, name: &str, q: &mut Quals, o: &[Operand<'o>]) -> Result<Op> {
        let asynchronous = q.take("async");
        q.strength();
        let f = atom_op(q).context("expected an operation")?;
        if asynchronous {
            return self.store_async(q, o, Some(f));
        }
        q.take("noftz");
        let space = q.space();
        let lanes = q
            .one_of(&[("v2", 2), ("v4", 4), ("v8", 8)])
            .unwrap_or(1usize);
        let ty = q.ty()?;
        let o = q.without_policy(o);
        q.hints();
        let wide = ty == Ty::B128 && matches!(f, AtomOp::Exch | AtomOp::Cas);
        let (ty, count) = if wide { (Ty::B64, 2) } else { (ty, lanes) };
        check_atom(f, ty)?;
        let parts = |operand: &Operand<'o>| {
            let parts = match operand {
                wide_one if wide => halves(wide_one)?.to_vec(),
                Operand::Vector(parts) if lanes > 1 => parts.clone(),
                one => vec![one.clone()],
            };
            ensure!(parts.len() == count, "expected {count} registers");
            Ok(parts)
        };
        let sources = |operand: &Operand<'o>| {
            let parts = parts(operand)?;
            parts
                .iter()
                .map(|part| self.src(part, ty))
                .collect::<Result<Vec<_>>>()
        };
        let first = usize::from(name == "atom");
        expect(o, first + if f == AtomOp::Cas { 3 } else { 2 })?;
        Ok(Op::Atom {
            space,
            f,
            ty,
            dsts: match (first, &o[0]) {
                (0, _) => Vec::new(),
                (_, Operand::Sink) => vec![None; count],
                (_, old) => parts(old)?
                    .iter()
                    .map(|part| self.dst_or_sink(part))
                    .collect::<Result<_>>()?,
            },
            addr: self.addr(&o[first])?,
            b: sources(&o[first + 1])?,
            c: match o.get(first + 2) {
                Some(c) => sources(c)?,
                None => vec![Src::Imm(0); count],
            },
        })
    }

    pub(super) fn store_async(
        &self,
        q: &mut Quals,
        o: &[Operand],
        reduce: Option<AtomOp>,
    ) -> Result<Op> {
        q.strength();
        q.hints();
        ensure!(
            q.take("shared::cluster") && q.take("mbarrier::complete_tx::bytes"),
            "expected `.shared::cluster.mbarrier::complete_tx::bytes`"
        );
        let lanes = q.one_of(&[("v2", 2), ("v4", 4)]).unwrap_or(1usize);
        let ty = q.ty()?;
        expect(o, 3)?;
        if let Some(f) = reduce {
            check_atom(f, ty)?;
        }
        let values = match &o[1] {
            Operand::Vector(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        ensure!(values.len() == lanes, "expected {lanes} registers");
        Ok(Op::StAsync {
            ty,
            srcs: values
                .iter()
                .map(|value| self.src(value, ty))
                .collect::<Result<_>>()?,
            addr: self.addr(&o[0])?,
            mbar: self.addr(&o[2])?,
            reduce,
        })
    }

    pub(super) fn matrix(&self, load: bool, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        for part in ["sync", "aligned", "m8n8"] {
            ensure!(q.take(part), "expected `.{part}`");
        }
        let count = q.one_of(&[("x1", 1), ("x2", 2), ("x4", 4usize)]);
        let count = count.context("expected `.x1`, `.x2` or `.x4`")?;
        let transposed = q.take("trans");
        ensure!(
            q.take("shared") || q.take("shared::cta"),
            "expected `.shared`"
        );
        ensure!(q.take("b16"), "matrices of `.b16` alone are executed");
        expect(o, 2)?;
        let (address, values) = if load { (&o[1], &o[0]) } else { (&o[0], &o[1]) };
        let values = match values {
            Operand::Vector(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        ensure!(values.len() == count, "expected {count} registers");
        let addr = self.addr(address)?;
        Ok(match load {
            true => Op::LdMatrix {
                transposed,
                dsts: values
                    .iter()
                    .map(|it| self.dst(it))
                    .collect::<Result<_>>()?,
                addr,
            },
            false => Op::StMatrix {
                transposed,
                srcs: values
                    .iter()
                    .map(|it| self.src(it, Ty::B32))
                    .collect::<Result<_>>()?,
                addr,
            },
        })
    }

    pub(super) fn cvta(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let to = q.take("to");
        let space = q.space();
        let ty = q.ty()?;
        expect(o, 2)?;
        if let Operand::Name(name, plus) = &o[1]
            && let Some(Symbol::Frame(at)) = self.symbol(name)
        {
            ensure!(!to, "expected an address that is generic");
            return Ok(Op::Special {
                dst: self.dst(&o[0])?,
                which: Special::Frame {
                    offset: at.wrapping_add_signed(*plus as i32),
                    generic: true,
                },
            });
        }
        Ok(Op::Cvta {
            to,
            space,
            dst: self.dst(&o[0])?,
            a: self.src(&o[1], ty)?,
        })
    }

    pub(super) fn isspacep(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let own = q.parts.contains(&"shared") || q.parts.contains(&"shared::cta");
        let space = q.space();
        expect(o, 2)?;
        Ok(Op::Isspacep {
            space,
            own,
            p: self.pred_dst(&o[0])?,
            a: self.src(&o[1], Ty::U64)?,
        })
    }

    pub(super) fn mapa(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let shared = q.space() == Space::Shared;
        let ty = q.ty()?;
        expect(o, if name == "mapa" { 3 } else { 2 })?;
        let (dst, a) = (self.dst(&o[0])?, self.src(&o[1], ty)?);
        Ok(if name == "mapa" {
            Op::Mapa {
                shared,
                dst,
                a,
                rank: self.src(&o[2], Ty::U32)?,
            }
        } else {
            Op::Getctarank { shared, dst, a }
        })
    }
}

/// The halves of 128 bits: of a register, or of a vector of two.
fn halves<'a>(operand: &Operand<'a>) -> Result<[Operand<'a>; 2]> {
    match operand {
        Operand::Reg { reg, ty: Ty::B128 } => {
            Ok([*reg, *reg + 1].map(|reg| Operand::Reg { reg, ty: Ty::B64 }))
        }
        Operand::Vector(parts) if parts.len() == 2 => Ok([parts[0].clone(), parts[1].clone()]),
        other => bail!("expected a register of 128 bits or two of 64, found {other:?}"),
    }
}

fn special(name: &str) -> Option<Special> {
    let (base, axis) = match name.rsplit_once('.') {
        Some((base, "x")) => (base, 0),
        Some((base, "y")) => (base, 1),
        Some((base, "z")) => (base, 2),
        _ => (name, 0),
    };
    Some(match base {
        "%tid" => Special::Tid(axis),
        "%ntid" => Special::Ntid(axis),
        "%ctaid" => Special::Ctaid(axis),
        "%nctaid" => Special::Nctaid(axis),
        "%laneid" => Special::Laneid,
        "%warpid" => Special::Warpid,
        "%nwarpid" => Special::Nwarpid,
        "%smid" => Special::Smid,
        "%nsmid" => Special::Nsmid,
        "%gridid" => Special::Gridid,
        "%lanemask_eq" => Special::LanemaskEq,
        "%lanemask_lt" => Special::LanemaskLt,
        "%lanemask_le" => Special::LanemaskLe,
        "%lanemask_gt" => Special::LanemaskGt,
        "%lanemask_ge" => Special::LanemaskGe,
        "%clock" | "%clock64" | "%globaltimer" | "%globaltimer_lo" => Special::Clock,
        "%clock_hi" | "%globaltimer_hi" => Special::ClockHi,
        "%current_graph_exec" => Special::NoGraph,
        "%clusterid" => Special::Clusterid(axis),
        "%nclusterid" => Special::Nclusterid(axis),
        "%cluster_ctaid" => Special::ClusterCtaid(axis),
        "%cluster_nctaid" => Special::ClusterNctaid(axis),
        "%cluster_ctarank" => Special::ClusterCtarank,
        "%cluster_nctarank" => Special::ClusterNctarank,
        "%is_explicit_cluster" => Special::IsExplicitCluster,
        "%dynamic_smem_size" => Special::DynamicSmemSize,
        "%total_smem_size" => Special::TotalSmemSize,
        "%aggr_smem_size" => Special::AggrSmemSize,
        _ => return None,
    })
}
