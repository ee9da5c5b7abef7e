//! The launches of each case.

use std::path::Path;

use anyhow::{Context, Result};

use super::check::{check, guarded, poisoned};
use super::device::{Device, Kernel};
use super::expect::{self, TILE_LEN};
use super::{Job, Outcome, input, random, stream};
use crate::driver::{Arguments, Launch};

/// Blocks and threads: one warp, parts of warps, several blocks, and the largest block.
const SHAPES: [(u32, u32); 7] = [
    (1, 32),
    (3, 33),
    (2, 96),
    (5, 256),
    (2, 1000),
    (7, 1024),
    (300, 1024),
];

/// The same for the CPU, which executes a thread at a time.
const CPU_SHAPES: [(u32, u32); 5] = [(1, 32), (3, 33), (2, 96), (5, 256), (2, 1000)];

/// Lengths for `track_bulk_copy`: less than a group, whole groups and not, whole tiles and not.
const LENGTHS: [usize; 9] = [1, 3, 4, 5, 1023, 1024, 1025, 4099, (1 << 20) + 2];

/// The kernel of a job, and what has been done with it.
pub struct Session<'a> {
    device: Device<'a>,
    kernel: Kernel<'a>,
    /// Whether the CPU executes a listing in another flavour than `cuda::ptx`: few launches are enough.
    brief: bool,
    /// What makes the inputs of this job others than those of any other.
    seed: u64,
    outcome: Outcome,
}

impl<'a> Session<'a> {
    pub fn new(device: Device<'a>, kernel: Kernel<'a>, job: &Job) -> Self {
        Self {
            brief: device.is_cpu() && !job.case.is_ptx(),
            device,
            kernel,
            seed: random::hash(job.case as u64, job.language as u64),
            outcome: Outcome {
                launches: 0,
                elements: 0,
            },
        }
    }

