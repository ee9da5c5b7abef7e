// The kernels of kernels/src in CUDA C++ with cuda::ptx, step by step the same.

#include <cstdint>
#include <cuda/ptx>
#include <cuda_bf16.h>

namespace ptx = cuda::ptx;

constexpr uint32_t WARP = 32;
constexpr uint32_t ALL_LANES = 0xffffffff;
constexpr int STAGES = 3;

extern __shared__ __align__(128) uint8_t shared[];

struct Pipeline {
  uint64_t full[STAGES], empty[STAGES];
};

struct Cursor {
  uint32_t stage, parity;
  __device__ void advance() {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
};

struct Array {
  const uint8_t* input;
  uint64_t bytes;
  uint32_t tile_bytes, span_bytes;
};

struct Place {
  uint64_t offset;
  uint32_t left;
  __device__ void advance(const Array& array, uint64_t jump) {
    offset += array.tile_bytes;
    left -= array.tile_bytes;
    if (left == 0) {
      offset += jump;
      left = array.span_bytes;
    }
  }
};

struct Tile {
  uint64_t* empty;
  uint8_t* data;
  uint32_t bytes;
  uint64_t offset;
};

struct Stream {
  Pipeline* pipeline;
  Cursor producer{0, 1}, consumer{0, 0};
  uint8_t* ring;
  uint32_t lane;
  Array array;
  Place loading, using_;
  uint64_t jump;

  __device__ Stream(const Array& array) : lane(ptx::get_sreg_laneid()), array(array) {
    const uint32_t warp = threadIdx.x / WARP, warps = blockDim.x / WARP, ring_bytes = STAGES * array.tile_bytes;
    pipeline = reinterpret_cast<Pipeline*>(shared + warps * ring_bytes) + warp;
    if (lane == 0) {
      for (int stage = 0; stage < STAGES; ++stage) {
        ptx::mbarrier_init(&pipeline->full[stage], 1);
        ptx::mbarrier_init(&pipeline->empty[stage], 1);
      }
    }
    __syncwarp();
    ring = shared + warp * ring_bytes;
    loading = using_ = {uint64_t(blockIdx.x * warps + warp) * array.span_bytes, array.span_bytes};
    jump = uint64_t(gridDim.x * warps - 1) * array.span_bytes;
    for (int i = 0; i < STAGES - 1; ++i) load();
  }

  __device__ void load() {
    if (lane == 0 && loading.offset < array.bytes) {
      const uint32_t size = bytes_at(loading.offset);
      while (!ptx::mbarrier_try_wait_parity(&pipeline->empty[producer.stage], producer.parity)) {
      }
      uint64_t* full = &pipeline->full[producer.stage];
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, size);
      ptx::cp_async_bulk(ptx::space_shared, ptx::space_global, ring + producer.stage * array.tile_bytes,
                         array.input + loading.offset, size, full);
      producer.advance();
    }
    loading.advance(array, jump);
  }

  __device__ bool next(Tile& tile) {
    if (using_.offset >= array.bytes) return false;
    tile.offset = using_.offset;
    using_.advance(array, jump);
    while (!ptx::mbarrier_try_wait_parity(&pipeline->full[consumer.stage], consumer.parity)) {
    }
    tile.empty = &pipeline->empty[consumer.stage];
    tile.data = ring + consumer.stage * array.tile_bytes;
    tile.bytes = bytes_at(tile.offset);
    consumer.advance();
    return true;
  }

  __device__ uint32_t bytes_at(uint64_t offset) const {
    return uint32_t(min(array.bytes - offset, uint64_t(array.tile_bytes)));
  }
};

__device__ void release(uint64_t* empty) {
  ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cta, ptx::space_shared, empty);
}

template <typename Change>
__device__ void map(uint8_t* output, const Array& input, Change change) {
  Stream stream(input);
  Tile tile;
  uint64_t* storing = nullptr;
  while (stream.next(tile)) {
    change(tile, stream.lane);
    if (stream.lane == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, output + tile.offset, tile.data, tile.bytes);
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>{});
      if (storing) release(storing);
      storing = tile.empty;
    }
    stream.load();
  }
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});
}

struct Float {
  static __device__ uint32_t scale(uint32_t x, uint32_t factor) {
    return __float_as_uint(__uint_as_float(x) * __uint_as_float(factor));
  }
  static __device__ float sum(uint32_t x) { return __uint_as_float(x); }
};

