//! `mbarrier` and fences.

use anyhow::{Context, Result, bail, ensure};

use super::super::op::*;
use super::super::parse::Operand;
use super::*;

impl<'a> Decoder<'_, 'a> {
    pub(super) fn mbarrier(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        ensure!(!q.parts.is_empty(), "expected an operation");
        let what = q.parts.remove(0);
        if what == "pending_count" {
            q.ty()?;
            expect(o, 2)?;
            return Ok(Op::MbarPending {
                dst: self.dst(&o[0])?,
                token: self.src(&o[1], Ty::B64)?,
            });
        }
        ensure!(q.take("b64"), "expected `.b64`");
        let space = q.space();
        let relaxed = q.take("relaxed");
        let (release, acquire) = (q.take("release"), q.take("acquire"));
        ensure!(
            u8::from(relaxed) + u8::from(release) + u8::from(acquire) <= 1,
            "expected one of `.relaxed`, `.release` and `.acquire`"
        );
        q.take("cta");
        q.take("cluster");
        match what {
            "check_layout" => {
                let layout = q.one_of(&[("layout::v0", 0), ("layout::v1", 1)]);
                expect(o, 2)?;
                Ok(Op::MbarLayout {
                    space,
                    addr: self.addr(&o[1])?,
                    p: self.pred_dst(&o[0])?,
                    layout: layout.context("expected a layout")?,
                })
            }
            "init" => {
                q.take("layout::v0");
                ensure!(
                    !q.take("layout::v1"),
                    "barriers with a conditional phase are not executed"
                );
                expect(o, 2)?;
                Ok(Op::MbarInit {
                    space,
                    addr: self.addr(&o[0])?,
                    count: self.src(&o[1], Ty::U32)?,
                })
            }
            "inval" => {
                expect(o, 1)?;
                Ok(Op::MbarInval {
                    space,
                    addr: self.addr(&o[0])?,
                })
            }
            "expect_tx" | "complete_tx" => {
                expect(o, 2)?;
                Ok(Op::MbarExpectTx {
                    space,
                    addr: self.addr(&o[0])?,
                    tx: self.src(&o[1], Ty::U32)?,
                    complete: what == "complete_tx",
                })
            }
            "arrive" | "arrive_drop" => {
                let expect_tx = q.take("expect_tx");
                let no_complete = q.take("noComplete");
                let (dst, rest) = match o {
                    [Operand::Address(..), ..] => (None, o),
                    [dst, rest @ ..] => (self.dst_or_sink(dst)?, rest),
                    [] => bail!("expected an address"),
                };
                ensure!(
                    (1..=2).contains(&rest.len()),
                    "expected one or two operands"
                );
                let number = rest
                    .get(1)
                    .map(|count| self.src(count, Ty::U32))
                    .transpose()?;
                Ok(Op::MbarArrive {
                    space,
                    addr: self.addr(&rest[0])?,
                    dst,
                    count: match number {
                        Some(count) if !expect_tx => count,
                        _ => Src::Imm(1),
                    },
                    expect: if expect_tx {
                        Some(number.context("expected a transaction count")?)
                    } else {
                        None
                    },
                    drop: what == "arrive_drop",
                    complete: !no_complete,
                    release: !relaxed,
                    after_copies: false,
                })
            }
            "test_wait" | "try_wait" => {
                let parity = q.take("parity");
                q.take("phase_type::primary");
                ensure!(
                    !q.take("phase_type::conditional"),
                    "barriers with a conditional phase are not executed"
                );
                let [results, rest @ ..] = o else {
                    bail!("expected a predicate, an address and a phase");
                };
                let (p, report) = match results {
                    Operand::Pair(p, report) => (&**p, Some(self.pred_dst(report)?)),
                    p => (p, None),
                };
                // What was reported is nothing in particular when nothing was.
                let rest = match rest {
                    [Operand::Reg { .. }, rest @ ..] if report.is_some() => rest,
                    rest => rest,
                };
                let limit = usize::from(what == "try_wait");
                ensure!(
                    (2..=2 + limit).contains(&rest.len()),
                    "expected a predicate, an address and a phase"
                );
                Ok(Op::MbarWait {
                    space,
                    addr: self.addr(&rest[0])?,
                    p: self.pred_dst(p)?,
                    report,
                    wait: if parity {
                        WaitFor::Parity(self.src(&rest[1], Ty::U32)?)
                    } else {
                        WaitFor::Token(self.src(&rest[1], Ty::B64)?)
                    },
                    suspends: what == "try_wait",
                    acquire: !relaxed,
                })
            }
            _ => bail!("no such operation on barriers is known"),
        }
    }

    pub(super) fn fence(&self, q: &mut Quals) -> Result<Op> {
        if q.take("mbarrier_init") {
            q.parts.clear();
            return Ok(Op::FenceMbarrierInit);
        }
        if q.take("proxy") {
            if let Some(at) = q.parts.iter().position(|it| it.starts_with("async")) {
                q.parts.remove(at);
                q.strength();
                q.hints();
                // A form for one space is executed for all. A one-directional form also names the two
                // proxies.
                q.parts.retain(|it| {
                    !it.starts_with("sync_restrict::")
                        && !it.starts_with("async::generic")
                        && !matches!(*it, "global" | "shared::cta" | "shared::cluster")
                });
                return Ok(Op::FenceProxyAsync);
            }
            ensure!(
                q.take("alias") || q.take("tensormap::generic"),
                "of the proxy fences, `async`, `alias` and `tensormap` are executed"
            );
        }
        q.take("alias");
        q.take("sc");
        q.strength();
        q.hints();
        q.take("gl");
        q.parts.retain(|it| !it.starts_with("sync_restrict::"));
        Ok(Op::Fence)
    }
}
