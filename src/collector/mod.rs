//! `tcgen05.mma` with the uses of its collector buffers, and the sparse forms that `cuda::ptx` lacks.
//!
//! The tensor core can keep a matrix in a *collector buffer* from one multiplication to the next, which saves reading
//! it again: the multiplication that fills the buffer says `fill`, those after it `use`, and the last `lastuse`, all
//! with the same matrix. `discard`, which is what a multiplication does that says nothing, leaves the buffer alone.
//! There is one buffer for A, and with `.ws` four for B.
//!
//! | what | |
//! |---|---|
//! | [`tcgen05_mma_collector`] | the multiplication, with a use of the buffer of A |
//! | [`tcgen05_mma_ashift`] | the same with the rows of A moved down by one, for convolutions |
//! | [`tcgen05_mma_sp_collector`], [`tcgen05_mma_sp_ashift`] | these with A sparse: two of four elements are zero |
//! | [`tcgen05_mma_sp_block_scale_vec`] | with A sparse and scales for blocks of A and B |
//! | [`tcgen05_mma_ws_sp`] | with A sparse and B in a collector buffer |
//!
//! The others of `tcgen05.mma` are in [`tcgen05_mma`](mod@crate::tcgen05_mma), which says how they work. A is a
//! `u64`, the descriptor of a matrix in shared memory, or a `u32`, an address in tensor memory.
//!
//! When to use it: where one A meets several B (or with `.ws` one B several A), one after the other.
//!
//! ```
//! use cuda_ptx::*;
//!
//! /// Multiplies one A by three B into three D.
//! ///
//! /// # Safety
//! ///
//! /// One thread calls it. The descriptors are of tiles in shared memory that the async proxy can read,
//! /// and `d_tmem` is allocated.
//! unsafe fn multiply(d_tmem: [u32; 3], a: u64, b: [u64; 3], idesc: u32) {
//!     unsafe {
//!         let (kind, group) = (kind_f16, cta_group_1);
//!         tcgen05_mma_collector(kind, group, collector_a_fill, d_tmem[0], a, b[0], idesc, false);
//!         tcgen05_mma_collector(kind, group, collector_a_use, d_tmem[1], a, b[1], idesc, false);
//!         tcgen05_mma_collector(kind, group, collector_a_lastuse, d_tmem[2], a, b[2], idesc, false);
//!     }
//! }
//! ```
//!
//! # What the types rule out
//!
//! To shift A while it is put into the buffer:
//!
//! ```compile_fail,E0277
//! # use cuda_ptx::*;
//! # unsafe fn f(a: u32, b: u64) { unsafe {
//! tcgen05_mma_ashift(kind_f16, cta_group_1, collector_a_fill, 0, a, b, 0, true);
//! # } }
//! ```
//!
//! Masks of lanes for another group of CTAs, and scales of D that the kind lacks:
//!
//! ```compile_fail,E0277
//! # use cuda_ptx::*;
//! # unsafe fn f(a: u64, b: u64) { unsafe {
//! tcgen05_mma_collector_disable_output_lane(kind_i8, cta_group_2, collector_a_use, 0, a, b, 0, [0; 4], true);
//! # } }
//! ```
//!
//! ```compile_fail,E0277
//! # use cuda_ptx::*;
//! # unsafe fn f(a: u64, b: u64) { unsafe {
//! tcgen05_mma_collector_scale_input_d(kind_i8, cta_group_1, collector_a_use, 0, a, b, 0, true, n32::<3>);
//! # } }
//! ```

#![allow(clippy::too_many_arguments)] // as many as the instruction has

mod form;
mod issue;

pub use form::{
    BlockScale, Collector, CollectorA, CollectorAshift, CollectorB, CtaGroup, Kind, ScalesInputD,
};
use form::{BlockScaled, InputScaled, Plain, Shifted};
use issue::Operands;
pub use issue::{Lanes, Source};

