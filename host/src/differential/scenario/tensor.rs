//! Tensor copies of one to five dimensions, in tiles: loads, stores, reductions, multicast, prefetch.

use super::reduce::{Element, Operation};
use super::{Case, Random, Scenario, Tensor, bulk, words};
use crate::differential::form::Form;
use crate::driver::{DataType, Interleave, Launch, Swizzle};
use crate::exec::Columns;

/// A packed tensor of one dimension: `len` elements of `u32`.
pub fn plain(len: u64) -> Tensor {
    Tensor {
        data_type: DataType::U32,
        dims: vec![len],
        strides: Vec::new(),
        tile: vec![32],
        columns: None,
        steps: vec![1],
        swizzle: Swizzle::None,
        interleave: Interleave::None,
        nan: false,
        at: 0,
    }
}

impl Tensor {
    /// A tensor whose rows are padded to 16 bytes.
    fn new(data_type: DataType, dims: &[u64], tile: &[u32], swizzle: Swizzle) -> Self {
        let row = (dims[0] * data_type.bytes()).next_multiple_of(16);
        let strides = dims[1..].iter().scan(row, |stride, dim| {
            let this = *stride;
            *stride *= dim;
            Some(this)
        });
        Self {
            data_type,
            dims: dims.to_vec(),
            strides: strides.collect(),
            tile: tile.to_vec(),
            columns: None,
            steps: vec![1; dims.len()],
            swizzle,
            interleave: Interleave::None,
            nan: false,
            at: 0,
        }
    }

    /// A tensor whose pixels hold 16 or 32 bytes of channels, a slice: pixels in one to three dimensions, the slices of
    /// an image, images. One pixel lies between two rows.
    fn interleaved(
        data_type: DataType,
        (interleave, swizzle): (Interleave, Swizzle),
        dims: &[u64],
        tile: &[u32],
    ) -> Self {
        let mut tensor = Self::new(data_type, dims, tile, swizzle);
        tensor.interleave = interleave;
        let row = (dims[0] + 1) * tensor.unit() as u64;
        let strides = dims[1..].iter().scan(row, |stride, dim| {
            let this = *stride;
            *stride *= dim;
            Some(this)
        });
        tensor.strides = strides.collect();
        tensor
    }

    /// Bytes of what the innermost dimension counts: an element, or a pixel's slice of channels.
    fn unit(&self) -> usize {
        match self.interleave {
            Interleave::None => self.data_type.bytes() as usize,
            Interleave::Bytes16 => 16,
            Interleave::Bytes32 => 32,
        }
    }

    /// Bytes that stay together in shared memory, where chunks of 16 are swizzled.
    fn grain(&self) -> usize {
        self.unit().min(16)
    }

    /// Bytes of global memory.
    fn extent(&self) -> usize {
        match (self.strides.last(), self.dims.last()) {
            (Some(stride), Some(dim)) => (stride * dim) as usize,
            _ => self.dims[0] as usize * self.unit(),
        }
    }

    /// The units of a tile in shared memory; of a column, its channels and its pixels.
    fn box_dims(&self) -> Vec<usize> {
        if let Some(columns) = &self.columns {
            return vec![self.tile[0] as usize, columns.pixels as usize];
        }
        let dims = self.tile.iter().zip(&self.steps);
        let mut dims = Vec::from_iter(dims.map(|(tile, step)| tile.div_ceil(*step) as usize));
        if self.interleave != Interleave::None {
            // The channels of a tile here are those of one slice.
            let slices = dims.len() - 2;
            dims[slices] = 1;
        }
        dims
    }

    /// The bytes that a copy of a tile moves.
    pub fn tile_bytes(&self) -> usize {
        self.box_dims().iter().product::<usize>() * self.unit()
    }

    /// The region of shared memory after the tile at `corner` was loaded.
    pub fn loaded(&self, memory: &[u8], corner: &[i64]) -> Vec<u64> {
        let grain = self.grain();
        // The H200's NaN is the same in each half of an f32, and in each quarter of an f64.
        let fill = if self.nan { [0xf7, 0x7f] } else { [0; 2] }.repeat(8);
        let mut region = bulk::FILL.to_le_bytes().repeat(bulk::REGION as usize / 8);
        for (shared, global) in self.places(corner) {
            let value = match global {
                Some(global) => &self.rounded(&memory[global..global + grain]),
                None => &fill[..grain],
            };
            region[shared..shared + grain].copy_from_slice(value);
        }
        words(&region).collect()
    }

