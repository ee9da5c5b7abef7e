//! Prefetches of tensors in im2col modes.

use super::form::*;
use super::operands::Operands;
use crate::tags::space_global;
use crate::target::{Has, Target, ptx_80, ptx_86, ptx_94, sm_90, sm_100f_103f_107f_110f, sm_107f};

/// What C++ takes for a cache policy that is left out.
const EVICT_NORMAL: u64 = 0x10F0_0000_0000_0000;

/// A prefetch. The brackets name the policy, if it is an argument, and what the target must have.
macro_rules! prefetch {
    (
        $(#[$doc:meta])*
        $name:ident: $mode:ident, $method:ident($($given:expr)?), [$($policy:ident)?] [$isa:ident $sm:ident];
        $qualifiers:literal, $operands:literal, $needs:literal
    ) => {
        $(#[$doc])*
        ///
        /// ```text
        #[doc = concat!("cp.async.bulk.prefetch.tensor.dim.L2.global", $qualifiers, " [tensor_map, tensor_coords], im2col_info", $operands, ";")]
        #[doc = concat!("    PTX ISA ", $needs)]
        /// ```
        ///
        /// - `tensor_coords`: where the copy would begin, the innermost dimension first.
        #[doc = docs!(im2col_info)]
        $(#[doc = docs!($policy)])?
        ///
        /// PTX ISA: [`cp.async.bulk.prefetch.tensor`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-cp-async-bulk-prefetch-tensor)
        ///
        /// # Panics
        ///
        /// In debug builds, if `tensor_map` is not aligned to 64 bytes.
        ///
        /// # Safety
        ///
        /// - `tensor_map` points to a tensor map for this mode, in memory that is constant for the kernel or acquired
        ///   by `fence_proxy_tensormap_generic`.
        #[inline(always)]
        pub unsafe fn $name<T, const N: usize>(
            _src: space_global,
            tensor_map: *const T,
            tensor_coords: [i32; N],
            im2col_info: <[i32; N] as Coordinates<$mode>>::Info,
            $($policy: u64,)?
        ) where
            for<'a> Target: Has<$isa> + Has<$sm>,
            [i32; N]: Coordinates<$mode>,
        {
            debug_assert!(
                tensor_map.addr().is_multiple_of(64),
                "cp.async.bulk.prefetch.tensor: `tensor_map` is not aligned to 64 bytes"
            );
            unsafe {
                Operands::$method::<Prefetch<$mode, N>>(im2col_info, tensor_map.cast(), tensor_coords, $($given)?)
            }
        }
    };
}

prefetch! {
    /// Starts a prefetch of pixels of images into the L2 cache, to be evicted normally.
    cp_async_bulk_prefetch_tensor_im2col: Im2col, prefetch_hint(EVICT_NORMAL), [] [ptx_80 sm_90];
    ".im2col.L2::cache_hint", ", cache_policy", "8.0, sm_90 and later"
}

prefetch! {
    /// Starts a prefetch of pixels of images into the L2 cache, with a cache policy.
    cp_async_bulk_prefetch_tensor_im2col_cache_policy: Im2col, prefetch_hint(cache_policy), [cache_policy] [ptx_80 sm_90];
    ".im2col.L2::cache_hint", ", cache_policy", "8.0, sm_90 and later"
}

prefetch! {
    /// Starts a prefetch of pixels of images into the L2 cache, to be evicted last.
    cp_async_bulk_prefetch_tensor_im2col_L2_evict_last: Im2col, prefetch_evict_last(), [] [ptx_94 sm_107f];
    ".im2col.L2::evict_last", "", "9.4, sm_107a/f"
}

prefetch! {
    /// Starts a prefetch of pixels of a row of images, and of a halo into the L2 cache, to be evicted normally.
    cp_async_bulk_prefetch_tensor_im2col_w: Im2colW, prefetch_hint(EVICT_NORMAL), [] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col::w.L2::cache_hint", ", cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

prefetch! {
    /// Starts a prefetch of pixels of a row of images, and of a halo into the L2 cache, with a cache policy.
    cp_async_bulk_prefetch_tensor_im2col_w_cache_policy: Im2colW, prefetch_hint(cache_policy), [cache_policy] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col::w.L2::cache_hint", ", cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

prefetch! {
    /// Starts a prefetch of pixels of a row of images, and of a halo into the L2 cache, to be evicted last.
    cp_async_bulk_prefetch_tensor_im2col_w_L2_evict_last: Im2colW, prefetch_evict_last(), [] [ptx_94 sm_107f];
    ".im2col::w.L2::evict_last", "", "9.4, sm_107a/f"
}

prefetch! {
    /// Starts a prefetch of 128 pixels of a row of images, and of a halo for each 32 into the L2 cache, to be evicted normally.
    cp_async_bulk_prefetch_tensor_im2col_w_128: Im2colW128, prefetch_hint(EVICT_NORMAL), [] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col::w::128.L2::cache_hint", ", cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

prefetch! {
    /// Starts a prefetch of 128 pixels of a row of images, and of a halo for each 32 into the L2 cache, with a cache policy.
    cp_async_bulk_prefetch_tensor_im2col_w_128_cache_policy: Im2colW128, prefetch_hint(cache_policy), [cache_policy] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col::w::128.L2::cache_hint", ", cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

prefetch! {
    /// Starts a prefetch of 128 pixels of a row of images, and of a halo for each 32 into the L2 cache, to be evicted last.
    cp_async_bulk_prefetch_tensor_im2col_w_128_L2_evict_last: Im2colW128, prefetch_evict_last(), [] [ptx_94 sm_107f];
    ".im2col::w::128.L2::evict_last", "", "9.4, sm_107a/f"
}
