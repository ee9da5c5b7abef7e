using namespace cuda::ptx;

extern __shared__ __align__(1024) uint8_t SMEM[];

#define INLINE static __device__ __forceinline__

INLINE uint8_t* at(uint8_t* pointer, uint32_t offset) { return pointer + offset; }
INLINE uint32_t low(uint8_t* pointer) { return (uint32_t)(uint64_t)pointer; }
INLINE uint32_t shared_address(uint8_t* pointer) { return (uint32_t)__cvta_generic_to_shared(pointer); }
// The same value, of which no compiler knows that.
INLINE uint32_t opaque(uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}
// As `at`, in shared memory: otherwise nvcc keeps the offset and adds the address of the array anew in each step.
INLINE uint8_t* advance(uint8_t* pointer, uint32_t offset) {
  return (uint8_t*)__cvta_shared_to_generic(opaque(shared_address(at(pointer, offset))));
}
// As `at`, in global memory: otherwise nvcc also adds up the offsets of all steps, beside the chain.
INLINE uint8_t* onward(uint8_t* pointer, uint32_t offset) {
  pointer = at(pointer, offset);
  asm volatile("" : "+l"(pointer));
  return pointer;
}
// As `advance`, where the shared memory of another CTA has its place.
INLINE uint8_t* advance_remote(uint8_t* pointer, uint32_t offset) { return advance(pointer, offset); }
// The same address in shared memory, of which no compiler and no assembler knows where it comes from: otherwise they make
// it anew in the loop, each in its own way.
INLINE uint8_t* fixed(uint8_t* pointer) {
  uint32_t address = shared_address(pointer);
  asm volatile("shfl.sync.idx.b32 %0, %0, %1, 31, -1;" : "+r"(address) : "r"(threadIdx.x & 31));
  return (uint8_t*)__cvta_shared_to_generic(address);
}
INLINE uint64_t* as_barrier(uint8_t* pointer) { return (uint64_t*)pointer; }

