//! What the text of an instruction depends on: modes, state spaces and other tags.

use core::marker::PhantomData;

use super::operands::{Operands, Stored};
use crate::asm::{text, texts};
use crate::sealed::Sealed;
use crate::tags::*;
use crate::target::{Has, Target, ptx_80, ptx_86, sm_90, sm_100, sm_100f_103f_107f_110f};
use crate::value::{bf16, f16};

/// No qualifier.
pub const NONE: u128 = 0;

/// Bytes, without a tensor.
pub struct Bytes;
/// A box, whose dimensions stay as they are.
pub struct Tile;
/// Four rows of a tensor of two dimensions.
pub struct Gather4;
/// Four rows of a tensor of two dimensions.
pub struct Scatter4;
/// Pixels of images, at offsets from where a filter begins.
pub struct Im2col;
/// Pixels of one row of an image.
pub struct Im2colW;
/// 128 pixels of one row of an image.
pub struct Im2colW128;
/// Pixels of images.
pub struct Im2colNoOffs;
/// Pixels of one row of an image.
pub struct Im2colNoOffsW;

/// How a tensor copy takes elements.
pub trait Mode {
    /// In two parts, since a text has up to 16 characters.
    #[doc(hidden)]
    const TEXT: [u128; 2];
}

macro_rules! modes {
    ($($mode:ident: $text:literal;)*) => {$(
        impl Mode for $mode {
            const TEXT: [u128; 2] = texts($text);
        }
    )*};
}

modes! {
    Tile: ".tile";
    Gather4: ".tile::gather4";
    Scatter4: ".tile::scatter4";
    Im2col: ".im2col";
    Im2colW: ".im2col::w";
    Im2colW128: ".im2col::w::128";
    Im2colNoOffs: ".im2col_no_offs";
    Im2colNoOffsW: ".im2col_no_offs::w";
}

/// Implemented by the coordinates that a load or a prefetch in mode `M` takes.
#[diagnostic::on_unimplemented(
    message = "`cp.async.bulk.tensor` in the mode `{M}` does not take the coordinates `{Self}`",
    label = "no such coordinates",
    note = "tiles have 1 to 5, im2col modes 3 to 5, and four rows 5: their column and each one's row"
)]
pub trait Coordinates<M>: Sized {
    /// What follows the mbarrier: im2col offsets, one for each dimension of an image, or the halo and
    /// the offset of the modes along `W`.
    type Info: Operands<Self> + Default;
    #[doc(hidden)]
    const DIM: u32;
}

/// Implemented by the coordinates that a store or a reduction in mode `M` takes.
#[diagnostic::on_unimplemented(
    message = "`cp.async.bulk.tensor` out of shared memory in the mode `{M}` does not take the coordinates `{Self}`",
    label = "no such coordinates",
    note = "tiles have 1 to 5, im2col modes 3 to 5, and four rows 5: their column and each one's row"
)]
pub trait StoredAt<M>: Stored {
    #[doc(hidden)]
    const DIM: u32;
}

macro_rules! coordinates {
    ($($mode:ident: $($n:literal $dim:literal $info:literal)*;)*) => {$($(
        impl Coordinates<$mode> for [i32; $n] {
            type Info = [u16; $info];
            const DIM: u32 = $dim;
        }
    )*)*};
}

macro_rules! stored_at {
    ($($mode:ident: $($n:literal $dim:literal)*;)*) => {$($(
        impl StoredAt<$mode> for [i32; $n] {
            const DIM: u32 = $dim;
        }
    )*)*};
}

coordinates! {
    Tile: 1 1 0  2 2 0  3 3 0  4 4 0  5 5 0;
    Gather4: 5 2 0;
    Im2col: 3 3 1  4 4 2  5 5 3;
    Im2colW: 3 3 2  4 4 2  5 5 2;
    Im2colW128: 3 3 2  4 4 2  5 5 2;
}

stored_at! {
    Tile: 1 1  2 2  3 3  4 4  5 5;
    Scatter4: 5 2;
    Im2colNoOffs: 3 3  4 4  5 5;
    Im2colNoOffsW: 3 3  4 4  5 5;
}

/// Implemented by the state spaces that a load in mode `M` goes to.
#[diagnostic::on_unimplemented(
    message = "a copy out of global memory does not go to `{Self}`",
    label = "no such destination",
    note = "there is: space_shared | space_cluster"
)]
pub trait Destination<M>: Sealed {
    #[doc(hidden)]
    const SPACE: u128;
}

