//! Tensor maps: the tensor that one describes, its encoding here, and the tiles that copies move.

use std::ops::Range;

pub use super::im2col::Columns;

/// The type of an element; the numbers are those of `CUtensorMapDataType`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DataType {
    U8 = 0,
    U16 = 1,
    U32 = 2,
    I32 = 3,
    U64 = 4,
    I64 = 5,
    F16 = 6,
    F32 = 7,
    F64 = 8,
    Bf16 = 9,
    /// f32 whose subnormals become zero.
    F32Ftz = 10,
    Tf32 = 11,
    /// tf32 whose subnormals become zero.
    Tf32Ftz = 12,
}

impl DataType {
    const ALL: [Self; 13] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::I32,
        Self::U64,
        Self::I64,
        Self::F16,
        Self::F32,
        Self::F64,
        Self::Bf16,
        Self::F32Ftz,
        Self::Tf32,
        Self::Tf32Ftz,
    ];

    /// The size of an element, in bytes.
    pub fn bytes(self) -> u64 {
        use DataType::*;
        match self {
            U8 => 1,
            U16 | F16 | Bf16 => 2,
            U32 | I32 | F32 | F32Ftz | Tf32 | Tf32Ftz => 4,
            U64 | I64 | F64 => 8,
        }
    }

    /// Whether it is a floating-point type, which loads may fill with NaN.
    pub fn is_float(self) -> bool {
        self as u32 >= DataType::F16 as u32
    }
}

/// How channels are interleaved in global memory.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Interleave {
    #[default]
    None = 0,
    Bytes16 = 1,
    Bytes32 = 2,
}

/// How chunks, of 16 bytes unless said otherwise, are permuted in shared memory; the number is the span of the pattern
/// in bytes.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Swizzle {
    #[default]
    None = 0,
    Bytes32 = 1,
    Bytes64 = 2,
    Bytes128 = 3,
    /// Chunks of 32 bytes; needs a GPU newer than sm_90.
    Bytes128Atom32 = 4,
    /// The same with the halves of every second 16 bytes exchanged.
    Bytes128Atom32Flip8 = 5,
    /// Chunks of 64 bytes; needs a GPU newer than sm_90.
    Bytes128Atom64 = 6,
}

impl Swizzle {
    /// The widest row of a box in shared memory, in bytes.
    pub fn span(self) -> Option<u64> {
        match self {
            Swizzle::None => None,
            Swizzle::Bytes32 => Some(32),
            Swizzle::Bytes64 => Some(64),
            Swizzle::Bytes128
            | Swizzle::Bytes128Atom32
            | Swizzle::Bytes128Atom32Flip8
            | Swizzle::Bytes128Atom64 => Some(128),
        }
    }

    /// Those of sm_90.
    const EXECUTED: [Self; 4] = [Self::None, Self::Bytes32, Self::Bytes64, Self::Bytes128];

    /// Where the byte that would be at a shared address lies: chunks of 16 bytes move within 128, by the
    /// number of these.
    fn place(self, address: u32) -> u32 {
        let chunks = (1 << self as u32) - 1;
        address ^ (address >> 7 & chunks) << 4
    }
}

/// What a load gives for elements outside the tensor.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum OutOfBounds {
    #[default]
    Zero = 0,
    /// A special NaN that multiplies to zero in matrix instructions; floating-point types only.
    Nan = 1,
}

/// A tensor in global memory and the tile or the column that one copy moves: the arguments of `cuTensorMapEncodeTiled` or
/// `cuTensorMapEncodeIm2col`. Dimensions are innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The type of its elements.
    pub data_type: DataType,
    /// Its address.
    pub address: u64,
    /// Its elements in each dimension.
    pub dims: Vec<u64>,
    /// The distance of neighbours in bytes, in each dimension but the innermost.
    pub strides: Vec<u64>,
    /// The elements of a tile in each dimension, before steps; of columns, the channels of a pixel alone.
    pub tile: Vec<u32>,
    /// Which pixels copies take, if they take columns and not tiles.
    pub columns: Option<Columns>,
    /// Every so many elements are copied; not in the innermost dimension.
    pub steps: Vec<u32>,
    /// The layout in global memory.
    pub interleave: Interleave,
    /// The swizzle in shared memory.
    pub swizzle: Swizzle,
    /// What a load gives outside the tensor.
    pub out_of_bounds: OutOfBounds,
}

