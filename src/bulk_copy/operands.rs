//! The inline assembly, once for each number of operands.
//!
//! Numbers of operands are fixed in inline assembly; everything else about the instruction is text
//! that a [`Form`] gives. So a block serves many instructions, and rustc need not check one for each.

// Build targets that lack the instructions have no bodies, and off the GPU `asm!` is a panic.
#![allow(unused, unreachable_code)]

use super::form::Form;
use crate::address::{as_ptr_gmem, as_ptr_smem};
use crate::asm::asm;
use crate::target::{lacking, on_target, ptx_80, ptx_86, ptx_92, ptx_94, sm_90, sm_100, sm_107f};

/// Where a load goes, and the tensor that it comes from.
pub struct From<C> {
    pub dst_mem: *mut (),
    pub tensor_map: *const (),
    pub coordinates: C,
    pub bar: *mut u64,
}

/// What follows the mbarrier: `[u16; N]`, with `N` of 0 in modes other than im2col.
pub trait Operands<C>: Sized {
    #[doc(hidden)]
    unsafe fn load<F: Form>(self, from: From<C>) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn load_mask<F: Form>(self, from: From<C>, cta_mask: u16) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn load_mask_32b<F: Form>(self, from: From<C>, cta_mask: u32) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn load_hint<F: Form>(self, from: From<C>, cache_policy: u64) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn load_mask_hint<F: Form>(self, from: From<C>, cta_mask: u16, cache_policy: u64) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn load_mask_32b_hint<F: Form>(self, from: From<C>, cta_mask: u32, cache_policy: u64) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn prefetch_hint<F: Form>(
        self,
        tensor_map: *const (),
        coordinates: C,
        cache_policy: u64,
    ) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn prefetch_evict_last<F: Form>(self, tensor_map: *const (), coordinates: C) {
        lacking()
    }
}

/// The coordinates of copies out of shared memory.
pub trait Stored: Sized {
    #[doc(hidden)]
    unsafe fn store<F: Form>(self, tensor_map: *const (), src_mem: *const ()) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn store_hint<F: Form>(
        self,
        tensor_map: *const (),
        src_mem: *const (),
        cache_policy: u64,
    ) {
        lacking()
    }
}

/// A load with the qualifier `$multicast`, `$hint`, and what follows the mbarrier.
macro_rules! load {
    (
        $form:ident, $from:ident, [$($coordinates:tt)*];
        $multicast:literal, $hint:literal, $tail:expr;
        $($operands:tt)*
    ) => {
        unsafe {
            asm!(
                concat!(
                    "cp.async.bulk.tensor.{dim}d<text {space}>.global<text {mode}>.mbarrier::complete_tx::bytes",
                    "<text {report0}><text {report1}><text {report2}><text {report3}>",
                    $multicast, "<text {group}>", $hint,
                    " [{dst_mem}], [{tensor_map}, ", vector!($($coordinates)*), "], [{bar}]", $tail, ";"
                ),
                dst_mem = in(reg32) as_ptr_smem($from.dst_mem),
                tensor_map = in(reg64) $from.tensor_map,
                bar = in(reg32) as_ptr_smem($from.bar),
                $($operands)*
                dim = const $form::DIM,
                space = const $form::SPACE,
                mode = const $form::MODE[0],
                report0 = const $form::REPORT[0],
                report1 = const $form::REPORT[1],
                report2 = const $form::REPORT[2],
                report3 = const $form::REPORT[3],
                group = const $form::GROUP,
                options(nostack),
            );
        }
    };
}

