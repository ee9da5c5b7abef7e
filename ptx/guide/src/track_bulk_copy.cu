// Tracking an asynchronous memory operation: a bulk copy into shared memory.

#include "block.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    track_bulk_copy(uint32_t n, const uint32_t *input, uint32_t *out) {
    constexpr uint32_t tile_len = 1024;
    __shared__ uint64_t bar;
    alignas(128) __shared__ uint32_t tile[tile_len];
    const uint32_t rank = block::thread_rank(), size = block::size();
    const uint32_t start = block::index() * tile_len;
    const uint32_t len = min(n - start, tile_len);
    input += start;
    out += start;

    if (rank == 0) {
        cuda::ptx::mbarrier_init(&bar, size);
    }
    block::sync();

    const uint32_t whole = len / 4 * 4;
    for (uint32_t k = whole + rank; k < len; k += size) {
        tile[k] = input[k];
    }
    uint64_t token;
    if (rank == 0 && whole > 0) {
        const uint32_t bytes = whole * 4;
        token = cuda::ptx::mbarrier_arrive_expect_tx(
            cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared, &bar, bytes);
        cuda::ptx::cp_async_bulk(cuda::ptx::space_shared, cuda::ptx::space_global, tile, input, bytes, &bar);
    } else {
        token = cuda::ptx::mbarrier_arrive(&bar);
    }
    while (!cuda::ptx::mbarrier_try_wait(&bar, token)) {}

    for (uint32_t k = rank; k < len; k += size) {
        out[k] = tile[len - 1 - k];
    }
}
