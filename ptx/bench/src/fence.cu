#include "common.cuh"

#define FENCE_AFTER(name, to, fence_)                                          \
  SITUATION(name) {                                                            \
    init_barriers(1, 1);                                                       \
    volatile uint32_t* shared = (uint32_t*)buffer(1024 + thread() * 4);        \
    volatile uint32_t* global = (uint32_t*)(data + thread() * 4);              \
    (void)shared, (void)global;                                                \
    TIMED(block_sync(), true, 0, {                                             \
      _Pragma("unroll 1")                                                      \
      for (uint32_t store = opaque(0); store < p; store = opaque(store + 1)) { \
        *to = store + passes;                                                  \
      }                                                                        \
      fence_;                                                                  \
    });                                                                        \
  }

FENCE_AFTER(shared_stores, shared, )
FENCE_AFTER(shared_proxy_async, shared, fence_proxy_async())
FENCE_AFTER(shared_proxy_async_shared, shared, fence_proxy_async(space_shared))
FENCE_AFTER(global_stores, global, )
FENCE_AFTER(global_proxy_async_global, global, fence_proxy_async(space_global))
FENCE_AFTER(global_acq_rel_cta, global, fence(sem_acq_rel, scope_cta))
FENCE_AFTER(global_acq_rel_cluster, global, fence(sem_acq_rel, scope_cluster))
FENCE_AFTER(global_acq_rel_gpu, global, fence(sem_acq_rel, scope_gpu))
FENCE_AFTER(global_acq_rel_sys, global, fence(sem_acq_rel, scope_sys))
FENCE_AFTER(global_sc_gpu, global, fence(sem_sc, scope_gpu))
