#pragma once

#include <cstdint>

#include <cuda/ptx>
using namespace cuda::ptx;

extern __shared__ __align__(1024) uint8_t SHARED[];

#define INLINE static __device__ __forceinline__

#define SITUATION(name)                                                                                    \
  extern "C" __global__ void __launch_bounds__(1024)                                                       \
      name(uint64_t* out, uint8_t* data, const uint8_t* maps, uint32_t steps, uint32_t passes, uint32_t p, \
           uint32_t q)

#define TIMED(sync, active, sink, ...)                \
  {                                                   \
    uint64_t start = 0, end = 0;                      \
    uint32_t pass = 0;                                \
    _Pragma("unroll 1")                               \
    do {                                              \
      sync;                                           \
      uint32_t count = opaque(pass + 1 < passes ? 8 : steps); \
      if (active) {                                   \
        start = get_sreg_clock64();                   \
        uint32_t step = 0;                            \
        _Pragma("unroll 1")                           \
        do {                                          \
          __VA_ARGS__                                 \
          step = opaque(step + 1);                    \
        } while (step < count);                       \
        end = get_sreg_clock64();                     \
      }                                               \
      pass = opaque(pass + 1);                        \
    } while (pass < passes);                          \
    sync;                                             \
    record(out, start, end, sink);                    \
  }

#define EIGHT(...) \
  __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__

INLINE uint32_t opaque(uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}
template <typename T>
INLINE T* fixed(T* pointer) {
  uint32_t address = (uint32_t)__cvta_generic_to_shared(pointer);
  asm volatile("{ .reg .b32 mask; activemask.b32 mask; shfl.sync.idx.b32 %0, %0, %1, 31, mask; }"
               : "+r"(address) : "r"(threadIdx.x % 32));
  return (T*)__cvta_shared_to_generic(address);
}
INLINE uint32_t thread() { return threadIdx.x; }
INLINE void block_sync() { __syncthreads(); }
INLINE void cluster_sync() {
  barrier_cluster_arrive();
  barrier_cluster_wait();
}
INLINE uint64_t* barrier(uint32_t index) { return (uint64_t*)(SHARED + index * 8); }
INLINE uint8_t* buffer(uint32_t offset) { return SHARED + 1024 + offset; }

INLINE void init_barriers(uint32_t barriers, uint32_t count) {
  if (thread() == 0) {
    for (uint32_t index = 0; index < barriers; ++index) {
      mbarrier_init(barrier(index), count);
    }
    fence_mbarrier_init(sem_release, scope_cluster);
  }
  for (uint32_t offset = thread() * 4; offset < 1024; offset += blockDim.x * 4) {
    *(uint32_t*)buffer(offset) = offset + 1;
  }
  fence_proxy_async();
  cluster_sync();
}

INLINE void arm(uint64_t* bar, uint32_t bytes) {
  mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, bar, bytes);
}
INLINE void wait(uint64_t* bar, uint32_t parity) {
  while (!mbarrier_try_wait_parity(bar, parity)) {
  }
}

// As `wait`, but the thread does not sleep between its tests.
INLINE void test(uint64_t* bar, uint32_t parity) {
  while (!mbarrier_test_wait_parity(bar, parity)) {
  }
}

template <typename T>
INLINE T* map_to(T* pointer, uint32_t rank) {
  uint64_t mapped;
  asm("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(pointer), "r"(rank));
  return (T*)mapped;
}
INLINE uint32_t load_cluster(uint32_t address) {
  uint32_t value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}
INLINE void store_cluster(uint32_t address, uint32_t value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}
INLINE uint32_t shared_address(const void* pointer) { return (uint32_t)__cvta_generic_to_shared(pointer); }

INLINE void record(uint64_t* out, uint64_t start, uint64_t end, uint32_t sink) {
  if (thread() % 32 == 0) {
    out += (blockIdx.x * ((blockDim.x + 31) / 32) + thread() / 32) * 4;
    out[0] = start;
    out[1] = end;
    out[2] = sink;
    out[3] = get_sreg_smid();
  }
}
