// What the guide takes from cooperative_groups::this_thread_block(), for one-dimensional blocks.
#pragma once

#include <cstdint>
#include <cuda/ptx>

namespace block {

// The number of this thread in its block.
__device__ inline uint32_t thread_rank() {
    return cuda::ptx::get_sreg_tid_x();
}

// The number of threads of a block.
__device__ inline uint32_t size() {
    return cuda::ptx::get_sreg_ntid_x();
}

// The number of this block in the grid.
__device__ inline uint32_t index() {
    return cuda::ptx::get_sreg_ctaid_x();
}

// The number of blocks of the grid.
__device__ inline uint32_t grid_size() {
    return cuda::ptx::get_sreg_nctaid_x();
}

// No thread goes on before all threads of the block are here, and then each sees what the others
// wrote.
__device__ inline void sync() {
    __syncthreads();
}

// The lanes of the warp go on together.
__device__ inline void sync_warp() {
    __syncwarp();
}

// The thread whose result a thread reads, half a block and one thread on: with more than two warps,
// always one of another warp.
__device__ inline uint32_t partner(uint32_t rank, uint32_t size) {
    uint32_t partner = rank + size / 2 + 1;
    // Modulo size: below it, the difference wraps around to a large number.
    return min(partner, partner - size);
}

} // namespace block
