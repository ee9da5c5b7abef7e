//! What a multiplication computes: elements, sparsity, sums, and where a warp holds them.

use std::sync::Arc;

use super::super::alu::Lanes;
use super::super::check::{AtLane, Check, Fault, Step};
use super::super::op::{PredSrc, Reg, Src};
use super::descriptor::CHUNK;
use crate::formats::{BF16, E4M3, E5M2, F16, Format, Round, TF32};

/// Rows of D that a warp has.
pub const ROWS: u32 = 16;
/// The NaN of a sum in `f32`.
const NAN32: u32 = 0x7fff_ffff;

/// The type of the elements of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
    S8,
    U8,
    B1,
}

impl Element {
    pub fn bits(self) -> u32 {
        match self {
            Self::Tf32 => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::E4m3 | Self::E5m2 | Self::S8 | Self::U8 => 8,
            Self::B1 => 1,
        }
    }

    /// The number of an element of these bits.
    fn value(self, bits: u32) -> f64 {
        let float = |format: Format| format.decode(u64::from(bits));
        match self {
            Self::F16 => float(F16),
            Self::Bf16 => float(BF16),
            // A fraction's other bits are ignored.
            Self::Tf32 => TF32.decode(u64::from(bits >> 13)),
            Self::E4m3 => float(E4M3),
            Self::E5m2 => float(E5M2),
            Self::S8 => f64::from(bits as u8 as i8),
            Self::U8 | Self::B1 => f64::from(bits),
        }
    }

    /// The elements in some bytes.
    pub fn values(self, bytes: &[u8]) -> Vec<f64> {
        let bits = self.bits();
        match bits {
            1 => {
                let bit = |at: usize| f64::from(bytes[at / 8] >> (at % 8) & 1);
                (0..bytes.len() * 8).map(bit).collect()
            }
            _ => {
                let number = |bytes: &[u8]| {
                    bytes
                        .iter()
                        .rev()
                        .fold(0, |n, byte| n << 8 | u32::from(*byte))
                };
                let elements = bytes.chunks_exact(bits as usize / 8);
                elements.map(|bytes| self.value(number(bytes))).collect()
            }
        }
    }
}

/// The type of the elements of D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    F32,
    F16,
    S32,
}

/// Where A is.
#[derive(Clone, Copy, Debug)]
pub enum Left {
    Descriptor(Src),
    Registers([Reg; 4]),
}

/// What says where a sparse A is not zero: metadata, and the threads that give it.
#[derive(Clone, Copy, Debug)]
pub struct Sparsity {
    pub metadata: Src,
    pub selector: u32,
}

/// A `wgmma.mma_async`.
#[derive(Clone, Debug)]
pub struct Multiplication {
    /// Columns of B and D.
    pub n: u32,
    pub types: [Element; 2],
    pub sum: Sum,
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
        // Of four elements two are there; of two of tf32, one.
        let kept = if element == Element::Tf32 { 1 } else { 2 };
        let groups = values.chunks_exact(kept).enumerate();
        let mut found = Row::new();
        for (group, values) in groups {
            let (lane, shift) = metadata_place(row as u32, group as u32, element, selector);
            let bits = (metadata[lane as usize] >> shift & 15) as usize;
            let [first, second] = [bits & 3, bits >> 2];
            if first >= second || kept == 1 && !matches!(bits, 0b0100 | 0b1110) {
                return Err(Fault::new(
                    Check::Matrix,
                    format!(
                        "expected metadata of two places in ascending order in bits {shift} to {}, found {bits:#06b}",
                        shift + 3
                    ),
                ))
                .at(lane);
            }
            match values {
                [one] => found.push((2 * group + first / 2, *one)),
                [one, other] => found.extend([(4 * group + first, *one), (4 * group + second, *other)]),
                _ => {}
            }
        }
        Ok(found)
    })
    .collect()
}

