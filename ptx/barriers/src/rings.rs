//! Rings of buffers.

use cuda_ptx::awbarrier::__pipeline_memcpy_async;
use cuda_ptx::barrier::Pipeline;
use cuda_ptx::{cp_async_bulk_bar, get_sreg_ntid_x, get_sreg_tid_x, kernel, shared, space_global, space_shared};

use crate::sync;

const LEN: usize = 64;

shared! {
    static PIPE: Pipeline<3>;
    #[align(128)]
    static TILES: [[u32; LEN]; 3];
}

/// The first buffer of the ring.
#[inline(always)]
fn tiles() -> *mut [u32; LEN] {
    TILES.as_mut_ptr().cast()
}

kernel! {
    /// All threads fill the buffers by ordinary stores, and all use them: each adds up what its left
    /// neighbour has stored.
    pub fn ring_of_threads(n: u32, input: *const u32, out: *mut u32) {
        let (rank, size) = (get_sreg_tid_x() as usize, get_sreg_ntid_x());
        let pipe = PIPE.as_mut_ptr();
        if rank == 0 {
            Pipeline::init(pipe, size, size);
        }
        sync();
        let (mut producer, mut consumer) = (Pipeline::producer(pipe), Pipeline::consumer(pipe));
        let left = (rank + size as usize - 1) % size as usize;
        let mut sum = 0;
        let mut filled = 0;
        for used in 0..n {
            // Two buffers ahead.
            while filled < n && filled < used + 2 {
                let slot = producer.acquire();
                (*slot.buffer(tiles()))[rank] = *input.add(filled as usize * LEN + rank);
                slot.commit();
                filled += 1;
            }
            let slot = consumer.wait();
            sum = 3 * sum + (*slot.buffer(tiles()))[left];
            slot.release();
        }
        *out.add(rank) = sum;
    }

    /// One thread of the first warp feeds the copy engine, two copies for a buffer; each of the others
    /// holds a buffer while it waits for the next, and the last is released by being dropped.
    pub fn ring_of_copies(n: u32, input: *const u32, out: *mut u32) {
        let (rank, size) = (get_sreg_tid_x() as usize, get_sreg_ntid_x());
        let pipe = PIPE.as_mut_ptr();
        if rank == 0 {
            Pipeline::init(pipe, 1, size - 32);
        }
        sync();
        if rank == 0 {
            let mut producer = Pipeline::producer(pipe);
            for i in 0..n as usize {
                let slot = loop {
                    if let Some(slot) = producer.try_acquire() {
                        break slot;
                    }
                };
                let tile = slot.buffer(tiles()).cast::<u32>();
                let source = input.add(i * LEN);
                let full = slot.commit_tx(256);
                cp_async_bulk_bar(space_shared, space_global, tile, source, 128, full);
                cp_async_bulk_bar(space_shared, space_global, tile.add(32), source.add(32), 128, full);
            }
        } else if rank >= 32 {
            let k = rank - 32;
            let mut consumer = Pipeline::consumer(pipe);
            let mut held = None;
            let mut sum = 0;
            for _ in 0..n {
                let slot = loop {
                    if let Some(slot) = consumer.try_wait() {
                        break slot;
                    }
                };
                sum = 3 * sum + (*slot.buffer(tiles()))[k];
                // The one before is released now.
                held = Some(slot);
            }
            drop(held);
            *out.add(k) = sum;
        }
    }

    /// As `ring_of_copies`, one copy for a buffer.
    pub fn ring_of_single_copies(n: u32, input: *const u32, out: *mut u32) {
        let (rank, size) = (get_sreg_tid_x() as usize, get_sreg_ntid_x());
        let pipe = PIPE.as_mut_ptr();
        if rank == 0 {
            Pipeline::init(pipe, 1, size - 32);
        }
        sync();
        if rank == 0 {
            let mut producer = Pipeline::producer(pipe);
            for i in 0..n as usize {
                producer.acquire().commit_bulk(tiles(), input.add(i * LEN), 256);
            }
        } else if rank >= 32 {
            let k = rank - 32;
            let mut consumer = Pipeline::consumer(pipe);
            let mut sum = 0;
            for _ in 0..n {
                let slot = consumer.wait();
                sum = 3 * sum + (*slot.buffer(tiles()))[k];
            }
            *out.add(k) = sum;
        }
    }

    /// As `ring_of_threads`, but each thread copies its element with `cp.async`, which commits by
    /// itself.
    pub fn ring_of_cp_async(n: u32, input: *const u32, out: *mut u32) {
        let (rank, size) = (get_sreg_tid_x() as usize, get_sreg_ntid_x());
        let pipe = PIPE.as_mut_ptr();
        if rank == 0 {
            Pipeline::init(pipe, size, size);
        }
        sync();
        let (mut producer, mut consumer) = (Pipeline::producer(pipe), Pipeline::consumer(pipe));
        let left = (rank + size as usize - 1) % size as usize;
        let mut sum = 0;
        let mut filled = 0;
        for used in 0..n {
            while filled < n && filled < used + 2 {
                let slot = producer.acquire();
                let element = slot.buffer(tiles()).cast::<u32>().add(rank);
                __pipeline_memcpy_async(element, input.add(filled as usize * LEN + rank), 4);
                slot.commit_cp_async();
                filled += 1;
            }
            let slot = consumer.wait();
            sum = 3 * sum + (*slot.buffer(tiles()))[left];
            slot.release();
        }
        *out.add(rank) = sum;
    }
}
