//! Matrices of whole numbers, as bits and where they lie.

use super::ROWS;
use crate::differential::scenario::Random;
use crate::differential::scenario::beyond::floats::FloatType;

/// Bytes that lie together.
const CHUNK: usize = 16;

/// The type of the elements of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    Float(FloatType),
    S8,
    U8,
    B1,
}

/// The type of the elements of D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    F32,
    F16,
    S32,
}

impl Element {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            // Bits of a fraction that do not count.
            "tf32" => Self::Float(FloatType::parse("f32")?),
            "s8" => Self::S8,
            "u8" => Self::U8,
            "b1" => Self::B1,
            _ => Self::Float(FloatType::parse(name)?),
        })
    }

    pub fn bits(self) -> usize {
        match self {
            Self::Float(float) => float.bits() as usize,
            Self::S8 | Self::U8 => 8,
            Self::B1 => 1,
        }
    }

    /// A number, and its bits.
    fn random(self, random: &mut Random) -> (i64, u32) {
        match self {
            Self::Float(float) => {
                // None is zero, so that sums without a sign have one: that of zero as a sum of others.
                let number = [-4, -3, -2, -1, 1, 2, 3, 4][random.below(8) as usize];
                (number, float.whole(number) as u32)
            }
            Self::S8 => {
                let number = random.word() as i8;
                (number.into(), u32::from(number as u8))
            }
            Self::U8 => {
                let number = random.word() as u8;
                (number.into(), number.into())
            }
            Self::B1 => {
                let bit = random.below(2);
                (bit as i64, bit as u32)
            }
        }
    }
}

impl Sum {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "f32" => Self::F32,
            "f16" => Self::F16,
            "s32" => Self::S32,
            _ => return None,
        })
    }

    /// How many a register holds.
    pub fn elements(self) -> usize {
        if self == Self::F16 { 2 } else { 1 }
    }

    /// What an element holds before: a number, or what is none if it does not count.
    pub fn random(self, counts: bool, random: &mut Random) -> u32 {
        let small = random.below(101) as i64 - 50;
        match self {
            Self::F32 if !counts => 0x7fff_ffff,
            Self::F16 if !counts => 0x7fff,
            // Many sums leave the range.
            Self::S32 => {
                [0x7fff_ff00, 0x8000_0000, random.word() as u32 / 2][random.below(3) as usize]
                    + small as u8 as u32
            }
            _ => self.code(small, false),
        }
    }

    /// The number of a code that [`Self::random`] gave.
    pub fn value(self, code: u32) -> i64 {
        match self {
            Self::F32 => f32::from_bits(code) as i64,
            Self::F16 => FloatType::F16.value(code.into()) as i64,
            Self::S32 => i64::from(code as i32),
        }
    }

    /// The code of a sum.
    pub fn code(self, number: i64, saturates: bool) -> u32 {
        match self {
            Self::F32 => (number as f32).to_bits(),
            Self::F16 => FloatType::F16.whole(number) as u32,
            Self::S32 if saturates => number.clamp(i32::MIN.into(), i32::MAX.into()) as u32,
            Self::S32 => number as u32,
        }
    }
}

/// Which elements of A's rows are there: a place for each nibble of metadata.
pub struct Pattern {
    /// Of tf32, one of two; else two of four.
    nibbles: Vec<u64>,
    groups: usize,
}

impl Pattern {
    pub fn random(element: Element, random: &mut Random) -> Self {
        let choices: &[u64] = match element.bits() {
            32 => &[0b0100, 0b1110],
            _ => &[0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110],
        };
        let groups = if element.bits() <= 8 { 16 } else { 8 };
        let nibble = |_| choices[random.below(choices.len() as u64) as usize];
        Self {
            nibbles: (0..ROWS * groups).map(nibble).collect(),
            groups,
        }
    }

    pub fn nibble(&self, row: usize, group: usize) -> u64 {
        self.nibbles[row * self.groups + group % self.groups]
    }

    /// The place along K of the elements of a row that are there.
    fn places(&self, row: usize, kept: usize) -> Vec<usize> {
        let groups = (0..self.groups).map(|group| (group, self.nibble(row, group) as usize));
        let places = groups.flat_map(|(group, nibble)| match kept / self.groups {
            1 => vec![2 * group + nibble % 4 / 2],
            _ => vec![4 * group + nibble % 4, 4 * group + nibble / 4],
        });
        places.collect()
    }
}

/// A matrix whose rows run along K.
pub struct Matrix {
    element: Element,
    /// Bytes of a row.
    width: usize,
    numbers: Vec<Vec<i64>>,
    codes: Vec<Vec<u32>>,
}

impl Matrix {
    pub fn random(element: Element, rows: usize, width: usize, random: &mut Random) -> Self {
        let columns = width * 8 / element.bits();
        let mut row = || (0..columns).map(|_| element.random(random)).unzip();
        let (numbers, codes) = (0..rows).map(|_| row()).unzip();
        Self {
            element,
            width,
            numbers,
            codes,
        }
    }

    /// The bytes of a row.
    fn row(&self, row: usize) -> Vec<u8> {
        let codes = &self.codes[row];
        match self.element.bits() {
            1 => codes
                .chunks(8)
                .map(|bits| {
                    bits.iter()
                        .rev()
                        .fold(0, |byte, bit| byte << 1 | *bit as u8)
                })
                .collect(),
            bits => codes
                .iter()
                .flat_map(|code| code.to_le_bytes().into_iter().take(bits / 8))
                .collect(),
        }
    }

