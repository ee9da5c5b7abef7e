// Initialisation.

#include "../block.cuh"
#include <cuda_awbarrier_primitives.h>

extern "C" __global__ void __launch_bounds__(1024) init_barrier_primitives(const uint32_t *input, uint32_t *out) {
    __shared__ __mbarrier_t bar;
    __shared__ uint32_t tile[1024];
    const uint32_t rank = block::thread_rank(), size = block::size();
    const size_t global = block::index() * size + rank;

    if (rank == 0) {
        __mbarrier_init(&bar, size);
    }
    block::sync();

    tile[rank] = input[global];
    const __mbarrier_token_t token = __mbarrier_arrive(&bar);
    while (!__mbarrier_try_wait(&bar, token, 1000)) {}
    out[global] = tile[block::partner(rank, size)];
}
