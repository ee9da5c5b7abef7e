//! `mma`, `mma.sp` and `movmatrix`: products of matrices that are spread over the registers of a warp.
//!
//! A product is exact and rounded once: to nearest, or wrapped or clamped if it is an integer. In double precision it is
//! a chain of `fma`, as the ISA has it.

use super::alu::Lanes;
use super::check::{AtLane, Check, Fault, Step};
use super::machine::Machine;
use super::op::*;
use super::state::*;
use super::step::{Flow, aligned_here};
use crate::formats::{self, Format, Round, exact_sum};

/// The type of the elements of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    Float(Format),
    F64,
    /// An integer of so many bits; one of 1 bit is unsigned.
    Int {
        bits: u32,
        signed: bool,
    },
}

impl Element {
    /// The type that a qualifier names.
    pub fn parse(text: &str) -> Option<Self> {
        let int = |bits, signed| Self::Int { bits, signed };
        Some(match text {
            "f16" => Self::Float(formats::F16),
            "bf16" => Self::Float(formats::BF16),
            "tf32" => Self::Float(formats::TF32),
            "e4m3" => Self::Float(formats::E4M3),
            "e5m2" => Self::Float(formats::E5M2),
            "f64" => Self::F64,
            "s8" => int(8, true),
            "u8" => int(8, false),
            "s4" => int(4, true),
            "u4" => int(4, false),
            "b1" => int(1, false),
            _ => return None,
        })
    }

    /// The bits that it takes in a register.
    pub fn bits(self) -> u32 {
        match self {
            Self::Float(formats::TF32) => 32,
            Self::Float(format) => format.bits(),
            Self::F64 => 64,
            Self::Int { bits, .. } => bits,
        }
    }

    /// The number of an element of these bits.
    pub fn value(self, bits: u64) -> f64 {
        match self {
            // The lower 13 bits do not count.
            Self::Float(formats::TF32) => formats::TF32.decode(bits >> 13),
            Self::Float(format) => format.decode(bits),
            Self::F64 => f64::from_bits(bits),
            Self::Int { bits: size, signed } if signed => sign_extend(bits, size) as f64,
            Self::Int { .. } => bits as f64,
        }
    }
}

/// The type of the elements of C and D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accumulator {
    F16,
    F32,
    F64,
    S32,
}

impl Accumulator {
    /// The type that a qualifier names.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "f16" => Self::F16,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "s32" => Self::S32,
            _ => return None,
        })
    }

    /// How many there are in a register.
    pub fn per_register(self) -> usize {
        if self == Self::F16 { 2 } else { 1 }
    }

    /// The number that these bits are.
    pub fn value(self, bits: u64) -> f64 {
        match self {
            Self::F16 => formats::F16.decode(bits),
            Self::F32 => formats::F32.decode(bits),
            Self::F64 => f64::from_bits(bits),
            Self::S32 => f64::from(bits as i32),
        }
    }

    /// The bits of a sum: it is rounded to nearest, or wrapped or clamped if it is an integer.
    pub fn round(self, sum: f64, saturates: bool) -> u64 {
        match self {
            Self::F16 => formats::F16.encode(sum, Round::Near, false),
            Self::F32 => formats::F32.encode(sum, Round::Near, false),
            Self::F64 => sum.to_bits(),
            Self::S32 if saturates => u64::from(sum as i32 as u32),
            Self::S32 => sum as i64 as u64 & mask(32),
        }
    }
}

/// How bits are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitProduct {
    And,
    Xor,
}

/// What says which elements of A there are.
#[derive(Clone, Copy, Debug)]
pub struct Sparsity {
    pub metadata: Src,
    pub selector: u32,
    /// Whether the places ascend: `.ordered_metadata`, and with `wgmma`.
    pub ordered: bool,
}

/// Whether A and B lie by rows in the registers of eight threads: of `m8n8k4`, which is four products.
#[derive(Clone, Copy, Debug)]
pub struct Quads {
    pub a_by_rows: bool,
    pub b_by_rows: bool,
}

