//! Tensor maps: what the bulk tensor copies of sm_90 know of a tensor in global memory.

use std::ffi::c_void;

use cust::memory::{DeviceCopy, DevicePointer};

use super::api::call;
use super::error::code;
use super::{Driver, DriverError};
use crate::exec::{Columns, Tensor};
pub use crate::exec::{DataType, Interleave, OutOfBounds, Swizzle};

/// An encoded tensor map (`CUtensorMap`): 128 bytes that only the driver and the GPU read.
///
/// It goes to a kernel by value as a grid-constant parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(128))]
pub struct TensorMap(pub [u64; 16]);

/// The size to which the L2 cache widens a read.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum L2Promotion {
    #[default]
    None = 0,
    Bytes64 = 1,
    Bytes128 = 2,
    Bytes256 = 3,
}

/// The mode of copies that stay in one row of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WideMode {
    /// `im2col::w`: as many pixels as the map says, and a halo.
    W = 0,
    /// `im2col::w::128`: 128 pixels, with a halo behind each 32.
    W128 = 1,
}

/// Describes a tensor and the part that one copy moves. Dimensions are innermost first.
#[derive(Clone, Debug)]
pub struct TensorMapBuilder {
    data_type: DataType,
    address: u64,
    dims: Vec<u64>,
    strides: Vec<u64>,
    element_strides: Vec<u32>,
    part: Part,
    interleave: Interleave,
    swizzle: Swizzle,
    l2_promotion: L2Promotion,
    out_of_bounds: OutOfBounds,
}

/// What one copy moves.
#[derive(Clone, Debug)]
enum Part {
    Tiled {
        box_dims: Vec<u32>,
    },
    Im2col {
        lower: Vec<i32>,
        upper: Vec<i32>,
        channels_per_pixel: u32,
        pixels_per_column: u32,
    },
    Im2colWide {
        lower: i32,
        upper: i32,
        channels_per_pixel: u32,
        pixels_per_column: u32,
        mode: WideMode,
    },
}

impl TensorMapBuilder {
    /// A packed tensor of `dims` elements at `address`, copied in boxes of `box_dims` elements.
    pub fn tiled<T: DeviceCopy>(
        data_type: DataType,
        address: DevicePointer<T>,
        dims: &[u64],
        box_dims: &[u32],
    ) -> TensorMapBuilder {
        let box_dims = box_dims.to_vec();
        TensorMapBuilder::new(data_type, address.as_raw(), dims, Part::Tiled { box_dims })
    }

    /// A packed tensor of `dims` elements (C, W, H, D, N without the absent ones), copied in columns.
    ///
    /// `lower` and `upper` are the corners of the bounding box, as offsets in pixels from those of
    /// the tensor, in the order of the spatial dimensions of `cuTensorMapEncodeIm2col`.
    pub fn im2col<T: DeviceCopy>(
        data_type: DataType,
        address: DevicePointer<T>,
        dims: &[u64],
        (lower, upper): (&[i32], &[i32]),
        channels_per_pixel: u32,
        pixels_per_column: u32,
    ) -> TensorMapBuilder {
        let part = Part::Im2col {
            lower: lower.to_vec(),
            upper: upper.to_vec(),
            channels_per_pixel,
            pixels_per_column,
        };
        TensorMapBuilder::new(data_type, address.as_raw(), dims, part)
    }

    /// A packed tensor of `dims` elements, as that of [`TensorMapBuilder::im2col`], copied in columns that stay in one
    /// row of an image. Its swizzle must be set; `pixels_per_column` does not count with [`WideMode::W128`]. For GPUs
    /// from sm_100 on.
    ///
    /// `lower` and `upper` are the first and the last pixel of the bounding box, from those of a row.
    pub fn im2col_wide<T: DeviceCopy>(
        data_type: DataType,
        address: DevicePointer<T>,
        dims: &[u64],
        (lower, upper): (i32, i32),
        (channels_per_pixel, pixels_per_column): (u32, u32),
        mode: WideMode,
    ) -> TensorMapBuilder {
        let part = Part::Im2colWide {
            lower,
            upper,
            channels_per_pixel,
            pixels_per_column,
            mode,
        };
        TensorMapBuilder::new(data_type, address.as_raw(), dims, part)
    }

