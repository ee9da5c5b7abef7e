//! Producer and consumer, with a pipeline that keeps count of buffers and phases.

use cuda_ptx::barrier::{Consumer, Pipeline, Producer};
use cuda_ptx::{cp_async_bulk_bar, kernel, shared, space_global, space_shared};

use crate::block;
use crate::producer_consumer::{BUFFER, Chunks, Float4, WARP_SIZE, add_share, block_sum};

shared! {
    static PIPE: Pipeline<2>;
}

/// What one thread does: fills the buffers in turn.
#[inline(always)]
unsafe fn produce(mut producer: Producer<2>, buffer: *mut f32, input: *const f32, chunks: Chunks) {
    let mut start = chunks.first();
    while start < chunks.n {
        let (source, len) = (input.add(start as usize), chunks.len(start));
        let slot = producer.acquire();
        let target = buffer.add(slot.stage() * chunks.buffer_len as usize);
        // What is behind the last 16 bytes, at most three elements, is not copied in bulk.
        let whole = len / 4 * 4;
        for k in whole as usize..len as usize {
            *target.add(k) = *source.add(k);
        }
        if whole > 0 {
            let full = slot.commit_tx(whole * 4);
            cp_async_bulk_bar(space_shared, space_global, target, source, whole * 4, full);
        } else {
            slot.commit();
        }
        start += chunks.stride();
    }
}

/// What the warps but the first do: each thread adds up its share of the buffers.
#[inline(always)]
unsafe fn consume(mut consumer: Consumer<2>, buffer: *const f32, chunks: Chunks) -> f32 {
    let mut sum = Float4 { x: 0.0, y: 0.0, z: 0.0, w: 0.0 };
    let mut start = chunks.first();
    while start < chunks.n {
        let slot = consumer.wait();
        add_share(&mut sum, buffer.add(slot.stage() * chunks.buffer_len as usize), chunks.len(start));
        slot.release();
        start += chunks.stride();
    }
    (sum.x + sum.y) + (sum.z + sum.w)
}

kernel! {
    /// As [`producer_consumer`](crate::producer_consumer), but one thread of the first warp produces
    /// and nobody arrives on a barrier only in order to wait for it.
    ///
    /// # Safety
    /// As there.
    #[launch_bounds(1024)]
    pub fn producer_consumer_pipeline(n: u64, input: *const f32, out: *mut f32, buffer_len: u32) {
        let buffer = BUFFER.as_mut_ptr();
        let pipe = PIPE.as_mut_ptr();
        let rank = block::thread_rank();
        let chunks = Chunks { n, buffer_len };

        if rank == 0 {
            Pipeline::init(pipe, 1, block::size() - WARP_SIZE);
        }
        block::sync();

        let mut sum = 0.0;
        if rank == 0 {
            produce(Pipeline::producer(pipe), buffer, input, chunks);
        } else if rank >= WARP_SIZE {
            sum = consume(Pipeline::consumer(pipe), buffer, chunks);
        }

        let sum = block_sum(sum);
        if rank == 0 {
            *out.add(block::index() as usize) = sum;
        }
    }
}
