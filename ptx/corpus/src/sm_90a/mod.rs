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

// Beyond `cuda::ptx`.
hard_shapes!(barrier_sync_aligned);
hard_shapes!(barrier_red);
hard_shapes!(barrier_red_aligned);
hard_shapes!(barrier_arrive);
hard_shapes!(barrier_arrive_aligned);
hard_shapes!(redux);
hard_shapes!(ballot);
hard_shapes!(vote_any);
hard_shapes!(match_any);
hard_shapes!(match_all);
hard_shapes!(active);
hard_shapes!(elect_leader);
hard_shapes!(movmatrix);
hard_shapes!(mma);
hard_shapes!(mma_sp);
hard_shapes!(wgmma_fence);
hard_shapes!(wgmma_commit);
hard_shapes!(wgmma_wait);
hard_shapes!(wgmma_mma);
hard_shapes!(cluster_arrive_aligned #[cluster_dim(2, 1, 1)]);
hard_shapes!(cluster_aligned #[cluster_dim(1, 1, 1)]);
hard_shapes!(dependents);
hard_shapes!(dependencies);
