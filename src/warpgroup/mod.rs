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
