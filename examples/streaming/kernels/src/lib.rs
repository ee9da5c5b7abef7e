//! Arrays streamed through shared memory by the copy engine: `y = x`, `y = a·x`, and the sum of x.
//!
//! Every warp streams on its own, as [`stream`] says.

#![no_std]
#![feature(abi_ptx)]

mod stream;

use core::sync::atomic::{AtomicU32, Ordering};

use cuda_ptx::*;

use stream::{Array, Quad, Stream, Tile, share, warp_of_grid};

panic_trap!();

const WARP: u32 = 32;
const ALL_LANES: u32 = u32::MAX;

/// Loads every tile, has `change` change it in place, and stores it.
///
/// Tiles go to whoever is free, in the order of their addresses: `next` counts them. All warps together
/// are then in one small part of each array at any time, which the memory is fastest with.
#[inline(always)]
unsafe fn map(output: *mut u8, input: Array, next: *mut u32, change: impl Fn(&Tile)) {
    let next = AtomicU32::from_ptr(next);
    let tiles = input.bytes.div_ceil(u64::from(input.tile_bytes).max(1)) as u32;
    let draw = move || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        // Every warp draws once behind the last tile; the last one to do so leaves 0 for the next launch.
        if number == tiles + warp_of_grid()[1] - 1 {
            next.store(0, Ordering::Relaxed);
        }
        number
    };
    let mut stream = Stream::start(input, draw);
    let mut storing = None;
    while let Some(tile) = stream.next() {
        change(&tile);
        // All lanes are ready with the tile.
        bar_warp_sync(ALL_LANES);
        if stream.lane == 0 {
            let place = output.add(tile.offset as usize);
            cp_async_bulk(space_global, space_shared, place, tile.data, tile.bytes);
            cp_async_bulk_commit_group();
            // The store before this one has read its buffer, which is empty now.
            cp_async_bulk_wait_group_read(n32::<1>);
            drop(storing.replace(tile.slot));
        } else {
            tile.slot.leave();
        }
        stream.load();
    }
    cp_async_bulk_wait_group(n32::<0>);
}

/// Changes every register of every tile.
#[inline(always)]
unsafe fn scale(output: *mut u8, input: Array, next: *mut u32, scaled: impl Fn(u32) -> u32) {
    map(output, input, next, |tile| unsafe {
        share::<Quad, 4>(tile.data.cast(), tile.bytes / 16, |place, Quad(quad)| {
            *place = Quad(quad.map(&scaled));
        });
        // The copy engine is to see what this lane wrote.
        fence_proxy_async_space(space_shared);
    });
}

/// Sums every tile in registers, all lanes of a warp, and all warps: the last one to finish adds up
/// what the others have left in `partials`. Every launch adds in the same order. `value` is the sum of
/// what is in a register.
#[inline(always)]
unsafe fn sum(
    [total, partials]: [*mut f32; 2],
    finished: *mut u32,
    input: Array,
    value: impl Fn(u32) -> f32,
) {
    let finished = AtomicU32::from_ptr(finished);
    let [warp, count] = warp_of_grid();
    let mut number = warp.wrapping_sub(count);
    let draw = move || {
        number = number.wrapping_add(count);
        number
    };
    let mut stream = Stream::start(input, draw);
    let mut sums = [0.0; 4];
    while let Some(tile) = stream.next() {
        share::<Quad, 4>(tile.data.cast(), tile.bytes / 16, |_, Quad(quad)| {
            sums = [0, 1, 2, 3].map(|i| sums[i] + value(quad[i]));
        });
        bar_warp_sync(ALL_LANES);
        match stream.lane {
            0 => tile.slot.release(),
            _ => tile.slot.leave(),
        }
        stream.load();
    }
    let sum = warp_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));

    let mut before = 0;
    if stream.lane == 0 {
        *partials.add(warp as usize) = sum;
        fence(sem_acq_rel, scope_gpu);
        before = finished.fetch_add(1, Ordering::Relaxed);
    }
    if shfl_sync_idx(before, 0, WARP - 1, ALL_LANES) == count - 1 {
        // By way of lane 0, which has seen all others finish.
        fence(sem_acq_rel, scope_gpu);
        bar_warp_sync(ALL_LANES);
        let mut sum = 0.0;
        share::<f32, 8>(partials, count, |_, partial| sum += partial);
        let sum = warp_sum(sum);
        if stream.lane == 0 {
            *total = sum;
            // For the next launch.
            finished.store(0, Ordering::Relaxed);
        }
    }
}

/// The two bf16 in a register: each is the upper half of an f32.
fn halves(register: u32) -> [f32; 2] {
    [register << 16, register & 0xffff_0000].map(f32::from_bits)
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
    /// As for all kernels here: `tile_bytes` is a multiple of 16, and the dynamic shared memory has room for
    /// four tiles and 80 bytes for each warp. `next` is 0, as it is afterwards.
    pub fn copy(output: *mut u8, input: *const u8, bytes: u64, tile_bytes: u32, next: *mut u32) {
        unsafe { map(output, Array { input, bytes, tile_bytes }, next, |_| {}) }
    }

    /// `output = factor · input` in f32.
    pub fn scale_f32(output: *mut u8, input: *const u8, bytes: u64, tile_bytes: u32, next: *mut u32, factor: f32) {
        unsafe {
            scale(output, Array { input, bytes, tile_bytes }, next, |x| (f32::from_bits(x) * factor).to_bits())
        }
    }

    /// The same in bf16, which holds `factor`.
    // With no bound, ptxas saves registers and has one load after the other.
    #[launch_bounds(512, 1)]
    pub fn scale_bf16(output: *mut u8, input: *const u8, bytes: u64, tile_bytes: u32, next: *mut u32, factor: f32) {
        unsafe {
            scale(output, Array { input, bytes, tile_bytes }, next, |x| {
                // Products of two numbers of 8 bits are exact in f32: rounded once.
                let [low, high] = halves(x).map(|x| x * factor);
                cvt_rn_bf16x2_f32(high, low).to_bits()
            })
        }
    }

    /// The sum of an array of f32.
    ///
    /// # Safety
    /// `partials` has room for a number for each warp of the grid, and `finished` is 0, as it is afterwards.
    pub fn sum_f32(total: *mut f32, partials: *mut f32, finished: *mut u32, input: *const u8, bytes: u64, tile_bytes: u32) {
        unsafe { sum([total, partials], finished, Array { input, bytes, tile_bytes }, f32::from_bits) }
    }

    /// The sum of an array of bf16, in f32.
    #[launch_bounds(512, 1)]
    pub fn sum_bf16(total: *mut f32, partials: *mut f32, finished: *mut u32, input: *const u8, bytes: u64, tile_bytes: u32) {
        unsafe {
            sum([total, partials], finished, Array { input, bytes, tile_bytes }, |x| halves(x)[0] + halves(x)[1])
        }
    }
}
