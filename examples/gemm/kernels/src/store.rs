//! C leaves the registers through boxes of 64 rows of 128 bytes in shared memory, which tensor copies
//! store while the warpgroup goes on.

use core::arch::asm;

use cuda_ptx::warpgroup::Accumulator;
use cuda_ptx::*;

use crate::ring::SLAB;
use crate::{ROWS, WARPGROUP};

/// Boxes of a warpgroup: one is filled while the other is stored.
const BOXES: u32 = 2;
const BOX_BYTES: u32 = ROWS * SLAB;

/// A warpgroup's boxes.
pub struct Boxes {
    first: *mut u8,
    warpgroup: u32,
}

impl Boxes {
    /// Those of a warpgroup, behind those of the ones before.
    #[inline(always)]
    pub unsafe fn new(all: *mut u8, warpgroup: u32) -> Self {
        Self { first: all.add((warpgroup * BOXES * BOX_BYTES) as usize), warpgroup }
    }

    /// Stores the sums of the warpgroup, whose first one belongs at `row` and `column` of C.
    #[inline(always)]
    pub unsafe fn store<T: Output>(
        &mut self,
        sums: &mut Accumulator<f32, 128>,
        c: *const TensorMap,
        row: u32,
        column: u32,
    ) {
        let thread = get_sreg_tid_x() % WARPGROUP;
        let (lane, warp) = (thread % 32, thread / 32);
        let place = T::place(lane, warp * 16);
        let mut registers = [0; 4];
        sums.for_each_pair(
            #[inline(always)]
            |index, pair| {
                // Each pair is in 8 rows of 8 columns, then in the 8 rows below, then in the next columns.
                let pairs = T::COLUMNS / 4;
                let (number, within) = (index / 2 / pairs, index / 2 % pairs);
                let buffer = self.first.add((number % BOXES * BOX_BYTES) as usize);
                if within == 0 {
                    self.begin(thread);
                }
                T::put(buffer, place, within, pair, &mut registers);
                if within == pairs - 1 {
                    let corner = [column + number * T::COLUMNS, row];
                    self.end(thread, buffer, c, corner);
                }
            },
        );
    }

    /// Waits until the box that is next has been read by its last copy.
    #[inline(always)]
    unsafe fn begin(&self, thread: u32) {
        if thread == 0 {
            cp_async_bulk_wait_group_read(n32::<{ BOXES as i32 - 1 }>);
        }
        self.synchronize();
    }

    /// Stores a box; what is outside of C is left out.
    #[inline(always)]
    unsafe fn end(&self, thread: u32, buffer: *mut u8, c: *const TensorMap, corner: [u32; 2]) {
        fence_proxy_async_space(space_shared);
        self.synchronize();
        if thread == 0 {
            cp_async_bulk_tensor(space_global, space_shared, c, corner.map(|x| x as i32), buffer);
            cp_async_bulk_commit_group();
        }
    }

    /// The threads of this warpgroup wait for one another.
    #[inline(always)]
    unsafe fn synchronize(&self) {
        asm!("bar.sync {}, {};", in(reg32) self.warpgroup + 1, const WARPGROUP, options(nostack));
    }
}

/// The type of the elements of C.
pub trait Output {
    /// Columns of a box.
    const COLUMNS: u32;
    /// Where this thread writes to boxes: the byte of its row, and the chunk of 16 bytes there with the
    /// swizzle of that row.
    fn place(lane: u32, first_row: u32) -> (u32, u32);
    /// Writes a pair to the box, or with the last of four.
    unsafe fn put(buffer: *mut u8, place: (u32, u32), index: u32, pair: [f32; 2], registers: &mut [u32; 4]);
}

/// Four matrices of 8 by 8 are stored at once, each thread giving the address of a row.
pub struct Bf16;

impl Output for Bf16 {
    const COLUMNS: u32 = 64;

    #[inline(always)]
    fn place(lane: u32, first_row: u32) -> (u32, u32) {
        ((first_row + lane % 16) * SLAB, lane / 16 ^ lane % 8)
    }

    #[inline(always)]
    unsafe fn put(
        buffer: *mut u8,
        (row, chunk): (u32, u32),
        index: u32,
        [low, high]: [f32; 2],
        registers: &mut [u32; 4],
    ) {
        let packed;
        asm!("cvt.rn.bf16x2.f32 {}, {}, {};", out(reg32) packed, in(reg32) high, in(reg32) low, options(pure, nomem, nostack));
        registers[index as usize % 4] = packed;
        if index % 4 == 3 {
            let chunk = chunk ^ index / 4 * 2;
            stmatrix_m8n8(buffer.add((row + chunk * 16) as usize).cast::<u16>(), *registers);
        }
    }
}

/// Pairs are stored as they are.
pub struct F32;

impl Output for F32 {
    const COLUMNS: u32 = 32;

    #[inline(always)]
    fn place(lane: u32, first_row: u32) -> (u32, u32) {
        let (row, pair) = (lane / 4, lane % 4);
        ((first_row + row) * SLAB + pair % 2 * 8, pair / 2 ^ row)
    }

    #[inline(always)]
    unsafe fn put(buffer: *mut u8, (row, chunk): (u32, u32), index: u32, pair: [f32; 2], _: &mut [u32; 4]) {
        let chunk = chunk ^ index / 2 * 2;
        let place = row + index % 2 * 8 * SLAB + chunk * 16;
        let [low, high] = pair.map(|x| u64::from(x.to_bits()));
        buffer.add(place as usize).cast::<u64>().write(high << 32 | low);
    }
}
