//! Which semantics, scopes, spaces, operations and types go together, and how an instruction spells
//! them.

use core::marker::PhantomData;

use super::registers::{Registers, Wide};
use crate::address::{as_ptr_gmem, as_ptr_smem};
use crate::asm::text;
use crate::sealed::Sealed;
use crate::tags::*;
use crate::target::{
    Has, Target, ptx_62, ptx_63, ptx_74, ptx_77, ptx_78, ptx_81, ptx_83, ptx_88, sm_80, sm_90,
    sm_100,
};
use crate::value::{bf16, bf16x2, f16, f16x2};

/// A word of an opcode.
pub trait Word {
    #[doc(hidden)]
    const TEXT: u128;
}

macro_rules! words {
    ($($word:ty: $text:literal;)*) => {
        $(impl Word for $word {
            const TEXT: u128 = text($text);
        })*
    };
}

/// `.weak`, `.volatile`, `.mmio` and what else goes without semantics and scope of its own.
pub struct Weak;
pub struct Volatile;
pub struct Mmio;
pub struct NoScope;

words! {
    sem_relaxed: ".relaxed";
    sem_acquire: ".acquire";
    sem_release: ".release";
    sem_acq_rel: ".acq_rel";
    Weak: ".weak";
    Volatile: ".volatile";
    Mmio: ".mmio.relaxed";
    scope_cta: ".cta";
    scope_cluster: ".cluster";
    scope_gpu: ".gpu";
    scope_sys: ".sys";
    NoScope: "";
    space_generic: "";
    space_global: ".global";
    space_shared: ".shared::cta";
    space_cluster: ".shared::cluster";
    space_local: ".local";
    space_const: ".const";
    space_param: ".param";
    op_add: ".add";
    op_dec: ".dec";
    op_inc: ".inc";
    op_max: ".max";
    op_min: ".min";
    op_and_op: ".and";
    op_or_op: ".or";
    op_xor_op: ".xor";
    op_cas: ".cas";
    op_exch: ".exch";
}

macro_rules! sets {
    ($($(#[$attribute:meta])* $name:ident: $($member:ident $([$($feature:ident)+])?),*;)*) => {$(
        $(#[$attribute])*
        pub trait $name: Word + Sealed {}
        $(impl $name for $member $(where $(for<'a> Target: Has<$feature>),+)? {})*
    )*};
}

sets! {
    /// Semantics of `atom`.
    #[diagnostic::on_unimplemented(
        message = "`atom` does not have the semantics `{Self}`",
        label = "there is: sem_relaxed | sem_acquire | sem_release | sem_acq_rel"
    )]
    AtomSem: sem_relaxed, sem_acquire, sem_release, sem_acq_rel;
    /// Semantics of `red`.
    #[diagnostic::on_unimplemented(
        message = "`red` does not have the semantics `{Self}`",
        label = "there is: sem_relaxed | sem_release",
        note = "`red` reads nothing that a thread could acquire; `atom` returns what it read"
    )]
    RedSem: sem_relaxed, sem_release;
    /// Semantics of `ld`.
    #[diagnostic::on_unimplemented(
        message = "`ld` does not have the semantics `{Self}`",
        label = "there is: sem_relaxed | sem_acquire; and `ld_weak`"
    )]
    LdSem: sem_relaxed, sem_acquire;
    /// Semantics of `st`.
    #[diagnostic::on_unimplemented(
        message = "`st` does not have the semantics `{Self}`",
        label = "there is: sem_relaxed | sem_release; and `st_weak`"
    )]
    StSem: sem_relaxed, sem_release;
    /// The threads that see an operation as atomic and can synchronise through it.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is not a scope",
        label = "there is: scope_cta | scope_cluster | scope_gpu | scope_sys"
    )]
    Scope: scope_cta, scope_cluster [ptx_78 sm_90], scope_gpu, scope_sys;
    /// Spaces that `isspacep` asks about.
    #[diagnostic::on_unimplemented(
        message = "`isspacep` does not ask about `{Self}`",
        label = "there is: space_global | space_shared | space_cluster | space_local | space_const | space_param"
    )]
    AskedSpace: space_global, space_shared [ptx_78], space_cluster [ptx_78 sm_90], space_local, space_const,
        space_param [ptx_77];
}

/// The space of an address.
#[diagnostic::on_unimplemented(
    message = "there are no such accesses to `{Self}`",
    label = "there is: space_generic | space_global | space_shared | space_cluster"
)]
pub trait Space: Word + Sealed {
    /// The size of an address.
    #[doc(hidden)]
    type Address;
    #[doc(hidden)]
    fn address<T>(pointer: *const T) -> Self::Address;
}

