// C = A * B^T by warpgroups, as in lib.rs: a CTA computes a tile of C, of 64 rows and 256 columns, from slabs of A and B
// that tensor copies bring.

#include <cuda.h>
#include <cuda/ptx>

namespace ptx = cuda::ptx;

constexpr uint32_t threads = 128;
constexpr uint32_t rows = 64;
constexpr uint32_t columns = 256;
// Bytes of a row of a slab, and of what one multiplication takes of it.
constexpr uint32_t slab_bytes = 128;
constexpr uint32_t step_bytes = 32;
constexpr uint32_t stages = 4;
constexpr uint32_t a_bytes = rows * slab_bytes;
constexpr uint32_t stage_bytes = (rows + columns) * slab_bytes;
constexpr uint32_t registers = columns / 2;

// The registers of D in the text of an instruction, and as operands.
#define D_TEXT                                                                                                             \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                           \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                                 \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                 \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "                                 \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "                                 \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "                                 \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "                     \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define D_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D_32(i) D_4(i), D_4(i + 4), D_4(i + 8), D_4(i + 12), D_4(i + 16), D_4(i + 20), D_4(i + 24), D_4(i + 28)
#define D_128 D_32(0), D_32(32), D_32(64), D_32(96)

#define MULTIPLY(types, immediates)                                                                                        \
    asm volatile("{\n"                                                                                                     \
                 ".reg .pred p;\n"                                                                                         \
                 "setp.ne.b32 p, %130, 0;\n"                                                                               \
                 "wgmma.mma_async.sync.aligned.m64n256" types " {" D_TEXT "}, %128, %129, p, " immediates ";\n"            \
                 "}"                                                                                                       \
                 : D_128                                                                                                   \
                 : "l"(a), "l"(b), "r"(1)                                                                                  \
                 : "memory")

struct bf16 {
    static constexpr uint32_t bytes = 2;
    static __device__ void multiply(float (&d)[registers], uint64_t a, uint64_t b) {
        MULTIPLY("k16.f32.bf16.bf16", "1, 1, 0, 0");
    }
};

struct e4m3 {
    static constexpr uint32_t bytes = 1;
    static __device__ void multiply(float (&d)[registers], uint64_t a, uint64_t b) {
        MULTIPLY("k32.f32.e4m3.e4m3", "1, 1");
    }
};

// Keeps accesses to the registers on their side of this line.
static __device__ void fence(float (&d)[registers]) {
#pragma unroll
    for (uint32_t i = 0; i < registers; ++i) {
        asm volatile("" : "+f"(d[i]) : : "memory");
    }
}

// A matrix whose rows of 128 bytes run along K, swizzled by 128 bytes.
static __device__ uint64_t descriptor(const uint8_t *start) {
    const uint64_t address = static_cast<uint32_t>(__cvta_generic_to_shared(start)) & 0x3FFFF;
    return address >> 4 | uint64_t(1) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62;
}

// Starts the copies of a slab, if there is one.
template <typename T>
static __device__ void
start(const CUtensorMap *map_a, const CUtensorMap *map_b, uint8_t *ring, uint64_t *full, uint32_t slab, uint32_t slabs) {
    if (slab >= slabs) {
        return;
    }
    const uint32_t stage = slab % stages;
    uint8_t *a = ring + stage * stage_bytes;
    // By reference, which a constant of the host's cannot be taken by.
    const uint32_t expected = stage_bytes;
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[stage], expected);
    const int32_t column = slab * (slab_bytes / T::bytes);
    const int32_t corner_a[2] = {column, int32_t(blockIdx.y * rows)};
    const int32_t corner_b[2] = {column, int32_t(blockIdx.x * columns)};
    ptx::cp_async_bulk_tensor(ptx::space_shared, ptx::space_global, a, map_a, corner_a, &full[stage]);
    ptx::cp_async_bulk_tensor(ptx::space_shared, ptx::space_global, a + a_bytes, map_b, corner_b, &full[stage]);
}

template <typename T>
static __device__ void tile(const CUtensorMap *map_a, const CUtensorMap *map_b, float *c, uint32_t slabs) {
    extern __shared__ __align__(1024) uint8_t ring[];
    __shared__ uint64_t full[stages];
    const uint32_t thread = threadIdx.x;
    if (thread == 0) {
        for (uint32_t stage = 0; stage < stages; ++stage) {
            ptx::mbarrier_init(&full[stage], 1);
        }
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        for (uint32_t slab = 0; slab < stages; ++slab) {
            start<T>(map_a, map_b, ring, full, slab, slabs);
        }
    }
    __syncthreads();

    float d[registers] = {};
    fence(d);
    for (uint32_t slab = 0; slab < slabs; ++slab) {
        const uint32_t stage = slab % stages;
        while (!ptx::mbarrier_try_wait_parity(&full[stage], slab / stages % 2)) {}
        const uint64_t a = descriptor(ring + stage * stage_bytes);
        const uint64_t b = descriptor(ring + stage * stage_bytes + a_bytes);
        asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#pragma unroll
        for (uint32_t step = 0; step < slab_bytes / step_bytes; ++step) {
            T::multiply(d, a + step * (step_bytes >> 4), b + step * (step_bytes >> 4));
        }
        asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
        // All but the newest slab's multiplications are complete, by all warps: its stage is free.
        asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory");
        __syncthreads();
        if (thread == 0 && slab > 0) {
            start<T>(map_a, map_b, ring, full, slab - 1 + stages, slabs);
        }
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");
    fence(d);

    const uint32_t width = gridDim.x * columns;
#pragma unroll
    for (uint32_t i = 0; i < registers; i += 2) {
        const uint32_t row = blockIdx.y * rows + thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
        const uint32_t column = blockIdx.x * columns + i / 4 * 8 + thread % 4 * 2;
        *reinterpret_cast<float2 *>(&c[size_t(row) * width + column]) = make_float2(d[i], d[i + 1]);
    }
}

extern "C" __global__ void __launch_bounds__(threads) tile_bf16(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float *c, uint32_t slabs) {
    tile<bf16>(&a, &b, c, slabs);
}

extern "C" __global__ void __launch_bounds__(threads) tile_e4m3(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float *c, uint32_t slabs) {
    tile<e4m3>(&a, &b, c, slabs);
}
