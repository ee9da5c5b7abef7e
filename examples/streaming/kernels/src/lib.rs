//! Arrays streamed through shared memory by the copy engine: `y = x`, `y = a·x`, and the sum of x.
//!
//! Every warp streams on its own. It owns a ring of tiles in shared memory, keeps all of them but the
//! one in use loading by bulk copies, and takes every n-th tile of the array.

#![no_std]
#![feature(abi_ptx, asm_experimental_arch)]

use core::arch::asm;
use core::mem;
use core::sync::atomic::{AtomicU32, Ordering};

use cuda_ptx::barrier::{Block, Consumer, FullSlot, Pipeline, Producer};
use cuda_ptx::*;

panic_trap!();

const WARP: u32 = 32;
const ALL_LANES: u32 = u32::MAX;

extern_shared! {
    /// The rings of all warps, and behind them their pipelines.
    #[align(128)]
    static SHARED: [u8];
}

/// What a lane loads and stores at once.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Quad([u32; 4]);

/// One warp's stream of tiles.
struct Stream<'p, const STAGES: usize> {
    producer: Producer<'p, STAGES>,
    consumer: Consumer<'p, STAGES>,
    ring: *mut u8,
    tile_bytes: u32,
    lane: u32,
    input: *const u8,
    bytes: u64,
    policy: u64,
    /// Where in the array the next tile to load, and the next one to use, begin.
    loading: u64,
    using: u64,
    /// From one tile of this warp to the next, in bytes.
    step: u64,
}

/// A tile that has arrived.
struct Tile<'p> {
    slot: FullSlot<'p, Block>,
    data: *mut u8,
    bytes: u32,
    /// Where in the array it begins.
    offset: u64,
}

impl<'p, const STAGES: usize> Stream<'p, STAGES> {
    /// Sets up this warp's ring, and fills all of its buffers but one, which the loop's first `load`
    /// fills.
    unsafe fn start(input: *const u8, bytes: u64, tile_bytes: u32, hints: u32) -> Self {
        let (lane, warp) = (get_sreg_laneid(), get_sreg_tid_x() / WARP);
        let warps = get_sreg_ntid_x() / WARP;
        let ring_bytes = STAGES as u32 * tile_bytes;
        let shared = SHARED.as_mut_ptr();
        let pipelines = shared.add((warps * ring_bytes) as usize).cast::<Pipeline<STAGES>>();
        let pipeline = pipelines.add(warp as usize);
        if lane == 0 {
            Pipeline::init(pipeline, 1, 1);
        }
        warp_sync();
        let first = u64::from(get_sreg_ctaid_x() * warps + warp) * u64::from(tile_bytes);
        let mut stream = Self {
            producer: Pipeline::producer(pipeline),
            consumer: Pipeline::consumer(pipeline),
            ring: shared.add((warp * ring_bytes) as usize),
            tile_bytes,
            lane,
            input,
            bytes,
            policy: policy(hints & 1),
            loading: first,
            using: first,
            step: u64::from(get_sreg_nctaid_x() * warps) * u64::from(tile_bytes),
        };
        for _ in 0..STAGES - 1 {
            stream.load();
        }
        stream
    }

    /// Loads one more tile, if there is one, as soon as a buffer is empty.
    unsafe fn load(&mut self) {
        if self.lane == 0 && self.loading < self.bytes {
            let bytes = self.bytes_at(self.loading);
            let source = self.input.add(self.loading as usize);
            let slot = self.producer.acquire();
            let buffer = self.buffer(slot.stage());
            let full = slot.commit_tx(bytes);
            asm!("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [{}], [{}], {}, [{}], {};",
                in(reg32) address::as_ptr_smem(buffer), in(reg64) address::as_ptr_gmem(source), in(reg32) bytes,
                in(reg32) address::as_ptr_smem(full), in(reg64) self.policy, options(nostack));
        }
        self.loading += self.step;
    }

    /// Waits for the next tile, if there is one.
    unsafe fn next(&mut self) -> Option<Tile<'p>> {
        let offset = self.using;
        if offset >= self.bytes {
            return None;
        }
        self.using += self.step;
        let slot = self.consumer.wait();
        let data = self.buffer(slot.stage());
        Some(Tile { slot, data, bytes: self.bytes_at(offset), offset })
    }

    unsafe fn buffer(&self, stage: usize) -> *mut u8 {
        self.ring.add(stage * self.tile_bytes as usize)
    }

    /// The size of the tile at an offset; the last one of the array may be shorter.
    fn bytes_at(&self, offset: u64) -> u32 {
        (self.bytes - offset).min(u64::from(self.tile_bytes)) as u32
    }
}

impl Tile<'_> {
    /// This lane's share of the tile.
    unsafe fn quads(&self, lane: u32) -> impl Iterator<Item = *mut Quad> {
        let data = self.data;
        let size = size_of::<Quad>() as u32;
        (lane * size..self.bytes)
            .step_by((WARP * size) as usize)
            .map(move |offset| data.wrapping_add(offset as usize).cast())
    }
}

