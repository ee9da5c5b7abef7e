// Early exit.

#include "../block.cuh"
#include "../compute.cuh"
#include "barrier.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    early_exit_barrier(uint32_t iteration_count, const uint32_t *leave_at_of, uint32_t *data) {
    __shared__ barrier_t bar;
    __shared__ uint32_t tiles[2][1024];
    const uint32_t rank = block::thread_rank(), size = block::size();
    const uint32_t partner = block::partner(rank, size);
    const size_t global = block::index() * size + rank;
    data += global;
    const uint32_t leave_at = leave_at_of[global];

    if (rank == 0) {
        init(&bar, size);
    }
    tiles[0][rank] = 0;
    tiles[1][rank] = 0;
    block::sync();

    uint32_t value = *data;
    for (uint32_t i = 0; i < iteration_count; ++i) {
        uint32_t *tile = tiles[i % 2];
        if (i == leave_at) {
            tile[rank] = ~value;
            bar.arrive_and_drop();
            *data = value;
            return;
        }
        tile[rank] = value;

        barrier_t::arrival_token token = bar.arrive();
        value = compute(value, i);
        bar.wait(cuda::std::move(token));

        value ^= tile[partner];
    }
    *data = value;
}