// Of a value in several registers the first: its instruction writes them all.
INLINE uint32_t fold(bool v) { return v; }
INLINE uint32_t fold(uint8_t v) { return v; }
INLINE uint32_t fold(uint16_t v) { return v; }
INLINE uint32_t fold(uint32_t v) { return v; }
INLINE uint32_t fold(int16_t v) { return (uint32_t)v; }
INLINE uint32_t fold(int32_t v) { return (uint32_t)v; }
INLINE uint32_t fold(uint64_t v) { return (uint32_t)v; }
INLINE uint32_t fold(int64_t v) { return fold((uint64_t)v); }
INLINE uint32_t fold(ulonglong2 v) { return fold((uint64_t)v.x); }
INLINE uint32_t fold(float v) { return __float_as_uint(v); }
INLINE uint32_t fold(double v) { return (uint32_t)__double_as_longlong(v); }
INLINE uint32_t fold(const void* v) { return (uint32_t)(uint64_t)v; }
// Reads registers anew, each time as if they might be others.
INLINE void load(uint32_t (&to)[1], uint8_t* from) {
  asm volatile("ld.volatile.shared.b32 %0, [%1];" : "=r"(to[0]) : "r"(shared_address(from)));
}
INLINE void load(uint32_t (&to)[2], uint8_t* from) {
  asm volatile("ld.volatile.shared.v2.b32 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"(shared_address(from)));
}
INLINE void load(uint32_t (&to)[4], uint8_t* from) {
  asm volatile("ld.volatile.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(from)));
}
// 16 bits in both halves of 32.
INLINE uint32_t twice(uint16_t half) {
  uint32_t both;
  asm volatile("mov.b32 %0, {%1, %1};" : "=r"(both) : "h"(half));
  return both;
}
template <typename T, size_t N>
INLINE uint32_t fold(const T (&v)[N]) {
  return fold(v[0]);
}
// A result of several registers.
template <typename T, size_t N>
struct Values {
  T v[N];
};
template <typename T, size_t N>
INLINE uint32_t fold(const Values<T, N>& values) {
  return fold(values.v);
}
template <typename T, size_t N>
INLINE void assign(T (&to)[N], const Values<T, N>& values) {
  for (size_t i = 0; i < N; ++i) to[i] = values.v[i];
}

INLINE uint64_t clock_now() { return get_sreg_clock64(); }
INLINE void block_sync() { __syncthreads(); }
INLINE void cluster_sync() {
  barrier_cluster_arrive();
  barrier_cluster_wait();
}
INLINE void arm(uint8_t* bar, uint32_t bytes) {
  mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, (uint64_t*)bar, bytes);
}
INLINE void wait(uint8_t* bar, uint32_t parity) {
  while (!mbarrier_try_wait_parity((uint64_t*)bar, parity)) {
  }
}
// Waits for up to `longest` cycles, each time for another number of them, and adds what it took to `sum`; `longest` is one
// less than a power of two. It reads the clock, as the assembler drops a loop that only counts.
INLINE uint64_t pause(uint64_t sum, uint32_t step, uint32_t longest) {
  // Whether there is one is asked each time: one language kept the answer, the other did not.
  if (opaque(longest) == 0) {
    return sum;
  }
  const uint64_t start = clock_now();
  const uint64_t cycles = (step * 29) & longest;
  uint64_t passed;
  _Pragma("unroll 1") do {
    passed = clock_now() - start;
  } while (passed < cycles);
  return sum + passed;
}
INLINE void drain() { cp_async_bulk_wait_group(n32_t<0>{}); }
INLINE void async_drain() { asm volatile("cp.async.wait_all;" : : : "memory"); }
INLINE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
INLINE void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
INLINE void keep_one_group() { asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory"); }
INLINE void wait_for_groups() { asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory"); }
// What warpgroups multiply: 64 rows of 128 bytes, and up to 256 more.
INLINE uint8_t* matrices() { return at(SMEM, 2048); }
// Of rows of 128 bytes with the swizzle of a tensor copy.
INLINE uint64_t descriptor(uint8_t* matrix) {
  return (uint64_t)(shared_address(matrix) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
INLINE void grow_and_shrink() {
  setmaxnreg_dec(n32_t<40>{});
  setmaxnreg_inc(n32_t<64>{});
}
INLINE uint8_t* map_to(uint8_t* pointer, uint32_t rank) {
  uint64_t mapped;
  asm("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(pointer), "r"(rank));
  return (uint8_t*)mapped;
}
INLINE uint64_t open_barrier(uint8_t* bar, uint32_t lane) {
  if (lane == 0) {
    mbarrier_init((uint64_t*)bar, 500000);
    fence_mbarrier_init(sem_release, scope_cluster);
    return mbarrier_arrive((uint64_t*)bar);
  }
  return 0;
}
INLINE uint64_t one_barrier(uint8_t* bar, uint32_t lane) {
  if (lane == 0) {
    mbarrier_init((uint64_t*)bar, 1);
    fence_mbarrier_init(sem_release, scope_cluster);
  }
  return 0;
}
INLINE uint64_t done_barrier(uint8_t* bar, uint32_t lane) {
  one_barrier(bar, lane);
  return lane == 0 ? mbarrier_arrive((uint64_t*)bar) : 0;
}
INLINE uint64_t new_barrier(uint8_t* bar, uint32_t lane) {
  if (lane == 0) {
    mbarrier_init(layout_v1, (uint64_t*)bar, 1);
    fence_mbarrier_init(sem_release, scope_cluster);
    return mbarrier_arrive((uint64_t*)bar);
  }
  return 0;
}

#define PROLOGUE                                                      \
  zero = opaque(zero);                                                \
  const uint32_t lane = threadIdx.x & 31;                             \
  const uint32_t in_block = threadIdx.x >> 5;                         \
  const uint32_t warp = blockIdx.x * (blockDim.x >> 5) + in_block;    \
  const uint32_t rank = get_sreg_cluster_ctarank();                   \
  uint8_t* const own_bar = at(SMEM, in_block * 64);                   \
  uint8_t* const own_source = at(SMEM, 2048 + in_block * 2048);       \
  uint8_t* const own_target = at(own_source, 1024);                   \
  uint8_t* const bar = fixed(own_bar);                                \
  uint8_t* const source = fixed(own_source);                          \
  uint8_t* const target = fixed(own_target);                          \
  uint8_t* const peer_bar = fixed(map_to(own_bar, rank ^ 1));         \
  uint8_t* const peer_target = fixed(map_to(own_target, rank ^ 1));   \
  uint8_t* const slab = at(data, (warp + place) * 4096);              \
  uint8_t* const global = at(slab, lane * 16);                        \
  const uint32_t tile = opaque(warp + place);                         \
  const uint32_t seed = opaque(lane + 3);                             \
  for (uint32_t word = 0; word < 8; ++word) {                         \
    *(uint32_t*)at(own_source, (lane + word * 32) * 4) = seed + word; \
  }                                                                   \
  fence_proxy_async();                                                \
  __syncthreads();

INLINE void record(uint64_t* out, uint32_t lane, uint32_t warp, uint64_t t0, uint64_t t1, uint32_t sink) {
  if (lane == 0) {
    out += warp * 4;
    out[0] = t0;
    out[1] = t1;
    out[2] = sink;
    out[3] = get_sreg_smid();
  }
}
