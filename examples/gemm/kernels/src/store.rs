//! C leaves the registers through boxes of 64 rows of 128 bytes in shared memory, which tensor copies
//! store while the warpgroup goes on.

use cuda_ptx::*;

use crate::{A_BYTES, B_BYTES, ROWS, SLAB, STAGES, Sums, TILES, WARPGROUP};

/// Boxes of a warpgroup: one is filled while the other is stored.
const BOXES: u32 = 2;
const BOX_BYTES: u32 = ROWS * SLAB;

/// Stores the sums of a warpgroup, whose first one belongs at this column and row of C, as `to_pair` makes
/// two neighbours elements of C.
#[inline(always)]
pub unsafe fn store<P>(
    sums: &mut Sums,
    warpgroup: u32,
    c: *const TensorMap,
    [column, row]: [u32; 2],
    to_pair: impl Fn([f32; 2]) -> P,
) {
    let thread = get_sreg_tid_x() % WARPGROUP;
    let (lane, warp) = (thread % 32, thread / 32);
    let first =
        TILES.as_mut_ptr().add((STAGES * (A_BYTES + B_BYTES) + warpgroup * BOXES * BOX_BYTES) as usize);
    let synchronize = || unsafe { barrier_cta_sync_aligned_threads(1 + warpgroup, WARPGROUP) };
    let pair_bytes = size_of::<P>() as u32;
    // Pairs of a thread in a box.
    let pairs = SLAB / pair_bytes / 2;
    sums.for_each_pair(
        #[inline(always)]
        |index, pair| {
            let (number, index) = (index / 2 / pairs, index / 2 % pairs);
            let buffer = first.add((number % BOXES * BOX_BYTES) as usize);
            if index == 0 {
                // The copy before the last one has read the box.
                if thread == 0 {
                    cp_async_bulk_wait_group_read(n32::<{ BOXES as i32 - 1 }>);
                }
                synchronize();
            }
            // Each pair is in 8 rows of 8 columns, then in the 8 rows below, then in the next columns.
            let line = warp * 16 + index % 2 * 8 + lane / 4;
            let byte = (index / 2 * 4 + lane % 4) * pair_bytes;
            let swizzled = byte ^ (lane / 4 * 16);
            *buffer.add((line * SLAB + swizzled) as usize).cast() = to_pair(pair);
            if index == pairs - 1 {
                fence_proxy_async_space(space_shared);
                synchronize();
                if thread == 0 {
                    let corner = [column + number * pairs * 4, row].map(|x| x as i32);
                    cp_async_bulk_tensor(space_global, space_shared, c, corner, buffer);
                    cp_async_bulk_commit_group();
                }
            }
        },
    );
}
