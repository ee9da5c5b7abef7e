//! Asynchronous copies: issued by a thread, moved later and in pieces.

use super::alu;
use super::barrier::add_transactions;
use super::check::{AtLane, Check, Fault, Step};
use super::clock::Clock;
use super::machine::Machine;
use super::memory::Access;
use super::op::*;
use super::state::*;
use super::step::{Flow, Knowledge};

/// The most pieces of a copy.
const PIECES: usize = 4;

/// A copy that is about to be issued.
struct Request {
    source: Source,
    target: Place,
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

    /// Whether of the threads' groups of `cp.async` only so many are not complete, or no copy with
    /// `None`; if not, the warp waits for it.
    pub fn async_copies_done(
        &mut self,
        warp: &mut Warp,
        current: usize,
        active: u32,
        pending: Option<u32>,
    ) -> bool {
        if pending.is_none() {
            commit(&mut warp.async_groups, active);
        }
        let pending = pending.unwrap_or(0);
        let done = self.groups_done(warp, active, pending, false);
        if done {
            self.learn_groups(warp, active, pending, false, false);
        } else {
            warp.splits[current].wait = Wait::Async { pending };
        }
        done
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
        let source = self.resolve(*src_space, address(self, src), size, 16)?;
        let target = self.resolve(*dst_space, address(self, dst), size, 16)?;
        self.writable(target)?;
        let byte_mask = byte_mask.map_or(u16::MAX, |it| value(self, it) as u16);
        let mbarrier = match completion {
            Completion::Group => None,
            Completion::Mbarrier(addr) => {
                match self.resolve(Space::Shared, address(self, addr), 8, 8)? {
                    Place::Shared { rank, offset } => Some((rank, offset)),
                    _ => None,
                }
            }
        };
        let ranks = multicast.map(|it| value(self, it) as u32);
        let request = |target, mbarrier| Request {
            source: Source::Memory(source),
            target,
            size,
            mbarrier,
            reduce: *reduce,
            byte_mask,
            own_proxy: true,
            grain: 16,
            line: inst.line,
        };
        match (ranks, target, mbarrier) {
            (Some(ranks), Place::Shared { offset, .. }, Some((_, bar))) => {
                for rank in lanes(ranks) {
                    if rank >= self.cluster_size() {
                        return Err(Fault::new(
                            Check::OutOfBounds,
                            format!(
                                "expected a mask of CTAs below {}, found {ranks:#x}",
                                self.cluster_size()
                            ),
                        ));
                    }
                    let target = Place::Shared { rank, offset };
                    self.issue(warp, lane, request(target, Some((rank, bar))))?;
                }
            }
            (_, Place::Shared { rank, .. }, Some((other, _))) if rank != other => {
                return Err(Fault::new(
                    Check::BarrierState,
                    format!(
                        "expected the mbarrier in the shared memory of the destination, which is \
                         that of rank {rank}, found it in that of rank {other}"
                    ),
                ));
            }
            _ => {
                let issued = self.issue(warp, lane, request(target, mbarrier))?;
                if mbarrier.is_none() {
                    warp.bulk_groups.entry(lane).or_default().open.push(issued);
                }
            }
        }
        Ok(())
    }