    /// What a load makes of an element: tf32 is rounded to.
    fn rounded(&self, element: &[u8]) -> Vec<u8> {
        match self.data_type {
            DataType::Tf32 | DataType::Tf32Ftz => {
                let bits = u32::from_le_bytes(element.try_into().expect("four bytes"));
                to_tf32(bits).to_le_bytes().into()
            }
            _ => element.to_vec(),
        }
    }

    /// Global memory after the tile in `data` went to `corner`.
    fn stored(&self, memory: &[u8], data: &[u8], corner: &[i64], copies: Copies) -> Vec<u8> {
        let grain = self.grain();
        let mut after = memory.to_vec();
        for (shared, global) in self.places(corner) {
            let Some(global) = global else { continue };
            let source = &data[shared..shared + grain];
            let held = &mut after[global..global + grain];
            match (copies, element(self.data_type)) {
                (Copies::Reduce(operation), Some(element)) => {
                    let word = |bytes: &[u8]| {
                        let bytes = bytes.iter().rev();
                        bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
                    };
                    let reduced = element.apply(operation, word(held), word(source));
                    held.copy_from_slice(&reduced.to_le_bytes()[..grain]);
                }
                _ => held.copy_from_slice(source),
            }
        }
        after
    }

    /// For each grain of the tile at `corner`: where it lies in shared memory, and where in global memory if that is
    /// in bounds.
    fn places(&self, corner: &[i64]) -> Vec<(usize, Option<usize>)> {
        if let Some(columns) = &self.columns {
            return self.places_of_column(columns, corner);
        }
        let dims = self.box_dims();
        let (unit, grain) = (self.unit(), self.grain());
        let count: usize = dims.iter().product();
        let place = |offset: usize| {
            let mut rest = offset / unit;
            let mut global = Some(self.at as usize + offset % unit);
            for (d, dim) in dims.iter().enumerate() {
                let coordinate = corner[d] + (rest % dim) as i64 * i64::from(self.steps[d]);
                rest /= dim;
                let stride = match d {
                    0 => unit,
                    _ => self.strides[d - 1] as usize,
                };
                let inside = (0..self.dims[d] as i64).contains(&coordinate);
                global = global
                    .filter(|_| inside)
                    .map(|at| at + coordinate as usize * stride);
            }
            (swizzled(offset, self.swizzle), global)
        };
        (0..count * unit).step_by(grain).map(place).collect()
    }
}

/// What only the im2col modes have.
impl Tensor {
    /// Images of pixels with `dims[0]` channels, of which a copy takes some, of pixels in a box.
    fn images(
        data_type: DataType,
        dims: &[u64],
        channels: u32,
        swizzle: Swizzle,
        columns: Columns,
    ) -> Self {
        Self {
            columns: Some(columns),
            ..Self::new(data_type, dims, &[channels], swizzle)
        }
    }

    /// [`Tensor::places`] of a column. Behind the coordinates of the first pixel are the offsets of all.
    fn places_of_column(&self, columns: &Columns, corner: &[i64]) -> Vec<(usize, Option<usize>)> {
        let rank = self.dims.len();
        let (first, offsets) = corner.split_at(rank);
        let (unit, grain, channels) = (self.unit(), self.grain(), self.tile[0] as usize);
        let mut pixel = first[1..].to_vec();
        let mut places = Vec::new();
        for number in 0..columns.pixels as usize {
            for channel in 0..channels {
                let mut at = pixel.clone();
                at.iter_mut().zip(offsets).for_each(|(at, by)| *at += by);
                at.insert(0, first[0] + channel as i64);
                let inside = (0..rank).all(|d| (0..self.dims[d] as i64).contains(&at[d]));
                let global = || {
                    let outer = (1..rank).map(|d| at[d] as usize * self.strides[d - 1] as usize);
                    self.at as usize + at[0] as usize * unit + outer.sum::<usize>()
                };
                let shared = (number * channels + channel) * unit;
                places.push((swizzled(shared, self.swizzle), inside.then(global)));
            }
            self.next_pixel(columns, &mut pixel);
        }
        debug_assert_eq!(unit, grain);
        places
    }