use crate::immediate::n32;
use crate::tags::cta_group_1;
use crate::target::{Has, Target, ptx_86};

/// A function: what the forms of [`tcgen05_mma_collector`], [`tcgen05_mma_ashift`] and their sparse siblings have in
/// common, and operands that some of them have.
macro_rules! multiplication {
    (
        $(#[$about:meta])*
        fn $name:ident($a:ident: $place:ty $(as $source:ident)? $(, $sparse:ident)? $(; $lanes:ident: $mask:ident)? $([const $scale:ident])?)
        $ptx:literal
        where kind: $kind:ident, collector: $collector:ident
        |$operands:ident| $issue:expr
    ) => {
        $(#[$about])*
        ///
        /// ```text
        #[doc = $ptx]
        ///     PTX ISA 8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f
        /// ```
        ///
        #[doc = concat!("- `kind`: types of the elements, [`", stringify!($kind), "`](trait@", stringify!($kind), ").")]
        /// - `cta_group`: whether one CTA multiplies or a pair.
        #[doc = concat!("- `collector`: how the buffer of A is used, [`", stringify!($collector), "`](trait@", stringify!($collector), ").")]
        /// - `d_tmem`: address of D in tensor memory.
        #[doc = concat!("- `", stringify!($a), "`: descriptor of A in shared memory (`u64`) or address of A in tensor memory (`u32`).")]
        /// - `b_desc`: descriptor of B in shared memory.
        $(#[doc = concat!("- `", stringify!($sparse), "`: address in tensor memory of the positions of the elements of A.")])?
        /// - `idesc`: descriptor of types and shapes.
        $(#[doc = concat!("- `", stringify!($lanes), "`: bit `i` of the whole keeps lane `i` of D from being written: `[u32; 4]`, for a pair of CTAs `[u32; 8]`.")])?
        /// - `enable_input_d`: whether D is added.
        $(#[doc = concat!("- `", stringify!($scale), "`: D is multiplied by 2 to the power of minus this before it is added: 0 to 15.")])?
        ///
        /// PTX ISA: [`tcgen05.mma`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#tcgen05-instructions-tcgen05-mma)
        ///
        /// # Safety
        ///
        /// - The descriptors describe matrices in shared memory, and the addresses lie in tensor memory
        ///   that is allocated with the same `cta_group`, all with the shapes and types that `idesc` says.
        /// - Nobody writes A, B or the positions, or accesses D, until the multiplication is complete.
        /// - For `use` and `lastuse` the buffer holds this A.
        #[inline(always)]
        pub unsafe fn $name<K, G, C $(, $source: Source)? $(, $mask)? $(, const $scale: i32)?>(
            _kind: K,
            _cta_group: G,
            _collector: C,
            d_tmem: u32,
            $a: $place,
            b_desc: u64,
            $($sparse: u32,)?
            idesc: u32,
            $($lanes: $mask,)?
            enable_input_d: bool,
            $(_scale_input_d: n32<$scale>,)?
        ) where
            for<'a> Target: Has<ptx_86>,
            K: $kind,
            G: CtaGroup,
            C: $collector,
            $($mask: Lanes<G>,)?
        {
            let $operands = Operands { d_tmem, b_desc, idesc, enable_input_d };
            unsafe { $issue }
        }
    };
}

multiplication! {
    /// Starts a matrix multiplication, saying how the collector buffer of A is used.
    fn tcgen05_mma_collector(a: A as A)
    "tcgen05.mma.cta_group.kind.collector [d_tmem], a, b_desc, idesc, enable_input_d;"
    where kind: Kind, collector: CollectorA
    |operands| a.dense::<Plain<K, G, C>>(operands)
}

multiplication! {
    /// Starts a matrix multiplication, saying how the collector buffer of A is used.
    fn tcgen05_mma_collector_scale_input_d(a: A as A [const SCALE_INPUT_D])
    "tcgen05.mma.cta_group.kind.collector [d_tmem], a, b_desc, idesc, enable_input_d, scale_input_d;"
    where kind: ScalesInputD, collector: CollectorA
    |operands| a.dense::<InputScaled<Plain<K, G, C>, SCALE_INPUT_D>>(operands)
}

multiplication! {
    /// Starts a matrix multiplication, saying how the collector buffer of A is used.
    fn tcgen05_mma_collector_disable_output_lane(a: A as A; disable_output_lane: L)
    "tcgen05.mma.cta_group.kind.collector [d_tmem], a, b_desc, idesc, disable_output_lane, enable_input_d;"
    where kind: Kind, collector: CollectorA
    |operands| disable_output_lane.dense::<Plain<K, G, C>>(a, operands)
}

multiplication! {
    /// Starts a matrix multiplication, saying how the collector buffer of A is used.
    fn tcgen05_mma_collector_disable_output_lane_scale_input_d(a: A as A; disable_output_lane: L [const SCALE_INPUT_D])
    "tcgen05.mma.cta_group.kind.collector [d_tmem], a, b_desc, idesc, disable_output_lane, enable_input_d, scale_input_d;"
    where kind: ScalesInputD, collector: CollectorA
    |operands| disable_output_lane.dense::<InputScaled<Plain<K, G, C>, SCALE_INPUT_D>>(a, operands)
}

multiplication! {
    /// Starts a matrix multiplication with the rows of A moved down by one.
    fn tcgen05_mma_ashift(a_tmem: u32)
    "tcgen05.mma.cta_group.kind.ashift.collector [d_tmem], [a_tmem], b_desc, idesc, enable_input_d;"
    where kind: Kind, collector: CollectorAshift
    |operands| a_tmem.dense::<Shifted<Plain<K, G, C>>>(operands)
}

multiplication! {
    /// Starts a matrix multiplication with the rows of A moved down by one.
    fn tcgen05_mma_ashift_scale_input_d(a_tmem: u32 [const SCALE_INPUT_D])
    "tcgen05.mma.cta_group.kind.ashift.collector [d_tmem], [a_tmem], b_desc, idesc, enable_input_d, scale_input_d;"
    where kind: ScalesInputD, collector: CollectorAshift
    |operands| a_tmem.dense::<InputScaled<Shifted<Plain<K, G, C>>, SCALE_INPUT_D>>(operands)
}

multiplication! {
    /// Starts a matrix multiplication with the rows of A moved down by one.
    fn tcgen05_mma_ashift_disable_output_lane(a_tmem: u32; disable_output_lane: L)
    "tcgen05.mma.cta_group.kind.ashift.collector [d_tmem], [a_tmem], b_desc, idesc, disable_output_lane, enable_input_d;"
    where kind: Kind, collector: CollectorAshift
    |operands| disable_output_lane.dense::<Shifted<Plain<K, G, C>>>(a_tmem, operands)
}

multiplication! {
    /// Starts a matrix multiplication with the rows of A moved down by one.
    fn tcgen05_mma_ashift_disable_output_lane_scale_input_d(a_tmem: u32; disable_output_lane: L [const SCALE_INPUT_D])
    "tcgen05.mma.cta_group.kind.ashift.collector [d_tmem], [a_tmem], b_desc, idesc, disable_output_lane, enable_input_d, scale_input_d;"
    where kind: ScalesInputD, collector: CollectorAshift
    |operands| disable_output_lane.dense::<InputScaled<Shifted<Plain<K, G, C>>, SCALE_INPUT_D>>(a_tmem, operands)
}

multiplication! {
    /// Starts a matrix multiplication with A sparse, two of each four elements zero, saying how the collector buffer of A is used.
    fn tcgen05_mma_sp_collector(a: A as A, sp_info_tmem)
    "tcgen05.mma.sp.cta_group.kind.collector [d_tmem], a, b_desc, [sp_info_tmem], idesc, enable_input_d;"
    where kind: Kind, collector: CollectorA
    |operands| a.sparse::<Plain<K, G, C>>(operands, sp_info_tmem)
}

multiplication! {
    /// Starts a matrix multiplication with A sparse, two of each four elements zero, saying how the collector buffer of A is used.
    fn tcgen05_mma_sp_collector_scale_input_d(a: A as A, sp_info_tmem [const SCALE_INPUT_D])
    "tcgen05.mma.sp.cta_group.kind.collector [d_tmem], a, b_desc, [sp_info_tmem], idesc, enable_input_d, scale_input_d;"
    where kind: ScalesInputD, collector: CollectorA
    |operands| a.sparse::<InputScaled<Plain<K, G, C>, SCALE_INPUT_D>>(operands, sp_info_tmem)
}

multiplication! {
    /// Starts a matrix multiplication with A sparse, two of each four elements zero, saying how the collector buffer of A is used.
    fn tcgen05_mma_sp_collector_disable_output_lane(a: A as A, sp_info_tmem; disable_output_lane: L)
    "tcgen05.mma.sp.cta_group.kind.collector [d_tmem], a, b_desc, [sp_info_tmem], idesc, disable_output_lane, enable_input_d;"
    where kind: Kind, collector: CollectorA
    |operands| disable_output_lane.sparse::<Plain<K, G, C>>(a, operands, sp_info_tmem)
}

multiplication! {
    /// Starts a matrix multiplication with A sparse, two of each four elements zero, saying how the collector buffer of A is used.
    fn tcgen05_mma_sp_collector_disable_output_lane_scale_input_d(a: A as A, sp_info_tmem; disable_output_lane: L [const SCALE_INPUT_D])
    "tcgen05.mma.sp.cta_group.kind.collector [d_tmem], a, b_desc, [sp_info_tmem], idesc, disable_output_lane, enable_input_d, scale_input_d;"
    where kind: ScalesInputD, collector: CollectorA
    |operands| disable_output_lane.sparse::<InputScaled<Plain<K, G, C>, SCALE_INPUT_D>>(a, operands, sp_info_tmem)
}

multiplication! {
    /// Starts a matrix multiplication with A sparse, two of each four elements zero, with the rows of A moved down by one.
    fn tcgen05_mma_sp_ashift(a_tmem: u32, sp_info_tmem)
    "tcgen05.mma.sp.cta_group.kind.ashift.collector [d_tmem], [a_tmem], b_desc, [sp_info_tmem], idesc, enable_input_d;"
    where kind: Kind, collector: CollectorAshift
    |operands| a_tmem.sparse::<Shifted<Plain<K, G, C>>>(operands, sp_info_tmem)
}

multiplication! {
    /// Starts a matrix multiplication with A sparse, two of each four elements zero, with the rows of A moved down by one.
    fn tcgen05_mma_sp_ashift_scale_input_d(a_tmem: u32, sp_info_tmem [const SCALE_INPUT_D])
    "tcgen05.mma.sp.cta_group.kind.ashift.collector [d_tmem], [a_tmem], b_desc, [sp_info_tmem], idesc, enable_input_d, scale_input_d;"
    where kind: ScalesInputD, collector: CollectorAshift
    |operands| a_tmem.sparse::<InputScaled<Shifted<Plain<K, G, C>>, SCALE_INPUT_D>>(operands, sp_info_tmem)
}

multiplication! {
    /// Starts a matrix multiplication with A sparse, two of each four elements zero, with the rows of A moved down by one.
    fn tcgen05_mma_sp_ashift_disable_output_lane(a_tmem: u32, sp_info_tmem; disable_output_lane: L)
    "tcgen05.mma.sp.cta_group.kind.ashift.collector [d_tmem], [a_tmem], b_desc, [sp_info_tmem], idesc, disable_output_lane, enable_input_d;"
    where kind: Kind, collector: CollectorAshift
    |operands| disable_output_lane.sparse::<Shifted<Plain<K, G, C>>>(a_tmem, operands, sp_info_tmem)
}

multiplication! {
    /// Starts a matrix multiplication with A sparse, two of each four elements zero, with the rows of A moved down by one.
    fn tcgen05_mma_sp_ashift_disable_output_lane_scale_input_d(a_tmem: u32, sp_info_tmem; disable_output_lane: L [const SCALE_INPUT_D])
    "tcgen05.mma.sp.cta_group.kind.ashift.collector [d_tmem], [a_tmem], b_desc, [sp_info_tmem], idesc, disable_output_lane, enable_input_d, scale_input_d;"
    where kind: ScalesInputD, collector: CollectorAshift
    |operands| disable_output_lane.sparse::<InputScaled<Shifted<Plain<K, G, C>>, SCALE_INPUT_D>>(a_tmem, operands, sp_info_tmem)
}

/// Starts a matrix multiplication with A sparse, two of each four elements zero, and with scales for blocks of A and B.
///
/// ```text
/// tcgen05.mma.sp.cta_group.kind.block_scale.scale_vec.collector [d_tmem], a, b_desc, [sp_info_tmem], idesc, [scale_a_tmem], [scale_b_tmem], enable_input_d;
///     PTX ISA 8.6, sm_100a, sm_103a, sm_107a, sm_110a
/// ```
///
/// - `kind`, `scale_vec`: types of the elements and how many scales there are, [`BlockScale`].
/// - `cta_group`: whether one CTA multiplies or a pair.
/// - `collector`: how the buffer of A is used.
/// - `d_tmem`: address of D in tensor memory.
/// - `a`: descriptor of A in shared memory (`u64`) or address of A in tensor memory (`u32`).
/// - `b_desc`: descriptor of B in shared memory.
/// - `sp_info_tmem`: address in tensor memory of the positions of the elements of A.
/// - `idesc`: descriptor of types and shapes.
/// - `scale_a_tmem`, `scale_b_tmem`: addresses of the scales of A and B in tensor memory.
/// - `enable_input_d`: whether D is added.
///
/// PTX ISA: [`tcgen05.mma.sp`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#tcgen05-instructions-tcgen05-mma-sp)
///
/// # Safety
///
/// - The descriptors describe matrices in shared memory, and the addresses lie in tensor memory
///   that is allocated with the same `cta_group`, all with the shapes and types that `idesc` says.
/// - Nobody writes A, B, the positions or the scales, or accesses D, until the multiplication is complete.
/// - For `use` and `lastuse` the buffer holds this A.
#[inline(always)]
pub unsafe fn tcgen05_mma_sp_block_scale_vec<K, V, G, C, A: Source>(
    _kind: K,
    _scale_vec: V,
    _cta_group: G,
    _collector: C,
    d_tmem: u32,
    a: A,
    b_desc: u64,
    sp_info_tmem: u32,
    idesc: u32,
    scale_a_tmem: u32,
    scale_b_tmem: u32,
    enable_input_d: bool,
) where
    for<'a> Target: Has<ptx_86>,
    (K, V): BlockScale,
    G: CtaGroup,
    C: CollectorA,
{
    let operands = Operands {
        d_tmem,
        b_desc,
        idesc,
        enable_input_d,
    };
    unsafe {
        a.sparse_scaled::<BlockScaled<(K, V), G, C>>(
            operands,
            sp_info_tmem,
            scale_a_tmem,
            scale_b_tmem,
        )
    }
}

/// Starts a matrix multiplication with A sparse, two of each four elements zero, that keeps B in a collector buffer.
///
/// ```text
/// tcgen05.mma.ws.sp.cta_group::1.kind.collector [d_tmem], a, b_desc, [sp_info_tmem], idesc, enable_input_d;
///     PTX ISA 8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f
/// ```
///
/// - `kind`: types of the elements, [`Kind`](trait@Kind).
/// - `collector`: which buffer of B is used and how.
/// - `d_tmem`: address of D in tensor memory.
/// - `a`: descriptor of A in shared memory (`u64`) or address of A in tensor memory (`u32`).
/// - `b_desc`: descriptor of B in shared memory.
/// - `sp_info_tmem`: address in tensor memory of the positions of the elements of A.
/// - `idesc`: descriptor of types and shapes.
/// - `enable_input_d`: whether D is added.
///
/// PTX ISA: [`tcgen05.mma.ws.sp`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#tcgen05-instructions-tcgen05-mma-ws-sp)
///
/// # Safety
///
/// - The descriptors describe matrices in shared memory, and the addresses lie in tensor memory
///   that is allocated with `cta_group_1`, all with the shapes and types that `idesc` says.
/// - Nobody writes A, B or the positions, or accesses D, until the multiplication is complete.
/// - For `use` and `lastuse` the buffer holds this B.
#[inline(always)]
pub unsafe fn tcgen05_mma_ws_sp<K: Kind, C: CollectorB, A: Source>(
    _cta_group: cta_group_1,
    _kind: K,
    _collector: C,
    d_tmem: u32,
    a: A,
    b_desc: u64,
    sp_info_tmem: u32,
    idesc: u32,
    enable_input_d: bool,
) where
    for<'a> Target: Has<ptx_86>,
{
    let operands = Operands {
        d_tmem,
        b_desc,
        idesc,
        enable_input_d,
    };
    unsafe { a.ws_sparse::<Plain<K, cta_group_1, C>>(operands, sp_info_tmem) }
}

/// Starts a matrix multiplication with A sparse, two of each four elements zero, that keeps B in a collector buffer
/// and takes some of its columns for zero.
///
/// ```text
/// tcgen05.mma.ws.sp.cta_group::1.kind.collector [d_tmem], a, b_desc, [sp_info_tmem], idesc, enable_input_d, zero_column_mask_desc;
///     PTX ISA 8.6, sm_100a/f, sm_103a/f, sm_107a/f, sm_110a/f
/// ```
///
/// - `kind`: types of the elements, [`Kind`](trait@Kind).
/// - `collector`: which buffer of B is used and how.
/// - `d_tmem`: address of D in tensor memory.
/// - `a`: descriptor of A in shared memory (`u64`) or address of A in tensor memory (`u32`).
/// - `b_desc`: descriptor of B in shared memory.
/// - `sp_info_tmem`: address in tensor memory of the positions of the elements of A.
/// - `idesc`: descriptor of types and shapes.
/// - `enable_input_d`: whether D is added.
/// - `zero_column_mask_desc`: descriptor of the columns of B that count as zero.
///
/// PTX ISA: [`tcgen05.mma.ws.sp`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#tcgen05-instructions-tcgen05-mma-ws-sp)
///
/// # Safety
///
/// - The descriptors describe matrices in shared memory, and the addresses lie in tensor memory
///   that is allocated with `cta_group_1`, all with the shapes and types that `idesc` says.
/// - Nobody writes A, B or the positions, or accesses D, until the multiplication is complete.
/// - For `use` and `lastuse` the buffer holds this B.
#[inline(always)]
pub unsafe fn tcgen05_mma_ws_sp_zero_column_mask_desc<K: Kind, C: CollectorB, A: Source>(
    _cta_group: cta_group_1,
    _kind: K,
    _collector: C,
    d_tmem: u32,
    a: A,
    b_desc: u64,
    sp_info_tmem: u32,
    idesc: u32,
    enable_input_d: bool,
    zero_column_mask_desc: u64,
) where
    for<'a> Target: Has<ptx_86>,
{
    let operands = Operands {
        d_tmem,
        b_desc,
        idesc,
        enable_input_d,
    };
    unsafe {
        a.ws_sparse_masked::<Plain<K, cta_group_1, C>>(
            operands,
            sp_info_tmem,
            zero_column_mask_desc,
        )
    }
}
