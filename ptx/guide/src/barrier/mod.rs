//! The listings that the guide has for `cuda::barrier`, with [`cuda_ptx::barrier`].

pub mod early_exit;
pub mod init_barrier;
pub mod phases;
pub mod producer_consumer;
pub mod producer_consumer_pipeline;
pub mod psum;
pub mod split_arrive_wait;
pub mod track_bulk_copy;
pub mod track_kernel;
