// Early exit: a thread that leaves a sequence of phases drops out of the barrier, and the others go
// on without it.

#include "block.cuh"
#include "compute.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    early_exit(uint32_t iteration_count, const uint32_t *leave_at_of, uint32_t *data) {
    __shared__ uint64_t bar;
    __shared__ uint32_t tiles[2][1024];
    const uint32_t rank = block::thread_rank(), size = block::size();
    const uint32_t partner = block::partner(rank, size);
    const size_t global = block::index() * size + rank;
    data += global;
    const uint32_t leave_at = leave_at_of[global];

    if (rank == 0) {
        cuda::ptx::mbarrier_init(&bar, size);
    }
    tiles[0][rank] = 0;
    tiles[1][rank] = 0;
    block::sync();

    uint32_t value = *data;
    for (uint32_t i = 0; i < iteration_count; ++i) {
        uint32_t *tile = tiles[i % 2];
        if (i == leave_at) {
            tile[rank] = ~value;
            (void)cuda::ptx::mbarrier_arrive_drop(
                cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared, &bar, 1);
            *data = value;
            return;
        }
        tile[rank] = value;

        const uint64_t token = cuda::ptx::mbarrier_arrive(&bar);
        value = compute(value, i);
        while (!cuda::ptx::mbarrier_try_wait(&bar, token)) {}

        value ^= tile[partner];
    }
    *data = value;
}
