// A libcuda.so.1 for the tests of `driver`: device memory is host memory, and the one kernel,
// `probe`, writes down how it was launched. FAKE_<entry point>=<code> makes that call fail.
// With -DOLD, cuLaunchKernelEx is missing.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *Handle;

static int result_of(const char *call) {
    char variable[64];
    snprintf(variable, sizeof variable, "FAKE_%s", call);
    const char *code = getenv(variable);
    return code ? atoi(code) : 0;
}

#define RETURN() return result_of(__func__)

int cuInit(unsigned flags) { RETURN(); }

int cuDriverGetVersion(int *version) {
    const char *set = getenv("FAKE_VERSION");
    *version = set ? atoi(set) : 13000;
    RETURN();
}

int cuGetErrorName(int code, const char **name) {
    switch (code) {
    case 1: *name = "CUDA_ERROR_INVALID_VALUE"; return 0;
    case 2: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
    case 209: *name = "CUDA_ERROR_NO_BINARY_FOR_GPU"; return 0;
    case 218: *name = "CUDA_ERROR_INVALID_PTX"; return 0;
    case 222: *name = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"; return 0;
    case 500: *name = "CUDA_ERROR_NOT_FOUND"; return 0;
    case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0;
    case 721: *name = "CUDA_ERROR_TENSOR_MEMORY_LEAK"; return 0;
    case 803: *name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; return 0;
    default: *name = NULL; return 1;
    }
}

int cuGetErrorString(int code, const char **text) {
    const char *name;
    *text = cuGetErrorName(code, &name) ? NULL : "the driver's words";
    return *text ? 0 : 1;
}

int cuDeviceGetCount(int *count) { *count = 1; RETURN(); }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; RETURN(); }

int cuDeviceGetName(char *name, int size, int device) {
    snprintf(name, size, "Fake H200");
    RETURN();
}

int cuDeviceGetAttribute(int *value, unsigned attribute, int device) {
    switch (attribute) {
    case 16: *value = 132; break;
    case 75: *value = 9; break;
    case 76: *value = 0; break;
    case 97: *value = 232448; break;
    default: return 1;
    }
    RETURN();
}

int cuDevicePrimaryCtxRetain(Handle *context, int device) { *context = context; RETURN(); }
int cuDevicePrimaryCtxRelease_v2(int device) { RETURN(); }
int cuCtxSetCurrent(Handle context) { RETURN(); }

int cuStreamCreateWithPriority(Handle *stream, unsigned flags, int priority) {
    *stream = stream;
    RETURN();
}
int cuStreamDestroy_v2(Handle stream) { RETURN(); }
int cuStreamSynchronize(Handle stream) { RETURN(); }

int cuEventCreate(Handle *event, unsigned flags) { *event = event; RETURN(); }
int cuEventRecord(Handle event, Handle stream) { RETURN(); }
int cuEventElapsedTime(float *ms, Handle start, Handle stop) { *ms = 1.25f; RETURN(); }
int cuEventDestroy_v2(Handle event) { RETURN(); }

int cuMemGetInfo_v2(size_t *free, size_t *total) { *free = 1000; *total = 2000; RETURN(); }

int cuMemAlloc_v2(uint64_t *address, size_t size) {
    int code = result_of(__func__);
    *address = code ? 0 : (uintptr_t)aligned_alloc(256, (size + 255) / 256 * 256);
    return code;
}
int cuMemFree_v2(uint64_t address) { free((void *)address); RETURN(); }
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t size) {
    memset((void *)to, value, size);
    RETURN();
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
    memcpy((void *)to, from, size);
    RETURN();
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
    memcpy(to, (void *)from, size);
    RETURN();
}

int cuModuleLoadDataEx(Handle *module, const void *image, unsigned count, const unsigned *options,
                       void **values) {
    int code = result_of(__func__);
    for (unsigned i = 0; code && i + 1 < count; i++)
        if (options[i] == 5 && options[i + 1] == 6)
            snprintf(values[i], (size_t)values[i + 1], "ptxas: line 7: unknown `%.4s`\n",
                     (const char *)image);
    *module = module;
    return code;
}
int cuModuleUnload(Handle module) { RETURN(); }
int cuModuleGetFunction(Handle *function, Handle module, const char *name) {
    *function = function;
    return strcmp(name, "probe") ? 500 : 0;
}

int cuFuncGetAttribute(int *value, unsigned attribute, Handle function) {
    *value = 100 + attribute;
    RETURN();
}
int cuFuncSetAttribute(Handle function, unsigned attribute, int value) {
    return attribute == 8 && value > 232448 - 101 ? 1 : result_of(__func__);
}

// probe(uint32_t *out, float f, CUtensorMap map, uint32_t n)
int cuFuncGetParamInfo(Handle function, size_t index, size_t *offset, size_t *size) {
    static const size_t sizes[] = {8, 4, 128, 4}, offsets[] = {0, 8, 64, 192};
    if (index >= 4)
        return 1;
    *offset = offsets[index];
    *size = sizes[index];
    return 0;
}

typedef struct {
    unsigned id;
    char pad[4];
    union {
        char bytes[64];
        struct {
            unsigned x, y, z;
        } clusterDim;
        void *pointer;
    } value;
} CUlaunchAttribute;

typedef struct {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    Handle hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} CUlaunchConfig;

#ifndef OLD
int cuLaunchKernelEx(const CUlaunchConfig *config, Handle function, void **params, void **extra) {
    const CUlaunchAttribute *cluster = config->numAttrs ? config->attrs : NULL;
    uint32_t words[] = {
        config->gridDimX,
        config->gridDimY,
        config->gridDimZ,
        config->blockDimX,
        config->blockDimY,
        config->blockDimZ,
        config->sharedMemBytes,
        config->hStream != NULL,
        cluster ? cluster->id : 0,
        cluster ? cluster->value.clusterDim.x : 0,
        cluster ? cluster->value.clusterDim.y : 0,
        cluster ? cluster->value.clusterDim.z : 0,
        (uint32_t)(*(float *)params[1] * 10),
        (uint32_t) * (uint64_t *)params[2],
        (uint32_t)((uintptr_t)params[2] % 64),
        *(uint32_t *)params[3],
    };
    memcpy(*(void **)params[0], words, sizeof words);
    RETURN();
}
#endif

int cuTensorMapEncodeTiled(uint64_t *map, unsigned type, uint32_t rank, void *address,
                           const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
                           const uint32_t *steps, unsigned interleave, unsigned swizzle,
                           unsigned promotion, unsigned fill) {
    uint64_t words[] = {type, rank, (uintptr_t)address, dims[0], dims[1], strides[0], box[0], box[1],
                        steps[0], steps[1], interleave, swizzle, promotion, fill};
    memcpy(map, words, sizeof words);
    return (uintptr_t)map % 64 ? 1 : result_of(__func__);
}

int cuTensorMapEncodeIm2col(uint64_t *map, unsigned type, uint32_t rank, void *address,
                            const uint64_t *dims, const uint64_t *strides, const int *lower,
                            const int *upper, uint32_t channels, uint32_t pixels,
                            const uint32_t *steps, unsigned interleave, unsigned swizzle,
                            unsigned promotion, unsigned fill) {
    uint64_t words[] = {type, rank, (uintptr_t)address, dims[2], strides[1], lower[0], upper[0],
                        channels, pixels, steps[2], interleave, swizzle, promotion, fill};
    memcpy(map, words, sizeof words);
    return (uintptr_t)map % 64 ? 1 : result_of(__func__);
}
