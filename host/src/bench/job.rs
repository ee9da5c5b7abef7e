//! Launches the kernels of some forms in a child process, Rust and C++ in turn.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use cust::memory::DeviceBuffer;
use serde::{Deserialize, Serialize};

use super::images::{Form, Images, MIRROR};
use super::pairs::{self, Latency, RECORD, Statistic};
use super::setup::{Actor, Chain, Link};
use super::source::link_name;
use super::statistics::median;
use crate::driver::{Arguments, DataType, Driver, Function, Launch, Module, TensorMapBuilder};

/// Lengths of the chains.
pub const LENGTHS: [u32; 4] = [64, 128, 192, 256];
/// Pairs of launches, one in each language, of a chain that costs the same at every place.
const PAIRS: usize = 15;
/// The same where the slice of the L2 cache matters that a place is in.
const PAIRS_OF_PLACES: usize = 240;
/// Slabs (tiles, for tensor copies) from the place of a pair to that of the next. Odd, so that neither low nor high
/// bits of the address stay the same: 240 tiles lie in 30 pages of 2 MiB.
const STRIDE: u32 = 257;
/// Warps of a block in turn.
const WARPS: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Bytes in global memory of each warp.
const SLAB: usize = 4096;
/// The tiles of 1 KiB that tensor copies move, in 32-bit elements, by the number of dimensions.
pub const TILES: [&[u32]; 5] = [
    &[256],
    &[16, 16],
    &[8, 8, 4],
    &[4, 4, 4, 4],
    &[4, 4, 4, 2, 2],
];

/// Forms to time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FormsJob {
    /// Where the images lie.
    pub folder: PathBuf,
    /// What to time.
    pub forms: Vec<Form>,
    /// Whether many warps at once are timed too.
    pub throughput: bool,
    /// A file that takes a line of JSON, a [`Measured`], as soon as a form is done: what is in it survives
    /// a later form that fails.
    pub results: PathBuf,
}

/// The clock of the multiprocessors before and after a job, in MHz: cycles of a long chain over its time.
pub type Clocks = [f64; 2];

/// A form's cost. Pairs of figures are Rust's and C++'s.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// What was measured.
    #[serde(flatten)]
    pub form: Form,
    /// The chains.
    pub latency: Latency,
    /// The chains once more, after everything else, in another process.
    pub again: Option<Latency>,
    /// Many warps at once.
    pub throughput: Vec<Throughput>,
}

/// Operations per cycle with many warps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Throughput {
    /// Warps of each multiprocessor.
    pub warps: u32,
    /// Multiprocessors that had work.
    pub multiprocessors: u32,
    /// Operations per cycle of all multiprocessors together: of threads, or of warps where one lane acts.
    pub rate: [f64; 2],
    /// The same of each pair.
    pub rates: Vec<[f32; 2]>,
}

impl FormsJob {
    /// Times all forms.
    ///
    /// # Errors
    /// If there is no GPU, or a kernel fails.
    pub fn run(&self) -> Result<Clocks> {
        let driver = Driver::open()?;
        let images = Images::in_folder(&self.folder);
        let mut modules = HashMap::new();
        for image in self.forms.iter().map(Form::image).chain([MIRROR]) {
            if !modules.contains_key(image) {
                modules.insert(image, load(&driver, &images.cubins(image))?);
            }
        }
        let mut bench = Bench::new(&driver)?;
        let before = bench.clock_mhz(&modules[MIRROR])?;
        let mut results = File::options()
            .append(true)
            .create(true)
            .open(&self.results)?;
        for form in &self.forms {
            let measured = bench
                .form(form, &modules[form.image()], self.throughput)
                .with_context(|| form.form.clone())?;
            let line = serde_json::to_string(&measured)? + "\n";
            results.write_all(line.as_bytes())?;
        }
        Ok([before, bench.clock_mhz(&modules[MIRROR])?])
    }
}

