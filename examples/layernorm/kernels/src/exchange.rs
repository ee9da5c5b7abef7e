//! Moments on their way from every warp of a cluster to every other.
//!
//! A warp leaves those of its part beside the slice in the ring. One more warp of the CTA merges them, and
//! sends those of the slice to all CTAs.

use cuda_ptx::barrier::{Barrier, Cluster, Parity};
use cuda_ptx::*;

use crate::moments::Moments;
use crate::{CTAS, ELEMENTS, STAGES, WARP, WARPS};

/// Rows of which inboxes have room for moments, and after how many of them the CTAs tell each other that
/// these have been read.
const TURNS: u32 = 32;
const GROUP: u32 = 8;

shared! {
    static OF_WARPS: [[Moments; WARPS as usize]; STAGES];
    /// Complete when the moments of all slices of a row are in the inbox.
    static ARRIVED: [Barrier<Cluster>; TURNS as usize];
    static INBOX: [[Moments; CTAS as usize]; TURNS as usize];
    /// Complete when all CTAs have read what the inboxes had of another group of rows.
    static READ: Barrier<Cluster>;
}

#[inline(always)]
unsafe fn of_warps(stage: usize) -> *mut Moments {
    OF_WARPS.as_mut_ptr().cast::<Moments>().add(stage * WARPS as usize)
}

#[inline(always)]
unsafe fn arrived(turn: u32) -> *mut Barrier<Cluster> {
    ARRIVED.as_mut_ptr().cast::<Barrier<Cluster>>().add((turn % TURNS) as usize)
}

#[inline(always)]
unsafe fn inbox(turn: u32) -> *mut Moments {
    INBOX.as_mut_ptr().cast::<Moments>().add((turn % TURNS * CTAS) as usize)
}

/// Initialises the barriers; one thread does this.
#[inline(always)]
pub unsafe fn init(ctas: u32) {
    Barrier::init(READ.as_mut_ptr(), ctas);
    for turn in 0..TURNS {
        Barrier::init(arrived(turn), 1);
    }
}

/// Leaves the moments of a warp's part of the slice in this stage of the ring; its first lane does this.
#[inline(always)]
pub unsafe fn leave(stage: usize, moments: Moments) {
    *of_warps(stage).add((get_sreg_tid_x() / WARP) as usize) = moments;
}

/// Merges what all warps have left of a slice, and sends it to all CTAs, by a lane for each.
#[inline(always)]
pub unsafe fn send(turn: u32, stage: usize, ctas: u32) {
    let (lane, rank) = (get_sreg_laneid(), get_sreg_cluster_ctarank());
    if turn % GROUP == 0 {
        // All warps here have read all rows but the last two. What the other CTAs said so of a group ago is
        // enough: inboxes have room for more. So neither this arrival nor its fence is ever waited for.
        let read = &*READ.as_mut_ptr();
        read.wait_parity(Parity::of(turn / GROUP).next());
        bar_warp_sync(u32::MAX);
        if lane < ctas {
            read.remote(lane).arrive();
        }
    }
    let of_slice = (*of_warps(stage).add((lane % WARPS) as usize)).of_lanes(WARPS, (ELEMENTS * WARP) as f32);
    let arrived = &*arrived(turn);
    if lane == 0 {
        let bytes = ctas * size_of::<Moments>() as u32;
        mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, arrived.native_handle(), bytes);
    }
    if lane < ctas {
        let there = mapa(space_cluster, inbox(turn).add(rank as usize), lane);
        st_async_v2(there.cast(), [of_slice.mean, of_slice.m2], arrived.remote(lane).native_handle());
    }
    // All lanes have read what the warps left.
    bar_warp_sync(u32::MAX);
}

/// Waits for the moments of all slices of a row, and merges them.
#[inline(always)]
pub unsafe fn receive(turn: u32, ctas: u32) -> Moments {
    (*arrived(turn)).wait_parity(Parity::of(turn / TURNS));
    let of_slice = *inbox(turn).add((get_sreg_laneid() & (ctas - 1)) as usize);
    of_slice.of_lanes(ctas, (ELEMENTS * WARP * WARPS) as f32)
}

/// Waits until no CTA will arrive here any more, after so many rows.
#[inline(always)]
pub unsafe fn finish(turns: u32) {
    (*READ.as_mut_ptr()).wait_parity(Parity::of(turns.div_ceil(GROUP)).next());
}
