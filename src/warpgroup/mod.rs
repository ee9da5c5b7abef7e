//! Matrix multiplication by a warpgroup: descriptors, accumulators and `wgmma.mma_async`.
//!
//! Four warps (128 threads, the first of them a multiple of four) multiply A, of 64 rows, by B and add
//! the product to D. B, and A too unless it is in registers, lies in shared memory: a [`Descriptor`]
//! says where and in which layout. D is spread over the registers of all threads: an
//! [`Accumulator`].
//!
//! | what | |
//! |---|---|
//! | [`wgmma_mma_async`] | starts a multiplication; types, number of columns and the place of A follow from the arguments |
//! | [`wgmma_mma_async_sp`] | the same with A sparse: two of four elements are zero |
//! | [`wgmma_fence`](crate::wgmma_fence), [`wgmma_commit_group`](crate::wgmma_commit_group), [`wgmma_wait_group`](crate::wgmma_wait_group) | order and await them |
//!
//! When to use it: on `sm_90a` alone, where it is the only way to the full rate of the tensor
//! cores. Blackwell has [`tcgen05`](mod@crate::tcgen05_mma) instead.

//!
//! # What the types rule out
//!
//! Types of A and B that are not multiplied, or not into this D:
//!
//! ```compile_fail,E0277
//! # use cuda_ptx::{*, warpgroup::Accumulator};
//! # unsafe fn f(a: u64, b: u64) { unsafe {
//! let mut d = Accumulator::<i32, 64>::zero();
//! wgmma_mma_async(element_f16, element_f16, &mut d, a, b, true);
//! # } }
//! ```
//!
//! Numbers of columns that do not exist, here 36 of a product of integers:
//!
//! ```compile_fail,E0277
//! # use cuda_ptx::{*, warpgroup::Accumulator};
//! # unsafe fn f(a: u64, b: u64) { unsafe {
//! let mut d = Accumulator::<i32, 18>::zero();
//! wgmma_mma_async(element_s8, element_u8, &mut d, a, b, true);
//! # } }
//! ```
//!
//! Modifiers that the types lack:
//!
//! ```compile_fail,E0277
//! # use cuda_ptx::{*, warpgroup::Accumulator};
//! # unsafe fn f(a: u64, b: u64) { unsafe {
//! let mut d = Accumulator::<f32, 64>::zero();
//! let (one, swap) = (n32::<1>, n32::<1>);
//! wgmma_mma_async_transposed(element_tf32, element_tf32, &mut d, a, b, true, one, one, swap, swap);
//! # } }
//! ```

mod accumulator;
mod descriptor;
mod form;
mod mma;
mod registers;

pub use accumulator::Accumulator;
pub use descriptor::{Descriptor, Swizzle};
pub use form::{
    BySteps8, BySteps16, Columns, Element, Multiplies, Saturates, Scales, Source, Sparse,
    Transposes,
};
pub use mma::*;
