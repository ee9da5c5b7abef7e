//! Host harness of `cuda-ptx`.
//!
//! What launches kernels needs the feature `gpu`, which is on by default; a build script that only
//! builds them does without.
//!
//! | module | what it does |
//! |---|---|
//! | [`spec`] | the instruction forms, read from `spec/` |
//! | [`generate`] | writes the device crate's functions, tags and documents from them |
//! | [`toolchain`] | finds or installs the CUDA tools and the device toolchain |
//! | [`link`] | the link stage: LLVM bitcode of a kernel crate → PTX |
//! | [`build`] | a kernel crate → PTX or cubin, and its C++ twin with nvcc |
//! | [`inspect`] | reads and compares PTX and SASS |
//! | [`bench`](mod@bench) | times every form in both languages |
//! | [`parity`] | every form of `cuda::ptx` against its twin in Rust |
//! | [`guide`] | the guide's kernels on the GPU: launches, inputs, expected results, timing |
//! | [`ported`] | a C++ kernel ported line by line, on the GPU |
//! | [`wgmma`] | matrix products by warpgroups, on the GPU and the CPU |
//! | [`exec`] | executes PTX on the CPU and names mistakes in its use of barriers and copies |
//! | [`formats`] | the narrow floating-point types: decoding, rounding, exact sums |
//! | [`differential`] | every form on the GPU: Rust against C++ against the PTX ISA |
//! | [`barriers`] | the typed barriers beyond the guide: launches and expected results |
//! | [`corpus`] | kernels that invite the compiler to move barriers, on the GPU |
//! | [`driver`] | the CUDA driver: context, module, launch, error names, watchdog |
//! | [`child`] | what runs in child processes: every job that launches kernels |
//! | [`demo`] | the main job: the guide's kernels built, compared, run and reported |
//! | [`bundle`] | a folder that runs on a GPU machine without compilers |
//! | [`selftest`] | what a bundle checks there |

#[cfg(feature = "gpu")]
pub mod barriers;
#[cfg(feature = "gpu")]
pub mod bench;
pub mod build;
#[cfg(feature = "gpu")]
pub mod bundle;
#[cfg(feature = "gpu")]
pub mod child;
#[cfg(feature = "gpu")]
pub mod corpus;
#[cfg(feature = "gpu")]
pub mod demo;
#[cfg(feature = "gpu")]
pub mod differential;
#[cfg(feature = "gpu")]
pub mod driver;
pub mod exec;
pub mod formats;
#[cfg(feature = "gpu")]
pub mod generate;
#[cfg(feature = "gpu")]
pub mod guide;
pub mod inspect;
pub mod link;
pub mod parity;
#[cfg(feature = "gpu")]
pub mod ported;
#[cfg(feature = "gpu")]
pub mod selftest;
pub mod spec;
pub mod toolchain;
#[cfg(feature = "gpu")]
pub mod wgmma;
