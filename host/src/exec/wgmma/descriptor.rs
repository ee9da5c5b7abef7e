//! Where a matrix descriptor has the elements of its matrix.

use super::super::check::{Check, Fault, Step};

/// The bytes that lie together in every layout.
pub const CHUNK: u32 = 16;

/// The bits of a descriptor that have no meaning.
const RESERVED: u64 = 0x3FF1_C000_C000_C000;

/// What a descriptor says. Addresses and offsets are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    start: u32,
    leading: u32,
    stride: u32,
    base: u32,
    /// How many chunks of a row are permuted: 1, 2, 4 or 8.
    width: u32,
}

impl Descriptor {
    /// What the bits of a descriptor say.
    pub fn decode(bits: u64) -> Step<Self> {
        if bits & RESERVED != 0 {
            return Err(Fault::new(
                Check::Matrix,
                format!(
                    "expected a matrix descriptor whose bits {RESERVED:#x} are zero, found {bits:#x}"
                ),
            ));
        }
        let field = |at: u32| (bits >> at & 0x3FFF) as u32 * CHUNK;
        Ok(Self {
            start: field(0),
            leading: field(16),
            stride: field(32),
            base: (bits >> 49 & 7) as u32,
            width: [1, 8, 4, 2][(bits >> 62) as usize],
        })
    }

    /// The address of 16 bytes along K, the `chunk`-th of a row along K.
    pub fn k_major(&self, row: u32, chunk: u32) -> Step<u32> {
        let (group, row) = (row / 8, row % 8);
        let along = match self.width {
            1 => chunk * self.leading,
            width if chunk < width => chunk * CHUNK,
            width => {
                return Err(Fault::new(
                    Check::Matrix,
                    format!(
                        "expected a swizzle of at least {} bytes for rows of so many, found one of {}",
                        (chunk + 1) * CHUNK,
                        width * CHUNK
                    ),
                ));
            }
        };
        Ok(self.place(group * self.stride + row * self.width * CHUNK + along))
    }

    /// The address of 16 bytes along M or N, the `chunk`-th of a row, which is `k` rows down.
    pub fn mn_major(&self, chunk: u32, k: u32) -> u32 {
        let (group, row) = (k / 8, k % 8);
        let (atom, chunk) = (chunk / self.width, chunk % self.width);
        // Without a swizzle, the two offsets change places.
        let (along, down) = match self.width {
            1 => (self.stride, self.leading),
            _ => (self.leading, self.stride),
        };
        self.place(atom * along + group * down + (row * self.width + chunk) * CHUNK)
    }

    /// Where the byte lies that would be `offset` from the start if nothing were permuted.
    fn place(&self, offset: u32) -> u32 {
        let address = self.start.wrapping_add(offset);
        let line = (address >> 7).wrapping_sub(self.base);
        address ^ (line & (self.width - 1)) << 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(start: u64, leading: u64, stride: u64, swizzle: u64) -> Descriptor {
        Descriptor::decode(start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | swizzle << 62)
            .unwrap()
    }

    #[test]
    fn rows_along_k_are_swizzled_as_copies_swizzle_them() {
        let matrix = descriptor(0x2400, 16, 1024, 1);
        assert_eq!(matrix.k_major(0, 1).unwrap(), 0x2410);
        assert_eq!(
            matrix.k_major(3, 1).unwrap(),
            0x2400 + 3 * 128 + (1 ^ 3) * 16
        );
        assert_eq!(matrix.k_major(11, 0).unwrap(), 0x2800 + 3 * 128 + 3 * 16);
        // Further on in the rows.
        let next = descriptor(0x2420, 16, 1024, 1);
        assert_eq!(next.k_major(3, 1).unwrap(), matrix.k_major(3, 3).unwrap());
        let narrow = descriptor(0x2400, 16, 256, 3);
        assert_eq!(narrow.k_major(5, 0).unwrap(), 0x2400 + 5 * 32 + 16);
        assert!(narrow.k_major(0, 2).is_err());
    }

    #[test]
    fn without_a_swizzle_both_offsets_are_between_matrices_of_8_rows() {
        let matrix = descriptor(0x400, 128, 256, 0);
        assert_eq!(matrix.k_major(9, 1).unwrap(), 0x400 + 256 + 16 + 128);
        assert_eq!(matrix.mn_major(1, 9), 0x400 + 256 + 128 + 16);
    }

    #[test]
    fn rows_along_m_fill_the_swizzle_before_the_leading_offset_counts() {
        let matrix = descriptor(0x400, 2048, 1024, 1);
        assert_eq!(matrix.mn_major(2, 0), 0x420);
        assert_eq!(matrix.mn_major(2, 3), 0x400 + 3 * 128 + 16);
        assert_eq!(matrix.mn_major(9, 8), 0x400 + 2048 + 1024 + 16);
    }

    #[test]
    fn a_base_offset_says_where_the_pattern_begins() {
        let plain = descriptor(0x400, 16, 1024, 1);
        let bits = 0x480 >> 4 | 64 << 32 | 1 << 49 | 1 << 62;
        let moved = Descriptor::decode(bits).unwrap();
        let chunks = |matrix: &Descriptor| {
            (0..8)
                .map(|row| matrix.k_major(row, 0).unwrap() & 0x7f)
                .collect::<Vec<_>>()
        };
        assert_eq!(chunks(&moved), chunks(&plain));
    }

    #[test]
    fn bits_without_meaning_are_found() {
        assert!(Descriptor::decode(1 << 14).is_err());
        assert!(Descriptor::decode(1 << 52).is_err());
        assert!(Descriptor::decode(1 << 49).is_ok());
    }
}