/// The modules of both languages.
pub(super) fn load<'d>(driver: &'d Driver, cubins: &[PathBuf; 2]) -> Result<[Module<'d>; 2]> {
    let load = |path: &PathBuf| -> Result<Module<'d>> {
        let image =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(driver.load(&image)?)
    };
    Ok([load(&cubins[0])?, load(&cubins[1])?])
}

/// Not zero, and no two neighbours alike.
pub(super) fn words(count: usize) -> Vec<u32> {
    (0..count as u32)
        .map(|index| index.wrapping_mul(0x9e37_79b9) >> 8 | 1)
        .collect()
}

/// What all launches share.
struct Bench<'d> {
    driver: &'d Driver,
    multiprocessors: u32,
    data: DeviceBuffer<u32>,
    maps: DeviceBuffer<u64>,
    /// Records of all launches of a measurement, by the number of words.
    records: HashMap<usize, DeviceBuffer<u64>>,
}

/// Blocks, warps of each, and steps of each thread.
#[derive(Clone, Copy, Debug)]
struct Shape {
    blocks: u32,
    warps: u32,
    steps: u32,
}

/// How often a shape is launched, and with what.
#[derive(Clone, Copy, Debug)]
struct Plan {
    statistic: Statistic,
    pairs: usize,
    /// Slabs from the place of a pair to that of the next.
    stride: u32,
    /// Cycles of the longest pause between the steps of an exchange.
    pauses: u32,
}

/// Many warps have many places, and do not wait for each other.
const MANY_WARPS: Plan = Plan {
    statistic: Statistic::Median,
    pairs: PAIRS,
    stride: 1,
    pauses: 0,
};

impl Plan {
    fn of_latency(form: &Form) -> Self {
        match form.places {
            true => Self {
                statistic: Statistic::TrimmedMean,
                pairs: PAIRS_OF_PLACES,
                stride: STRIDE,
                ..MANY_WARPS
            },
            false if form.chain == Chain::Exchange => Self {
                pauses: 511,
                ..MANY_WARPS
            },
            false => MANY_WARPS,
        }
    }
}

impl<'d> Bench<'d> {
    fn new(driver: &'d Driver) -> Result<Self> {
        let multiprocessors = driver.sm_count()?;
        // Two blocks of 32 warps on each, and one for clusters that do not divide.
        let warps = (2 * multiprocessors as usize + 2) * 32;
        let places = warps + pairs::launches(PAIRS_OF_PLACES) / 2 * STRIDE as usize;
        let mut data = driver.zeroed::<u32>(places * SLAB / 4)?;
        driver.copy_to_device(&words(warps * SLAB / 4), &mut data)?;
        let tiled = (1..=5).map(|dimensions| map(driver, &data, dimensions, places as u64));
        let columns =
            (3..=5).map(|dimensions| im2col_map(driver, &data, dimensions, places as u64));
        let maps = tiled.chain(columns).collect::<Result<Vec<_>>>()?.concat();
        Ok(Self {
            driver,
            multiprocessors,
            data,
            maps: driver.upload(&maps)?,
            records: HashMap::new(),
        })
    }

    fn form(&mut self, form: &Form, modules: &[Module; 2], throughput: bool) -> Result<Measured> {
        let functions = [
            modules[0].function(&form.kernel)?,
            modules[1].function(&form.kernel)?,
        ];
        Ok(Measured {
            form: form.clone(),
            latency: self.latency(form, &functions)?,
            again: None,
            throughput: match throughput {
                true => self.throughput(form, &functions)?,
                false => Vec::new(),
            },
        })
    }

    fn latency(&mut self, form: &Form, functions: &[Function; 2]) -> Result<Latency> {
        let plan = Plan::of_latency(form);
        let mut cycles = Vec::new();
        for steps in LENGTHS {
            let shape = Shape {
                blocks: cluster_blocks(form),
                warps: form.threads / 32,
                steps,
            };
            // What the forms before have written is not at hand in the way in which what is only read is.
            if form.places {
                pairs::evict(self.driver)?;
            }
            let of_first = |records: &[u64]| records[1].wrapping_sub(records[0]);
            cycles.push(self.pairs(form, functions, shape, plan, of_first)?);
        }
        Ok(Latency::new(plan.statistic, cycles, &LENGTHS))
    }