/// Implements [`Operands`] for as many coordinates and im2col offsets as there are names.
macro_rules! operands {
    ($n:literal $info:literal [$($c:ident $at:literal)*] [$($i:ident $i_at:literal)*] {$tail:expr}) => {
        impl Operands<[i32; $n]> for [u16; $info] {
            on_target! { [ptx_80 sm_90]
            #[inline(always)]
            unsafe fn load_hint<F: Form>(self, from: From<[i32; $n]>, cache_policy: u64) {
                load! { F, from, [$($c)*]; "", ".L2::cache_hint", concat!($tail, ", {cache_policy}");
                    $($c = in(reg32) from.coordinates[$at],)* $($i = in(reg16) self[$i_at],)*
                    cache_policy = in(reg64) cache_policy,
                }
            }
            #[inline(always)]
            unsafe fn load_mask_hint<F: Form>(self, from: From<[i32; $n]>, cta_mask: u16, cache_policy: u64) {
                load! { F, from, [$($c)*]; ".multicast::cluster", ".L2::cache_hint",
                    concat!($tail, ", {cta_mask}, {cache_policy}");
                    $($c = in(reg32) from.coordinates[$at],)* $($i = in(reg16) self[$i_at],)*
                    cta_mask = in(reg16) cta_mask, cache_policy = in(reg64) cache_policy,
                }
            }
            }
            on_target! { [ptx_94 sm_107f]
            #[inline(always)]
            unsafe fn load_mask_32b_hint<F: Form>(self, from: From<[i32; $n]>, cta_mask: u32, cache_policy: u64) {
                load! { F, from, [$($c)*]; ".multicast::cluster::32b", ".L2::cache_hint",
                    concat!($tail, ", {cta_mask}, {cache_policy}");
                    $($c = in(reg32) from.coordinates[$at],)* $($i = in(reg16) self[$i_at],)*
                    cta_mask = in(reg32) cta_mask, cache_policy = in(reg64) cache_policy,
                }
            }
            }
            im2col! { $n [$($c $at)*] [$($i $i_at)*] {$tail} }
        }
    };
}

/// What only the im2col modes lack in `cuda::ptx`: loads without a hint, and prefetches.
macro_rules! im2col {
    ($n:literal [$($c:ident $at:literal)*] [] {$tail:expr}) => {};
    ($n:literal [$($c:ident $at:literal)*] [$($i:ident $i_at:literal)+] {$tail:expr}) => {
        on_target! { [ptx_80 sm_90]
        #[inline(always)]
        unsafe fn load<F: Form>(self, from: From<[i32; $n]>) {
            load! { F, from, [$($c)*]; "", "", $tail;
                $($c = in(reg32) from.coordinates[$at],)* $($i = in(reg16) self[$i_at],)*
            }
        }
        #[inline(always)]
        unsafe fn load_mask<F: Form>(self, from: From<[i32; $n]>, cta_mask: u16) {
            load! { F, from, [$($c)*]; ".multicast::cluster", "", concat!($tail, ", {cta_mask}");
                $($c = in(reg32) from.coordinates[$at],)* $($i = in(reg16) self[$i_at],)*
                cta_mask = in(reg16) cta_mask,
            }
        }
        #[inline(always)]
        unsafe fn prefetch_hint<F: Form>(self, tensor_map: *const (), coordinates: [i32; $n], cache_policy: u64) {
            prefetch! { F, [$($c)*]; ".L2::cache_hint", concat!($tail, ", {cache_policy}");
                $($c = in(reg32) coordinates[$at],)* $($i = in(reg16) self[$i_at],)*
                tensor_map = in(reg64) tensor_map, cache_policy = in(reg64) cache_policy,
            }
        }
        }
        on_target! { [ptx_94 sm_107f]
        #[inline(always)]
        unsafe fn load_mask_32b<F: Form>(self, from: From<[i32; $n]>, cta_mask: u32) {
            load! { F, from, [$($c)*]; ".multicast::cluster::32b", "", concat!($tail, ", {cta_mask}");
                $($c = in(reg32) from.coordinates[$at],)* $($i = in(reg16) self[$i_at],)*
                cta_mask = in(reg32) cta_mask,
            }
        }
        #[inline(always)]
        unsafe fn prefetch_evict_last<F: Form>(self, tensor_map: *const (), coordinates: [i32; $n]) {
            prefetch! { F, [$($c)*]; ".L2::evict_last", $tail;
                $($c = in(reg32) coordinates[$at],)* $($i = in(reg16) self[$i_at],)*
                tensor_map = in(reg64) tensor_map,
            }
        }
        }
    };
}

