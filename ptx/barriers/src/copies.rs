//! `memcpy_async` for every alignment and group.

use cuda_ptx::barrier::{
    AlignedSize, Barrier, Group, Size, ThisBlock, ThisThread, ThisWarp, memcpy_async,
    memcpy_async_group,
};
use cuda_ptx::{get_sreg_ntid_x, get_sreg_tid_x, kernel, shared};

use crate::sync;

/// Bytes of the tile.
const LEN: usize = 4096;

shared! {
    static BAR: Barrier;
    #[align(128)]
    static TILE: [u8; LEN];
}

/// 16 bytes with the alignment of one bulk copy's chunk.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub struct Sixteen {
    _bytes: [u8; 16],
}

/// Lets all threads copy, each group for itself: groups of one warp or thread copy parts of `size`
/// bytes that follow one another with a distance of `stride`.
#[inline(always)]
unsafe fn copy<T: Copy, Z: Size>(
    group: impl Group,
    number: u32,
    stride: u32,
    size: Z,
    input: *const u8,
    output: *mut u8,
) {
    let (rank, threads) = (get_sreg_tid_x(), get_sreg_ntid_x());
    let tile = TILE.as_mut_ptr().cast::<u8>();
    if rank == 0 {
        Barrier::init(BAR.as_mut_ptr(), threads);
    }
    // What the copies do not write stays as it is.
    let mut k = rank as usize;
    while k < LEN {
        *tile.add(k) = 0xee;
        k += threads as usize;
    }
    sync();
    let bar: &Barrier = Barrier::from_ptr(BAR.as_mut_ptr());
    let at = (number * stride) as usize;
    memcpy_async_group(&group, tile.add(at).cast::<T>(), input.add(at).cast::<T>(), size, bar);
    bar.arrive_and_wait();
    let mut k = rank as usize;
    while k < LEN {
        *output.add(k) = *tile.add(k);
        k += threads as usize;
    }
}

macro_rules! copies {
    ($($of_thread:ident, $of_warp:ident, $of_block:ident: $type:ty;)*) => {$(
        kernel! {
            /// Each thread copies `size` bytes.
            pub fn $of_thread(stride: u32, size: u32, input: *const u8, output: *mut u8) {
                copy::<$type, _>(ThisThread, get_sreg_tid_x(), stride, size, input, output);
            }

            /// Each warp copies `size` bytes.
            pub fn $of_warp(stride: u32, size: u32, input: *const u8, output: *mut u8) {
                copy::<$type, _>(ThisWarp, get_sreg_tid_x() / 32, stride, size, input, output);
            }

            /// The block copies `size` bytes.
            pub fn $of_block(_stride: u32, size: u32, input: *const u8, output: *mut u8) {
                copy::<$type, _>(ThisBlock, 0, 0, size, input, output);
            }
        }
    )*};
}
copies! {
    copy_1_thread, copy_1_warp, copy_1_block: u8;
    copy_2_thread, copy_2_warp, copy_2_block: u16;
    copy_4_thread, copy_4_warp, copy_4_block: u32;
    copy_8_thread, copy_8_warp, copy_8_block: u64;
    copy_16_thread, copy_16_warp, copy_16_block: Sixteen;
}

kernel! {
    /// As `copy_16_block`, with bytes that are promised to be aligned.
    pub fn copy_aligned_block(_stride: u32, size: u32, input: *const u8, output: *mut u8) {
        let size = AlignedSize::<16>(size as usize);
        copy::<u8, _>(ThisBlock, 0, 0, size, input, output);
    }

    /// The copy does not overtake the stores to its destination, without a fence of the caller's.
    pub fn copy_over_stores(input: *const u8, output: *mut u8) {
        let tile = TILE.as_mut_ptr().cast::<u8>();
        Barrier::init(BAR.as_mut_ptr(), 1);
        let bar: &Barrier = Barrier::from_ptr(BAR.as_mut_ptr());
        for k in 0..64 {
            *tile.add(k) = 0xee;
        }
        memcpy_async(tile, input, AlignedSize::<16>(64), bar);
        bar.arrive_and_wait();
        for k in 0..64 {
            *output.add(k) = *tile.add(k);
        }
    }
}