    fn throughput(&mut self, form: &Form, functions: &[Function; 2]) -> Result<Vec<Throughput>> {
        let step = cluster_blocks(form);
        let all = self.multiprocessors / step * step;
        let mut shapes = Vec::new();
        for blocks in [step, all] {
            let fits = |warps: &u32| {
                (warps * 32).is_multiple_of(form.threads) && warps * 32 <= form.max_threads
            };
            shapes.extend(
                WARPS
                    .into_iter()
                    .filter(fits)
                    .map(|warps| (blocks, warps, 1)),
            );
        }
        // Two blocks of 1024 threads share a multiprocessor if they take no more registers than it has.
        let mut registers = 0;
        for function in functions {
            registers = registers.max(function.attributes()?.registers);
        }
        if form.threads == 32 && registers <= 32 {
            shapes.push((2 * all, 32, 2));
        }
        let lanes = if form.actor == Actor::Warp { 32 } else { 1 };
        // Enough that starting and stopping do not count, and no more.
        let steps = match form.chain {
            Chain::Value | Chain::Link(_) | Chain::Accumulate => 256,
            Chain::Order => 128,
            Chain::Completion | Chain::Exchange => 64,
        };
        let operations = f64::from(steps * lanes);
        shapes
            .into_iter()
            .map(|(blocks, warps, per_multiprocessor)| {
                let shape = Shape {
                    blocks,
                    warps,
                    steps,
                };
                let rates = self.pairs(form, functions, shape, MANY_WARPS, |records| {
                    four_digits(rate(records, operations))
                })?;
                let side = |side: usize| {
                    median(
                        &rates
                            .iter()
                            .map(|pair| pair[side].into())
                            .collect::<Vec<_>>(),
                    )
                };
                Ok(Throughput {
                    warps: warps * per_multiprocessor,
                    multiprocessors: blocks / per_multiprocessor,
                    rate: [side(0), side(1)],
                    rates,
                })
            })
            .collect()
    }

    /// Launches both kernels in turn, the first of each pair in turn too, and reads the records of each
    /// launch with `read`.
    fn pairs<T: Copy + Default>(
        &mut self,
        form: &Form,
        functions: &[Function; 2],
        shape: Shape,
        plan: Plan,
        read: impl Fn(&[u64]) -> T,
    ) -> Result<Vec<[T; 2]>> {
        let warps = (shape.blocks * shape.warps) as usize;
        let size = warps * RECORD;
        let words = pairs::launches(plan.pairs) * size;
        if !self.records.contains_key(&words) {
            let buffer = self.driver.zeroed::<u64>(words)?;
            self.records.insert(words, buffer);
        }
        let records = &self.records[&words];
        let mut launch = Launch::new(shape.blocks, shape.warps * 32)
            .shared(2048 + shape.warps * 2048 + form.shared);
        if form.cluster {
            launch = launch.cluster([2, 1, 1]);
        }
        // Each pair has another place in memory: what a copy costs depends on the slice of the L2 cache.
        let arguments = |out, turn: usize| {
            self.arguments(
                out,
                shape.steps / form.unroll,
                turn as u32 / 2 * plan.stride,
                plan.pauses,
            )
        };
        // SAFETY: these are the kernel's arguments, and it stays in its warps' parts of the buffers.
        unsafe {
            pairs::launch_in_turn(self.driver, functions, &launch, records, size, arguments)?
        };
        pairs::in_pairs(&self.driver.download(records)?, size, read)
    }

    fn arguments(&self, out: u64, trips: u32, place: u32, pauses: u32) -> Arguments {
        Arguments::new()
            .u64(out)
            .pointer(&self.data)
            .pointer(&self.maps)
            .u32(trips)
            // One pass that warms up, and one that counts.
            .u32(2)
            .u32(0)
            .u32(1)
            .u32(u32::MAX)
            .u32(0x3210)
            .u32(1000)
            // The cache policy that the C++ layer takes by default.
            .u64(0x10F0_0000_0000_0000)
            .u32(place)
            .u32(pauses)
    }