/// The space of an address, if what it points to is in global memory.
#[diagnostic::on_unimplemented(
    message = "this form is of global memory, not of `{Self}`",
    label = "there is: space_global | space_generic",
    note = "vectors of 256 bits, vectors in `atom` and `red`, `.L2::cache_hint` and `.mmio` are of global memory"
)]
pub trait GlobalSpace: Space<Address = u64> {}

impl Space for space_generic {
    type Address = u64;
    #[inline(always)]
    fn address<T>(pointer: *const T) -> u64 {
        pointer.addr() as u64
    }
}
impl Space for space_global {
    type Address = u64;
    #[inline(always)]
    fn address<T>(pointer: *const T) -> u64 {
        as_ptr_gmem(pointer)
    }
}
impl Space for space_shared
where
    for<'a> Target: Has<ptx_78>,
{
    type Address = u32;
    #[inline(always)]
    fn address<T>(pointer: *const T) -> u32 {
        as_ptr_smem(pointer)
    }
}
impl Space for space_cluster
where
    for<'a> Target: Has<ptx_78> + Has<sm_90>,
{
    type Address = u32;
    #[inline(always)]
    fn address<T>(pointer: *const T) -> u32 {
        as_ptr_smem(pointer)
    }
}
impl GlobalSpace for space_generic {}
impl GlobalSpace for space_global {}

/// Met if the build target has `.L2::cache_hint`.
pub trait CacheHint: GlobalSpace {}
impl<P: GlobalSpace> CacheHint for P where for<'a> Target: Has<ptx_74> + Has<sm_80> {}

/// Implemented by the types that `atom` and `red` do the operation `O` on in the space `P`.
#[diagnostic::on_unimplemented(
    message = "there is no atomic operation `{O}` on `{Self}`",
    label = "not with this type",
    note = "and, or, xor: u32, i32, u64, i64",
    note = "add: u32, i32, u64, i64, f32, f64, f16, bf16, f16x2, bf16x2, and vectors of 2 or 4 f32",
    note = "min, max: u32, i32, u64, i64",
    note = "add, min, max: vectors of 2 or 4 f16x2 or bf16x2, of 2, 4 or 8 f16 or bf16",
    note = "inc, dec: u32",
    note = "exch: 32, 64 and 128 bits; cas: 16, 32, 64 and 128 bits"
)]
pub trait Atomic<O, P: Space>: Sealed + Copy {
    #[doc(hidden)]
    type Registers: Registers<P::Address> + Copy;
    /// The operation as it is spelt with this type.
    #[doc(hidden)]
    const OP: u128;
    #[doc(hidden)]
    const TYPE: u128;
}