/// `mma` or `mma.sp`.
#[derive(Clone, Debug)]
pub struct Mma {
    /// Rows of A, and its columns with the zeros.
    pub m: usize,
    pub k: usize,
    pub a_type: Element,
    pub b_type: Element,
    pub c_type: Accumulator,
    pub d_type: Accumulator,
    pub bit_product: Option<BitProduct>,
    pub saturates: bool,
    pub sparsity: Option<Sparsity>,
    pub quads: Option<Quads>,
    pub d: Vec<Dst>,
    pub a: Vec<Src>,
    pub b: Vec<Src>,
    pub c: Vec<Src>,
}

/// The columns of B.
const N: usize = 8;

/// A matrix by its rows.
type Matrix = Vec<Vec<f64>>;

/// Takes the elements of a matrix of `m` rows, or of the transpose of one of `m` columns, from registers: each has
/// neighbours in a row, the four threads of a group go on, then rows 8 apart, then the columns behind.
fn gather(registers: &[Lanes], element: Element, m: usize, k: usize) -> Matrix {
    let per = (32 / element.bits()).max(1) as usize;
    let mut matrix = vec![vec![0.0; k]; m];
    for (number, register) in registers.iter().enumerate() {
        let (half, block) = (number % (m / 8), number / (m / 8));
        for (lane, bits) in register.iter().enumerate() {
            let (group, thread) = (lane / 4, lane % 4);
            for place in 0..per {
                let bits = bits >> (place as u32 * element.bits()) & mask(element.bits());
                let column = (4 * block + thread) * per + place;
                matrix[group + 8 * half][column] = element.value(bits);
            }
        }
    }
    matrix
}

/// The row and column of an element of C or D: the number of one in a thread, which has two neighbours of each row.
fn place(lane: usize, number: usize) -> (usize, usize) {
    (lane / 4 + 8 * (number / 2), lane % 4 * 2 + number % 2)
}

/// The lane whose metadata says where the elements of a chunk of a row are, and its lowest bit there. There are
/// `chunks` in a row, of elements of so many bits.
fn metadata_place(
    bits: u32,
    chunks: usize,
    selector: usize,
    row: usize,
    chunk: usize,
) -> (usize, usize) {
    let (group, half) = (row % 8, row / 8);
    // A thread has four chunks of both of its rows, or eight of one.
    let (thread, shift) = if bits >= 16 {
        let first = selector * (chunks / 4);
        (first + chunk / 4, 16 * half + 4 * (chunk % 4))
    } else {
        (2 * selector + 2 * (chunk / 8) + half, 4 * (chunk % 8))
    };
    (4 * group + thread, shift)
}

/// The columns of one row of A in which its elements are; with the zeros it has `k`.
///
/// A chunk of four has two of them, and 4 bits of metadata say where. What is in four pieces are four elements, or
/// four pairs of 4 bits, or two elements of 32 bits in halves.
pub fn columns(
    metadata: &Lanes,
    element: Element,
    k: usize,
    selector: u32,
    ordered: bool,
    row: usize,
) -> Step<Vec<usize>> {
    let bits = element.bits();
    let piece = if bits == 4 { 2 } else { 1 };
    let halves = bits == 32;
    let width = if halves { 2 } else { 4 * piece };
    let chunks = k / width;
    let mut columns = Vec::with_capacity(k / 2);
    for chunk in 0..chunks {
        let (lane, shift) = metadata_place(bits, chunks, selector as usize, row, chunk);
        let places = metadata[lane] >> shift & 15;
        let (one, other) = ((places & 3) as usize, (places >> 2) as usize);
        let (valid, expected) = match (halves, ordered) {
            (true, _) => (
                places == 0b0100 || places == 0b1110,
                "the places of a half and the next",
            ),
            (false, true) => (one < other, "two places in ascending order"),
            (false, false) => (one != other, "two different places"),
        };
        if !valid {
            return Err(Fault::new(
                Check::Matrix,
                format!(
                    "expected {expected} in bits {shift} to {} of the metadata, found {places:#06b}",
                    shift + 3
                ),
            ))
            .at(lane as u32);
        }
        let start = chunk * width;
        if halves {
            columns.push(start + one / 2);
        } else {
            let pieces = [one, other].into_iter();
            columns.extend(pieces.flat_map(|it| (0..piece).map(move |k| start + it * piece + k)));
        }
    }
    Ok(columns)
}

