//! One instruction of one split of a warp.

use std::rc::Rc;

use super::alu::{self, Lanes};
use super::check::{AtLane, Check, Fault, Step};
use super::clock::{Arrivals, Clock, ThreadClock};
use super::exchange::{Exchange, exchange_members, same_exchange};
use super::machine::Machine;
use super::memory::{Access, LOCAL_WINDOW, Order, PARAM_WINDOW, SHARED_WINDOW};
use super::op::*;
use super::program::SHARED_START;
use super::state::*;

/// Where a split goes on.
#[derive(Debug, PartialEq, Eq)]
pub enum Flow {
    Next,
    Jump(u32),
    /// It waits, and executes the instruction again.
    Wait,
    /// It waits, and goes on with the next instruction.
    WaitNext,
    /// No lane is left.
    Ended,
}

/// What one thread or copy knows, as an [`Order`].
pub struct Knowledge<'c> {
    pub me: u32,
    pub fenced: u32,
    pub first: u32,
    pub domain: u32,
    pub agents: u32,
    pub threads: u32,
    pub clock: &'c Clock,
    pub across: bool,
}

impl Order for Knowledge<'_> {
    fn happened(&self, who: u32, tick: u32) -> bool {
        match who.checked_sub(self.first) {
            Some(number) if number < self.domain => {
                who == self.me || self.clock.happened[number as usize] >= tick
            }
            _ => self.across,
        }
    }

    fn fenced(&self, who: u32, tick: u32) -> bool {
        match who.checked_sub(self.first) {
            Some(_) if who == self.me => self.fenced >= tick,
            Some(number) if number < self.domain => self.clock.fenced[number as usize] >= tick,
            _ => self.across,
        }
    }

    fn name(&self, who: u32) -> String {
        let number = who % self.domain;
        if number >= self.agents {
            return "a bulk copy".to_owned();
        }
        let (rank, thread) = (number / self.threads, number % self.threads);
        let mut name = format!("thread {thread}");
        if self.agents > self.threads {
            name += &format!(" of the CTA of rank {rank}");
        }
        if who / self.domain != self.first / self.domain {
            name += &format!(" in cluster {}", who / self.domain);
        }
        name
    }
}

/// Registers of the function that a split is in.
#[derive(Clone, Copy)]
pub struct Window {
    registers: usize,
    predicates: usize,
    local: u64,
}

impl Warp {
    fn window(&self, split: usize) -> Window {
        let slot = self.splits[split].frames.last().map_or(0, |it| it.slot);
        let slot = self.slots[slot as usize];
        Window {
            registers: slot.registers as usize,
            predicates: slot.predicates as usize,
            local: u64::from(slot.local),
        }
    }

    pub fn read(&self, at: Window, src: Src) -> Lanes {
        match src {
            Src::Reg(reg) => self.registers[at.registers + reg as usize],
            Src::Imm(value) => [value; 32],
        }
    }

    pub fn write(&mut self, at: Window, dst: Dst, active: u32, values: &Lanes) {
        let register = &mut self.registers[at.registers + dst.reg as usize];
        let bits = mask(dst.bits);
        if active == u32::MAX {
            for lane in 0..32 {
                register[lane] = values[lane] & bits;
            }
        } else {
            for lane in lanes(active) {
                register[lane as usize] = values[lane as usize] & bits;
            }
        }
    }

    pub fn predicate(&self, at: Window, p: PredSrc) -> u32 {
        let value = self.predicates[at.predicates + p.reg as usize];
        if p.negated { !value } else { value }
    }

    pub fn write_predicate(&mut self, at: Window, reg: Reg, active: u32, value: u32) {
        let register = &mut self.predicates[at.predicates + reg as usize];
        *register = *register & !active | value & active;
    }
}

impl<'a> Machine<'a> {
    /// Executes an instruction for the lanes of a split.
    pub fn execute(&mut self, inst: &'a Inst, warp: &mut Warp, current: usize) -> Step<Flow> {
        let at = warp.window(current);
        let all = warp.splits[current].mask;
        let active = match inst.guard {
            Some(guard) => all & warp.predicate(at, guard),
            None => all,
        };
        self.stats.thread_instructions += u64::from(active.count_ones());
        if active == 0 {
            return Ok(Flow::Next);
        }
        if let Some(flow) = self.compute(inst, warp, at, active) {
            return Ok(flow);
        }
        match &inst.op {
            Op::Special { dst, which } => {
                let values = self.special(warp, at, *which);
                warp.write(at, *dst, active, &values);
            }
            Op::Ld { .. } => self.load(inst, warp, at, active)?,
            Op::St { .. } => self.store(inst, warp, at, active)?,
            Op::Atom { .. } => self.atom(inst, warp, at, active)?,
            Op::Mapa {
                shared,
                dst,
                a,
                rank,
            } => {
                let (mut values, ranks) = (warp.read(at, *a), warp.read(at, *rank));
                for lane in lanes(active) {
                    let (value, rank) = (&mut values[lane as usize], ranks[lane as usize]);
                    if rank >= u64::from(self.cluster_size()) {
                        return Err(Fault::new(
                            Check::OutOfBounds,
                            format!(
                                "expected a rank below the {} CTAs of the cluster, found {rank}",
                                self.cluster_size()
                            ),
                        ))
                        .at(lane);
                    }
                    let window = if *shared { 0 } else { SHARED_WINDOW };
                    let offset = value.wrapping_sub(window) & 0xff_ffff;
                    *value = window + ((rank + 1) << 24 | offset);
                }
                warp.write(at, *dst, active, &values);
            }
            Op::Getctarank { shared, dst, a } => {
                let mut values = warp.read(at, *a);
                for value in &mut values {
                    let window = if *shared { 0 } else { SHARED_WINDOW };
                    let rank = value.wrapping_sub(window) >> 24 & 0xff;
                    *value = rank.checked_sub(1).unwrap_or(self.at.1 as u64);
                }
                warp.write(at, *dst, active, &values);
            }
            Op::Bra { target } => return Ok(branch(warp, current, active, *target)),
            Op::BraIdx { targets, index } => {
                let indices = warp.read(at, *index);
                return branch_table(warp, current, active, targets, &indices);
            }
            Op::Call { .. } => return Ok(self.call(inst, warp, current, active)),
            Op::Ret => return Ok(self.ret(warp, current, active)),
            Op::Exit => return Ok(self.exit(warp, current, active)),
            Op::Trap => return Err(Fault::new(Check::Trap, "the kernel gave up with `trap`")),
            Op::Bar { .. } => return self.bar(inst, warp, current, at, active),
            Op::BarWarp { members } => {
                let members = warp.read(at, *members);
                return self.bar_warp(warp, current, active, &members);
            }
            Op::Shfl { .. }
            | Op::Vote { .. }
            | Op::Match { .. }
            | Op::Redux { .. }
            | Op::Elect { .. } => return self.exchange(inst, warp, current, at, active),
            Op::Activemask { dst } => {
                warp.write(at, *dst, active, &[u64::from(active); 32]);
            }
            Op::MbarInit { .. }
            | Op::MbarInval { .. }
            | Op::MbarArrive { .. }
            | Op::MbarExpectTx { .. }
            | Op::MbarWait { .. }
            | Op::MbarLayout { .. }
            | Op::MbarPending { .. } => return self.mbarrier(inst, warp, current, active),
            Op::Fence => {
                let joins = &mut self.clusters[self.at.0].joins;
                for lane in lanes(active) {
                    joins.order(&mut warp.threads[lane as usize]);
                }
            }
            Op::FenceProxyAsync => {
                let joins = &mut self.clusters[self.at.0].joins;
                for lane in lanes(active) {
                    joins.fence(&mut warp.threads[lane as usize]);
                }
            }
            Op::FenceMbarrierInit => {
                let cta = &mut self.clusters[self.at.0].ctas[self.at.1];
                cta.barriers.values_mut().for_each(|it| it.fenced = true);
            }
            Op::ClusterArrive { aligned, release } => {
                if *aligned && !aligned_here(warp, current, active)? {
                    return Ok(Flow::Wait);
                }
                self.cluster_arrive(warp, active, *release)?;
            }
            Op::ClusterWait { aligned } => {
                if *aligned && !aligned_here(warp, current, active)? {
                    return Ok(Flow::Wait);
                }
                return self.cluster_wait(warp, current, active);
            }
            Op::TensormapReplace { .. } | Op::TensormapCopy { .. } => {
                return self.tensor_map(inst, warp, current, active);
            }
            Op::LdMatrix { .. } | Op::StMatrix { .. } => {
                return self.matrix(inst, warp, current, active);
            }
            Op::BulkCopy { .. }
            | Op::TensorCopy { .. }
            | Op::CpAsync { .. }
            | Op::StAsync { .. }
            | Op::BulkCommit
            | Op::CpAsyncCommit
            | Op::BulkWait { .. }
            | Op::CpAsyncWait { .. } => return self.copy(inst, warp, current, active),
            _ => {}
        }
        Ok(Flow::Next)
    }

