//! Barriers of warps, CTAs and clusters, and what lanes exchange.

use super::super::alu::Lanes;
use super::super::check::{AtLane, Check, Fault, Step};
use super::super::machine::Machine;
use super::super::op::*;
use super::super::state::*;
use super::control::leave_others;
use super::*;

impl<'a> Machine<'a> {
    pub(super) fn bar(
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
        if let Some((f, ..)) = red {
            barrier.result.set(match f {
                BarRed::Popc => barrier.held,
                BarRed::And => u32::from(barrier.held == barrier.arrived),
                BarRed::Or => u32::from(barrier.held > 0),
            });
        }
        let result = Rc::clone(&barrier.result);
        let generation = barrier.generation;
        if *wait {
            warp.splits[current].wait = Wait::Named {
                id,
                generation,
                red: red.map(|(_, _, dst)| (dst, result)),
            };
        }
        self.complete_named(id as usize);
        Ok(if *wait { Flow::WaitNext } else { Flow::Next })
    }

    pub(super) fn complete_named(&mut self, id: usize) {
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
            // Those that waited have the old one, and may read it when others have come again.
            barrier.result = Rc::default();
            self.progress += 1;
        }
    }

    /// Writes the result of `bar.red`, which the split has passed.
    pub fn put_reduction(&self, warp: &mut Warp, split: usize, dst: Dst, result: u32) {
        let (at, active) = (warp.window(split), warp.splits[split].mask);
        if dst.bits == 1 {
            let value = if result != 0 { u32::MAX } else { 0 };
            warp.write_predicate(at, dst.reg, active, value);
        } else {
            warp.write(at, dst, active, &[u64::from(result); 32]);
        }
    }

    pub(super) fn cluster_arrive(
        &mut self,
        warp: &mut Warp,
        active: u32,
        release: bool,
    ) -> Step<()> {
        let domain = self.domain() as usize;
        let first = self.number(warp, 0);
        let agents = self.agents;
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
                arrivals.release_relaxed(first + lane, thread, agents);
            }
        }
        barrier.arrived += active.count_ones();
        self.progress += 1;
        self.complete_cluster_barrier();
        Ok(())
    }

    pub(super) fn complete_cluster_barrier(&mut self) {
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

    pub(super) fn cluster_wait(
        &mut self,
        warp: &mut Warp,
        current: usize,
        active: u32,
    ) -> Step<Flow> {
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

    /// The lanes with the mask of the first, if all that it names are here; otherwise they wait for the others.
    pub(super) fn together(
        &self,
        warp: &mut Warp,
        current: usize,
        active: u32,
        members: &Lanes,
    ) -> Step<Option<u32>> {
        let (mask, group) = same_mask(members, active)?;
        let complete = mask & warp.live & !group == 0;
        if complete && group == active {
            return Ok(Some(group));
        }
        leave_behind(warp, current, active, group);
        if complete {
            return Ok(Some(group));
        }
        warp.splits[current].wait = Wait::Converge(mask);
        Ok(None)
    }

    /// `bar.warp.sync`: lanes may come to any of those with their mask.
    pub(super) fn bar_warp(
        &mut self,
        warp: &mut Warp,
        current: usize,
        active: u32,
        members: &Lanes,
    ) -> Step<Flow> {
        let (mask, group) = same_mask(members, active)?;
        leave_behind(warp, current, active, group);
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
    pub(super) fn sync_warp(&mut self, warp: &mut Warp, group: u32) {
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
    pub(super) fn exchange(
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
        let Some(active) = self.together(warp, current, active, &members)? else {
            return Ok(Flow::Wait);
        };
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

/// The mask that the first lane names, and the lanes that name the same.
fn same_mask(members: &Lanes, active: u32) -> Step<(u32, u32)> {
    let mask = member_mask(members, active.trailing_zeros())?;
    let mut group = 0;
    for lane in lanes(active) {
        if member_mask(members, lane)? == mask {
            group |= 1 << lane;
        }
    }
    Ok((mask, group))
}

/// Lanes with another mask execute it again, those without the guard go on behind it.
fn leave_behind(warp: &mut Warp, current: usize, active: u32, group: u32) {
    let pc = warp.splits[current].pc;
    leave_others(warp, current, active, pc + 1);
    leave_others(warp, current, group, pc);
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