    fn cp_async(&mut self, inst: &'a Inst, warp: &mut Warp, current: usize, lane: u32) -> Step<()> {
        let Op::CpAsync {
            dst,
            src,
            size,
            src_size,
        } = &inst.op
        else {
            return Ok(());
        };
        let value = |machine: &Self, src: Src| machine.operand(warp, current, src)[lane as usize];
        let address = |machine: &Self, addr: &Addr| {
            value(machine, addr.base).wrapping_add_signed(addr.offset)
        };
        let copied = src_size.map_or(*size, |it| value(self, it) as u32);
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
            let request = Request {
                source,
                target,
                size,
                mbarrier: None,
                reduce: None,
                byte_mask: u16::MAX,
                own_proxy: false,
                grain: size,
                line: inst.line,
            };
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
            return Err(Fault::new(
                Check::BarrierState,
                format!(
                    "expected the mbarrier in the shared memory of the destination, which is that of \
                     rank {rank}, found it in that of rank {other}"
                ),
            ));
        }
        let data = srcs
            .iter()
            .flat_map(|src| value(self, *src).to_le_bytes()[..element as usize].to_vec());
        let request = Request {
            source: Source::Data(data.collect()),
            target,
            size,
            mbarrier: Some((rank, offset)),
            reduce: reduce.map(|f| (f, *ty)),
            byte_mask: u16::MAX,
            own_proxy: false,
            grain: size,
            line: inst.line,
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
        if let Source::Memory(place) = request.source {
            self.note_copy(&clock, place, &request, (agent, tick), false)?;
        }
        self.note_copy(&clock, request.target, &request, (agent + 1, tick), true)?;
        let pieces = self.cut(request.size, request.grain);
        let empty = pieces.is_empty();
        let copy = Copy {
            id,
            source: request.source,
            target: request.target,
            pieces,
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

    fn note_copy(
        &mut self,
        clock: &Clock,
        place: Place,
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
        self.touch(place, request.size, access, &order)
    }

    /// Cuts a copy into pieces of whole grains.
    fn cut(&mut self, size: u32, grain: u32) -> Vec<(u32, u32)> {
        let grains = size / grain.max(1);
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < grains {
            let left = grains - at;
            let take = if pieces.len() + 1 == PIECES {
                left
            } else {
                1 + self.rng.below(left as usize) as u32
            };
            pieces.push((at * grain, take * grain));
            at += take;
        }
        pieces
    }

    /// Moves one piece of some copy, if there is any.
    pub fn move_a_piece(&mut self) -> Step<()> {
        let busy: Vec<usize> = (0..self.clusters.len())
            .filter(|cluster| !self.clusters[*cluster].copies.is_empty())
            .collect();
        if busy.is_empty() {
            return Ok(());
        }
        let cluster = busy[self.rng.below(busy.len())];
        let copy = self.rng.below(self.clusters[cluster].copies.len());
        self.move_piece_of(cluster, copy)
    }

    /// Moves one piece of a copy, and tells its barrier.
    pub fn move_piece_of(&mut self, cluster: usize, number: usize) -> Step<()> {
        self.at = (cluster, 0);
        self.progress += 1;
        let pieces = self.clusters[cluster].copies[number].pieces.len();
        let piece = self.rng.below(pieces);
        let copy = &mut self.clusters[cluster].copies[number];
        let (offset, len) = copy.pieces.swap_remove(piece);
        let last = copy.pieces.is_empty();
        let (target, reduce, byte_mask) = (copy.target, copy.reduce, copy.byte_mask);
        let (agent, tick, mbarrier) = (copy.agent, copy.tick, copy.mbarrier);
        self.copy_line = copy.line;
        let source = match &copy.source {
            Source::Data(data) => Err(data[offset as usize..(offset + len) as usize].to_vec()),
            Source::Memory(place) => Ok(*place),
        };
        for place in [source.as_ref().ok().copied(), Some(target)] {
            self.still_there(place)?;
        }
        let bytes = match source {
            Ok(place) => self.bytes(place.plus(offset), len).to_vec(),
            Err(data) => data,
        };
        let into = self.bytes(target.plus(offset), len);
        match reduce {
            Some((f, ty)) => {
                let size = ty.bytes() as usize;
                for (into, from) in into.chunks_mut(size).zip(bytes.chunks(size)) {
                    let value = alu::atomic(f, ty, number_of(into), number_of(from), 0);
                    into.copy_from_slice(&value.to_le_bytes()[..size]);
                }
            }
            None => {
                for (at, (into, from)) in into.iter_mut().zip(&bytes).enumerate() {
                    if byte_mask >> (at % 16) & 1 == 1 {
                        *into = *from;
                    }
                }
            }
        }
        if let Some((rank, offset)) = mbarrier {
            let barrier = self.barrier(rank, offset)?;
            add_transactions(barrier, -i64::from(len))?;
            if last {
                barrier.arrivals.complete(agent, tick);
                barrier.arrivals.complete(agent + 1, tick);
            }
            barrier.settle();
        }
        if last {
            self.clusters[cluster].copies.swap_remove(number);
        }
        Ok(())
    }

    /// Fails if the shared memory at a place belongs to a CTA that has exited.
    fn still_there(&self, place: Option<Place>) -> Step<()> {
        if let Some(Place::Shared { rank, .. }) = place
            && self.clusters[self.at.0].ctas[rank as usize].live_threads == 0
        {
            return Err(Fault::new(
                Check::ExitedCta,
                format!(
                    "expected a wait for this copy before the threads of the CTA of rank {rank} \
                     exit, since it still uses the shared memory of that CTA"
                ),
            ));
        }
        Ok(())
    }

    /// Whether all but the last `pending` groups of each lane are complete.
    pub fn groups_done(&self, warp: &Warp, active: u32, pending: u32, bulk: bool) -> bool {
        let groups = if bulk {
            &warp.bulk_groups
        } else {
            &warp.async_groups
        };
        let copies = &self.clusters[self.at.0].copies;
        lanes(active)
            .filter_map(|lane| groups.get(&lane))
            .all(|it| {
                let waited = it.committed.len().saturating_sub(pending as usize);
                let mut issued = it.committed.iter().take(waited).flatten();
                issued.all(|issued| copies.iter().all(|copy| copy.id != issued.id))
            })
    }

    /// The lanes learn of the copies in the groups that they have waited for.
    fn learn_groups(&mut self, warp: &mut Warp, active: u32, pending: u32, bulk: bool, read: bool) {
        for lane in lanes(active) {
            let groups = if bulk {
                &mut warp.bulk_groups
            } else {
                &mut warp.async_groups
            };
            let Some(groups) = groups.get_mut(&lane) else {
                continue;
            };
            let waited = groups.committed.len().saturating_sub(pending as usize);
            let issued: Vec<Issued> = if read {
                // Their writes may still be waited for.
                groups
                    .committed
                    .iter()
                    .take(waited)
                    .flatten()
                    .copied()
                    .collect()
            } else {
                groups.committed.drain(..waited).flatten().collect()
            };
            if issued.is_empty() {
                continue;
            }
            let thread = &mut warp.threads[lane as usize];
            let mut clock = (*thread.base).clone();
            for Issued { agent, tick, .. } in issued {
                let numbers = if read {
                    agent..=agent
                } else {
                    agent..=agent + 1
                };
                for number in numbers {
                    let known = &mut clock.happened[number as usize];
                    *known = (*known).max(tick);
                }
            }
            thread.base = std::rc::Rc::new(clock);
        }
    }
}

fn commit(groups: &mut std::collections::BTreeMap<u32, Groups>, active: u32) {
    for lane in lanes(active) {
        let groups = groups.entry(lane).or_default();
        let open = std::mem::take(&mut groups.open);
        groups.committed.push_back(open);
    }
}

fn number_of(bytes: &[u8]) -> u64 {
    let mut buffer = [0; 8];
    buffer[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(buffer)
}
