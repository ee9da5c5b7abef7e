// Producer and consumer, with a count of buffers and phases. cuda::pipeline has no transactions: these
// are the barriers that the pipeline in Rust is made of.

#include "../producer_consumer.cu"

namespace {

struct Cursor {
    uint32_t stage, parity;

    __device__ uint32_t advance() {
        const uint32_t stage = this->stage;
        if (++this->stage == 2) {
            this->stage = 0;
            parity ^= 1;
        }
        return stage;
    }
};

__device__ void produce_ring(uint64_t full[], uint64_t empty[], float *buffer, const float *input, Chunks chunks) {
    Cursor cursor{0, 1};
    for (uint64_t start = chunks.first(); start < chunks.n; start += chunks.stride()) {
        const float *source = input + start;
        const uint32_t len = chunks.len(start);
        while (!cuda::ptx::mbarrier_try_wait_parity(&empty[cursor.stage], cursor.parity)) {}
        const uint32_t stage = cursor.advance();
        float *target = buffer + stage * chunks.buffer_len;
        const uint32_t whole = len / 4 * 4;
        for (uint32_t k = whole; k < len; ++k) {
            target[k] = source[k];
        }
        if (whole > 0) {
            const uint32_t bytes = whole * 4;
            (void)cuda::ptx::mbarrier_arrive_expect_tx(
                cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared, &full[stage], bytes);
            cuda::ptx::cp_async_bulk(
                cuda::ptx::space_shared, cuda::ptx::space_global, target, source, bytes, &full[stage]);
        } else {
            (void)cuda::ptx::mbarrier_arrive(&full[stage], 1);
        }
    }
}

__device__ float consume_ring(uint64_t full[], uint64_t empty[], const float *buffer, Chunks chunks) {
    Cursor cursor{0, 0};
    float4 sum = {};
    for (uint64_t start = chunks.first(); start < chunks.n; start += chunks.stride()) {
        while (!cuda::ptx::mbarrier_try_wait_parity(&full[cursor.stage], cursor.parity)) {}
        const uint32_t stage = cursor.advance();
        add_share(sum, buffer + stage * chunks.buffer_len, chunks.len(start));
        (void)cuda::ptx::mbarrier_arrive(&empty[stage], 1);
    }
    return (sum.x + sum.y) + (sum.z + sum.w);
}

} // namespace

extern "C" __global__ void __launch_bounds__(1024)
    producer_consumer_pipeline(uint64_t n, const float *input, float *out, uint32_t buffer_len) {
    alignas(128) extern __shared__ float buffer[];
    __shared__ uint64_t bar[4];
    uint64_t *full = bar, *empty = bar + 2;
    const uint32_t rank = block::thread_rank();
    const Chunks chunks{n, buffer_len};

    if (rank == 0) {
        for (uint32_t stage = 0; stage < 2; ++stage) {
            cuda::ptx::mbarrier_init(&full[stage], 1);
            cuda::ptx::mbarrier_init(&empty[stage], block::size() - warp_size);
        }
    }
    block::sync();

    float sum = 0;
    if (rank == 0) {
        produce_ring(full, empty, buffer, input, chunks);
    } else if (rank >= warp_size) {
        sum = consume_ring(full, empty, buffer, chunks);
    }

    sum = block_sum(sum);
    if (rank == 0) {
        out[block::index()] = sum;
    }
}
