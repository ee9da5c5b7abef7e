//! Tensor copies with a cache policy that take the tensor's address, sizes or strides from operands instead of its map.

// Build targets that lack the instructions have no bodies, and off the GPU `asm!` is a panic.
#![allow(unused, unreachable_code)]

use super::form::*;
use super::load::from;
use super::operands::From;
use super::store::check_stored;
use crate::address::as_ptr_smem;
use crate::asm::asm;
use crate::tags::{space_global, space_shared};
use crate::target::{Has, Target, lacking, on_target, ptx_94, sm_107f};
use crate::value::{Value, array_to_bits};

/// Implemented by what replaces properties of a map besides the address, for tensors with the coordinates `C`: `()` for
/// nothing, a size, or sizes, lower and upper strides.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not replace properties of a tensor map with the coordinates `{C}`",
    label = "no such sizes and strides",
    note = "there are as many sizes as coordinates, and one stride less"
)]
pub trait Overridden<C>: Sized {
    #[doc(hidden)]
    unsafe fn load<F: Form>(self, address: *const (), from: From<C>, cache_policy: u64) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn load_mask<F: Form>(
        self,
        address: *const (),
        from: From<C>,
        cta_mask: u32,
        cache_policy: u64,
    ) {
        lacking()
    }
    /// `memory` is the map, the address and the source.
    #[doc(hidden)]
    unsafe fn store<F: Form>(self, coordinates: C, memory: [*const (); 3], cache_policy: u64) {
        lacking()
    }
}

