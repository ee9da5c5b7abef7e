//! `shfl`, `vote`, `match`, `redux`, `elect`: lanes that see each other's registers.

use super::alu::{self, Lanes};
use super::op::*;
use super::state::*;
use super::step::Window;

/// The members' mask of such an instruction.
pub fn exchange_members(op: &Op) -> Option<Src> {
    match op {
        Op::Shfl { members, .. }
        | Op::Vote { members, .. }
        | Op::Match { members, .. }
        | Op::Redux { members, .. }
        | Op::Elect { members, .. } => Some(*members),
        _ => None,
    }
}

/// Whether two instructions have the same opcode and qualifiers, so that lanes at one meet those at the other.
pub fn same_exchange(one: &Op, other: &Op) -> bool {
    match (one, other) {
        (Op::Shfl { mode: a, .. }, Op::Shfl { mode: b, .. }) => a == b,
        (Op::Vote { mode: a, .. }, Op::Vote { mode: b, .. }) => a == b,
        (
            Op::Match { all, ty, .. },
            Op::Match {
                all: all_of_other,
                ty: ty_of_other,
                ..
            },
        ) => (all, ty) == (all_of_other, ty_of_other),
        (
            Op::Redux { f, ty, .. },
            Op::Redux {
                f: f_of_other,
                ty: ty_of_other,
                ..
            },
        ) => (f, ty) == (f_of_other, ty_of_other),
        (Op::Elect { .. }, Op::Elect { .. }) => true,
        _ => false,
    }
}

/// What each lane brings.
#[derive(Default)]
pub struct Exchange {
    /// The lanes that take part.
    active: u32,
    members: Lanes,
    a: Lanes,
    b: Lanes,
    c: Lanes,
    p: u32,
}

/// What each lane gets.
pub struct Results {
    values: Lanes,
    held: u32,
}

fn take(into: &mut Lanes, from: &Lanes, active: u32) {
    for lane in lanes(active) {
        into[lane as usize] = from[lane as usize];
    }
}

impl Exchange {
    /// Takes the operands of some lanes.
    pub fn gather(&mut self, warp: &Warp, at: Window, op: &Op, active: u32) {
        self.active |= active;
        if let Some(members) = exchange_members(op) {
            take(&mut self.members, &warp.read(at, members), active);
        }
        match op {
            Op::Shfl { a, b, c, .. } => {
                take(&mut self.a, &warp.read(at, *a), active);
                take(&mut self.b, &warp.read(at, *b), active);
                take(&mut self.c, &warp.read(at, *c), active);
            }
            Op::Vote { a, .. } => self.p |= warp.predicate(at, *a) & active,
            Op::Match { a, .. } | Op::Redux { a, .. } => {
                take(&mut self.a, &warp.read(at, *a), active);
            }
            _ => {}
        }
    }

    /// The lanes that a lane exchanges with.
    fn group(&self, lane: u32) -> u32 {
        self.members[lane as usize] as u32 & self.active
    }

    /// The value and the predicate that each lane gets.
    pub fn of(&self, op: &Op) -> Results {
        let mut results = Results {
            values: [0; 32],
            held: 0,
        };
        for lane in lanes(self.active) {
            let (value, holds) = self.of_lane(op, lane);
            results.values[lane as usize] = value;
            results.held |= u32::from(holds) << lane;
        }
        results
    }

    fn of_lane(&self, op: &Op, lane: u32) -> (u64, bool) {
        let group = self.group(lane);
        let own = self.a[lane as usize];
        match op {
            Op::Shfl { mode, .. } => {
                let (b, c) = (self.b[lane as usize] as u32, self.c[lane as usize] as u32);
                let (source, in_range) = shuffle_source(*mode, lane, b, c);
                (self.a[source as usize], in_range)
            }
            Op::Vote { mode, .. } => {
                let yes = self.p & group;
                let holds = match mode {
                    Vote::All => yes == group,
                    Vote::Any => yes != 0,
                    _ => yes == 0 || yes == group,
                };
                (u64::from(yes), holds)
            }
            Op::Match { all, ty, .. } => {
                let differs = |other: u64| (other ^ own) & mask(ty.bits()) != 0;
                let equal = lanes(group)
                    .filter(|other| !differs(self.a[*other as usize]))
                    .fold(0u32, |bits, other| bits | 1 << other);
                let whole = equal == group;
                (u64::from(if *all && !whole { 0 } else { equal }), whole)
            }
            Op::Redux { f, ty, .. } => {
                let others = lanes(group).map(|other| self.a[other as usize]);
                let sum = others.reduce(|sum, value| {
                    let mut out = [0; 32];
                    alu::binary(
                        *f,
                        *ty,
                        FloatMode::default(),
                        &[sum; 32],
                        &[value; 32],
                        &mut out,
                    );
                    out[0]
                });
                (sum.unwrap_or_default(), false)
            }
            _ => {
                let leader = group.trailing_zeros();
                (u64::from(leader), leader == lane)
            }
        }
    }
}

impl Results {
    /// Writes the results of some lanes.
    pub fn scatter(&self, warp: &mut Warp, at: Window, op: &Op, active: u32) {
        let (dst, p) = match op {
            Op::Shfl { dst, p, .. } | Op::Match { dst, p, .. } => (Some(*dst), *p),
            Op::Vote { dst, p, .. } => (*dst, *p),
            Op::Redux { dst, .. } => (Some(*dst), None),
            Op::Elect { dst, p, .. } => (*dst, Some(*p)),
            _ => (None, None),
        };
        if let Some(dst) = dst {
            warp.write(at, dst, active, &self.values);
        }
        if let Some(p) = p {
            warp.write_predicate(at, p, active, self.held);
        }
    }
}

/// The lane that a lane reads in a shuffle, and whether it is in range.
fn shuffle_source(mode: Shuffle, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (segment, clamp) = (c >> 8 & 31, c & 31);
    let (b, max) = (b & 31, lane & segment | clamp & !segment);
    let min = lane & segment;
    let (source, in_range) = match mode {
        Shuffle::Up => {
            let source = lane.wrapping_sub(b);
            (source, source as i32 >= max as i32)
        }
        Shuffle::Down => (lane + b, lane + b <= max),
        Shuffle::Bfly => (lane ^ b, lane ^ b <= max),
        Shuffle::Idx => {
            let source = min | b & !segment;
            (source, source <= max)
        }
    };
    if in_range {
        (source & 31, true)
    } else {
        (lane, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_stays_in_its_segment() {
        assert_eq!(shuffle_source(Shuffle::Down, 31, 1, 0x1f), (31, false));
        assert_eq!(shuffle_source(Shuffle::Down, 3, 4, 0x1f), (7, true));
        // Segments of 8 lanes.
        let c = 0x1807;
        assert_eq!(shuffle_source(Shuffle::Down, 7, 1, c), (7, false));
        assert_eq!(shuffle_source(Shuffle::Idx, 13, 2, 0x181f), (10, true));
        assert_eq!(shuffle_source(Shuffle::Up, 2, 3, 0), (2, false));
        assert_eq!(shuffle_source(Shuffle::Bfly, 5, 1, 0x1f), (4, true));
    }
}