impl Mma {
    /// The elements of D as bits, by rows.
    fn product(&self, a: &Matrix, b: &Matrix, c: &[Vec<u64>]) -> Vec<Vec<u64>> {
        let of = |row: usize, column: usize| {
            let pairs = a[row].iter().zip(&b[column]);
            let start = self.c_type.value(c[row][column]);
            if self.d_type == Accumulator::F64 {
                let sum = pairs.fold(start, |sum, (a, b)| a.mul_add(*b, sum));
                return sum.to_bits();
            }
            let product = |(a, b): (&f64, &f64)| match self.bit_product {
                Some(BitProduct::Xor) => (a - b).abs(),
                _ => a * b,
            };
            let sum = exact_sum(pairs.map(product).chain([start]));
            self.d_type.round(sum, self.saturates)
        };
        let row = |row| (0..N).map(|column| of(row, column)).collect();
        (0..self.m).map(row).collect()
    }
}

impl Quads {
    /// The row and column of the `i`th element of A, and the column and row of that of B, in a lane.
    fn places(self, lane: usize, i: usize) -> [(usize, usize); 2] {
        let (thread, lower) = (lane % 4, lane / 16 * 4);
        let outside = |major: bool| {
            if major {
                (thread + lower, i)
            } else {
                (i + lower, thread)
            }
        };
        [outside(self.a_by_rows), outside(!self.b_by_rows)]
    }

    /// The row and column of the `i`th element of C or D.
    fn sum_place(ty: Accumulator, lane: usize, i: usize) -> (usize, usize) {
        let lower = lane / 16 * 4;
        match ty {
            Accumulator::F16 => (lane % 4 + lower, i),
            _ => ((lane & 1) + (i & 2) + lower, (i & 4) + (lane & 2) + (i & 1)),
        }
    }

    /// The registers of D: a product for each fourth of the lanes of a half warp and of the other.
    fn product(self, mma: &Mma, [a, b, c]: [Vec<Lanes>; 3]) -> Vec<Lanes> {
        let mut d = vec![[0; 32]; mma.d.len()];
        for quad in 0..4 {
            let lanes = || (0..32usize).filter(move |lane| lane % 16 / 4 == quad);
            let (mut rows, mut columns) = (vec![vec![0.0; 4]; 8], vec![vec![0.0; 4]; 8]);
            let mut sums = vec![vec![0; N]; 8];
            for lane in lanes() {
                for i in 0..4 {
                    let half = |of: &[Lanes]| of[i / 2][lane] >> (16 * (i % 2)) & 0xffff;
                    let [(row, k), (column, l)] = self.places(lane, i);
                    rows[row][k] = mma.a_type.value(half(&a));
                    columns[column][l] = mma.b_type.value(half(&b));
                }
                for i in 0..N {
                    let (row, column) = Self::sum_place(mma.c_type, lane, i);
                    let per = mma.c_type.per_register();
                    sums[row][column] =
                        c[i / per][lane] >> (16 * (i % per)) & mask(32 / per as u32);
                }
            }
            let product = mma.product(&rows, &columns, &sums);
            for (lane, i) in lanes().flat_map(|lane| (0..N).map(move |i| (lane, i))) {
                let (row, column) = Self::sum_place(mma.d_type, lane, i);
                let per = mma.d_type.per_register();
                d[i / per][lane] |= product[row][column] << (16 * (i % per));
            }
        }
        d
    }
}

