// Explicit phase tracking.

#include "../block.cuh"
#include "../compute.cuh"
#include <cuda_awbarrier_primitives.h>

extern "C" __global__ void __launch_bounds__(1024)
    split_arrive_wait_primitives(uint32_t iteration_count, uint32_t *data) {
    __shared__ __mbarrier_t bar;
    __shared__ uint32_t tiles[2][1024];
    bool parity = false;
    const uint32_t rank = block::thread_rank(), size = block::size();
    const uint32_t partner = block::partner(rank, size);
    data += block::index() * size + rank;

    if (rank == 0) {
        __mbarrier_init(&bar, size);
    }
    block::sync();

    uint32_t value = *data;
    for (uint32_t i = 0; i < iteration_count; ++i) {
        uint32_t *tile = tiles[i % 2];
        tile[rank] = value;

        (void)__mbarrier_arrive(&bar);

        value = compute(value, i);

        while (!__mbarrier_try_wait_parity(&bar, parity, 1000)) {}
        parity ^= 1;

        value ^= tile[partner];
    }
    *data = value;
}
