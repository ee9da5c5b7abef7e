// The barriers of the listings in this folder.
#pragma once

#include <cuda/barrier>
#include <cuda/ptx>

using barrier_t = cuda::barrier<cuda::thread_scope_block>;

// A shared barrier has a constructor, which is never called.
#pragma nv_diag_suppress static_var_with_dynamic_init
