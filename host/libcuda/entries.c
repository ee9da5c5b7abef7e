// Stand-ins for the CUDA driver's entry points, so that a program that uses cust links and starts
// on a machine without NVIDIA's driver.
//
// Each entry point is a jump through a slot. The first call of cuInit, cuDriverGetVersion,
// cuGetErrorName or cuGetErrorString loads libcuda.so.1 and fills the slots. What a slot answers:
//
//   before that            CUDA_ERROR_NOT_INITIALIZED (3), as the driver does before cuInit
//   afterwards             the driver's own function
//   no libcuda.so.1        CUDA_ERROR_STUB_LIBRARY (34); cuGetErrorString tells why it did not load
//   the driver lacks it    CUDA_ERROR_NOT_FOUND (500)
//
// Only codes of CUDA 11.4 are returned: cust_raw's result type is a Rust enum of those.

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_NOT_FOUND = 500,
};

typedef void (*Entry)(void);

#define HIDDEN __attribute__((visibility("hidden")))

static int not_initialized(void) { return CUDA_ERROR_NOT_INITIALIZED; }
static int stub_library(void) { return CUDA_ERROR_STUB_LIBRARY; }
static int not_found(void) { return CUDA_ERROR_NOT_FOUND; }

static int first_cuInit(unsigned flags);
static int first_cuDriverGetVersion(int *version);
static int first_cuGetErrorName(int error, const char **name);
static int first_cuGetErrorString(int error, const char **text);

// The slots.
#define ENTRY(name) HIDDEN Entry cuda_ptx_slot_##name = (Entry)not_initialized;
#define FIRST(name) HIDDEN Entry cuda_ptx_slot_##name = (Entry)first_##name;
#include "entries.h"
#undef ENTRY
#undef FIRST

// The entry points. They are hidden: an exported symbol of the program would come before the
// driver's own in the driver's relocations.
#if defined(__x86_64__)
#define JUMP(slot) "endbr64\n jmp *" slot "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(slot) "hint #34\n adrp x16, " slot "\n ldr x16, [x16, :lo12:" slot "]\n br x16\n"
#else
#error "CUDA has no driver for this architecture: expected x86_64 or aarch64"
#endif

#define ENTRY(name)                                              \
    __asm__(".pushsection .text." #name ",\"ax\",%progbits\n"    \
            ".balign 16\n .globl " #name "\n .hidden " #name "\n" \
            ".type " #name ", %function\n" #name ":\n"           \
            JUMP("cuda_ptx_slot_" #name)                         \
            ".size " #name ", . - " #name "\n .popsection\n");
#define FIRST(name) ENTRY(name)
#include "entries.h"
#undef ENTRY
#undef FIRST

#define ENTRY(name) {#name, &cuda_ptx_slot_##name},
#define FIRST(name) ENTRY(name)
static const struct {
    const char *name;
    Entry *slot;
} entries[] = {
#include "entries.h"
};
#undef ENTRY
#undef FIRST

static char why_not_loaded[256];

static int stub_cuGetErrorName(int error, const char **name) {
    *name = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR_STUB_LIBRARY";
    return CUDA_SUCCESS;
}

static int stub_cuGetErrorString(int error, const char **text) {
    *text = error == CUDA_SUCCESS ? "no error" : why_not_loaded;
    return CUDA_SUCCESS;
}

static void fill(Entry *slot, Entry function) {
    __atomic_store_n(slot, function, __ATOMIC_RELEASE);
}

static void load_once(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        snprintf(why_not_loaded, sizeof why_not_loaded, "no NVIDIA driver: %s", dlerror());
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        Entry found = driver ? (Entry)dlsym(driver, entries[i].name) : (Entry)stub_library;
        fill(entries[i].slot, found ? found : (Entry)not_found);
    }
    if (!driver) {
        fill(&cuda_ptx_slot_cuGetErrorName, (Entry)stub_cuGetErrorName);
        fill(&cuda_ptx_slot_cuGetErrorString, (Entry)stub_cuGetErrorString);
    }
}

static void load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_once);
}

// `load` has replaced the slot that led here, so these calls reach the driver or its substitute.
#define LOADED(type, name) ((type)__atomic_load_n(&cuda_ptx_slot_##name, __ATOMIC_ACQUIRE))

static int first_cuInit(unsigned flags) {
    load();
    return LOADED(int (*)(unsigned), cuInit)(flags);
}

static int first_cuDriverGetVersion(int *version) {
    load();
    return LOADED(int (*)(int *), cuDriverGetVersion)(version);
}

static int first_cuGetErrorName(int error, const char **name) {
    load();
    return LOADED(int (*)(int, const char **), cuGetErrorName)(error, name);
}

static int first_cuGetErrorString(int error, const char **text) {
    load();
    return LOADED(int (*)(int, const char **), cuGetErrorString)(error, text);
}
