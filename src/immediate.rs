//! Operands that are part of the instruction.

/// An immediate operand of 32 bits: `n32::<4>` is C++'s `cuda::ptx::n32_t<4>{}`.
///
/// A function that takes one checks its range at compile time.
#[allow(non_camel_case_types)] // The name is that of C++, for the type as for the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct n32<const N: i32>;