    /// The cycles of a chain that takes milliseconds, over its time.
    fn clock_mhz(&mut self, modules: &[Module; 2]) -> Result<f64> {
        let function = modules[0].function(link_name(Link::Shared))?;
        let record = self.driver.zeroed::<u64>(RECORD)?;
        let arguments = self.arguments(record.as_device_ptr().as_raw(), 20_000, 0, 0);
        let launch = Launch::new(1, 32).shared(4096);
        // SAFETY: as for every form.
        let milliseconds = unsafe { function.time_launch(&launch, &arguments)? };
        let record = self.driver.download(&record)?;
        Ok((record[1] - record[0]) as f64 / f64::from(milliseconds) / 1e3)
    }
}

/// As many as a rate has that mean something: all of them would make the results twice as long.
fn four_digits(value: f64) -> f32 {
    format!("{value:.3e}").parse().unwrap_or_default()
}

fn cluster_blocks(form: &Form) -> u32 {
    if form.cluster { 2 } else { 1 }
}

/// Operations per cycle: of each multiprocessor from the first start to the last end there, summed.
fn rate(records: &[u64], operations: f64) -> f64 {
    let mut busy: Vec<(u64, u64, f64)> = Vec::new();
    for record in records.chunks(RECORD).filter(|record| record[1] != 0) {
        let multiprocessor = record[3] as usize;
        if busy.len() <= multiprocessor {
            busy.resize(multiprocessor + 1, (u64::MAX, 0, 0.0));
        }
        let entry = &mut busy[multiprocessor];
        entry.0 = entry.0.min(record[0]);
        entry.1 = entry.1.max(record[1]);
        entry.2 += operations;
    }
    busy.iter()
        .filter(|(.., operations)| *operations > 0.0)
        .map(|(start, end, operations)| operations / end.saturating_sub(*start).max(1) as f64)
        .sum()
}

/// A tensor of so many tiles of 1 KiB, in so many dimensions.
fn map(
    driver: &Driver,
    data: &DeviceBuffer<u32>,
    dimensions: usize,
    tiles: u64,
) -> Result<Vec<u64>> {
    let tile = TILES[dimensions - 1];
    let mut size: Vec<u64> = tile.iter().copied().map(u64::from).collect();
    size[dimensions - 1] *= tiles;
    let builder = TensorMapBuilder::tiled(DataType::U32, data.as_device_ptr(), &size, tile);
    Ok(builder.encode(driver)?.0.to_vec())
}

/// A tensor of so many images of 16 pixels of 64 bytes, in so many dimensions; an image is a column of the copy.
fn im2col_map(
    driver: &Driver,
    data: &DeviceBuffer<u32>,
    dimensions: usize,
    images: u64,
) -> Result<Vec<u64>> {
    let size = match dimensions {
        3 => vec![16, 16, images],
        4 => vec![16, 4, 4, images],
        _ => vec![16, 4, 2, 2, images],
    };
    let corner = vec![0; dimensions - 2];
    let address = data.as_device_ptr();
    let builder =
        TensorMapBuilder::im2col(DataType::U32, address, &size, (&corner, &corner), 16, 16);
    Ok(builder.encode(driver)?.0.to_vec())
}

/// The place of the tensor map for so many coordinates among all.
pub fn map_of(coordinates: usize, im2col: bool) -> usize {
    if im2col {
        coordinates + 2
    } else {
        coordinates - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_each_multiprocessor_summed() {
        // Two warps on multiprocessor 7 from 100 to 300, one on 9 from 0 to 100, one that did nothing.
        let records = [
            [100, 250, 0, 7],
            [150, 300, 0, 7],
            [0, 100, 0, 9],
            [0, 0, 0, 9],
        ]
        .concat();
        assert_eq!(rate(&records, 100.0), 200.0 / 200.0 + 1.0);
    }
}
