//! The listings that the guide has for the C primitives, with [`cuda_ptx::awbarrier`].

pub mod early_exit;
pub mod init_barrier;
pub mod producer_consumer;
pub mod split_arrive_wait;