    fn new(data_type: DataType, address: u64, dims: &[u64], part: Part) -> TensorMapBuilder {
        let packed = dims.iter().scan(data_type.bytes(), |stride, dim| {
            *stride = stride.saturating_mul(*dim);
            Some(*stride)
        });
        TensorMapBuilder {
            data_type,
            address,
            strides: packed.take(dims.len().saturating_sub(1)).collect(),
            dims: dims.to_vec(),
            element_strides: vec![1; dims.len()],
            part,
            interleave: Interleave::default(),
            swizzle: Swizzle::default(),
            l2_promotion: L2Promotion::default(),
            out_of_bounds: OutOfBounds::default(),
        }
    }

    /// The distance in bytes between neighbours in each dimension but the innermost.
    pub fn strides(mut self, bytes: &[u64]) -> TensorMapBuilder {
        self.strides = bytes.to_vec();
        self
    }

    /// Every so many elements of each dimension are copied.
    pub fn element_strides(mut self, elements: &[u32]) -> TensorMapBuilder {
        self.element_strides = elements.to_vec();
        self
    }

    /// The interleaved layout in global memory.
    pub fn interleave(mut self, interleave: Interleave) -> TensorMapBuilder {
        self.interleave = interleave;
        self
    }

    /// The swizzle in shared memory.
    pub fn swizzle(mut self, swizzle: Swizzle) -> TensorMapBuilder {
        self.swizzle = swizzle;
        self
    }

    /// The size to which the L2 cache widens a read.
    pub fn l2_promotion(mut self, promotion: L2Promotion) -> TensorMapBuilder {
        self.l2_promotion = promotion;
        self
    }

    /// What a load gives for elements outside the tensor.
    pub fn out_of_bounds(mut self, fill: OutOfBounds) -> TensorMapBuilder {
        self.out_of_bounds = fill;
        self
    }

    /// Has the driver encode the map; a rule that is broken is named.
    pub fn encode(&self, driver: &Driver) -> Result<TensorMap, DriverError> {
        let call = match self.part {
            Part::Tiled { .. } => "cuTensorMapEncodeTiled",
            Part::Im2col { .. } => "cuTensorMapEncodeIm2col",
            Part::Im2colWide { .. } => "cuTensorMapEncodeIm2colWide",
        };
        self.check().map_err(|rule| {
            driver
                .api
                .error(call, code::INVALID_VALUE)
                .with_detail(rule)
        })?;
        let mut map = TensorMap([0; 16]);
        let out = (&raw mut map).cast::<c_void>();
        let (data_type, rank) = (self.data_type as u32, self.dims.len() as u32);
        let (interleave, swizzle) = (self.interleave as u32, self.swizzle as u32);
        let (promotion, fill) = (self.l2_promotion as u32, self.out_of_bounds as u32);
        let (dims, strides) = (self.dims.as_ptr(), self.strides.as_ptr());
        let steps = self.element_strides.as_ptr();
        match &self.part {
            Part::Tiled { box_dims } => call!(
                driver.api,
                cuTensorMapEncodeTiled(
                    out,
                    data_type,
                    rank,
                    self.address,
                    dims,
                    strides,
                    box_dims.as_ptr(),
                    steps,
                    interleave,
                    swizzle,
                    promotion,
                    fill,
                )
            ),
            Part::Im2col {
                lower,
                upper,
                channels_per_pixel,
                pixels_per_column,
            } => call!(
                driver.api,
                cuTensorMapEncodeIm2col(
                    out,
                    data_type,
                    rank,
                    self.address,
                    dims,
                    strides,
                    lower.as_ptr(),
                    upper.as_ptr(),
                    *channels_per_pixel,
                    *pixels_per_column,
                    steps,
                    interleave,
                    swizzle,
                    promotion,
                    fill,
                )
            ),
            Part::Im2colWide {
                lower,
                upper,
                channels_per_pixel,
                pixels_per_column,
                mode,
            } => {
                let Some(encode) = driver.api.cuTensorMapEncodeIm2colWide else {
                    let missing = "the driver lacks it: CUDA 12.8 has it";
                    let error = driver.api.error(call, code::INVALID_VALUE);
                    return Err(error.with_detail(missing.to_owned()));
                };
                // SAFETY: pointers are to live values of the declared types.
                let found = unsafe {
                    encode(
                        out,
                        data_type,
                        rank,
                        self.address,
                        dims,
                        strides,
                        *lower,
                        *upper,
                        *channels_per_pixel,
                        *pixels_per_column,
                        steps,
                        interleave,
                        *mode as u32,
                        swizzle,
                        promotion,
                        fill,
                    )
                };
                driver.api.check(call, found)
            }
        }?;
        Ok(map)
    }

