//! Asynchronous copies: what a thread issues.

use std::ops::Range;
use std::rc::Rc;

use super::check::{AtLane, Check, Fault, Step};
use super::clock::Clock;
use super::groups::commit;
use super::machine::Machine;
use super::memory::Access;
use super::op::*;
use super::state::*;
use super::step::{Flow, Knowledge};
use super::tensor::{CHUNK, Chunk, DataType, Layout, MAP_BYTES};

/// A copy that is about to be issued.
struct Request {
    route: Route,
    /// The bytes of it that are moved; its barrier counts `size`.
    moved: Range<u32>,
    size: u32,
    mbarrier: Option<(u32, u32)>,
    reduce: Option<(AtomOp, Ty)>,
    byte_mask: u16,
    /// Whether the copy engine does it, which has a proxy of its own.
    own_proxy: bool,
    /// The least that is moved at once.
    grain: u32,
    line: u32,
}

impl Request {
    /// A copy of the copy engine.
    fn bulk(route: Route, size: u32, mbarrier: Option<(u32, u32)>, line: u32) -> Self {
        Self {
            route,
            moved: 0..size,
            size,
            mbarrier,
            reduce: None,
            byte_mask: u16::MAX,
            own_proxy: true,
            grain: 16,
            line,
        }
    }

    /// A copy that a thread makes in its own proxy, whole.
    fn small(source: Source, target: Place, size: u32, line: u32) -> Self {
        Self {
            own_proxy: false,
            grain: size,
            ..Self::bulk(Route::Bytes { source, target }, size, None, line)
        }
    }
}

