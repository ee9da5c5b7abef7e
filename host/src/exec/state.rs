//! The state of a running grid: clusters, CTAs, warps, barriers and copies under way.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use super::alu::Lanes;
use super::clock::{Arrivals, Clock, Joins, ThreadClock};
use super::memory::Shadow;
use super::op::{AtomOp, Dst, Ty};
use super::tensor::{Chunk, Layout};
use super::wgmma::{Flight, Warpgroup};

/// Numbers for copies in the clocks of a cluster; two for each copy under way.
pub const AGENTS: u32 = 64;

/// CTAs that share their memory.
pub struct Cluster {
    /// Its number in the grid.
    pub number: u32,
    pub ctas: Vec<Cta>,
    pub joins: Joins,
    pub copies: Vec<Copy>,
    /// The copies issued so far.
    pub issued: u64,
    pub barrier: ClusterBarrier,
    /// What strong accesses released, by address.
    pub locations: HashMap<(u32, u64), Rc<Clock>>,
}

/// `barrier.cluster`.
#[derive(Default)]
pub struct ClusterBarrier {
    pub arrived: u32,
    pub generation: u64,
    pub arrivals: Option<Arrivals>,
    pub done: Option<Rc<Clock>>,
}

/// A CTA.
pub struct Cta {
    pub ctaid: [u32; 3],
    pub data: Vec<u8>,
    pub shadow: Shadow,
    pub barriers: BTreeMap<u32, Mbarrier>,
    /// Barriers that were invalidated, and where.
    pub invalidated: HashMap<u32, u32>,
    pub named: Vec<NamedBarrier>,
    pub warps: Vec<Warp>,
    /// None if no kernel of the module has them multiply.
    pub warpgroups: Vec<Warpgroup>,
    pub live_threads: u32,
}

/// One of the 16 barriers of `bar`.
#[derive(Default)]
pub struct NamedBarrier {
    pub arrived: u32,
    pub expected: u32,
    pub generation: u64,
    pub arrivals: Option<Arrivals>,
    pub done: Option<Rc<Clock>>,
    /// How many predicates of `bar.red` held.
    pub held: u32,
    /// What `bar.red` gives those that are there; each generation has its own.
    pub result: Rc<Cell<u32>>,
    pub line: u32,
}

/// An mbarrier object.
pub struct Mbarrier {
    /// Arrivals of each phase.
    pub expected: u32,
    /// Arrivals still missing in this phase.
    pub pending: u32,
    /// Bytes still expected in this phase.
    pub tx: i64,
    /// How many phases are complete.
    pub phase: u64,
    pub arrivals: Arrivals,
    /// What the last phase published.
    pub done: Rc<Clock>,
    pub init_line: u32,
    /// `fence.mbarrier_init` has followed the initialisation.
    pub fenced: bool,
    /// A cluster barrier has followed that fence.
    pub published: bool,
    /// Threads that dropped out: number in the cluster, line.
    pub dropped: Vec<(u32, u32)>,
    /// For each thread of the cluster, one more than the phase of its last arrival.
    pub arrived: Vec<u64>,
    /// A thread has arrived more than once in a phase, so an arrival does not stand for a thread.
    pub shared_turns: bool,
    /// For each thread of the cluster, how many phases its last successful wait by parity saw
    /// complete; empty before the first.
    pub seen: Vec<u64>,
}

impl Mbarrier {
    /// Notes who arrives, before the arrival.
    pub fn note_participant(&mut self, number: u32, count: u32) {
        let number = number as usize;
        self.arrived.resize(self.arrived.len().max(number + 1), 0);
        let last = std::mem::replace(&mut self.arrived[number], self.phase + 1);
        self.shared_turns |= count > 1 || last == self.phase + 1;
    }

    /// Ends the phase if nothing is missing.
    pub fn settle(&mut self) -> bool {
        let complete = self.pending == 0 && self.tx == 0;
        if complete {
            self.phase += 1;
            self.pending = self.expected;
            self.done = self.arrivals.finish();
        }
        complete
    }
}

/// Where a copy reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An allocation of global memory.
    Global {
        allocation: usize,
        offset: usize,
    },
    /// Shared memory of a CTA of the cluster, by rank.
    Shared {
        rank: u32,
        offset: u32,
    },
    Local(u64),
    Param(u64),
    Frame(u64),
}

impl Place {
    /// The place `bytes` further back.
    pub fn minus(self, bytes: u32) -> Self {
        match self {
            Self::Global { allocation, offset } => Self::Global {
                allocation,
                offset: offset.wrapping_sub(bytes as usize),
            },
            Self::Shared { rank, offset } => Self::Shared {
                rank,
                offset: offset.wrapping_sub(bytes),
            },
            other => other,
        }
    }

    /// The place `bytes` further on.
    pub fn plus(self, bytes: u32) -> Self {
        match self {
            Self::Global { allocation, offset } => Self::Global {
                allocation,
                offset: offset.wrapping_add(bytes as usize),
            },
            Self::Shared { rank, offset } => Self::Shared {
                rank,
                offset: offset.wrapping_add(bytes),
            },
            other => other,
        }
    }
}

/// Where the bytes of a copy come from.
#[derive(Clone)]
pub enum Source {
    Memory(Place),
    /// Registers, of `st.async`.
    Data(Vec<u8>),
}

/// From where to where a copy goes.
#[derive(Clone)]
pub enum Route {
    Bytes {
        source: Source,
        target: Place,
    },
    /// A tile of a tensor to shared memory, or from there.
    Tile {
        tile: Rc<Tile>,
        rank: u32,
        load: bool,
    },
}

