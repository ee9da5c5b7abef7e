//! `wgmma`.

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};

use super::super::mma::{Accumulator, Element, Sparsity};
use super::super::op::*;
use super::super::parse::Operand;
use super::super::wgmma::{Left, Multiplication};
use super::*;

/// What the qualifiers of `wgmma.mma_async` say.
struct Form {
    n: u32,
    types: [Element; 2],
    sum: Accumulator,
    sparse: bool,
    saturate: bool,
}

impl<'a> Decoder<'_, 'a> {
    pub(super) fn wgmma(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        ensure!(!q.parts.is_empty(), "expected an operation");
        let what = q.parts.remove(0);
        for part in ["sync", "aligned"] {
            ensure!(q.take(part), "expected `.{part}`");
        }
        match what {
            "fence" => Ok(Op::WgmmaFence),
            "commit_group" => Ok(Op::WgmmaCommit),
            "wait_group" => {
                expect(o, 1)?;
                Ok(Op::WgmmaWait {
                    pending: small(&o[0])?,
                })
            }
            "mma_async" => self.multiplication(q, o),
            _ => bail!("no such operation of warpgroups is known"),
        }
    }

    fn multiplication(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let form = form(q)?;
        let [Operand::Vector(d), a, b, rest @ ..] = o else {
            bail!("expected registers of D, A and a descriptor of B");
        };
        let (sparsity, rest) = match rest {
            [metadata, selector, rest @ ..] if form.sparse => {
                let sparsity = Sparsity {
                    metadata: self.src(metadata, Ty::B32)?,
                    selector: small(selector)?,
                    ordered: true,
                };
                let most = if form.types[0].bits() == 8 { 0 } else { 1 };
                ensure!(
                    sparsity.selector <= most,
                    "expected a selector up to {most}"
                );
                (Some(sparsity), rest)
            }
            rest if !form.sparse => (None, rest),
            _ => bail!("expected metadata and a selector"),
        };
        let [add, immediates @ ..] = rest else {
            bail!("expected `scale-d`");
        };
        let elements = 2 * form.sum.per_register() as u32;
        ensure!(
            d.len() as u32 * elements == form.n,
            "expected {} registers of D, found {}",
            form.n / elements,
            d.len()
        );
        let a = match a {
            Operand::Vector(a) => Left::Registers(
                self.registers(a)?
                    .try_into()
                    .ok()
                    .context("expected four registers of A")?,
            ),
            a => Left::Descriptor(self.src(a, Ty::B64)?),
        };
        let immediates = immediates.iter().map(number).collect::<Result<Vec<_>>>()?;
        let (scales, transpose) = self::immediates(&form, &a, &immediates)?;
        Ok(Op::Wgmma(Arc::new(Multiplication {
            n: form.n,
            types: form.types,
            sum: form.sum,
            d: self.registers(d)?,
            a,
            b: self.src(b, Ty::B64)?,
            sparsity,
            add: self.pred(add)?,
            negate: scales[0] != scales[1],
            transpose,
            saturate: form.saturate,
        })))
    }

    fn registers(&self, operands: &[Operand]) -> Result<Vec<Reg>> {
        operands.iter().map(|it| Ok(self.dst(it)?.reg)).collect()
    }
}

fn number(operand: &Operand) -> Result<i128> {
    match operand {
        Operand::Int(value) => Ok(*value),
        other => bail!("expected a number, found {other:?}"),
    }
}

fn small(operand: &Operand) -> Result<u32> {
    u32::try_from(number(operand)?).context("expected a number that is not negative")
}

fn form(q: &mut Quals) -> Result<Form> {
    let sparse = q.take("sp");
    let shape = q
        .parts
        .iter()
        .position(|it| it.starts_with("m64n"))
        .context("expected a shape")?;
    let shape = q.parts.remove(shape);
    let (n, k) = shape["m64n".len()..]
        .split_once('k')
        .context("expected a shape")?;
    let sum = q
        .parts
        .first()
        .and_then(|first| Accumulator::parse(first))
        .filter(|sum| *sum != Accumulator::F64)
        .context("expected the type of D")?;
    q.parts.remove(0);
    let mut element = || {
        ensure!(!q.parts.is_empty(), "expected the types of A and B");
        let name = q.parts.remove(0);
        Element::parse(name)
            .filter(|element| ![4, 64].contains(&element.bits()))
            .with_context(|| format!("no multiplication of `.{name}` is known"))
    };
    let types = [element()?, element()?];
    let form = Form {
        n: n.parse()?,
        types,
        sum,
        sparse,
        saturate: q.take("satfinite"),
    };
    if types[0].bits() == 1 {
        ensure!(q.take("and") && q.take("popc"), "expected `.and.popc`");
    }
    let depth = 256 / types[0].bits() * if sparse { 2 } else { 1 };
    ensure!(
        k.parse::<u32>()? == depth,
        "expected a shape with k{depth}, found `.{shape}`"
    );
    ensure!(
        (8..=256).contains(&form.n) && form.n.is_multiple_of(8),
        "no shape `.{shape}` is known"
    );
    Ok(form)
}

/// The factors of A and B, and whether they are transposed.
fn immediates(form: &Form, a: &Left, immediates: &[i128]) -> Result<([i128; 2], [bool; 2])> {
    let floats = form.sum != Accumulator::S32;
    let transposes = form.types[0].bits() == 16;
    let (scales, transpose) = match (immediates, a) {
        ([], _) if !floats => return Ok(([1; 2], [false; 2])),
        ([a, b], _) if floats && !transposes => ([*a, *b], [0; 2]),
        ([a, b, trans_b], Left::Registers(_)) if transposes => ([*a, *b], [0, *trans_b]),
        ([a, b, trans_a, trans_b], Left::Descriptor(_)) if transposes => {
            ([*a, *b], [*trans_a, *trans_b])
        }
        _ => bail!("expected the immediates of these types, found {immediates:?}"),
    };
    ensure!(
        scales.iter().all(|it| it.abs() == 1),
        "expected factors of 1 or -1, found {scales:?}"
    );
    ensure!(
        transpose.iter().all(|it| (0..=1).contains(it)),
        "expected 0 or 1, found {transpose:?}"
    );
    Ok((scales, transpose.map(|it| it == 1)))
}
