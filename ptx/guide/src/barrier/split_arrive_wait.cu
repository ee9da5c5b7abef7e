// Explicit phase tracking.

#include "../block.cuh"
#include "../compute.cuh"
#include "barrier.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    split_arrive_wait_barrier(uint32_t iteration_count, uint32_t *data) {
    __shared__ barrier_t bar;
    __shared__ uint32_t tiles[2][1024];
    uint32_t parity = 0;
    const uint32_t rank = block::thread_rank(), size = block::size();
    const uint32_t partner = block::partner(rank, size);
    data += block::index() * size + rank;

    if (rank == 0) {
        init(&bar, size);
    }
    block::sync();

    uint32_t value = *data;
    for (uint32_t i = 0; i < iteration_count; ++i) {
        uint32_t *tile = tiles[i % 2];
        tile[rank] = value;

        (void)cuda::ptx::mbarrier_arrive(cuda::device::barrier_native_handle(bar));

        value = compute(value, i);

        while (!cuda::ptx::mbarrier_try_wait_parity(cuda::device::barrier_native_handle(bar), parity)) {}
        parity ^= 1;

        value ^= tile[partner];
    }
    *data = value;
}