impl<'a> Machine<'a> {
    /// Executes an instruction on copies.
    pub fn copy(
        &mut self,
        inst: &'a Inst,
        warp: &mut Warp,
        current: usize,
        active: u32,
    ) -> Step<Flow> {
        match &inst.op {
            Op::BulkCopy { .. } => {
                for lane in lanes(active) {
                    self.bulk_copy(inst, warp, current, lane).at(lane)?;
                }
            }
            Op::TensorCopy { .. } => {
                for lane in lanes(active) {
                    self.tensor_copy(inst, warp, current, lane).at(lane)?;
                }
            }
            Op::CpAsync { .. } => {
                for lane in lanes(active) {
                    self.cp_async(inst, warp, current, lane).at(lane)?;
                }
            }
            Op::StAsync { .. } => {
                for lane in lanes(active) {
                    self.st_async(inst, warp, current, lane).at(lane)?;
                }
            }
            Op::BulkCommit => commit(&mut warp.bulk_groups, active),
            Op::CpAsyncCommit => commit(&mut warp.async_groups, active),
            Op::BulkWait { pending, read } => {
                if !self.groups_done(warp, active, *pending, true) {
                    warp.splits[current].wait = Wait::Bulk { pending: *pending };
                    return Ok(Flow::Wait);
                }
                self.learn_groups(warp, active, *pending, true, *read);
            }
            Op::CpAsyncWait { pending }
                if !self.async_copies_done(warp, current, active, *pending) =>
            {
                return Ok(Flow::Wait);
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    fn bulk_copy(
        &mut self,
        inst: &'a Inst,
        warp: &mut Warp,
        current: usize,
        lane: u32,
    ) -> Step<()> {
        let Op::BulkCopy {
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
        } = &inst.op
        else {
            return Ok(());
        };
        let value = |machine: &Self, src: Src| machine.operand(warp, current, src)[lane as usize];
        let address = |machine: &Self, addr: &Addr| {
            value(machine, addr.base).wrapping_add_signed(addr.offset)
        };
        let size = value(self, *size) as u32;
        if !size.is_multiple_of(16) {
            return Err(Fault::new(
                Check::Size,
                format!("expected a size that is a multiple of 16 bytes, found {size}"),
            ));
        }
        let [left, right] = ignored.map_or([0; 2], |it| it.map(|it| value(self, it) as u32));
        if left.max(right) > 15 || left + right > size {
            return Err(Fault::new(
                Check::Size,
                format!(
                    "expected at most 15 bytes to be ignored at each end, found {left} and {right}"
                ),
            ));
        }
        let from = address(self, src);
        self.resolve(*src_space, from, 0, 16)?;
        let first = from.wrapping_add(left.into());
        let source = self.resolve(*src_space, first, size - left - right, 1)?;
        let target = self.resolve(*dst_space, address(self, dst), size, 16)?;
        self.writable(target)?;
        let byte_mask = byte_mask.map_or(u16::MAX, |it| value(self, it) as u16);
        let mbarrier = match completion {
            Completion::Group => None,
            Completion::Mbarrier(addr) => Some(self.mbarrier_of_copy(address(self, addr))?),
        };
        let ranks = multicast.map(|it| value(self, it) as u32);
        let request = |target: Place, mbarrier| Request {
            moved: left..size - right,
            reduce: *reduce,
            byte_mask,
            ..Request::bulk(
                Route::Bytes {
                    source: Source::Memory(source.minus(left)),
                    target,
                },
                size,
                mbarrier,
                inst.line,
            )
        };
        match (ranks, target, mbarrier) {
            (Some(ranks), Place::Shared { offset, .. }, Some((_, bar))) => {
                for rank in lanes(self.multicast_ranks(ranks)?) {
                    let target = Place::Shared { rank, offset };
                    self.issue(warp, lane, request(target, Some((rank, bar))))?;
                }
            }
            (_, Place::Shared { rank, .. }, Some((other, _))) if rank != other => {
                return Err(foreign_mbarrier(rank, other));
            }
            _ => self.issue_for(warp, lane, request(target, mbarrier))?,
        }
        Ok(())
    }

    fn tensor_copy(
        &mut self,
        inst: &'a Inst,
        warp: &mut Warp,
        current: usize,
        lane: u32,
    ) -> Step<()> {
        let Op::TensorCopy {
            load,
            map,
            corner,
            columns,
            shared,
            completion,
            multicast,
            reduce,
        } = &inst.op
        else {
            return Ok(());
        };
        let value = |machine: &Self, src: Src| machine.operand(warp, current, src)[lane as usize];
        let address = |machine: &Self, addr: &Addr| {
            value(machine, addr.base).wrapping_add_signed(addr.offset)
        };
        let shape = (corner.len() as u32, columns.is_some());
        let layout = self.tensor(warp, lane, address(self, map), shape, inst.line)?;
        let reduce = match reduce {
            Some(f) => Some((*f, type_of_reduction(*f, layout.tensor.data_type)?)),
            None => None,
        };
        let size = layout.tile_bytes();
        let corner = Vec::from_iter(corner.iter().map(|it| value(self, *it) as i32));
        let fault = |expected| Fault::new(Check::TensorMap, format!("expected {expected}"));
        layout.check_corner(&corner).map_err(fault)?;
        let offsets = columns.iter().flatten();
        let offsets = offsets.map(|it| value(self, *it) as u16).collect();
        let place = self.resolve(Space::Shared, address(self, shared), size, 128)?;
        let Place::Shared { rank, offset } = place else {
            return Ok(());
        };
        let tile = Rc::new(Tile {
            layout,
            corner,
            offsets,
            shared: offset,
        });
        let request = |rank, mbarrier| {
            let (tile, load) = (Rc::clone(&tile), *load);
            Request {
                reduce,
                ..Request::bulk(Route::Tile { tile, rank, load }, size, mbarrier, inst.line)
            }
        };
        let Completion::Mbarrier(addr) = completion else {
            return self.issue_for(warp, lane, request(rank, None));
        };
        let (other, bar) = self.mbarrier_of_copy(address(self, addr))?;
        if let Some(ranks) = multicast {
            let ranks = value(self, *ranks) as u32;
            for rank in lanes(self.multicast_ranks(ranks)?) {
                self.issue(warp, lane, request(rank, Some((rank, bar))))?;
            }
            return Ok(());
        }
        if rank != other {
            return Err(foreign_mbarrier(rank, other));
        }
        self.issue_for(warp, lane, request(rank, Some((rank, bar))))
    }

    /// The tensor of the map at a generic address, and how its tiles lie.
    fn tensor(
        &mut self,
        warp: &Warp,
        lane: u32,
        address: u64,
        (rank, of_columns): (u32, bool),
        line: u32,
    ) -> Step<Layout> {
        let place = self.resolve(Space::Generic, address, MAP_BYTES, 64)?;
        self.note(warp, lane, place, MAP_BYTES, line, (false, false, false))?;
        let map = self.bytes(place, MAP_BYTES);
        Layout::decode(map, rank, of_columns)
            .map_err(|expected| Fault::new(Check::TensorMap, format!("expected {expected}")))
    }

    fn mbarrier_of_copy(&self, address: u64) -> Step<(u32, u32)> {
        match self.resolve(Space::Shared, address, 8, 8)? {
            Place::Shared { rank, offset } => Ok((rank, offset)),
            _ => Err(Fault::new(
                Check::BarrierState,
                "expected an mbarrier in shared memory, found an address elsewhere",
            )),
        }
    }

    /// The mask of a multicast, if the cluster has all its CTAs.
    fn multicast_ranks(&self, ranks: u32) -> Step<u32> {
        let size = self.cluster_size();
        if u64::from(ranks) >> size != 0 {
            return Err(Fault::new(
                Check::OutOfBounds,
                format!("expected a mask of CTAs below {size}, found {ranks:#x}"),
            ));
        }
        Ok(ranks)
    }

    /// Issues a copy that its thread waits for by group unless it has a barrier.
    fn issue_for(&mut self, warp: &mut Warp, lane: u32, request: Request) -> Step<()> {
        let in_group = request.mbarrier.is_none();
        let issued = self.issue(warp, lane, request)?;
        if in_group {
            warp.bulk_groups.entry(lane).or_default().open.push(issued);
        }
        Ok(())
    }

    fn cp_async(&mut self, inst: &'a Inst, warp: &mut Warp, current: usize, lane: u32) -> Step<()> {
        let Op::CpAsync {
            dst,
            src,
            size,
            src_size,
            ignore,
        } = &inst.op
        else {
            return Ok(());
        };
        let value = |machine: &Self, src: Src| machine.operand(warp, current, src)[lane as usize];
        let address = |machine: &Self, addr: &Addr| {
            value(machine, addr.base).wrapping_add_signed(addr.offset)
        };
        let ignored = ignore.is_some_and(|p| self.predicate(warp, current, p) >> lane & 1 == 1);
        let copied = match src_size {
            _ if ignored => 0,
            Some(it) => value(self, *it) as u32,
            None => *size,
        };
        if copied > *size {
            return Err(Fault::new(
                Check::Size,
                format!("expected at most {size} bytes of the source, found {copied}"),
            ));
        }
        let source = self.resolve(Space::Global, address(self, src), copied, *size)?;
        let target = self.resolve(Space::Shared, address(self, dst), *size, *size)?;
        let parts = [
            (Source::Memory(source), target, copied),
            (
                Source::Data(vec![0; (size - copied) as usize]),
                target.plus(copied),
                size - copied,
            ),
        ];
        for (source, target, size) in parts {
            if size == 0 {
                continue;
            }
            let request = Request::small(source, target, size, inst.line);
            let issued = self.issue(warp, lane, request)?;
            warp.async_groups.entry(lane).or_default().open.push(issued);
        }
        Ok(())
    }

    fn st_async(&mut self, inst: &'a Inst, warp: &mut Warp, current: usize, lane: u32) -> Step<()> {
        let Op::StAsync {
            ty,
            srcs,
            addr,
            mbar,
            reduce,
        } = &inst.op
        else {
            return Ok(());
        };
        let value = |machine: &Self, src: Src| machine.operand(warp, current, src)[lane as usize];
        let address = |machine: &Self, addr: &Addr| {
            value(machine, addr.base).wrapping_add_signed(addr.offset)
        };
        let element = ty.bytes();
        let size = element * srcs.len() as u32;
        let target = self.resolve(Space::Shared, address(self, addr), size, size)?;
        let barrier = self.resolve(Space::Shared, address(self, mbar), 8, 8)?;
        let (
            Place::Shared { rank, .. },
            Place::Shared {
                rank: other,
                offset,
            },
        ) = (target, barrier)
        else {
            return Ok(());
        };
        if rank != other {
            return Err(foreign_mbarrier(rank, other));
        }
        let data = srcs
            .iter()
            .flat_map(|src| value(self, *src).to_le_bytes()[..element as usize].to_vec());
        let request = Request {
            mbarrier: Some((rank, offset)),
            reduce: reduce.map(|f| (f, *ty)),
            ..Request::small(Source::Data(data.collect()), target, size, inst.line)
        };
        self.issue(warp, lane, request)?;
        Ok(())
    }

    /// Notes what a copy will read and write, and queues it.
    fn issue(&mut self, warp: &Warp, lane: u32, request: Request) -> Step<Issued> {
        let number = self.number(warp, lane);
        let mut clock = (*warp.threads[lane as usize].snapshot(number)).clone();
        if !request.own_proxy {
            clock.fenced = clock.happened.clone();
        }
        let cluster = &mut self.clusters[self.at.0];
        let id = cluster.issued;
        cluster.issued += 1;
        let slots = u64::from(AGENTS / 2);
        let agent = self.agents + 2 * (id % slots) as u32;
        let tick = (id / slots) as u32 + 1;
        self.note_route(&clock, &request, (agent, tick))?;
        let pieces = self.cut(request.size, request.grain);
        let empty = pieces.is_empty();
        let copy = Copy {
            id,
            route: request.route,
            pieces,
            moved: request.moved,
            mbarrier: request.mbarrier,
            reduce: request.reduce,
            byte_mask: request.byte_mask,
            agent,
            tick,
            line: request.line,
        };
        if !empty {
            self.clusters[self.at.0].copies.push(copy);
        }
        self.stats.copies += 1;
        self.progress += 1;
        Ok(Issued { id, agent, tick })
    }

    /// Notes all reads of a copy, then all its writes.
    fn note_route(
        &mut self,
        clock: &Clock,
        request: &Request,
        (agent, tick): (u32, u32),
    ) -> Step<()> {
        match &request.route {
            Route::Bytes { source, target } => {
                let (at, len) = (request.moved.start, request.moved.len() as u32);
                if let Source::Memory(place) = source {
                    self.note_copy(clock, (place.plus(at), len), request, (agent, tick), false)?;
                }
                self.note_copy(
                    clock,
                    (target.plus(at), len),
                    request,
                    (agent + 1, tick),
                    true,
                )
            }
            Route::Tile { tile, rank, load } => {
                for write in [false, true] {
                    let agent = agent + u32::from(write);
                    for at in (0..request.size).step_by(CHUNK as usize) {
                        let chunk = tile.chunk(at);
                        let shared = write == *load;
                        let Some(place) = self.side(&chunk, *rank, shared, *load)? else {
                            continue;
                        };
                        self.note_copy(clock, place, request, (agent, tick), write)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// The bytes of a chunk in shared or global memory that a tile copy touches; a load fills all of it
    /// in shared memory.
    pub fn side(
        &self,
        chunk: &Chunk,
        rank: u32,
        shared: bool,
        load: bool,
    ) -> Step<Option<(Place, u32)>> {
        let Range { start, end } = chunk.valid;
        let len = end - start;
        if shared {
            let place = Place::Shared {
                rank,
                offset: chunk.shared,
            };
            return Ok(match load {
                true => Some((place, CHUNK)),
                false => (len > 0).then(|| (place.plus(start), len)),
            });
        }
        if len == 0 {
            return Ok(None);
        }
        let place = self.resolve(Space::Global, chunk.global, len, 1)?;
        if !load {
            self.writable(place)?;
        }
        Ok(Some((place, len)))
    }

    fn note_copy(
        &mut self,
        clock: &Clock,
        (place, len): (Place, u32),
        request: &Request,
        (agent, tick): (u32, u32),
        write: bool,
    ) -> Step<()> {
        let first = self.clusters[self.at.0].number * self.domain();
        let order = Knowledge {
            me: first + agent,
            fenced: tick,
            first,
            domain: self.domain(),
            agents: self.agents,
            threads: self.threads_per_cta(),
            clock,
            across: self.strong_global,
        };
        let access = Access {
            who: first + agent,
            tick,
            line: request.line,
            write,
            strong: write && request.reduce.is_some(),
            asynchronous: true,
            same: false,
        };
        self.touch(place, len, access, &order)
    }
}

fn foreign_mbarrier(rank: u32, other: u32) -> Box<Fault> {
    Fault::new(
        Check::BarrierState,
        format!(
            "expected the mbarrier in the shared memory of the destination, which is that of rank \
             {rank}, found it in that of rank {other}"
        ),
    )
}

/// The type of the elements that a reduction of a tensor works on.
fn type_of_reduction(f: AtomOp, elements: DataType) -> Step<Ty> {
    let ty = match elements {
        DataType::U32 => Some(Ty::U32),
        DataType::I32 => Some(Ty::S32),
        DataType::U64 => Some(Ty::U64),
        DataType::I64 => Some(Ty::S64),
        DataType::F16 => Some(Ty::F16),
        DataType::Bf16 => Some(Ty::Bf16),
        DataType::F32 => Some(Ty::F32),
        DataType::F64 => Some(Ty::F64),
        _ => None,
    };
    ty.filter(|ty| reduces(f, *ty)).ok_or_else(|| {
        Fault::new(
            Check::TensorMap,
            format!(
                "expected elements that `{f:?}` reduces, found {:?}",
                elements
            ),
        )
    })
}

/// The lowest bytes of a value.
pub fn number_of(bytes: &[u8]) -> u64 {
    let mut buffer = [0; 8];
    buffer[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(buffer)
}
