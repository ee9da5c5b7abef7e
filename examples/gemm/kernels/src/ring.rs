//! The ring of tiles between the warp that loads and the warpgroups that multiply.
//!
//! The crate's `Pipeline` is such a ring within one CTA. Here the stages of both CTAs of a cluster become
//! empty together, because half of B's tile comes from the other one.

use cuda_ptx::barrier::{Barrier, Cluster, Parity};
use cuda_ptx::*;

use crate::{CLUSTER, COLUMNS, CTA_ROWS};

/// Bytes of a row of a tile of A or B, along K: the swizzle of the copies and of the descriptors.
pub const SLAB: u32 = 128;
/// Tiles of A and B in the ring.
const STAGES: u32 = 4;
const A_BYTES: u32 = CTA_ROWS * SLAB;
const B_BYTES: u32 = COLUMNS * SLAB;
/// What is loaded for a stage: half of B by the other CTA.
pub const STAGE_BYTES: u32 = A_BYTES + B_BYTES;

extern_shared! {
    /// The ring's tiles of A, those of B, and the boxes that C leaves in.
    #[align(1024)]
    static TILES: [u8];
}
shared! {
    /// Complete when a stage of this CTA has been loaded.
    static FULL: [Barrier; STAGES as usize];
    /// Complete when the warpgroups of both CTAs have used a stage.
    static EMPTY: [Barrier<Cluster>; STAGES as usize];
}

/// Initialises the barriers; one thread does this.
#[inline(always)]
pub unsafe fn init() {
    for stage in 0..STAGES as usize {
        Barrier::init(FULL.as_mut_ptr().cast::<Barrier>().add(stage), 1);
        Barrier::init(EMPTY.as_mut_ptr().cast::<Barrier<Cluster>>().add(stage), 2 * CLUSTER);
    }
}

/// Where C's boxes begin.
#[inline(always)]
pub unsafe fn boxes() -> *mut u8 {
    TILES.as_mut_ptr().add((STAGES * STAGE_BYTES) as usize)
}

/// One of the stages.
#[derive(Clone, Copy)]
pub struct Stage(u32);

impl Stage {
    /// The tiles of A and B.
    #[inline(always)]
    pub unsafe fn tiles(self) -> [*mut u8; 2] {
        let a = self.0 * A_BYTES;
        let b = STAGES * A_BYTES + self.0 * B_BYTES;
        [a, b].map(|offset| TILES.as_mut_ptr().add(offset as usize))
    }

    /// The barrier for those who load.
    #[inline(always)]
    pub unsafe fn full<'b>(self) -> &'b Barrier {
        &*FULL.as_mut_ptr().cast::<Barrier>().add(self.0 as usize)
    }

    #[inline(always)]
    unsafe fn empty<'b>(self) -> &'b Barrier<Cluster> {
        &*EMPTY.as_mut_ptr().cast::<Barrier<Cluster>>().add(self.0 as usize)
    }

    /// Tells both CTAs that a warpgroup has used this stage: a thread of it for each of them.
    #[inline(always)]
    pub unsafe fn release(self, thread: u32) {
        if thread < CLUSTER {
            let empty = self.empty().remote(thread).native_handle();
            // Nothing was written there: the arrival has no memory accesses to order.
            mbarrier_arrive_sem_scope_space(sem_relaxed, scope_cluster, space_cluster, empty);
        }
    }
}

/// A thread's way around the ring.
pub struct Cursor {
    stage: Stage,
    parity: Parity,
}

impl Cursor {
    /// That of a thread that loads.
    pub const LOADING: Self = Self { stage: Stage(0), parity: Parity::ODD };
    /// That of a thread that multiplies.
    pub const USING: Self = Self { stage: Stage(0), parity: Parity::EVEN };

    /// The next stage, when it has been used.
    #[inline(always)]
    pub unsafe fn empty(&mut self) -> Stage {
        self.stage.empty().wait_parity(self.parity);
        self.advance()
    }

    /// The next stage, when it has been loaded.
    #[inline(always)]
    pub unsafe fn full(&mut self) -> Stage {
        self.stage.full().wait_parity(self.parity);
        self.advance()
    }

    /// Waits until all stages have been used.
    #[inline(always)]
    pub unsafe fn drain(mut self) {
        for _ in 0..STAGES {
            self.empty();
        }
    }

    #[inline(always)]
    fn advance(&mut self) -> Stage {
        let stage = self.stage;
        self.stage.0 += 1;
        if self.stage.0 == STAGES {
            self.stage.0 = 0;
            self.parity.advance();
        }
        stage
    }
}