impl<'a> Machine<'a> {
    /// Executes `mma` or `mma.sp`.
    pub fn mma(&mut self, mma: &Mma, warp: &mut Warp, current: usize, active: u32) -> Step<Flow> {
        if !aligned_here(warp, current, active)? {
            return Ok(Flow::Wait);
        }
        let read = |srcs: &[Src]| -> Vec<Lanes> {
            srcs.iter()
                .map(|src| self.operand(warp, current, *src))
                .collect()
        };
        if let Some(quads) = mma.quads {
            let d = quads.product(mma, [&mma.a, &mma.b, &mma.c].map(|srcs| read(srcs)));
            for (dst, values) in mma.d.iter().zip(&d) {
                self.put(warp, current, *dst, active, values);
            }
            return Ok(Flow::Next);
        }
        let b = gather(&read(&mma.b), mma.b_type, N, mma.k);
        let a = match mma.sparsity {
            None => gather(&read(&mma.a), mma.a_type, mma.m, mma.k),
            Some(sparsity) => {
                let kept = gather(&read(&mma.a), mma.a_type, mma.m, mma.k / 2);
                let metadata = self.operand(warp, current, sparsity.metadata);
                let mut a = vec![vec![0.0; mma.k]; mma.m];
                for (row, kept) in kept.iter().enumerate() {
                    let Sparsity {
                        selector, ordered, ..
                    } = sparsity;
                    let columns = columns(&metadata, mma.a_type, mma.k, selector, ordered, row)?;
                    for (column, value) in columns.into_iter().zip(kept) {
                        a[row][column] = *value;
                    }
                }
                a
            }
        };
        let mut c = vec![vec![0; N]; mma.m];
        for_each_accumulator(mma.c_type, &mut read(&mma.c), |(row, column), bits| {
            c[row][column] = *bits;
        });
        let product = mma.product(&a, &b, &c);
        let mut d = vec![[0; 32]; mma.d.len()];
        for_each_accumulator(mma.d_type, &mut d, |(row, column), bits| {
            *bits = product[row][column];
        });
        for (dst, values) in mma.d.iter().zip(&d) {
            self.put(warp, current, *dst, active, values);
        }
        Ok(Flow::Next)
    }

    /// Executes `movmatrix`: a thread has two neighbours of a row.
    pub fn movmatrix(
        &mut self,
        dst: Dst,
        a: Src,
        warp: &mut Warp,
        current: usize,
        active: u32,
    ) -> Step<Flow> {
        if !aligned_here(warp, current, active)? {
            return Ok(Flow::Wait);
        }
        let a = self.operand(warp, current, a);
        let element =
            |row: usize, column: usize| a[4 * row + column / 2] >> (16 * (column % 2)) & 0xffff;
        let values: Lanes = std::array::from_fn(|lane| {
            let (row, column) = (lane / 4, lane % 4 * 2);
            element(column, row) | element(column + 1, row) << 16
        });
        self.put(warp, current, dst, active, &values);
        Ok(Flow::Next)
    }
}

/// Shows every element of C or D with its row and column, and puts back what becomes of it.
fn for_each_accumulator(
    ty: Accumulator,
    registers: &mut [Lanes],
    mut each: impl FnMut((usize, usize), &mut u64),
) {
    let per = ty.per_register();
    for (number, register) in registers.iter_mut().enumerate() {
        for (lane, bits) in register.iter_mut().enumerate() {
            if per == 1 {
                each(place(lane, number), bits);
                continue;
            }
            let mut halves = [*bits & 0xffff, *bits >> 16 & 0xffff];
            for (half, bits) in halves.iter_mut().enumerate() {
                each(place(lane, 2 * number + half), bits);
            }
            *bits = halves[0] | halves[1] << 16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_of_all_groups_lie_apart_in_the_lanes_of_the_selector() {
        const ROWS: usize = 16;
        for (element, groups, selectors) in [
            (Element::Float(formats::BF16), 8, 2),
            (Element::Float(formats::TF32), 8, 2),
            (Element::parse("s8").unwrap(), 16, 1),
        ] {
            for selector in 0..selectors {
                let mut seen = std::collections::BTreeSet::new();
                for (row, group) in
                    (0..ROWS).flat_map(|row| (0..groups).map(move |group| (row, group)))
                {
                    let (lane, shift) =
                        metadata_place(element.bits(), groups, selector, row, group);
                    assert_eq!(lane / 4, row % 8);
                    assert!(groups == 16 || lane % 4 / 2 == selector);
                    seen.insert((lane, shift));
                }
                assert_eq!(seen.len(), ROWS * groups);
            }
        }
    }
}
