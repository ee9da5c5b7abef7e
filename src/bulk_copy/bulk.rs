//! Copies and reductions of bytes: with a cache policy, relaxed, and into the memory of several GPUs.

use super::form::*;
use super::operands::{Bulk, Start};
use crate::tags::{sem_relaxed, space_cluster, space_global, space_shared};
use crate::target::{
    Has, Target, ptx_80, ptx_86, ptx_91, ptx_92, ptx_93, ptx_94, sm_90, sm_90a_100f_103f_107f_110f,
    sm_100, sm_100f_103f_107f_110f, sm_107f,
};
use crate::value::Value;

/// What debug builds check of the operands of a copy.
#[inline(always)]
fn bulk<T, U>(dst_mem: *mut T, src_mem: *const U, size: u32) -> Bulk {
    debug_assert!(
        dst_mem.addr().is_multiple_of(16),
        "cp.async.bulk: `dst_mem` is not aligned to 16 bytes"
    );
    debug_assert!(
        src_mem.addr().is_multiple_of(16),
        "cp.async.bulk: `src_mem` is not aligned to 16 bytes"
    );
    debug_assert!(
        size.is_multiple_of(16),
        "cp.async.bulk: `size` is not a multiple of 16"
    );
    Bulk {
        dst_mem: dst_mem.cast(),
        src_mem: src_mem.cast(),
        size,
    }
}

