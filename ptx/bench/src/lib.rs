//! Situations: what instructions cost with contention, with work in flight, by size and by distance.
//!
//! Beside each file lies its C++ twin (`.cu`), line by line the same. All kernels take the same parameters, so
//! that the host can treat them alike: where to record, data in global memory, tensor maps, the steps to time, how
//! often (the first time warms up), and two numbers, `p` and `q`, whose meaning the kernel's document says.
//!
//! | file | situations |
//! |---|---|
//! | [`barrier`] | arrivals by the number of threads, waits, round trips of a phase |
//! | [`copy`] | bulk and tensor copies by size, stages, dimensions, and to several CTAs |
//! | [`cluster`] | arrivals, reads and writes at another CTA |
//! | [`fence`] | fences with stores in flight |

#![no_std]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(abi_ptx, asm_experimental_arch, stdarch_nvptx)
)]

#[macro_use]
mod common;

pub mod barrier;
pub mod cluster;
pub mod copy;
pub mod fence;

cuda_ptx::panic_trap!();