    fn shapes(&self) -> &'static [(u32, u32)] {
        match self.device.is_cpu() {
            true if self.brief => &CPU_SHAPES[..3],
            true => &CPU_SHAPES,
            false => &SHAPES,
        }
    }

    /// # Safety
    /// The arguments are those of the kernel, and its buffers are as large as it expects.
    unsafe fn launch(&self, launch: &Launch, arguments: &Arguments) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.device.launch(&self.kernel, launch, arguments) }
    }

    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// A seed for the next launch.
    fn next_seed(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(1);
        self.seed
    }

    fn count(&mut self, elements: usize) {
        self.outcome.launches += 1;
        self.outcome.elements += elements as u64;
    }

    /// `init_barrier` and `track_kernel` in every flavour.
    pub fn exchange(&mut self) -> Result<()> {
        for &(grid, block) in self.shapes() {
            let data = random::integers(self.next_seed(), (grid * block) as usize);
            let expected = expect::exchange(&data, block as usize);

            let input = self.device.upload(&data)?;
            let output = poisoned(&self.device, data.len())?;
            let arguments = Arguments::new().u64(input.address()).u64(output.address());
            let launch = Launch::new(grid, block);
            // SAFETY: both buffers have an element for each thread.
            unsafe { self.launch(&launch, &arguments)? };
            check(&expected, &self.device.download(&output)?)
                .with_context(|| launch.to_string())?;
            self.count(data.len());
        }
        Ok(())
    }

    pub fn split_arrive_wait(&mut self) -> Result<()> {
        for &(grid, block) in self.shapes() {
            for iterations in [1, 2, 3, if self.device.is_cpu() { 20 } else { 100 }] {
                let data = random::integers(self.next_seed(), (grid * block) as usize);
                let expected = expect::split_arrive_wait(iterations, &data, block as usize);

                let output = guarded(&self.device, &data)?;
                let arguments = Arguments::new().u32(iterations).u64(output.address());
                let launch = Launch::new(grid, block);
                // SAFETY: the buffer has an element for each thread.
                unsafe { self.launch(&launch, &arguments)? };
                check(&expected, &self.device.download(&output)?)
                    .with_context(|| format!("{iterations} iterations, {launch}"))?;
                self.count(data.len());
            }
        }
        Ok(())
    }

    pub fn early_exit(&mut self) -> Result<()> {
        for &(grid, block) in self.shapes() {
            for (iterations, last_exit) in [(1, 1), (5, 1), (40, 60)] {
                let data = random::integers(self.next_seed(), (grid * block) as usize);
                let leave_at = exits(self.next_seed(), grid, block, last_exit);
                let expected = expect::early_exit(iterations, &leave_at, &data, block as usize);

                let leave_at = self.device.upload(&leave_at)?;
                let output = guarded(&self.device, &data)?;
                let arguments = Arguments::new()
                    .u32(iterations)
                    .u64(leave_at.address())
                    .u64(output.address());
                let launch = Launch::new(grid, block);
                // SAFETY: both buffers have an element for each thread, and one of each block stays.
                unsafe { self.launch(&launch, &arguments)? };
                check(&expected, &self.device.download(&output)?).with_context(|| {
                    format!("{iterations} iterations, exits before {last_exit}, {launch}")
                })?;
                self.count(data.len());
            }
        }
        Ok(())
    }

    /// `psum_barrier`: no phase, one, and many.
    pub fn psum(&mut self) -> Result<()> {
        for &(grid, block) in self.shapes() {
            for phases in [0, 1, 2, if self.device.is_cpu() { 5 } else { 50 }] {
                let n = phases * block;
                let data = random::integers(self.next_seed(), (grid * n) as usize);
                let expected = expect::running_sums(&data, grid as usize, block as usize);

                let input = self.device.upload(&data)?;
                let output = poisoned(&self.device, grid as usize)?;
                let arguments = Arguments::new()
                    .u32(n)
                    .u64(input.address())
                    .u64(output.address());
                let launch = Launch::new(grid, block);
                // SAFETY: the input has `n` elements for each block, and the output one.
                unsafe { self.launch(&launch, &arguments)? };
                check(&expected, &self.device.download(&output)?)
                    .with_context(|| format!("{phases} phases, {launch}"))?;
                self.count(grid as usize);
            }
        }
        Ok(())
    }

    /// A converged warp updates a barrier once, a diverged one for each of its lanes.
    pub fn warp_entanglement(&mut self) -> Result<()> {
        let shapes = [(1, 32), (3, 96), (2, 1024)];
        let last = shapes.len() - usize::from(self.device.is_cpu());
        for (grid, block) in shapes.into_iter().take(last) {
            let threads = (grid * block) as usize;
            let converged = poisoned(&self.device, threads)?;
            let diverged = poisoned(&self.device, threads)?;
            let arguments = Arguments::new()
                .u64(converged.address())
                .u64(diverged.address());
            let launch = Launch::new(grid, block);
            // SAFETY: both buffers have an element for each thread.
            unsafe { self.launch(&launch, &arguments)? };
            // The CPU executes a thread at a time: no warp is converged there.
            let together = if self.device.is_cpu() { 32 } else { 1 };
            for (found, updates) in [(&converged, together), (&diverged, 32)] {
                let found = self.device.download(found)?;
                expect::check_updates(&found[..threads], updates)
                    .with_context(|| launch.to_string())?;
            }
            self.count(2 * threads);
        }
        Ok(())
    }

    pub fn track_bulk_copy(&mut self) -> Result<()> {
        let last = LENGTHS.len() - usize::from(self.device.is_cpu());
        let blocks: &[u32] = if self.brief {
            &[96]
        } else {
            &[32, 96, 1000, 1024]
        };
        for len in LENGTHS.into_iter().take(last) {
            for &block in blocks {
                let data = random::integers(self.next_seed(), len);
                let expected = expect::reverse_tiles(&data);

                let input = self.device.upload(&data)?;
                let output = poisoned(&self.device, len)?;
                let arguments = Arguments::new()
                    .u32(len as u32)
                    .u64(input.address())
                    .u64(output.address());
                let launch = Launch::new(len.div_ceil(TILE_LEN) as u32, block);
                // SAFETY: both buffers have `len` elements, and there is a block for each tile.
                unsafe { self.launch(&launch, &arguments)? };
                check(&expected, &self.device.download(&output)?)
                    .with_context(|| format!("{len} elements, {launch}"))?;
                self.count(len);
            }
        }
        Ok(())
    }

    /// Small arrays of every awkward length, then the real one.
    pub fn producer_consumer(&mut self, file: Option<&Path>) -> Result<()> {
        let shapes = &stream::SMALL_SHAPES[..if self.brief { 3 } else { 5 }];
        for &shape in shapes {
            for len in stream::awkward_lengths(shape) {
                let data = random::floats(self.next_seed(), len);
                self.stream(&data, shape)?;
            }
        }
        if self.brief {
            return Ok(());
        }
        let seed = self.next_seed();
        let (data, shape) = match &self.device {
            Device::Gpu(driver) => (
                input::load(driver, file, seed)?,
                stream::full_shape(driver)?,
            ),
            Device::Cpu(_) => (input::load_part(file, seed)?, stream::CPU_SHAPE),
        };
        self.stream(&data, shape)
    }

    fn stream(&mut self, data: &[f32], shape: expect::StreamShape) -> Result<()> {
        let stream = stream::Stream::new(&self.device, data, shape)?;
        // SAFETY: the kernel is a `producer_consumer`.
        unsafe { self.launch(&stream.launch(), &stream.arguments())? };
        stream
            .check(data)
            .with_context(|| format!("{} elements, {shape:?}", data.len()))?;
        self.count(shape.grid as usize);
        Ok(())
    }
}

/// When each thread leaves: before `last_exit`, but one of each block never.
pub fn exits(seed: u64, grid: u32, block: u32, last_exit: u64) -> Vec<u32> {
    let mut exits: Vec<u32> = (0..u64::from(grid * block))
        .map(|thread| (random::hash(seed, thread) % last_exit) as u32)
        .collect();
    for (number, block) in exits.chunks_mut(block as usize).enumerate() {
        let stays = random::hash(!seed, number as u64) as usize % block.len();
        block[stays] = u32::MAX;
    }
    exits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_each_block_exactly_one_thread_stays_for_ever() {
        let exits = exits(5, 4, 33, 60);
        assert_eq!(exits.len(), 4 * 33);
        for block in exits.chunks(33) {
            let stay = block.iter().filter(|exit| **exit == u32::MAX).count();
            assert_eq!(stay, 1);
            assert!(block.iter().all(|exit| *exit < 60 || *exit == u32::MAX));
        }
    }
}
