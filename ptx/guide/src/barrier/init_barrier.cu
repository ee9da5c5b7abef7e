// Initialisation.

#include "../block.cuh"
#include "barrier.cuh"

extern "C" __global__ void __launch_bounds__(1024) init_barrier_barrier(const uint32_t *input, uint32_t *out) {
    __shared__ barrier_t bar;
    __shared__ uint32_t tile[1024];
    const uint32_t rank = block::thread_rank(), size = block::size();
    const size_t global = block::index() * size + rank;

    if (rank == 0) {
        init(&bar, size);
    }
    block::sync();

    tile[rank] = input[global];
    bar.arrive_and_wait();
    out[global] = tile[block::partner(rank, size)];
}