macro_rules! prefetch {
    ($form:ident, [$($coordinates:tt)*]; $level:literal, $tail:expr; $($operands:tt)*) => {
        unsafe {
            asm!(
                concat!(
                    "cp.async.bulk.prefetch.tensor.{dim}d.L2.global<text {mode}>", $level,
                    " [{tensor_map}, ", vector!($($coordinates)*), "]", $tail, ";"
                ),
                $($operands)*
                dim = const $form::DIM,
                mode = const $form::MODE[0],
                options(nostack),
            );
        }
    };
}

operands! { 1 0 [c0 0] [] {""} }
operands! { 2 0 [c0 0 c1 1] [] {""} }
operands! { 3 0 [c0 0 c1 1 c2 2] [] {""} }
operands! { 4 0 [c0 0 c1 1 c2 2 c3 3] [] {""} }
operands! { 5 0 [c0 0 c1 1 c2 2 c3 3 c4 4] [] {""} }
operands! { 3 1 [c0 0 c1 1 c2 2] [i0 0] {", {{{i0}}}"} }
operands! { 3 2 [c0 0 c1 1 c2 2] [i0 0 i1 1] {", {{{i0}, {i1}}}"} }
operands! { 4 2 [c0 0 c1 1 c2 2 c3 3] [i0 0 i1 1] {", {{{i0}, {i1}}}"} }
operands! { 5 2 [c0 0 c1 1 c2 2 c3 3 c4 4] [i0 0 i1 1] {", {{{i0}, {i1}}}"} }
operands! { 5 3 [c0 0 c1 1 c2 2 c3 3 c4 4] [i0 0 i1 1 i2 2] {", {{{i0}, {i1}, {i2}}}"} }

/// A store or a reduction.
macro_rules! store {
    ($form:ident, $coordinates:ident, [$($c:ident $at:literal)*]; $hint:literal, $tail:literal; $($operands:tt)*) => {
        unsafe {
            asm!(
                concat!(
                    "cp<text {reduce}>.async.bulk.tensor.{dim}d.global.shared::cta<text {operation}><text {mode0}>",
                    "<text {mode1}>.bulk_group", $hint,
                    " [{tensor_map}, ", vector!($($c)*), "], [{src_mem}]", $tail, ";"
                ),
                $($c = in(reg32) $coordinates[$at],)*
                $($operands)*
                dim = const $form::DIM,
                reduce = const $form::REDUCE,
                operation = const $form::OPERATION,
                mode0 = const $form::MODE[0],
                mode1 = const $form::MODE[1],
                options(nostack),
            );
        }
    };
}

macro_rules! stored {
    ($n:literal [$($c:ident $at:literal)*]) => {
        impl Stored for [i32; $n] {
            on_target! { [ptx_80 sm_90]
            #[inline(always)]
            unsafe fn store<F: Form>(self, tensor_map: *const (), src_mem: *const ()) {
                store! { F, self, [$($c $at)*]; "", "";
                    tensor_map = in(reg64) tensor_map, src_mem = in(reg32) as_ptr_smem(src_mem),
                }
            }
            #[inline(always)]
            unsafe fn store_hint<F: Form>(self, tensor_map: *const (), src_mem: *const (), cache_policy: u64) {
                store! { F, self, [$($c $at)*]; ".L2::cache_hint", ", {cache_policy}";
                    tensor_map = in(reg64) tensor_map, src_mem = in(reg32) as_ptr_smem(src_mem),
                    cache_policy = in(reg64) cache_policy,
                }
            }
            }
        }
    };
}

stored! { 1 [c0 0] }
stored! { 2 [c0 0 c1 1] }
stored! { 3 [c0 0 c1 1 c2 2] }
stored! { 4 [c0 0 c1 1 c2 2 c3 3] }
stored! { 5 [c0 0 c1 1 c2 2 c3 3 c4 4] }

/// A copy of bytes.
pub struct Bulk {
    pub dst_mem: *mut (),
    pub src_mem: *const (),
    pub size: u32,
}

