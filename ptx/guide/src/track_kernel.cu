// Tracking asynchronous memory operations, with nothing to track: the transaction count is 0.

#include "block.cuh"

extern "C" __global__ void __launch_bounds__(1024) track_kernel(const uint32_t *input, uint32_t *out) {
    __shared__ uint64_t bar;
    __shared__ uint32_t tile[1024];
    const uint32_t rank = block::thread_rank(), size = block::size();
    const size_t global = block::index() * size + rank;

    if (rank == 0) {
        cuda::ptx::mbarrier_init(&bar, size);
    }
    block::sync();

    tile[rank] = input[global];
    // The guide passes an arrival count of 1 as well, which this function does not take.
    const uint64_t token = cuda::ptx::mbarrier_arrive_expect_tx(
        cuda::ptx::sem_release, cuda::ptx::scope_cluster, cuda::ptx::space_shared, &bar, 0);
    while (!cuda::ptx::mbarrier_try_wait(&bar, token)) {}
    out[global] = tile[block::partner(rank, size)];
}
