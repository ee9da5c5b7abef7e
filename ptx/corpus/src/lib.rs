//! Kernels that invite the compiler to duplicate, merge, move or drop operations that must stay
//! where they are.
//!
//! [`shapes`] puts each convergent operation into each shape of control flow that an optimiser likes
//! to change. [`order`] holds accesses to memory around the operations that order them.
//!
//! The comment `expect:` in front of a kernel says what must be left of it at every optimisation
//! level, in PTX and in SASS; `tests/corpus.rs` reads it there:
//!
//! | word | one instance of the operation, and |
//! |---|---|
//! | `always` | every thread that reaches the end executes it exactly once |
//! | `arm` | only some paths through the kernel execute it, at most once |
//! | `loop` | it is executed again and again |

#![no_std]
#![feature(macro_metavar_expr_concat)]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(abi_ptx, asm_experimental_arch, stdarch_nvptx)
)]

pub mod operations;
pub mod order;
#[macro_use]
pub mod shapes;
pub mod thread;

shapes!(bar_sync);
shapes!(barrier_sync);
shapes!(syncthreads);
shapes!(bar_warp_sync);
shapes!(elect);
shapes!(cluster_arrive #[cluster_dim(2, 1, 1)]);
shapes!(cluster_wait #[cluster_dim(2, 1, 1)]);

cuda_ptx::panic_trap!();