/// The lane that has the metadata of a group in a warp's row, and its lowest bit there.
fn metadata_place(row: u32, group: u32, element: Element, selector: u32) -> (u32, u32) {
    let (quad, lower) = (row % 8 * 4, row / 8);
    match element.bits() {
        8 => (quad + lower + group / 8 * 2, group % 8 * 4),
        _ => (quad + selector * 2 + group / 4, lower * 16 + group % 4 * 4),
    }
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
pub fn places(sum: Sum, lane: u32, index: u32) -> impl Iterator<Item = (u32, u32)> {
    let elements = if sum == Sum::F16 { 2 } else { 1 };
    (index * elements..(index + 1) * elements).map(move |element| {
        let row = lane / 4 + element / 2 % 2 * 8;
        (row, element / 4 * 8 + lane % 4 * 2 + element % 2)
    })
}

/// The bits of a register of D: sums of products, and what it held if that is added.
pub fn register(sum: Sum, products: &[f64], held: Option<u32>, saturate: bool) -> u32 {
    match sum {
        Sum::F32 => {
            let value = products[0] + held.map_or(0.0, |held| f64::from(f32::from_bits(held)));
            if value.is_nan() {
                NAN32
            } else {
                (value as f32).to_bits()
            }
        }
        Sum::F16 => products
            .iter()
            .enumerate()
            .fold(0, |bits, (half, product)| {
                let held = held.map_or(0.0, |held| {
                    F16.decode(u64::from(held >> (16 * half) & 0xffff))
                });
                bits | (F16.encode(product + held, Round::Near, false) as u32) << (16 * half)
            }),
        Sum::S32 => {
            let value = products[0] as i64 + held.map_or(0, |held| i64::from(held as i32));
            if saturate {
                value.clamp(i32::MIN.into(), i32::MAX.into()) as u32
            } else {
                value as u32
            }
        }
    }
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

    #[test]
    fn registers_have_the_places_that_the_isa_draws() {
        assert_eq!(places(Sum::F32, 5, 4).collect::<Vec<_>>(), [(1, 10)]);
        assert_eq!(places(Sum::F32, 0, 3).collect::<Vec<_>>(), [(8, 1)]);
        assert_eq!(places(Sum::F16, 5, 1).collect::<Vec<_>>(), [(9, 2), (9, 3)]);
        assert_eq!(fragment(5, 3), (9, 20));
    }

    #[test]
    fn the_metadata_of_all_groups_lie_apart_in_the_lanes_of_the_selector() {
        for (element, groups, selectors) in [
            (Element::Bf16, 8, 2),
            (Element::Tf32, 8, 2),
            (Element::S8, 16, 1),
        ] {
            for selector in 0..selectors {
                let mut seen = std::collections::BTreeSet::new();
                for (row, group) in
                    (0..ROWS).flat_map(|row| (0..groups).map(move |group| (row, group)))
                {
                    let (lane, shift) = metadata_place(row, group, element, selector);
                    assert_eq!(lane / 4, row % 8);
                    assert!(groups == 16 || lane % 4 / 2 == selector);
                    seen.insert((lane, shift));
                }
                assert_eq!(seen.len() as u32, ROWS * groups);
            }
        }
    }

    #[test]
    fn a_sparse_row_is_spread_as_its_metadata_says() {
        let mut elements = vec![0.0; 16 * 16];
        elements[..4].copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
        // The first two groups of the first row: places 1 and 3, then 0 and 2. All others: 0 and 1.
        let mut metadata = [0x4444_4444; 32];
        metadata[0] = 0x4444_448D;
        let rows = sparse(&elements, Element::F16, 0, &metadata).unwrap();
        assert_eq!(rows[0][..4], [(1, 1.0), (3, 2.0), (4, 3.0), (6, 4.0)]);
        metadata[0] = 0x4444_4440;
        assert!(sparse(&elements, Element::F16, 0, &metadata).is_err());
        assert!(sparse(&elements, Element::F16, 1, &metadata).is_ok());
    }

    #[test]
    fn sums_become_what_their_type_holds() {
        assert_eq!(
            register(Sum::S32, &[1.0], Some(i32::MAX as u32), false) as i32,
            i32::MIN
        );
        assert_eq!(
            register(Sum::S32, &[1.0], Some(i32::MAX as u32), true) as i32,
            i32::MAX
        );
        assert_eq!(
            register(Sum::F16, &[1.0, -2.0], Some(0x3c00_3c00), false),
            0xbc00_4000
        );
        assert_eq!(register(Sum::F32, &[1.5], None, false), 1.5f32.to_bits());
    }

    #[test]
    fn elements_are_read_from_their_bytes() {
        assert_eq!(Element::Bf16.values(&[0x80, 0x3f, 0, 0xc0]), [1.0, -2.0]);
        assert_eq!(Element::S8.values(&[0xff, 2]), [-1.0, 2.0]);
        assert_eq!(Element::Tf32.values(&[0xff, 0x1f, 0x80, 0x3f]), [1.0]);
        assert_eq!(Element::B1.values(&[0b101])[..4], [1.0, 0.0, 1.0, 0.0]);
    }
}
