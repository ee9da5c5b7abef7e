// Initialisation: one thread sets the expected arrival count before any thread arrives.

#include "block.cuh"

extern "C" __global__ void __launch_bounds__(1024) init_barrier(const uint32_t *input, uint32_t *out) {
    __shared__ uint64_t bar;
    __shared__ uint32_t tile[1024];
    const uint32_t rank = block::thread_rank(), size = block::size();
    const size_t global = block::index() * size + rank;

    if (rank == 0) {
        cuda::ptx::mbarrier_init(&bar, size);
    }
    block::sync();

    tile[rank] = input[global];
    const uint64_t token = cuda::ptx::mbarrier_arrive(&bar);
    while (!cuda::ptx::mbarrier_try_wait(&bar, token)) {}
    out[global] = tile[block::partner(rank, size)];
}