    /// One step along W; from the end of a row of the box to the next row, from the end of the box to the next image.
    fn next_pixel(&self, columns: &Columns, pixel: &mut [i64]) {
        let (image, pixel) = pixel.split_last_mut().expect("at least an image");
        for (d, at) in pixel.iter_mut().enumerate() {
            *at += i64::from(self.steps[d + 1]);
            if *at <= self.dims[d + 1] as i64 - 1 + i64::from(columns.upper[d]) {
                return;
            }
            *at = columns.lower[d].into();
        }
        *image += 1;
    }
}

/// The bits of an f32 rounded to the 10 bits of a tf32's fraction, halves to even.
fn to_tf32(bits: u32) -> u32 {
    const INFINITY: u32 = 0x7f80_0000;
    const DROPPED: u32 = 0x1fff;
    const BELOW_HALF: u32 = 0x0fff;
    match bits & 0x7fff_ffff {
        INFINITY => bits,
        magnitude if magnitude > INFINITY => 0x7fff_ffff & !DROPPED,
        _ => (bits + BELOW_HALF + (bits >> 13 & 1)) & !DROPPED,
    }
}

/// The chunk of 16 bytes moves within its line by the number of the line, as both repeat.
fn swizzled(at: usize, swizzle: Swizzle) -> usize {
    match swizzle {
        Swizzle::None => at,
        Swizzle::Bytes32 => at ^ (at >> 7 & 1) << 4,
        Swizzle::Bytes64 => at ^ (at >> 7 & 3) << 4,
        Swizzle::Bytes128 => at ^ (at >> 7 & 7) << 4,
        _ => unreachable!("no tensor here has chunks of more than 16 bytes"),
    }
}

/// What tensors are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Copies {
    /// To shared memory.
    In,
    /// Out of shared memory.
    Out,
    /// Out of shared memory with a reduction.
    Reduce(Operation),
}

impl Copies {
    /// The types that tensors have: the type, the elements of a row of a tile, the swizzle.
    fn types(self) -> Vec<(DataType, u32, Swizzle)> {
        use DataType::*;
        let all = [
            (U32, 16, Swizzle::None),
            (U32, 8, Swizzle::Bytes32),
            (U32, 16, Swizzle::Bytes64),
            (U32, 32, Swizzle::Bytes128),
            (U8, 16, Swizzle::None),
            (U8, 32, Swizzle::Bytes32),
            (U16, 64, Swizzle::Bytes128),
            (U64, 2, Swizzle::None),
            (I32, 16, Swizzle::Bytes64),
            (I64, 4, Swizzle::Bytes32),
            (F16, 32, Swizzle::Bytes64),
            (Bf16, 16, Swizzle::None),
            (F32, 32, Swizzle::Bytes128),
            (F64, 16, Swizzle::Bytes128),
            (F32Ftz, 16, Swizzle::None),
            (Tf32, 8, Swizzle::Bytes32),
            (Tf32Ftz, 16, Swizzle::Bytes64),
        ];
        let reduced = |data_type| match self {
            Self::Reduce(operation) => {
                element(data_type).is_some_and(|element| element.takes(operation))
            }
            _ => true,
        };
        all.into_iter()
            .filter(|(data_type, ..)| reduced(*data_type))
            .collect()
    }
}

/// What a reduction takes an element for.
fn element(data_type: DataType) -> Option<Element> {
    Some(match data_type {
        DataType::U32 => Element::Unsigned(32),
        DataType::I32 => Element::Signed(32),
        DataType::U64 => Element::Unsigned(64),
        DataType::I64 => Element::Signed(64),
        DataType::F16 => Element::Float(16),
        DataType::F32 => Element::Float(32),
        DataType::Bf16 => Element::Bf16,
        _ => return None,
    })
}

