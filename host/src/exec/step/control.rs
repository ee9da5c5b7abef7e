//! Branches, calls, and the end of threads.

use super::super::alu::Lanes;
use super::super::check::{AtLane, Check, Fault, Step};
use super::super::machine::Machine;
use super::super::op::*;
use super::super::program::Function;
use super::super::state::*;
use super::*;

impl<'a> Machine<'a> {
    pub(super) fn call(
        &mut self,
        inst: &Inst,
        warp: &mut Warp,
        current: usize,
        active: u32,
    ) -> Flow {
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

    pub(super) fn ret(&mut self, warp: &mut Warp, current: usize, active: u32) -> Flow {
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

    pub(super) fn exit(&mut self, warp: &mut Warp, current: usize, active: u32) -> Flow {
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
}

/// Splits off the lanes that do not take part; they go on at `pc`.
pub(super) fn leave_others(warp: &mut Warp, current: usize, active: u32, pc: u32) {
    let others = warp.splits[current].mask & !active;
    if others != 0 {
        let mut split = warp.splits[current].clone();
        (split.mask, split.pc) = (others, pc);
        warp.splits.push(split);
        warp.splits[current].mask = active;
    }
}

pub(super) fn branch(warp: &mut Warp, current: usize, active: u32, target: u32) -> Flow {
    let next = warp.splits[current].pc + 1;
    leave_others(warp, current, active, next);
    Flow::Jump(target)
}

pub(super) fn branch_table(
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

fn new_slot(warp: &mut Warp, function: u32, callee: &Function, active: u32) -> u32 {
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