macro_rules! destinations {
    ($($mode:ident: $shared:ident $shared_sm:ident, $cluster:ident $cluster_sm:ident;)*) => {$(
        impl Destination<$mode> for space_shared
        where
            for<'a> Target: Has<$shared> + Has<$shared_sm>,
        {
            const SPACE: u128 = text(".shared::cta");
        }
        impl Destination<$mode> for space_cluster
        where
            for<'a> Target: Has<$cluster> + Has<$cluster_sm>,
        {
            const SPACE: u128 = text(".shared::cluster");
        }
    )*};
}

destinations! {
    Bytes: ptx_86 sm_90, ptx_80 sm_90;
    Tile: ptx_86 sm_90, ptx_80 sm_90;
    Gather4: ptx_86 sm_100, ptx_86 sm_100f_103f_107f_110f;
    Im2col: ptx_86 sm_90, ptx_80 sm_90;
    Im2colW: ptx_86 sm_100, ptx_86 sm_100f_103f_107f_110f;
    Im2colW128: ptx_86 sm_100f_103f_107f_110f, ptx_86 sm_100f_103f_107f_110f;
}

/// Implemented by where copies to several CTAs go, and their masks.
#[diagnostic::on_unimplemented(
    message = "a multicast does not go to `{Self}`",
    label = "no such destination",
    note = "it goes to `space_cluster`"
)]
pub trait Multicast<Mask>: Sealed {}
impl Multicast<u16> for space_cluster {}
impl Multicast<u32> for space_cluster {}

/// Implemented by the scopes of relaxed copies between shared memories.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a scope of shared memory",
    label = "no such scope",
    note = "there is: scope_cta | scope_cluster"
)]
pub trait SharedScope: Scope {}
impl SharedScope for scope_cta {}
impl SharedScope for scope_cluster {}

macro_rules! tags {
    ($($(#[$doc:meta])* $name:ident: $message:literal, $note:literal: $($tag:ident $text:literal),*;)*) => {$(
        $(#[$doc])*
        #[diagnostic::on_unimplemented(message = $message, label = "no such tag", note = $note)]
        pub trait $name: Sealed {
            #[doc(hidden)]
            const TEXT: u128;
        }
        $(impl $name for $tag {
            const TEXT: u128 = text($text);
        })*
    )*};
}

tags! {
    /// Implemented by the tags that say whether an mbarrier object may be in the other CTA of a pair.
    CtaGroup: "`{Self}` is not a group of CTAs", "there is: cta_group_1 | cta_group_2":
        cta_group_1 ".cta_group::1", cta_group_2 ".cta_group::2";
    /// Implemented by the operations of a tensor reduction.
    TensorOperation: "`cp.reduce.async.bulk.tensor` has no operation `{Self}`",
        "there is: op_add | op_min | op_max | op_inc | op_dec | op_and_op | op_or_op | op_xor_op":
        op_add ".add", op_min ".min", op_max ".max", op_inc ".inc", op_dec ".dec", op_and_op ".and", op_or_op ".or",
        op_xor_op ".xor";
    /// Implemented by the scopes of relaxed copies.
    Scope: "`{Self}` is not a scope", "there is: scope_cta | scope_cluster | scope_gpu | scope_sys":
        scope_cta ".relaxed.cta", scope_cluster ".relaxed.cluster", scope_gpu ".relaxed.gpu", scope_sys ".relaxed.sys";
}

/// Implemented by the tags that say what a load checks and reports to its mbarrier object.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what a copy reports",
    label = "no such tag",
    note = "there is: mbarrier_report_disabled | mbarrier_report_valid_per_16bytes_80000000 | \
            mbarrier_report_valid_per_16bytes_8000 | mbarrier_report_valid_per_16bytes_80 | \
            mbarrier_report_valid_per_16bytes_8 | mbarrier_report_valid_per_element_ff"
)]
pub trait Report: Sealed {
    #[doc(hidden)]
    const TEXT: [u128; 4];
}

macro_rules! reports {
    ($($tag:ident: $text:literal;)*) => {$(
        impl Report for $tag {
            const TEXT: [u128; 4] = texts($text);
        }
    )*};
}