/// Tensors of `rank` dimensions, each with the corners of tiles: inside, over an edge, and outside.
///
/// Loads may begin before the tensor, and rows may end anywhere. Copies out of shared memory may not begin before
/// it, where the hardware traps; and where a row is no multiple of 16 bytes, they write the rest of the last 16.
fn tensors(rank: usize, copies: Copies) -> Vec<(Tensor, Vec<Vec<i64>>)> {
    let loads = copies == Copies::In;
    let dims = [if loads { 44 } else { 48 }, 9, 6, 5, 3];
    let with = |data_type, row, swizzle| {
        let tile = [row, 4, 3, 2, 2];
        Tensor::new(data_type, &dims[..rank], &tile[..rank], swizzle)
    };
    let types = copies.types().into_iter();
    let mut tensors = Vec::from_iter(types.map(|(of, row, swizzle)| with(of, row, swizzle)));
    if rank > 1 && !matches!(copies, Copies::Reduce(_)) {
        for steps in [[1, 2, 2, 2, 2], [1, 3, 1, 2, 8]] {
            let mut stepping = with(DataType::U32, 16, Swizzle::None);
            stepping.steps = steps[..rank].to_vec();
            tensors.push(stepping);
        }
    }
    if loads {
        let floats = tensors.clone();
        let floats = floats.into_iter().filter(|it| it.data_type.is_float());
        tensors.extend(floats.map(|tensor| Tensor {
            nan: true,
            ..tensor
        }));
    }
    let corners = |tensor: Tensor| {
        // The innermost coordinate is a multiple of 16 bytes: the hardware traps at others.
        let unit = 16 / tensor.data_type.bytes() as i64;
        let last = dims[0] as i64 / unit - 1;
        let corners = [
            [0, 0, 0, 0, 0],
            [1, 3, 1, 2, 1],
            [-1, -2, 4, -1, 2],
            [last, 7, -1, 4, 0],
            [last + 5, 0, 0, 0, 0],
        ];
        (tensor, corners_of(rank, loads, unit, &corners))
    };
    let mut all = Vec::from_iter(tensors.into_iter().map(corners));
    if rank >= 3 && !matches!(copies, Copies::Reduce(_)) {
        all.extend(interleaved(rank, loads));
    }
    all
}

/// Tensors in interleaved layouts, NC/8HWC8 and such: what the PTX ISA calls channels are counted in slices, but by
/// the size of a tile, whose two channels are those of one slice.
fn interleaved(rank: usize, loads: bool) -> Vec<(Tensor, Vec<Vec<i64>>)> {
    let (dims, tile): (&[u64], &[u32]) = match rank {
        3 => (&[13, 4, 3], &[4, 2]),
        4 => (&[13, 5, 4, 3], &[3, 2, 2]),
        _ => (&[7, 5, 3, 4, 3], &[2, 2, 2, 2]),
    };
    let corners = [
        [0, 0, 0, 0, 0],
        [5, 2, 1, 1, 1],
        [-1, 3, -1, 2, 2],
        [9, -1, 2, 3, -1],
        [3, 1, 4, 1, 1],
    ];
    let layouts = [
        (Interleave::Bytes16, Swizzle::None),
        (Interleave::Bytes16, Swizzle::Bytes128),
        (Interleave::Bytes32, Swizzle::Bytes32),
    ];
    let types = [DataType::U16, DataType::U8, DataType::F32];
    let kinds = layouts
        .into_iter()
        .flat_map(|layout| types.map(|of| (of, layout)));
    let tensor = |(of, layout): (DataType, _)| {
        // The driver wants rows of 16 bytes also here, as if pixels were elements.
        let row = [16 / of.bytes() as u32];
        let tensor = Tensor::interleaved(of, layout, dims, &[&row, tile].concat());
        (tensor, corners_of(rank, loads, 1, &corners))
    };
    kinds.map(tensor).collect()
}

/// Corners whose innermost coordinate is in `unit`s; those of stores are not before the tensor.
fn corners_of(rank: usize, loads: bool, unit: i64, corners: &[[i64; 5]]) -> Vec<Vec<i64>> {
    let corner = |[x, rest @ ..]: &[i64; 5]| {
        let corner = [&[x * unit], &rest[..rank - 1]].concat();
        let lowest = if loads { i64::MIN } else { 0 };
        corner.into_iter().map(|at| at.max(lowest)).collect()
    };
    corners.iter().map(corner).collect()
}

/// Corners of boxes, lower and upper along W, H and D, and offsets along them: all pixels of an image, a border for
/// filters, the inner pixels, and a box beyond the image.
const BOXES: [([i32; 3], [i32; 3], [i64; 3]); 4] = [
    ([0; 3], [0; 3], [0; 3]),
    ([-1; 3], [-1; 3], [2, 1, 0]),
    ([1, 0, 1], [-1, -2, 0], [1, 0, 1]),
    ([-2, -1, 0], [2, 1, 1], [0, 3, 2]),
];

