//! Which types and shapes go together, and how the instruction spells them.

use core::marker::PhantomData;

use super::registers::Registers;
use crate::asm::text;
use crate::sealed::Sealed;
use crate::tags::*;
use crate::target::{Has, Target, ptx_84};
use crate::value::{Value, f16x2};

/// What a register of D holds: `f32`, `i32`, or two `f16`.
pub trait Element: Value {
    /// How many elements of D are in a register.
    const ELEMENTS: u32;
}

impl Element for f32 {
    const ELEMENTS: u32 = 1;
}
impl Element for i32 {
    const ELEMENTS: u32 = 1;
}
impl Element for f16x2 {
    const ELEMENTS: u32 = 2;
}

/// Implemented by the types of A and B, `(type_a, type_b)`, that can be multiplied and added to
/// elements `D`.
#[diagnostic::on_unimplemented(
    message = "`wgmma.mma_async` does not multiply `{Self}` into registers of `{D}`",
    label = "no such types",
    note = "f16 by f16 goes into `f32` and `f16x2`; bf16 by bf16 and tf32 by tf32 into `f32`",
    note = "e4m3 and e5m2 by either go into `f32` and `f16x2`",
    note = "s8 and u8 by either, and b1 by b1, go into `i32`"
)]
pub trait Multiplies<D>: Sealed {
    /// Numbers of columns that D may have.
    #[doc(hidden)]
    type Columns;
    /// The part of the shape that the types decide, twice as much if A is sparse.
    #[doc(hidden)]
    const K: u32;
    #[doc(hidden)]
    const TYPES: u128;
    /// What follows the types in the opcode.
    #[doc(hidden)]
    const OPERATION: u128 = 0;
    /// Whether there are immediates that scale A and B.
    #[doc(hidden)]
    const SCALES: bool = true;
    /// Whether there are immediates that transpose.
    #[doc(hidden)]
    const TRANSPOSES: bool = false;
    /// How many sparsity selectors there are.
    #[doc(hidden)]
    const SELECTORS: i32 = 1;
}

/// Multiples of 8 from 8 to 256.
pub struct BySteps8;
/// 8, 24, and multiples of 16 from 16 to 256.
pub struct BySteps16;

