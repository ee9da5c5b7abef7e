//! The kernels for sm_90a.

pub mod operations;
pub mod order;

shapes!(bar_sync);
shapes!(barrier_sync);
shapes!(syncthreads);
shapes!(bar_warp_sync);
shapes!(elect);
shapes!(shfl);
// ptxas ignores `setmaxnreg` where it does not know how many registers a thread starts with; the
// threads of a block alone do not say it.
shapes!(setmaxnreg_inc #[launch_bounds(128, 1)]);
shapes!(setmaxnreg_dec #[launch_bounds(128, 1)]);
shapes!(ldmatrix);
shapes!(stmatrix);
shapes!(tensormap);
shapes!(cluster_arrive #[cluster_dim(2, 1, 1)]);
shapes!(cluster_wait #[cluster_dim(2, 1, 1)]);