    /// The map for a kernel that the CPU executes ([`crate::exec`]); a rule that is broken is named.
    ///
    /// # Errors
    ///
    /// A broken rule, or copies in columns that stay in one row, which sm_90 lacks.
    pub fn encode_for_cpu(&self) -> Result<TensorMap, String> {
        self.check()?;
        let (tile, columns) = match &self.part {
            Part::Tiled { box_dims } => (box_dims.clone(), None),
            Part::Im2col {
                lower,
                upper,
                channels_per_pixel,
                pixels_per_column,
            } => {
                let columns = Columns {
                    lower: lower.clone(),
                    upper: upper.clone(),
                    pixels: *pixels_per_column,
                };
                (vec![*channels_per_pixel], Some(columns))
            }
            Part::Im2colWide { .. } => {
                return Err("im2col_wide: such copies are not executed on the CPU".to_owned());
            }
        };
        let tensor = Tensor {
            data_type: self.data_type,
            address: self.address,
            dims: self.dims.clone(),
            strides: self.strides.clone(),
            tile,
            columns,
            steps: self.element_strides.clone(),
            interleave: self.interleave,
            swizzle: self.swizzle,
            out_of_bounds: self.out_of_bounds,
        };
        let mut map = TensorMap([0; 16]);
        for (word, bytes) in map.0.iter_mut().zip(tensor.encode().chunks_exact(8)) {
            *word = bytes
                .iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        Ok(map)
    }

    /// The rules of cuda.h; the driver's own answer would be CUDA_ERROR_INVALID_VALUE without a word.
    fn check(&self) -> Result<(), String> {
        let rank = self.dims.len();
        let interleaved = self.interleave != Interleave::None;
        let im2col = !matches!(self.part, Part::Tiled { .. });
        let lowest = if interleaved || im2col { 3 } else { 1 };
        rule((lowest..=5).contains(&rank), || {
            format!("rank: expected {lowest} to 5, found {rank}")
        })?;
        length("strides", self.strides.len(), rank - 1)?;
        length("element strides", self.element_strides.len(), rank)?;

        let align = if self.interleave == Interleave::Bytes32 {
            32
        } else {
            16
        };
        rule(self.address.is_multiple_of(align), || {
            format!(
                "address: expected a multiple of {align} bytes, found {:#x}",
                self.address
            )
        })?;
        each("dimensions", &self.dims, "1 to 2^31 elements", |dim| {
            (1..=1 << 31).contains(&dim)
        })?;
        each(
            "strides",
            &self.strides,
            &format!("multiples of {align} bytes below 2^40"),
            |stride| stride.is_multiple_of(align) && stride < 1 << 40,
        )?;
        each("element strides", &self.element_strides, "1 to 8", |step| {
            (1..=8).contains(&step)
        })?;
        rule(
            self.out_of_bounds == OutOfBounds::Zero || self.data_type.is_float(),
            || {
                format!(
                    "out-of-bounds fill: NaN wants a floating-point type, found {:?}",
                    self.data_type
                )
            },
        )?;
        rule(
            self.interleave != Interleave::Bytes32 || self.swizzle == Swizzle::Bytes32,
            || {
                format!(
                    "swizzle: interleave of 32 bytes wants Bytes32, found {:?}",
                    self.swizzle
                )
            },
        )?;

        let row = self.data_type.bytes() * u64::from(self.check_part(rank)?);
        if interleaved {
            return Ok(());
        }
        rule(im2col || row.is_multiple_of(16), || {
            format!("row of a box: expected a multiple of 16 bytes, found {row}")
        })?;
        rule(self.swizzle.span().is_none_or(|span| row <= span), || {
            format!(
                "row of a box: expected no more bytes than swizzle {:?}, found {row}",
                self.swizzle
            )
        })
    }

    /// Gives the elements of the innermost dimension of a box.
    fn check_part(&self, rank: usize) -> Result<u32, String> {
        match &self.part {
            Part::Tiled { box_dims } => {
                length("box dimensions", box_dims.len(), rank)?;
                each("box dimensions", box_dims, "1 to 256 elements", |dim| {
                    (1..=256).contains(&dim)
                })?;
                Ok(box_dims[0])
            }
            Part::Im2col {
                lower,
                upper,
                channels_per_pixel,
                pixels_per_column,
            } => {
                let limit = [1 << 15, 1 << 7, 1 << 4][rank - 3];
                for (name, corner) in [("lower corner", lower), ("upper corner", upper)] {
                    length(name, corner.len(), rank - 2)?;
                    each(
                        name,
                        corner,
                        &format!("{} to {}", -limit, limit - 1),
                        |offset| (-limit..limit).contains(&offset),
                    )?;
                }
                for (d, (lower, upper)) in lower.iter().zip(upper).enumerate() {
                    self.check_box(d + 1, *lower, *upper)?;
                }
                check_column(*channels_per_pixel, *pixels_per_column)?;
                Ok(*channels_per_pixel)
            }
            Part::Im2colWide {
                lower,
                upper,
                channels_per_pixel,
                pixels_per_column,
                mode,
            } => {
                rule(self.interleave == Interleave::None, || {
                    format!("interleave: expected None, found {:?}", self.interleave)
                })?;
                let swizzles = [Swizzle::Bytes64, Swizzle::Bytes128, Swizzle::Bytes128Atom32];
                rule(swizzles.contains(&self.swizzle), || {
                    format!(
                        "swizzle: expected one of {swizzles:?}, found {:?}",
                        self.swizzle
                    )
                })?;
                for (name, corner) in [("lower corner", *lower), ("upper corner", *upper)] {
                    each(name, &[corner], "-32768 to 32767", |offset| {
                        (-(1 << 15)..1 << 15).contains(&offset)
                    })?;
                }
                self.check_box(1, *lower, *upper)?;
                let pixels = match mode {
                    WideMode::W => *pixels_per_column,
                    WideMode::W128 => 128,
                };
                check_column(*channels_per_pixel, pixels)?;
                Ok(*channels_per_pixel)
            }
        }
    }

    /// The bounding box has pixels along dimension `d`.
    fn check_box(&self, d: usize, lower: i32, upper: i32) -> Result<(), String> {
        let pixels = i64::try_from(self.dims[d]).unwrap_or(i64::MAX);
        let size = pixels.saturating_add(i64::from(upper) - i64::from(lower));
        rule(size > 0, || {
            format!(
                "bounding box: expected pixels along dimension {d}, found none from {lower} to {} + {upper}",
                pixels - 1
            )
        })
    }
}

fn check_column(channels_per_pixel: u32, pixels_per_column: u32) -> Result<(), String> {
    each(
        "channels per pixel",
        &[channels_per_pixel],
        "1 to 256",
        |n| (1..=256).contains(&n),
    )?;
    each(
        "pixels per column",
        &[pixels_per_column],
        "1 to 1024",
        |n| (1..=1024).contains(&n),
    )
}

fn rule(holds: bool, broken: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken()) }
}

