// The kernels of kernels/src in CUDA C++ with cuda::ptx, step by step the same.

#include <cstdint>
#include <cuda/ptx>
#include <cuda_bf16.h>

namespace ptx = cuda::ptx;

constexpr uint32_t WARP = 32;
constexpr uint32_t ALL_LANES = 0xffffffff;
constexpr int STAGES = 4;
constexpr int AHEAD = STAGES - 1;

extern __shared__ __align__(128) uint8_t shared[];

struct Ring {
  uint64_t full[STAGES], empty[STAGES];
  uint32_t numbers[STAGES];
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
  uint32_t tile_bytes;
};

struct Tile {
  uint64_t* empty;
  uint8_t* data;
  uint32_t bytes;
  uint64_t offset;
};

// Gives `each` this lane's items of an array. N are loaded before the first is used.
template <uint32_t N, typename T, typename Each>
__device__ void share(T* items, uint32_t count, Each each) {
  uint32_t index = ptx::get_sreg_laneid();
  for (; index + (N - 1) * WARP < count; index += N * WARP) {
    T batch[N];
    for (uint32_t i = 0; i < N; ++i) batch[i] = items[index + i * WARP];
    for (uint32_t i = 0; i < N; ++i) each(items[index + i * WARP], batch[i]);
  }
  for (; index < count; index += WARP) each(items[index], items[index]);
}

struct WarpOfGrid {
  uint32_t warp, count;
  __device__ WarpOfGrid() {
    const uint32_t warps = blockDim.x / WARP;
    warp = blockIdx.x * warps + threadIdx.x / WARP;
    count = gridDim.x * warps;
  }
};

template <typename Draw>
struct Stream {
  Ring* ring;
  Cursor producer{0, 1}, consumer{0, 0};
  uint8_t* tiles;
  uint32_t lane;
  Array array;
  Draw draw;
  bool loading;

  __device__ Stream(const Array& array, Draw draw) : lane(ptx::get_sreg_laneid()), array(array), draw(draw) {
    const uint32_t warp = threadIdx.x / WARP, warps = blockDim.x / WARP, bytes = STAGES * array.tile_bytes;
    ring = reinterpret_cast<Ring*>(shared + warps * bytes) + warp;
    loading = lane == 0;
    if (loading) {
      for (int stage = 0; stage < STAGES; ++stage) {
        ptx::mbarrier_init(&ring->full[stage], 1);
        ptx::mbarrier_init(&ring->empty[stage], 1);
      }
    }
    __syncwarp();
    tiles = shared + warp * bytes;
    for (int i = 0; i < AHEAD; ++i) load();
  }

  __device__ void load() {
    if (!loading) return;
    while (!ptx::mbarrier_try_wait_parity(&ring->empty[producer.stage], producer.parity)) {
    }
    uint64_t* full = &ring->full[producer.stage];
    const uint32_t number = draw();
    ring->numbers[producer.stage] = number;
    const uint64_t offset = offset_of(number);
    loading = offset < array.bytes;
    if (!loading) {
      ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full);
      return;
    }
    const uint32_t size = bytes_at(offset);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, size);
    ptx::cp_async_bulk(ptx::space_shared, ptx::space_global, tiles + producer.stage * array.tile_bytes,
                       array.input + offset, size, full);
    producer.advance();
  }

  __device__ bool next(Tile& tile) {
    while (!ptx::mbarrier_try_wait_parity(&ring->full[consumer.stage], consumer.parity)) {
    }
    tile.offset = offset_of(ring->numbers[consumer.stage]);
    if (tile.offset >= array.bytes) return false;
    tile.empty = &ring->empty[consumer.stage];
    tile.data = tiles + consumer.stage * array.tile_bytes;
    tile.bytes = bytes_at(tile.offset);
    consumer.advance();
    return true;
  }

  __device__ uint64_t offset_of(uint32_t number) const { return uint64_t(number) * array.tile_bytes; }

  __device__ uint32_t bytes_at(uint64_t offset) const {
    return uint32_t(min(array.bytes - offset, uint64_t(array.tile_bytes)));
  }
};

__device__ void release(uint64_t* empty) {
  ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cta, ptx::space_shared, empty);
}