macro_rules! multiplies {
    ($($a:ident $b:ident into $d:ty: $columns:ident $k:literal $types:literal $(, $constant:ident = $value:expr)* $(=> $isa:ident)?;)*) => {$(
        impl Multiplies<$d> for ($a, $b)
        $(where for<'a> Target: Has<$isa>)?
        {
            type Columns = $columns;
            const K: u32 = $k;
            const TYPES: u128 = text($types);
            $(const $constant: multiplies!(@$constant) = $value;)*
        }
    )*};
    (@OPERATION) => { u128 };
    (@SELECTORS) => { i32 };
    (@$flag:ident) => { bool };
}

multiplies! {
    element_f16 element_f16 into f32: BySteps8 16 ".f32.f16.f16", TRANSPOSES = true, SELECTORS = 2;
    element_f16 element_f16 into f16x2: BySteps8 16 ".f16.f16.f16", TRANSPOSES = true, SELECTORS = 2;
    element_bf16 element_bf16 into f32: BySteps8 16 ".f32.bf16.bf16", TRANSPOSES = true, SELECTORS = 2;
    element_tf32 element_tf32 into f32: BySteps8 8 ".f32.tf32.tf32", SELECTORS = 2;
    element_e4m3 element_e4m3 into f32: BySteps8 32 ".f32.e4m3.e4m3";
    element_e4m3 element_e5m2 into f32: BySteps8 32 ".f32.e4m3.e5m2";
    element_e5m2 element_e4m3 into f32: BySteps8 32 ".f32.e5m2.e4m3";
    element_e5m2 element_e5m2 into f32: BySteps8 32 ".f32.e5m2.e5m2";
    element_e4m3 element_e4m3 into f16x2: BySteps8 32 ".f16.e4m3.e4m3";
    element_e4m3 element_e5m2 into f16x2: BySteps8 32 ".f16.e4m3.e5m2";
    element_e5m2 element_e4m3 into f16x2: BySteps8 32 ".f16.e5m2.e4m3";
    element_e5m2 element_e5m2 into f16x2: BySteps8 32 ".f16.e5m2.e5m2";
    element_s8 element_s8 into i32: BySteps16 32 ".s32.s8.s8", SCALES = false;
    element_s8 element_u8 into i32: BySteps16 32 ".s32.s8.u8", SCALES = false => ptx_84;
    element_u8 element_s8 into i32: BySteps16 32 ".s32.u8.s8", SCALES = false => ptx_84;
    element_u8 element_u8 into i32: BySteps16 32 ".s32.u8.u8", SCALES = false;
    element_b1 element_b1 into i32: BySteps16 256 ".s32.b1.b1", OPERATION = text(".and.popc"), SCALES = false;
}

macro_rules! modifiers {
    ($($(#[$doc:meta])* $name:ident: $message:literal, $note:literal: $($a:ident $b:ident),*;)*) => {$(
        $(#[$doc])*
        #[diagnostic::on_unimplemented(message = $message, label = "no such types", note = $note)]
        pub trait $name: Sealed {}
        $(impl $name for ($a, $b) {})*
    )*};
}

modifiers! {
    /// Implemented by the types of A and B that can be multiplied if A is sparse.
    Sparse: "`wgmma.mma_async.sp` does not multiply `{Self}`", "A can be sparse with all types but b1":
        element_f16 element_f16, element_bf16 element_bf16, element_tf32 element_tf32, element_e4m3 element_e4m3,
        element_e4m3 element_e5m2, element_e5m2 element_e4m3, element_e5m2 element_e5m2, element_s8 element_s8,
        element_s8 element_u8, element_u8 element_s8, element_u8 element_u8;
    /// Implemented by the types of A and B that can be negated.
    Scales: "`wgmma.mma_async` has no scales for `{Self}`", "floating-point types have them":
        element_f16 element_f16, element_bf16 element_bf16, element_tf32 element_tf32, element_e4m3 element_e4m3,
        element_e4m3 element_e5m2, element_e5m2 element_e4m3, element_e5m2 element_e5m2;
    /// Implemented by the types of A and B that can be transposed.
    Transposes: "`wgmma.mma_async` cannot transpose `{Self}`", "f16 and bf16 can be transposed":
        element_f16 element_f16, element_bf16 element_bf16;
    /// Implemented by the types of A and B whose sums can saturate.
    Saturates: "`wgmma.mma_async` has no `.satfinite` for `{Self}`", "s8 and u8 have it":
        element_s8 element_s8, element_s8 element_u8, element_u8 element_s8, element_u8 element_u8;
}

/// Implemented by the registers of D that have an allowed number of columns, `S` says which.
#[diagnostic::on_unimplemented(
    message = "D of `wgmma.mma_async` cannot be `{Self}`",
    label = "no such number of registers",
    note = "floating-point types allow multiples of 8 from 8 to 256 columns, integers 8, 24, and multiples of 16 up to 256",
    note = "n columns are n/2 registers of `f32` or `i32`, or n/4 of `f16x2`"
)]
pub trait Columns<S> {
    #[doc(hidden)]
    type Registers: Registers;
    #[doc(hidden)]
    fn registers(&mut self) -> &mut Self::Registers;
}

macro_rules! columns {
    ($columns:ident, $element:ty: $($count:literal)*) => {$(
        impl Columns<$columns> for [$element; $count] {
            type Registers = [u32; $count];
            #[inline(always)]
            fn registers(&mut self) -> &mut [u32; $count] {
                // SAFETY: elements are plain data of 32 bits.
                unsafe { &mut *core::ptr::from_mut(self).cast() }
            }
        }
    )*};
}

columns! { BySteps8, f32: 4 8 12 16 20 24 28 32 36 40 44 48 52 56 60 64 68 72 76 80 84 88 92 96 100 104 108 112 116 120 124 128 }
columns! { BySteps8, f16x2: 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30 32 34 36 38 40 42 44 46 48 50 52 54 56 58 60 62 64 }
columns! { BySteps16, i32: 4 8 12 16 24 32 40 48 56 64 72 80 88 96 104 112 120 128 }

/// Where A is: in shared memory, which a descriptor describes (`u64`), or in registers (`[u32; 4]`).
#[diagnostic::on_unimplemented(
    message = "A of `wgmma.mma_async` cannot be `{Self}`",
    label = "no such place of A",
    note = "A is `[u32; 4]`, the thread's registers of it, or `u64`, the bits of a `Descriptor`"
)]
pub trait Source: Sealed {
    #[doc(hidden)]
    const IN_REGISTERS: bool;
    #[doc(hidden)]
    unsafe fn multiply<C: Form, R: Registers>(self, d: &mut R, b_desc: u64, scale_d: bool);
    #[doc(hidden)]
    unsafe fn multiply_sparse<C: Form, R: Registers, const SP_SEL: i32>(
        self,
        d: &mut R,
        b_desc: u64,
        sp_meta: u32,
        scale_d: bool,
    );
}

