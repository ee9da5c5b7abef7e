//! Fences with stores in flight.

use cuda_ptx::*;

use crate::common::{block_sync, buffer, init_barriers, nounroll, opaque, thread};

/// Each step makes `p` stores in each thread, then the fence.
macro_rules! fence_after {
    ($name:ident, $space:ident, $fence:expr) => {
        situation! {
            /// Stores `p` times in each thread, then executes the fence of the kernel's name.
            fn $name(out, data, _maps, steps, passes, p, _q) {
                init_barriers(1, 1);
                let shared = buffer(1024 + thread() * 4).cast::<u32>();
                let global = data.add(thread() as usize * 4).cast::<u32>();
                let to = $space(shared, global);
                timed!(out, steps, passes, block_sync(), true, 0, {
                    let mut store = opaque(0);
                    while store < p {
                        nounroll();
                        to.write_volatile(store + passes);
                        store = opaque(store + 1);
                    }
                    $fence;
                });
            }
        }
    };
}

#[inline(always)]
fn shared(shared: *mut u32, _global: *mut u32) -> *mut u32 {
    shared
}

#[inline(always)]
fn global(_shared: *mut u32, global: *mut u32) -> *mut u32 {
    global
}

fence_after!(shared_stores, shared, ());
fence_after!(shared_proxy_async, shared, fence_proxy_async());
fence_after!(
    shared_proxy_async_shared,
    shared,
    fence_proxy_async_space(space_shared)
);
fence_after!(global_stores, global, ());
fence_after!(
    global_proxy_async_global,
    global,
    fence_proxy_async_space(space_global)
);
fence_after!(global_acq_rel_cta, global, fence(sem_acq_rel, scope_cta));
fence_after!(
    global_acq_rel_cluster,
    global,
    fence(sem_acq_rel, scope_cluster)
);
fence_after!(global_acq_rel_gpu, global, fence(sem_acq_rel, scope_gpu));
fence_after!(global_acq_rel_sys, global, fence(sem_acq_rel, scope_sys));
fence_after!(global_sc_gpu, global, fence(sem_sc, scope_gpu));