struct Bfloat16 {
  static __device__ uint32_t scale(uint32_t x, uint32_t factor) {
    const __nv_bfloat162 product =
        __hmul2_rn(reinterpret_cast<__nv_bfloat162&>(x), reinterpret_cast<__nv_bfloat162&>(factor));
    return reinterpret_cast<const uint32_t&>(product);
  }
  static __device__ float sum(uint32_t x) {
    return __uint_as_float(x << 16) + __uint_as_float(x & 0xffff0000);
  }
};

template <typename T>
__device__ void scale(uint8_t* output, const Array& input, uint32_t factor) {
  map(output, input, [=](Tile& tile, uint32_t lane) {
    for (uint32_t i = lane * sizeof(uint4); i < tile.bytes; i += WARP * sizeof(uint4)) {
      uint4& quad = *reinterpret_cast<uint4*>(tile.data + i);
      quad = {T::scale(quad.x, factor), T::scale(quad.y, factor), T::scale(quad.z, factor), T::scale(quad.w, factor)};
    }
    ptx::fence_proxy_async(ptx::space_shared);
    __syncwarp();
  });
}

__device__ float warp_sum(float x) {
  for (int distance = 16; distance; distance /= 2) x += __shfl_xor_sync(ALL_LANES, x, distance);
  return x;
}

template <typename T>
__device__ void sum(float* total, float* partials, uint32_t* finished, const Array& input) {
  Stream stream(input);
  Tile tile;
  float sums[4] = {};
  while (stream.next(tile)) {
    for (uint32_t i = stream.lane * sizeof(uint4); i < tile.bytes; i += WARP * sizeof(uint4)) {
      const uint4 quad = *reinterpret_cast<uint4*>(tile.data + i);
      sums[0] += T::sum(quad.x);
      sums[1] += T::sum(quad.y);
      sums[2] += T::sum(quad.z);
      sums[3] += T::sum(quad.w);
    }
    __syncwarp();
    if (stream.lane == 0) release(tile.empty);
    stream.load();
  }
  const float sum = warp_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));

  const uint32_t warps = blockDim.x / WARP, warp = blockIdx.x * warps + threadIdx.x / WARP, count = gridDim.x * warps;
  uint32_t before = 0;
  if (stream.lane == 0) {
    partials[warp] = sum;
    ptx::fence(ptx::sem_acq_rel, ptx::scope_gpu);
    before = atomicAdd(finished, 1);
  }
  if (__shfl_sync(ALL_LANES, before, 0) == count - 1) {
    ptx::fence(ptx::sem_acq_rel, ptx::scope_gpu);
    __syncwarp();
    float sum = 0;
    for (uint32_t i = stream.lane; i < count; i += WARP) sum += partials[i];
    sum = warp_sum(sum);
    if (stream.lane == 0) {
      *total = sum;
      *finished = 0;
    }
  }
}

extern "C" __global__ void copy(uint8_t* y, const uint8_t* x, uint64_t bytes, uint32_t tile_bytes, uint32_t span_bytes) {
  map(y, {x, bytes, tile_bytes, span_bytes}, [](Tile&, uint32_t) {});
}

extern "C" __global__ void scale_f32(uint8_t* y, const uint8_t* x, uint64_t bytes, uint32_t tile_bytes,
                                     uint32_t span_bytes, uint32_t factor) {
  scale<Float>(y, {x, bytes, tile_bytes, span_bytes}, factor);
}

extern "C" __global__ void scale_bf16(uint8_t* y, const uint8_t* x, uint64_t bytes, uint32_t tile_bytes,
                                      uint32_t span_bytes, uint32_t factor) {
  scale<Bfloat16>(y, {x, bytes, tile_bytes, span_bytes}, factor);
}

extern "C" __global__ void sum_f32(float* total, float* partials, uint32_t* finished, const uint8_t* x, uint64_t bytes,
                                   uint32_t tile_bytes, uint32_t span_bytes) {
  sum<Float>(total, partials, finished, {x, bytes, tile_bytes, span_bytes});
}

extern "C" __global__ void sum_bf16(float* total, float* partials, uint32_t* finished, const uint8_t* x, uint64_t bytes,
                                    uint32_t tile_bytes, uint32_t span_bytes) {
  sum<Bfloat16>(total, partials, finished, {x, bytes, tile_bytes, span_bytes});
}
