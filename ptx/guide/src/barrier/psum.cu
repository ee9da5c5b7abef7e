// Completion function: between the last arrival of a phase and the end of the waits for it, one
// thread adds up what all have shown.

#include "../block.cuh"
#include "barrier.cuh"

namespace {

__shared__ uint32_t psum_addends[1024];
__shared__ uint32_t psum_sum;

struct BlockSum {
    uint32_t len;

    __device__ void operator()() {
        uint32_t sum = psum_sum;
        for (uint32_t k = 0; k < len; ++k) {
            sum += psum_addends[k];
        }
        psum_sum = sum;
    }
};

} // namespace

extern "C" __global__ void __launch_bounds__(1024) psum_barrier(uint32_t n, const uint32_t *data, uint32_t *acc) {
    using barrier_t = cuda::barrier<cuda::thread_scope_block, BlockSum>;
    alignas(barrier_t) __shared__ unsigned char bar_storage[sizeof(barrier_t)];
    barrier_t *bar = reinterpret_cast<barrier_t *>(bar_storage);
    const uint32_t rank = block::thread_rank(), size = block::size();
    data += block::index() * n + rank;

    if (rank == 0) {
        psum_sum = 0;
        init(bar, size, BlockSum{size});
    }
    block::sync();

    for (uint32_t i = 0; i < n; i += size) {
        psum_addends[rank] = data[i] + psum_sum;
        auto token = bar->arrive();
        bar->wait(cuda::std::move(token));
    }

    if (rank == 0) {
        acc[block::index()] = psum_sum;
    }
}