template <typename Change>
__device__ void map(uint8_t* output, const Array& input, uint32_t* next, Change change) {
  const uint32_t last = uint32_t((input.bytes + input.tile_bytes - 1) / input.tile_bytes) + WarpOfGrid().count - 1;
  Stream stream(input, [=] {
    const uint32_t number = atomicAdd(next, 1);
    if (number == last) *next = 0;
    return number;
  });
  Tile tile;
  uint64_t* storing = nullptr;
  while (stream.next(tile)) {
    change(tile);
    __syncwarp();
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
  static __device__ uint32_t scale(uint32_t x, float factor) { return __float_as_uint(__uint_as_float(x) * factor); }
  static __device__ float sum(uint32_t x) { return __uint_as_float(x); }
};

struct Bfloat16 {
  static __device__ float low(uint32_t x) { return __uint_as_float(x << 16); }
  static __device__ float high(uint32_t x) { return __uint_as_float(x & 0xffff0000); }
  static __device__ uint32_t scale(uint32_t x, float factor) {
    const __nv_bfloat162 product = __floats2bfloat162_rn(low(x) * factor, high(x) * factor);
    return reinterpret_cast<const uint32_t&>(product);
  }
  static __device__ float sum(uint32_t x) { return low(x) + high(x); }
};

template <typename T>
__device__ void scale(uint8_t* output, const Array& input, uint32_t* next, float factor) {
  map(output, input, next, [=](Tile& tile) {
    share<4>(reinterpret_cast<uint4*>(tile.data), uint32_t(tile.bytes / sizeof(uint4)),
             [=](uint4& place, const uint4& x) {
               place = {T::scale(x.x, factor), T::scale(x.y, factor), T::scale(x.z, factor), T::scale(x.w, factor)};
             });
    ptx::fence_proxy_async(ptx::space_shared);
  });
}

__device__ float warp_sum(float x) {
  for (int distance = 16; distance; distance /= 2) x += __shfl_xor_sync(ALL_LANES, x, distance);
  return x;
}

template <typename T>
__device__ void sum(float* total, float* partials, uint32_t* finished, const Array& input) {
  const WarpOfGrid here;
  const uint32_t count = here.count;
  Stream stream(input, [count, number = here.warp - count]() mutable { return number += count; });
  Tile tile;
  float sums[4] = {};
  while (stream.next(tile)) {
    share<4>(reinterpret_cast<uint4*>(tile.data), uint32_t(tile.bytes / sizeof(uint4)),
             [&](uint4&, const uint4& quad) {
               sums[0] += T::sum(quad.x);
               sums[1] += T::sum(quad.y);
               sums[2] += T::sum(quad.z);
               sums[3] += T::sum(quad.w);
             });
    __syncwarp();
    if (stream.lane == 0) release(tile.empty);
    stream.load();
  }
  const float sum = warp_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));

  uint32_t before = 0;
  if (stream.lane == 0) {
    partials[here.warp] = sum;
    ptx::fence(ptx::sem_acq_rel, ptx::scope_gpu);
    before = atomicAdd(finished, 1);
  }
  if (__shfl_sync(ALL_LANES, before, 0) == count - 1) {
    ptx::fence(ptx::sem_acq_rel, ptx::scope_gpu);
    __syncwarp();
    float sum = 0;
    share<8>(partials, count, [&](float&, float partial) { sum += partial; });
    sum = warp_sum(sum);
    if (stream.lane == 0) {
      *total = sum;
      *finished = 0;
    }
  }
}

extern "C" __global__ void copy(uint8_t* y, const uint8_t* x, uint64_t bytes, uint32_t tile_bytes, uint32_t* next) {
  map(y, {x, bytes, tile_bytes}, next, [](Tile&) {});
}

extern "C" __global__ void scale_f32(uint8_t* y, const uint8_t* x, uint64_t bytes, uint32_t tile_bytes, uint32_t* next,
                                     float factor) {
  scale<Float>(y, {x, bytes, tile_bytes}, next, factor);
}

extern "C" __global__ void __launch_bounds__(512, 1)
    scale_bf16(uint8_t* y, const uint8_t* x, uint64_t bytes, uint32_t tile_bytes, uint32_t* next, float factor) {
  scale<Bfloat16>(y, {x, bytes, tile_bytes}, next, factor);
}

extern "C" __global__ void sum_f32(float* total, float* partials, uint32_t* finished, const uint8_t* x, uint64_t bytes,
                                   uint32_t tile_bytes) {
  sum<Float>(total, partials, finished, {x, bytes, tile_bytes});
}

extern "C" __global__ void __launch_bounds__(512, 1)
    sum_bf16(float* total, float* partials, uint32_t* finished, const uint8_t* x, uint64_t bytes, uint32_t tile_bytes) {
  sum<Bfloat16>(total, partials, finished, {x, bytes, tile_bytes});
}
