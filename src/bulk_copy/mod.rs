//! Bulk and tensor copies that `cuda::ptx` lacks: with a cache policy, in im2col modes, relaxed, and into
//! the memory of several GPUs.
//!
//! Each has the name and the arguments of its relative in [`cp_async_bulk`](mod@crate::cp_async_bulk),
//! [`cp_async_bulk_tensor`](mod@crate::cp_async_bulk_tensor) or
//! [`cp_reduce_async_bulk`](mod@crate::cp_reduce_async_bulk), with what PTX adds to the instruction:
//!
//! | in the name | adds |
//! |---|---|
//! | `L2_cache_hint` | `cache_policy`, in the place that PTX has for it: the last, but for a `byte_mask` |
//! | `im2col`, `im2col_w`, `im2col_w_128` | `im2col_info`, behind the mbarrier |
//! | `im2col_no_offs`, `im2col_no_offs_w` | nothing: stores and reductions have no offsets |
//! | `sem_scope` | `sem_relaxed` and a scope, which come first |
//! | `multimem` | a multicast address as `dst_mem` |
//!
//! How to wait for them is said in the modules of the relatives.
//!
//! # Cache policies
//!
//! A policy comes from [`createpolicy_fractional_L2_evict_first`](crate::createpolicy_fractional_L2_evict_first) and its
//! siblings in [`cache`](mod@crate::cache). It changes no result, but which lines stay in the L2 cache:
//!
//! ```
//! # unsafe fn _syncthreads() {}
//! use cuda_ptx::*;
//!
//! shared! { static BARRIER: u64; #[align(128)] static TILE: [f32; 1024]; }
//!
//! kernel! {
//!     /// Each CTA of 32 threads doubles a tile of 32 by 32 elements, which nobody needs again.
//!     pub fn double(input: GridConstant<TensorMap>, output: GridConstant<TensorMap>) { unsafe {
//!         let (bar, tile) = (BARRIER.as_mut_ptr(), TILE.as_mut_ptr().cast::<f32>());
//!         let corner = [get_sreg_ctaid_x() as i32 * 32, get_sreg_ctaid_y() as i32 * 32];
//!         let i = get_sreg_tid_x() as usize;
//!         let policy = createpolicy_fractional_L2_evict_first(1.0);
//!         if i == 0 {
//!             mbarrier_init(bar, 1);
//!             mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, bar, 4096);
//!             cp_async_bulk_tensor_L2_cache_hint_bar(
//!                 space_shared, space_global, tile, input.as_ptr(), corner, bar, policy,
//!             );
//!         }
//!         _syncthreads(); // of core::arch::nvptx
//!         while !mbarrier_try_wait_parity(bar, 0) {}
//!         for row in 0..32 {
//!             *tile.add(row * 32 + i) *= 2.0;
//!         }
//!         fence_proxy_async_space(space_shared);
//!         _syncthreads();
//!         if i == 0 {
//!             cp_async_bulk_tensor_L2_cache_hint(
//!                 space_global, space_shared, output.as_ptr(), corner, tile.cast_const(), policy,
//!             );
//!             cp_async_bulk_commit_group();
//!             cp_async_bulk_wait_group_read(n32::<0>);
//!         }
//!     } }
//! }
//! ```
//!
//! # Im2col modes
//!
//! A tensor of 3 to 5 dimensions is a batch of images: `N`, `H`, `W` and `C` of four dimensions, where `C`, the
//! channels, is innermost. Its map, which the host encodes for these modes, has the corners of a box of pixels, how many
//! channels of a pixel are copied, and how many pixels. A copy begins at the pixel of `tensor_coords`, goes on along `W`
//! until the box ends, then to the next row of the box, and to the next image after the last row. The offsets
//! of `im2col_info` are added to each pixel's coordinates. So one copy gathers what one tap of a convolution filter
//! reads for many outputs:
//!
//! ```
//! use cuda_ptx::*;
//!
//! /// Starts copies of what each of the 9 taps of a filter reads, into tiles of `len` bytes.
//! ///
//! /// # Safety
//! ///
//! /// As the copies demand; `map` is of images of four dimensions.
//! unsafe fn gather(tiles: *mut u8, len: usize, map: *const TensorMap, [c, w, h, n]: [i32; 4], bar: *mut u64) {
//!     for (tap, (y, x)) in (0..3).flat_map(|y| (0..3).map(move |x| (y, x))).enumerate() {
//!         unsafe {
//!             cp_async_bulk_tensor_im2col(
//!                 space_shared, space_global, tiles.add(tap * len), map, [c, w, h, n], bar, [x, y],
//!             );
//!         }
//!     }
//! }
//! ```
//!
//! The modes along `W` stay in a row. `im2col_w` takes as many pixels as the map says, and a halo of further ones;
//! `im2col_w_128` takes 128, and a halo behind each 32.
//!
//! # What the types rule out
//!
//! Coordinates that a mode lacks:
//!
//! ```compile_fail,E0277
//! # use cuda_ptx::*;
//! # unsafe fn f(tile: *mut u8, map: *const TensorMap, bar: *mut u64) { unsafe {
//! cp_async_bulk_tensor_im2col(space_shared, space_global, tile, map, [0, 0], bar, []);
//! # } }
//! ```
//!
//! A multicast into the shared memory of one CTA:
//!
//! ```compile_fail,E0277
//! # use cuda_ptx::*;
//! # unsafe fn f(tile: *mut u8, map: *const TensorMap, bar: *mut u64, policy: u64) { unsafe {
//! cp_async_bulk_tensor_L2_cache_hint_bar_cta_mask(space_shared, space_global, tile, map, [0], bar, 3, policy);
//! # } }
//! ```

