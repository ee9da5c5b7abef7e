//! The kernels of the CUDA programming guide's chapter on asynchronous barriers, in every flavour in
//! which the guide has them.
//!
//! Each file holds one listing in Rust; beside it, under the same name, lies its C++ twin (`.cu`),
//! line by line the same, and without the comments that would only repeat those here. What the guide
//! leaves as comments is filled in so that every kernel has a result that a wrong synchronisation
//! would spoil.
//!
//! | listing of the guide | `cuda::ptx` | `cuda::barrier` | C primitives |
//! |---|---|---|---|
//! | initialisation | [`init_barrier`] | [`barrier::init_barrier`] | [`primitives::init_barrier`] |
//! | phases | | [`barrier::phases`] | |
//! | warp entanglement | [`warp_entanglement`] | | |
//! | explicit phase tracking | [`split_arrive_wait`] | [`barrier::split_arrive_wait`] | [`primitives::split_arrive_wait`] |
//! | early exit | [`early_exit`] | [`barrier::early_exit`] | [`primitives::early_exit`] |
//! | completion function | | [`barrier::psum`] | |
//! | tracking asynchronous memory operations, with a transaction count of 0 | [`track_kernel`] | [`barrier::track_kernel`] | |
//! | the same with a bulk copy | [`track_bulk_copy`] | [`barrier::track_bulk_copy`] | |
//! | producer and consumer, double-buffered | [`producer_consumer`] | [`barrier::producer_consumer`], [`barrier::producer_consumer_pipeline`] | [`primitives::producer_consumer`] |

#![no_std]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(abi_ptx, asm_experimental_arch, stdarch_nvptx)
)]

mod block;
mod compute;

pub mod barrier;
pub mod primitives;

pub mod early_exit;
pub mod init_barrier;
pub mod producer_consumer;
pub mod split_arrive_wait;
pub mod track_bulk_copy;
pub mod track_kernel;
pub mod warp_entanglement;

cuda_ptx::panic_trap!();
