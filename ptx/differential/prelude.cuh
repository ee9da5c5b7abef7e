// What every kernel of the differential tests stands on: words of input and output, memory, threads,
// and barriers written out in PTX. `prelude.rs` is the same in Rust.
#pragma once

#include <cuda/annotated_ptr>
#include <cuda/ptx>
#include <cuda/std/cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>
#include <mma.h>

using namespace cuda::std;

using u8 = uint8_t;
using u32 = uint32_t;
using u64 = uint64_t;

struct bits128 { u64 part[2]; };
struct bits256 { u64 part[4]; };
struct alignas(64) TensorMap { u64 opaque[16]; };

#define ON_GPU __device__ __forceinline__

ON_GPU u32 smem(const void* pointer) { return static_cast<u32>(__cvta_generic_to_shared(pointer)); }
ON_GPU u64 gmem(const void* pointer) { return static_cast<u64>(__cvta_generic_to_global(pointer)); }

ON_GPU u64 get(const u64* words, u64 index) { return words[index]; }
ON_GPU void put(u64* words, u64 index, u64 word) { words[index] = word; }
ON_GPU u8* at(u8* memory, u64 bytes) { return memory + bytes; }

ON_GPU u64 address(u8* memory) { return reinterpret_cast<u64>(memory); }

ON_GPU u64 load(u8* memory, u64 size) {
    switch (size) {
    case 1: return *memory;
    case 2: return *reinterpret_cast<uint16_t*>(memory);
    case 4: return *reinterpret_cast<u32*>(memory);
    default: return *reinterpret_cast<u64*>(memory);
    }
}

ON_GPU void store(u8* memory, u64 size, u64 value) {
    switch (size) {
    case 1: *memory = static_cast<u8>(value); break;
    case 2: *reinterpret_cast<uint16_t*>(memory) = static_cast<uint16_t>(value); break;
    case 4: *reinterpret_cast<u32*>(memory) = static_cast<u32>(value); break;
    default: *reinterpret_cast<u64*>(memory) = value;
    }
}

// The low bytes of a word as a value of any plain type, and back.
template <class T> ON_GPU T value(u64 word) { return *reinterpret_cast<T*>(&word); }
template <class T> ON_GPU u64 word(T value) {
    u64 word = 0;
    *reinterpret_cast<T*>(&word) = value;
    return word;
}
template <class To, class From> ON_GPU To as(From from) { return *reinterpret_cast<To*>(&from); }
ON_GPU u64 flag(bool value) { return value; }

ON_GPU u64 thread() { return threadIdx.x; }
ON_GPU u64 threads() { return blockDim.x; }
ON_GPU u64 block() { return blockIdx.x; }

// The number of the thread in the grid, x before y before z, threads before blocks.
ON_GPU u64 grid_thread() {
    u64 in_block = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    u64 of_block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    return in_block + of_block * (blockDim.x * blockDim.y * blockDim.z);
}

ON_GPU void sync() { __syncthreads(); }

// Where shared memory starts, in the units of a matrix descriptor.
ON_GPU u64 matrix_start(const void* memory) { return (smem(memory) & 0x3ffff) >> 4; }

// Lets multiplications of the warpgroup see shared memory and registers.
ON_GPU void warpgroup_begin() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Waits for all multiplications of the warpgroup.
ON_GPU void warpgroup_end() {
    asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
}

ON_GPU u64 cluster_rank() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

ON_GPU void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

ON_GPU void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
ON_GPU void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

// The object in the block of that rank which has the place of `memory` in this block.
ON_GPU u8* remote(u8* memory, u64 rank) {
    u64 address;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(address) : "l"(memory), "r"(u32(rank)));
    return reinterpret_cast<u8*>(address);
}

ON_GPU void bar_init(u8* bar, u64 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(smem(bar)), "r"(u32(count)) : "memory");
}

ON_GPU void bar_inval(u8* bar) {
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(smem(bar)) : "memory");
}

ON_GPU void bar_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

ON_GPU u64 bar_arrive(u8* bar, u64 count) {
    u64 state;
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1], %2;"
                 : "=l"(state) : "r"(smem(bar)), "r"(u32(count)) : "memory");
    return state;
}

// One arrival at a barrier of another block.
ON_GPU void bar_arrive_remote(u8* bar) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(smem(bar)) : "memory");
}

ON_GPU u64 bar_arrive_drop(u8* bar, u64 count) {
    u64 state;
    asm volatile("mbarrier.arrive_drop.release.cta.shared::cta.b64 %0, [%1], %2;"
                 : "=l"(state) : "r"(smem(bar)), "r"(u32(count)) : "memory");
    return state;
}

ON_GPU void bar_expect(u8* bar, u64 bytes) {
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(smem(bar)), "r"(u32(bytes)) : "memory");
}