/// Images of `rank` dimensions, each with the first pixels of copies and their offsets: inside the box, at its last pixel,
/// and in the last image, so that pixels are left over.
///
/// Copies out of shared memory have no offsets, and their boxes stay within the image.
fn images(rank: usize, copies: Copies) -> Vec<(Tensor, Vec<Vec<i64>>)> {
    let loads = copies == Copies::In;
    let sizes: [&[u64]; 3] = [&[9, 4], &[7, 5, 3], &[5, 4, 3, 2]];
    let dims = [&[if loads { 44 } else { 48 }], sizes[rank - 3]].concat();
    let image = 1..rank - 1;
    let boxes = BOXES.iter().filter(|(lower, upper, _)| {
        loads || lower.iter().all(|it| *it >= 0) && upper.iter().all(|it| *it <= 0)
    });
    let boxes = Vec::from_iter(boxes);
    let mut all = Vec::new();
    for (number, (of, channels, swizzle)) in copies.types().into_iter().enumerate() {
        let (lower, upper, offsets) = boxes[number % boxes.len()];
        let columns = Columns {
            lower: lower[..rank - 2].to_vec(),
            upper: upper[..rank - 2].to_vec(),
            pixels: [1, 24, 33, 64][number / boxes.len() % 4],
        };
        let low = Vec::from_iter(columns.lower.iter().map(|it| i64::from(*it)));
        let last = image
            .clone()
            .map(|d| dims[d] as i64 - 1 + i64::from(upper[d - 1]));
        let last = Vec::from_iter(last);
        // The first channel is a multiple of 16 bytes.
        let unit = 16 / of.bytes() as i64;
        let start = |channel: i64, pixel: &[i64], image: i64| {
            let offsets = if loads { &offsets[..rank - 2] } else { &[] };
            [&[channel * unit], pixel, &[image], offsets].concat()
        };
        let middle = Vec::from_iter(low.iter().zip(&last).map(|(low, last)| (low + last) / 2));
        let images = dims[rank - 1] as i64;
        let starts = vec![
            start(0, &low, 0),
            start(1, &middle, 1),
            start(44 / unit - 1, &last, 0),
            start(0, &middle, images - 1),
        ];
        let mut tensor = Tensor::images(of, &dims, channels, swizzle, columns);
        if number % 3 == 2 && !matches!(copies, Copies::Reduce(_)) {
            tensor.steps[1..rank - 1].copy_from_slice(&[2, 3, 2][..rank - 2]);
        }
        tensor.nan = loads && of.is_float() && number % 2 == 0;
        all.push((tensor, starts));
    }
    all
}

/// How copies in im2col modes are run.
pub fn columns(form: &Form) -> Option<Scenario> {
    let rank = (3..=5).find(|rank| form.says(&format!("{rank}d")))?;
    let words = |range: std::ops::Range<usize>| {
        Vec::from_iter(range.map(|d| format!("get(input, 2 + {d})"))).join(" | ")
    };
    let (coordinates, offsets) = (words(0..rank), words(rank..2 * rank - 2));
    let scenario = if form.function.contains("prefetch") {
        let coordinates = format!("{coordinates}; {offsets}");
        prefetch(form, images(rank, Copies::In), &coordinates)
    } else if form.says("im2col_no_offs") {
        let copies = copies_out(form);
        store(form, rank, images(rank, copies), copies, &coordinates)
    } else {
        load(
            form,
            images(rank, Copies::In),
            &coordinates,
            &format!("bar; {offsets}"),
        )
    };
    Some(scenario.with_map())
}

pub fn scenario(form: &Form) -> Option<Scenario> {
    let rank = (1..=5).find(|rank| form.says(&format!("{rank}d")))?;
    if form.says("im2col") {
        return None;
    }
    let coordinates = Vec::from_iter((0..rank).map(|d| format!("get(input, 2 + {d})"))).join(" | ");
    let scenario = if form.function.contains("prefetch") {
        prefetch(form, tensors(rank, Copies::In), &coordinates)
    } else if form.has("space_shared") && form.tags[0] == "space_global" {
        let copies = copies_out(form);
        store(form, rank, tensors(rank, copies), copies, &coordinates)
    } else {
        load(form, tensors(rank, Copies::In), &coordinates, "bar")
    };
    Some(scenario.with_map())
}

/// What a copy out of shared memory does.
fn copies_out(form: &Form) -> Copies {
    match Operation::of(&form.instruction) {
        Some(operation) => Copies::Reduce(operation),
        None => Copies::Out,
    }
}

/// Tensors, and where copies begin.
type Tensors = Vec<(Tensor, Vec<Vec<i64>>)>;