/// One line for each operation and how PTX writes it: types, their registers, the type in PTX, in which
/// spaces, and what the build target needs to have.
macro_rules! atomics {
    ($($op:ident $text:literal: $($ty:ty)|+ as $registers:ty, $type:literal in $space:ident $features:tt;)*) => {$($(
        atomics! { @one $op $text $ty, $registers, $type $space $features }
    )+)*};
    (@one $op:ident $text:literal $ty:ty, $registers:ty, $type:literal $space:ident [$($feature:ident)*]) => {
        impl<P: $space> Atomic<$op, P> for $ty
        where
            $registers: Registers<P::Address>,
            $(for<'a> Target: Has<$feature>),*
        {
            type Registers = $registers;
            const OP: u128 = text($text);
            const TYPE: u128 = text($type);
        }
    };
}

atomics! {
    op_and_op ".and": u32 | i32 as [u32; 1], ".b32" in Space [];
    op_and_op ".and": u64 | i64 as [u64; 1], ".b64" in Space [];
    op_or_op ".or": u32 | i32 as [u32; 1], ".b32" in Space [];
    op_or_op ".or": u64 | i64 as [u64; 1], ".b64" in Space [];
    op_xor_op ".xor": u32 | i32 as [u32; 1], ".b32" in Space [];
    op_xor_op ".xor": u64 | i64 as [u64; 1], ".b64" in Space [];

    op_exch ".exch": u32 | i32 | f32 | f16x2 | bf16x2 as [u32; 1], ".b32" in Space [];
    op_exch ".exch": u64 | i64 | f64 as [u64; 1], ".b64" in Space [];
    op_exch ".exch": u128 | i128 as Wide, ".b128" in Space [ptx_83 sm_90];

    op_cas ".cas": u16 | i16 | f16 | bf16 as [u16; 1], ".b16" in Space [ptx_63];
    op_cas ".cas": u32 | i32 | f32 | f16x2 | bf16x2 as [u32; 1], ".b32" in Space [];
    op_cas ".cas": u64 | i64 | f64 as [u64; 1], ".b64" in Space [];
    op_cas ".cas": u128 | i128 as Wide, ".b128" in Space [ptx_83 sm_90];

    op_add ".add": u32 as [u32; 1], ".u32" in Space [];
    op_add ".add": i32 as [u32; 1], ".s32" in Space [];
    // There is no `.s64`; the sum has the same bits.
    op_add ".add": u64 | i64 as [u64; 1], ".u64" in Space [];
    op_add ".add": f32 as [u32; 1], ".f32" in Space [];
    op_add ".add": f64 as [u64; 1], ".f64" in Space [];
    op_add ".add.noftz": f16 as [u16; 1], ".f16" in Space [ptx_63];
    op_add ".add.noftz": f16x2 as [u32; 1], ".f16x2" in Space [ptx_62];
    op_add ".add.noftz": bf16 as [u16; 1], ".bf16" in Space [ptx_78 sm_90];
    op_add ".add.noftz": bf16x2 as [u32; 1], ".bf16x2" in Space [ptx_78 sm_90];

    op_inc ".inc": u32 as [u32; 1], ".u32" in Space [];
    op_dec ".dec": u32 as [u32; 1], ".u32" in Space [];

    op_min ".min": u32 as [u32; 1], ".u32" in Space [];
    op_min ".min": i32 as [u32; 1], ".s32" in Space [];
    op_min ".min": u64 as [u64; 1], ".u64" in Space [];
    op_min ".min": i64 as [u64; 1], ".s64" in Space [];
    op_max ".max": u32 as [u32; 1], ".u32" in Space [];
    op_max ".max": i32 as [u32; 1], ".s32" in Space [];
    op_max ".max": u64 as [u64; 1], ".u64" in Space [];
    op_max ".max": i64 as [u64; 1], ".s64" in Space [];

    op_add ".add": [f32; 2] as [u32; 2], ".v2.f32" in GlobalSpace [ptx_81 sm_90];
    op_add ".add": [f32; 4] as [u32; 4], ".v4.f32" in GlobalSpace [ptx_81 sm_90];
}

macro_rules! vectors_of_halves {
    ($($op:ident $text:literal;)*) => {$(
        atomics! {
            $op $text: [f16; 2] as [u16; 2], ".v2.f16" in GlobalSpace [ptx_81 sm_90];
            $op $text: [f16; 4] as [u16; 4], ".v4.f16" in GlobalSpace [ptx_81 sm_90];
            $op $text: [f16; 8] as [u16; 8], ".v8.f16" in GlobalSpace [ptx_81 sm_90];
            $op $text: [bf16; 2] as [u16; 2], ".v2.bf16" in GlobalSpace [ptx_81 sm_90];
            $op $text: [bf16; 4] as [u16; 4], ".v4.bf16" in GlobalSpace [ptx_81 sm_90];
            $op $text: [bf16; 8] as [u16; 8], ".v8.bf16" in GlobalSpace [ptx_81 sm_90];
            $op $text: [f16x2; 2] as [u32; 2], ".v2.f16x2" in GlobalSpace [ptx_81 sm_90];
            $op $text: [f16x2; 4] as [u32; 4], ".v4.f16x2" in GlobalSpace [ptx_81 sm_90];
            $op $text: [bf16x2; 2] as [u32; 2], ".v2.bf16x2" in GlobalSpace [ptx_81 sm_90];
            $op $text: [bf16x2; 4] as [u32; 4], ".v4.bf16x2" in GlobalSpace [ptx_81 sm_90];
        }
    )*};
}

vectors_of_halves! { op_add ".add.noftz"; op_min ".min.noftz"; op_max ".max.noftz"; }

/// Implemented by the types that `ld` and `st` move in the space `P`.
#[diagnostic::on_unimplemented(
    message = "`ld` and `st` do not move `{Self}` at once",
    label = "not with this type",
    note = "scalars of 8, 16, 32, 64 and 128 bits, and arrays, which are vectors: of 2 or 4 scalars of up to 32 bits, \
            2 of 64 bits; in global memory, from `sm_100`, 8 of 32 bits and 4 of 64 bits"
)]
pub trait Moved<P: Space>: Sealed + Copy {
    #[doc(hidden)]
    type Registers: Registers<P::Address> + Copy;
    #[doc(hidden)]
    const TYPE: u128;
}

/// Implemented by the types that are not vectors.
#[diagnostic::on_unimplemented(
    message = "`.mmio` accesses are of one scalar, not of `{Self}`",
    label = "not with this type"
)]
pub trait Scalar {}

