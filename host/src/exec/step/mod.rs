//! One instruction of one split of a warp.

mod control;
mod memory;
mod registers;
mod sync;

use std::rc::Rc;

use self::control::{branch, branch_table};
pub use self::sync::aligned_here;
use super::alu::Lanes;
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

    fn multiplies(&self, who: u32) -> bool {
        who % self.domain >= self.agents + AGENTS
    }

    fn name(&self, who: u32) -> String {
        let number = who % self.domain;
        if self.multiplies(who) {
            return "a multiplication".to_owned();
        }
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

    /// The first register of the function that a split is in.
    pub fn first_register(&self, split: usize) -> usize {
        self.window(split).registers
    }

    pub fn read(&self, at: Window, src: Src) -> Lanes {
        match src {
            Src::Reg(reg) => {
                let register = at.registers + reg as usize;
                if let Some(flight) = &self.flight {
                    flight.access(register, false);
                }
                self.registers[register]
            }
            Src::Imm(value) => [value; 32],
        }
    }

    pub fn write(&mut self, at: Window, dst: Dst, active: u32, values: &Lanes) {
        let register = at.registers + dst.reg as usize;
        if let Some(flight) = &self.flight {
            flight.access(register, true);
        }
        let register = &mut self.registers[register];
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
            Op::Mma(mma) => return self.mma(mma, warp, current, active),
            Op::MovMatrix { dst, a } => {
                return self.movmatrix(*dst, *a, warp, current, active);
            }
            Op::BulkCopy { .. }
            | Op::TensorCopy { .. }
            | Op::CpAsync { .. }
            | Op::StAsync { .. }
            | Op::BulkCommit
            | Op::CpAsyncCommit
            | Op::BulkWait { .. }
            | Op::CpAsyncWait { .. } => return self.copy(inst, warp, current, active),
            Op::WgmmaFence | Op::Wgmma(_) | Op::WgmmaCommit | Op::WgmmaWait { .. } => {
                return self.wgmma(inst, warp, current, active);
            }
            _ => {}
        }
        Ok(Flow::Next)
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