/// Input: bytes of the tile, mask of blocks, corner.
fn input(tensor: &Tensor, mask: u64, corner: &[i64]) -> Vec<u64> {
    let corner = corner.iter().map(|at| *at as u64 & 0xffff_ffff);
    [tensor.tile_bytes() as u64, mask]
        .into_iter()
        .chain(corner)
        .collect()
}

fn what(tensor: &Tensor, corner: &[i64]) -> String {
    let columns = match &tensor.columns {
        Some(columns) => format!(", {columns:?} of {:?}", tensor.dims),
        None => String::new(),
    };
    format!(
        "{:?}, tile {:?}{columns}, swizzle {:?}, interleave {:?}, steps {:?}{}, at {corner:?}",
        tensor.data_type,
        tensor.tile,
        tensor.swizzle,
        tensor.interleave,
        tensor.steps,
        if tensor.nan { ", NaN outside" } else { "" },
    )
}

/// Tests of a barrier after which a kernel goes on, to show what a copy moved that was not as long as expected.
const PATIENCE: u64 = 1 << 20;

/// Loads; `bar` is the barrier with what follows it.
fn load(form: &Form, tensors: Tensors, coordinates: &str, bar: &str) -> Scenario {
    let multicast = form.says("multicast::cluster");
    let mask = if multicast { "; get(input, 1)" } else { "" };
    let act = format!(
        "var chosen = get(input, 1) >> cluster_rank() & 1;\n\
         if (thread() == 0) {{\n\
         if (chosen == 1) {{ bar_expect(bar, get(input, 0)); bar_arrive(bar, 1); }}\n\
         }}\n\
         cluster_sync();\n\
         if (thread() == 0) {{\n\
         if (cluster_rank() == 0) {{\n\
         @ = (data; tensor_map; {coordinates}; {bar}{mask})\n\
         }}\n\
         }}\n\
         if (chosen == 1) {{ bar_wait_at_most(bar, 0, {PATIENCE}); }}\n"
    );
    let name = form.instruction.clone();
    let cases = move |seed| {
        let mut random = Random::new(seed, &name);
        let mut cases = Vec::new();
        for (number, (tensor, corners)) in tensors.iter().cloned().enumerate() {
            for corner in corners {
                let (blocks, mask) = if multicast {
                    [
                        (1, 1),
                        (2, 0b10),
                        (4, 0b1011),
                        (8, 0b1101_0010),
                        (16, 0x8421),
                    ][number % 5]
                } else {
                    (1, 1)
                };
                let memory = random.bytes(tensor.extent());
                let received = tensor.loaded(&memory, &corner);
                let block = |rank: u64| {
                    if mask >> rank & 1 == 1 {
                        received.clone()
                    } else {
                        vec![bulk::FILL; 1024]
                    }
                };
                let output = Vec::from_iter((0..blocks).flat_map(block));
                let launch = Launch::new(blocks as u32, 64).cluster([blocks as u32, 1, 1]);
                let case = Case::new(
                    what(&tensor, &corner),
                    launch,
                    input(&tensor, mask, &corner),
                );
                cases.push(
                    case.memory(memory)
                        .gives_words(output)
                        .tensor(tensor.clone()),
                );
            }
        }
        cases
    };
    Scenario::new([bulk::BEGIN, &act, bulk::SHOW].concat(), cases).shared(bulk::SHARED)
}

/// Stores and reductions: elements out of bounds are left out.
fn store(
    form: &Form,
    rank: usize,
    tensors: Tensors,
    copies: Copies,
    coordinates: &str,
) -> Scenario {
    let act = format!(
        "i = thread();\n\
         while (i < 1024) {{ store(at(data, 8 * i), 8, get(input, 2 + {rank} + i)); i = i + threads(); }}\n\
         proxy_fence();\n\
         sync();\n\
         if (thread() == 0) {{\n\
         @ = (tensor_map; {coordinates}; data)\n\
         bulk_commit();\n\
         bulk_wait();\n\
         }}\n"
    );
    let name = form.instruction.clone();
    let cases = move |seed| {
        let mut random = Random::new(seed, &name);
        let mut cases = Vec::new();
        for (tensor, corners) in tensors.iter().cloned() {
            for corner in corners {
                let mut bytes = |len: usize| match (copies, element(tensor.data_type)) {
                    (Copies::Reduce(_), Some(element)) => element.random_bytes(len, &mut random),
                    _ => random.bytes(len),
                };
                let (memory, data) = (bytes(tensor.extent()), bytes(8192));
                let after = tensor.stored(&memory, &data, &corner, copies);
                let mut words_in = input(&tensor, 1, &corner);
                words_in.extend(words(&data));
                let case = Case::new(what(&tensor, &corner), Launch::new(1, 64), words_in);
                cases.push(
                    case.memory(memory)
                        .leaves(after)
                        .gives_words(words(&data))
                        .tensor(tensor.clone()),
                );
            }
        }
        cases
    };
    Scenario::new([bulk::BEGIN, &act, bulk::SHOW].concat(), cases).shared(bulk::SHARED)
}