ON_GPU void bar_complete(u8* bar, u64 bytes) {
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(smem(bar)), "r"(u32(bytes)) : "memory");
}

ON_GPU u64 bar_pending(u64 state) {
    u32 count;
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(state));
    return count;
}

ON_GPU u64 bar_test(u8* bar, u64 parity) {
    u32 complete;
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(complete) : "r"(smem(bar)), "r"(u32(parity)) : "memory");
    return complete;
}

ON_GPU void bar_wait(u8* bar, u64 parity) {
    while (bar_test(bar, parity) == 0) {}
}

// The same, but gives up after so many tests.
ON_GPU void bar_wait_at_most(u8* bar, u64 parity, u64 tests) {
    for (u64 left = tests; left > 0 && bar_test(bar, parity) == 0; --left) {}
}

// Lets the copy engine see what this thread wrote.
ON_GPU void proxy_fence() { asm volatile("fence.proxy.async;" ::: "memory"); }

ON_GPU void bulk_commit() { asm volatile("cp.async.bulk.commit_group;"); }

// Waits for all bulk groups of this thread.
ON_GPU void bulk_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

ON_GPU void bulk_load(u8* to, u8* from, u64 bytes, u8* bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(smem(to)), "l"(gmem(from)), "r"(u32(bytes)), "r"(smem(bar)) : "memory");
}

ON_GPU void bulk_store(u8* to, u8* from, u64 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(gmem(to)), "r"(smem(from)), "r"(u32(bytes)) : "memory");
}

// Starts a copy of 16 bytes that `cp.async.mbarrier.arrive` tracks.
ON_GPU void small_copy(u8* to, u8* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(smem(to)), "l"(gmem(from)) : "memory");
}

ON_GPU void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until no more than so many of the latest groups of small copies are pending.
ON_GPU void copies_wait_0() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }
ON_GPU void copies_wait_1() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }
ON_GPU void copies_wait_2() { asm volatile("cp.async.wait_group 2;" ::: "memory"); }
ON_GPU void copies_wait_3() { asm volatile("cp.async.wait_group 3;" ::: "memory"); }
ON_GPU void copies_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Waits at a barrier of the block by its number.
ON_GPU void named_sync(u64 number, u64 threads) {
    asm volatile("barrier.sync %0, %1;" :: "r"(u32(number)), "r"(u32(threads)) : "memory");
}

// A load with a cache policy.
ON_GPU u64 load_hinted(u8* memory, u64 policy) {
    u64 value;
    asm volatile("ld.global.L2::cache_hint.b64 %0, [%1], %2;" : "=l"(value) : "l"(gmem(memory)), "l"(policy) : "memory");
    return value;
}

// A relaxed store that other threads may watch, and the load that watches.
ON_GPU void publish(u8* memory, u64 value) {
    asm volatile("st.relaxed.sys.u64 [%0], %1;" :: "l"(memory), "l"(value) : "memory");
}

ON_GPU u64 watch(u8* memory) {
    u64 value;
    asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(memory) : "memory");
    return value;
}

// The same of 4 bytes: a flag.
ON_GPU void raise(u8* flag) { asm volatile("st.relaxed.sys.u32 [%0], 1;" :: "l"(flag) : "memory"); }

ON_GPU u64 is_raised(u8* flag) {
    u32 value;
    asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}

// A generic address of local memory.
ON_GPU u8* local_place() {
    u64 address;
    asm volatile("{\n\t.local .align 8 .b8 LOCAL_place[8];\n\tcvta.local.u64 %0, LOCAL_place;\n\t}" : "=l"(address));
    return reinterpret_cast<u8*>(address);
}

ON_GPU void full_fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

ON_GPU void tensor_load(u8* to, u8* map, u64 x, u8* bar) {
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
                 :: "r"(smem(to)), "l"(map), "r"(u32(x)), "r"(smem(bar)) : "memory");
}

ON_GPU void tensor_load_2d(u8* to, u8* map, u64 x, u64 y, u8* bar) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(smem(to)), "l"(map), "r"(u32(x)), "r"(u32(y)), "r"(smem(bar)) : "memory");
}

ON_GPU void tensor_load_3d(u8* to, u8* map, u64 x, u64 y, u64 z, u8* bar) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(smem(to)), "l"(map), "r"(u32(x)), "r"(u32(y)), "r"(u32(z)), "r"(smem(bar)) : "memory");
}

ON_GPU void map_release() { asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory"); }

ON_GPU void map_publish(u8* to, u8* from) {
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
                 :: "l"(gmem(to)), "r"(smem(from)) : "memory");
}

ON_GPU void map_acquire(u8* map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(map) : "memory");
}

ON_GPU void registers_decrease() { asm volatile("setmaxnreg.dec.sync.aligned.u32 24;"); }

ON_GPU u64 policy_evict_first() {
    u64 policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 0f3F800000;" : "=l"(policy));
    return policy;
}
