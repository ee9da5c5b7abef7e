//! What a multiplication computes: elements, sparsity, sums, and where a warp holds them.

use std::sync::Arc;

use super::super::alu::Lanes;
use super::super::check::Step;
use super::super::mma::{Accumulator, Element, Sparsity, columns};
use super::super::op::{PredSrc, Reg, Src, mask};
use super::descriptor::CHUNK;

/// Rows of D that a warp has.
pub const ROWS: u32 = 16;

/// The elements in some bytes.
pub fn elements(element: Element, bytes: &[u8]) -> Vec<f64> {
    match element.bits() {
        1 => {
            let bit = |at: usize| f64::from(bytes[at / 8] >> (at % 8) & 1);
            (0..bytes.len() * 8).map(bit).collect()
        }
        bits => {
            let number = |bytes: &[u8]| {
                bytes
                    .iter()
                    .rev()
                    .fold(0, |n, byte| n << 8 | u64::from(*byte))
            };
            let elements = bytes.chunks_exact(bits as usize / 8);
            elements.map(|bytes| element.value(number(bytes))).collect()
        }
    }
}

/// Where A is.
#[derive(Clone, Copy, Debug)]
pub enum Left {
    Descriptor(Src),
    Registers([Reg; 4]),
}

/// A `wgmma.mma_async`.
#[derive(Clone, Debug)]
pub struct Multiplication {
    /// Columns of B and D.
    pub n: u32,
    pub types: [Element; 2],
    pub sum: Accumulator,
    pub d: Vec<Reg>,
    pub a: Left,
    pub b: Src,
    pub sparsity: Option<Sparsity>,
    pub add: PredSrc,
    /// Whether products are negated.
    pub negate: bool,
    /// Whether rows run along M, or N.
    pub transpose: [bool; 2],
    pub saturate: bool,
}

impl Multiplication {
    /// Rows of B: elements along K.
    pub fn depth(&self) -> u32 {
        self.b_bytes() * 8 / self.types[1].bits()
    }

    /// Bytes along K of B: twice as many as A has if it is sparse.
    pub fn b_bytes(&self) -> u32 {
        2 * CHUNK * if self.sparsity.is_some() { 2 } else { 1 }
    }

    /// Whether several of them may follow one another with the same registers of D.
    pub fn same_shape(&self, other: &Self) -> bool {
        (self.n, self.sum, self.depth()) == (other.n, other.sum, other.depth())
    }
}

/// The elements of one row of A that count, each with its place along K.
pub type Row = Vec<(usize, f64)>;

/// A warp's rows of A: all their elements.
pub fn dense(elements: &[f64]) -> Vec<Row> {
    let rows = elements.chunks_exact(elements.len() / ROWS as usize);
    rows.map(|row| row.iter().copied().enumerate().collect())
        .collect()
}

/// A warp's rows of A, of which every second element is left out as the lanes' metadata says.
pub fn sparse(
    elements: &[f64],
    element: Element,
    selector: u32,
    metadata: &Lanes,
) -> Step<Vec<Row>> {
    let width = elements.len() / ROWS as usize;
    let rows = elements.chunks_exact(width).enumerate();
    rows.map(|(row, values)| {
        let columns = columns(metadata, element, 2 * width, selector, true, row)?;
        Ok(columns.into_iter().zip(values.iter().copied()).collect())
    })
    .collect()
}

/// Products of rows of A with the columns of B, whose elements are row by row along K: row by row.
pub fn multiply(a: &[Row], b: &[f64], columns: usize, negate: bool) -> Vec<f64> {
    let mut sums = vec![0.0; a.len() * columns];
    for (row, sums) in a.iter().zip(sums.chunks_exact_mut(columns)) {
        for (k, a) in row {
            let a = if negate { -a } else { *a };
            for (sum, b) in sums.iter_mut().zip(&b[k * columns..][..columns]) {
                *sum += a * b;
            }
        }
    }
    sums
}