    /// Instructions that touch registers alone.
    fn compute(&mut self, inst: &Inst, warp: &mut Warp, at: Window, active: u32) -> Option<Flow> {
        let mut out = [0; 32];
        match &inst.op {
            Op::Nop => {}
            Op::Mov { dst, a } => {
                let values = warp.read(at, *a);
                warp.write(at, *dst, active, &values);
            }
            Op::Binary {
                f,
                ty,
                mode,
                dst,
                a,
                b,
            } => {
                let (a, b) = (warp.read(at, *a), warp.read(at, *b));
                alu::binary(*f, *ty, *mode, &a, &b, &mut out);
                warp.write(at, *dst, active, &out);
            }
            Op::Unary {
                f,
                ty,
                mode,
                dst,
                a,
            } => {
                alu::unary(*f, *ty, *mode, &warp.read(at, *a), &mut out);
                warp.write(at, *dst, active, &out);
            }
            Op::Ternary {
                f,
                ty,
                mode,
                dst,
                a,
                b,
                c,
            } => {
                let [a, b, c] = [*a, *b, *c].map(|src| warp.read(at, src));
                alu::ternary(*f, *ty, *mode, [&a, &b, &c], &mut out);
                warp.write(at, *dst, active, &out);
            }
            Op::Bfi {
                ty,
                dst,
                a,
                b,
                position,
                length,
            } => {
                let [a, b, c, d] = [*a, *b, *position, *length].map(|src| warp.read(at, src));
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = alu::bfi(*ty, a[lane], b[lane], c[lane], d[lane]);
                }
                warp.write(at, *dst, active, &out);
            }
            Op::Carry {
                sub,
                carry_in,
                carry_out,
                ty,
                dst,
                a,
                b,
            } => {
                let (a, b) = (warp.read(at, *a), warp.read(at, *b));
                let zero = [0; 32];
                let sum = if *sub {
                    [&a, &zero, &b]
                } else {
                    [&a, &b, &zero]
                };
                add_carry(warp, at, active, *ty, *dst, sum, *carry_in, *carry_out);
            }
            Op::MadCarry {
                hi,
                carry_in,
                carry_out,
                ty,
                dst,
                a,
                b,
                c,
            } => {
                let [a, b, c] = [*a, *b, *c].map(|src| warp.read(at, src));
                let f = if *hi { Binary::MulHi } else { Binary::MulLo };
                alu::binary(f, *ty, FloatMode::default(), &a, &b, &mut out);
                let sum = [&out, &c, &[0; 32]];
                add_carry(warp, at, active, *ty, *dst, sum, *carry_in, *carry_out);
            }
            Op::Setp {
                cmp,
                ty,
                ftz,
                p,
                q,
                a,
                b,
                with,
            } => {
                let (a, b) = (warp.read(at, *a), warp.read(at, *b));
                let held = alu::compare(*cmp, *ty, *ftz, &a, &b);
                let combine = |held: u32| match with {
                    Some((f, c)) => logic(*f, held, warp.predicate(at, *c)),
                    None => held,
                };
                let (yes, no) = (combine(held), combine(!held));
                if let Some(p) = p {
                    warp.write_predicate(at, *p, active, yes);
                }
                if let Some(q) = q {
                    warp.write_predicate(at, *q, active, no);
                }
            }
            Op::Set {
                cmp,
                ty,
                ftz,
                one,
                dst,
                a,
                b,
            } => {
                let (a, b) = (warp.read(at, *a), warp.read(at, *b));
                let held = alu::compare(*cmp, *ty, *ftz, &a, &b);
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = if held >> lane & 1 == 1 { *one } else { 0 };
                }
                warp.write(at, *dst, active, &out);
            }
            Op::Selp { dst, a, b, p } => {
                let (a, b) = (warp.read(at, *a), warp.read(at, *b));
                let p = warp.predicate(at, *p);
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = if p >> lane & 1 == 1 { a[lane] } else { b[lane] };
                }
                warp.write(at, *dst, active, &out);
            }
            Op::PredLogic { f, dst, a, b } => {
                let value = logic(*f, warp.predicate(at, *a), warp.predicate(at, *b));
                warp.write_predicate(at, *dst, active, value);
            }
            Op::PredMov { dst, a } => {
                let value = warp.predicate(at, *a);
                warp.write_predicate(at, *dst, active, value);
            }
            Op::PredImm { dst, value } => {
                let value = if *value { u32::MAX } else { 0 };
                warp.write_predicate(at, *dst, active, value);
            }
            Op::PredExplicitCluster { dst } => {
                let value = if self.explicit_cluster { u32::MAX } else { 0 };
                warp.write_predicate(at, *dst, active, value);
            }
            Op::MovPair { dsts, srcs } => {
                let values = srcs.map(|src| warp.read(at, src));
                for (dst, values) in dsts.iter().zip(&values) {
                    if let Some(dst) = dst {
                        warp.write(at, *dst, active, values);
                    }
                }
            }
            Op::Cvt {
                dst,
                to,
                from,
                round,
                integral,
                sat,
                ftz,
                a,
            } => {
                let a = warp.read(at, *a);
                alu::convert(
                    *to, *from, *round, *integral, *sat, *ftz, dst.bits, &a, &mut out,
                );
                warp.write(at, *dst, active, &out);
            }
            Op::CvtPack {
                dst,
                to,
                round,
                relu,
                hi,
                lo,
            } => {
                let (hi, lo) = (warp.read(at, *hi), warp.read(at, *lo));
                let half = |bits: u64| {
                    let value = f64::from(f32::from_bits(bits as u32));
                    let value = if *relu && value <= 0.0 { 0.0 } else { value };
                    super::float::narrow(*to, value, *round)
                };
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = half(hi[lane]) << 16 | half(lo[lane]);
                }
                warp.write(at, *dst, active, &out);
            }
            Op::Pack { dst, bits, parts } => {
                for (number, part) in parts.iter().enumerate() {
                    let part = warp.read(at, *part);
                    for (out, part) in out.iter_mut().zip(part) {
                        *out |= (part & mask(*bits)) << (bits * number as u32);
                    }
                }
                warp.write(at, *dst, active, &out);
            }
            Op::Unpack { bits, parts, a } => {
                let a = warp.read(at, *a);
                for (number, part) in parts.iter().enumerate() {
                    if let Some(dst) = part {
                        let values = a.map(|a| a >> (bits * number as u32) & mask(*bits));
                        warp.write(at, *dst, active, &values);
                    }
                }
            }
            Op::Cvta { to, space, dst, a } => {
                let window = window(*space);
                let values = warp.read(at, *a).map(|a| {
                    if *to {
                        a.wrapping_sub(window)
                    } else {
                        a.wrapping_add(window)
                    }
                });
                warp.write(at, *dst, active, &values);
            }
            Op::Isspacep { space, p, a } => {
                let a = warp.read(at, *a);
                let held = (0..32).fold(0, |bits, lane| {
                    bits | u32::from(space_of(a[lane]) == *space) << lane
                });
                warp.write_predicate(at, *p, active, held);
            }
            _ => return None,
        }
        Some(Flow::Next)
    }

    fn special(&self, warp: &Warp, at: Window, which: Special) -> Lanes {
        let (cluster, cta) = self.at;
        let cluster = &self.clusters[cluster];
        let ctaid = cluster.ctas[cta].ctaid;
        let all = |value: u32| [u64::from(value); 32];
        let shape = self.cluster_shape;
        let per_lane = |f: &dyn Fn(u32) -> u32| {
            let mut values = [0; 32];
            for (lane, value) in values.iter_mut().enumerate() {
                *value = u64::from(f(lane as u32));
            }
            values
        };
        let shared = self.program.functions[self.kernel as usize].shared_end - SHARED_START;
        match which {
            Special::Tid(axis) => {
                per_lane(&|lane| self.thread_of(warp.number * 32 + lane)[axis as usize])
            }
            Special::Ntid(axis) => all(self.grid.block[axis as usize]),
            Special::Ctaid(axis) => all(ctaid[axis as usize]),
            Special::Nctaid(axis) => all(self.grid.grid[axis as usize]),
            Special::Laneid => per_lane(&|lane| lane),
            Special::Warpid => all(warp.number),
            Special::Nwarpid => all(self.threads_per_cta().div_ceil(32)),
            Special::Smid => all(cta as u32),
            Special::Nsmid => all(1),
            Special::Gridid => all(1),
            Special::LanemaskEq => per_lane(&|lane| 1 << lane),
            Special::LanemaskLt => per_lane(&|lane| (1 << lane) - 1),
            Special::LanemaskLe => per_lane(&|lane| u32::MAX >> (31 - lane)),
            Special::LanemaskGt => per_lane(&|lane| !(u32::MAX >> (31 - lane))),
            Special::LanemaskGe => per_lane(&|lane| !((1 << lane) - 1)),
            Special::Clock => [self.stats.warp_instructions; 32],
            Special::ClockHi => [self.stats.warp_instructions >> 32; 32],
            Special::NoGraph => [0; 32],
            Special::Clusterid(axis) => all(ctaid[axis as usize] / shape[axis as usize]),
            Special::Nclusterid(axis) => all(self.clusters_of_grid()[axis as usize]),
            Special::ClusterCtaid(axis) => all(ctaid[axis as usize] % shape[axis as usize]),
            Special::ClusterNctaid(axis) => all(shape[axis as usize]),
            Special::ClusterCtarank => all(cta as u32),
            Special::ClusterNctarank => all(self.cluster_size()),
            Special::IsExplicitCluster => all(self.explicit_cluster.into()),
            Special::DynamicSmemSize => all(self.grid.shared_bytes),
            Special::TotalSmemSize | Special::AggrSmemSize => all(shared + self.grid.shared_bytes),
            Special::Frame { offset, generic } => {
                let window = if generic { LOCAL_WINDOW } else { 0 };
                [window + at.local + u64::from(offset); 32]
            }
        }
    }

    /// The number in the grid's clocks of a lane's thread.
    pub fn who(&self, warp: &Warp, lane: u32) -> u32 {
        self.clusters[self.at.0].number * self.domain() + self.number(warp, lane)
    }

    /// The number of a lane's thread in its cluster.
    pub fn number(&self, warp: &Warp, lane: u32) -> u32 {
        self.at.1 as u32 * self.threads_per_cta() + warp.number * 32 + lane
    }

    /// What a thread knows.
    pub fn knowledge<'c>(&self, number: u32, thread: &'c ThreadClock) -> Knowledge<'c> {
        let first = self.clusters[self.at.0].number * self.domain();
        Knowledge {
            me: first + number,
            fenced: thread.fenced,
            first,
            domain: self.domain(),
            agents: self.agents,
            threads: self.threads_per_cta(),
            clock: &thread.base,
            across: self.strong_global,
        }
    }

    /// Finds `bytes` bytes at an address.
    pub fn resolve(&self, space: Space, address: u64, bytes: u32, align: u32) -> Step<Place> {
        if !address.is_multiple_of(u64::from(align)) {
            return Err(Fault::new(
                Check::Alignment,
                format!(
                    "expected an address aligned to {align} bytes, found {address:#x}, which is {} \
                     past a multiple",
                    address % u64::from(align)
                ),
            ));
        }
        let space = if space == Space::Generic {
            space_of(address)
        } else {
            return self.resolve_in(space, address, bytes);
        };
        self.resolve_in(space, address.wrapping_sub(window(space)), bytes)
    }

    fn resolve_in(&self, space: Space, address: u64, bytes: u32) -> Step<Place> {
        match space {
            Space::Shared => self.resolve_shared(address as u32, bytes),
            Space::Local => Ok(Place::Local(address)),
            Space::Frame => Ok(Place::Frame(address)),
            Space::Param => {
                let end = address.checked_add(u64::from(bytes));
                if end.is_none_or(|end| end > self.params.len() as u64) {
                    return Err(Fault::new(
                        Check::OutOfBounds,
                        format!(
                            "expected an address within the {} bytes of parameters, found {address}",
                            self.params.len()
                        ),
                    ));
                }
                Ok(Place::Param(address))
            }
            _ => match self.memory.find(address, u64::from(bytes)) {
                Some((allocation, offset)) => Ok(Place::Global { allocation, offset }),
                None => Err(Fault::new(
                    Check::OutOfBounds,
                    format!(
                        "expected {bytes} bytes of global memory at {address:#x}: {}",
                        self.memory.nearest(address)
                    ),
                )),
            },
        }
    }

    fn resolve_shared(&self, address: u32, bytes: u32) -> Step<Place> {
        let (window, offset) = (address >> 24, address & 0xff_ffff);
        let rank = window.checked_sub(1).unwrap_or(self.at.1 as u32);
        let end = u64::from(offset) + u64::from(bytes);
        let function = &self.program.functions[self.kernel as usize];
        let dynamic = u64::from(self.program.dynamic_start);
        let inside = offset >= SHARED_START && end <= u64::from(function.shared_end)
            || u64::from(offset) >= dynamic && end <= dynamic + u64::from(self.grid.shared_bytes);
        if !inside || rank >= self.cluster_size() {
            return Err(Fault::new(
                Check::OutOfBounds,
                format!(
                    "expected {bytes} bytes within the {} bytes of static and {} bytes of dynamic \
                     shared memory, found shared address {address:#x}",
                    function.shared_end - SHARED_START,
                    self.grid.shared_bytes
                ),
            ));
        }
        let owner = &self.clusters[self.at.0].ctas[rank as usize];
        if rank != self.at.1 as u32 && owner.live_threads == 0 {
            return Err(Fault::new(
                Check::ExitedCta,
                format!(
                    "expected the CTA of rank {rank} to be alive, found that all its threads have \
                     exited: they must wait until nobody needs their shared memory"
                ),
            ));
        }
        Ok(Place::Shared { rank, offset })
    }

    /// Notes an access of a thread, and finds what it conflicts with.
    pub fn note(
        &mut self,
        warp: &Warp,
        lane: u32,
        place: Place,
        bytes: u32,
        line: u32,
        (write, strong, same): (bool, bool, bool),
    ) -> Step<()> {
        let number = self.number(warp, lane);
        let thread = &warp.threads[lane as usize];
        let access = Access {
            who: self.who(warp, lane),
            tick: thread.own,
            line,
            write,
            strong,
            asynchronous: false,
            same,
        };
        let order = self.knowledge(number, thread);
        self.touch(place, bytes, access, &order)
    }

    /// Notes an access in the shadow of its place.
    pub fn touch(
        &mut self,
        place: Place,
        bytes: u32,
        access: Access,
        order: &Knowledge,
    ) -> Step<()> {
        if !self.options.races {
            return Ok(());
        }
        match place {
            Place::Global { allocation, offset } => {
                let allocation = &mut self.memory.allocations[allocation];
                if allocation.constant {
                    return Ok(());
                }
                let initialised = allocation.uninitialised;
                allocation
                    .shadow
                    .access(offset, bytes as usize, access, order, initialised)
            }
            Place::Shared { rank, offset } => {
                let cta = &mut self.clusters[self.at.0].ctas[rank as usize];
                cta.shadow
                    .access(offset as usize, bytes as usize, access, order, true)
            }
            _ => Ok(()),
        }
    }

    /// The bytes of a place in global or shared memory.
    pub fn bytes(&mut self, place: Place, len: u32) -> &mut [u8] {
        let len = len as usize;
        match place {
            Place::Global { allocation, offset } => {
                &mut self.memory.allocations[allocation].data[offset..offset + len]
            }
            Place::Shared { rank, offset } => {
                let data = &mut self.clusters[self.at.0].ctas[rank as usize].data;
                &mut data[offset as usize..offset as usize + len]
            }
            Place::Param(offset) => &mut self.params[offset as usize..offset as usize + len],
            Place::Local(_) | Place::Frame(_) => &mut [],
        }
    }

    fn load(&mut self, inst: &Inst, warp: &mut Warp, at: Window, active: u32) -> Step<()> {
        let Op::Ld {
            space,
            ty,
            dsts,
            addr,
            strength,
        } = &inst.op
        else {
            return Ok(());
        };
        let addresses = warp.read(at, addr.base);
        let size = ty.bytes();
        let total = size * dsts.len() as u32;
        let strong = *strength == Strength::Strong;
        let mut values = vec![[0u64; 32]; dsts.len()];
        for lane in lanes(active) {
            let address = addresses[lane as usize].wrapping_add_signed(addr.offset);
            let place = self.resolve(*space, address, total, total).at(lane)?;
            let mut buffer = [0u8; 64];
            let buffer = &mut buffer[..total as usize];
            match place {
                Place::Local(_) | Place::Frame(_) => {
                    let start = local_place(warp, at, place, total).at(lane)?;
                    for (offset, byte) in buffer.iter_mut().enumerate() {
                        *byte = warp.local[start + offset][lane as usize];
                    }
                }
                place => {
                    if strong {
                        self.acquire_location(warp, lane, place);
                    }
                    self.note(warp, lane, place, total, inst.line, (false, strong, false))
                        .at(lane)?;
                    buffer.copy_from_slice(self.bytes(place, total));
                }
            }
            for (value, chunk) in values.iter_mut().zip(buffer.chunks(size as usize)) {
                value[lane as usize] = number(chunk);
            }
        }
        for (dst, values) in dsts.iter().zip(&mut values) {
            if let Some(dst) = dst {
                if ty.signed() {
                    *values = values.map(|value| alu::extend(*ty, value, dst.bits));
                }
                warp.write(at, *dst, active, values);
            }
        }
        Ok(())
    }

    fn store(&mut self, inst: &Inst, warp: &mut Warp, at: Window, active: u32) -> Step<()> {
        let Op::St {
            space,
            ty,
            srcs,
            addr,
            strength,
        } = &inst.op
        else {
            return Ok(());
        };
        let addresses = warp.read(at, addr.base);
        let size = ty.bytes() as usize;
        let total = (size * srcs.len()) as u32;
        let strong = *strength == Strength::Strong;
        let values: Vec<Lanes> = srcs.iter().map(|src| warp.read(at, *src)).collect();
        for lane in lanes(active) {
            let mut buffer = [0u8; 64];
            for (values, chunk) in values.iter().zip(buffer.chunks_mut(size)) {
                chunk.copy_from_slice(&values[lane as usize].to_le_bytes()[..size]);
            }
            let buffer = &buffer[..total as usize];
            let address = addresses[lane as usize].wrapping_add_signed(addr.offset);
            let place = self.resolve(*space, address, total, total).at(lane)?;
            match place {
                Place::Local(_) | Place::Frame(_) => {
                    let start = local_place(warp, at, place, total).at(lane)?;
                    for (offset, byte) in buffer.iter().enumerate() {
                        warp.local[start + offset][lane as usize] = *byte;
                    }
                }
                Place::Param(_) => {
                    return Err(Fault::new(
                        Check::OutOfBounds,
                        "expected memory that may be written, found a parameter of the kernel",
                    ))
                    .at(lane);
                }
                place => {
                    self.writable(place).at(lane)?;
                    let same = self.bytes(place, total) == buffer;
                    self.note(warp, lane, place, total, inst.line, (true, strong, same))
                        .at(lane)?;
                    if strong {
                        self.release_location(warp, lane, place);
                    }
                    self.bytes(place, total).copy_from_slice(buffer);
                    self.progress += u64::from(!same);
                }
            }
        }
        Ok(())
    }

    /// Fails for constant memory.
    pub fn writable(&self, place: Place) -> Step<()> {
        match place {
            Place::Global { allocation, .. } if self.memory.allocations[allocation].constant => {
                Err(Fault::new(
                    Check::OutOfBounds,
                    format!(
                        "expected memory that may be written, found the constant `{}`",
                        self.memory.allocations[allocation].name
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    /// A strong access orders what comes after it behind what earlier ones of the address released.
    /// Only within a cluster; across clusters, races are no longer claimed.
    fn acquire_location(&mut self, warp: &mut Warp, lane: u32, place: Place) {
        let key = self.location(place);
        let cluster = &mut self.clusters[self.at.0];
        if let Some(known) = cluster.locations.get(&key) {
            cluster
                .joins
                .acquire(&mut warp.threads[lane as usize], known);
        }
    }

    fn release_location(&mut self, warp: &mut Warp, lane: u32, place: Place) {
        let key = self.location(place);
        let (domain, number) = (self.domain() as usize, self.number(warp, lane));
        let cluster = &mut self.clusters[self.at.0];
        let thread = &mut warp.threads[lane as usize];
        let mut arrivals = Arrivals::new(domain);
        if let Some(known) = cluster.locations.get(&key) {
            let mut before = thread.clone();
            cluster.joins.acquire(&mut before, known);
            arrivals.release(number, &mut before);
            thread.own += 1;
        } else {
            arrivals.release(number, thread);
        }
        cluster.locations.insert(key, arrivals.finish());
    }

    fn location(&mut self, place: Place) -> (u32, u64) {
        match place {
            Place::Global { allocation, offset } => {
                self.strong_global = true;
                (
                    u32::MAX,
                    self.memory.allocations[allocation].address + offset as u64,
                )
            }
            Place::Shared { rank, offset } => (rank, u64::from(offset)),
            _ => (0, 0),
        }
    }

    fn atom(&mut self, inst: &Inst, warp: &mut Warp, at: Window, active: u32) -> Step<()> {
        let Op::Atom {
            space,
            f,
            ty,
            dst,
            addr,
            b,
            c,
        } = &inst.op
        else {
            return Ok(());
        };
        let addresses = warp.read(at, addr.base);
        let (b, c) = (warp.read(at, *b), warp.read(at, *c));
        let size = ty.bytes();
        let mut old = [0; 32];
        for lane in lanes(active) {
            let number_of_lane = lane as usize;
            let address = addresses[number_of_lane].wrapping_add_signed(addr.offset);
            let place = self.resolve(*space, address, size, size).at(lane)?;
            if !matches!(place, Place::Global { .. } | Place::Shared { .. }) {
                return Err(Fault::new(
                    Check::OutOfBounds,
                    "expected global or shared memory",
                ))
                .at(lane);
            }
            self.writable(place).at(lane)?;
            self.acquire_location(warp, lane, place);
            self.note(warp, lane, place, size, inst.line, (false, true, false))
                .at(lane)?;
            self.note(warp, lane, place, size, inst.line, (true, true, false))
                .at(lane)?;
            self.release_location(warp, lane, place);
            let bytes = self.bytes(place, size);
            let before = number(bytes);
            let after = alu::atomic(*f, *ty, before, b[number_of_lane], c[number_of_lane]);
            bytes.copy_from_slice(&after.to_le_bytes()[..size as usize]);
            old[number_of_lane] = before;
            self.progress += u64::from(before != after);
        }
        if let Some(dst) = dst {
            warp.write(at, *dst, active, &old);
        }
        Ok(())
    }

    fn call(&mut self, inst: &Inst, warp: &mut Warp, current: usize, active: u32) -> Flow {
        let Op::Call { function, args, .. } = &inst.op else {
            return Flow::Next;
        };
        let callee = &self.program.functions[*function as usize];
        let from = warp.window(current).local as usize;
        let back = warp.splits[current].pc + 1;
        leave_others(warp, current, active, back);
        let slot = match slot_of_same_call(warp, current, back) {
            Some(slot) => {
                warp.slots[slot as usize].lanes |= active;
                slot
            }
            None => new_slot(warp, *function, callee, active),
        };
        let to = warp.slots[slot as usize].local as usize;
        for ((source, size), (target, _)) in args.iter().zip(&callee.params) {
            for byte in 0..*size as usize {
                for lane in lanes(active) {
                    warp.local[to + *target as usize + byte][lane as usize] =
                        warp.local[from + *source as usize + byte][lane as usize];
                }
            }
        }
        warp.splits[current].frames.push(Frame { slot, back });
        Flow::Jump(0)
    }

    fn ret(&mut self, warp: &mut Warp, current: usize, active: u32) -> Flow {
        let depth = warp.splits[current].frames.len();
        if depth == 1 {
            return self.exit(warp, current, active);
        }
        let next = warp.splits[current].pc + 1;
        leave_others(warp, current, active, next);
        let Some(Frame { slot, back }) = warp.splits[current].frames.pop() else {
            return Flow::Next;
        };
        let callee = warp.slots[slot as usize];
        warp.slots[slot as usize].lanes &= !active;
        let caller = warp.splits[current].frames[depth - 2].slot;
        let caller = warp.slots[caller as usize];
        let call = &self.program.functions[caller.function as usize].insts[back as usize - 1];
        if let Op::Call { rets, .. } = &call.op {
            let formal = &self.program.functions[callee.function as usize].rets;
            for ((target, size), (source, _)) in rets.iter().zip(formal) {
                for byte in 0..*size {
                    for lane in lanes(active) {
                        let value =
                            warp.local[(callee.local + source + byte) as usize][lane as usize];
                        warp.local[(caller.local + target + byte) as usize][lane as usize] = value;
                    }
                }
            }
        }
        Flow::Jump(back)
    }

    fn exit(&mut self, warp: &mut Warp, current: usize, active: u32) -> Flow {
        warp.live &= !active;
        warp.splits[current].mask &= !active;
        self.progress += 1;
        let cta = &mut self.clusters[self.at.0].ctas[self.at.1];
        cta.live_threads -= active.count_ones();
        for id in 0..16 {
            self.complete_named(id);
        }
        self.complete_cluster_barrier();
        if warp.splits[current].mask == 0 {
            Flow::Ended
        } else {
            Flow::Next
        }
    }

    fn bar(
        &mut self,
        inst: &Inst,
        warp: &mut Warp,
        current: usize,
        at: Window,
        active: u32,
    ) -> Step<Flow> {
        let Op::Bar {
            aligned,
            wait,
            id,
            count,
            red,
        } = &inst.op
        else {
            return Ok(Flow::Next);
        };
        if *aligned && !aligned_here(warp, current, active)? {
            return Ok(Flow::Wait);
        }
        let first = active.trailing_zeros() as usize;
        let id = warp.read(at, *id)[first] as u32;
        let count = count.map_or(0, |count| warp.read(at, count)[first] as u32);
        if id > 15 || count % 32 != 0 {
            return Err(Fault::new(
                Check::Size,
                format!(
                    "expected a barrier from 0 to 15 and a count that is a multiple of 32, found \
                     {id} and {count}"
                ),
            ));
        }
        let held = red.map_or(0, |(_, p, _)| (warp.predicate(at, p) & active).count_ones());
        let (domain, first_number) = (self.domain() as usize, self.number(warp, 0));
        self.progress += 1;
        let cta = &mut self.clusters[self.at.0].ctas[self.at.1];
        let barrier = &mut cta.named[id as usize];
        if barrier.arrived > 0 && barrier.expected != count {
            return Err(Fault::new(
                Check::ArrivalCount,
                format!(
                    "expected the count {} that others gave for barrier {id} at PTX line {}, found \
                     {count}",
                    barrier.expected, barrier.line
                ),
            ));
        }
        let arrivals = barrier
            .arrivals
            .get_or_insert_with(|| Arrivals::new(domain));
        for lane in lanes(active) {
            arrivals.release(first_number + lane, &mut warp.threads[lane as usize]);
        }
        // With a count, a warp counts as 32 threads even if it is not full.
        let whole = *aligned && count > 0;
        barrier.arrived += if whole { 32 } else { active.count_ones() };
        barrier.expected = count;
        barrier.held += held;
        barrier.line = inst.line;
        barrier.result = match red {
            Some((BarRed::Popc, ..)) => barrier.held,
            Some((BarRed::And, ..)) => u32::from(barrier.held == barrier.arrived),
            Some((BarRed::Or, ..)) => u32::from(barrier.held > 0),
            None => barrier.result,
        };
        let generation = barrier.generation;
        if *wait {
            warp.splits[current].wait = Wait::Named {
                id,
                generation,
                red: red.map(|(f, _, dst)| (f, dst)),
            };
        }
        self.complete_named(id as usize);
        Ok(if *wait { Flow::WaitNext } else { Flow::Next })
    }

    fn complete_named(&mut self, id: usize) {
        let cta = &mut self.clusters[self.at.0].ctas[self.at.1];
        let live = cta.live_threads;
        let barrier = &mut cta.named[id];
        let needed = if barrier.expected == 0 {
            live
        } else {
            barrier.expected
        };
        if barrier.arrived > 0 && barrier.arrived >= needed {
            barrier.generation += 1;
            (barrier.arrived, barrier.expected, barrier.held) = (0, 0, 0);
            barrier.done = barrier.arrivals.take().map(|mut it| it.finish());
            self.progress += 1;
        }
    }

    /// Writes the result of `bar.red`, which the split has passed.
    pub fn put_reduction(&self, warp: &mut Warp, split: usize, _f: BarRed, dst: Dst, result: u32) {
        let (at, active) = (warp.window(split), warp.splits[split].mask);
        if dst.bits == 1 {
            let value = if result != 0 { u32::MAX } else { 0 };
            warp.write_predicate(at, dst.reg, active, value);
        } else {
            warp.write(at, dst, active, &[u64::from(result); 32]);
        }
    }

    fn cluster_arrive(&mut self, warp: &mut Warp, active: u32, release: bool) -> Step<()> {
        let domain = self.domain() as usize;
        let first = self.number(warp, 0);
        let barrier = &mut self.clusters[self.at.0].barrier;
        let arrivals = barrier
            .arrivals
            .get_or_insert_with(|| Arrivals::new(domain));
        for lane in lanes(active) {
            if warp
                .cluster_arrived
                .insert(lane, barrier.generation)
                .is_some()
            {
                return Err(Fault::new(
                    Check::BarrierState,
                    "expected `barrier.cluster.wait` before the next `barrier.cluster.arrive`",
                ))
                .at(lane);
            }
            let thread = &mut warp.threads[lane as usize];
            if release {
                arrivals.release(first + lane, thread);
            } else {
                arrivals.release_relaxed(first + lane, thread);
            }
        }
        barrier.arrived += active.count_ones();
        self.progress += 1;
        self.complete_cluster_barrier();
        Ok(())
    }

    fn complete_cluster_barrier(&mut self) {
        let cluster = &mut self.clusters[self.at.0];
        let live: u32 = cluster.ctas.iter().map(|cta| cta.live_threads).sum();
        let barrier = &mut cluster.barrier;
        if barrier.arrived > 0 && barrier.arrived >= live {
            barrier.arrived = 0;
            barrier.generation += 1;
            barrier.done = barrier.arrivals.take().map(|mut it| it.finish());
            let all = cluster
                .ctas
                .iter_mut()
                .flat_map(|it| it.barriers.values_mut());
            all.for_each(|it| it.published |= it.fenced);
            self.progress += 1;
        }
    }

    fn cluster_wait(&mut self, warp: &mut Warp, current: usize, active: u32) -> Step<Flow> {
        let cluster = &mut self.clusters[self.at.0];
        let generation = cluster.barrier.generation;
        for lane in lanes(active) {
            match warp.cluster_arrived.get(&lane) {
                Some(arrived) if *arrived == generation => {
                    warp.splits[current].wait = Wait::Cluster { generation };
                    return Ok(Flow::Wait);
                }
                Some(_) => {}
                None => {
                    return Err(Fault::new(
                        Check::BarrierState,
                        "expected `barrier.cluster.arrive` before `barrier.cluster.wait`",
                    ))
                    .at(lane);
                }
            }
        }
        let done = cluster.barrier.done.clone();
        for lane in lanes(active) {
            warp.cluster_arrived.remove(&lane);
            if let Some(done) = &done {
                cluster
                    .joins
                    .acquire(&mut warp.threads[lane as usize], done);
            }
        }
        Ok(Flow::Next)
    }

    /// Whether the lanes that the lanes' masks name are here; otherwise the split waits for them.
    fn together(
        &self,
        warp: &mut Warp,
        current: usize,
        active: u32,
        members: &Lanes,
    ) -> Step<bool> {
        let named = lanes(active).try_fold(0, |named, lane| {
            Ok::<_, Box<Fault>>(named | member_mask(members, lane)?)
        })?;
        if named & warp.live & !active == 0 {
            return Ok(true);
        }
        // Lanes that are predicated off may come by another way.
        let next = warp.splits[current].pc + 1;
        leave_others(warp, current, active, next);
        warp.splits[current].wait = Wait::Converge(named);
        Ok(false)
    }

    /// `bar.warp.sync`: lanes may come to any of those with their mask.
    fn bar_warp(
        &mut self,
        warp: &mut Warp,
        current: usize,
        active: u32,
        members: &Lanes,
    ) -> Step<Flow> {
        let mask = member_mask(members, active.trailing_zeros())?;
        let mut group = 0;
        for lane in lanes(active) {
            if member_mask(members, lane)? == mask {
                group |= 1 << lane;
            }
        }
        // Lanes with another mask execute it again, those without the guard go on behind it.
        let pc = warp.splits[current].pc;
        leave_others(warp, current, active, pc + 1);
        leave_others(warp, current, group, pc);
        if mask & warp.live & !group == 0 {
            self.sync_warp(warp, group);
            return Ok(Flow::Next);
        }
        warp.splits[current].wait = Wait::Warp(mask);
        Ok(Flow::WaitNext)
    }

    /// Lets those go on that wait for a `bar.warp.sync` of `mask`, if all its lanes do.
    pub fn complete_bar_warp(&mut self, warp: &mut Warp, mask: u32) -> bool {
        let waits = |split: &&mut Split| split.wait == Wait::Warp(mask);
        let arrived = warp.splits.iter_mut().filter(waits);
        let arrived = arrived.fold(0, |lanes, split| lanes | split.mask);
        if mask & warp.live & !arrived != 0 {
            return false;
        }
        self.sync_warp(warp, arrived);
        let waiting = warp.splits.iter_mut().filter(waits);
        waiting.for_each(|split| split.wait = Wait::Nothing);
        true
    }

    /// Every lane of the group learns of what the others have done.
    fn sync_warp(&mut self, warp: &mut Warp, group: u32) {
        let (domain, first) = (self.domain() as usize, self.number(warp, 0));
        let mut arrivals = Arrivals::new(domain);
        for lane in lanes(group) {
            arrivals.release(first + lane, &mut warp.threads[lane as usize]);
        }
        let done: Rc<Clock> = arrivals.finish();
        for lane in lanes(group) {
            let joins = &mut self.clusters[self.at.0].joins;
            joins.acquire(&mut warp.threads[lane as usize], &done);
        }
    }

    /// Instructions by which lanes see each other's registers.
    fn exchange(
        &mut self,
        inst: &'a Inst,
        warp: &mut Warp,
        current: usize,
        at: Window,
        active: u32,
    ) -> Step<Flow> {
        let Some(members) = exchange_members(&inst.op) else {
            return Ok(Flow::Next);
        };
        let members = warp.read(at, members);
        if !self.together(warp, current, active, &members)? {
            return Ok(Flow::Wait);
        }
        let mut values = Exchange::default();
        values.gather(warp, at, &inst.op, active);
        let results = values.of(&inst.op);
        results.scatter(warp, at, &inst.op, active);
        Ok(Flow::Next)
    }

    /// Lets the lanes of `members` exchange registers that have come to different instructions of one
    /// kind, if all of them have.
    pub fn exchange_apart(&mut self, warp: &mut Warp, number: usize, members: u32) -> bool {
        let Some(first) = self.inst_of(warp, &warp.splits[number]) else {
            return false;
        };
        let mut parties = Vec::new();
        let mut there = 0;
        for (party, split) in warp.splits.iter().enumerate() {
            let inst = self.inst_of(warp, split);
            if let Some(inst) = inst
                && split.wait == Wait::Converge(members)
                && same_exchange(&first.op, &inst.op)
            {
                parties.push((party, inst));
                there |= split.mask;
            }
        }
        if members & warp.live & !there != 0 {
            return false;
        }
        let mut values = Exchange::default();
        for (party, inst) in &parties {
            let (at, mask) = (warp.window(*party), warp.splits[*party].mask);
            values.gather(warp, at, &inst.op, mask);
        }
        let results = values.of(&first.op);
        for (party, inst) in parties {
            let (at, mask) = (warp.window(party), warp.splits[party].mask);
            results.scatter(warp, at, &inst.op, mask);
            let split = &mut warp.splits[party];
            split.pc += 1;
            split.wait = Wait::Nothing;
        }
        true
    }

    /// The value of a source operand in each lane.
    pub fn operand(&self, warp: &Warp, split: usize, src: Src) -> Lanes {
        warp.read(warp.window(split), src)
    }

    /// The value of a predicate operand, a bit for each lane.
    pub fn predicate(&self, warp: &Warp, split: usize, p: PredSrc) -> u32 {
        warp.predicate(warp.window(split), p)
    }

    /// Writes a register of a split's function.
    pub fn put(&self, warp: &mut Warp, split: usize, dst: Dst, active: u32, values: &Lanes) {
        warp.write(warp.window(split), dst, active, values);
    }

    /// Writes a predicate of a split's function.
    pub fn put_predicate(&self, warp: &mut Warp, split: usize, p: Reg, active: u32, held: u32) {
        warp.write_predicate(warp.window(split), p, active, held);
    }
}

/// The mask that a lane names, which must have the lane itself.
fn member_mask(members: &Lanes, lane: u32) -> Step<u32> {
    let members = members[lane as usize] as u32;
    if members >> lane & 1 == 0 {
        return Err(Fault::new(
            Check::Divergence,
            format!("expected a mask with the lane's own bit {lane}, found {members:#x}"),
        ))
        .at(lane);
    }
    Ok(members)
}

/// The lowest bytes of a value.
fn number(bytes: &[u8]) -> u64 {
    let mut buffer = [0; 8];
    buffer[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(buffer)
}

fn logic(f: Logic, a: u32, b: u32) -> u32 {
    match f {
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
    }
}

/// Where the addresses of a state space start among the generic ones.
fn window(space: Space) -> u64 {
    match space {
        Space::Shared => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Param => PARAM_WINDOW,
        _ => 0,
    }
}

/// The state space of a generic address.
pub fn space_of(address: u64) -> Space {
    if address >= PARAM_WINDOW {
        Space::Param
    } else if address >= LOCAL_WINDOW {
        Space::Local
    } else if address >= SHARED_WINDOW {
        Space::Shared
    } else {
        Space::Global
    }
}

#[allow(clippy::too_many_arguments)]
fn add_carry(
    warp: &mut Warp,
    at: Window,
    active: u32,
    ty: Ty,
    dst: Dst,
    [a, b, minus]: [&Lanes; 3],
    carry_in: bool,
    carry_out: bool,
) {
    let mut out = [0; 32];
    let mut carries = 0u32;
    let bits = ty.bits();
    for lane in 0..32 {
        let carry = i128::from(carry_in && warp.carry >> lane & 1 == 1);
        let m = mask(bits);
        let value = |x: &Lanes| i128::from(x[lane] & m);
        // The flag is the borrow of a difference.
        let borrow = if minus.iter().any(|it| *it != 0) {
            -carry
        } else {
            carry
        };
        let sum = value(a) + value(b) - value(minus) + borrow;
        out[lane] = sum as u64 & m;
        carries |= u32::from(!(0..1i128 << bits).contains(&sum)) << lane;
    }
    warp.write(at, dst, active, &out);
    if carry_out {
        warp.carry = warp.carry & !active | carries & active;
    }
}

/// Splits off the lanes that do not take part; they go on at `pc`.
fn leave_others(warp: &mut Warp, current: usize, active: u32, pc: u32) {
    let others = warp.splits[current].mask & !active;
    if others != 0 {
        let mut split = warp.splits[current].clone();
        (split.mask, split.pc) = (others, pc);
        warp.splits.push(split);
        warp.splits[current].mask = active;
    }
}

fn branch(warp: &mut Warp, current: usize, active: u32, target: u32) -> Flow {
    let next = warp.splits[current].pc + 1;
    leave_others(warp, current, active, next);
    Flow::Jump(target)
}

fn branch_table(
    warp: &mut Warp,
    current: usize,
    active: u32,
    targets: &[u32],
    indices: &Lanes,
) -> Step<Flow> {
    let first = active.trailing_zeros();
    let index = indices[first as usize];
    let Some(target) = targets.get(index as usize) else {
        return Err(Fault::new(
            Check::OutOfBounds,
            format!(
                "expected an index below the {} targets, found {index}",
                targets.len()
            ),
        ))
        .at(first);
    };
    let equal = lanes(active)
        .filter(|lane| indices[*lane as usize] == index)
        .fold(0, |mask, lane| mask | 1 << lane);
    // Lanes with another index execute the branch again; those without the guard go on behind it.
    let (pc, others) = (warp.splits[current].pc, active & !equal);
    leave_others(warp, current, active, pc + 1);
    if others != 0 {
        leave_others(warp, current, equal, pc);
    }
    Ok(Flow::Jump(*target))
}

/// The slot of lanes that have made the call before, from the same place of the same caller, and
/// have not come back: the lanes calling now may meet them in the callee.
fn slot_of_same_call(warp: &Warp, current: usize, back: u32) -> Option<u32> {
    let frames = &warp.splits[current].frames;
    warp.splits.iter().find_map(|other| {
        let callee = other.frames.strip_prefix(&frames[..])?.first()?;
        (callee.back == back).then_some(callee.slot)
    })
}

fn new_slot(warp: &mut Warp, function: u32, callee: &super::program::Function, active: u32) -> u32 {
    let free = warp
        .slots
        .iter()
        .position(|slot| slot.lanes == 0 && slot.function == function);
    let number = free.unwrap_or_else(|| {
        warp.slots.push(Slot {
            function,
            registers: warp.registers.len() as u32,
            predicates: warp.predicates.len() as u32,
            local: warp.local.len() as u32,
            lanes: 0,
        });
        let registers = warp.registers.len() + callee.registers as usize;
        warp.registers.resize(registers, [0; 32]);
        let predicates = warp.predicates.len() + callee.predicates as usize;
        warp.predicates.resize(predicates, 0);
        let local = warp.local.len() + callee.frame_bytes as usize;
        warp.local.resize(local, [0; 32]);
        warp.slots.len() - 1
    });
    warp.slots[number].lanes = active;
    number as u32
}

fn local_place(warp: &Warp, at: Window, place: Place, bytes: u32) -> Step<usize> {
    let address = match place {
        Place::Frame(offset) => at.local.wrapping_add(offset),
        Place::Local(address) => address,
        _ => 0,
    };
    let end = address.checked_add(u64::from(bytes));
    if address < 16 || end.is_none_or(|end| end > warp.local.len() as u64) {
        return Err(Fault::new(
            Check::OutOfBounds,
            format!(
                "expected {bytes} bytes of local memory, which has {}, found address {address:#x}",
                warp.local.len()
            ),
        ));
    }
    Ok(address as usize)
}

/// Whether all live lanes of the warp are here, as `.aligned` demands; otherwise the split waits.
pub fn aligned_here(warp: &mut Warp, current: usize, active: u32) -> Step<bool> {
    let here = warp.splits[current].mask;
    if active != here {
        return Err(Fault::new(
            Check::Divergence,
            format!(
                "expected all threads of the warp to execute this together, found lanes {:#x} \
                 predicated off",
                here & !active
            ),
        ));
    }
    if active == warp.live {
        return Ok(true);
    }
    warp.splits[current].wait = Wait::Converge(u32::MAX);
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_space_has_its_window() {
        for space in [Space::Shared, Space::Local, Space::Param, Space::Global] {
            assert_eq!(space_of(window(space) + 1024), space);
        }
    }
}