    /// The rows by those of the other, row by row.
    pub fn product(&self, other: &Self) -> Vec<i64> {
        let rows = self.numbers.iter();
        rows.flat_map(|a| other.numbers.iter().map(|b| dot(a, b)))
            .collect()
    }

    /// The same, with elements where the pattern has them.
    pub fn sparse_product(&self, pattern: &Pattern, other: &Self) -> Vec<i64> {
        let rows = self.numbers.iter().enumerate();
        rows.flat_map(|(row, a)| {
            // As a row of the other with zeros between.
            let mut wide = vec![0; other.numbers[0].len()];
            for (number, place) in a.iter().zip(pattern.places(row, a.len())) {
                wide[place] = *number;
            }
            Vec::from_iter(other.numbers.iter().map(|b| dot(&wide, b)))
        })
        .collect()
    }

    /// A register of A: figures "WGMMA .m64nNk… register fragment layout for matrix A".
    pub fn fragment(&self, thread: usize, register: usize) -> u64 {
        let (warp, lane) = (thread / 32, thread % 32);
        let row = 16 * warp + lane / 4 + 8 * (register % 2);
        let at = 4 * (lane % 4) + 16 * (register / 2);
        let bytes = &self.row(row)[at..at + 4];
        bytes
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    /// Lays the matrix out in shared memory from `place`, a multiple of 1024; gives the bits of its descriptor but for where
    /// shared memory starts. Transposed, its columns run along K: table "Typical strides".
    pub fn lay_out(
        &self,
        transposed: bool,
        swizzle: usize,
        place: usize,
        image: &mut [u8],
        random: &mut Random,
    ) -> u64 {
        if transposed {
            return self.lay_out_transposed(swizzle, place, image);
        }
        let (rows, chunks) = (self.codes.len(), self.width / CHUNK);
        // The matrix may begin inside of wider rows.
        let spare = if swizzle == 0 {
            0
        } else {
            (swizzle - self.width) / 32
        };
        let first = 2 * random.below(spare as u64 + 1) as usize;
        let (leading, stride) = match swizzle {
            // Neighbours along K behind one another, or those along M or N.
            0 if random.below(2) == 0 => (128, 128 * chunks),
            0 => (128 * rows / 8, 128),
            _ => (CHUNK, 8 * swizzle),
        };
        for row in 0..rows {
            for (chunk, bytes) in self.row(row).chunks(CHUNK).enumerate() {
                let at = match swizzle {
                    0 => row / 8 * stride + row % 8 * CHUNK + chunk * leading,
                    _ => row / 8 * stride + row % 8 * swizzle + (first + chunk) * CHUNK,
                };
                put(image, place, at, swizzle, bytes);
            }
        }
        descriptor(place + first * CHUNK, leading, stride, swizzle)
    }

    fn lay_out_transposed(&self, swizzle: usize, place: usize, image: &mut [u8]) -> u64 {
        let (rows, depth) = (self.codes.len(), self.codes[0].len());
        // No wider than the matrix.
        let swizzle = [128, 64, 32]
            .into_iter()
            .find(|it| *it <= swizzle && *it <= 2 * rows)
            .unwrap_or(0);
        let across = swizzle / CHUNK;
        let (leading, stride) = match swizzle {
            0 => (CHUNK * rows, 128),
            _ => (8 * swizzle * depth / 8, 8 * swizzle),
        };
        for k in 0..depth {
            let codes = Vec::from_iter(self.codes.iter().map(|row| row[k] as u16));
            for (chunk, codes) in codes.chunks(CHUNK / 2).enumerate() {
                let bytes = Vec::from_iter(codes.iter().flat_map(|code| code.to_le_bytes()));
                let at = match swizzle {
                    0 => chunk * stride + k % 8 * CHUNK + k / 8 * leading,
                    _ => {
                        chunk / across * leading
                            + chunk % across * CHUNK
                            + k % 8 * swizzle
                            + k / 8 * stride
                    }
                };
                put(image, place, at, swizzle, &bytes);
            }
        }
        descriptor(place, leading, stride, swizzle)
    }
}

/// A loop that is quick without optimisation too: the tests add up hundreds of millions of products.
fn dot(a: &[i64], b: &[i64]) -> i64 {
    let (mut sum, mut k) = (0, 0);
    while k < a.len() {
        sum += a[k] * b[k];
        k += 1;
    }
    sum
}

/// Puts 16 bytes where the swizzle moves them.
fn put(image: &mut [u8], place: usize, at: usize, swizzle: usize, bytes: &[u8]) {
    let pattern = (swizzle / CHUNK).max(1) - 1;
    let at = place + (at ^ (at >> 7 & pattern) << 4);
    image[at..at + CHUNK].copy_from_slice(bytes);
}

fn descriptor(start: usize, leading: usize, stride: usize, swizzle: usize) -> u64 {
    let mode = match swizzle {
        128 => 1,
        64 => 2,
        32 => 3,
        _ => 0,
    };
    let field = |bytes: usize| (bytes / CHUNK) as u64;
    field(start) | field(leading) << 16 | field(stride) << 32 | mode << 62
}
