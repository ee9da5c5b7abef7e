//! A warp's stream of tiles.
//!
//! The warp owns a ring of tiles in shared memory. Its first lane keeps all of them but one loading, by
//! bulk copies; all lanes wait for the next one and use it.

use cuda_ptx::barrier::{Block, Consumer, FullSlot, Pipeline, Producer};
use cuda_ptx::*;

use crate::WARP;

/// Tiles of a ring: three being loaded, and one that is used or stored.
const STAGES: usize = 4;

extern_shared! {
    /// The tiles of all warps, and behind them what belongs to the rings.
    #[align(128)]
    static SHARED: [u8];
}

/// The barriers of a ring, and the numbers of the tiles in it.
#[repr(C)]
struct Ring {
    pipeline: Pipeline<STAGES>,
    numbers: [u32; STAGES],
}

/// What a lane loads and stores at once.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct Quad(pub [u32; 4]);

/// An array, in tiles of so many bytes.
#[derive(Clone, Copy)]
pub struct Array {
    pub input: *const u8,
    pub bytes: u64,
    pub tile_bytes: u32,
}

/// One warp's stream of tiles.
pub struct Stream<'p, D> {
    producer: Producer<'p, STAGES>,
    consumer: Consumer<'p, STAGES>,
    ring: *mut Ring,
    tiles: *mut u8,
    pub lane: u32,
    array: Array,
    /// Gives the number of the next tile, which may be behind the last one; `None` afterwards.
    draw: Option<D>,
}

/// A tile that has arrived.
pub struct Tile<'p> {
    pub slot: FullSlot<'p, Block>,
    pub data: *mut u8,
    pub bytes: u32,
    /// Where in the array it begins.
    pub offset: u64,
}

/// The number of this warp in the grid, and how many there are.
pub fn warp_of_grid() -> [u32; 2] {
    let warps = get_sreg_ntid_x() / WARP;
    [get_sreg_ctaid_x() * warps + get_sreg_tid_x() / WARP, get_sreg_nctaid_x() * warps]
}

impl<'p, D: FnMut() -> u32> Stream<'p, D> {
    /// Sets up this warp's ring, and begins to fill it. The first lane alone calls `draw`.
    pub unsafe fn start(array: Array, draw: D) -> Self {
        let (lane, warp) = (get_sreg_laneid(), get_sreg_tid_x() / WARP);
        let bytes = STAGES as u32 * array.tile_bytes;
        let rings = SHARED.as_mut_ptr().add((get_sreg_ntid_x() / WARP * bytes) as usize);
        let ring = rings.cast::<Ring>().add(warp as usize);
        let pipeline = &raw mut (*ring).pipeline;
        if lane == 0 {
            Pipeline::init(pipeline, 1, 1);
        }
        bar_warp_sync(u32::MAX);
        let mut stream = Self {
            producer: Pipeline::producer(pipeline),
            consumer: Pipeline::consumer(pipeline),
            ring,
            tiles: SHARED.as_mut_ptr().add((warp * bytes) as usize),
            lane,
            array,
            draw: (lane == 0).then_some(draw),
        };
        for _ in 0..STAGES - 1 {
            stream.load();
        }
        stream
    }

    /// Loads one more tile, if there is one, as soon as a buffer is empty.
    pub unsafe fn load(&mut self) {
        let Some(draw) = &mut self.draw else { return };
        let (slot, number) = (self.producer.acquire(), draw());
        *self.number(slot.stage()) = number;
        let offset = self.offset(number);
        if offset >= self.array.bytes {
            // The end.
            self.draw = None;
            return slot.commit();
        }
        let (buffer, bytes) = (self.buffer(slot.stage()), self.bytes_at(offset));
        let source = self.array.input.add(offset as usize);
        let full = slot.commit_tx(bytes);
        cp_async_bulk_bar(space_shared, space_global, buffer, source, bytes, full);
    }

    /// Waits for the next tile, if there is one.
    pub unsafe fn next(&mut self) -> Option<Tile<'p>> {
        let slot = self.consumer.wait();
        let offset = self.offset(*self.number(slot.stage()));
        if offset >= self.array.bytes {
            slot.leave();
            return None;
        }
        let data = self.buffer(slot.stage());
        Some(Tile { slot, data, bytes: self.bytes_at(offset), offset })
    }

    unsafe fn number(&self, stage: usize) -> *mut u32 {
        (&raw mut (*self.ring).numbers).cast::<u32>().add(stage)
    }

    unsafe fn buffer(&self, stage: usize) -> *mut u8 {
        self.tiles.add(stage * self.array.tile_bytes as usize)
    }

    fn offset(&self, number: u32) -> u64 {
        u64::from(number) * u64::from(self.array.tile_bytes)
    }

    /// The size of the tile at an offset; the last one of the array may be shorter.
    fn bytes_at(&self, offset: u64) -> u32 {
        (self.array.bytes - offset).min(u64::from(self.array.tile_bytes)) as u32
    }
}

/// Gives `each` this lane's items of an array, and where they are. `N` are loaded before the first is used.
#[inline(always)]
pub unsafe fn share<T: Copy, const N: usize>(items: *mut T, count: u32, mut each: impl FnMut(*mut T, T)) {
    let mut index = get_sreg_laneid();
    while index + (N as u32 - 1) * WARP < count {
        let place = |i: usize| items.wrapping_add(index as usize).wrapping_add(i * WARP as usize);
        let batch: [T; N] = core::array::from_fn(|i| *place(i));
        for i in 0..N {
            each(place(i), batch[i]);
        }
        index += N as u32 * WARP;
    }
    for index in (index..count).step_by(WARP as usize) {
        let place = items.wrapping_add(index as usize);
        each(place, *place);
    }
}
