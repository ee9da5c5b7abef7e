// Tracking asynchronous memory operations, with nothing to track: the transaction count is 0.

#include "../block.cuh"
#include "barrier.cuh"

extern "C" __global__ void __launch_bounds__(1024) track_kernel_barrier(const uint32_t *input, uint32_t *out) {
    __shared__ barrier_t bar;
    __shared__ uint32_t tile[1024];
    const uint32_t rank = block::thread_rank(), size = block::size();
    const size_t global = block::index() * size + rank;

    if (rank == 0) {
        init(&bar, size);
    }
    block::sync();

    tile[rank] = input[global];
    barrier_t::arrival_token token = cuda::device::barrier_arrive_tx(bar, 1, 0);
    bar.wait(cuda::std::move(token));
    out[global] = tile[block::partner(rank, size)];
}
