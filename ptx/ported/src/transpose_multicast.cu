// Transposes a matrix with tensor copies and multicast: the four CTAs of a cluster share a tile of
// 64 rows and 32 columns, each fetches 16 of its rows for all four, and each writes 8 of its columns.

#include <cuda.h>
#include <cuda/ptx>

namespace ptx = cuda::ptx;

constexpr uint32_t cluster_size = 4;
constexpr uint32_t tile_rows = 64;
constexpr uint32_t tile_columns = 32;
constexpr uint32_t slice_rows = tile_rows / cluster_size;
constexpr uint32_t slice_columns = tile_columns / cluster_size;

extern "C" __global__ void __cluster_dims__(cluster_size, 1, 1)
    transpose_multicast(const __grid_constant__ CUtensorMap map, float *out, uint32_t rows) {
    alignas(128) __shared__ float tile[tile_rows][tile_columns];
    __shared__ uint64_t full;

    const uint32_t thread = ptx::get_sreg_tid_x();
    const uint32_t rank = ptx::get_sreg_cluster_ctarank();
    const uint32_t first_row = ptx::get_sreg_clusterid_x() * tile_rows;

    if (thread == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    ptx::barrier_cluster_arrive(ptx::sem_release);
    ptx::barrier_cluster_wait(ptx::sem_acquire);

    if (thread == 0) {
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof(tile));
        const int32_t coords[2] = {0, int32_t(first_row + rank * slice_rows)};
        const uint16_t everybody = (1 << cluster_size) - 1;
        ptx::cp_async_bulk_tensor(
            ptx::space_cluster, ptx::space_global, &tile[rank * slice_rows], &map, coords, &full, everybody);
    }
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &full, 0)) {}

    for (uint32_t i = thread; i < slice_columns * tile_rows; i += ptx::get_sreg_ntid_x()) {
        const uint32_t column = rank * slice_columns + i / tile_rows;
        const uint32_t row = i % tile_rows;
        out[column * rows + first_row + row] = tile[row][column];
    }

    ptx::barrier_cluster_arrive(ptx::sem_relaxed);
    ptx::barrier_cluster_wait();
}
