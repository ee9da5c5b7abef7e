//! Where a matrix is in shared memory, and in which layout.

use crate::address::as_ptr_smem;

/// How 16-byte chunks of a matrix in shared memory are permuted. The number is the length of the
/// rows that the pattern permutes, in bytes; a tensor copy with the same swizzle writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swizzle {
    /// Not at all.
    None,
    /// Within rows of 32 bytes; the pattern repeats every 256 bytes.
    Bytes32,
    /// Within rows of 64 bytes; the pattern repeats every 512 bytes.
    Bytes64,
    /// Within rows of 128 bytes; the pattern repeats every 1024 bytes.
    Bytes128,
}

impl Swizzle {
    /// After how many bytes the pattern repeats: what a matrix is to be aligned to.
    #[inline(always)]
    #[must_use]
    pub const fn repeat(self) -> u32 {
        match self {
            Swizzle::None => 16,
            Swizzle::Bytes32 => 256,
            Swizzle::Bytes64 => 512,
            Swizzle::Bytes128 => 1024,
        }
    }

    /// Bits 62 and 63 of a descriptor.
    const fn bits(self) -> u64 {
        match self {
            Swizzle::None => 0,
            Swizzle::Bytes128 => 1 << 62,
            Swizzle::Bytes64 => 2 << 62,
            Swizzle::Bytes32 => 3 << 62,
        }
    }
}

/// Describes a matrix in shared memory to `wgmma.mma_async`.
///
/// | bits | |
/// |---|---|
/// | 0 to 13 | address of the matrix, in units of 16 bytes |
/// | 16 to 29 | leading dimension byte offset, in units of 16 bytes |
/// | 32 to 45 | stride dimension byte offset, in units of 16 bytes |
/// | 49 to 51 | base offset |
/// | 62 and 63 | swizzle |
///
/// PTX ISA: [matrix descriptor](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#asynchronous-warpgroup-level-matrix-shared-memory-layout-matrix-descriptor)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Descriptor(u64);

impl Descriptor {
    /// A matrix at `start`, in shared memory of the executing CTA.
    ///
    /// The two offsets are distances between *core matrices*, of 8 rows of 16 bytes each.
    /// For a matrix whose rows run along K (K-major):
    ///
    /// - `leading_bytes` is the distance of two that are neighbours along K. It does not count with a
    ///   swizzle.
    /// - `stride_bytes` is the distance of two that are neighbours along M or N: with a swizzle of 128
    ///   bytes and packed rows 8 times 128 = 1024.
    ///
    /// # Panics
    ///
    /// In debug builds, if `start` is not aligned to [`Swizzle::repeat`], or if an offset is not a
    /// multiple of 16, or 2^18 and more.
    #[inline(always)]
    #[must_use]
    pub fn new<T>(
        start: *const T,
        leading_bytes: u32,
        stride_bytes: u32,
        swizzle: Swizzle,
    ) -> Self {
        debug_assert!(
            start.addr().is_multiple_of(swizzle.repeat() as usize),
            "a matrix of wgmma is not aligned to the repetition of its swizzle: 16, 256, 512 or 1024 bytes"
        );
        Self(
            field(as_ptr_smem(start))
                | field(leading_bytes) << 16
                | field(stride_bytes) << 32
                | swizzle.bits(),
        )
    }

    /// A matrix whose packed rows run along K and fill the swizzle: what a tensor copy with a box of
    /// so many bytes in its innermost dimension leaves.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    #[inline(always)]
    #[must_use]
    pub fn k_major<T>(start: *const T, swizzle: Swizzle) -> Self {
        // Without a swizzle a core matrix is packed itself, and its neighbours lie one behind the other.
        match swizzle {
            Swizzle::None => Self::new(start, 128, 256, swizzle),
            _ => Self::new(start, 16, swizzle.repeat(), swizzle),
        }
    }

    /// The same matrix from `bytes` further on: with a swizzle, so many bytes along its rows.
    ///
    /// # Panics
    ///
    /// In debug builds, if `bytes` is not a multiple of 16.
    #[inline(always)]
    #[must_use]
    pub const fn advance(self, bytes: u32) -> Self {
        debug_assert!(
            bytes.is_multiple_of(16),
            "a matrix of wgmma begins at a multiple of 16 bytes"
        );
        // Shared memory ends before the sum reaches bit 14.
        Self(self.0 + (bytes >> 4) as u64)
    }

    /// The same with a base offset, for a matrix that begins inside the repeating pattern of its
    /// swizzle: bits 7 to 9 of the address at which that pattern begins.
    ///
    /// # Panics
    ///
    /// In debug builds, if `offset` is greater than 7.
    #[inline(always)]
    #[must_use]
    pub const fn with_base_offset(self, offset: u32) -> Self {
        debug_assert!(
            offset < 8,
            "the base offset of a matrix of wgmma is greater than 7"
        );
        Self(self.0 & !(7 << 49) | (offset as u64) << 49)
    }

    /// What the instruction takes.
    #[inline(always)]
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

/// An address or an offset in units of 16 bytes.
#[inline(always)]
const fn field(bytes: u32) -> u64 {
    debug_assert!(
        bytes.is_multiple_of(16) && bytes < 1 << 18,
        "an address or offset in a descriptor of wgmma is not a multiple of 16, or 2^18 and more"
    );
    ((bytes & 0x3_FFFF) >> 4) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::without_provenance;

    #[test]
    fn the_fields_are_where_the_isa_has_them() {
        let start = without_provenance::<u8>(0x1_2400);
        let descriptor = Descriptor::new(start, 16, 1024, Swizzle::Bytes128);
        assert_eq!(descriptor.bits(), 1 << 62 | 64 << 32 | 1 << 16 | 0x1240);
        assert_eq!(descriptor.advance(32).bits(), descriptor.bits() + 2);
        assert_eq!(
            descriptor.with_base_offset(5).bits(),
            descriptor.bits() | 5 << 49
        );
        assert_eq!(Descriptor::k_major(start, Swizzle::Bytes128), descriptor);
        let modes = [
            Swizzle::None,
            Swizzle::Bytes128,
            Swizzle::Bytes64,
            Swizzle::Bytes32,
        ];
        assert_eq!(modes.map(|swizzle| swizzle.bits() >> 62), [0, 1, 2, 3]);
    }

    #[test]
    #[should_panic = "not aligned to the repetition of its swizzle"]
    fn a_misaligned_matrix_is_found() {
        let _ = Descriptor::k_major(without_provenance::<u8>(512), Swizzle::Bytes128);
    }

    #[test]
    #[should_panic = "not a multiple of 16"]
    fn an_odd_stride_is_found() {
        let _ = Descriptor::new(without_provenance::<u8>(1024), 16, 1000, Swizzle::Bytes128);
    }
}
