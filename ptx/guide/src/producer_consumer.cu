// Producer and consumer: warp 0 streams an array through two buffers in shared memory, the other
// warps add it up.

#pragma once
#include "block.cuh"

namespace {

constexpr uint32_t warp_size = 32;

// The part of the input that a block works through: the chunks of buffer_len elements whose numbers
// are the block's own plus multiples of the grid's size. The last chunk of the input may be shorter.
struct Chunks {
    uint64_t n;
    uint32_t buffer_len;

    __device__ uint64_t first() const {
        return uint64_t(block::index()) * buffer_len;
    }

    __device__ uint64_t stride() const {
        return uint64_t(block::grid_size()) * buffer_len;
    }

    __device__ uint32_t len(uint64_t start) const {
        return uint32_t(min(n - start, uint64_t(buffer_len)));
    }
};

__device__ void fill(uint64_t *filled, float *target, const float *source, uint32_t len) {
    const uint32_t rank = block::thread_rank();
    const uint32_t whole = len / 4 * 4;
    if (whole + rank < len) {
        const uint32_t k = whole + rank;
        target[k] = source[k];
    }
    if (rank == 0 && whole > 0) {
        const uint32_t bytes = whole * 4;
        (void)cuda::ptx::mbarrier_arrive_expect_tx(
            cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared, filled, bytes);
        cuda::ptx::cp_async_bulk(cuda::ptx::space_shared, cuda::ptx::space_global, target, source, bytes, filled);
    } else {
        (void)cuda::ptx::mbarrier_arrive(filled);
    }
}

__device__ void produce(uint64_t ready[], uint64_t filled[], float *buffer, const float *input, Chunks chunks) {
    uint32_t slot = 0;
    for (uint64_t start = chunks.first(); start < chunks.n; start += chunks.stride()) {
        const uint64_t token1 = cuda::ptx::mbarrier_arrive(&ready[slot]);
        while (!cuda::ptx::mbarrier_try_wait(&ready[slot], token1)) {}

        fill(&filled[slot], buffer + slot * chunks.buffer_len, input + start, chunks.len(start));

        slot ^= 1;
    }
}

__device__ void add_share(float4 &sum, const float *buffer, uint32_t len) {
    const uint32_t consumer = block::thread_rank() - warp_size;
    const uint32_t consumers = block::size() - warp_size;
    const uint32_t groups = len / 4;
    for (uint32_t k = consumer; k < groups; k += consumers) {
        const float4 group = reinterpret_cast<const float4 *>(buffer)[k];
        sum.x += group.x;
        sum.y += group.y;
        sum.z += group.z;
        sum.w += group.w;
    }
    const uint32_t k = groups * 4 + consumer;
    if (k < len) {
        sum.x += buffer[k];
    }
}

__device__ float consume(uint64_t ready[], uint64_t filled[], const float *buffer, Chunks chunks) {
    (void)cuda::ptx::mbarrier_arrive(&ready[0]);
    (void)cuda::ptx::mbarrier_arrive(&ready[1]);

    float4 sum = {};
    uint32_t slot = 0;
    for (uint64_t start = chunks.first(); start < chunks.n; start += chunks.stride()) {
        const uint64_t token3 = cuda::ptx::mbarrier_arrive(&filled[slot]);
        while (!cuda::ptx::mbarrier_try_wait(&filled[slot], token3)) {}

        add_share(sum, buffer + slot * chunks.buffer_len, chunks.len(start));

        (void)cuda::ptx::mbarrier_arrive(&ready[slot]);
        slot ^= 1;
    }
    return (sum.x + sum.y) + (sum.z + sum.w);
}

__device__ float block_sum(float value) {
    __shared__ float partial[1024];
    const uint32_t rank = block::thread_rank();
    partial[rank] = value;
    block::sync();
    for (uint32_t width = block::size(); width > 1;) {
        const uint32_t half = (width + 1) / 2;
        if (rank + half < width) {
            partial[rank] += partial[rank + half];
        }
        block::sync();
        width = half;
    }
    return partial[0];
}

} // namespace

extern "C" __global__ void __launch_bounds__(1024)
    producer_consumer(uint64_t n, const float *input, float *out, uint32_t buffer_len) {
    alignas(128) extern __shared__ float buffer[];
    __shared__ uint64_t bar[4];
    uint64_t *ready = bar, *filled = bar + 2;
    const uint32_t rank = block::thread_rank();
    const Chunks chunks{n, buffer_len};

    if (rank < 4) {
        cuda::ptx::mbarrier_init(&bar[rank], block::size());
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
