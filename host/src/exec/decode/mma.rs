//! `mma`, `mma.sp` and `movmatrix`.

use anyhow::{Context, Result, bail, ensure};

use super::super::mma::{Accumulator, BitProduct, Element, Mma, Quads, Sparsity};
use super::super::op::*;
use super::super::parse::Operand;
use super::*;

impl<'a> Decoder<'_, 'a> {
    pub(super) fn mma(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let ordered = q.take("sp::ordered_metadata");
        let sparse = q.take("sp") || ordered;
        let kind = q.parts.iter().find(|part| part.starts_with("kind::"));
        ensure!(kind.is_none(), "it needs sm_120");
        for part in ["sync", "aligned"] {
            ensure!(q.take(part), "expected `.{part}`");
        }
        let (m, k) = shape(q)?;
        let layouts = q
            .parts
            .iter()
            .copied()
            .filter(|part| matches!(*part, "row" | "col"));
        let layouts = Vec::from_iter(layouts);
        q.parts.retain(|part| !matches!(*part, "row" | "col"));
        ensure!(layouts.len() == 2, "expected the layouts of A and B");
        // The only rounding that is executed, and that there is if none is named.
        q.take("rn");
        let saturates = q.take("satfinite");
        let bit_product = q.one_of(&[("and", BitProduct::And), ("xor", BitProduct::Xor)]);
        ensure!(
            bit_product.is_some() == q.take("popc"),
            "expected `.and.popc` or `.xor.popc`"
        );
        let [d_type, a_type, b_type, c_type] = q.parts[..] else {
            bail!("expected the types of D, A, B and C");
        };
        q.parts.clear();
        let element = |text| {
            Element::parse(text).with_context(|| format!("no elements of `.{text}` are executed"))
        };
        let accumulator = |text| {
            Accumulator::parse(text).with_context(|| format!("no sums of `.{text}` are executed"))
        };
        expect(o, if sparse { 6 } else { 4 })?;
        let sources = |operand: &Operand, ty| -> Result<Vec<Src>> {
            registers(operand)
                .iter()
                .map(|it| self.src(it, ty))
                .collect()
        };
        let (a_type, b_type) = (element(a_type)?, element(b_type)?);
        let (c_type, d_type) = (accumulator(c_type)?, accumulator(d_type)?);
        let double = a_type == Element::F64;
        ensure!(
            double == (d_type == Accumulator::F64) && double == (c_type == Accumulator::F64),
            "double precision has no other types with it"
        );
        let quads = ((m, k) == (8, 4) && !double).then(|| Quads {
            a_by_rows: layouts[0] == "row",
            b_by_rows: layouts[1] == "row",
        });
        ensure!(
            quads.is_some() || layouts == ["row", "col"],
            "expected `.row.col`"
        );
        // Then it is four products.
        let copies = if quads.is_some() { 4 } else { 1 };
        let ty = if double { Ty::B64 } else { Ty::B32 };
        let mma = Mma {
            m,
            k,
            a_type,
            b_type,
            c_type,
            d_type,
            bit_product,
            saturates,
            sparsity: if sparse {
                Some(self.sparsity(o, ordered)?)
            } else {
                None
            },
            quads,
            d: registers(&o[0])
                .iter()
                .map(|it| self.dst(it))
                .collect::<Result<_>>()?,
            a: sources(&o[1], ty)?,
            b: sources(&o[2], ty)?,
            c: sources(&o[3], ty)?,
        };
        let fit = |count: usize, element: Element, rows: usize, columns: usize| {
            let bits = element.bits() as usize;
            count * 32 * bits.max(32) == copies * rows * columns * bits
        };
        let kept = if sparse { k / 2 } else { k };
        let sums = |count: usize, of: Accumulator| count * 32 * of.per_register() == copies * m * 8;
        ensure!(
            fit(mma.a.len(), a_type, m, kept)
                && fit(mma.b.len(), b_type, 8, k)
                && sums(mma.c.len(), c_type)
                && sums(mma.d.len(), d_type),
            "expected as many registers as the matrices fill"
        );
        Ok(Op::Mma(Box::new(mma)))
    }

    fn sparsity(&self, o: &[Operand], ordered: bool) -> Result<Sparsity> {
        let Operand::Int(selector @ 0..=3) = o[5] else {
            bail!("expected a selector from 0 to 3, found {:?}", o[5]);
        };
        Ok(Sparsity {
            metadata: self.src(&o[4], Ty::B32)?,
            selector: selector as u32,
            ordered,
        })
    }

    pub(super) fn movmatrix(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        for part in ["sync", "aligned", "m8n8", "trans", "b16"] {
            ensure!(q.take(part), "expected `.{part}`");
        }
        expect(o, 2)?;
        Ok(Op::MovMatrix {
            dst: self.dst(&o[0])?,
            a: self.src(&o[1], Ty::B32)?,
        })
    }
}

/// The rows of A and its columns; B has eight.
fn shape(q: &mut Quals) -> Result<(usize, usize)> {
    let sizes = |part: &&str| {
        let (m, k) = part.strip_prefix('m')?.split_once("n8k")?;
        Some((m.parse().ok()?, k.parse().ok()?))
    };
    let shape = q.parts.iter().find_map(sizes);
    let (m, k): (usize, usize) = shape.context("expected a shape")?;
    ensure!(m == 8 || m == 16, "expected 8 or 16 rows");
    q.take(&format!("m{m}n8k{k}"));
    Ok((m, k))
}

/// The registers of a fragment.
fn registers<'o, 'p>(operand: &'o Operand<'p>) -> &'o [Operand<'p>] {
    match operand {
        Operand::Vector(registers) => registers,
        register => std::slice::from_ref(register),
    }
}