fn prefetch(form: &Form, tensors: Tensors, coordinates: &str) -> Scenario {
    // Evict normally.
    let policy = if form.operands.len() > 2 && !form.instruction.contains("im2col") {
        "; 1220475499017404416"
    } else {
        ""
    };
    let body = format!(
        "var i = thread();\n\
         if (i == 0) {{\n\
         @ = (tensor_map; {coordinates}{policy})\n\
         }}\n\
         put(output, i, load(at(memory, 8 * i), 8));\n"
    );
    let name = form.instruction.clone();
    Scenario::new(body, move |seed| {
        let mut random = Random::new(seed, &name);
        let mut cases = Vec::new();
        for (tensor, corners) in tensors.iter().cloned() {
            let memory = random.bytes(tensor.extent().max(256));
            let output = Vec::from_iter(words(&memory[..256]));
            let case = Case::new(
                what(&tensor, &corners[1]),
                Launch::new(1, 32),
                input(&tensor, 1, &corners[1]),
            );
            cases.push(case.memory(memory).gives_words(output).tensor(tensor));
        }
        cases
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_over_the_edge_has_holes() {
        let tensor = Tensor::new(DataType::U32, &[6, 2], &[4, 2], Swizzle::None);
        assert_eq!(tensor.strides, [32]);
        let places = tensor.places(&[4, 1]);
        assert_eq!(places[1], (4, Some(32 + 20)));
        assert_eq!(places[2], (8, None));
        assert_eq!(places[4], (16, None));
    }

    #[test]
    fn a_tf32_is_rounded_to_ten_bits_with_halves_to_even() {
        assert_eq!(to_tf32(0x3f80_0fff), 0x3f80_0000);
        assert_eq!(to_tf32(0xbf80_1000), 0xbf80_0000);
        assert_eq!(to_tf32(0xbf80_3000), 0xbf80_4000);
        assert_eq!(to_tf32(0x7f7f_ffff), 0x7f80_0000);
        assert_eq!(to_tf32(0xff80_0000), 0xff80_0000);
    }

    #[test]
    fn only_integers_and_halves_have_a_minimum_and_only_bits_an_and() {
        let count = |operation| Copies::Reduce(operation).types().len();
        assert_eq!(count(Operation::Inc), 4);
        assert_eq!(count(Operation::And), 5);
        assert_eq!(count(Operation::Min), 9);
        assert_eq!(count(Operation::Add), 9);
    }

    #[test]
    fn the_slices_of_an_image_lie_behind_each_other() {
        let layout = (Interleave::Bytes32, Swizzle::Bytes32);
        let tensor = Tensor::interleaved(DataType::U16, layout, &[7, 4, 3], &[5, 2, 2]);
        assert_eq!(tensor.strides, [256, 1024]);
        assert_eq!(tensor.tile_bytes(), 5 * 2 * 32);
        let places = tensor.places(&[1, 2, 1]);
        assert_eq!(places[0], (0, Some(32 + 2 * 256 + 1024)));
        assert_eq!(places[1], (16, Some(32 + 16 + 2 * 256 + 1024)));
        // The second half of the fifth pixel, in the second line.
        assert_eq!(places[9], (128, Some(5 * 32 + 16 + 2 * 256 + 1024)));
        assert_eq!(tensor.places(&[1, 4, 1])[0].1, None);
    }

    #[test]
    fn the_lines_of_a_swizzle_differ_in_their_chunks() {
        assert_eq!(swizzled(0x80, Swizzle::Bytes128), 0x90);
        assert_eq!(swizzled(0x3f4, Swizzle::Bytes128), 0x384);
        assert_eq!(swizzled(0x180, Swizzle::Bytes64), 0x1b0);
        assert_eq!(swizzled(0x100, Swizzle::Bytes32), 0x100);
    }
}
