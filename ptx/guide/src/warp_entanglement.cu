// Warp entanglement: lanes that arrive together update the barrier once, lanes that arrive one by
// one update it each.

#include "block.cuh"

extern "C" __global__ void __launch_bounds__(1024) warp_entanglement(uint32_t *converged, uint32_t *diverged) {
    __shared__ uint64_t bar;
    __shared__ uint32_t tile[1024];
    const uint32_t rank = block::thread_rank(), size = block::size();
    const size_t global = block::index() * size + rank;

    if (rank == 0) {
        cuda::ptx::mbarrier_init(&bar, 2 * size + 1);
    }
    block::sync();

    tile[rank] = cuda::ptx::mbarrier_pending_count(cuda::ptx::mbarrier_arrive(&bar));
    block::sync();
    converged[global] = tile[rank];

    for (uint32_t first = 0; first < min(size, 32u); first += 4) {
        for (uint32_t lane = first; lane < first + 4; ++lane) {
            if (rank % 32 == lane) {
                tile[rank] = cuda::ptx::mbarrier_pending_count(cuda::ptx::mbarrier_arrive(&bar));
            }
            block::sync_warp();
        }
    }
    diverged[global] = tile[rank];
}
