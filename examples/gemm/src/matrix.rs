//! Random matrices, and rows of their product in double precision.

use std::thread;

use cuda_ptx_host::driver::DataType;

/// The type of the elements of A and B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input {
    Bf16,
    E4m3,
}

/// The type of the elements of C.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output {
    Bf16,
    F32,
}

impl Input {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Self::Bf16 => 2,
            Self::E4m3 => 1,
        }
    }

    /// What a tensor map calls it.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Bf16 => DataType::Bf16,
            Self::E4m3 => DataType::U8,
        }
    }

    /// So many random elements, from -2 to 2.
    pub fn random(self, elements: usize, seed: u64) -> Vec<u8> {
        let mut bytes = vec![0; elements * self.bytes()];
        in_parallel(&mut bytes, 8, |place, part| {
            for (index, word) in part.chunks_mut(8).enumerate() {
                let random = hash(seed ^ (place / 8 + index) as u64).to_le_bytes();
                word.copy_from_slice(&random[..word.len()]);
                match self {
                    Self::Bf16 => {
                        word.chunks_exact_mut(2).for_each(|x| x.copy_from_slice(&uniform(x[0], x[1])))
                    }
                    // Without the upper bit of the exponent.
                    Self::E4m3 => word.iter_mut().for_each(|x| *x &= 0xbf),
                }
            }
        });
        bytes
    }

    /// An element as a number.
    pub fn number(self, matrix: &[u8], index: usize) -> f64 {
        match self {
            Self::Bf16 => bf16(&matrix[2 * index..]),
            Self::E4m3 => e4m3(matrix[index]),
        }
    }
}

impl Output {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }

    /// What a tensor map calls it.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Bf16 => DataType::Bf16,
            Self::F32 => DataType::F32,
        }
    }

    /// An element as a number.
    pub fn number(self, matrix: &[u8], index: usize) -> f64 {
        match self {
            Self::Bf16 => bf16(&matrix[2 * index..]),
            Self::F32 => {
                let x = &matrix[4 * index..];
                f64::from(f32::from_le_bytes([x[0], x[1], x[2], x[3]]))
            }
        }
    }
}

fn bf16(x: &[u8]) -> f64 {
    f64::from(f32::from_bits(u32::from(u16::from_le_bytes([x[0], x[1]])) << 16))
}

fn e4m3(x: u8) -> f64 {
    let (exponent, mantissa) = (i32::from(x >> 3 & 15), f64::from(x & 7));
    let size = match exponent {
        0 => mantissa * 2f64.powi(-9),
        _ => (1.0 + mantissa / 8.0) * 2f64.powi(exponent - 7),
    };
    if x & 0x80 == 0 { size } else { -size }
}

/// A bf16 from -1 to 1 from 16 random bits.
fn uniform(low: u8, high: u8) -> [u8; 2] {
    let x = f32::from(i16::from_le_bytes([low, high])) / 32768.0;
    let bits = x.to_bits().to_le_bytes();
    [bits[2], bits[3]]
}

fn hash(x: u64) -> u64 {
    let x = x.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ x >> 29
}

/// Some rows of A · Bᵀ.
pub fn rows(input: Input, a: &[u8], b: &[u8], [_, n, k]: [u64; 3], rows: &[usize]) -> Vec<f64> {
    let (n, k) = (n as usize, k as usize);
    let rows: Vec<Vec<f64>> =
        rows.iter().map(|row| (0..k).map(|i| input.number(a, row * k + i)).collect()).collect();
    let mut product = vec![0.0; rows.len() * n];
    // Column by column, so that one of B is converted once.
    in_parallel(&mut product, rows.len(), |place, part| {
        for (index, sums) in part.chunks_mut(rows.len()).enumerate() {
            let column = (place / rows.len() + index) * k;
            let column: Vec<f64> = (0..k).map(|i| input.number(b, column + i)).collect();
            for (sum, row) in sums.iter_mut().zip(&rows) {
                *sum = row.iter().zip(&column).map(|(a, b)| a * b).sum();
            }
        }
    });
    product
}

/// The norm of the differences, divided by that of the expected numbers.
pub fn relative_error(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (wrong, right) = pairs.fold((0.0, 0.0), |(wrong, right), (found, expected)| {
        (wrong + (found - expected).powi(2), right + expected.powi(2))
    });
    (wrong / right).sqrt()
}

/// Has every core do a part, whose length is a multiple of `unit`.
fn in_parallel<T: Send>(items: &mut [T], unit: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let size = items.len().div_ceil(workers).next_multiple_of(unit);
    thread::scope(|scope| {
        let work = &work;
        for (index, part) in items.chunks_mut(size.max(unit)).enumerate() {
            scope.spawn(move || work(index * size, part));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decoded() {
        assert_eq!([0x38, 0xb8, 0x3f, 0x01, 0x7e].map(e4m3), [1.0, -1.0, 1.875, 1.0 / 512.0, 448.0]);
        assert_eq!(bf16(&[0x80, 0xbf]), -1.0);
    }

    #[test]
    fn a_row_is_multiplied_by_all_columns() {
        let a = [0x38, 0x40, 0x38, 0x38];
        let b = [0x38, 0x38, 0xb8, 0x40, 0x00, 0x38];
        assert_eq!(rows(Input::E4m3, &a, &b, [2, 3, 2], &[0]), [3.0, 3.0, 2.0]);
    }
}
