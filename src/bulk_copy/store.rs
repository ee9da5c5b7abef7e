//! Stores and reductions of tensors: with a cache policy, and in im2col modes.

use super::form::*;
use super::operands::Stored;
use crate::tags::{space_global, space_shared};
use crate::target::{Has, Target, ptx_80, ptx_86, ptx_94, sm_90, sm_100f_103f_107f_110f, sm_107f};

/// What debug builds check of the operands of a store or a reduction.
#[inline(always)]
pub(super) fn check_stored<T, U>(tensor_map: *const T, src_mem: *const U) {
    debug_assert!(
        tensor_map.addr().is_multiple_of(64),
        "cp.async.bulk.tensor: `tensor_map` is not aligned to 64 bytes"
    );
    debug_assert!(
        src_mem.addr().is_multiple_of(128),
        "cp.async.bulk.tensor: `src_mem` is not aligned to 128 bytes"
    );
}

/// A store or a reduction. The brackets name the arguments that not all have, and what the target must have.
macro_rules! store {
    (
        $(#[$doc:meta])*
        $name:ident: $mode:ident, $method:ident, [$($op:ident $O:ident)?] [$($policy:ident)?] [$isa:ident $sm:ident];
        $opcode:literal, $operands:literal, $needs:literal, $link:literal
    ) => {
        $(#[$doc])*
        ///
        /// ```text
        #[doc = concat!($opcode, " [tensor_map, tensor_coords], [src_mem]", $operands, ";")]
        #[doc = concat!("    PTX ISA ", $needs)]
        /// ```
        ///
        /// - `tensor_coords`: where the copy begins, the innermost dimension first; for `scatter4` a column and
        ///   four rows.
        $(#[doc = docs!($policy)])?
        ///
        #[doc = concat!("PTX ISA: [section](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-", $link, ")")]
        ///
        /// # Panics
        ///
        /// In debug builds, if `tensor_map` is not aligned to 64 bytes, or `src_mem` to 128 bytes.
        ///
        /// # Safety
        ///
        /// - `tensor_map` points to a tensor map for this mode, in memory that is constant for the kernel or acquired
        ///   by `fence_proxy_tensormap_generic`; its element type has the operation of a reduction.
        /// - No coordinate is negative, and the box of pixels of an im2col map stays within the image.
        /// - `src_mem` points to shared memory with the elements, aligned to 128 bytes, or as the map's swizzle mode
        ///   demands.
        /// - Nobody writes the source, or accesses the destination except by reductions, until the copy is complete.
        #[inline(always)]
        pub unsafe fn $name<$($O: TensorOperation,)? T, U, const N: usize>(
            _dst: space_global,
            _src: space_shared,
            $($op: $O,)?
            tensor_map: *const T,
            tensor_coords: [i32; N],
            src_mem: *const U,
            $($policy: u64,)?
        ) where
            for<'a> Target: Has<$isa> + Has<$sm>,
            [i32; N]: StoredAt<$mode>,
        {
            check_stored(tensor_map, src_mem);
            unsafe {
                tensor_coords.$method::<form!($mode, N, $($O)?)>(tensor_map.cast(), src_mem.cast(), $($policy)?)
            }
        }
    };
}

macro_rules! form {
    ($mode:ident, $n:ident,) => { Store<$mode, $n> };
    ($mode:ident, $n:ident, $O:ident) => { Reduce<$mode, $n, $O> };
}

store! {
    /// Starts a copy of a box from shared memory to a tensor, with a cache policy.
    cp_async_bulk_tensor_L2_cache_hint: Tile, store_hint, [] [cache_policy] [ptx_80 sm_90];
    "cp.async.bulk.tensor.dim.global.shared::cta.tile.bulk_group.L2::cache_hint", ", cache_policy",
    "8.0, sm_90 and later", "cp-async-bulk-tensor"
}

store! {
    /// Starts a copy of four rows from shared memory to a tensor of two dimensions, with a cache policy.
    cp_async_bulk_tensor_tile_scatter4_L2_cache_hint: Scatter4, store_hint, [] [cache_policy] [ptx_86 sm_100f_103f_107f_110f];
    "cp.async.bulk.tensor.dim.global.shared::cta.tile::scatter4.bulk_group.L2::cache_hint", ", cache_policy",
    "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f", "cp-async-bulk-tensor"
}

store! {
    /// Starts a copy of pixels from shared memory to images.
    cp_async_bulk_tensor_im2col_no_offs: Im2colNoOffs, store, [] [] [ptx_80 sm_90];
    "cp.async.bulk.tensor.dim.global.shared::cta.im2col_no_offs.bulk_group", "",
    "8.0, sm_90 and later", "cp-async-bulk-tensor"
}

store! {
    /// Starts a copy of pixels from shared memory to images, with a cache policy.
    cp_async_bulk_tensor_im2col_no_offs_L2_cache_hint: Im2colNoOffs, store_hint, [] [cache_policy] [ptx_80 sm_90];
    "cp.async.bulk.tensor.dim.global.shared::cta.im2col_no_offs.bulk_group.L2::cache_hint", ", cache_policy",
    "8.0, sm_90 and later", "cp-async-bulk-tensor"
}

store! {
    /// Starts a copy of pixels from shared memory to a row of images.
    cp_async_bulk_tensor_im2col_no_offs_w: Im2colNoOffsW, store, [] [] [ptx_94 sm_107f];
    "cp.async.bulk.tensor.dim.global.shared::cta.im2col_no_offs::w.bulk_group", "",
    "9.4, sm_107a/f", "cp-async-bulk-tensor"
}

store! {
    /// Starts a copy of pixels from shared memory to a row of images, with a cache policy.
    cp_async_bulk_tensor_im2col_no_offs_w_L2_cache_hint: Im2colNoOffsW, store_hint, [] [cache_policy] [ptx_94 sm_107f];
    "cp.async.bulk.tensor.dim.global.shared::cta.im2col_no_offs::w.bulk_group.L2::cache_hint", ", cache_policy",
    "9.4, sm_107a/f", "cp-async-bulk-tensor"
}

store! {
    /// Starts a reduction of a box in shared memory into a tensor, with a cache policy.
    cp_reduce_async_bulk_tensor_L2_cache_hint: Tile, store_hint, [_op O] [cache_policy] [ptx_80 sm_90];
    "cp.reduce.async.bulk.tensor.dim.global.shared::cta.op.tile.bulk_group.L2::cache_hint", ", cache_policy",
    "8.0, sm_90 and later", "cp-reduce-async-bulk-tensor"
}

store! {
    /// Starts a reduction of pixels in shared memory into images.
    cp_reduce_async_bulk_tensor_im2col_no_offs: Im2colNoOffs, store, [_op O] [] [ptx_80 sm_90];
    "cp.reduce.async.bulk.tensor.dim.global.shared::cta.op.im2col_no_offs.bulk_group", "",
    "8.0, sm_90 and later", "cp-reduce-async-bulk-tensor"
}

store! {
    /// Starts a reduction of pixels in shared memory into images, with a cache policy.
    cp_reduce_async_bulk_tensor_im2col_no_offs_L2_cache_hint: Im2colNoOffs, store_hint, [_op O] [cache_policy] [ptx_80 sm_90];
    "cp.reduce.async.bulk.tensor.dim.global.shared::cta.op.im2col_no_offs.bulk_group.L2::cache_hint", ", cache_policy",
    "8.0, sm_90 and later", "cp-reduce-async-bulk-tensor"
}

store! {
    /// Starts a reduction of pixels in shared memory into a row of images.
    cp_reduce_async_bulk_tensor_im2col_no_offs_w: Im2colNoOffsW, store, [_op O] [] [ptx_94 sm_107f];
    "cp.reduce.async.bulk.tensor.dim.global.shared::cta.op.im2col_no_offs::w.bulk_group", "",
    "9.4, sm_107a/f", "cp-reduce-async-bulk-tensor"
}

store! {
    /// Starts a reduction of pixels in shared memory into a row of images, with a cache policy.
    cp_reduce_async_bulk_tensor_im2col_no_offs_w_L2_cache_hint: Im2colNoOffsW, store_hint, [_op O] [cache_policy] [ptx_94 sm_107f];
    "cp.reduce.async.bulk.tensor.dim.global.shared::cta.op.im2col_no_offs::w.bulk_group.L2::cache_hint", ", cache_policy",
    "9.4, sm_107a/f", "cp-reduce-async-bulk-tensor"
}