/// A tile or a column of a tensor, and its place in shared memory.
pub struct Tile {
    pub layout: Layout,
    pub corner: Vec<i32>,
    /// What a copy of a column adds to each pixel.
    pub offsets: Vec<u16>,
    pub shared: u32,
}

impl Tile {
    /// The bytes from `at`, 16 of them.
    pub fn chunk(&self, at: u32) -> Chunk {
        self.layout
            .chunk(&self.corner, &self.offsets, self.shared, at)
    }
}

impl Route {
    /// The CTAs whose shared memory it reads or writes, by rank.
    pub fn ranks(&self) -> impl Iterator<Item = u32> {
        let of = |place: &Place| match place {
            Place::Shared { rank, .. } => Some(*rank),
            _ => None,
        };
        let ranks = match self {
            Self::Bytes { source, target } => match source {
                Source::Memory(place) => [of(place), of(target)],
                Source::Data(_) => [None, of(target)],
            },
            Self::Tile { rank, .. } => [Some(*rank), None],
        };
        ranks.into_iter().flatten()
    }
}

/// A copy under way.
pub struct Copy {
    pub id: u64,
    pub route: Route,
    /// What has not been moved yet: offset and length.
    pub pieces: Vec<(u32, u32)>,
    /// The bytes that are really moved; the others count all the same.
    pub moved: Range<u32>,
    /// The barrier that counts the bytes: rank and offset.
    pub mbarrier: Option<(u32, u32)>,
    pub reduce: Option<(AtomOp, Ty)>,
    /// Which bytes of each 16 are written.
    pub byte_mask: u16,
    /// The copy's number in the clocks for its reads; its writes have the next one.
    pub agent: u32,
    pub tick: u32,
    pub line: u32,
}

/// A copy that its thread waits for by group.
#[derive(Clone, Copy)]
pub struct Issued {
    pub id: u64,
    pub agent: u32,
    pub tick: u32,
}

/// The groups of one thread.
#[derive(Default)]
pub struct Groups {
    pub open: Vec<Issued>,
    pub committed: VecDeque<Vec<Issued>>,
}

/// A warp.
#[derive(Default)]
pub struct Warp {
    pub number: u32,
    /// Lanes with a thread that has not exited.
    pub live: u32,
    pub registers: Vec<Lanes>,
    pub predicates: Vec<u32>,
    pub slots: Vec<Slot>,
    pub local: Vec<[u8; 32]>,
    pub splits: Vec<Split>,
    pub threads: Vec<ThreadClock>,
    /// Carry flags.
    pub carry: u32,
    pub bulk_groups: BTreeMap<u32, Groups>,
    pub async_groups: BTreeMap<u32, Groups>,
    /// What the warp has multiply; nothing if no kernel of the module does.
    pub flight: Option<Box<Flight>>,
    /// The cluster barrier's generation at the last arrival, by lane.
    pub cluster_arrived: BTreeMap<u32, u64>,
}

impl Warp {
    /// Its multiplications.
    pub fn flight(&mut self) -> &mut Flight {
        self.flight.get_or_insert_default()
    }

    /// What the threads know together. The first has this number.
    pub fn knowledge(&self, number: u32) -> Clock {
        let mut clock = (*self.threads[0].base).clone();
        let mut last = &self.threads[0].base;
        for (lane, thread) in self.threads.iter().enumerate() {
            if !Rc::ptr_eq(last, &thread.base) {
                clock.join(&thread.base);
                last = &thread.base;
            }
            let own = number as usize + lane;
            clock.happened[own] = thread.own;
            clock.fenced[own] = clock.fenced[own].max(thread.fenced);
        }
        clock
    }
}

/// Registers and local memory of one call.
#[derive(Clone, Copy)]
pub struct Slot {
    pub function: u32,
    pub registers: u32,
    pub predicates: u32,
    pub local: u32,
    /// Lanes that are in the call.
    pub lanes: u32,
}

/// One call on a split's stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    pub slot: u32,
    /// Where the caller goes on.
    pub back: u32,
}

/// Lanes of a warp that are at the same place.
#[derive(Clone)]
pub struct Split {
    pub mask: u32,
    pub pc: u32,
    pub frames: Vec<Frame>,
    pub wait: Wait,
    /// The next `try_wait` gives up instead of suspending.
    pub give_up: bool,
}

/// What a split waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Wait {
    Nothing,
    /// The lanes of a mask must be at the same instruction, or at one that exchanges registers alike.
    Converge(u32),
    /// The lanes of a mask must be at a `bar.warp.sync` of that mask, which this one has passed.
    Warp(u32),
    Named {
        id: u32,
        generation: u64,
        /// Where `bar.red` puts its result.
        red: Option<(Dst, Rc<Cell<u32>>)>,
    },
    /// A phase to end: CTA rank, address, phase, and the parity that was asked for.
    Phase {
        rank: u32,
        offset: u32,
        phase: u64,
        parity: Option<u32>,
    },
    /// A poll that failed when so much had happened.
    Poll {
        progress: u64,
        rank: u32,
        offset: u32,
        phase: u64,
        parity: Option<u32>,
    },
    Cluster {
        generation: u64,
    },
    /// All but so many groups of each lane.
    Bulk {
        pending: u32,
    },
    Async {
        pending: u32,
    },
    /// All but so many groups of multiplications.
    Warpgroup {
        pending: u32,
    },
}

/// Every lane of `mask`.
pub fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros();
        left &= left.wrapping_sub(1);
        (lane < 32).then_some(lane)
    })
}
