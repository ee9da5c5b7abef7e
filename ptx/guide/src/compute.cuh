// The work that the guide overlaps with the barrier and leaves undefined.
#pragma once

#include <cstdint>

// The next value of a thread, for which it needs no other thread.
__device__ inline uint32_t compute(uint32_t value, uint32_t iteration) {
    return value * 1664525 + 1013904223 + iteration;
}