/// Loads every tile, has `change` change it in place, and stores it.
#[inline(always)]
unsafe fn map<const STAGES: usize>(
    output: *mut u8,
    input: *const u8,
    bytes: u64,
    tile_bytes: u32,
    hints: u32,
    change: impl Fn(&Tile, u32),
) {
    let mut stream = Stream::<STAGES>::start(input, bytes, tile_bytes, hints);
    let mut storing = None;
    let store_policy = policy(hints & 2);
    while let Some(tile) = stream.next() {
        change(&tile, stream.lane);
        if stream.lane == 0 {
            let target = output.add(tile.offset as usize);
            asm!("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [{}], [{}], {}, {};",
                in(reg64) address::as_ptr_gmem(target), in(reg32) address::as_ptr_smem(tile.data), in(reg32) tile.bytes,
                in(reg64) store_policy, options(nostack));
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
unsafe fn scale<T: Element, const STAGES: usize>(
    output: *mut u8,
    input: *const u8,
    bytes: u64,
    tile_bytes: u32,
    hints: u32,
    factor: u32,
) {
    map::<STAGES>(output, input, bytes, tile_bytes, hints, |tile, lane| unsafe {
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
unsafe fn sum<T: Element, const STAGES: usize>(
    total: *mut f32,
    partials: *mut f32,
    finished: *const AtomicU32,
    input: *const u8,
    bytes: u64,
    tile_bytes: u32,
    hints: u32,
) {
    let mut stream = Stream::<STAGES>::start(input, bytes, tile_bytes, hints);
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

/// Whether the L2 cache evicts what is copied before anything else.
unsafe fn policy(first: u32) -> u64 {
    let policy;
    if first != 0 {
        asm!("createpolicy.fractional.L2::evict_first.b64 {}, 1.0;", out(reg64) policy, options(pure, nomem, nostack));
    } else {
        asm!("createpolicy.fractional.L2::evict_normal.b64 {}, 1.0;", out(reg64) policy, options(pure, nomem, nostack));
    }
    policy
}

/// The sum of a number of every lane.
unsafe fn warp_sum(mut x: f32) -> f32 {
    for distance in [16, 8, 4, 2, 1] {
        x += shfl_sync_bfly(x, distance, WARP - 1, ALL_LANES);
    }
    x
}

/// What lanes wrote to memory before, all lanes see after.
unsafe fn warp_sync() {
    asm!("bar.warp.sync -1;", options(nostack));
}

macro_rules! kernels {
    ($($stages:literal: $copy:ident $scale_f32:ident $scale_bf16:ident $sum_f32:ident $sum_bf16:ident;)*) => {$(
        kernel! {
            /// `output = input`; `bytes` is a multiple of 16.
            pub fn $copy(output: *mut u8, input: *const u8, bytes: u64, tile_bytes: u32, hints: u32) {
                unsafe { map::<$stages>(output, input, bytes, tile_bytes, hints, |_, _| {}) }
            }

            /// `output = factor · input`.
            pub fn $scale_f32(output: *mut u8, input: *const u8, bytes: u64, tile_bytes: u32, hints: u32, factor: u32) {
                unsafe { scale::<Float, $stages>(output, input, bytes, tile_bytes, hints, factor) }
            }

            /// The same; the factor is twice in a register.
            pub fn $scale_bf16(output: *mut u8, input: *const u8, bytes: u64, tile_bytes: u32, hints: u32, factor: u32) {
                unsafe { scale::<Bfloat16, $stages>(output, input, bytes, tile_bytes, hints, factor) }
            }

            /// The sum of the input; `partials` has room for one number a warp of the grid, and `finished` is 0.
            pub fn $sum_f32(total: *mut f32, partials: *mut f32, finished: *mut u32, input: *const u8, bytes: u64, tile_bytes: u32, hints: u32) {
                unsafe { sum::<Float, $stages>(total, partials, finished.cast(), input, bytes, tile_bytes, hints) }
            }

            /// The same, in f32.
            pub fn $sum_bf16(total: *mut f32, partials: *mut f32, finished: *mut u32, input: *const u8, bytes: u64, tile_bytes: u32, hints: u32) {
                unsafe { sum::<Bfloat16, $stages>(total, partials, finished.cast(), input, bytes, tile_bytes, hints) }
            }
        }
    )*};
}

kernels! {
    12: copy_12 scale_f32_12 scale_bf16_12 sum_f32_12 sum_bf16_12;
    16: copy_16 scale_f32_16 scale_bf16_16 sum_f32_16 sum_bf16_16;
    3: copy_3 scale_f32_3 scale_bf16_3 sum_f32_3 sum_bf16_3;
    4: copy_4 scale_f32_4 scale_bf16_4 sum_f32_4 sum_bf16_4;
    6: copy_6 scale_f32_6 scale_bf16_6 sum_f32_6 sum_bf16_6;
    8: copy_8 scale_f32_8 scale_bf16_8 sum_f32_8 sum_bf16_8;
}