/// What starts a copy of bytes, by its operands.
pub trait Start: Sized {
    unsafe fn store<F: Form>(self) {
        lacking()
    }
    unsafe fn store_hint<F: Form>(self, cache_policy: u64) {
        lacking()
    }
    unsafe fn store_masked<F: Form>(self, byte_mask: u16) {
        lacking()
    }
    unsafe fn store_masked_hint<F: Form>(self, cache_policy: u64, byte_mask: u16) {
        lacking()
    }
    unsafe fn share<F: Form>(self, bar: *mut u64) {
        lacking()
    }
    unsafe fn load<F: Form>(self, bar: *mut u64) {
        lacking()
    }
    unsafe fn load_hint<F: Form>(self, bar: *mut u64, cache_policy: u64) {
        lacking()
    }
    unsafe fn load_mask<F: Form>(self, bar: *mut u64, cta_mask: u16) {
        lacking()
    }
    unsafe fn load_mask_hint<F: Form>(self, bar: *mut u64, cta_mask: u16, cache_policy: u64) {
        lacking()
    }
    unsafe fn load_mask_32b_hint<F: Form>(self, bar: *mut u64, cta_mask: u32, cache_policy: u64) {
        lacking()
    }
    unsafe fn load_ignoring<F: Form>(self, ignored: [u32; 2], bar: *mut u64) {
        lacking()
    }
    unsafe fn load_ignoring_hint<F: Form>(
        self,
        ignored: [u32; 2],
        bar: *mut u64,
        cache_policy: u64,
    ) {
        lacking()
    }
}

/// Out of shared memory, with the qualifiers `$hint` and `$masked`, and what follows the size.
macro_rules! bulk_store {
    ($form:ident, $bulk:ident; $hint:literal, $masked:literal, $tail:literal; $($operands:tt)*) => {
        unsafe {
            asm!(
                concat!(
                    "<text {multimem}>cp<text {reduce}>.async.bulk<text {order}>.global.shared::cta.bulk_group", $hint, $masked,
                    "<text {ty}> [{dst_mem}], [{src_mem}], {size}", $tail, ";"
                ),
                dst_mem = in(reg64) as_ptr_gmem($bulk.dst_mem),
                src_mem = in(reg32) as_ptr_smem($bulk.src_mem),
                size = in(reg32) $bulk.size,
                $($operands)*
                multimem = const $form::MULTIMEM,
                reduce = const $form::REDUCE,
                order = const $form::ORDER,
                ty = const $form::TYPE,
                options(nostack),
            );
        }
    };
}

/// Into shared memory, with the qualifiers `$multicast`, `$hint` and `$ignoring`, and what surrounds the mbarrier.
macro_rules! bulk_load {
    (
        $form:ident, $bulk:ident, $bar:ident;
        $multicast:literal, $hint:literal, $ignoring:literal, $before:literal, $after:literal;
        $($operands:tt)*
    ) => {
        unsafe {
            asm!(
                concat!(
                    "cp.async.bulk<text {order}><text {space}>.global.mbarrier::complete_tx::bytes",
                    "<text {report0}><text {report1}><text {report2}><text {report3}>",
                    $multicast, $hint, $ignoring,
                    "<text {ty}> [{dst_mem}], [{src_mem}], {size}", $before, ", [{bar}]", $after, ";"
                ),
                dst_mem = in(reg32) as_ptr_smem($bulk.dst_mem),
                src_mem = in(reg64) as_ptr_gmem($bulk.src_mem),
                size = in(reg32) $bulk.size,
                bar = in(reg32) as_ptr_smem($bar),
                $($operands)*
                order = const $form::ORDER,
                space = const $form::SPACE,
                report0 = const $form::REPORT[0],
                report1 = const $form::REPORT[1],
                report2 = const $form::REPORT[2],
                report3 = const $form::REPORT[3],
                ty = const $form::TYPE,
                options(nostack),
            );
        }
    };
}