/// The bytes of a tensor map.
pub const MAP_BYTES: u32 = 128;

/// Marks maps for the CPU: the driver's own encoding is not public, and no kernel may look into one.
const MAGIC: [u8; 8] = *b"ptx cpu\0";

/// A field of a map, which `tensormap.replace` sets. The variants hold the dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Address,
    Dim(u32),
    Stride(u32),
    Tile(u32),
    Step(u32),
    /// The rank less one.
    Rank,
    DataType,
    Interleave,
    Swizzle,
    OutOfBounds,
    /// 0 for tiles, 1 for columns.
    Mode,
    /// Corners of columns, of which the variants hold the dimension of an image.
    Lower(u32),
    Upper(u32),
    Pixels,
}

impl Field {
    /// Its bytes in the map, little-endian:
    ///
    /// | bytes | field |
    /// |---|---|
    /// | 0 … 7 | mark |
    /// | 8 … 15 | address |
    /// | 16 … 35 | dimensions less one, 32 bits each |
    /// | 40 … 71 | strides, 64 bits each |
    /// | 72 … 81 | tile, 16 bits each |
    /// | 82 … 86 | steps, 8 bits each |
    /// | 87 … 91 | rank less one, data type, interleave, swizzle, out of bounds |
    /// | 92 | mode |
    /// | 94 … 99 | lower corner, 16 bits each |
    /// | 100 … 105 | upper corner, 16 bits each |
    /// | 106 … 107 | pixels of a column |
    pub fn bytes(self) -> Range<usize> {
        let element = |start: u32, size: u32, number: u32| {
            let at = (start + size * number) as usize;
            at..at + size as usize
        };
        match self {
            Self::Address => 8..16,
            Self::Dim(d) => element(16, 4, d),
            Self::Stride(d) => element(40, 8, d),
            Self::Tile(d) => element(72, 2, d),
            Self::Step(d) => element(82, 1, d),
            Self::Rank => 87..88,
            Self::DataType => 88..89,
            Self::Interleave => 89..90,
            Self::Swizzle => 90..91,
            Self::OutOfBounds => 91..92,
            Self::Mode => 92..93,
            Self::Lower(d) => element(94, 2, d),
            Self::Upper(d) => element(100, 2, d),
            Self::Pixels => 106..108,
        }
    }

    /// How the value of a `tensormap.replace` stands in the map.
    pub fn encode(self, value: u64) -> u64 {
        match self {
            Self::Dim(_) => value.wrapping_sub(1),
            // The ISA numbers `.f32.ftz` before `.f64` and `.bf16`.
            Self::DataType if value == 8 => DataType::F32Ftz as u64,
            Self::DataType if matches!(value, 9 | 10) => value - 1,
            _ => value,
        }
    }
}

/// 16 bytes of a tile, which lie together in shared and in global memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The address in shared memory.
    pub shared: u32,
    /// The address in global memory of the first valid byte.
    pub global: u64,
    /// Which of the bytes are inside the tensor.
    pub valid: Range<u32>,
}

/// The bytes of a [`Chunk`].
pub const CHUNK: u32 = 16;

impl Tensor {
    /// The map for a kernel that the CPU executes, as its parameter; a kernel on a GPU cannot use it.
    #[must_use]
    pub fn encode(&self) -> [u8; MAP_BYTES as usize] {
        let mut map = [0; MAP_BYTES as usize];
        map[..MAGIC.len()].copy_from_slice(&MAGIC);
        let mut put = |field: Field, value: u64| {
            let bytes = field.bytes();
            let len = bytes.len();
            map[bytes].copy_from_slice(&value.to_le_bytes()[..len]);
        };
        put(Field::Address, self.address);
        for d in 0..self.dims.len().min(5) {
            put(Field::Dim(d as u32), self.dims[d].wrapping_sub(1));
            put(Field::Step(d as u32), self.steps[d].into());
        }
        for (d, tile) in self.tile.iter().enumerate().take(5) {
            put(Field::Tile(d as u32), (*tile).into());
        }
        if let Some(columns) = &self.columns {
            put(Field::Mode, 1);
            put(Field::Pixels, columns.pixels.into());
            for (d, (lower, upper)) in columns.lower.iter().zip(&columns.upper).enumerate().take(3)
            {
                put(Field::Lower(d as u32), *lower as u64);
                put(Field::Upper(d as u32), *upper as u64);
            }
        }
        for (d, stride) in self.strides.iter().enumerate().take(4) {
            put(Field::Stride(d as u32), *stride);
        }
        put(Field::Rank, (self.dims.len() as u64).wrapping_sub(1));
        put(Field::DataType, self.data_type as u64);
        put(Field::Interleave, self.interleave as u64);
        put(Field::Swizzle, self.swizzle as u64);
        put(Field::OutOfBounds, self.out_of_bounds as u64);
        map
    }
}

