// Tracking an asynchronous memory operation: memcpy_async into shared memory.

#include "../block.cuh"
#include "barrier.cuh"
#include <cooperative_groups.h>

extern "C" __global__ void __launch_bounds__(1024)
    track_bulk_copy_barrier(uint32_t n, const uint32_t *input, uint32_t *out) {
    constexpr uint32_t tile_len = 1024;
    __shared__ barrier_t bar;
    alignas(128) __shared__ uint32_t tile[tile_len];
    const uint32_t rank = block::thread_rank(), size = block::size();
    const uint32_t start = block::index() * tile_len;
    const uint32_t len = min(n - start, tile_len);
    input += start;
    out += start;

    if (rank == 0) {
        init(&bar, size);
    }
    block::sync();

    // The C++ function copies a multiple of 16 bytes.
    const uint32_t whole = len / 4 * 4;
    for (uint32_t k = whole + rank; k < len; k += size) {
        tile[k] = input[k];
    }
    if (whole > 0) {
        cuda::memcpy_async(
            cooperative_groups::this_thread_block(), tile, input, cuda::aligned_size_t<16>(whole * 4), bar);
    }
    bar.arrive_and_wait();

    for (uint32_t k = rank; k < len; k += size) {
        out[k] = tile[len - 1 - k];
    }
}
