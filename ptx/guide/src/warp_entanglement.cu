// Warp entanglement: lanes that arrive together update the barrier once, lanes that arrive one by
// one update it each.

#include "block.cuh"

namespace {

__device__ uint32_t updates(uint32_t found_count) {
    __shared__ uint32_t found[1024];
    const uint32_t rank = block::thread_rank();
    uint32_t *warp = found + rank / 32 * 32;
    warp[rank % 32] = found_count;
    block::sync();
    uint32_t updates = 0;
    for (uint32_t lane = 0; lane < 32; ++lane) {
        bool first = true;
        for (uint32_t earlier = 0; earlier < lane; ++earlier) {
            first &= warp[earlier] != warp[lane];
        }
        updates += first;
    }
    block::sync();
    return updates;
}

} // namespace

extern "C" __global__ void __launch_bounds__(1024) warp_entanglement(uint32_t *out) {
    __shared__ uint64_t bar;
    const uint32_t rank = block::thread_rank(), size = block::size();
    const uint32_t warp = (block::index() * size + rank) / 32;
    out += 2 * warp;

    if (rank == 0) {
        cuda::ptx::mbarrier_init(&bar, 2 * size + 1);
    }
    block::sync();

    uint32_t converged = cuda::ptx::mbarrier_pending_count(cuda::ptx::mbarrier_arrive(&bar));
    converged = updates(converged);

    uint32_t diverged = 0;
    for (uint32_t lane = 0; lane < 32; ++lane) {
        if (rank % 32 == lane) {
            diverged = cuda::ptx::mbarrier_pending_count(cuda::ptx::mbarrier_arrive(&bar));
        }
        block::sync_warp();
    }
    diverged = updates(diverged);

    if (rank % 32 == 0) {
        out[0] = converged;
        out[1] = diverged;
    }
}