/// How the tiles of a tensor lie in memory.
#[derive(Debug)]
pub struct Layout {
    pub tensor: Tensor,
    /// The bytes of what the innermost dimension counts: an element or, interleaved, a pixel's slice of channels.
    unit: u32,
    /// How much of each dimension a tile has; of a column, its channels and its pixels.
    extent: Vec<u32>,
}

impl Layout {
    /// What a map describes, if a copy of `rank` dimensions, of columns or of tiles, can use it; the error says what was
    /// expected.
    pub fn decode(map: &[u8], rank: u32, of_columns: bool) -> Result<Self, String> {
        if !map.starts_with(&MAGIC) {
            return Err("a tensor map for the CPU, as `Tensor::encode` makes it".to_owned());
        }
        let get = |field: Field| {
            let mut value = [0; 8];
            let bytes = &map[field.bytes()];
            value[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(value)
        };
        let found = get(Field::Rank) + 1;
        if found != u64::from(rank) {
            return Err(format!("a tensor map of {rank} dimensions, found {found}"));
        }
        if of_columns != (get(Field::Mode) == 1) {
            let modes = ["tiles", "columns (im2col)"];
            let [expected, found] =
                [usize::from(of_columns), usize::from(!of_columns)].map(|it| modes[it]);
            return Err(format!("a tensor map of {expected}, found one of {found}"));
        }
        let corner = |field: fn(u32) -> Field| {
            let image = 0..rank.saturating_sub(2);
            Vec::from_iter(image.map(|d| i32::from(get(field(d)) as i16)))
        };
        let columns = of_columns.then(|| Columns {
            lower: corner(Field::Lower),
            upper: corner(Field::Upper),
            pixels: get(Field::Pixels) as u32,
        });
        let layouts = [Interleave::None, Interleave::Bytes16, Interleave::Bytes32];
        let tensor = Tensor {
            data_type: choose(&DataType::ALL, get(Field::DataType), "data type")?,
            address: get(Field::Address),
            dims: (0..rank).map(|d| get(Field::Dim(d)) + 1).collect(),
            strides: (0..rank - 1).map(|d| get(Field::Stride(d))).collect(),
            tile: (0..if of_columns { 1 } else { rank })
                .map(|d| get(Field::Tile(d)) as u32)
                .collect(),
            columns,
            steps: (0..rank).map(|d| get(Field::Step(d)) as u32).collect(),
            interleave: choose(&layouts, get(Field::Interleave), "interleave")?,
            swizzle: choose(&Swizzle::EXECUTED, get(Field::Swizzle), "swizzle of sm_90")?,
            out_of_bounds: choose(
                &[OutOfBounds::Zero, OutOfBounds::Nan],
                get(Field::OutOfBounds),
                "fill",
            )?,
        };
        if tensor.tile.contains(&0) || tensor.steps.contains(&0) {
            return Err(format!(
                "tiles and steps of at least one element, found {:?} and {:?}",
                tensor.tile, tensor.steps
            ));
        }
        let unit = match tensor.interleave {
            Interleave::None => tensor.data_type.bytes() as u32,
            Interleave::Bytes16 => 16,
            Interleave::Bytes32 => 32,
        };
        let extent = match &tensor.columns {
            Some(columns) => extent_of_column(&tensor, columns)?,
            None => extent(&tensor, unit)?,
        };
        let layout = Self {
            extent,
            tensor,
            unit,
        };
        let (row, swizzle) = (layout.row_bytes(), layout.tensor.swizzle);
        let span = swizzle
            .span()
            .filter(|_| layout.tensor.interleave == Interleave::None);
        if !row.is_multiple_of(CHUNK) || span.is_some_and(|span| u64::from(row) > span) {
            return Err(format!(
                "rows of a tile of whole 16 bytes and within the swizzle, found {row} bytes and {swizzle:?}"
            ));
        }
        Ok(layout)
    }

    fn row_bytes(&self) -> u32 {
        self.extent[0] * self.unit
    }

    /// The bytes of a tile in shared memory.
    pub fn tile_bytes(&self) -> u32 {
        let rows = self.extent[1..].iter();
        rows.fold(self.row_bytes(), |bytes, count| {
            bytes.saturating_mul(*count)
        })
    }

    /// Whether a copy may begin at `corner`; the error says what was expected.
    pub fn check_corner(&self, corner: &[i32]) -> Result<(), String> {
        match &self.tensor.columns {
            Some(columns) => columns.check_start(&corner[1..], &self.tensor.dims[1..]),
            None => Ok(()),
        }
    }

    /// The bytes from `at` of the tile or the column at `corner`, whose place in shared memory is `shared`. The `offsets`
    /// are of pixels.
    pub fn chunk(&self, corner: &[i32], offsets: &[u16], shared: u32, at: u32) -> Chunk {
        let tensor = &self.tensor;
        let unit = i64::from(self.unit);
        // Bytes along the innermost dimension.
        let from = i64::from(corner[0]) * unit + i64::from(at % self.row_bytes());
        let end = tensor.dims[0] as i64 * unit;
        let (start, end) = (
            (-from).clamp(0, 16) as u32,
            (end - from).clamp(0, 16) as u32,
        );
        let mut inside = start < end;
        let mut global = tensor.address.wrapping_add(from.max(0) as u64);
        let row = at / self.row_bytes();
        for (d, coordinate) in self.outer(corner, offsets, row).into_iter().enumerate() {
            inside &= (0..tensor.dims[d + 1] as i64).contains(&coordinate);
            global = global.wrapping_add((coordinate as u64).wrapping_mul(tensor.strides[d]));
        }
        Chunk {
            shared: tensor.swizzle.place(shared + at),
            global,
            valid: if inside { start..end } else { 0..0 },
        }
    }

    /// The coordinates of a row of the tile, or of a pixel of the column, in all dimensions but the innermost.
    fn outer(&self, corner: &[i32], offsets: &[u16], mut row: u32) -> Vec<i64> {
        let Tensor {
            columns,
            dims,
            steps,
            ..
        } = &self.tensor;
        let Some(columns) = columns else {
            let outer = corner.iter().enumerate().skip(1);
            let coordinate = |(d, first): (usize, &i32)| {
                let step = i64::from(row % self.extent[d]) * i64::from(steps[d]);
                row /= self.extent[d];
                i64::from(*first) + step
            };
            return outer.map(coordinate).collect();
        };
        let mut pixel = columns.pixel(row, &corner[1..], &dims[1..], &steps[1..]);
        for (coordinate, offset) in pixel.iter_mut().zip(offsets) {
            *coordinate += i64::from(*offset);
        }
        pixel
    }

    /// What a load gives for 16 bytes outside the tensor: zeros, or a NaN in each 16 bits.
    pub fn outside(&self) -> [u8; CHUNK as usize] {
        match self.tensor.out_of_bounds {
            OutOfBounds::Zero => [0; CHUNK as usize],
            OutOfBounds::Nan => std::array::from_fn(|at| [0xf7, 0x7f][at % 2]),
        }
    }

    /// What a load makes of elements: those of tf32 are rounded. Subnormal numbers stay, also those that the
    /// type says are flushed, as on an H200.
    pub fn round(&self, elements: &mut [u8]) {
        if !matches!(self.tensor.data_type, DataType::Tf32 | DataType::Tf32Ftz) {
            return;
        }
        for element in elements.chunks_exact_mut(4) {
            let bits = u32::from_le_bytes([element[0], element[1], element[2], element[3]]);
            element.copy_from_slice(&to_tf32(bits).to_le_bytes());
        }
    }
}

fn choose<T: Copy>(all: &[T], number: u64, what: &str) -> Result<T, String> {
    let found = all.get(number as usize).copied();
    found.ok_or_else(|| format!("a {what} below {}, found {number}", all.len()))
}

/// How much of each dimension a tile has: elements at their steps. Interleaved, an H200 counts the channels,
/// the last dimension but one, in slices; how it counts tiles of more than one slice is not known here.
fn extent(tensor: &Tensor, unit: u32) -> Result<Vec<u32>, String> {
    let dims = tensor.tile.iter().zip(&tensor.steps);
    let mut extent = Vec::from_iter(dims.map(|(tile, step)| tile.div_ceil(*step)));
    if tensor.interleave == Interleave::None {
        // Steps along the innermost dimension are ignored.
        extent[0] = tensor.tile[0];
        return Ok(extent);
    }
    let Some(channels) = tensor.dims.len().checked_sub(2).filter(|it| *it > 0) else {
        return Err(format!("at least 3 dimensions for {:?}", tensor.interleave));
    };
    let of_slice = unit / tensor.data_type.bytes() as u32;
    if extent[channels] > of_slice || tensor.steps[0] != 1 {
        return Err(format!(
            "interleaved tiles of one slice of {of_slice} channels, without steps of pixels, found tiles of {:?} \
             and steps of {:?}",
            tensor.tile, tensor.steps
        ));
    }
    extent[channels] = 1;
    Ok(extent)
}

/// The channels and the pixels of a column.
fn extent_of_column(tensor: &Tensor, columns: &Columns) -> Result<Vec<u32>, String> {
    if tensor.interleave != Interleave::None {
        return Err("columns of tensors without interleave".to_owned());
    }
    let images = tensor.dims.len().saturating_sub(2);
    let boxes = (0..images).all(|d| {
        i64::from(columns.lower[d]) < tensor.dims[d + 1] as i64 + i64::from(columns.upper[d])
    });
    if images == 0 || !boxes || columns.pixels == 0 {
        return Err(format!(
            "columns of pixels of a box, at least one, found {:?} of images of {:?}",
            columns,
            &tensor.dims[1..]
        ));
    }
    Ok(vec![tensor.tile[0], columns.pixels])
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

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> Tensor {
        Tensor {
            data_type: DataType::U32,
            address: 0x1000,
            dims: vec![6, 3],
            strides: vec![32],
            tile: vec![8, 2],
            columns: None,
            steps: vec![1, 1],
            interleave: Interleave::None,
            swizzle: Swizzle::None,
            out_of_bounds: OutOfBounds::Zero,
        }
    }

    #[test]
    fn a_map_says_again_what_was_put_into_it() {
        let layout = Layout::decode(&matrix().encode(), 2, false).unwrap();
        assert_eq!((layout.tile_bytes(), layout.tensor), (64, matrix()));
        let error = Layout::decode(&matrix().encode(), 3, false).unwrap_err();
        assert!(error.contains("3 dimensions, found 2"), "{error}");
        assert!(Layout::decode(&[0; 128], 2, false).is_err());
    }

    #[test]
    fn a_replaced_field_is_another_tensor() {
        let mut map = matrix().encode();
        map[Field::Dim(1).bytes()].copy_from_slice(&(Field::Dim(1).encode(7) as u32).to_le_bytes());
        map[Field::DataType.bytes()][0] = Field::DataType.encode(9) as u8;
        let tensor = Layout::decode(&map, 2, false).unwrap().tensor;
        assert_eq!((tensor.dims[1], tensor.data_type), (7, DataType::F64));
    }

    #[test]
    fn chunks_over_an_edge_are_valid_in_part() {
        let layout = Layout::decode(&matrix().encode(), 2, false).unwrap();
        let chunk = |corner: [i32; 2], at| layout.chunk(&corner, &[], 0x400, at);
        assert_eq!(chunk([0, 0], 0).valid, 0..16);
        assert_eq!(chunk([0, 0], 16).valid, 0..8);
        assert_eq!(chunk([-1, 1], 0).valid, 4..16);
        assert_eq!(chunk([-1, 1], 0).global, 0x1020);
        assert_eq!(chunk([0, 2], 32).valid, 0..0);
        assert_eq!(
            chunk([4, 1], 0),
            Chunk {
                shared: 0x400,
                global: 0x1030,
                valid: 0..8
            }
        );
    }

    #[test]
    fn a_pixel_of_an_interleaved_tensor_is_a_slice_of_channels() {
        // 7 pixels, 4 slices, 3 images, as the differential scenario has them.
        let tensor = Tensor {
            data_type: DataType::U16,
            address: 0,
            dims: vec![7, 4, 3],
            strides: vec![256, 1024],
            tile: vec![5, 2, 2],
            columns: None,
            steps: vec![1; 3],
            interleave: Interleave::Bytes32,
            swizzle: Swizzle::Bytes32,
            out_of_bounds: OutOfBounds::Zero,
        };
        let layout = Layout::decode(&tensor.encode(), 3, false).unwrap();
        assert_eq!(layout.tile_bytes(), 5 * 2 * 32);
        let global = |at| layout.chunk(&[1, 2, 1], &[], 0, at).global;
        let first = 32 + 2 * 256 + 1024;
        assert_eq!([0, 16, 160].map(global), [first, first + 16, first + 1024]);
        let wide = Tensor {
            tile: vec![5, 17, 2],
            ..tensor
        };
        assert!(Layout::decode(&wide.encode(), 3, false).is_err());
    }

    #[test]
    fn a_column_takes_pixels_at_offsets() {
        // 32 channels of 16 bits, images of 5 by 4 pixels.
        let tensor = Tensor {
            data_type: DataType::U16,
            address: 0x1000,
            dims: vec![32, 5, 4, 2],
            strides: vec![64, 320, 1280],
            tile: vec![16],
            columns: Some(Columns {
                lower: vec![-1, -1],
                upper: vec![-1, -1],
                pixels: 24,
            }),
            steps: vec![1; 4],
            interleave: Interleave::None,
            swizzle: Swizzle::None,
            out_of_bounds: OutOfBounds::Zero,
        };
        let layout = Layout::decode(&tensor.encode(), 4, true).unwrap();
        assert_eq!((layout.tile_bytes(), &layout.tensor), (24 * 32, &tensor));
        let chunk = |offsets: [u16; 2], at| layout.chunk(&[16, -1, -1, 0], &offsets, 0, at);
        // Before the image, and its first pixel.
        assert_eq!(chunk([0, 0], 0).valid, 0..0);
        assert_eq!(
            (chunk([1, 1], 0).global, chunk([1, 1], 0).valid),
            (0x1000 + 32, 0..16)
        );
        // The box has 5 pixels in a row and 4 rows; the second chunk of pixel 7 is the third of the second row.
        assert_eq!(
            chunk([2, 2], 7 * 32 + 16).global,
            0x1000 + 2 * 320 + 3 * 64 + 48
        );
        // Pixel 20 is the first of the second image.
        assert_eq!(chunk([1, 1], 20 * 32).global, 0x1000 + 1280 + 32);
        assert_eq!(layout.check_corner(&[0, -1, -1, 5]), Ok(()));
        assert!(layout.check_corner(&[0, 4, 0, 0]).is_err());
        assert!(Layout::decode(&tensor.encode(), 4, false).is_err());
        assert!(Layout::decode(&matrix().encode(), 2, true).is_err());
    }

    #[test]
    fn tf32_is_rounded_to_ten_bits_halves_to_even() {
        assert_eq!(to_tf32(0x3f80_1000), 0x3f80_0000);
        assert_eq!(to_tf32(0x3f80_3000), 0x3f80_4000);
        assert_eq!(to_tf32(0xbf80_0fff), 0xbf80_0000);
        assert_eq!(to_tf32(0xff80_0000), 0xff80_0000);
        assert_eq!(to_tf32(0x7fc0_0001), 0x7fff_e000);
    }

    #[test]
    fn lines_of_128_bytes_are_swizzled_by_their_number() {
        assert_eq!(Swizzle::Bytes128.place(0x80), 0x90);
        assert_eq!(Swizzle::Bytes128.place(0x3f4), 0x384);
        assert_eq!(Swizzle::Bytes64.place(0x180), 0x1b0);
        assert_eq!(Swizzle::Bytes32.place(0x100), 0x100);
    }
}
