//! A ring of four buffers that the copy engine fills.

use cuda_ptx::barrier::Pipeline;
use cuda_ptx::*;

use crate::{TILES, sync};

const STAGES: usize = 4;
const LEN: usize = 256;
const BYTES: u32 = 4 * LEN as u32;

shared! {
    /// The barriers of the full buffers, then of the empty ones.
    static PIPE: Pipeline<STAGES>;
}

kernel! {
    /// Thread `LEN` fills the buffers, those before it add them up.
    pub fn ring__barrier(n: u32, input: *const u32, out: *mut u32) {
        let rank = get_sreg_tid_x();
        let tiles = TILES.as_mut_ptr().cast::<[u32; LEN]>();
        let pipe = PIPE.as_mut_ptr();
        if rank == 0 {
            Pipeline::init(pipe, 1, LEN as u32);
        }
        sync();
        if rank == LEN as u32 {
            let mut producer = Pipeline::producer(pipe);
            for i in 0..n as usize {
                producer.acquire().commit_bulk(tiles, input.add(i * LEN), BYTES);
            }
        } else {
            let mut consumer = Pipeline::consumer(pipe);
            let mut sum = 0;
            for _ in 0..n {
                let slot = consumer.wait();
                sum += *slot.buffer(tiles).cast::<u32>().add(rank as usize);
                slot.release();
            }
            *out.add(rank as usize) = sum;
        }
    }

    pub fn ring__ptx(n: u32, input: *const u32, out: *mut u32) {
        let rank = get_sreg_tid_x();
        let tiles = TILES.as_mut_ptr().cast::<[u32; LEN]>();
        let full = PIPE.as_mut_ptr().cast::<u64>();
        let empty = full.add(STAGES);
        if rank == 0 {
            for stage in 0..STAGES {
                mbarrier_init(full.add(stage), 1);
                mbarrier_init(empty.add(stage), LEN as u32);
            }
        }
        sync();
        let next = |stage: &mut u32, parity: &mut u32| {
            let this = *stage as usize;
            *stage += 1;
            if *stage == STAGES as u32 {
                *stage = 0;
                *parity ^= 1;
            }
            this
        };
        if rank == LEN as u32 {
            let (mut parity, mut stage) = (1, 0);
            for i in 0..n as usize {
                while !mbarrier_try_wait_parity(empty.add(stage as usize), parity) {}
                let this = next(&mut stage, &mut parity);
                let (tile, full) = (tiles.add(this), full.add(this));
                let _ = mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, full, BYTES);
                cp_async_bulk_bar(space_shared, space_global, tile, input.add(i * LEN), BYTES, full);
            }
        } else {
            let (mut parity, mut stage) = (0, 0);
            let mut sum = 0;
            for _ in 0..n {
                while !mbarrier_try_wait_parity(full.add(stage as usize), parity) {}
                let this = next(&mut stage, &mut parity);
                sum += *tiles.add(this).cast::<u32>().add(rank as usize);
                let _ = mbarrier_arrive(empty.add(this));
            }
            *out.add(rank as usize) = sum;
        }
    }
}
