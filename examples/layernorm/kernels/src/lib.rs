//! Layer normalisation of rows that are too long for one multiprocessor:
//! `y = (x - mean) / sqrt(variance + ε) · γ + β`, with mean and variance of the row.
//!
//! A cluster of eight CTAs holds a row in its shared memory, a slice in each. It is read once from
//! global memory and written once, and the CTAs tell each other the moments of their slices.

#![no_std]
#![feature(abi_ptx, asm_experimental_arch, stdarch_nvptx)]

mod moments;
mod plain;

use core::arch::nvptx::_syncthreads;

use cuda_ptx::barrier::{Barrier, Cluster, Parity, Pipeline};
use cuda_ptx::*;

use moments::Moments;

panic_trap!();

/// Threads of a CTA.
const THREADS: u32 = 256;
/// CTAs that share a row.
const CLUSTER: usize = 8;
/// Slices in the ring of a CTA: of the row in use, of the one being stored, and of two being loaded.
const STAGES: usize = 4;

/// Four neighbouring elements, which are loaded and stored at once.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Quad([f32; 4]);

extern_shared! {
    /// The ring of slices, and the slices of γ and β that belong to this CTA.
    #[align(128)]
    static SLICES: [Quad];
}
shared! {
    static RING: Pipeline<STAGES>;
    /// Complete when γ and β have been loaded.
    static PARAMETERS: Barrier;
    /// Complete when the moments of all slices of a row are in the inbox. Rows take turns: a fast CTA
    /// may send those of the next row before all of this one have come.
    static ARRIVED: [Barrier<Cluster>; 2];
    static INBOX: [[Moments; CLUSTER]; 2];
}

kernel! {
    /// Normalises `rows` rows of `length` elements.
    ///
    /// # Safety
    /// `length` is a multiple of 8192. The grid has a multiple of 8 CTAs, of 256 threads, with room for
    /// 6 slices of `length / 8` elements in their dynamic shared memory.
    #[launch_bounds(THREADS, 1)]
    #[cluster_dim(8, 1, 1)]
    pub fn layer_norm(output: *mut f32, input: *const f32, gamma: *const f32, beta: *const f32, rows: u32, length: u32) {
        unsafe { normalise(Rows { output, input, gamma, beta, rows, length }) }
    }
}

/// The arguments of the kernels.
#[derive(Clone, Copy)]
struct Rows {
    output: *mut f32,
    input: *const f32,
    gamma: *const f32,
    beta: *const f32,
    rows: u32,
    length: u32,
}

