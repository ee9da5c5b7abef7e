//! Branches, calls, barriers of the CTA and cluster, and what lanes do together.

use anyhow::{Context, Result, bail, ensure};

use super::super::op::*;
use super::super::parse::Operand;
use super::*;

impl<'a> Decoder<'_, 'a> {
    pub(super) fn branch_table(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        ensure!(q.take("idx"), "expected `.idx`");
        q.take("uni");
        expect(o, 2)?;
        let Operand::Name(name, 0) = &o[1] else {
            bail!("expected a list of targets");
        };
        let targets = self
            .source
            .tables
            .get(name)
            .with_context(|| format!("expected `.branchtargets` called `{name}`"))?;
        Ok(Op::BraIdx {
            targets: targets.iter().map(label).collect::<Result<_>>()?,
            index: self.src(&o[0], Ty::U32)?,
        })
    }

    pub(super) fn call(&self, q: &mut Quals, o: &[Operand], all: &[Source]) -> Result<Op> {
        q.take("uni");
        let (rets, rest) = match o {
            [Operand::List(rets), rest @ ..] => (rets.as_slice(), rest),
            rest => (&[][..], rest),
        };
        let (name, args) = match rest {
            [Operand::Name(name, 0)] => (*name, &[][..]),
            [Operand::Name(name, 0), Operand::List(args)] => (*name, args.as_slice()),
            _ => bail!("expected the name of a function; indirect calls are not executed"),
        };
        let Some(Symbol::Function(function)) = self.symbol(name) else {
            bail!("the function `{name}` has no body in this module");
        };
        let callee = all
            .iter()
            .filter(|it| it.has_body)
            .nth(function as usize)
            .context("expected a function")?;
        let places = |operands: &[Operand], formal: usize| -> Result<Vec<(u32, u32)>> {
            ensure!(
                operands.len() == formal,
                "`{name}` takes or returns {formal} values, found {}",
                operands.len()
            );
            operands
                .iter()
                .map(|operand| match operand {
                    Operand::Name(name, 0) => match self.own.get(name) {
                        Some(Symbol::Frame(at)) => {
                            Ok((*at, self.sizes.get(name).copied().unwrap_or(0)))
                        }
                        _ => bail!("expected a `.param` of this function, found `{name}`"),
                    },
                    _ => bail!("expected a `.param`; arguments in registers are not executed"),
                })
                .collect()
        };
        Ok(Op::Call {
            function,
            rets: places(rets, callee.rets.len())?,
            args: places(args, callee.params.len())?,
        })
    }

    pub(super) fn bar(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        if q.take("cluster") {
            let aligned = q.take("aligned");
            if q.take("arrive") {
                let relaxed = q.take("relaxed");
                q.take("release");
                return Ok(Op::ClusterArrive {
                    aligned,
                    release: !relaxed,
                });
            }
            ensure!(q.take("wait"), "expected `.arrive` or `.wait`");
            q.take("acquire");
            return Ok(Op::ClusterWait { aligned });
        }
        if q.take("warp") {
            q.take("sync");
            expect(o, 1)?;
            return Ok(Op::BarWarp {
                members: self.src(&o[0], Ty::U32)?,
            });
        }
        q.take("cta");
        let aligned = name == "bar" || q.take("aligned");
        if q.take("red") {
            let red = q
                .one_of(&[
                    ("popc", BarRed::Popc),
                    ("and", BarRed::And),
                    ("or", BarRed::Or),
                ])
                .context("expected an operation")?;
            let ty = q.ty()?;
            ensure!(o.len() >= 3, "expected a result, a barrier and a predicate");
            let dst = match ty {
                Ty::Pred => Dst {
                    reg: self.pred_dst(&o[0])?,
                    bits: 1,
                },
                _ => self.dst(&o[0])?,
            };
            return Ok(Op::Bar {
                aligned,
                wait: true,
                id: self.src(&o[1], Ty::U32)?,
                count: match o.len() {
                    4 => Some(self.src(&o[2], Ty::U32)?),
                    _ => None,
                },
                red: Some((red, self.pred(&o[o.len() - 1])?, dst)),
            });
        }
        let wait = q.take("sync");
        ensure!(wait || q.take("arrive"), "expected `.sync` or `.arrive`");
        ensure!(!o.is_empty(), "expected a barrier");
        Ok(Op::Bar {
            aligned,
            wait,
            id: self.src(&o[0], Ty::U32)?,
            count: o.get(1).map(|count| self.src(count, Ty::U32)).transpose()?,
            red: None,
        })
    }

    pub(super) fn shuffle(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        ensure!(q.take("sync"), "expected `.sync`");
        let mode = q
            .one_of(&[
                ("up", Shuffle::Up),
                ("down", Shuffle::Down),
                ("bfly", Shuffle::Bfly),
                ("idx", Shuffle::Idx),
            ])
            .context("expected a mode")?;
        q.ty()?;
        expect(o, 5)?;
        let (d, p) = match &o[0] {
            Operand::Pair(d, p) => (&**d, Some(self.pred_dst(p)?)),
            d => (d, None),
        };
        Ok(Op::Shfl {
            mode,
            dst: self.dst(d)?,
            p,
            a: self.src(&o[1], Ty::B32)?,
            b: self.src(&o[2], Ty::B32)?,
            c: self.src(&o[3], Ty::B32)?,
            members: self.src(&o[4], Ty::B32)?,
        })
    }

    pub(super) fn vote(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        ensure!(q.take("sync"), "expected `.sync`");
        let mode = q
            .one_of(&[
                ("all", Vote::All),
                ("any", Vote::Any),
                ("uni", Vote::Uni),
                ("ballot", Vote::Ballot),
            ])
            .context("expected a mode")?;
        q.ty()?;
        expect(o, 3)?;
        let ballot = mode == Vote::Ballot;
        Ok(Op::Vote {
            mode,
            dst: ballot.then(|| self.dst(&o[0])).transpose()?,
            p: (!ballot).then(|| self.pred_dst(&o[0])).transpose()?,
            a: self.pred(&o[1])?,
            members: self.src(&o[2], Ty::B32)?,
        })
    }

    pub(super) fn matching(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        ensure!(q.take("sync"), "expected `.sync`");
        let all = q.take("all");
        ensure!(all || q.take("any"), "expected `.all` or `.any`");
        let ty = q.ty()?;
        expect(o, 3)?;
        let (d, p) = match &o[0] {
            Operand::Pair(d, p) => (&**d, Some(self.pred_dst(p)?)),
            d => (d, None),
        };
        Ok(Op::Match {
            all,
            ty,
            dst: self.dst(d)?,
            p,
            a: self.src(&o[1], ty)?,
            members: self.src(&o[2], Ty::B32)?,
        })
    }

    pub(super) fn redux(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        q.take("sync");
        let f = q
            .one_of(&[
                ("add", Binary::Add),
                ("min", Binary::Min),
                ("max", Binary::Max),
                ("and", Binary::And),
                ("or", Binary::Or),
                ("xor", Binary::Xor),
            ])
            .context("expected an operation")?;
        let ty = q.ty()?;
        expect(o, 3)?;
        ensure!(!ty.float(), "reductions of floats are not executed");
        Ok(Op::Redux {
            f,
            ty,
            dst: self.dst(&o[0])?,
            a: self.src(&o[1], ty)?,
            members: self.src(&o[2], Ty::U32)?,
        })
    }

    pub(super) fn elect(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        q.take("sync");
        expect(o, 2)?;
        let Operand::Pair(d, p) = &o[0] else {
            bail!("expected `d|p`");
        };
        Ok(Op::Elect {
            dst: self.dst_or_sink(d)?,
            p: self.pred_dst(p)?,
            members: self.src(&o[1], Ty::U32)?,
        })
    }
}

pub(super) fn label(operand: &Operand) -> Result<u32> {
    match operand {
        Operand::Label(target) => Ok(*target),
        other => bail!("expected a label, found {other:?}"),
    }
}
