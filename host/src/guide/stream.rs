//! One launch of `producer_consumer`.

use anyhow::Result;

use super::check::{check, poisoned};
use super::device::{Buffer, Device};
use super::expect::{StreamShape, block_sums};
use crate::driver::{Arguments, Driver, Launch};

/// The fewest threads, buffers of one group, a last warp that is not full, and the largest block.
pub const SMALL_SHAPES: [StreamShape; 5] = [
    shape(1, 64, 64),
    shape(2, 96, 4),
    shape(3, 100, 256),
    shape(5, 288, 1024),
    shape(4, 1024, 8192),
];

/// Threads and buffers that keep enough bytes in flight: three blocks of two 32 KiB buffers fit a
/// multiprocessor of compute capability 9.0.
const FULL_BLOCK: u32 = 288;
const FULL_BUFFER_LEN: u32 = 8192;
const BLOCKS_PER_SM: u32 = 3;

const fn shape(grid: u32, block: u32, buffer_len: u32) -> StreamShape {
    StreamShape {
        grid,
        block,
        buffer_len,
    }
}

/// The shape for the real array, of which each block streams a part.
pub fn full_shape(driver: &Driver) -> Result<StreamShape> {
    let grid = driver.sm_count()? * BLOCKS_PER_SM;
    Ok(shape(grid, FULL_BLOCK, FULL_BUFFER_LEN))
}

/// The shape for the smaller array that the CPU streams.
pub const CPU_SHAPE: StreamShape = shape(8, FULL_BLOCK, 2048);

/// Nothing, less than a group, less or more than a chunk, and chunks of which the last is short.
pub fn awkward_lengths(shape: StreamShape) -> [usize; 9] {
    let (grid, buffer) = (shape.grid as usize, shape.buffer_len as usize);
    [
        0,
        1,
        3,
        4,
        buffer - 1,
        buffer + 1,
        2 * buffer + 2,
        3 * grid * buffer,
        5 * grid * buffer + buffer / 2 + 3,
    ]
}

/// An array on the device and where its sums go.
pub struct Stream<'d> {
    device: &'d Device<'d>,
    shape: StreamShape,
    input: Buffer<f32>,
    output: Buffer<f32>,
    len: usize,
}

impl<'d> Stream<'d> {
    pub fn new(device: &'d Device, data: &[f32], shape: StreamShape) -> Result<Self> {
        Ok(Self {
            device,
            shape,
            input: device.upload(data)?,
            output: poisoned(device, shape.grid as usize)?,
            len: data.len(),
        })
    }

    pub fn launch(&self) -> Launch {
        let buffers = 2 * self.shape.buffer_len * size_of::<f32>() as u32;
        Launch::new(self.shape.grid, self.shape.block).shared(buffers)
    }

    /// For the kernel of either language. They keep its promises: lengths, alignment and shape.
    pub fn arguments(&self) -> Arguments {
        Arguments::new()
            .u64(self.len as u64)
            .u64(self.input.address())
            .u64(self.output.address())
            .u32(self.shape.buffer_len)
    }

    /// Compares the sums of a finished launch with the CPU's.
    pub fn check(&self, data: &[f32]) -> Result<()> {
        self.check_sums(&block_sums(data, self.shape))
    }

    pub fn check_sums(&self, expected: &[f32]) -> Result<()> {
        check(expected, &self.device.download(&self.output)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_keep_the_kernel_s_promises() {
        for shape in SMALL_SHAPES {
            assert!(shape.block >= 64 && shape.block <= 1024, "{shape:?}");
            assert_eq!(shape.buffer_len % 4, 0, "{shape:?}");
            // The transaction count of a phase is below 2^20.
            assert!(shape.buffer_len * 4 < 1 << 20, "{shape:?}");
        }
    }

    #[test]
    fn some_length_leaves_each_remainder_of_a_group() {
        let lengths = SMALL_SHAPES.into_iter().flat_map(awkward_lengths);
        let remainders: std::collections::BTreeSet<usize> = lengths.map(|len| len % 4).collect();
        assert_eq!(remainders.len(), 4);
    }
}