reports! {
    mbarrier_report_disabled: ".mbarrier::report::disabled";
    mbarrier_report_valid_per_16bytes_80000000: ".mbarrier::report::validity::per_16bytes::80000000";
    mbarrier_report_valid_per_16bytes_8000: ".mbarrier::report::validity::per_16bytes::8000";
    mbarrier_report_valid_per_16bytes_80: ".mbarrier::report::validity::per_16bytes::80";
    mbarrier_report_valid_per_16bytes_8: ".mbarrier::report::validity::per_16bytes::8";
    mbarrier_report_valid_per_element_ff: ".mbarrier::report::validity::per_element::ff";
}

/// Implemented by an operation and the type of its elements, `(operation, type)`, if a bulk reduction has them.
#[diagnostic::on_unimplemented(
    message = "a bulk reduction has no `{Self}`",
    label = "no such operation and type",
    note = "op_add takes u32, i32, u64, i64, f32, f64, f16 and bf16; op_min and op_max u32, i32, u64, i64, f16 and bf16",
    note = "op_inc and op_dec take u32; op_and_op, op_or_op and op_xor_op any 32 or 64 bits"
)]
pub trait Reduction {
    /// The operation and the type.
    #[doc(hidden)]
    const TEXT: u128;
}

/// Implemented by an operation and the type of its elements, if a bulk reduction into shared memory has them.
#[diagnostic::on_unimplemented(
    message = "a bulk reduction into shared memory has no `{Self}`",
    label = "no such operation and type",
    note = "op_add takes u32, i32, u64 and i64; op_min and op_max u32 and i32; op_inc and op_dec u32",
    note = "op_and_op, op_or_op and op_xor_op take any 32 bits"
)]
pub trait SharedReduction: Reduction {}

macro_rules! shared_reductions {
    ($($op:ident: $($ty:ty),*;)*) => {
        $($(impl SharedReduction for ($op, $ty) {})*)*
    };
}

shared_reductions! {
    op_add: u32, i32, u64, i64;
    op_min: u32, i32;
    op_max: u32, i32;
    op_inc: u32;
    op_dec: u32;
    op_and_op: u32, i32, f32;
    op_or_op: u32, i32, f32;
    op_xor_op: u32, i32, f32;
}

macro_rules! reductions {
    ($($op:ident: $($ty:ty = $text:literal),*;)*) => {$($(
        impl Reduction for ($op, $ty) {
            const TEXT: u128 = text($text);
        }
    )*)*};
}

reductions! {
    op_add: u32 = ".add.u32", i32 = ".add.s32", u64 = ".add.u64", i64 = ".add.u64", f32 = ".add.f32", f64 = ".add.f64",
        f16 = ".add.noftz.f16", bf16 = ".add.noftz.bf16";
    op_min: u32 = ".min.u32", i32 = ".min.s32", u64 = ".min.u64", i64 = ".min.s64", f16 = ".min.f16", bf16 = ".min.bf16";
    op_max: u32 = ".max.u32", i32 = ".max.s32", u64 = ".max.u64", i64 = ".max.s64", f16 = ".max.f16", bf16 = ".max.bf16";
    op_inc: u32 = ".inc.u32";
    op_dec: u32 = ".dec.u32";
    op_and_op: u32 = ".and.b32", i32 = ".and.b32", f32 = ".and.b32", u64 = ".and.b64", i64 = ".and.b64",
        f64 = ".and.b64";
    op_or_op: u32 = ".or.b32", i32 = ".or.b32", f32 = ".or.b32", u64 = ".or.b64", i64 = ".or.b64",
        f64 = ".or.b64";
    op_xor_op: u32 = ".xor.b32", i32 = ".xor.b32", f32 = ".xor.b32", u64 = ".xor.b64", i64 = ".xor.b64",
        f64 = ".xor.b64";
}

/// The text of an instruction, as far as it is not fixed.
pub trait Form {
    const MULTIMEM: u128 = NONE;
    /// What makes the instruction a reduction.
    const REDUCE: u128 = NONE;
    /// Semantics and scope.
    const ORDER: u128 = NONE;
    const DIM: u32 = 0;
    const SPACE: u128 = NONE;
    const OPERATION: u128 = NONE;
    const MODE: [u128; 2] = [NONE; 2];
    const REPORT: [u128; 4] = [NONE; 4];
    const GROUP: u128 = NONE;
    /// The type, behind everything else.
    const TYPE: u128 = NONE;
}

