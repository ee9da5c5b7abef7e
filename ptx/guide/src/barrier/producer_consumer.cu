// Producer and consumer, each of which waits for the barrier that the other arrives on.

#include "../producer_consumer.cu"
#include "barrier.cuh"

namespace {

__device__ void fill(barrier_t &filled, float *target, const float *source, uint32_t len) {
    const uint32_t rank = block::thread_rank();
    const uint32_t whole = len / 4 * 4;
    if (whole + rank < len) {
        const uint32_t k = whole + rank;
        target[k] = source[k];
    }
    if (rank == 0 && whole > 0) {
        const uint32_t bytes = whole * 4;
        (void)cuda::device::barrier_arrive_tx(filled, 1, bytes);
        cuda::device::memcpy_async_tx(target, source, cuda::aligned_size_t<16>(bytes), filled);
    } else {
        (void)filled.arrive();
    }
}

__device__ void
produce(barrier_t ready[], barrier_t filled[], float *buffer, const float *input, Chunks chunks) {
    uint32_t slot = 0;
    for (uint64_t start = chunks.first(); start < chunks.n; start += chunks.stride()) {
        ready[slot].arrive_and_wait();
        fill(filled[slot], buffer + slot * chunks.buffer_len, input + start, chunks.len(start));
        slot ^= 1;
    }
}

__device__ float consume(barrier_t ready[], barrier_t filled[], const float *buffer, Chunks chunks) {
    (void)ready[0].arrive();
    (void)ready[1].arrive();

    float4 sum = {};
    uint32_t slot = 0;
    for (uint64_t start = chunks.first(); start < chunks.n; start += chunks.stride()) {
        filled[slot].arrive_and_wait();
        add_share(sum, buffer + slot * chunks.buffer_len, chunks.len(start));
        (void)ready[slot].arrive();
        slot ^= 1;
    }
    return (sum.x + sum.y) + (sum.z + sum.w);
}

} // namespace

extern "C" __global__ void __launch_bounds__(1024)
    producer_consumer_barrier(uint64_t n, const float *input, float *out, uint32_t buffer_len) {
    alignas(128) extern __shared__ float buffer[];
    __shared__ barrier_t bar[4];
    barrier_t *ready = bar, *filled = bar + 2;
    const uint32_t rank = block::thread_rank();
    const Chunks chunks{n, buffer_len};

    if (rank < 4) {
        init(&bar[rank], block::size());
    }
    block::sync();

    float sum = 0;
    if (rank < warp_size) {
        produce(ready, filled, buffer, input, chunks);
    } else {
        sum = consume(ready, filled, buffer, chunks);
    }

    sum = block_sum(sum);
    if (rank == 0) {
        out[block::index()] = sum;
    }
}