macro_rules! load {
    ($form:ident, $from:ident, [$($c:ident $at:literal)*] $attribute:literal {$info:expr}; $multicast:literal, $tail:literal; $($operands:tt)*) => {
        unsafe {
            asm!(
                concat!(
                    "cp.async.bulk.tensor.{dim}d<text {space}>.global<text {mode}>.mbarrier::complete_tx::bytes",
                    "<text {report0}><text {report1}><text {report2}><text {report3}>", $multicast,
                    "<text {group}>.L2::cache_hint.override::global_address", $attribute,
                    " [{dst_mem}], [{tensor_map}, {address}", $info, ", ", vector!($($c)*), "], [{bar}]", $tail,
                    ", {cache_policy};"
                ),
                dst_mem = in(reg32) as_ptr_smem($from.dst_mem),
                tensor_map = in(reg64) $from.tensor_map,
                bar = in(reg32) as_ptr_smem($from.bar),
                $($c = in(reg32) $from.coordinates[$at],)*
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

/// Implements [`Overridden`] with the operands of `$self` behind the map.
macro_rules! overridden {
    ($ty:ty, $self:ident: $n:literal [$($c:ident $at:literal)*] $attribute:literal {$info:expr} $($operands:tt)*) => {
        impl Overridden<[i32; $n]> for $ty {
            on_target! { [ptx_94 sm_107f]
            #[inline(always)]
            unsafe fn load<F: Form>($self, address: *const (), from: From<[i32; $n]>, cache_policy: u64) {
                load! { F, from, [$($c $at)*] $attribute {$info}; "", "";
                    address = in(reg64) address, $($operands)* cache_policy = in(reg64) cache_policy,
                }
            }
            #[inline(always)]
            unsafe fn load_mask<F: Form>(
                $self, address: *const (), from: From<[i32; $n]>, cta_mask: u32, cache_policy: u64,
            ) {
                load! { F, from, [$($c $at)*] $attribute {$info}; ".multicast::cluster::32b", ", {cta_mask}";
                    address = in(reg64) address, $($operands)* cta_mask = in(reg32) cta_mask,
                    cache_policy = in(reg64) cache_policy,
                }
            }
            #[inline(always)]
            unsafe fn store<F: Form>(
                $self, coordinates: [i32; $n], [tensor_map, address, src_mem]: [*const (); 3], cache_policy: u64,
            ) {
                unsafe {
                    asm!(
                        concat!(
                            "cp<text {reduce}>.async.bulk.tensor.{dim}d.global.shared::cta<text {operation}><text {mode}>",
                            ".bulk_group.L2::cache_hint.override::global_address", $attribute,
                            " [{tensor_map}, {address}", $info, ", ", vector!($($c)*), "], [{src_mem}], {cache_policy};"
                        ),
                        tensor_map = in(reg64) tensor_map,
                        address = in(reg64) address,
                        $($operands)*
                        $($c = in(reg32) coordinates[$at],)*
                        src_mem = in(reg32) as_ptr_smem(src_mem),
                        cache_policy = in(reg64) cache_policy,
                        dim = const F::DIM,
                        reduce = const F::REDUCE,
                        operation = const F::OPERATION,
                        mode = const F::MODE[0],
                        options(nostack),
                    );
                }
            }
            }
        }
    };
}

overridden! { (), self: 1 [c0 0] "" {""} }
overridden! { (), self: 2 [c0 0 c1 1] "" {""} }
overridden! { (), self: 3 [c0 0 c1 1 c2 2] "" {""} }
overridden! { (), self: 4 [c0 0 c1 1 c2 2 c3 3] "" {""} }
overridden! { (), self: 5 [c0 0 c1 1 c2 2 c3 3 c4 4] "" {""} }

overridden! { [u16; 1], self: 1 [c0 0] ".override::global_dim" {", {{{s0}}}"} s0 = in(reg16) self[0], }

/// [`overridden!`] for sizes and strides.
macro_rules! strided {
    ($self:ident $n:literal $outer:literal $coordinates:tt [$($s:ident $s_at:literal)*] [$($l:ident $l_at:literal)*]) => {
        overridden! {
            ([u16; $n], [u32; $outer], u16), $self: $n $coordinates ".override::global_dim_stride"
            {concat!(", ", vector!($($s)*), ", ", vector!($($l)*), ", {upper}")}
            $($s = in(reg16) $self.0[$s_at],)* $($l = in(reg32) $self.1[$l_at],)* upper = in(reg16) $self.2,
        }
    };
}

strided! { self 2 1 [c0 0 c1 1] [s0 0 s1 1] [l0 0] }
strided! { self 3 2 [c0 0 c1 1 c2 2] [s0 0 s1 1 s2 2] [l0 0 l1 1] }
strided! { self 4 3 [c0 0 c1 1 c2 2 c3 3] [s0 0 s1 1 s2 2 s3 3] [l0 0 l1 1 l2 2] }
strided! { self 5 4 [c0 0 c1 1 c2 2 c3 3 c4 4] [s0 0 s1 1 s2 2 s3 3 s4 4] [l0 0 l1 1 l2 2 l3 3] }

/// What replaces properties of a map.
macro_rules! replaced {
    () => {
        "- `global_address`: address of the tensor, instead of the map's, aligned to 16 bytes.\n\
         - `tensor_size`: sizes of the tensor's dimensions, instead of the map's.\n\
         - `lower_stride`, `upper_stride`: strides of the outer dimensions in units of 16 bytes, the lower 32 bits of each, \
         and 4 upper bits of each in one number.\n\
         - `cache_policy`: how the L2 cache is to keep the data, as `createpolicy` makes it."
    };
}

/// A load. The brackets hold the mask that not all have, generics, and what replaces properties of the map.
macro_rules! load_fn {
    (
        $(#[$doc:meta])*
        $name:ident: $mode:ident, $method:ident, [$($mask:ident $Mask:ident)?] [$($generics:tt)*] $n:tt
        [$($arg:ident: $Arg:ty),*] $with:expr, $With:ty
    ) => {
        $(#[$doc])*
        ///
        /// - `cta_group`: whether `bar` may be in the other CTA of a pair.
        /// - `report_mechanism`: what is checked of the data and reported to the mbarrier object.
        #[doc = replaced!()]
        ///
        /// The other arguments are those of the copies without `override`.
        ///
        /// PTX ISA 9.4, sm_107a/f: [`cp.async.bulk.tensor`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-cp-async-bulk-tensor)
        ///
        /// # Safety
        ///
        /// - What the copies without `override` demand holds, and the 128 KiB from `global_address` on can be accessed.
        /// - With sizes, all coordinates are 0.
        #[inline(always)]
        pub unsafe fn $name<D: Destination<$mode> $(+ Multicast<$Mask>)?, G: CtaGroup, R: Report, T, U, A, $($generics)*>(
            _dst: D,
            _src: space_global,
            _cta_group: G,
            _report_mechanism: R,
            dst_mem: *mut T,
            tensor_map: *const U,
            global_address: *const A,
            $($arg: $Arg,)*
            tensor_coords: [i32; $n],
            bar: *mut u64,
            $($mask: $Mask,)?
            cache_policy: u64,
        ) where
            for<'a> Target: Has<ptx_94> + Has<sm_107f>,
            [i32; $n]: Coordinates<$mode>,
            $With: Overridden<[i32; $n]>,
        {
            let with: $With = $with;
            let from = from(dst_mem, tensor_map, tensor_coords, bar);
            unsafe {
                with.$method::<Load<$mode, D, $n, (G,), (R,)>>(global_address.cast(), from, $($mask,)? cache_policy)
            }
        }
    };
}

/// A store or a reduction. The brackets hold the operation of a reduction, generics, and what replaces properties of the map.
macro_rules! store_fn {
    (
        $(#[$doc:meta])*
        $name:ident: $mode:ident, $form:ty, [$($op:ident $O:ident)?] [$($generics:tt)*] $n:tt
        [$($arg:ident: $Arg:ty),*] $with:expr, $With:ty
    ) => {
        $(#[$doc])*
        ///
        #[doc = replaced!()]
        ///
        /// The other arguments are those of the copies without `override`.
        ///
        /// PTX ISA 9.4, sm_107a/f: [tensor copies](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-cp-async-bulk-tensor)
        ///
        /// # Safety
        ///
        /// - What the copies without `override` demand holds, and the 128 KiB from `global_address` on can be accessed.
        /// - With sizes, all coordinates are 0.
        #[inline(always)]
        pub unsafe fn $name<$($O: TensorOperation,)? T, U, A, $($generics)*>(
            _dst: space_global,
            _src: space_shared,
            $($op: $O,)?
            tensor_map: *const T,
            global_address: *const A,
            $($arg: $Arg,)*
            tensor_coords: [i32; $n],
            src_mem: *const U,
            cache_policy: u64,
        ) where
            for<'a> Target: Has<ptx_94> + Has<sm_107f>,
            [i32; $n]: StoredAt<$mode>,
            $With: Overridden<[i32; $n]>,
        {
            check_stored(tensor_map, src_mem);
            let with: $With = $with;
            let memory = [tensor_map.cast(), global_address.cast(), src_mem.cast()];
            unsafe { with.store::<$form>(tensor_coords, memory, cache_policy) }
        }
    };
}

load_fn! {
    /// Starts a copy of a box of a tensor, at another address, with a cache policy.
    cp_async_bulk_tensor_L2_cache_hint_override_cta_group_report_mechanism_bar: Tile, load, [] [const N: usize] N
    [] (), ()
}

load_fn! {
    /// Starts a copy of a box of a tensor, at another address and of another size, with a cache policy.
    cp_async_bulk_tensor_L2_cache_hint_override_cta_group_report_mechanism_tensor_size_bar: Tile, load, [] [S: Value<Bits = u16>] 1
    [tensor_size: [S; 1]] [tensor_size[0].to_bits()], [u16; 1]
}

load_fn! {
    /// Starts a copy of a box of a tensor, at another address, of other sizes and strides, with a cache policy.
    cp_async_bulk_tensor_L2_cache_hint_override_cta_group_report_mechanism_tensor_size_lower_stride_upper_stride_bar: Tile, load, [] [S: Value<Bits = u16>, L: Value<Bits = u32>, V: Value<Bits = u16>, const N: usize, const OUTER: usize] N
    [tensor_size: [S; N], lower_stride: [L; OUTER], upper_stride: V] (array_to_bits(tensor_size), array_to_bits(lower_stride), upper_stride.to_bits()), ([u16; N], [u32; OUTER], u16)
}

load_fn! {
    /// Starts a copy of a box of a tensor to several CTAs, at another address, with a cache policy.
    cp_async_bulk_tensor_multicast_32b_L2_cache_hint_override: Tile, load_mask, [cta_mask u32] [const N: usize] N
    [] (), ()
}

load_fn! {
    /// Starts a copy of a box of a tensor to several CTAs, at another address and of another size, with a cache policy.
    cp_async_bulk_tensor_multicast_32b_L2_cache_hint_override_tensor_size: Tile, load_mask, [cta_mask u32] [S: Value<Bits = u16>] 1
    [tensor_size: [S; 1]] [tensor_size[0].to_bits()], [u16; 1]
}

load_fn! {
    /// Starts a copy of a box of a tensor to several CTAs, at another address, of other sizes and strides, with a cache policy.
    cp_async_bulk_tensor_multicast_32b_L2_cache_hint_override_tensor_size_lower_stride_upper_stride: Tile, load_mask, [cta_mask u32] [S: Value<Bits = u16>, L: Value<Bits = u32>, V: Value<Bits = u16>, const N: usize, const OUTER: usize] N
    [tensor_size: [S; N], lower_stride: [L; OUTER], upper_stride: V] (array_to_bits(tensor_size), array_to_bits(lower_stride), upper_stride.to_bits()), ([u16; N], [u32; OUTER], u16)
}

load_fn! {
    /// Starts a copy of four rows of a tensor, at another address, with a cache policy.
    cp_async_bulk_tensor_tile_gather4_L2_cache_hint_override: Gather4, load, [] [const N: usize] N
    [] (), ()
}

load_fn! {
    /// Starts a copy of four rows of a tensor to several CTAs, at another address, with a cache policy.
    cp_async_bulk_tensor_tile_gather4_multicast_32b_L2_cache_hint_override: Gather4, load_mask, [cta_mask u32] [const N: usize] N
    [] (), ()
}

store_fn! {
    /// Starts a copy of a box from shared memory to a tensor, at another address, with a cache policy.
    cp_async_bulk_tensor_L2_cache_hint_override: Tile, Store<Tile, N>, [] [const N: usize] N
    [] (), ()
}

store_fn! {
    /// Starts a copy of a box from shared memory to a tensor, at another address and of another size, with a cache policy.
    cp_async_bulk_tensor_L2_cache_hint_override_tensor_size: Tile, Store<Tile, 1>, [] [S: Value<Bits = u16>] 1
    [tensor_size: [S; 1]] [tensor_size[0].to_bits()], [u16; 1]
}

store_fn! {
    /// Starts a copy of a box from shared memory to a tensor, at another address, of other sizes and strides, with a cache policy.
    cp_async_bulk_tensor_L2_cache_hint_override_tensor_size_lower_stride_upper_stride: Tile, Store<Tile, N>, [] [S: Value<Bits = u16>, L: Value<Bits = u32>, V: Value<Bits = u16>, const N: usize, const OUTER: usize] N
    [tensor_size: [S; N], lower_stride: [L; OUTER], upper_stride: V] (array_to_bits(tensor_size), array_to_bits(lower_stride), upper_stride.to_bits()), ([u16; N], [u32; OUTER], u16)
}

store_fn! {
    /// Starts a copy of four rows from shared memory to a tensor, at another address, with a cache policy.
    cp_async_bulk_tensor_tile_scatter4_L2_cache_hint_override: Scatter4, Store<Scatter4, N>, [] [const N: usize] N
    [] (), ()
}

store_fn! {
    /// Starts a reduction of a box in shared memory into a tensor, at another address, with a cache policy.
    cp_reduce_async_bulk_tensor_L2_cache_hint_override: Tile, Reduce<Tile, N, O>, [_op O] [const N: usize] N
    [] (), ()
}

store_fn! {
    /// Starts a reduction of a box in shared memory into a tensor, at another address and of another size, with a cache policy.
    cp_reduce_async_bulk_tensor_L2_cache_hint_override_tensor_size: Tile, Reduce<Tile, 1, O>, [_op O] [S: Value<Bits = u16>] 1
    [tensor_size: [S; 1]] [tensor_size[0].to_bits()], [u16; 1]
}

store_fn! {
    /// Starts a reduction of a box in shared memory into a tensor, at another address, of other sizes and strides, with a cache policy.
    cp_reduce_async_bulk_tensor_L2_cache_hint_override_tensor_size_lower_stride_upper_stride: Tile, Reduce<Tile, N, O>, [_op O] [S: Value<Bits = u16>, L: Value<Bits = u32>, V: Value<Bits = u16>, const N: usize, const OUTER: usize] N
    [tensor_size: [S; N], lower_stride: [L; OUTER], upper_stride: V] (array_to_bits(tensor_size), array_to_bits(lower_stride), upper_stride.to_bits()), ([u16; N], [u32; OUTER], u16)
}