/// A copy into shared memory. The brackets name the arguments that not all have, and what the target must have.
macro_rules! load {
    (
        $(#[$doc:meta])*
        $name:ident: $method:ident,
        [$($sem:ident $scope:ident $S:ident)?] [$($report:ident $R:ident)?] [$($ignored:ident: $left:ident $right:ident)?]
        [$($mask:ident $Mask:ident)?] [$($policy:ident)?] [$isa:ident $sm:ident];
        $order:literal, $qualifiers:literal, $before:literal, $after:literal, $needs:literal
    ) => {
        $(#[$doc])*
        ///
        /// ```text
        #[doc = concat!("cp.async.bulk", $order, ".dst.global.mbarrier::complete_tx::bytes", $qualifiers)]
        #[doc = concat!("    [dst_mem], [src_mem], size", $before, ", [bar]", $after, ";")]
        #[doc = concat!("    PTX ISA ", $needs)]
        /// ```
        ///
        /// - `dst`: `space_shared`, or `space_cluster`, where a multicast goes.
        $(#[doc = docs!($scope)])?
        $(#[doc = docs!($report)])?
        /// - `size`: bytes, a multiple of 16.
        $(#[doc = docs!($ignored)])?
        /// - `bar`: mbarrier object that counts off `size` bytes when they are written.
        $(#[doc = docs!($mask)])?
        $(#[doc = docs!($policy)])?
        ///
        /// PTX ISA: [`cp.async.bulk`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-cp-async-bulk)
        ///
        /// # Panics
        ///
        /// In debug builds, if an address is not aligned, or `size` is not a multiple of 16.
        ///
        /// # Safety
        ///
        /// - `dst_mem` and `src_mem` point to `size` bytes in the spaces named, aligned to 16 bytes.
        /// - Nobody reads or writes the destination, or writes the source, until the copy is complete.
        /// - `bar` points to an mbarrier object in the shared memory of the CTA that owns the destination.
        #[inline(always)]
        pub unsafe fn $name<$($S: Scope,)? D: Destination<Bytes> $(+ Multicast<$Mask>)?, $($R: Report,)? T, U>(
            $($sem: sem_relaxed, $scope: $S,)?
            _dst: D,
            _src: space_global,
            $($report: $R,)?
            dst_mem: *mut T,
            src_mem: *const U,
            size: u32,
            $($left: u32, $right: u32,)?
            bar: *mut u64,
            $($mask: $Mask,)?
            $($policy: u64,)?
        ) where
            for<'a> Target: Has<$isa> + Has<$sm>,
        {
            debug_assert!(
                bar.addr().is_multiple_of(8),
                "cp.async.bulk: `bar` is not aligned to 8 bytes"
            );
            let bulk = bulk(dst_mem, src_mem, size);
            unsafe {
                bulk.$method::<BulkLoad<D, ($($S,)?), ($($R,)?)>>(
                    $([$left, $right],)? bar, $($mask,)? $($policy,)?
                )
            }
        }
    };
}

load! {
    /// Starts a copy of `size` bytes to shared memory, with a cache policy.
    cp_async_bulk_L2_cache_hint_bar: load_hint,
    [] [] [] [] [cache_policy] [ptx_80 sm_90];
    "", ".L2::cache_hint", "", ", cache_policy",
    "8.0 to `space_cluster`, 8.6 to `space_shared`, sm_90 and later"
}

load! {
    /// Starts a copy of `size` bytes to shared memory of several CTAs, with a cache policy.
    cp_async_bulk_L2_cache_hint_bar_cta_mask: load_mask_hint,
    [] [] [] [cta_mask u16] [cache_policy] [ptx_80 sm_90a_100f_103f_107f_110f];
    "", ".multicast::cluster.L2::cache_hint", "", ", cta_mask, cache_policy",
    "8.0, sm_90a, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of `size` bytes to shared memory that reports what it found, with a cache policy.
    cp_async_bulk_L2_cache_hint_report_mechanism_bar: load_hint,
    [] [_report_mechanism R] [] [] [cache_policy] [ptx_94 sm_107f];
    "", ".report_mechanism.L2::cache_hint", "", ", cache_policy",
    "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of `size` bytes to shared memory of several CTAs, with a cache policy.
    cp_async_bulk_multicast_32b_L2_cache_hint: load_mask_32b_hint,
    [] [] [] [cta_mask u32] [cache_policy] [ptx_94 sm_107f];
    "", ".multicast::cluster::32b.L2::cache_hint", "", ", cta_mask, cache_policy",
    "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of `size` bytes to shared memory of several CTAs that reports what it found, with a cache policy.
    cp_async_bulk_multicast_32b_L2_cache_hint_report_mechanism: load_mask_32b_hint,
    [] [_report_mechanism R] [] [cta_mask u32] [cache_policy] [ptx_94 sm_107f];
    "", ".report_mechanism.multicast::cluster::32b.L2::cache_hint", "", ", cta_mask, cache_policy",
    "9.4, sm_107a/f"
}

load! {
    /// Starts a copy of `size` bytes to shared memory whose ends may be out of bounds, with a cache policy.
    cp_async_bulk_L2_cache_hint_ignore_oob: load_ignoring_hint,
    [] [] [ignored: ignore_bytes_left ignore_bytes_right] [] [cache_policy] [ptx_92 sm_90];
    "", ".L2::cache_hint.ignore_oob", ", ignore_bytes_left, ignore_bytes_right", ", cache_policy",
    "9.2, sm_90 and later"
}

load! {
    /// Starts a copy of `size` bytes to shared memory in relaxed accesses of 16 bytes.
    cp_async_bulk_sem_scope_bar: load,
    [_sem _scope S] [] [] [] [] [ptx_93 sm_90a_100f_103f_107f_110f];
    ".relaxed.scope", ".b128", "", "",
    "9.3, sm_90a, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of `size` bytes to shared memory of several CTAs in relaxed accesses of 16 bytes.
    cp_async_bulk_sem_scope_bar_cta_mask: load_mask,
    [_sem _scope S] [] [] [cta_mask u16] [] [ptx_93 sm_90a_100f_103f_107f_110f];
    ".relaxed.scope", ".multicast::cluster.b128", "", ", cta_mask",
    "9.3, sm_90a, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of `size` bytes to shared memory, whose ends may be out of bounds, in relaxed accesses of 16 bytes.
    cp_async_bulk_ignore_oob_sem_scope: load_ignoring,
    [_sem _scope S] [] [ignored: ignore_bytes_left ignore_bytes_right] [] [] [ptx_93 sm_90a_100f_103f_107f_110f];
    ".relaxed.scope", ".ignore_oob.b128", ", ignore_bytes_left, ignore_bytes_right", "",
    "9.3, sm_90a, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of `size` bytes to shared memory in relaxed accesses of 16 bytes, with a cache policy.
    cp_async_bulk_L2_cache_hint_sem_scope_bar: load_hint,
    [_sem _scope S] [] [] [] [cache_policy] [ptx_93 sm_90a_100f_103f_107f_110f];
    ".relaxed.scope", ".L2::cache_hint.b128", "", ", cache_policy",
    "9.3, sm_90a, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of `size` bytes to shared memory of several CTAs in relaxed accesses of 16 bytes, with a cache policy.
    cp_async_bulk_L2_cache_hint_sem_scope_bar_cta_mask: load_mask_hint,
    [_sem _scope S] [] [] [cta_mask u16] [cache_policy] [ptx_93 sm_90a_100f_103f_107f_110f];
    ".relaxed.scope", ".multicast::cluster.L2::cache_hint.b128", "", ", cta_mask, cache_policy",
    "9.3, sm_90a, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

load! {
    /// Starts a copy of `size` bytes to shared memory, whose ends may be out of bounds, in relaxed accesses of 16 bytes, with a cache policy.
    cp_async_bulk_L2_cache_hint_ignore_oob_sem_scope: load_ignoring_hint,
    [_sem _scope S] [] [ignored: ignore_bytes_left ignore_bytes_right] [] [cache_policy] [ptx_93 sm_90a_100f_103f_107f_110f];
    ".relaxed.scope", ".L2::cache_hint.ignore_oob.b128", ", ignore_bytes_left, ignore_bytes_right", ", cache_policy",
    "9.3, sm_90a, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f"
}

/// A copy or a reduction out of shared memory, into global memory or, with an mbarrier, the shared memory of another
/// CTA. The brackets hold generics, the arguments that not all have, and what the types and the target must have.
macro_rules! store {
    (
        $(#[$doc:meta])*
        $name:ident: $method:ident, [$($generics:tt)*] $dst:ident $To:ident $From:ident, $form:ty,
        [$($sem:ident $scope:ident $S:ident)?] [$($op:ident $O:ident)?] [$($bar:ident)?] [$($policy:ident)?]
        [$($mask:ident)?] [$($bounds:tt)*] [$isa:ident $sm:ident];
        $opcode:literal, $operands:literal, $needs:literal, $link:literal
    ) => {
        $(#[$doc])*
        ///
        /// ```text
        #[doc = $opcode]
        #[doc = concat!("    [dst_mem], [src_mem], size", $operands, ";")]
        #[doc = concat!("    PTX ISA ", $needs)]
        /// ```
        ///
        $(#[doc = docs!($scope)])?
        /// - `size`: bytes, a multiple of 16.
        $(#[doc = docs!($bar)])?
        $(#[doc = docs!($policy)])?
        $(#[doc = docs!($mask)])?
        ///
        #[doc = concat!("PTX ISA: [section](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-", $link, ")")]
        ///
        /// # Panics
        ///
        /// In debug builds, if an address is not aligned, or `size` is not a multiple of 16.
        ///
        /// # Safety
        ///
        /// - `dst_mem` and `src_mem` point to `size` bytes in the spaces named, aligned to 16 bytes; for `multimem`,
        ///   `dst_mem` is a multicast address.
        /// - Nobody writes the source, or accesses the destination except by reductions, until the copy is complete.
        #[inline(always)]
        pub unsafe fn $name<$($generics)*>(
            $($sem: sem_relaxed, $scope: $S,)?
            _dst: $dst,
            _src: space_shared,
            $($op: $O,)?
            dst_mem: *mut $To,
            src_mem: *const $From,
            size: u32,
            $($bar: *mut u64,)?
            $($policy: u64,)?
            $($mask: u16,)?
        ) where
            for<'a> Target: Has<$isa> + Has<$sm>,
            $($bounds)*
        {
            let bulk = bulk(dst_mem, src_mem, size);
            unsafe { bulk.$method::<$form>($($bar,)? $($policy,)? $($mask,)?) }
        }
    };
}

store! {
    /// Starts a copy of `size` bytes from shared to global memory, with a cache policy.
    cp_async_bulk_L2_cache_hint: store_hint, [T, U] space_global T U, BulkStore<()>,
    [] [] [] [cache_policy] [] [] [ptx_80 sm_90];
    "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint", ", cache_policy",
    "8.0, sm_90 and later", "cp-async-bulk"
}

store! {
    /// Starts a copy of `size` bytes from shared to global memory that leaves out bytes, with a cache policy.
    cp_async_bulk_L2_cache_hint_cp_mask: store_masked_hint, [T, U] space_global T U, BulkStore<()>,
    [] [] [] [cache_policy] [byte_mask] [] [ptx_86 sm_100];
    "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask", ", cache_policy, byte_mask",
    "8.6, sm_100 and later", "cp-async-bulk"
}

store! {
    /// Starts a copy of `size` bytes from shared to global memory in relaxed accesses of 16 bytes.
    cp_async_bulk_sem_scope: store, [S: Scope, T, U] space_global T U, BulkStore<(S,)>,
    [_sem _scope S] [] [] [] [] [] [ptx_93 sm_90a_100f_103f_107f_110f];
    "cp.async.bulk.relaxed.scope.global.shared::cta.bulk_group.b128", "",
    "9.3, sm_90a, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f", "cp-async-bulk"
}

store! {
    /// Starts a copy of `size` bytes from shared to global memory that leaves out bytes, in relaxed accesses of 16 bytes.
    cp_async_bulk_cp_mask_sem_scope: store_masked, [S: Scope, T, U] space_global T U, BulkStore<(S,)>,
    [_sem _scope S] [] [] [] [byte_mask] [] [ptx_93 sm_100f_103f_107f_110f];
    "cp.async.bulk.relaxed.scope.global.shared::cta.bulk_group.cp_mask.b128", ", byte_mask",
    "9.3, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f", "cp-async-bulk"
}

store! {
    /// Starts a copy of `size` bytes from shared to global memory in relaxed accesses of 16 bytes, with a cache policy.
    cp_async_bulk_L2_cache_hint_sem_scope: store_hint, [S: Scope, T, U] space_global T U, BulkStore<(S,)>,
    [_sem _scope S] [] [] [cache_policy] [] [] [ptx_93 sm_90a_100f_103f_107f_110f];
    "cp.async.bulk.relaxed.scope.global.shared::cta.bulk_group.L2::cache_hint.b128", ", cache_policy",
    "9.3, sm_90a, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f", "cp-async-bulk"
}

store! {
    /// Starts a copy of `size` bytes from shared to global memory that leaves out bytes, in relaxed accesses of 16 bytes, with a cache policy.
    cp_async_bulk_L2_cache_hint_cp_mask_sem_scope: store_masked_hint, [S: Scope, T, U] space_global T U, BulkStore<(S,)>,
    [_sem _scope S] [] [] [cache_policy] [byte_mask] [] [ptx_93 sm_100f_103f_107f_110f];
    "cp.async.bulk.relaxed.scope.global.shared::cta.bulk_group.L2::cache_hint.cp_mask.b128", ", cache_policy, byte_mask",
    "9.3, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f", "cp-async-bulk"
}

store! {
    /// Starts a copy of `size` bytes to the shared memory of another CTA of the cluster in relaxed accesses of 16 bytes.
    cp_async_bulk_sem_scope_bar_shared: share, [S: SharedScope, T, U] space_cluster T U, BulkStore<(S,)>,
    [_sem _scope S] [] [bar] [] [] [] [ptx_93 sm_90a_100f_103f_107f_110f];
    "cp.async.bulk.relaxed.scope.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.b128", ", [bar]",
    "9.3, sm_90a, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f", "cp-async-bulk"
}

store! {
    /// Starts a reduction of `size` bytes of values in shared memory into those at `dst_mem`, with a cache policy.
    cp_reduce_async_bulk_L2_cache_hint: store_hint, [O, T: Value] space_global T T, BulkReduce<(), O, T>,
    [] [_op O] [] [cache_policy] [] [(O, T): Reduction,] [ptx_80 sm_90];
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.op.type", ", cache_policy",
    "8.0, sm_90 and later", "cp-reduce-async-bulk"
}

store! {
    /// Starts a reduction of `size` bytes of values in shared memory into those at `dst_mem`, with a scope.
    cp_reduce_async_bulk_sem_scope: store, [S: Scope, O, T: Value] space_global T T, BulkReduce<(S,), O, T>,
    [_sem _scope S] [_op O] [] [] [] [(O, T): Reduction,] [ptx_93 sm_90];
    "cp.reduce.async.bulk.relaxed.scope.global.shared::cta.bulk_group.op.type", "",
    "9.3, sm_90 and later", "cp-reduce-async-bulk"
}

store! {
    /// Starts a reduction of `size` bytes of values in shared memory into those at `dst_mem`, with a scope, and a cache policy.
    cp_reduce_async_bulk_L2_cache_hint_sem_scope: store_hint, [S: Scope, O, T: Value] space_global T T, BulkReduce<(S,), O, T>,
    [_sem _scope S] [_op O] [] [cache_policy] [] [(O, T): Reduction,] [ptx_93 sm_90];
    "cp.reduce.async.bulk.relaxed.scope.global.shared::cta.bulk_group.L2::cache_hint.op.type", ", cache_policy",
    "9.3, sm_90 and later", "cp-reduce-async-bulk"
}

store! {
    /// Starts a reduction of `size` bytes of values into those in the shared memory of another CTA of the cluster, with a scope.
    cp_reduce_async_bulk_sem_scope_bar: share, [S: SharedScope, O, T: Value] space_cluster T T, BulkReduce<(S,), O, T>,
    [_sem _scope S] [_op O] [bar] [] [] [(O, T): SharedReduction,] [ptx_93 sm_90];
    "cp.reduce.async.bulk.relaxed.scope.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.op.type", ", [bar]",
    "9.3, sm_90 and later", "cp-reduce-async-bulk"
}

store! {
    /// Starts a copy of `size` bytes from shared memory to a multicast address, into the memory of every GPU.
    multimem_cp_async_bulk: store, [T, U] space_global T U, Multimem<BulkStore<()>>,
    [] [] [] [] [] [] [ptx_91 sm_90];
    "multimem.cp.async.bulk.global.shared::cta.bulk_group", "",
    "9.1, sm_90 and later", "multimem-cp-async-bulk"
}

store! {
    /// Starts a copy of `size` bytes from shared memory to a multicast address, into the memory of every GPU, that leaves out bytes.
    multimem_cp_async_bulk_cp_mask: store_masked, [T, U] space_global T U, Multimem<BulkStore<()>>,
    [] [] [] [] [byte_mask] [] [ptx_91 sm_100];
    "multimem.cp.async.bulk.global.shared::cta.bulk_group.cp_mask", ", byte_mask",
    "9.1, sm_100 and later", "multimem-cp-async-bulk"
}

store! {
    /// Starts a copy of `size` bytes from shared memory to a multicast address, into the memory of every GPU, in relaxed accesses of 16 bytes.
    multimem_cp_async_bulk_sem_scope: store, [S: Scope, T, U] space_global T U, Multimem<BulkStore<(S,)>>,
    [_sem _scope S] [] [] [] [] [] [ptx_93 sm_90a_100f_103f_107f_110f];
    "multimem.cp.async.bulk.relaxed.scope.global.shared::cta.bulk_group.b128", "",
    "9.3, sm_90a, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f", "multimem-cp-async-bulk"
}

store! {
    /// Starts a copy of `size` bytes from shared memory to a multicast address, into the memory of every GPU, that leaves out bytes, in relaxed accesses of 16 bytes.
    multimem_cp_async_bulk_cp_mask_sem_scope: store_masked, [S: Scope, T, U] space_global T U, Multimem<BulkStore<(S,)>>,
    [_sem _scope S] [] [] [] [byte_mask] [] [ptx_93 sm_100f_103f_107f_110f];
    "multimem.cp.async.bulk.relaxed.scope.global.shared::cta.bulk_group.cp_mask.b128", ", byte_mask",
    "9.3, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f", "multimem-cp-async-bulk"
}

store! {
    /// Starts a reduction of `size` bytes of values in shared memory into those at a multicast address, in the memory of every GPU.
    multimem_cp_reduce_async_bulk: store, [O, T: Value] space_global T T, Multimem<BulkReduce<(), O, T>>,
    [] [_op O] [] [] [] [(O, T): Reduction,] [ptx_91 sm_90];
    "multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.op.type", "",
    "9.1, sm_90 and later", "multimem-cp-reduce-async-bulk"
}

store! {
    /// Starts a reduction of `size` bytes of values in shared memory into those at a multicast address, in the memory of every GPU, with a scope.
    multimem_cp_reduce_async_bulk_sem_scope: store, [S: Scope, O, T: Value] space_global T T, Multimem<BulkReduce<(S,), O, T>>,
    [_sem _scope S] [_op O] [] [] [] [(O, T): Reduction,] [ptx_93 sm_90];
    "multimem.cp.reduce.async.bulk.relaxed.scope.global.shared::cta.bulk_group.op.type", "",
    "9.3, sm_90 and later", "multimem-cp-reduce-async-bulk"
}
