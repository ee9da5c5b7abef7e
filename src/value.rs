//! What a register holds: the types that untyped operands (`.b32` and the like) take, and the
//! 16-bit floating-point types.
//!
//! Where the PTX ISA says `.b32`, C++ takes any type of four bytes; here it is any type whose
//! [`Value::Bits`] is `u32`. Wider values than a register of inline assembly holds, `.b128` and four
//! `.b64`, travel as several 64-bit registers.

// The names of the element types are those of PTX.
#![allow(non_camel_case_types)]

use crate::sealed::Sealed;

/// A value that instructions move as bits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value of 8, 16, 32, 64, 128 or 256 bits that an instruction can move",
    note = "there are integers, floats, `f16`, `bf16`, `f16x2`, `bf16x2`, and arrays of 128 or 256 bits"
)]
pub trait Value: Sealed + Copy {
    /// The registers it fills: `u8`, `u16`, `u32`, `u64`, `[u64; 2]` or `[u64; 4]`.
    type Bits: Value;
    #[doc(hidden)]
    fn to_bits(self) -> Self::Bits;
    #[doc(hidden)]
    fn from_bits(bits: Self::Bits) -> Self;
}

macro_rules! values {
    ($($bits:ty: $($value:ty),*;)*) => {
        $($(
            impl Sealed for $value {}
            impl Value for $value {
                type Bits = $bits;
                #[inline(always)]
                #[allow(unnecessary_transmutes, clippy::useless_transmute)]
                fn to_bits(self) -> $bits {
                    // SAFETY: both are plain data of one size, checked by `transmute`.
                    unsafe { ::core::mem::transmute::<$value, $bits>(self) }
                }
                #[inline(always)]
                #[allow(unnecessary_transmutes, clippy::useless_transmute)]
                fn from_bits(bits: $bits) -> Self {
                    // SAFETY: both are plain data of one size, checked by `transmute`.
                    unsafe { ::core::mem::transmute::<$bits, $value>(bits) }
                }
            }
        )*)*
    };
}

values! {
    u8: u8, i8;
    u16: u16, i16, f16, bf16;
    u32: u32, i32, f32, f16x2, bf16x2;
    u64: u64, i64, f64, [u32; 2], [i32; 2], [f32; 2];
    [u64; 2]: u128, i128, [u64; 2], [i64; 2], [f64; 2], [u32; 4], [i32; 4], [f32; 4];
    [u64; 4]: [u64; 4], [i64; 4], [f64; 4], [u32; 8], [i32; 8], [f32; 8];
}

macro_rules! half {
    ($($(#[$doc:meta])* $name:ident: $bits:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            #[repr(transparent)]
            pub struct $name($bits);

            impl $name {
                /// The value with these bits.
                #[inline(always)]
                #[must_use]
                pub const fn from_bits(bits: $bits) -> Self {
                    Self(bits)
                }

                /// The bits of the value.
                #[inline(always)]
                #[must_use]
                pub const fn to_bits(self) -> $bits {
                    self.0
                }
            }
        )*
    };
}

half! {
    /// A 16-bit float of IEEE 754 (`__half` in CUDA C++), as bits.
    f16: u16;
    /// A 16-bit float with the exponent of `f32` (`__nv_bfloat16` in CUDA C++), as bits.
    bf16: u16;
    /// Two [`f16`](struct@f16) (`__half2` in CUDA C++), the first in the lower bits.
    f16x2: u32;
    /// Two [`bf16`] (`__nv_bfloat162` in CUDA C++), the first in the lower bits.
    bf16x2: u32;
}

/// The registers of an array.
#[inline(always)]
pub(crate) fn array_to_bits<T: Value, const N: usize>(values: [T; N]) -> [T::Bits; N] {
    // SAFETY: `Value` types and their bits are plain data of one size.
    unsafe { core::mem::transmute_copy(&values) }
}

/// The registers that an output goes to.
#[inline(always)]
pub(crate) fn array_bits_mut<T: Value, const N: usize>(values: &mut [T; N]) -> &mut [T::Bits; N] {
    const { assert!(align_of::<T>() >= align_of::<T::Bits>()) };
    // SAFETY: plain data of one size, and aligned, as just checked.
    unsafe { &mut *core::ptr::from_mut(values).cast() }
}

/// An array as a struct: rustc checks a field in less time than an element, and some inline assembly has 128 of them.
pub(crate) trait AsFields {
    type Fields;
}

macro_rules! as_fields {
    ($($field:ident)*;) => {};
    ($($field:ident)*; $name:ident $len:literal, $($rest:tt)*) => {
        /// As many fields as the array has elements.
        #[repr(C)]
        pub(crate) struct $name<T>($(pub $field,)* $(pub $field,)*);
        impl<T> AsFields for [T; $len] {
            type Fields = $name<T>;
        }
        const _: () = assert!(size_of::<$name<u32>>() == size_of::<[u32; $len]>());
        as_fields! { $($field)* $($field)*; $($rest)* }
    };
}

as_fields! { T T T T; Fields8 8, Fields16 16, Fields32 32, Fields64 64, Fields128 128, }

/// The elements as fields.
#[inline(always)]
pub(crate) fn fields<A: AsFields>(array: &A) -> &A::Fields {
    // SAFETY: a `repr(C)` struct with as many fields of one type is laid out as the array is.
    unsafe { &*core::ptr::from_ref(array).cast() }
}

/// The elements as fields.
#[inline(always)]
pub(crate) fn fields_mut<A: AsFields>(array: &mut A) -> &mut A::Fields {
    // SAFETY: as above.
    unsafe { &mut *core::ptr::from_mut(array).cast() }
}