impl Start for Bulk {
    on_target! { [ptx_80 sm_90]
    #[inline(always)]
    unsafe fn store<F: Form>(self) {
        bulk_store! { F, self; "", "", ""; }
    }
    #[inline(always)]
    unsafe fn store_hint<F: Form>(self, cache_policy: u64) {
        bulk_store! { F, self; ".L2::cache_hint", "", ", {cache_policy}"; cache_policy = in(reg64) cache_policy, }
    }
    #[inline(always)]
    unsafe fn share<F: Form>(self, bar: *mut u64) {
        unsafe {
            asm!(
                concat!(
                    "cp<text {reduce}>.async.bulk<text {order}>.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
                    "<text {ty}> [{dst_mem}], [{src_mem}], {size}, [{bar}];"
                ),
                dst_mem = in(reg32) as_ptr_smem(self.dst_mem),
                src_mem = in(reg32) as_ptr_smem(self.src_mem),
                size = in(reg32) self.size,
                bar = in(reg32) as_ptr_smem(bar),
                reduce = const F::REDUCE,
                order = const F::ORDER,
                ty = const F::TYPE,
                options(nostack),
            );
        }
    }
    #[inline(always)]
    unsafe fn load<F: Form>(self, bar: *mut u64) {
        bulk_load! { F, self, bar; "", "", "", "", ""; }
    }
    #[inline(always)]
    unsafe fn load_hint<F: Form>(self, bar: *mut u64, cache_policy: u64) {
        bulk_load! { F, self, bar; "", ".L2::cache_hint", "", "", ", {cache_policy}";
            cache_policy = in(reg64) cache_policy,
        }
    }
    #[inline(always)]
    unsafe fn load_mask<F: Form>(self, bar: *mut u64, cta_mask: u16) {
        bulk_load! { F, self, bar; ".multicast::cluster", "", "", "", ", {cta_mask}";
            cta_mask = in(reg16) cta_mask,
        }
    }
    #[inline(always)]
    unsafe fn load_mask_hint<F: Form>(self, bar: *mut u64, cta_mask: u16, cache_policy: u64) {
        bulk_load! { F, self, bar; ".multicast::cluster", ".L2::cache_hint", "", "", ", {cta_mask}, {cache_policy}";
            cta_mask = in(reg16) cta_mask, cache_policy = in(reg64) cache_policy,
        }
    }
    }
    on_target! { [ptx_86 sm_100]
    #[inline(always)]
    unsafe fn store_masked<F: Form>(self, byte_mask: u16) {
        bulk_store! { F, self; "", ".cp_mask", ", {byte_mask}"; byte_mask = in(reg16) byte_mask, }
    }
    #[inline(always)]
    unsafe fn store_masked_hint<F: Form>(self, cache_policy: u64, byte_mask: u16) {
        bulk_store! { F, self; ".L2::cache_hint", ".cp_mask", ", {cache_policy}, {byte_mask}";
            cache_policy = in(reg64) cache_policy, byte_mask = in(reg16) byte_mask,
        }
    }
    }
    on_target! { [ptx_92 sm_90]
    #[inline(always)]
    unsafe fn load_ignoring<F: Form>(self, ignored: [u32; 2], bar: *mut u64) {
        bulk_load! { F, self, bar; "", "", ".ignore_oob", ", {left}, {right}", "";
            left = in(reg32) ignored[0], right = in(reg32) ignored[1],
        }
    }
    #[inline(always)]
    unsafe fn load_ignoring_hint<F: Form>(self, ignored: [u32; 2], bar: *mut u64, cache_policy: u64) {
        bulk_load! { F, self, bar; "", ".L2::cache_hint", ".ignore_oob", ", {left}, {right}", ", {cache_policy}";
            left = in(reg32) ignored[0], right = in(reg32) ignored[1], cache_policy = in(reg64) cache_policy,
        }
    }
    }
    on_target! { [ptx_94 sm_107f]
    #[inline(always)]
    unsafe fn load_mask_32b_hint<F: Form>(self, bar: *mut u64, cta_mask: u32, cache_policy: u64) {
        bulk_load! { F, self, bar; ".multicast::cluster::32b", ".L2::cache_hint", "", "", ", {cta_mask}, {cache_policy}";
            cta_mask = in(reg32) cta_mask, cache_policy = in(reg64) cache_policy,
        }
    }
    }
}
