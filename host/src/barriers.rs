//! The kernels of `ptx/barriers`: what the typed barriers do beyond the guide's listings. They run on
//! the GPU, and on the CPU under many schedules, where every access and every arrival is checked.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::build::{self, Arch, KernelCrate};
use crate::driver::{Arguments, Driver, Launch, Module};
use crate::exec::Program;
use crate::guide;
use crate::guide::check::{self, poisoned};
use crate::guide::device::{Buffer, Device, Kernel};
use crate::toolchain;

/// Bytes of the tile of the copies.
const TILE: usize = 4096;
/// What the kernels fill the tile with before they copy.
const UNTOUCHED: u8 = 0xee;
/// Bytes from one thread's or warp's copy to the next one's.
const STRIDE: u32 = 96;
/// Words of a buffer of a ring.
const RING_LEN: usize = 64;

/// Builds the kernels into `folder`.
///
/// # Errors
/// If a tool is missing or the crate does not build.
pub fn build(arch: Arch, folder: &Path) -> Result<()> {
    build::build(&KernelCrate::new(manifest(), arch), &image(folder))?;
    Ok(())
}

/// Where the kernels' crate is.
#[must_use]
pub fn manifest() -> PathBuf {
    toolchain::workspace_root().join("ptx/barriers/Cargo.toml")
}

/// Where [`build()`] puts the cubin.
#[must_use]
pub fn image(folder: &Path) -> PathBuf {
    folder.join("barriers-rust.cubin")
}

/// What the kernels are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Case {
    /// All threads of a grid meet, at barriers of the device and the system.
    Grid,
    /// Threads of a grid drop out one after another.
    GridDrop,
    /// A completion function runs once in each phase of a grid.
    GridTotal,
    /// Blocks of a cluster wait for arrivals from one another.
    Cluster,
    /// Tests and limited waits say whether the phase is complete.
    Answers,
    /// One thread arrives for all.
    OneForAll,
    /// `memcpy_async` copies any size at any alignment, and nothing else.
    Copies,
    /// `memcpy_async` does not overtake stores.
    CopyOverStores,
    /// Threads fill the buffers of a ring, by stores and by `cp.async`.
    RingOfThreads,
    /// The copy engine fills the buffers of a ring.
    RingOfCopies,
}

/// All cases.
pub const CASES: [Case; 10] = [
    Case::Grid,
    Case::GridDrop,
    Case::GridTotal,
    Case::Cluster,
    Case::Answers,
    Case::OneForAll,
    Case::Copies,
    Case::CopyOverStores,
    Case::RingOfThreads,
    Case::RingOfCopies,
];

/// All cases on the GPU.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// A cubin of the kernels.
    pub image: PathBuf,
}

impl Job {
    /// Runs the kernels in this process; gives the number of launches.
    ///
    /// # Errors
    /// If there is no GPU, a launch fails, or a result is wrong.
    pub fn run(&self) -> Result<u32> {
        let driver = Driver::open()?;
        let module = driver.load(&guide::read_image(&self.image)?)?;
        let mut session = Session::new(Device::Gpu(&driver), Some(&module));
        for case in CASES {
            session.run(case)?;
        }
        Ok(session.launches)
    }
}

/// Runs a case on the CPU; `schedule` is the seed of the first launch.
///
/// # Errors
/// If the executor finds a mistake, or a result is wrong.
pub fn run_on_cpu(program: &Program, case: Case, schedule: u64) -> Result<u32> {
    let mut session = Session::new(Device::cpu(program, schedule), None);
    session.run(case)?;
    Ok(session.launches)
}

/// A device, and the kernels on it.
struct Session<'a> {
    device: Device<'a>,
    /// Absent on the CPU.
    module: Option<&'a Module<'a>>,
    launches: u32,
}

/// The shape of a grid whose threads all meet.
#[derive(Clone, Copy)]
struct Shape {
    blocks: u32,
    threads: u32,
}

impl Shape {
    fn size(self) -> u32 {
        self.blocks * self.threads
    }
}

impl<'a> Session<'a> {
    fn new(device: Device<'a>, module: Option<&'a Module<'a>>) -> Self {
        Self {
            device,
            module,
            launches: 0,
        }
    }

    fn run(&mut self, case: Case) -> Result<()> {
        match case {
            Case::Grid => self.grid(),
            Case::GridDrop => self.grid_drop(),
            Case::GridTotal => self.grid_total(),
            Case::Cluster => self.cluster(),
            Case::Answers => self.answers(),
            Case::OneForAll => self.one_for_all(),
            Case::Copies => self.copies(),
            Case::CopyOverStores => self.copy_over_stores(),
            Case::RingOfThreads => {
                self.ring("ring_of_threads", 64, |k| (k + 63) % 64)?;
                self.ring("ring_of_cp_async", 64, |k| (k + 63) % 64)
            }
            Case::RingOfCopies => {
                self.ring("ring_of_copies", 96, |k| k)?;
                self.ring("ring_of_single_copies", 96, |k| k)
            }
        }
    }

