// Producer and consumer, with the copies that the C primitives have: 16 bytes at a time, by each
// thread of the producer's warp.

#include "../producer_consumer.cu"
#include <cuda_pipeline_primitives.h>

namespace {

__device__ void fill_by_warp(float *target, const float *source, uint32_t len) {
    const uint32_t rank = block::thread_rank();
    const uint32_t whole = len / 4 * 4;
    for (uint32_t k = rank * 4; k < whole; k += warp_size * 4) {
        __pipeline_memcpy_async(target + k, source + k, 16);
    }
    if (whole + rank < len) {
        const uint32_t k = whole + rank;
        __pipeline_memcpy_async(target + k, source + k, 4);
    }
}

__device__ void produce_primitives(
    __mbarrier_t ready[], __mbarrier_t filled[], float *buffer, const float *input, Chunks chunks) {
    uint32_t slot = 0;
    for (uint64_t start = chunks.first(); start < chunks.n; start += chunks.stride()) {
        const __mbarrier_token_t token1 = __mbarrier_arrive(&ready[slot]);
        while (!__mbarrier_try_wait(&ready[slot], token1, 1000)) {}

        fill_by_warp(buffer + slot * chunks.buffer_len, input + start, chunks.len(start));

        __pipeline_arrive_on(&filled[slot]);
        (void)__mbarrier_arrive(&filled[slot]);
        slot ^= 1;
    }
}

__device__ float consume_primitives(
    __mbarrier_t ready[], __mbarrier_t filled[], const float *buffer, Chunks chunks) {
    (void)__mbarrier_arrive(&ready[0]);
    (void)__mbarrier_arrive(&ready[1]);

    float4 sum = {};
    uint32_t slot = 0;
    for (uint64_t start = chunks.first(); start < chunks.n; start += chunks.stride()) {
        const __mbarrier_token_t token3 = __mbarrier_arrive(&filled[slot]);
        while (!__mbarrier_try_wait(&filled[slot], token3, 1000)) {}

        add_share(sum, buffer + slot * chunks.buffer_len, chunks.len(start));

        (void)__mbarrier_arrive(&ready[slot]);
        slot ^= 1;
    }
    return (sum.x + sum.y) + (sum.z + sum.w);
}

} // namespace

extern "C" __global__ void __launch_bounds__(1024)
    producer_consumer_primitives(uint64_t n, const float *input, float *out, uint32_t buffer_len) {
    alignas(128) extern __shared__ float buffer[];
    __shared__ __mbarrier_t bar[4];
    __mbarrier_t *ready = bar, *filled = bar + 2;
    const uint32_t rank = block::thread_rank();
    const Chunks chunks{n, buffer_len};

    if (rank < 4) {
        __mbarrier_init(&bar[rank], block::size());
    }
    block::sync();

    float sum = 0;
    if (rank < warp_size) {
        produce_primitives(ready, filled, buffer, input, chunks);
    } else {
        sum = consume_primitives(ready, filled, buffer, chunks);
    }

    sum = block_sum(sum);
    if (rank == 0) {
        out[block::index()] = sum;
    }
}
