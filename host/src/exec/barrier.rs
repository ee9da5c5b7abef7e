//! `mbarrier.*`: arrivals, transactions, phases.

use super::alu::Lanes;
use super::check::{AtLane, Check, Fault, Step};
use super::clock::Arrivals;
use super::machine::Machine;
use super::memory::{Access, Order};
use super::op::*;
use super::state::*;
use super::step::Flow;

/// The largest arrival count, and the largest transaction count either way.
pub const MOST: u32 = (1 << 20) - 1;

/// Bits of a token for the address (in units of 8 bytes) and for the pending count.
const ADDRESS_BITS: u32 = 21;
const PENDING_BITS: u32 = 20;

/// What `mbarrier.arrive` returns: phase, pending count and address.
fn token(phase: u64, pending: u32, offset: u32) -> u64 {
    phase << (ADDRESS_BITS + PENDING_BITS)
        | u64::from(pending) << ADDRESS_BITS
        | u64::from(offset / 8)
}

/// How often a `try_wait` on an incomplete phase returns false at once: one in so many.
const EARLY_RETURN: usize = 8;

/// What a wait finds.
enum Found {
    Complete,
    Incomplete,
}

impl<'a> Machine<'a> {
    /// Executes an operation on barriers.
    pub fn mbarrier(
        &mut self,
        inst: &'a Inst,
        warp: &mut Warp,
        current: usize,
        active: u32,
    ) -> Step<Flow> {
        match &inst.op {
            Op::MbarPending { dst, token } => {
                let tokens = self.operand(warp, current, *token);
                let pending = tokens.map(|it| it >> ADDRESS_BITS & mask(PENDING_BITS));
                self.put(warp, current, *dst, active, &pending);
            }
            Op::MbarLayout {
                space,
                addr,
                p,
                layout,
            } => {
                let addresses = self.addresses(warp, current, addr);
                for lane in lanes(active) {
                    let (rank, offset) = self.barrier_place(&addresses, lane, *space).at(lane)?;
                    self.usable(warp, lane, rank, offset).at(lane)?;
                }
                let held = if *layout == 0 { active } else { 0 };
                self.put_predicate(warp, current, *p, active, held);
            }
            Op::MbarWait { .. } => return self.wait_phase(inst, warp, current, active),
            Op::MbarInit { space, addr, count } => {
                let counts = self.operand(warp, current, *count);
                let addresses = self.addresses(warp, current, addr);
                for lane in lanes(active) {
                    let (rank, offset) = self.barrier_place(&addresses, lane, *space).at(lane)?;
                    let count = counts[lane as usize] as u32;
                    self.init(warp, lane, rank, offset, count, inst.line)
                        .at(lane)?;
                }
            }
            Op::MbarInval { space, addr } => {
                let addresses = self.addresses(warp, current, addr);
                for lane in lanes(active) {
                    let (rank, offset) = self.barrier_place(&addresses, lane, *space).at(lane)?;
                    self.usable(warp, lane, rank, offset).at(lane)?;
                    let cta = &mut self.clusters[self.at.0].ctas[rank as usize];
                    cta.barriers.remove(&offset);
                    cta.invalidated.insert(offset, inst.line);
                    cta.shadow.mark_barrier(offset as usize, false);
                    self.progress += 1;
                }
            }
            Op::MbarExpectTx {
                space,
                addr,
                tx,
                complete,
            } => {
                let tx = self.operand(warp, current, *tx);
                let addresses = self.addresses(warp, current, addr);
                for lane in lanes(active) {
                    let (rank, offset) = self.barrier_place(&addresses, lane, *space).at(lane)?;
                    self.usable(warp, lane, rank, offset).at(lane)?;
                    let tx = i64::from(tx[lane as usize] as u32);
                    let tx = if *complete { -tx } else { tx };
                    let barrier = self.barrier(rank, offset)?;
                    add_transactions(barrier, tx).at(lane)?;
                    barrier.settle();
                    self.progress += 1;
                }
            }
            Op::MbarArrive { after_copies, .. } => {
                if *after_copies && !self.async_copies_done(warp, current, active, None) {
                    return Ok(Flow::Wait);
                }
                self.arrive(inst, warp, current, active)?;
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    /// An address operand in each lane.
    pub fn addresses(&self, warp: &Warp, current: usize, addr: &Addr) -> Lanes {
        let bases = self.operand(warp, current, addr.base);
        bases.map(|base| base.wrapping_add_signed(addr.offset))
    }

    fn barrier_place(&self, addresses: &Lanes, lane: u32, space: Space) -> Step<(u32, u32)> {
        let address = addresses[lane as usize];
        match self.resolve(space, address, 8, 8)? {
            Place::Shared { rank, offset } => Ok((rank, offset)),
            _ => Err(Fault::new(
                Check::BarrierState,
                "expected an mbarrier in shared memory, found an address elsewhere",
            )),
        }
    }

    /// The barrier at a shared address.
    pub fn barrier(&mut self, rank: u32, offset: u32) -> Step<&mut Mbarrier> {
        let cta = &mut self.clusters[self.at.0].ctas[rank as usize];
        let invalidated = cta.invalidated.get(&offset);
        match cta.barriers.get_mut(&offset) {
            Some(barrier) => Ok(barrier),
            None => Err(Fault::new(
                Check::BarrierState,
                match invalidated {
                    Some(line) => format!(
                        "expected a valid mbarrier at shared address {offset:#x}, found one that was \
                         invalidated at PTX line {line}"
                    ),
                    None => format!(
                        "expected an mbarrier at shared address {offset:#x}, found none: nothing has \
                         initialised it yet"
                    ),
                },
            )),
        }
    }

    /// Fails unless the barrier is valid and the thread has learnt of its initialisation.
    fn usable(&mut self, warp: &Warp, lane: u32, rank: u32, offset: u32) -> Step<()> {
        let barrier = self.barrier(rank, offset)?;
        if barrier.published || !self.options.races {
            return Ok(());
        }
        let cta = &mut self.clusters[self.at.0].ctas[rank as usize];
        let Some((who, tick, line)) = cta.shadow.last_write(offset as usize) else {
            return Ok(());
        };
        let order = self.knowledge(self.number(warp, lane), &warp.threads[lane as usize]);
        if order.happened(who, tick) {
            return Ok(());
        }
        let cure = if rank == self.at.1 as u32 {
            "expected a barrier of the CTA between"
        } else {
            "expected `fence.mbarrier_init.release.cluster` by the initialising thread and a barrier \
             of the cluster between"
        };
        Err(Fault::new(
            Check::Unpublished,
            format!(
                "this use and the initialisation at PTX line {line} by {}: {cure}",
                order.name(who)
            ),
        ))
    }

    fn init(
        &mut self,
        warp: &Warp,
        lane: u32,
        rank: u32,
        offset: u32,
        count: u32,
        line: u32,
    ) -> Step<()> {
        if !(1..=MOST).contains(&count) {
            return Err(Fault::new(
                Check::ArrivalCount,
                format!("expected an arrival count from 1 to {MOST}, found {count}"),
            ));
        }
        let domain = self.domain() as usize;
        if let Ok(barrier) = self.barrier(rank, offset) {
            return Err(Fault::new(
                Check::Reinitialised,
                format!(
                    "expected memory without a valid mbarrier, found one initialised at PTX line {} \
                     that is in phase {} with {} of {} arrivals missing: expected `mbarrier.inval` \
                     first",
                    barrier.init_line, barrier.phase, barrier.pending, barrier.expected
                ),
            ));
        }
        let number = self.number(warp, lane);
        let thread = &warp.threads[lane as usize];
        let access = Access {
            who: self.who(warp, lane),
            tick: thread.own,
            line,
            write: true,
            strong: false,
            asynchronous: false,
            same: false,
        };
        let order = self.knowledge(number, thread);
        self.touch(Place::Shared { rank, offset }, 8, access, &order)?;
        let races = self.options.races;
        let mut arrivals = Arrivals::new(domain);
        let cta = &mut self.clusters[self.at.0].ctas[rank as usize];
        if races {
            cta.shadow.mark_barrier(offset as usize, true);
        }
        cta.invalidated.remove(&offset);
        cta.barriers.insert(
            offset,
            Mbarrier {
                expected: count,
                pending: count,
                tx: 0,
                phase: 0,
                done: arrivals.finish(),
                arrivals,
                init_line: line,
                fenced: false,
                published: false,
                dropped: Vec::new(),
                arrived: Vec::new(),
                shared_turns: false,
                seen: Vec::new(),
            },
        );
        self.progress += 1;
        Ok(())
    }

    fn arrive(&mut self, inst: &'a Inst, warp: &mut Warp, current: usize, active: u32) -> Step<()> {
        let Op::MbarArrive {
            space,
            addr,
            dst,
            count,
            expect,
            drop,
            complete,
            release,
            ..
        } = &inst.op
        else {
            return Ok(());
        };
        let counts = self.operand(warp, current, *count);
        let expected = expect.map(|tx| self.operand(warp, current, tx));
        let mut tokens = [0; 32];
        let agents = self.agents;
        let addresses = self.addresses(warp, current, addr);
        for lane in lanes(active) {
            let (rank, offset) = self.barrier_place(&addresses, lane, *space).at(lane)?;
            self.usable(warp, lane, rank, offset).at(lane)?;
            let number = self.number(warp, lane);
            let count = counts[lane as usize] as u32;
            let tx = expected.map_or(0, |tx| i64::from(tx[lane as usize] as u32));
            let thread = &mut warp.threads[lane as usize];
            let barrier = self.barrier(rank, offset)?;
            tokens[lane as usize] = token(barrier.phase, barrier.pending, offset);
            barrier.note_participant(number, count);
            let dropped = barrier.dropped.iter().find(|it| it.0 == number);
            if let Some((_, line)) = dropped
                && !barrier.shared_turns
            {
                return Err(Fault::new(
                    Check::Drop,
                    format!(
                        "expected no arrival of a thread that dropped out at PTX line {line}: \
                         `arrive_drop` lowers the count for all later phases, not for one"
                    ),
                ))
                .at(lane);
            }
            if count == 0 || count > barrier.pending {
                return Err(Fault::new(
                    Check::ArrivalCount,
                    format!(
                        "expected 1 to {} arrivals, which phase {} still misses of {}, found {count}",
                        barrier.pending, barrier.phase, barrier.expected
                    ),
                ))
                .at(lane);
            }
            add_transactions(barrier, tx).at(lane)?;
            if *release {
                barrier.arrivals.release(number, thread);
            } else {
                barrier.arrivals.release_relaxed(number, thread, agents);
            }
            barrier.pending -= count;
            if *drop {
                barrier.expected -= count;
                barrier.dropped.push((number, inst.line));
            }
            if barrier.settle() && !complete {
                return Err(Fault::new(
                    Check::ArrivalCount,
                    "expected an arrival that leaves the phase incomplete, as `.noComplete` promises",
                ))
                .at(lane);
            }
            self.progress += 1;
        }
        if let Some(dst) = dst {
            self.put(warp, current, *dst, active, &tokens);
        }
        Ok(())
    }

    fn wait_phase(
        &mut self,
        inst: &'a Inst,
        warp: &mut Warp,
        current: usize,
        active: u32,
    ) -> Step<Flow> {
        let Op::MbarWait {
            space,
            addr,
            p,
            report,
            wait,
            suspends,
            acquire,
        } = &inst.op
        else {
            return Ok(Flow::Next);
        };
        let (WaitFor::Token(asked) | WaitFor::Parity(asked)) = wait;
        let asked = self.operand(warp, current, *asked);
        let by_parity = matches!(wait, WaitFor::Parity(_));
        let mut held = 0;
        let mut first = None;
        let addresses = self.addresses(warp, current, addr);
        for lane in lanes(active) {
            let (rank, offset) = self.barrier_place(&addresses, lane, *space).at(lane)?;
            self.usable(warp, lane, rank, offset).at(lane)?;
            let asked = asked[lane as usize];
            let number = self.number(warp, lane);
            let barrier = self.barrier(rank, offset)?;
            let found = if by_parity {
                ask_parity(barrier, asked)
            } else {
                ask_token(barrier, offset, asked)
            };
            match found.at(lane)? {
                Found::Complete => {
                    held |= 1 << lane;
                    if by_parity {
                        let (phase, number) = (barrier.phase, number as usize);
                        let seen = &mut barrier.seen;
                        seen.resize(seen.len().max(number + 1), 0);
                        seen[number] = phase;
                    }
                    let done = barrier.done.clone();
                    let joins = &mut self.clusters[self.at.0].joins;
                    let thread = &mut warp.threads[lane as usize];
                    if *acquire {
                        joins.acquire(thread, &done);
                    } else {
                        joins.see(thread, &done);
                    }
                }
                Found::Incomplete => {
                    let parity = by_parity.then_some(asked as u32);
                    first.get_or_insert((rank, offset, barrier.phase, parity));
                }
            }
        }
        let give_up = std::mem::take(&mut warp.splits[current].give_up);
        if let Some((rank, offset, phase, parity)) = first
            && held == 0
        {
            if *suspends && !give_up && !self.chooser.one_in(EARLY_RETURN) {
                warp.splits[current].wait = Wait::Phase {
                    rank,
                    offset,
                    phase,
                    parity,
                };
                return Ok(Flow::Wait);
            }
            if !*suspends {
                warp.splits[current].wait = Wait::Poll {
                    progress: self.progress,
                    rank,
                    offset,
                    phase,
                    parity,
                };
            }
        }
        self.put_predicate(warp, current, *p, active, held);
        if let Some(report) = report {
            self.put_predicate(warp, current, *report, active, 0);
        }
        Ok(Flow::Next)
    }
}

fn ask_parity(barrier: &Mbarrier, parity: u64) -> Step<Found> {
    if parity > 1 {
        return Err(Fault::new(
            Check::StalePhase,
            format!("expected the parity 0 or 1, found {parity}"),
        ));
    }
    Ok(if barrier.phase & 1 != parity {
        Found::Complete
    } else {
        Found::Incomplete
    })
}

fn ask_token(barrier: &Mbarrier, offset: u32, asked: u64) -> Step<Found> {
    let now = token(barrier.phase, 0, 0) >> (ADDRESS_BITS + PENDING_BITS);
    let phase = asked >> (ADDRESS_BITS + PENDING_BITS);
    if asked & mask(ADDRESS_BITS) != u64::from(offset / 8) {
        return Err(Fault::new(
            Check::StalePhase,
            format!(
                "expected a state that an arrival on this mbarrier (shared address {offset:#x}) \
                 returned, found one of address {:#x}",
                (asked & mask(ADDRESS_BITS)) * 8
            ),
        ));
    }
    if phase == now {
        Ok(Found::Incomplete)
    } else if phase + 1 == now {
        Ok(Found::Complete)
    } else {
        Err(Fault::new(
            Check::StalePhase,
            format!(
                "expected the state of phase {now}, which is under way, or of the phase before it, \
                 found that of phase {phase}"
            ),
        ))
    }
}

/// Adds to the transaction count of the current phase.
pub fn add_transactions(barrier: &mut Mbarrier, bytes: i64) -> Step<()> {
    let count = barrier.tx + bytes;
    if count.unsigned_abs() > u64::from(MOST) {
        return Err(Fault::new(
            Check::TransactionCount,
            format!(
                "expected a transaction count from -{MOST} to {MOST}, found {} and {bytes} more, \
                 which are {count}",
                barrier.tx
            ),
        ));
    }
    barrier.tx = count;
    Ok(())
}
