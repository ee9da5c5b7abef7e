//! Loads of tensors: with a cache policy, and in im2col modes.

use super::form::*;
use super::operands::{From, Operands};
use crate::tags::space_global;
use crate::target::{
    Has, Target, ptx_80, ptx_86, ptx_94, sm_90a_100f_103f_107f_110f, sm_100f_103f_107f_110f,
    sm_107f,
};

/// What debug builds check of the operands of a load.
#[inline(always)]
pub(super) fn from<T, U, C>(
    dst_mem: *mut T,
    tensor_map: *const U,
    coordinates: C,
    bar: *mut u64,
) -> From<C> {
    debug_assert!(
        tensor_map.addr().is_multiple_of(64),
        "cp.async.bulk.tensor: `tensor_map` is not aligned to 64 bytes"
    );
    debug_assert!(
        dst_mem.addr().is_multiple_of(128),
        "cp.async.bulk.tensor: `dst_mem` is not aligned to 128 bytes"
    );
    debug_assert!(
        bar.addr().is_multiple_of(8),
        "cp.async.bulk.tensor: `bar` is not aligned to 8 bytes"
    );
    From {
        dst_mem: dst_mem.cast(),
        tensor_map: tensor_map.cast(),
        coordinates,
        bar,
    }
}

/// A load. The brackets name the arguments that it has besides those of all loads, and what the target must have.
macro_rules! load {
    (
        $(#[$doc:meta])*
        $name:ident: $mode:ident, $method:ident,
        [$($group:ident $G:ident)?] [$($report:ident $R:ident)?] [$($info:ident)?] [$($mask:ident $Mask:ident)?]
        [$($policy:ident)?] [$($isa:ident $sm:ident)?];
        $qualifiers:literal, $operands:literal, $needs:literal
    ) => {
        $(#[$doc])*
        ///
        /// ```text
        #[doc = concat!("cp.async.bulk.tensor.dim.dst.global", $qualifiers)]
        #[doc = concat!("    [dst_mem], [tensor_map, tensor_coords], [bar]", $operands, ";")]
        #[doc = concat!("    PTX ISA ", $needs)]
        /// ```
        ///
        /// - `dst`: `space_shared`, or `space_cluster`, where a multicast goes.
        /// - `tensor_coords`: where the copy begins, the innermost dimension first; for `gather4` a column and
        ///   four rows.
        /// - `bar`: mbarrier object that counts off the bytes when they are written.
        $(#[doc = docs!($info)])?
        $(#[doc = docs!($group)])?
        $(#[doc = docs!($report)])?
        $(#[doc = docs!($mask)])?
        $(#[doc = docs!($policy)])?
        ///
        /// PTX ISA: [`cp.async.bulk.tensor`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-cp-async-bulk-tensor)
        ///
        /// # Panics
        ///
        /// In debug builds, if `tensor_map` is not aligned to 64 bytes, `dst_mem` to 128 bytes, or `bar` to 8 bytes.
        ///
        /// # Safety
        ///
        /// - `tensor_map` points to a tensor map for this mode, in memory that is constant for the kernel or acquired
        ///   by `fence_proxy_tensormap_generic`.
        /// - `dst_mem` points to shared memory with room for what is copied, aligned to 128 bytes, or as the map's
        ///   swizzle mode demands.
        /// - Nobody reads or writes the destination until the copy is complete.
        /// - `bar` points to an mbarrier object in the shared memory of the CTA that owns the destination, or with
        ///   `cta_group_2` of its pair.
        #[inline(always)]
        pub unsafe fn $name<D: Destination<$mode> $(+ Multicast<$Mask>)?, $($G: CtaGroup,)? $($R: Report,)? T, U, const N: usize>(
            _dst: D,
            _src: space_global,
            $($group: $G,)?
            $($report: $R,)?
            dst_mem: *mut T,
            tensor_map: *const U,
            tensor_coords: [i32; N],
            bar: *mut u64,
            $($info: <[i32; N] as Coordinates<$mode>>::Info,)?
            $($mask: $Mask,)?
            $($policy: u64,)?
        ) where
            $(for<'a> Target: Has<$isa> + Has<$sm>,)?
            [i32; N]: Coordinates<$mode>,
        {
            let info: <[i32; N] as Coordinates<$mode>>::Info = info!($($info)?);
            let from = from(dst_mem, tensor_map, tensor_coords, bar);
            unsafe {
                Operands::$method::<Load<$mode, D, N, ($($G,)?), ($($R,)?)>>(
                    info, from, $($mask,)? $($policy,)?
                )
            }
        }
    };
}

/// The im2col operands; none in other modes.
macro_rules! info {
    () => {
        Default::default()
    };
    ($info:ident) => {
        $info
    };
}

load! {
    /// Starts a copy of a box of a tensor, with a cache policy.
    cp_async_bulk_tensor_L2_cache_hint_bar: Tile, load_hint,
    [] [] [] [] [cache_policy] [];
    ".tile.mbarrier::complete_tx::bytes.L2::cache_hint", ", cache_policy", "8.0 to `space_cluster`, 8.6 to `space_shared`, sm_90 and later"
}

load! {
    /// Starts a copy of a box of a tensor, and gives it to several CTAs of the cluster, with a cache policy.
    cp_async_bulk_tensor_L2_cache_hint_bar_cta_mask: Tile, load_mask_hint,
    [] [] [] [cta_mask u16] [cache_policy] [ptx_80 sm_90a_100f_103f_107f_110f];
    ".tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint", ", cta_mask, cache_policy", "8.0, sm_90a, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of a box of a tensor, with a cache policy.
    cp_async_bulk_tensor_L2_cache_hint_cta_group_bar: Tile, load_hint,
    [_cta_group G] [] [] [] [cache_policy] [ptx_86 sm_100f_103f_107f_110f];
    ".tile.mbarrier::complete_tx::bytes.cta_group.L2::cache_hint", ", cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of a box of a tensor, and gives it to several CTAs of the cluster, with a cache policy.
    cp_async_bulk_tensor_L2_cache_hint_cta_group_bar_cta_mask: Tile, load_mask_hint,
    [_cta_group G] [] [] [cta_mask u16] [cache_policy] [ptx_86 sm_100f_103f_107f_110f];
    ".tile.mbarrier::complete_tx::bytes.multicast::cluster.cta_group.L2::cache_hint", ", cta_mask, cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of a box of a tensor, with a cache policy.
    cp_async_bulk_tensor_L2_cache_hint_cta_group_report_mechanism_bar: Tile, load_hint,
    [_cta_group G] [_report_mechanism R] [] [] [cache_policy] [ptx_94 sm_107f];
    ".tile.mbarrier::complete_tx::bytes.report_mechanism.cta_group.L2::cache_hint", ", cache_policy", "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of a box of a tensor, and gives it to several CTAs of the cluster, with a cache policy.
    cp_async_bulk_tensor_multicast_32b_L2_cache_hint: Tile, load_mask_32b_hint,
    [_cta_group G] [_report_mechanism R] [] [cta_mask u32] [cache_policy] [ptx_94 sm_107f];
    ".tile.mbarrier::complete_tx::bytes.report_mechanism.multicast::cluster::32b.cta_group.L2::cache_hint", ", cta_mask, cache_policy", "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of four rows of a tensor of two dimensions, with a cache policy.
    cp_async_bulk_tensor_tile_gather4_L2_cache_hint: Gather4, load_hint,
    [] [] [] [] [cache_policy] [];
    ".tile::gather4.mbarrier::complete_tx::bytes.L2::cache_hint", ", cache_policy", "8.6, sm_100 and later to `space_shared`; sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f to `space_cluster`"
}

load! {
    /// Starts a copy of four rows of a tensor of two dimensions, and gives it to several CTAs of the cluster, with a cache policy.
    cp_async_bulk_tensor_tile_gather4_L2_cache_hint_cta_mask: Gather4, load_mask_hint,
    [] [] [] [cta_mask u16] [cache_policy] [ptx_80 sm_90a_100f_103f_107f_110f];
    ".tile::gather4.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint", ", cta_mask, cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of four rows of a tensor of two dimensions, with a cache policy.
    cp_async_bulk_tensor_tile_gather4_L2_cache_hint_cta_group: Gather4, load_hint,
    [_cta_group G] [] [] [] [cache_policy] [ptx_86 sm_100f_103f_107f_110f];
    ".tile::gather4.mbarrier::complete_tx::bytes.cta_group.L2::cache_hint", ", cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of four rows of a tensor of two dimensions, and gives it to several CTAs of the cluster, with a cache policy.
    cp_async_bulk_tensor_tile_gather4_L2_cache_hint_cta_group_cta_mask: Gather4, load_mask_hint,
    [_cta_group G] [] [] [cta_mask u16] [cache_policy] [ptx_86 sm_100f_103f_107f_110f];
    ".tile::gather4.mbarrier::complete_tx::bytes.multicast::cluster.cta_group.L2::cache_hint", ", cta_mask, cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of four rows of a tensor of two dimensions, with a cache policy.
    cp_async_bulk_tensor_tile_gather4_L2_cache_hint_cta_group_report_mechanism: Gather4, load_hint,
    [_cta_group G] [_report_mechanism R] [] [] [cache_policy] [ptx_94 sm_107f];
    ".tile::gather4.mbarrier::complete_tx::bytes.report_mechanism.cta_group.L2::cache_hint", ", cache_policy", "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of four rows of a tensor of two dimensions, and gives it to several CTAs of the cluster, with a cache policy.
    cp_async_bulk_tensor_tile_gather4_multicast_32b_L2_cache_hint: Gather4, load_mask_32b_hint,
    [_cta_group G] [_report_mechanism R] [] [cta_mask u32] [cache_policy] [ptx_94 sm_107f];
    ".tile::gather4.mbarrier::complete_tx::bytes.report_mechanism.multicast::cluster::32b.cta_group.L2::cache_hint", ", cta_mask, cache_policy", "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of pixels of images.
    cp_async_bulk_tensor_im2col: Im2col, load,
    [] [] [im2col_info] [] [] [];
    ".im2col.mbarrier::complete_tx::bytes", ", im2col_info", "8.0 to `space_cluster`, 8.6 to `space_shared`, sm_90 and later"
}

load! {
    /// Starts a copy of pixels of images, and gives it to several CTAs of the cluster.
    cp_async_bulk_tensor_im2col_cta_mask: Im2col, load_mask,
    [] [] [im2col_info] [cta_mask u16] [] [ptx_80 sm_90a_100f_103f_107f_110f];
    ".im2col.mbarrier::complete_tx::bytes.multicast::cluster", ", im2col_info, cta_mask", "8.0, sm_90a, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of pixels of images.
    cp_async_bulk_tensor_im2col_cta_group: Im2col, load,
    [_cta_group G] [] [im2col_info] [] [] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col.mbarrier::complete_tx::bytes.cta_group", ", im2col_info", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of pixels of images, and gives it to several CTAs of the cluster.
    cp_async_bulk_tensor_im2col_cta_group_cta_mask: Im2col, load_mask,
    [_cta_group G] [] [im2col_info] [cta_mask u16] [] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col.mbarrier::complete_tx::bytes.multicast::cluster.cta_group", ", im2col_info, cta_mask", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of pixels of images.
    cp_async_bulk_tensor_im2col_cta_group_report_mechanism: Im2col, load,
    [_cta_group G] [_report_mechanism R] [im2col_info] [] [] [ptx_94 sm_107f];
    ".im2col.mbarrier::complete_tx::bytes.report_mechanism.cta_group", ", im2col_info", "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of pixels of images, and gives it to several CTAs of the cluster.
    cp_async_bulk_tensor_im2col_multicast_32b: Im2col, load_mask_32b,
    [_cta_group G] [_report_mechanism R] [im2col_info] [cta_mask u32] [] [ptx_94 sm_107f];
    ".im2col.mbarrier::complete_tx::bytes.report_mechanism.multicast::cluster::32b.cta_group", ", im2col_info, cta_mask", "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of pixels of images, with a cache policy.
    cp_async_bulk_tensor_im2col_L2_cache_hint: Im2col, load_hint,
    [] [] [im2col_info] [] [cache_policy] [];
    ".im2col.mbarrier::complete_tx::bytes.L2::cache_hint", ", im2col_info, cache_policy", "8.0 to `space_cluster`, 8.6 to `space_shared`, sm_90 and later"
}

load! {
    /// Starts a copy of pixels of images, and gives it to several CTAs of the cluster, with a cache policy.
    cp_async_bulk_tensor_im2col_L2_cache_hint_cta_mask: Im2col, load_mask_hint,
    [] [] [im2col_info] [cta_mask u16] [cache_policy] [ptx_80 sm_90a_100f_103f_107f_110f];
    ".im2col.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint", ", im2col_info, cta_mask, cache_policy", "8.0, sm_90a, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of pixels of images, with a cache policy.
    cp_async_bulk_tensor_im2col_L2_cache_hint_cta_group: Im2col, load_hint,
    [_cta_group G] [] [im2col_info] [] [cache_policy] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col.mbarrier::complete_tx::bytes.cta_group.L2::cache_hint", ", im2col_info, cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of pixels of images, and gives it to several CTAs of the cluster, with a cache policy.
    cp_async_bulk_tensor_im2col_L2_cache_hint_cta_group_cta_mask: Im2col, load_mask_hint,
    [_cta_group G] [] [im2col_info] [cta_mask u16] [cache_policy] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col.mbarrier::complete_tx::bytes.multicast::cluster.cta_group.L2::cache_hint", ", im2col_info, cta_mask, cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of pixels of images, with a cache policy.
    cp_async_bulk_tensor_im2col_L2_cache_hint_cta_group_report_mechanism: Im2col, load_hint,
    [_cta_group G] [_report_mechanism R] [im2col_info] [] [cache_policy] [ptx_94 sm_107f];
    ".im2col.mbarrier::complete_tx::bytes.report_mechanism.cta_group.L2::cache_hint", ", im2col_info, cache_policy", "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of pixels of images, and gives it to several CTAs of the cluster, with a cache policy.
    cp_async_bulk_tensor_im2col_multicast_32b_L2_cache_hint: Im2col, load_mask_32b_hint,
    [_cta_group G] [_report_mechanism R] [im2col_info] [cta_mask u32] [cache_policy] [ptx_94 sm_107f];
    ".im2col.mbarrier::complete_tx::bytes.report_mechanism.multicast::cluster::32b.cta_group.L2::cache_hint", ", im2col_info, cta_mask, cache_policy", "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of pixels of a row of images, and of a halo.
    cp_async_bulk_tensor_im2col_w: Im2colW, load,
    [] [] [im2col_info] [] [] [];
    ".im2col::w.mbarrier::complete_tx::bytes", ", im2col_info", "8.6, sm_100 and later to `space_shared`; sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f to `space_cluster`"
}

load! {
    /// Starts a copy of pixels of a row of images, and of a halo, and gives it to several CTAs of the cluster.
    cp_async_bulk_tensor_im2col_w_cta_mask: Im2colW, load_mask,
    [] [] [im2col_info] [cta_mask u16] [] [ptx_80 sm_90a_100f_103f_107f_110f];
    ".im2col::w.mbarrier::complete_tx::bytes.multicast::cluster", ", im2col_info, cta_mask", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of pixels of a row of images, and of a halo.
    cp_async_bulk_tensor_im2col_w_cta_group: Im2colW, load,
    [_cta_group G] [] [im2col_info] [] [] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col::w.mbarrier::complete_tx::bytes.cta_group", ", im2col_info", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of pixels of a row of images, and of a halo, and gives it to several CTAs of the cluster.
    cp_async_bulk_tensor_im2col_w_cta_group_cta_mask: Im2colW, load_mask,
    [_cta_group G] [] [im2col_info] [cta_mask u16] [] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col::w.mbarrier::complete_tx::bytes.multicast::cluster.cta_group", ", im2col_info, cta_mask", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of pixels of a row of images, and of a halo.
    cp_async_bulk_tensor_im2col_w_cta_group_report_mechanism: Im2colW, load,
    [_cta_group G] [_report_mechanism R] [im2col_info] [] [] [ptx_94 sm_107f];
    ".im2col::w.mbarrier::complete_tx::bytes.report_mechanism.cta_group", ", im2col_info", "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of pixels of a row of images, and of a halo, and gives it to several CTAs of the cluster.
    cp_async_bulk_tensor_im2col_w_multicast_32b: Im2colW, load_mask_32b,
    [_cta_group G] [_report_mechanism R] [im2col_info] [cta_mask u32] [] [ptx_94 sm_107f];
    ".im2col::w.mbarrier::complete_tx::bytes.report_mechanism.multicast::cluster::32b.cta_group", ", im2col_info, cta_mask", "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of pixels of a row of images, and of a halo, with a cache policy.
    cp_async_bulk_tensor_im2col_w_L2_cache_hint: Im2colW, load_hint,
    [] [] [im2col_info] [] [cache_policy] [];
    ".im2col::w.mbarrier::complete_tx::bytes.L2::cache_hint", ", im2col_info, cache_policy", "8.6, sm_100 and later to `space_shared`; sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f to `space_cluster`"
}

load! {
    /// Starts a copy of pixels of a row of images, and of a halo, and gives it to several CTAs of the cluster, with a cache policy.
    cp_async_bulk_tensor_im2col_w_L2_cache_hint_cta_mask: Im2colW, load_mask_hint,
    [] [] [im2col_info] [cta_mask u16] [cache_policy] [ptx_80 sm_90a_100f_103f_107f_110f];
    ".im2col::w.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint", ", im2col_info, cta_mask, cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of pixels of a row of images, and of a halo, with a cache policy.
    cp_async_bulk_tensor_im2col_w_L2_cache_hint_cta_group: Im2colW, load_hint,
    [_cta_group G] [] [im2col_info] [] [cache_policy] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col::w.mbarrier::complete_tx::bytes.cta_group.L2::cache_hint", ", im2col_info, cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of pixels of a row of images, and of a halo, and gives it to several CTAs of the cluster, with a cache policy.
    cp_async_bulk_tensor_im2col_w_L2_cache_hint_cta_group_cta_mask: Im2colW, load_mask_hint,
    [_cta_group G] [] [im2col_info] [cta_mask u16] [cache_policy] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col::w.mbarrier::complete_tx::bytes.multicast::cluster.cta_group.L2::cache_hint", ", im2col_info, cta_mask, cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of pixels of a row of images, and of a halo, with a cache policy.
    cp_async_bulk_tensor_im2col_w_L2_cache_hint_cta_group_report_mechanism: Im2colW, load_hint,
    [_cta_group G] [_report_mechanism R] [im2col_info] [] [cache_policy] [ptx_94 sm_107f];
    ".im2col::w.mbarrier::complete_tx::bytes.report_mechanism.cta_group.L2::cache_hint", ", im2col_info, cache_policy", "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of pixels of a row of images, and of a halo, and gives it to several CTAs of the cluster, with a cache policy.
    cp_async_bulk_tensor_im2col_w_multicast_32b_L2_cache_hint: Im2colW, load_mask_32b_hint,
    [_cta_group G] [_report_mechanism R] [im2col_info] [cta_mask u32] [cache_policy] [ptx_94 sm_107f];
    ".im2col::w.mbarrier::complete_tx::bytes.report_mechanism.multicast::cluster::32b.cta_group.L2::cache_hint", ", im2col_info, cta_mask, cache_policy", "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of 128 pixels of a row of images, with a halo for each 32.
    cp_async_bulk_tensor_im2col_w_128: Im2colW128, load,
    [] [] [im2col_info] [] [] [];
    ".im2col::w::128.mbarrier::complete_tx::bytes", ", im2col_info", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of 128 pixels of a row of images, with a halo for each 32, and gives it to several CTAs of the cluster.
    cp_async_bulk_tensor_im2col_w_128_cta_mask: Im2colW128, load_mask,
    [] [] [im2col_info] [cta_mask u16] [] [ptx_80 sm_90a_100f_103f_107f_110f];
    ".im2col::w::128.mbarrier::complete_tx::bytes.multicast::cluster", ", im2col_info, cta_mask", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of 128 pixels of a row of images, with a halo for each 32.
    cp_async_bulk_tensor_im2col_w_128_cta_group: Im2colW128, load,
    [_cta_group G] [] [im2col_info] [] [] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col::w::128.mbarrier::complete_tx::bytes.cta_group", ", im2col_info", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of 128 pixels of a row of images, with a halo for each 32, and gives it to several CTAs of the cluster.
    cp_async_bulk_tensor_im2col_w_128_cta_group_cta_mask: Im2colW128, load_mask,
    [_cta_group G] [] [im2col_info] [cta_mask u16] [] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col::w::128.mbarrier::complete_tx::bytes.multicast::cluster.cta_group", ", im2col_info, cta_mask", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of 128 pixels of a row of images, with a halo for each 32.
    cp_async_bulk_tensor_im2col_w_128_cta_group_report_mechanism: Im2colW128, load,
    [_cta_group G] [_report_mechanism R] [im2col_info] [] [] [ptx_94 sm_107f];
    ".im2col::w::128.mbarrier::complete_tx::bytes.report_mechanism.cta_group", ", im2col_info", "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of 128 pixels of a row of images, with a halo for each 32, and gives it to several CTAs of the cluster.
    cp_async_bulk_tensor_im2col_w_128_multicast_32b: Im2colW128, load_mask_32b,
    [_cta_group G] [_report_mechanism R] [im2col_info] [cta_mask u32] [] [ptx_94 sm_107f];
    ".im2col::w::128.mbarrier::complete_tx::bytes.report_mechanism.multicast::cluster::32b.cta_group", ", im2col_info, cta_mask", "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of 128 pixels of a row of images, with a halo for each 32, with a cache policy.
    cp_async_bulk_tensor_im2col_w_128_L2_cache_hint: Im2colW128, load_hint,
    [] [] [im2col_info] [] [cache_policy] [];
    ".im2col::w::128.mbarrier::complete_tx::bytes.L2::cache_hint", ", im2col_info, cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of 128 pixels of a row of images, with a halo for each 32, and gives it to several CTAs of the cluster, with a cache policy.
    cp_async_bulk_tensor_im2col_w_128_L2_cache_hint_cta_mask: Im2colW128, load_mask_hint,
    [] [] [im2col_info] [cta_mask u16] [cache_policy] [ptx_80 sm_90a_100f_103f_107f_110f];
    ".im2col::w::128.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint", ", im2col_info, cta_mask, cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of 128 pixels of a row of images, with a halo for each 32, with a cache policy.
    cp_async_bulk_tensor_im2col_w_128_L2_cache_hint_cta_group: Im2colW128, load_hint,
    [_cta_group G] [] [im2col_info] [] [cache_policy] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col::w::128.mbarrier::complete_tx::bytes.cta_group.L2::cache_hint", ", im2col_info, cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of 128 pixels of a row of images, with a halo for each 32, and gives it to several CTAs of the cluster, with a cache policy.
    cp_async_bulk_tensor_im2col_w_128_L2_cache_hint_cta_group_cta_mask: Im2colW128, load_mask_hint,
    [_cta_group G] [] [im2col_info] [cta_mask u16] [cache_policy] [ptx_86 sm_100f_103f_107f_110f];
    ".im2col::w::128.mbarrier::complete_tx::bytes.multicast::cluster.cta_group.L2::cache_hint", ", im2col_info, cta_mask, cache_policy", "8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of 128 pixels of a row of images, with a halo for each 32, with a cache policy.
    cp_async_bulk_tensor_im2col_w_128_L2_cache_hint_cta_group_report_mechanism: Im2colW128, load_hint,
    [_cta_group G] [_report_mechanism R] [im2col_info] [] [cache_policy] [ptx_94 sm_107f];
    ".im2col::w::128.mbarrier::complete_tx::bytes.report_mechanism.cta_group.L2::cache_hint", ", im2col_info, cache_policy", "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of 128 pixels of a row of images, with a halo for each 32, and gives it to several CTAs of the cluster, with a cache policy.
    cp_async_bulk_tensor_im2col_w_128_multicast_32b_L2_cache_hint: Im2colW128, load_mask_32b_hint,
    [_cta_group G] [_report_mechanism R] [im2col_info] [cta_mask u32] [cache_policy] [ptx_94 sm_107f];
    ".im2col::w::128.mbarrier::complete_tx::bytes.report_mechanism.multicast::cluster::32b.cta_group.L2::cache_hint", ", im2col_info, cta_mask, cache_policy", "9.4, sm_107a/f"
}