#[inline(always)]
unsafe fn normalise(all: Rows) {
    let thread = get_sreg_tid_x();
    let rank = get_sreg_cluster_ctarank();
    let length = all.length as usize / CLUSTER;
    let (quads, bytes) = (length / 4, length as u32 * 4);
    let slices = SLICES.as_mut_ptr();
    let (gamma, beta) = (slices.add(STAGES * quads), slices.add((STAGES + 1) * quads));
    let first = rank as usize * length;

    // Barriers, for this CTA and for those that send to it.
    let (ring, parameters) = (RING.as_mut_ptr(), PARAMETERS.as_mut_ptr());
    let arrived = ARRIVED.as_mut_ptr().cast::<Barrier<Cluster>>();
    if thread == 0 {
        Pipeline::init(ring, 1, 1);
        Barrier::init(parameters, 1);
        Barrier::init(arrived, CLUSTER as u32);
        Barrier::init(arrived.add(1), CLUSTER as u32);
        fence_mbarrier_init(sem_release, scope_cluster);
    }
    _syncthreads();
    barrier_cluster_arrive();
    barrier_cluster_wait();

    // One thread starts all copies: γ and β now, and rows ahead of their use.
    let (mut producer, mut consumer) = (Pipeline::producer(ring), Pipeline::consumer(ring));
    let slice = |row: u32| row as usize * all.length as usize + first;
    let (cluster, clusters) = (get_sreg_clusterid_x(), get_sreg_nclusterid_x());
    let mut loading = cluster;
    let mut load = || {
        if thread == 0 && loading < all.rows {
            let slot = producer.acquire();
            let buffer = slices.add(slot.stage() * quads);
            let source = all.input.add(slice(loading));
            let full = slot.commit_tx(bytes);
            cp_async_bulk_bar(space_shared, space_global, buffer, source, bytes, full);
        }
        loading += clusters;
    };
    if thread == 0 {
        let parameters = &*parameters;
        let _ = parameters.arrive_tx(2 * bytes);
        let loaded = parameters.native_handle();
        cp_async_bulk_bar(space_shared, space_global, gamma, all.gamma.add(first), bytes, loaded);
        cp_async_bulk_bar(space_shared, space_global, beta, all.beta.add(first), bytes, loaded);
    }
    for _ in 0..STAGES - 1 {
        load();
    }
    (*parameters).wait_parity(Parity::EVEN);

    let mut storing = None;
    let (mut row, mut turn) = (cluster, 0);
    while row < all.rows {
        // The moments of this slice, and then of the row.
        let slot = consumer.wait();
        let data = slices.add(slot.stage() * quads);
        let moments = Moments::of_block::<THREADS>(data, quads);
        let moments = exchange(moments, length as f32, rank, turn);
        let (mean, scale) = (moments.mean, moments.scale(all.length));

        // In place; then the copy engine takes it.
        for i in (thread as usize..quads).step_by(THREADS as usize) {
            let (x, gamma, beta) = ((*data.add(i)).0, (*gamma.add(i)).0, (*beta.add(i)).0);
            let y = [0, 1, 2, 3].map(|i| (x[i] - mean) * scale * gamma[i] + beta[i]);
            *data.add(i) = Quad(y);
        }
        fence_proxy_async_space(space_shared);
        _syncthreads();
        if thread == 0 {
            cp_async_bulk(space_global, space_shared, all.output.add(slice(row)), data, bytes);
            cp_async_bulk_commit_group();
            // The slice before has been read: its buffer is empty.
            cp_async_bulk_wait_group_read(n32::<1>);
            drop(storing.replace(slot));
        } else {
            core::mem::forget(slot);
        }
        load();
        (row, turn) = (row + clusters, turn + 1);
    }
    cp_async_bulk_wait_group(n32::<0>);
}

/// Sends the moments of this CTA's slice, which its first warp has, to all CTAs of the cluster, and
/// merges those of all slices, of `length` elements each.
#[inline(always)]
unsafe fn exchange(moments: Moments, length: f32, rank: u32, turn: u32) -> Moments {
    let thread = get_sreg_tid_x();
    let buffer = (turn % 2) as usize;
    let arrived = &*ARRIVED.as_mut_ptr().cast::<Barrier<Cluster>>().add(buffer);
    let inbox = INBOX.as_mut_ptr().cast::<[Moments; CLUSTER]>().add(buffer);
    if thread < CLUSTER as u32 {
        // A thread for each CTA announces eight bytes there, and sends them.
        let arrived = arrived.remote(thread);
        arrived.arrive_tx(size_of::<Moments>() as u32);
        let place = mapa(space_cluster, inbox.cast::<Moments>().add(rank as usize), thread);
        st_async_v2(place.cast(), [moments.mean, moments.m2], arrived.native_handle());
    }
    arrived.wait_parity(Parity::of(turn / 2));
    let [a, b, c, d, e, f, g, h] = *inbox;
    let pairs = [a.merge(b, length), c.merge(d, length), e.merge(f, length), g.merge(h, length)];
    let halves = [pairs[0].merge(pairs[1], 2.0 * length), pairs[2].merge(pairs[3], 2.0 * length)];
    halves[0].merge(halves[1], 4.0 * length)
}