impl Source for u64 {
    const IN_REGISTERS: bool = false;
    #[inline(always)]
    unsafe fn multiply<C: Form, R: Registers>(self, d: &mut R, b_desc: u64, scale_d: bool) {
        unsafe { d.multiply::<C>(self, b_desc, scale_d) }
    }
    #[inline(always)]
    unsafe fn multiply_sparse<C: Form, R: Registers, const SP_SEL: i32>(
        self,
        d: &mut R,
        b_desc: u64,
        sp_meta: u32,
        scale_d: bool,
    ) {
        unsafe { d.multiply_sparse::<C, SP_SEL>(self, b_desc, sp_meta, scale_d) }
    }
}

impl Source for [u32; 4] {
    const IN_REGISTERS: bool = true;
    #[inline(always)]
    unsafe fn multiply<C: Form, R: Registers>(self, d: &mut R, b_desc: u64, scale_d: bool) {
        unsafe { d.multiply_registers::<C>(self, b_desc, scale_d) }
    }
    #[inline(always)]
    unsafe fn multiply_sparse<C: Form, R: Registers, const SP_SEL: i32>(
        self,
        d: &mut R,
        b_desc: u64,
        sp_meta: u32,
        scale_d: bool,
    ) {
        unsafe { d.multiply_sparse_registers::<C, SP_SEL>(self, b_desc, sp_meta, scale_d) }
    }
}

/// The immediates of an instruction, and whether its sums saturate.
pub trait Modifiers {
    /// Of A and B: 1, or -1 to negate.
    const SCALE: [i32; 2] = [1, 1];
    /// Of A and B: 1 to transpose.
    const TRANSPOSE: [i32; 2] = [0, 0];
    const OPERATION: u128 = 0;
}

/// None but the defaults.
pub struct Plain;
pub struct Scaled<const A: i32, const B: i32>;
pub struct Transposed<S, const A: i32, const B: i32>(PhantomData<S>);
pub struct Satfinite;

impl Modifiers for Plain {}
impl<const A: i32, const B: i32> Modifiers for Scaled<A, B> {
    const SCALE: [i32; 2] = {
        assert!(A == 1 || A == -1, "`imm_scale_a` must be 1 or -1");
        assert!(B == 1 || B == -1, "`imm_scale_b` must be 1 or -1");
        [A, B]
    };
}
impl<S: Modifiers, const A: i32, const B: i32> Modifiers for Transposed<S, A, B> {
    const SCALE: [i32; 2] = S::SCALE;
    const TRANSPOSE: [i32; 2] = {
        assert!(A == 0 || A == 1, "`imm_trans_a` must be 0 or 1");
        assert!(B == 0 || B == 1, "`imm_trans_b` must be 0 or 1");
        [A, B]
    };
}
impl Modifiers for Satfinite {
    const OPERATION: u128 = text(".satfinite");
}

/// What the text of an instruction depends on.
pub trait Form {
    const N: u32;
    const K: u32;
    const TYPES: u128;
    /// What follows the types in the opcode.
    const OPERATION: u128;
    /// The immediates that follow the operands.
    const IMMEDIATES: u128;
}

/// The multiplication of types `F` into `N` registers of `D` with modifiers `M`, and A from `S`.
pub struct Call<F, D, const N: usize, M, S>(PhantomData<(F, D, M, S)>);

impl<F: Multiplies<D>, D: Element, const N: usize, M: Modifiers, S: Source> Form
    for Call<F, D, N, M, S>
{
    const N: u32 = N as u32 * 2 * D::ELEMENTS;
    const K: u32 = F::K;
    const TYPES: u128 = F::TYPES;
    const OPERATION: u128 = F::OPERATION | M::OPERATION;
    const IMMEDIATES: u128 = {
        let [scale_a, scale_b] = M::SCALE;
        let [trans_a, trans_b] = M::TRANSPOSE;
        match (F::SCALES, F::TRANSPOSES, S::IN_REGISTERS) {
            (false, _, _) => 0,
            (true, false, _) => immediates(&[scale_a, scale_b]),
            (true, true, false) => immediates(&[scale_a, scale_b, trans_a, trans_b]),
            (true, true, true) => immediates(&[scale_a, scale_b, trans_b]),
        }
    };
}

/// `, 1, -1, 0` for immediates of one digit.
const fn immediates(values: &[i32]) -> u128 {
    let mut bytes = [0; 16];
    let (mut end, mut index) = (0, 0);
    while index < values.len() {
        bytes[end] = b',';
        bytes[end + 1] = b' ';
        end += 2;
        if values[index] < 0 {
            bytes[end] = b'-';
            end += 1;
        }
        bytes[end] = b'0' + values[index].unsigned_abs() as u8;
        end += 1;
        index += 1;
    }
    u128::from_le_bytes(bytes)
}