/// A load of `N` coordinates in mode `M` to the state space `D`.
pub struct Load<M, D, const N: usize, G, R>(PhantomData<(M, D, G, R)>);
/// A prefetch of `N` coordinates in mode `M`.
pub struct Prefetch<M, const N: usize>(PhantomData<M>);
/// A store of `N` coordinates in mode `M`.
pub struct Store<M, const N: usize>(PhantomData<M>);
/// A reduction of `N` coordinates in mode `M` with the operation `O`.
pub struct Reduce<M, const N: usize, O>(PhantomData<(M, O)>);
/// A copy of bytes to the shared memory `D`.
pub struct BulkLoad<D, S, R>(PhantomData<(D, S, R)>);
/// A copy of bytes out of shared memory.
pub struct BulkStore<S>(PhantomData<S>);
/// A reduction of elements `T` with the operation `O`.
pub struct BulkReduce<S, O, T>(PhantomData<(S, O, T)>);
/// Into the memory of several GPUs.
pub struct Multimem<F>(PhantomData<F>);

// Qualifiers that an instruction may lack: `()` or a tuple of the tag.

pub trait MaybeGroup {
    const TEXT: u128 = NONE;
}
impl MaybeGroup for () {}
impl<T: CtaGroup> MaybeGroup for (T,) {
    const TEXT: u128 = T::TEXT;
}

pub trait MaybeReport {
    const TEXT: [u128; 4] = [NONE; 4];
}
impl MaybeReport for () {}
impl<T: Report> MaybeReport for (T,) {
    const TEXT: [u128; 4] = T::TEXT;
}

pub trait MaybeScope {
    const ORDER: u128 = NONE;
    /// How many bytes of a copy are one access.
    const TYPE: u128 = NONE;
}
impl MaybeScope for () {}
impl<S: Scope> MaybeScope for (S,) {
    const ORDER: u128 = S::TEXT;
    const TYPE: u128 = text(".b128");
}

impl<M: Mode, D: Destination<M>, const N: usize, G: MaybeGroup, R: MaybeReport> Form
    for Load<M, D, N, G, R>
where
    [i32; N]: Coordinates<M>,
{
    const DIM: u32 = <[i32; N] as Coordinates<M>>::DIM;
    const MODE: [u128; 2] = M::TEXT;
    const SPACE: u128 = D::SPACE;
    const REPORT: [u128; 4] = R::TEXT;
    const GROUP: u128 = G::TEXT;
}

impl<M: Mode, const N: usize> Form for Prefetch<M, N>
where
    [i32; N]: Coordinates<M>,
{
    const DIM: u32 = <[i32; N] as Coordinates<M>>::DIM;
    const MODE: [u128; 2] = M::TEXT;
}

impl<M: Mode, const N: usize> Form for Store<M, N>
where
    [i32; N]: StoredAt<M>,
{
    const DIM: u32 = <[i32; N] as StoredAt<M>>::DIM;
    const MODE: [u128; 2] = M::TEXT;
}

impl<M: Mode, const N: usize, O: TensorOperation> Form for Reduce<M, N, O>
where
    [i32; N]: StoredAt<M>,
{
    const REDUCE: u128 = text(".reduce");
    const DIM: u32 = <[i32; N] as StoredAt<M>>::DIM;
    const OPERATION: u128 = O::TEXT;
    const MODE: [u128; 2] = M::TEXT;
}

impl<D: Destination<Bytes>, S: MaybeScope, R: MaybeReport> Form for BulkLoad<D, S, R> {
    const ORDER: u128 = S::ORDER;
    const SPACE: u128 = D::SPACE;
    const REPORT: [u128; 4] = R::TEXT;
    const TYPE: u128 = S::TYPE;
}

impl<S: MaybeScope> Form for BulkStore<S> {
    const ORDER: u128 = S::ORDER;
    const TYPE: u128 = S::TYPE;
}

impl<S: MaybeScope, O, T> Form for BulkReduce<S, O, T>
where
    (O, T): Reduction,
{
    const REDUCE: u128 = text(".reduce");
    const ORDER: u128 = S::ORDER;
    const TYPE: u128 = <(O, T) as Reduction>::TEXT;
}

impl<F: Form> Form for Multimem<F> {
    const MULTIMEM: u128 = text("multimem.");
    const REDUCE: u128 = F::REDUCE;
    const ORDER: u128 = F::ORDER;
    const TYPE: u128 = F::TYPE;
}
