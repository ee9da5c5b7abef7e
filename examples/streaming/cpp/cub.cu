// CUB's DeviceReduce behind two functions that the host program links.

#include <cstddef>
#include <cstdint>
#include <cub/device/device_reduce.cuh>
#include <cuda/functional>
#include <cuda_bf16.h>

namespace {

// Adds in f32, whatever the elements are.
struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};

template <typename T>
int reduce(void* scratch, size_t* scratch_bytes, const T* input, float* sum, uint64_t count, void* stream) {
  return cub::DeviceReduce::Reduce(scratch, *scratch_bytes, input, sum, count, Add{}, 0.0f,
                                   static_cast<cudaStream_t>(stream));
}

}  // namespace

// Without scratch memory, says how much is needed. The result is a cudaError_t.
extern "C" int cub_sum_f32(void* scratch, size_t* scratch_bytes, const float* input, float* sum, uint64_t count,
                           void* stream) {
  return reduce(scratch, scratch_bytes, input, sum, count, stream);
}

extern "C" int cub_sum_bf16(void* scratch, size_t* scratch_bytes, const __nv_bfloat16* input, float* sum,
                            uint64_t count, void* stream) {
  return reduce(scratch, scratch_bytes, input, sum, count, stream);
}
