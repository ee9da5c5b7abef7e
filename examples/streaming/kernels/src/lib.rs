//! Arrays streamed through shared memory by the copy engine: `y = x`, `y = a·x`, and the sum of x.
//!
//! Every warp streams on its own, as [`stream`] says.

#![no_std]
#![feature(abi_ptx, asm_experimental_arch)]

mod stream;

use core::arch::asm;
use core::mem;
use core::sync::atomic::{AtomicU32, Ordering};

use cuda_ptx::*;

use stream::{Array, Quad, Stream, Tile, warp_sync};

panic_trap!();

const WARP: u32 = 32;
const ALL_LANES: u32 = u32::MAX;

/// Loads every tile, has `change` change it in place, and stores it.
#[inline(always)]
unsafe fn map(output: *mut u8, input: Array, change: impl Fn(&Tile, u32)) {
    let mut stream = Stream::start(input);
    let mut storing = None;
    while let Some(tile) = stream.next() {
        change(&tile, stream.lane);
        if stream.lane == 0 {
            cp_async_bulk(
                space_global,
                space_shared,
                output.add(tile.offset as usize),
                tile.data,
                tile.bytes,
            );
            cp_async_bulk_commit_group();
            // The store before this one has read its buffer, which is empty now.
            cp_async_bulk_wait_group_read(n32::<1>);
            drop(storing.replace(tile.slot));
        } else {
            mem::forget(tile.slot);
        }
        stream.load();
    }
    cp_async_bulk_wait_group(n32::<0>);
}

#[inline(always)]
unsafe fn scale<T: Element>(output: *mut u8, input: Array, factor: u32) {
    map(output, input, |tile, lane| unsafe {
        for quad in tile.quads(lane) {
            *quad = Quad((*quad).0.map(|register| T::scale(register, factor)));
        }
        // The copy engine is to see what all lanes wrote.
        fence_proxy_async_space(space_shared);
        warp_sync();
    });
}

/// Sums every tile in registers, all lanes of a warp, and all warps: the last one to finish adds up
/// what the others have left in `partials`, always in the same order.
#[inline(always)]
unsafe fn sum<T: Element>(total: *mut f32, partials: *mut f32, finished: *const AtomicU32, input: Array) {
    let mut stream = Stream::start(input);
    let mut sums = [0.0; 4];
    while let Some(tile) = stream.next() {
        for quad in tile.quads(stream.lane) {
            let quad = (*quad).0;
            for i in 0..4 {
                sums[i] += T::sum(quad[i]);
            }
        }
        warp_sync();
        if stream.lane == 0 {
            tile.slot.release();
        } else {
            mem::forget(tile.slot);
        }
        stream.load();
    }
    let sum = warp_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));

    let warps = get_sreg_ntid_x() / WARP;
    let warp = get_sreg_ctaid_x() * warps + get_sreg_tid_x() / WARP;
    let count = get_sreg_nctaid_x() * warps;
    let mut before = 0;
    if stream.lane == 0 {
        *partials.add(warp as usize) = sum;
        fence(sem_acq_rel, scope_gpu);
        before = (*finished).fetch_add(1, Ordering::Relaxed);
    }
    if shfl_sync_idx(before, 0, WARP - 1, ALL_LANES) == count - 1 {
        // By way of lane 0, which has seen all others finish.
        fence(sem_acq_rel, scope_gpu);
        warp_sync();
        let mut sum = 0.0;
        for i in (stream.lane..count).step_by(WARP as usize) {
            sum += *partials.add(i as usize);
        }
        let sum = warp_sum(sum);
        if stream.lane == 0 {
            *total = sum;
            // For the next launch.
            (*finished).store(0, Ordering::Relaxed);
        }
    }
}

/// The type of the array's elements.
trait Element {
    /// Multiplies what is in a register by what is in `factor`.
    fn scale(register: u32, factor: u32) -> u32;
    /// The sum of what is in a register.
    fn sum(register: u32) -> f32;
}

struct Float;

impl Element for Float {
    fn scale(register: u32, factor: u32) -> u32 {
        (f32::from_bits(register) * f32::from_bits(factor)).to_bits()
    }

    fn sum(register: u32) -> f32 {
        f32::from_bits(register)
    }
}

/// Two of them are in a register.
struct Bfloat16;

impl Element for Bfloat16 {
    fn scale(register: u32, factor: u32) -> u32 {
        let product;
        // SAFETY: arithmetic on registers.
        unsafe {
            asm!("mul.rn.bf16x2 {}, {}, {};", out(reg32) product, in(reg32) register, in(reg32) factor,
                options(pure, nomem, nostack));
        }
        product
    }

    fn sum(register: u32) -> f32 {
        // A bf16 is the upper half of an f32.
        f32::from_bits(register << 16) + f32::from_bits(register & 0xffff_0000)
    }
}

/// The sum of a number of every lane.
unsafe fn warp_sum(mut x: f32) -> f32 {
    for distance in [16, 8, 4, 2, 1] {
        x += shfl_sync_bfly(x, distance, WARP - 1, ALL_LANES);
    }
    x
}

kernel! {
    /// `output = input`, an array of so many bytes, a multiple of 16.
    ///
    /// # Safety
    /// As for all kernels here: `tile_bytes` is a multiple of 16, `span_bytes` one of `tile_bytes`, and the
    /// dynamic shared memory has room for three tiles and 48 bytes for each warp.
    pub fn copy(output: *mut u8, input: *const u8, bytes: u64, tile_bytes: u32, span_bytes: u32) {
        unsafe { map(output, Array { input, bytes, tile_bytes, span_bytes }, |_, _| {}) }
    }

    /// `output = factor · input` in f32, whose bits `factor` has.
    pub fn scale_f32(output: *mut u8, input: *const u8, bytes: u64, tile_bytes: u32, span_bytes: u32, factor: u32) {
        unsafe { scale::<Float>(output, Array { input, bytes, tile_bytes, span_bytes }, factor) }
    }

    /// The same in bf16; the factor is twice in its register.
    pub fn scale_bf16(output: *mut u8, input: *const u8, bytes: u64, tile_bytes: u32, span_bytes: u32, factor: u32) {
        unsafe { scale::<Bfloat16>(output, Array { input, bytes, tile_bytes, span_bytes }, factor) }
    }

    /// The sum of an array of f32.
    ///
    /// # Safety
    /// `partials` has room for a number for each warp of the grid, and `finished` is 0, as it is afterwards.
    pub fn sum_f32(total: *mut f32, partials: *mut f32, finished: *mut u32, input: *const u8, bytes: u64, tile_bytes: u32, span_bytes: u32) {
        unsafe { sum::<Float>(total, partials, finished.cast(), Array { input, bytes, tile_bytes, span_bytes }) }
    }

    /// The sum of an array of bf16, in f32.
    pub fn sum_bf16(total: *mut f32, partials: *mut f32, finished: *mut u32, input: *const u8, bytes: u64, tile_bytes: u32, span_bytes: u32) {
        unsafe { sum::<Bfloat16>(total, partials, finished.cast(), Array { input, bytes, tile_bytes, span_bytes }) }
    }
}