fn length(name: &str, found: usize, expected: usize) -> Result<(), String> {
    rule(found == expected, || {
        format!("{name}: expected {expected} of them, found {found}")
    })
}

fn each<T: Copy + std::fmt::Debug>(
    name: &str,
    values: &[T],
    expected: &str,
    holds: impl Fn(T) -> bool,
) -> Result<(), String> {
    rule(values.iter().all(|value| holds(*value)), || {
        format!("{name}: expected {expected}, found {values:?}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> TensorMapBuilder {
        let address = DevicePointer::<f32>::from_raw(0x1000);
        TensorMapBuilder::tiled(DataType::F32, address, &[64, 32], &[32, 8])
    }

    fn broken(builder: TensorMapBuilder) -> String {
        builder.check().expect_err("a rule is broken")
    }

    #[test]
    fn a_packed_tensor_has_the_strides_of_its_rows() {
        assert_eq!(matrix().strides, [256]);
        assert_eq!(matrix().check(), Ok(()));
        assert_eq!(matrix().swizzle(Swizzle::Bytes128).check(), Ok(()));
    }

    #[test]
    fn a_broken_rule_is_named() {
        let odd = DevicePointer::<f32>::from_raw(0x1008);
        for (builder, expected) in [
            (
                matrix().strides(&[100]),
                "strides: expected multiples of 16 bytes below 2^40, found [100]",
            ),
            (
                matrix().strides(&[]),
                "strides: expected 1 of them, found 0",
            ),
            (
                matrix().element_strides(&[1, 9]),
                "element strides: expected 1 to 8, found [1, 9]",
            ),
            (
                matrix().swizzle(Swizzle::Bytes64),
                "row of a box: expected no more bytes than swizzle Bytes64, found 128",
            ),
            (
                matrix().interleave(Interleave::Bytes16),
                "rank: expected 3 to 5, found 2",
            ),
            (
                TensorMapBuilder::tiled(DataType::F32, odd, &[64], &[32]),
                "address: expected a multiple of 16 bytes, found 0x1008",
            ),
            (
                TensorMapBuilder::tiled(
                    DataType::U8,
                    DevicePointer::<u8>::from_raw(0),
                    &[64],
                    &[257],
                ),
                "box dimensions: expected 1 to 256 elements, found [257]",
            ),
            (
                TensorMapBuilder::tiled(
                    DataType::U8,
                    DevicePointer::<u8>::from_raw(0),
                    &[64],
                    &[24],
                ),
                "row of a box: expected a multiple of 16 bytes, found 24",
            ),
            (
                TensorMapBuilder::tiled(
                    DataType::U8,
                    DevicePointer::<u8>::from_raw(0),
                    &[64],
                    &[16],
                )
                .out_of_bounds(OutOfBounds::Nan),
                "out-of-bounds fill: NaN wants a floating-point type, found U8",
            ),
        ] {
            assert_eq!(broken(builder), expected);
        }
    }

    #[test]
    fn corners_of_im2col_are_bounded_by_rank() {
        let address = DevicePointer::<u16>::from_raw(0x1000);
        let map = |corner: i32| {
            let corners = (&[corner, 0][..], &[0, 0][..]);
            TensorMapBuilder::im2col(DataType::F16, address, &[64, 16, 16, 2], corners, 64, 32)
        };
        assert_eq!(map(-128).check(), Ok(()));
        assert_eq!(
            broken(map(-129)),
            "lower corner: expected -128 to 127, found [-129, 0]"
        );
    }

    #[test]
    fn a_bounding_box_has_pixels() {
        let address = DevicePointer::<u16>::from_raw(0x1000);
        let map = |lower: i32, upper: i32| {
            let corners = (&[0, lower][..], &[0, upper][..]);
            TensorMapBuilder::im2col(DataType::F16, address, &[64, 16, 8, 2], corners, 64, 32)
        };
        assert_eq!(map(3, -4).check(), Ok(()));
        assert_eq!(
            broken(map(3, -5)),
            "bounding box: expected pixels along dimension 2, found none from 3 to 7 + -5"
        );
    }

    #[test]
    fn columns_in_one_row_want_a_swizzle() {
        let address = DevicePointer::<u16>::from_raw(0x1000);
        let map = |pixels, mode| {
            let counts = (64, pixels);
            TensorMapBuilder::im2col_wide(
                DataType::F16,
                address,
                &[64, 16, 8, 2],
                (-1, -1),
                counts,
                mode,
            )
        };
        let wide = |pixels, mode| map(pixels, mode).swizzle(Swizzle::Bytes128);
        assert_eq!(wide(1024, WideMode::W).check(), Ok(()));
        assert_eq!(wide(0, WideMode::W128).check(), Ok(()));
        assert_eq!(
            broken(wide(1025, WideMode::W)),
            "pixels per column: expected 1 to 1024, found [1025]"
        );
        assert_eq!(
            broken(map(64, WideMode::W)),
            "swizzle: expected one of [Bytes64, Bytes128, Bytes128Atom32], found None"
        );
        assert_eq!(
            broken(wide(64, WideMode::W).swizzle(Swizzle::Bytes64)),
            "row of a box: expected no more bytes than swizzle Bytes64, found 128"
        );
    }

    #[test]
    fn the_cpu_has_columns_but_not_those_of_one_row() {
        let address = DevicePointer::<u16>::from_raw(0x1000);
        let corners = (&[0, 0][..], &[0, 0][..]);
        let dims = [64, 16, 16, 2];
        let map = TensorMapBuilder::im2col(DataType::F16, address, &dims, corners, 64, 32);
        assert!(map.encode_for_cpu().is_ok());
        let wide = TensorMapBuilder::im2col_wide(
            DataType::F16,
            address,
            &dims,
            (0, 0),
            (64, 32),
            WideMode::W,
        );
        assert!(wide.swizzle(Swizzle::Bytes128).encode_for_cpu().is_err());
    }
}
