//! `cuda::ptx` for Rust: the PTX instructions of NVIDIA GPUs as functions, one to one with the C++
//! layer.
//!
//! # Finding a name
//!
//! `cuda::ptx::NAME` of C++ is `cuda_ptx::NAME` here, with the same arguments in the same order.
//!
//! | where | what |
//! |---|---|
//! | the crate root | every instruction and every tag (`sem_release`, `scope_cluster`, …) |
//! | [`mbarrier`], [`fence`](mod@fence), [`cp_async_bulk`](mod@cp_async_bulk), … | the instructions of one family, and how they work together |
//! | [`barrier`] | `cuda::barrier`, `cuda::memcpy_async` and `cuda::pipeline`: barriers with types |
//! | [`awbarrier`] | the C primitives, `__mbarrier_…` and `__pipeline_…` |
//! | [`tags`], [`immediate`], [`value`] | tags, immediate operands, and the types of values |
//! | [`target`] | what a build target must have for an instruction |
//! | [`bulk_copy`] | bulk and tensor copies with cache policies, in im2col modes, and into several GPUs |
//! | [`collector`] | `tcgen05.mma` with its collector buffers, `.ashift`, and sparse forms that C++ lacks |
//! | [`memory`] | atomic operations, loads and stores with an order |
//! | [`warpgroup`] | matrix multiplication by a warpgroup: descriptors, accumulators, `wgmma.mma_async` |
//! | [`shared!`], [`extern_shared!`] | objects in shared memory |
//! | [`kernel!`], [`GridConstant`], [`TensorMap`] | entry points, launch attributes, parameters |
//! | [`address`] | generic pointers to state-space addresses |
//!
//! # How a kernel crate is built
//!
//! By rustc for `nvptx64-nvidia-cuda`, with `cuda-ptx-link` as its linker. rustc alone treats an
//! `asm!` barrier as code that may be duplicated into divergent branches; the link stage prevents
//! it, and provides shared memory and launch attributes. `cargo xtask build` passes the right
//! flags; a build without them does not compile. On other targets every function exists, for
//! documentation and type checks, and panics when called.

#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch))]

#[cfg(all(target_arch = "nvptx64", not(cuda_ptx_link)))]
compile_error!(
    "cuda-ptx must be built through its link stage, else LLVM may duplicate barriers and the kernel \
     deadlocks; use `cargo xtask build`, or the flags in the README's section on plain cargo"
);

pub mod address;
mod asm;
pub mod awbarrier;
pub mod barrier;
pub mod bulk_copy;
pub mod collector;
pub mod immediate;
pub mod kernel;
#[doc(hidden)]
pub mod macros;
pub mod memory;
mod names;
mod sealed;
pub mod shared;
pub mod tags;
pub mod target;
pub mod value;
pub mod warpgroup;

pub mod async_store;
pub mod barrier_cluster;
pub mod barrier_cta;
pub mod bits;
pub mod cache;
pub mod cluster;
pub mod clusterlaunchcontrol;
pub mod control;
pub mod convert;
pub mod cp_async;
pub mod cp_async_bulk;
pub mod cp_async_bulk_tensor;
pub mod cp_reduce_async_bulk;
pub mod fabric;
pub mod fence;
pub mod ld_st;
pub mod matrix;
pub mod mbarrier;
pub mod mma;
pub mod multimem;
pub mod pacing;
pub mod prefetch;
pub mod sreg;
pub mod tcgen05;
pub mod tcgen05_mma;
pub mod tensormap;
pub mod warp;
pub mod warp_collective;
pub mod wgmma;

pub use immediate::n32;
pub use kernel::{GridConstant, TensorMap};
pub use names::*;
pub use shared::{DynamicShared, Shared};
pub use tags::*;
pub use value::{bf16, bf16x2, f16, f16x2};

/// The code blocks of the guide page are tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/barriers.md")]
struct BarriersPage;
