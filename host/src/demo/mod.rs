//! The main job: the guide's kernels in Rust and in C++, built, compared, and run: on the GPU where
//! there is one, else on the CPU.
//!
//! Comparing needs the compilers ([`Images::build`], [`compare`]); running needs a GPU and the
//! images. The two halves meet in a [`Report`], also when they happen on different machines.

mod compare;
mod cpu;
mod gpu;
mod images;
mod report;

pub use compare::{Comparison, Verdict, compare};
pub use cpu::CpuRun;
pub use gpu::GpuRun;
pub use images::Images;
pub use report::{GpuResult, Report, Row};
