//! What only caches notice; and `discard`, after which memory holds no value.

use anyhow::{Context, Result, ensure};

use super::super::memory::NOTHING;
use super::super::op::*;
use super::super::parse::Operand;
use super::*;

/// The one policy that there is here, since none changes a result: the bits of CUDA's normal access property.
const POLICY: u64 = 0x10f0_0000_0000_0000;

/// Bytes of the line that `discard` takes.
const LINE: i128 = 128;

impl Decoder<'_, '_> {
    pub(super) fn policy(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let kinds = [("fractional", 1..3), ("range", 4..5), ("cvt", 2..3)];
        let kind = kinds.into_iter().find(|(name, _)| q.take(name));
        let (_, operands) = kind.context("expected `.fractional`, `.range` or `.cvt`")?;
        ensure!(
            operands.contains(&o.len()),
            "expected {operands:?} operands, found {}",
            o.len()
        );
        ensure!(q.ty()?.bits() == 64, "expected a policy of 64 bits");
        q.take("global");
        q.take("L2");
        q.hints();
        Ok(Op::Mov {
            dst: self.dst(&o[0])?,
            a: Src::Imm(POLICY),
        })
    }

    /// A weak write of no value in particular.
    pub(super) fn discard(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let space = q.space();
        ensure!(q.take("L2"), "expected `.L2`");
        expect(o, 2)?;
        ensure!(
            matches!(o[1], Operand::Int(LINE)),
            "expected {LINE} bytes, found {:?}",
            o[1]
        );
        Ok(Op::St {
            space,
            ty: Ty::B64,
            srcs: vec![Src::Imm(u64::from_le_bytes([NOTHING; 8])); LINE as usize / 8],
            addr: self.addr(&o[0])?,
            strength: Strength::Weak,
        })
    }
}
