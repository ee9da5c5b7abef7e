//! The kernels for architectures with tensor memory.

pub mod operations;
pub mod order;

shapes!(tcgen05_alloc);
shapes!(tcgen05_dealloc);
shapes!(tcgen05_relinquish);
shapes!(tcgen05_ld);
shapes!(tcgen05_st);
shapes!(tcgen05_wait_ld);
shapes!(tcgen05_wait_st);

// Beyond `cuda::ptx`.
hard_shapes!(tcgen05_mma);
hard_shapes!(tcgen05_mma_ashift);
hard_shapes!(tcgen05_mma_ws_sp);
