//! A warp's stream of tiles.
//!
//! The warp owns a ring of tiles in shared memory. Its first lane keeps all of them but the one in use
//! loading, by bulk copies; all lanes wait for the next one and use it.

use core::arch::asm;

use cuda_ptx::barrier::{Block, Consumer, FullSlot, Pipeline, Producer};
use cuda_ptx::*;

use crate::WARP;

/// Tiles of a ring.
const STAGES: usize = 3;

extern_shared! {
    /// The rings of all warps, and behind them their pipelines.
    #[align(128)]
    static SHARED: [u8];
}

/// What a lane loads and stores at once.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct Quad(pub [u32; 4]);

/// An array, and how the warps share it: each takes `span_bytes`, and then the next span that is nobody's,
/// in tiles of `tile_bytes`.
#[derive(Clone, Copy)]
pub struct Array {
    pub input: *const u8,
    pub bytes: u64,
    pub tile_bytes: u32,
    pub span_bytes: u32,
}

/// A place in the array: where a tile begins, and how far it is to the end of the span.
struct Place {
    offset: u64,
    left: u32,
}

/// One warp's stream of tiles.
pub struct Stream<'p> {
    producer: Producer<'p, STAGES>,
    consumer: Consumer<'p, STAGES>,
    ring: *mut u8,
    pub lane: u32,
    array: Array,
    /// The next tile to load, and the next one to use.
    loading: Place,
    using: Place,
    /// From the end of a span of this warp to the next one, in bytes.
    jump: u64,
}

/// A tile that has arrived.
pub struct Tile<'p> {
    pub slot: FullSlot<'p, Block>,
    pub data: *mut u8,
    pub bytes: u32,
    /// Where in the array it begins.
    pub offset: u64,
}

impl Place {
    /// The next tile of a warp.
    fn advance(&mut self, array: &Array, jump: u64) {
        self.offset += u64::from(array.tile_bytes);
        self.left -= array.tile_bytes;
        if self.left == 0 {
            self.offset += jump;
            self.left = array.span_bytes;
        }
    }
}

impl<'p> Stream<'p> {
    /// Sets up this warp's ring, and fills all of its buffers but one, which the loop's first `load`
    /// fills.
    pub unsafe fn start(array: Array) -> Self {
        let (lane, warp) = (get_sreg_laneid(), get_sreg_tid_x() / WARP);
        let warps = get_sreg_ntid_x() / WARP;
        let ring_bytes = STAGES as u32 * array.tile_bytes;
        let shared = SHARED.as_mut_ptr();
        let pipelines = shared.add((warps * ring_bytes) as usize).cast::<Pipeline<STAGES>>();
        let pipeline = pipelines.add(warp as usize);
        if lane == 0 {
            Pipeline::init(pipeline, 1, 1);
        }
        warp_sync();
        let span = u64::from(array.span_bytes);
        let first =
            || Place { offset: u64::from(get_sreg_ctaid_x() * warps + warp) * span, left: array.span_bytes };
        let mut stream = Self {
            producer: Pipeline::producer(pipeline),
            consumer: Pipeline::consumer(pipeline),
            ring: shared.add((warp * ring_bytes) as usize),
            lane,
            array,
            loading: first(),
            using: first(),
            jump: u64::from(get_sreg_nctaid_x() * warps - 1) * span,
        };
        for _ in 0..STAGES - 1 {
            stream.load();
        }
        stream
    }

    /// Loads one more tile, if there is one, as soon as a buffer is empty.
    pub unsafe fn load(&mut self) {
        let offset = self.loading.offset;
        if self.lane == 0 && offset < self.array.bytes {
            let bytes = self.bytes_at(offset);
            let source = self.array.input.add(offset as usize);
            let slot = self.producer.acquire();
            let buffer = self.buffer(slot.stage());
            let full = slot.commit_tx(bytes);
            cp_async_bulk_bar(space_shared, space_global, buffer, source, bytes, full);
        }
        self.loading.advance(&self.array, self.jump);
    }

    /// Waits for the next tile, if there is one.
    pub unsafe fn next(&mut self) -> Option<Tile<'p>> {
        let offset = self.using.offset;
        if offset >= self.array.bytes {
            return None;
        }
        self.using.advance(&self.array, self.jump);
        let slot = self.consumer.wait();
        let data = self.buffer(slot.stage());
        Some(Tile { slot, data, bytes: self.bytes_at(offset), offset })
    }

    unsafe fn buffer(&self, stage: usize) -> *mut u8 {
        self.ring.add(stage * self.array.tile_bytes as usize)
    }

    /// The size of the tile at an offset; the last one of the array may be shorter.
    fn bytes_at(&self, offset: u64) -> u32 {
        (self.array.bytes - offset).min(u64::from(self.array.tile_bytes)) as u32
    }
}

impl Tile<'_> {
    /// This lane's share of the tile.
    pub unsafe fn quads(&self, lane: u32) -> impl Iterator<Item = *mut Quad> {
        let data = self.data;
        let size = size_of::<Quad>() as u32;
        (lane * size..self.bytes)
            .step_by((WARP * size) as usize)
            .map(move |offset| data.wrapping_add(offset as usize).cast())
    }
}

/// What lanes wrote to memory before, all lanes see after.
pub unsafe fn warp_sync() {
    asm!("bar.warp.sync -1;", options(nostack));
}
