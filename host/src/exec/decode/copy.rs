//! Asynchronous copies, and tensor maps.

use anyhow::{Context, Result, bail, ensure};

use super::super::op::*;
use super::super::parse::Operand;
use super::*;

impl<'a> Decoder<'_, 'a> {
    pub(super) fn cp(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let reduce = q.take("reduce");
        ensure!(q.take("async"), "expected `.async`");
        if !q.take("bulk") {
            return self.cp_async(q, o);
        }
        if q.take("commit_group") {
            return Ok(Op::BulkCommit);
        }
        if q.take("wait_group") {
            let read = q.take("read");
            q.take("sync_restrict::proxy::async");
            expect(o, 1)?;
            let Operand::Int(pending) = o[0] else {
                bail!("expected an immediate count");
            };
            return Ok(Op::BulkWait {
                pending: pending as u32,
                read,
            });
        }
        if q.take("prefetch") {
            q.parts.clear();
            return Ok(Op::Nop);
        }
        if q.take("tensor") {
            return self.tensor_copy(q, o, reduce);
        }
        self.bulk_copy(q, o, reduce)
    }

    pub(super) fn bulk_copy(&self, q: &mut Quals, o: &[Operand], reduce: bool) -> Result<Op> {
        let group = q.take("bulk_group");
        ensure!(
            group || q.take("mbarrier::complete_tx::bytes"),
            "expected `.mbarrier::complete_tx::bytes` or `.bulk_group`"
        );
        let multicast = q.take("multicast::cluster");
        let masked = q.take("cp_mask");
        let ignoring = q.take("ignore_oob");
        let hint = q.take("L2::cache_hint");
        // A relaxed copy is as a weak one here, in accesses of 16 bytes.
        q.strength();
        q.hints();
        if !reduce {
            q.take("b128");
        }
        let space_at = |q: &mut Quals| match q.parts.first().copied() {
            Some(part @ ("global" | "shared::cta" | "shared::cluster")) => {
                q.parts.remove(0);
                Ok(if part == "global" {
                    Space::Global
                } else {
                    Space::Shared
                })
            }
            _ => bail!("expected a state space"),
        };
        let (dst_space, src_space) = (space_at(q)?, space_at(q)?);
        let reduce = if reduce {
            q.take("noftz");
            let f = atom_op(q).context("expected an operation")?;
            let ty = q.ty()?;
            check_atom(f, ty)?;
            Some((f, ty))
        } else {
            None
        };
        let mut rest = o.iter();
        let mut next = || rest.next().context("expected another operand");
        let (dst, src) = (self.addr(next()?)?, self.addr(next()?)?);
        let size = self.src(next()?, Ty::U32)?;
        let ignored = match ignoring {
            true => Some([self.src(next()?, Ty::U32)?, self.src(next()?, Ty::U32)?]),
            false => None,
        };
        let completion = if group {
            Completion::Group
        } else {
            Completion::Mbarrier(self.addr(next()?)?)
        };
        let multicast = match multicast {
            true => Some(self.src(next()?, Ty::U16)?),
            false => None,
        };
        if hint {
            next()?;
        }
        let byte_mask = match masked {
            true => Some(self.src(next()?, Ty::U16)?),
            false => None,
        };
        ensure!(rest.next().is_none(), "expected fewer operands");
        Ok(Op::BulkCopy {
            dst_space,
            src_space,
            dst,
            src,
            size,
            completion,
            multicast,
            byte_mask,
            ignored,
            reduce,
        })
    }

    /// A tensor map and the coordinates of a tile: `[map, {x, y}]`.
    pub(super) fn tile_of_map(&self, operand: &Operand) -> Result<(Addr, Vec<Src>)> {
        let Operand::Address(parts, offset) = operand else {
            bail!("expected a tensor map and coordinates in `[]`, found {operand:?}");
        };
        let [map, Operand::Vector(coordinates)] = parts.as_slice() else {
            bail!("expected a tensor map and coordinates in `[]`");
        };
        let corner = coordinates.iter().map(|it| self.src(it, Ty::S32));
        Ok((
            Addr {
                base: self.src(map, Ty::U64)?,
                offset: *offset,
            },
            corner.collect::<Result<_>>()?,
        ))
    }

    pub(super) fn tensor_copy(&self, q: &mut Quals, o: &[Operand], reduce: bool) -> Result<Op> {
        let dims = ["1d", "2d", "3d", "4d", "5d"];
        let dims = dims.iter().position(|dims| q.take(dims));
        let dims = dims.context("expected `.1d` to `.5d`")? + 1;
        let store = q.take("bulk_group");
        ensure!(
            store || q.take("mbarrier::complete_tx::bytes"),
            "expected `.mbarrier::complete_tx::bytes` or `.bulk_group`"
        );
        let reduce = match reduce {
            true => Some(atom_op(q).context("expected an operation")?),
            false => None,
        };
        let with_offsets = !store && q.take("im2col");
        let of_columns = with_offsets || store && q.take("im2col_no_offs");
        if !of_columns {
            q.take("tile");
        }
        q.take("global");
        ensure!(
            q.take("shared::cta") || !store && q.take("shared::cluster"),
            "expected `.shared::cta` or `.shared::cluster`"
        );
        let multicast = !store && q.take("multicast::cluster");
        let hint = q.take("L2::cache_hint");
        let mut rest = o.iter();
        let mut next = || rest.next().context("expected another operand");
        let loaded = match store {
            true => None,
            false => Some(self.addr(next()?)?),
        };
        let (map, corner) = self.tile_of_map(next()?)?;
        ensure!(
            corner.len() == dims,
            "expected {dims} coordinates, found {}",
            corner.len()
        );
        let (shared, completion) = match loaded {
            Some(shared) => (shared, Completion::Mbarrier(self.addr(next()?)?)),
            None => (self.addr(next()?)?, Completion::Group),
        };
        let columns = match (of_columns, with_offsets) {
            (_, true) => Some(self.offsets(next()?)?),
            (of_columns, false) => of_columns.then(Vec::new),
        };
        if let Some(columns) = columns.as_ref().filter(|_| with_offsets) {
            ensure!(
                columns.len() + 2 == dims,
                "expected an offset for each dimension of an image, found {} of {dims} dimensions",
                columns.len()
            );
        }
        let multicast = match multicast {
            true => Some(self.src(next()?, Ty::U16)?),
            false => None,
        };
        if hint {
            next()?;
        }
        ensure!(rest.next().is_none(), "expected fewer operands");
        Ok(Op::TensorCopy {
            load: !store,
            map,
            corner,
            columns,
            shared,
            completion,
            multicast,
            reduce,
        })
    }

    /// The offsets of a column: `{x, y}`.
    fn offsets(&self, operand: &Operand) -> Result<Vec<Src>> {
        let Operand::Vector(offsets) = operand else {
            bail!("expected im2col offsets in braces, found {operand:?}");
        };
        offsets.iter().map(|it| self.src(it, Ty::U16)).collect()
    }

    pub(super) fn tensor_map(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        if q.take("cp_fenceproxy") {
            for part in [
                "global",
                "shared::cta",
                "tensormap::generic",
                "sync",
                "aligned",
            ] {
                ensure!(q.take(part), "expected `.{part}`");
            }
            q.strength();
            q.hints();
            expect(o, 3)?;
            ensure!(o[2] == Operand::Int(128), "expected a size of 128 bytes");
            return Ok(Op::TensormapCopy {
                dst: self.addr(&o[0])?,
                src: self.addr(&o[1])?,
            });
        }
        ensure!(q.take("replace"), "expected `.replace` or `.cp_fenceproxy`");
        ensure!(
            q.take("tile") && q.take("b1024"),
            "expected `.tile` and `.b1024`"
        );
        let space = q.space();
        q.ty()?;
        let value = o.len().checked_sub(1).context("expected a value")?;
        let dimension = match (value, &o.get(1)) {
            (2, Some(Operand::Int(dimension @ 0..5))) => *dimension as u32,
            (1, _) => 0,
            _ => bail!("expected a dimension from 0 to 4"),
        };
        let field = q.one_of(&[
            ("global_address", Field::Address),
            ("rank", Field::Rank),
            ("box_dim", Field::Tile(dimension)),
            ("global_dim", Field::Dim(dimension)),
            ("global_stride", Field::Stride(dimension.min(3))),
            ("element_stride", Field::Step(dimension)),
            ("elemtype", Field::DataType),
            ("interleave_layout", Field::Interleave),
            ("swizzle_mode", Field::Swizzle),
            ("fill_mode", Field::OutOfBounds),
        ]);
        Ok(Op::TensormapReplace {
            space,
            map: self.addr(&o[0])?,
            field: field.context("expected a field")?,
            value: self.src(&o[value], Ty::U64)?,
        })
    }

    pub(super) fn cp_async(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        if q.take("commit_group") {
            return Ok(Op::CpAsyncCommit);
        }
        if q.take("wait_all") {
            return Ok(Op::CpAsyncWait { pending: None });
        }
        if q.take("wait_group") {
            expect(o, 1)?;
            let Operand::Int(pending) = o[0] else {
                bail!("expected an immediate count");
            };
            return Ok(Op::CpAsyncWait {
                pending: Some(pending as u32),
            });
        }
        if q.take("mbarrier") {
            ensure!(q.take("arrive"), "expected `.arrive`");
            let counted = q.take("noinc");
            q.take("shared");
            q.take("shared::cta");
            q.take("b64");
            expect(o, 1)?;
            // The copies may be complete before the instruction is. Without `.noinc` it then counts an
            // arrival up and down again.
            if !counted {
                return Ok(Op::CpAsyncWait { pending: None });
            }
            return Ok(Op::MbarArrive {
                space: Space::Shared,
                addr: self.addr(&o[0])?,
                dst: None,
                count: Src::Imm(1),
                expect: None,
                drop: false,
                complete: true,
                release: true,
                after_copies: true,
            });
        }
        let hint = q.take("L2::cache_hint");
        q.hints();
        q.take("shared");
        q.take("shared::cta");
        q.take("global");
        let count = o.len() - usize::from(hint);
        ensure!(
            (3..=4).contains(&count),
            "expected a destination, a source and a size"
        );
        let Operand::Int(size) = o[2] else {
            bail!("expected an immediate size");
        };
        let (mut src_size, mut ignore) = (None, None);
        match o.get(3) {
            Some(Operand::Pred(p)) => ignore = Some(*p),
            Some(size) if count == 4 => src_size = Some(self.src(size, Ty::U32)?),
            _ => {}
        }
        ensure!(
            matches!(size, 4 | 8 | 16),
            "expected a size of 4, 8 or 16 bytes, found {size}"
        );
        Ok(Op::CpAsync {
            dst: self.addr(&o[0])?,
            src: self.addr(&o[1])?,
            size: size as u32,
            src_size,
            ignore,
        })
    }
}
