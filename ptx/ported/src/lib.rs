//! A CUDA C++ kernel that uses `cuda::ptx`, ported line by line: `transpose_multicast.cu` lies beside
//! this file.
//!
//! What changes on the way: `ptx::f(…)` becomes `f(…)`, or `f!(…)` where C++ overloads `f` by the
//! number of arguments; `__shared__` becomes `shared!`, a `__grid_constant__` parameter
//! [`GridConstant`], and `__cluster_dims__` an attribute of `kernel!`.

#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

use cuda_ptx::*;

const CLUSTER_SIZE: u32 = 4;
const TILE_ROWS: u32 = 64;
const TILE_COLUMNS: u32 = 32;
const SLICE_ROWS: u32 = TILE_ROWS / CLUSTER_SIZE;
const SLICE_COLUMNS: u32 = TILE_COLUMNS / CLUSTER_SIZE;

type Row = [f32; TILE_COLUMNS as usize];

shared! {
    #[align(128)]
    static TILE: [Row; TILE_ROWS as usize];
    static FULL: u64;
}

kernel! {
    /// Transposes a matrix of `rows` rows and 32 columns with tensor copies and multicast: the four
    /// CTAs of a cluster share a tile of 64 rows, each fetches 16 of its rows for all four, and each
    /// writes 8 of its columns.
    ///
    /// # Safety
    /// `map` describes the matrix, with a box of 16 rows and 32 columns; `out` has as many elements;
    /// `rows` is a multiple of 64, and the grid has four blocks for each 64 rows.
    #[cluster_dim(CLUSTER_SIZE, 1, 1)]
    pub fn transpose_multicast(map: GridConstant<TensorMap>, out: *mut f32, rows: u32) {
        let tile: *mut Row = TILE.as_mut_ptr().cast();
        let full = FULL.as_mut_ptr();

        let thread = get_sreg_tid_x();
        let rank = get_sreg_cluster_ctarank();
        let first_row = get_sreg_clusterid_x() * TILE_ROWS;

        if thread == 0 {
            mbarrier_init(full, 1);
            fence_mbarrier_init(sem_release, scope_cluster);
        }
        barrier_cluster_arrive!(sem_release);
        barrier_cluster_wait!(sem_acquire);

        if thread == 0 {
            let bytes = TILE_ROWS * size_of::<Row>() as u32;
            let _ = mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, full, bytes);
            let coords = [0, (first_row + rank * SLICE_ROWS) as i32];
            let everybody: u16 = (1 << CLUSTER_SIZE) - 1;
            let slice = tile.add((rank * SLICE_ROWS) as usize);
            cp_async_bulk_tensor!(
                space_cluster, space_global, slice, map.as_ptr(), coords, full, everybody
            );
        }
        while !mbarrier_try_wait_parity!(sem_acquire, scope_cluster, full, 0) {}

        let mut i = thread;
        while i < SLICE_COLUMNS * TILE_ROWS {
            let column = rank * SLICE_COLUMNS + i / TILE_ROWS;
            let row = i % TILE_ROWS;
            *out.add((column * rows + first_row + row) as usize) =
                *tile.add(row as usize).cast::<f32>().add(column as usize);
            i += get_sreg_ntid_x();
        }

        // No CTA ends while another's copy may still write to its shared memory.
        barrier_cluster_arrive!(sem_relaxed);
        barrier_cluster_wait!();
    }
}

panic_trap!();