    fn launch(&mut self, name: &str, launch: Launch, arguments: &Arguments) -> Result<()> {
        let kernel = match self.module {
            Some(module) => Kernel::Gpu(module.function(name)?),
            None => Kernel::Cpu(name),
        };
        self.launches += 1;
        // SAFETY: each case passes its kernel's parameters, and buffers as large as it needs.
        unsafe { self.device.launch(&kernel, &launch, arguments) }.with_context(|| name.to_owned())
    }

    /// Compares an output with its expectation.
    fn check(&self, what: &str, expected: &[u32], output: &Buffer<u32>) -> Result<()> {
        check::check(expected, &self.device.download(output)?).with_context(|| what.to_owned())
    }

    /// The grid whose threads all meet: on the GPU, one block for each of half its multiprocessors.
    fn grid_shape(&self) -> Result<Shape> {
        Ok(match &self.device {
            Device::Gpu(driver) => Shape {
                blocks: driver.sm_count()? / 2,
                threads: 33,
            },
            Device::Cpu(_) => Shape {
                blocks: 3,
                threads: 33,
            },
        })
    }

    fn grid(&mut self) -> Result<()> {
        let (shape, phases) = (self.grid_shape()?, 4);
        let expected = exchanged(shape.size() as usize, phases, 1);
        for (kernel, number) in [("grid_exchange", 0), ("system_exchange", 1)] {
            let barriers = self.grid_barriers(shape)?;
            let out = poisoned(&self.device, expected.len())?;
            let arguments = Arguments::new()
                .u64(barriers.address[number])
                .u32(phases)
                .u64(barriers.shown.address())
                .u64(out.address());
            self.launch(kernel, meeting(shape), &arguments)?;
            self.check(kernel, &expected, &out)?;
        }
        Ok(())
    }

    fn grid_drop(&mut self) -> Result<()> {
        let shape = Shape {
            blocks: 2,
            threads: 5,
        };
        let phases = 12;
        let barriers = self.grid_barriers(shape)?;
        let mut expected: Vec<u32> = (0..shape.size()).collect();
        *expected.last_mut().context("no thread")? = phases;
        let out = poisoned(&self.device, expected.len())?;
        let arguments = Arguments::new()
            .u64(barriers.address[0])
            .u32(phases)
            .u64(out.address());
        self.launch("grid_drop", meeting(shape), &arguments)?;
        self.check("grid_drop", &expected, &out)
    }

    fn grid_total(&mut self) -> Result<()> {
        let shape = Shape {
            blocks: 2,
            threads: 20,
        };
        let (size, phases) = (shape.size(), 3);
        let barriers = self.grid_barriers(shape)?;
        let (mut seen, mut sum) = (0u32, 0);
        for phase in 0..phases {
            sum += size * (size - 1) / 2 + size * phase;
            seen = seen.wrapping_mul(7).wrapping_add(sum);
        }
        let out = poisoned(&self.device, size as usize)?;
        let arguments = Arguments::new()
            .u64(barriers.address[2])
            .u32(phases)
            .u64(barriers.shown.address())
            .u64(barriers.sum.address())
            .u64(out.address());
        self.launch("grid_total", meeting(shape), &arguments)?;
        self.check("grid_total", &vec![seen; size as usize], &out)
    }

    /// Barriers that expect all threads of a grid.
    fn grid_barriers(&mut self, shape: Shape) -> Result<GridBarriers> {
        let shown: Buffer<u32> = poisoned(&self.device, 2 * shape.size() as usize)?;
        let sum = self.device.upload(&[0])?;
        let words = poisoned(&self.device, 24)?;
        let address = [0, 8, 16].map(|at| words.address() + at);
        let arguments = Arguments::new()
            .u64(address[0])
            .u64(address[1])
            .u64(address[2])
            .u32(shape.size())
            .u64(shown.address())
            .u64(sum.address());
        self.launch("grid_init", Launch::new(1, 1), &arguments)?;
        Ok(GridBarriers {
            address,
            shown,
            sum,
            _words: words,
        })
    }

    fn cluster(&mut self) -> Result<()> {
        let phases = 5;
        for (blocks, threads) in [(2, 32), (4, 40), (1, 33), (8, 128)] {
            let size = blocks * threads;
            let shown: Buffer<u32> = poisoned(&self.device, (size * phases) as usize)?;
            let expected = exchanged(size as usize, phases, (size - threads) as usize);
            let out = poisoned(&self.device, expected.len())?;
            let arguments = Arguments::new()
                .u32(phases)
                .u64(shown.address())
                .u64(out.address());
            let launch = Launch::new(blocks, threads);
            let (kernel, launch) = match blocks {
                2 => ("cluster_exchange_of_two", launch),
                _ => ("cluster_exchange", launch.cluster([blocks, 1, 1])),
            };
            self.launch(kernel, launch, &arguments)?;
            self.check(&format!("{kernel}, {blocks} blocks"), &expected, &out)?;
        }
        Ok(())
    }

    fn answers(&mut self) -> Result<()> {
        let out = poisoned(&self.device, 1)?;
        let arguments = Arguments::new().u64(out.address());
        self.launch("answers", Launch::new(1, 1), &arguments)?;
        self.check("answers", &[0b001_1110_1111], &out)
    }