macro_rules! moved {
    ($($registers:ty, $type:literal in $space:ident $features:tt: $($ty:ty)*;)*) => {$($(
        moved! { @one $registers, $type $space $features $ty }
    )*)*};
    (@one $registers:ty, $type:literal $space:ident [$($feature:ident)*] $ty:ty) => {
        impl<P: $space> Moved<P> for $ty
        where
            $registers: Registers<P::Address>,
            $(for<'a> Target: Has<$feature>),*
        {
            type Registers = $registers;
            const TYPE: u128 = text($type);
        }
    };
}

moved! {
    [u8; 1], ".b8" in Space []: u8 i8;
    [u16; 1], ".b16" in Space []: u16 i16 f16 bf16;
    [u32; 1], ".b32" in Space []: u32 i32 f32 f16x2 bf16x2;
    [u64; 1], ".b64" in Space []: u64 i64 f64;
    Wide, ".b128" in Space [ptx_83]: u128 i128;
    [u8; 2], ".v2.b8" in Space []: [u8; 2] [i8; 2];
    [u8; 4], ".v4.b8" in Space []: [u8; 4] [i8; 4];
    [u16; 2], ".v2.b16" in Space []: [u16; 2] [i16; 2] [f16; 2] [bf16; 2];
    [u16; 4], ".v4.b16" in Space []: [u16; 4] [i16; 4] [f16; 4] [bf16; 4];
    [u32; 2], ".v2.b32" in Space []: [u32; 2] [i32; 2] [f32; 2] [f16x2; 2] [bf16x2; 2];
    [u32; 4], ".v4.b32" in Space []: [u32; 4] [i32; 4] [f32; 4] [f16x2; 4] [bf16x2; 4];
    [u64; 2], ".v2.b64" in Space []: [u64; 2] [i64; 2] [f64; 2];
    [u32; 8], ".v8.b32" in GlobalSpace [ptx_88 sm_100]: [u32; 8] [i32; 8] [f32; 8] [f16x2; 8] [bf16x2; 8];
    [u64; 4], ".v4.b64" in GlobalSpace [ptx_88 sm_100]: [u64; 4] [i64; 4] [f64; 4];
}

macro_rules! scalars {
    ($($ty:ty)*) => { $(impl Scalar for $ty {})* };
}

scalars! { u8 i8 u16 i16 f16 bf16 u32 i32 f32 f16x2 bf16x2 u64 i64 f64 u128 i128 }

macro_rules! seal {
    ($($ty:ty)*) => { $(impl Sealed for $ty {})* };
}

// The arrays that are no values of registers elsewhere in the crate.
seal! {
    [u8; 2] [i8; 2] [u8; 4] [i8; 4]
    [u16; 2] [i16; 2] [f16; 2] [bf16; 2] [u16; 4] [i16; 4] [f16; 4] [bf16; 4] [f16; 8] [bf16; 8]
    [f16x2; 2] [bf16x2; 2] [f16x2; 4] [bf16x2; 4] [f16x2; 8] [bf16x2; 8]
}

/// What the text of an instruction depends on.
pub trait Form {
    const SEM: u128;
    const SCOPE: u128;
    const SPACE: u128;
    const OP: u128;
    const TYPE: u128;
}

/// The operation `O` on a value `T`.
pub struct Operation<S, C, P, O, T>(PhantomData<(S, C, P, O, T)>);

impl<S: Word, C: Word, P: Space, O, T: Atomic<O, P>> Form for Operation<S, C, P, O, T> {
    const SEM: u128 = S::TEXT;
    const SCOPE: u128 = C::TEXT;
    const SPACE: u128 = P::TEXT;
    const OP: u128 = T::OP;
    const TYPE: u128 = T::TYPE;
}

/// The load or store of a value `T`.
pub struct Move<S, C, P, T>(PhantomData<(S, C, P, T)>);

impl<S: Word, C: Word, P: Space, T: Moved<P>> Form for Move<S, C, P, T> {
    const SEM: u128 = S::TEXT;
    const SCOPE: u128 = C::TEXT;
    const SPACE: u128 = P::TEXT;
    const OP: u128 = 0;
    const TYPE: u128 = T::TYPE;
}

/// The same bits as another type.
#[inline(always)]
pub fn bits<T: Copy, R: Copy>(value: T) -> R {
    const { assert!(size_of::<T>() == size_of::<R>()) };
    // SAFETY: values and registers are plain data, of one size, as just checked.
    unsafe { core::mem::transmute_copy(&value) }
}