// Qualifiers in names are spelled as PTX spells them, and functions have as many arguments as the instructions.
#![allow(non_snake_case, clippy::too_many_arguments)]

/// What arguments mean.
macro_rules! docs {
    (im2col_info) => {
        "- `im2col_info`: in the mode `im2col` an offset along each dimension of an image, `W` first; in the modes \
         along `W` the halo, in pixels, and the offset along `W`."
    };
    (_cta_group) => {
        "- `cta_group`: whether `bar` may be in the other CTA of a pair."
    };
    (_report_mechanism) => {
        "- `report_mechanism`: what is checked of the data and reported to the mbarrier object."
    };
    (_scope) => {
        "- `scope`: the threads for which the accesses are single."
    };
    (ignored) => {
        "- `ignore_bytes_left`, `ignore_bytes_right`: bytes at the start and at the end of the source that may lie out \
         of bounds and are not read, up to 15."
    };
    (bar) => {
        "- `bar`: mbarrier object beside the destination, which counts off `size` bytes when they are written."
    };
    (cta_mask) => {
        "- `cta_mask`: bit `i` selects the CTA of rank `i` in the cluster: data and signal go to the same offset in \
         its shared memory."
    };
    (cache_policy) => {
        "- `cache_policy`: how the L2 cache is to keep the data, as `createpolicy` makes it."
    };
    (byte_mask) => {
        "- `byte_mask`: bit `i` says whether byte `i` of each 16 bytes is written."
    };
}

/// `{{{a}, {b}}}`.
// Off the GPU there is no assembly.
#[cfg_attr(not(target_arch = "nvptx64"), allow(unused_macros))]
macro_rules! vector {
    ($first:ident $($name:ident)*) => {
        concat!("{{{", stringify!($first), "}", $(", {", stringify!($name), "}",)* "}}")
    };
}

mod bulk;
mod form;
mod load;
mod operands;
mod overridden;
mod prefetch;
mod store;

pub use bulk::*;
pub use form::{
    Coordinates, CtaGroup, Destination, Multicast, Reduction, Report, Scope, SharedReduction,
    SharedScope, StoredAt, TensorOperation,
};
pub use load::*;
pub use overridden::*;
pub use prefetch::*;
pub use store::*;
