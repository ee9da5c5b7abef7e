//! Kernels that invite the compiler to duplicate, merge, move or drop operations that must stay
//! where they are.
//!
//! [`shapes`] puts each convergent operation of `cuda::ptx` into each shape of control flow that an
//! optimiser likes to change, and each beyond it into those that it changes in different ways. The modules `order` hold accesses to memory around the operations that order them.
//!
//! A comment in front of a kernel says what must be left of it at every optimisation level, in PTX
//! and in SASS; `tests/corpus` reads it there. `expect:` lists the instances of the operation:
//!
//! | word | what holds of this instance |
//! |---|---|
//! | `always` | every thread that reaches the end executes it exactly once |
//! | `arm` | only some paths through the kernel execute it, at most once |
//! | `either` | every path executes exactly one of these instances |
//! | `loop` | it is executed again and again |
//! | `uniform loop` | so too, and ptxas knows that all threads do so equally often, and may unroll |
//!
//! `order:` lists all instances of some instructions, each of which comes before the next on every
//! path. One with a `?` may be skipped, but does not come later; one `in loop` repeats.

#![no_std]
#![feature(macro_metavar_expr_concat)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, stdarch_nvptx))]
#![cfg_attr(
    all(target_arch = "nvptx64", not(feature = "sm_100a")),
    feature(asm_experimental_arch)
)]

#[macro_use]
pub mod shapes;
pub mod thread;

#[cfg(feature = "sm_100a")]
pub mod sm_100a;
#[cfg(not(feature = "sm_100a"))]
pub mod sm_90a;

cuda_ptx::panic_trap!();