    fn one_for_all(&mut self) -> Result<()> {
        let out = poisoned(&self.device, 97)?;
        let arguments = Arguments::new().u64(out.address());
        self.launch("one_arrives_for_all", Launch::new(1, 96), &arguments)?;
        self.check("one_arrives_for_all", &[42; 97], &out)
    }

    fn copies(&mut self) -> Result<()> {
        let input = tile_input();
        for alignment in [1, 2, 4, 8, 16] {
            for (group, groups, threads) in [("thread", 40, 40), ("warp", 3, 96), ("block", 1, 50)]
            {
                for size in [0, 1, 3, 4, 8, 15, 16, 17, 24, 33, 64, 95] {
                    let kernel = format!("copy_{alignment}_{group}");
                    let mut expected = vec![UNTOUCHED; TILE];
                    for at in (0..groups).map(|number| number * STRIDE as usize) {
                        let part = at..at + size;
                        expected[part.clone()].copy_from_slice(&input[part]);
                    }
                    self.copy(&kernel, threads, size, &expected)?;
                }
            }
        }
        // With a promise of alignment; the size may be any.
        for size in [0, 16, 100, 4000, TILE] {
            let mut expected = vec![UNTOUCHED; TILE];
            expected[..size].copy_from_slice(&input[..size]);
            self.copy("copy_aligned_block", 64, size, &expected)?;
        }
        Ok(())
    }

    fn copy(&mut self, kernel: &str, threads: u32, size: usize, expected: &[u8]) -> Result<()> {
        let source = self.device.upload(&tile_input())?;
        let out = self.device.upload(&[0u8; TILE])?;
        let arguments = Arguments::new()
            .u32(STRIDE)
            .u32(u32::try_from(size)?)
            .u64(source.address())
            .u64(out.address());
        self.launch(kernel, Launch::new(1, threads), &arguments)?;
        self.check_bytes(
            &format!("{kernel}, {size} bytes, {threads} threads"),
            expected,
            &out,
        )
    }

    fn copy_over_stores(&mut self) -> Result<()> {
        let source = self.device.upload(&[7u8; 64])?;
        let out = self.device.upload(&[0u8; 64])?;
        let arguments = Arguments::new().u64(source.address()).u64(out.address());
        self.launch("copy_over_stores", Launch::new(1, 1), &arguments)?;
        self.check_bytes("copy_over_stores", &[7; 64], &out)
    }

    fn check_bytes(&self, what: &str, expected: &[u8], output: &Buffer<u8>) -> Result<()> {
        let found = self.device.download(output)?;
        let mut pairs = expected.iter().zip(&found);
        let wrong = pairs.position(|(expected, found)| expected != found);
        ensure!(
            wrong.is_none(),
            "{what}: the first wrong byte is number {}",
            wrong.unwrap_or_default()
        );
        Ok(())
    }

    /// Rings with several numbers of buffers: thread `k` adds up element `of(k)` of each.
    fn ring(&mut self, kernel: &str, threads: u32, of: impl Fn(usize) -> usize) -> Result<()> {
        for n in [0, 1, 2, 3, 4, 11] {
            let input: Vec<u32> = (0..RING_LEN as u32 * n).map(|k| k * 31 + 5).collect();
            let sum = |k: usize| {
                input.chunks(RING_LEN).fold(0u32, |sum, buffer| {
                    sum.wrapping_mul(3).wrapping_add(buffer[of(k)])
                })
            };
            let expected: Vec<u32> = (0..RING_LEN).map(sum).collect();
            let source = check::guarded(&self.device, &input)?;
            let out = poisoned(&self.device, expected.len())?;
            let arguments = Arguments::new()
                .u32(n)
                .u64(source.address())
                .u64(out.address());
            self.launch(kernel, Launch::new(1, threads), &arguments)?;
            self.check(&format!("{kernel}, {n} buffers"), &expected, &out)?;
        }
        Ok(())
    }
}

/// The barriers of a grid, and what their completion function reads and writes.
struct GridBarriers {
    /// Of the device, of the system, and with a completion function.
    address: [u64; 3],
    shown: Buffer<u32>,
    sum: Buffer<u32>,
    /// Where they lie.
    _words: Buffer<u32>,
}

/// The launch of a grid whose threads wait for one another.
fn meeting(shape: Shape) -> Launch {
    Launch::new(shape.blocks, shape.threads).cooperative()
}

/// In each phase, three times the own number and that of a neighbour, which is so many places on.
fn exchanged(size: usize, phases: u32, neighbour: usize) -> Vec<u32> {
    let mut values: Vec<u32> = (0..).take(size).collect();
    for _ in 0..phases {
        let shown = values.clone();
        for (k, value) in values.iter_mut().enumerate() {
            *value = value
                .wrapping_mul(3)
                .wrapping_add(shown[(k + neighbour) % size]);
        }
    }
    values
}

/// Bytes that differ from [`UNTOUCHED`], and from those of other rows.
fn tile_input() -> Vec<u8> {
    let byte = |k: u32| (k * 7 + k / 256) as u8 & 0x7f;
    (0..TILE as u32).map(byte).collect()
}