/// The places in a warp's rows of the elements in register `index` of a lane: row and column.
pub fn places(sum: Accumulator, lane: u32, index: u32) -> impl Iterator<Item = (u32, u32)> {
    let elements = sum.per_register() as u32;
    (index * elements..(index + 1) * elements).map(move |element| {
        let row = lane / 4 + element / 2 % 2 * 8;
        (row, element / 4 * 8 + lane % 4 * 2 + element % 2)
    })
}

/// The bits of a register of D: sums of products, and what it held if that is added.
pub fn register(sum: Accumulator, products: &[f64], held: Option<u32>, saturate: bool) -> u32 {
    let bits = 32 / sum.per_register() as u32;
    let halves = products.iter().zip((0..).step_by(bits as usize));
    halves.fold(0, |register, (product, shift)| {
        let held = held.map_or(0.0, |held| sum.value(u64::from(held >> shift) & mask(bits)));
        register | (sum.round(product + held, saturate) as u32) << shift
    })
}

/// The bytes of A that a lane's registers hold: row in the warp, and byte along K.
pub fn fragment(lane: u32, register: u32) -> (u32, u32) {
    (
        lane / 4 + register % 2 * 8,
        lane % 4 * 4 + register / 2 * CHUNK,
    )
}

/// A multiplication that a warp has issued.
#[derive(Clone, Debug)]
pub struct Issued {
    pub what: Arc<Multiplication>,
    /// The first register of the function that issued it.
    pub registers: usize,
    /// The descriptors' bits; that of A only if there is one.
    pub descriptors: [Option<u64>; 2],
    pub metadata: Lanes,
    pub add: bool,
    pub line: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::F16;

    #[test]
    fn registers_have_the_places_that_the_isa_draws() {
        assert_eq!(
            places(Accumulator::F32, 5, 4).collect::<Vec<_>>(),
            [(1, 10)]
        );
        assert_eq!(places(Accumulator::F32, 0, 3).collect::<Vec<_>>(), [(8, 1)]);
        assert_eq!(
            places(Accumulator::F16, 5, 1).collect::<Vec<_>>(),
            [(9, 2), (9, 3)]
        );
        assert_eq!(fragment(5, 3), (9, 20));
    }

    #[test]
    fn a_sparse_row_is_spread_as_its_metadata_says() {
        let mut elements = vec![0.0; 16 * 16];
        elements[..4].copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
        // The first two groups of the first row: places 1 and 3, then 0 and 2. All others: 0 and 1.
        let mut metadata = [0x4444_4444; 32];
        metadata[0] = 0x4444_448D;
        let rows = sparse(&elements, Element::Float(F16), 0, &metadata).unwrap();
        assert_eq!(rows[0][..4], [(1, 1.0), (3, 2.0), (4, 3.0), (6, 4.0)]);
        metadata[0] = 0x4444_4440;
        assert!(sparse(&elements, Element::Float(F16), 0, &metadata).is_err());
        assert!(sparse(&elements, Element::Float(F16), 1, &metadata).is_ok());
    }

    #[test]
    fn sums_become_what_their_type_holds() {
        assert_eq!(
            register(Accumulator::S32, &[1.0], Some(i32::MAX as u32), false) as i32,
            i32::MIN
        );
        assert_eq!(
            register(Accumulator::S32, &[1.0], Some(i32::MAX as u32), true) as i32,
            i32::MAX
        );
        assert_eq!(
            register(Accumulator::F16, &[1.0, -2.0], Some(0x3c00_3c00), false),
            0xbc00_4000
        );
        assert_eq!(
            register(Accumulator::F32, &[1.5], None, false),
            1.5f32.to_bits()
        );
    }

    #[test]
    fn elements_are_read_from_their_bytes() {
        let of = |name, bytes: &[u8]| elements(Element::parse(name).unwrap(), bytes);
        assert_eq!(of("bf16", &[0x80, 0x3f, 0, 0xc0]), [1.0, -2.0]);
        assert_eq!(of("s8", &[0xff, 2]), [-1.0, 2.0]);
        assert_eq!(of("tf32", &[0xff, 0x1f, 0x80, 0x3f]), [1.0]);
        assert_eq!(of("b1", &[0b101])[..4], [1.0, 0.0, 1.0, 0.0]);
    }
}
