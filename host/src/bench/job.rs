//! Launches the kernels of some forms in a child process, Rust and C++ in turn.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use cust::memory::DeviceBuffer;
use serde::{Deserialize, Serialize};

use super::images::{Form, Images};
use super::setup::{Actor, Chain, Link};
use super::situations::{MAPS, Point, SITUATIONS, Situation};
use super::source::link_name;
use super::statistics::{Line, median, median_interval};
use crate::driver::{Arguments, DataType, Driver, Function, Launch, Module, TensorMapBuilder};

/// Lengths of the chains.
pub const LENGTHS: [u32; 4] = [64, 128, 192, 256];
/// Pairs of launches, one in each language, that a median is taken of.
pub const PAIRS: usize = 15;
/// Pairs before the first that counts.
const WARM_UP: usize = 2;
const LAUNCHES: usize = 2 * (WARM_UP + PAIRS);
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
/// What a warp records: start, end, sink, multiprocessor.
const RECORD: usize = 4;

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

/// Cycles of chains of one warp.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// Cycles per step, the cycles that reading the clock takes, and how straight the line is.
    pub fit: [Line; 2],
    /// The median of Rust's slope over C++'s, pair by pair.
    pub ratio: f64,
    /// Its interval of 95 %.
    pub ratio_interval: [f64; 2],
    /// For each length the cycles of each pair.
    pub cycles: Vec<Vec<[u64; 2]>>,
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
        let modules = load(&driver, &Images::in_folder(&self.folder).cubins())?;
        let mut bench = Bench::new(&driver)?;
        let before = bench.clock_mhz(&modules)?;
        let mut results = File::options()
            .append(true)
            .create(true)
            .open(&self.results)?;
        for form in &self.forms {
            let measured = bench
                .form(form, &modules, self.throughput)
                .with_context(|| form.form.clone())?;
            let line = serde_json::to_string(&measured)? + "\n";
            results.write_all(line.as_bytes())?;
        }
        Ok([before, bench.clock_mhz(&modules)?])
    }
}

/// The modules of both languages.
fn load<'d>(driver: &'d Driver, cubins: &[PathBuf; 2]) -> Result<[Module<'d>; 2]> {
    let load = |path: &PathBuf| -> Result<Module<'d>> {
        let image =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(driver.load(&image)?)
    };
    Ok([load(&cubins[0])?, load(&cubins[1])?])
}

/// Not zero, and no two neighbours alike.
fn words(count: usize) -> Vec<u32> {
    (0..count as u32)
        .map(|index| index.wrapping_mul(0x9e37_79b9) >> 8 | 1)
        .collect()
}

/// A situation to time at all its points.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SituationJob {
    /// Where the images lie.
    pub folder: PathBuf,
    /// The kernel.
    pub kernel: String,
}

/// What a [`SituationJob`] found at a point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SituationPoint {
    /// The launch.
    #[serde(flatten)]
    pub point: Point,
    /// Cycles of an operation in Rust and in C++.
    pub operation: [f64; 2],
    /// The steps: the lines behind `operation`, and Rust against C++.
    #[serde(flatten)]
    pub steps: Latency,
    /// The steps once more, after everything else, in another process.
    pub again: Option<Latency>,
}

/// Global memory that the situations use: more than they wander through, in bytes.
const SITUATION_DATA: usize = 40 << 20;
/// The same where each launch reads memory that none has read: a page for each step, and then some.
const FRESH_DATA: usize = 320 << 20;
/// Steps of the pass that warms up, as in `timed!` of `ptx/bench`.
const WARM_UP_STEPS: u32 = 8;
/// The elements that a tensor of the situations has in its last dimension.
const TENSOR_EXTENT: u64 = 65_536 + 256;

impl SituationJob {
    /// Times the situation at its points.
    ///
    /// # Errors
    /// If there is no GPU, no such situation, or a launch fails.
    pub fn run(&self) -> Result<Vec<SituationPoint>> {
        let situation = SITUATIONS
            .iter()
            .find(|situation| situation.kernel == self.kernel)
            .with_context(|| format!("there is no situation {}", self.kernel))?;
        let driver = Driver::open()?;
        let modules = load(&driver, &Images::in_folder(&self.folder).situation_cubins())?;
        let functions = [
            modules[0].function(&self.kernel)?,
            modules[1].function(&self.kernel)?,
        ];
        let points = situation.points();
        let fresh = points.iter().any(|point| point.fresh);
        let bytes = if fresh { FRESH_DATA } else { SITUATION_DATA };
        let data = driver.upload(&words(bytes / 4))?;
        let maps = driver.upload(&situation_maps(&driver, &data)?)?;
        let place = Place {
            driver: &driver,
            functions: &functions,
            data: &data,
            maps: &maps,
        };
        points
            .into_iter()
            .map(|point| place.time(situation, point))
            .collect()
    }
}

/// The tensor maps of the situations.
fn situation_maps(driver: &Driver, data: &DeviceBuffer<u32>) -> Result<Vec<u64>> {
    let mut maps = Vec::new();
    for map in MAPS {
        let mut size: Vec<u64> = map.tile.iter().copied().map(u64::from).collect();
        *size.last_mut().expect("a tile has a dimension") = TENSOR_EXTENT;
        let map = TensorMapBuilder::tiled(DataType::U32, data.as_device_ptr(), &size, map.tile)
            .swizzle(map.swizzle)
            .encode(driver)?;
        maps.extend(map.0);
    }
    Ok(maps)
}

/// What the points of a situation share.
struct Place<'a> {
    driver: &'a Driver,
    functions: &'a [Function<'a>; 2],
    data: &'a DeviceBuffer<u32>,
    maps: &'a DeviceBuffer<u64>,
}

impl Place<'_> {
    fn time(&self, situation: &Situation, point: Point) -> Result<SituationPoint> {
        let clusters = if point.chip {
            self.driver.sm_count()?
        } else {
            1
        };
        let blocks = clusters * point.cluster;
        let mut launch = Launch::new(blocks, point.threads).shared(1024 + point.buffer);
        if point.cluster > 1 {
            launch = launch.cluster([point.cluster, 1, 1]);
        }
        let (unit, passes) = match point.first {
            true => (1, 1),
            false => (situation.steps, 2),
        };
        let lengths = [1, 2, 3, 4].map(|factor| factor * unit);
        // What a launch reads lies behind what the one before has read, or between.
        let fresh = match point.fresh {
            true if point.q > point.p => u64::from(point.p),
            true => u64::from(point.p * (WARM_UP_STEPS + lengths[3])),
            false => 0,
        };
        let block = point.threads.div_ceil(32) as usize * RECORD;
        let size = block * blocks as usize;
        let (mut cycles, mut launches) = (Vec::new(), 0);
        for steps in lengths {
            let arguments = |out, turn: usize| {
                let skipped = (launches + turn) as u64 * fresh;
                Arguments::new()
                    .u64(out)
                    .u64(self.data.as_device_ptr().as_raw() + skipped)
                    .pointer(self.maps)
                    .u32(steps)
                    .u32(passes)
                    .u32(point.p)
                    .u32(point.q)
            };
            let records = self.driver.zeroed::<u64>(LAUNCHES * size)?;
            // SAFETY: these are the kernel's arguments, and the buffers are as large as it expects.
            unsafe {
                launch_in_turn(
                    self.driver,
                    self.functions,
                    &launch,
                    &records,
                    size,
                    arguments,
                )?;
            }
            launches += LAUNCHES;
            cycles.push(in_pairs(
                &self.driver.download(&records)?,
                size,
                |records| mean_span(records, block, point.cluster as usize),
            )?);
        }
        let steps = Latency::new(cycles, &lengths);
        let operation = [0, 1].map(|side| match point.first {
            true => steps.median_of(0, side),
            false => steps.fit[side].slope / f64::from(situation.operations),
        });
        Ok(SituationPoint {
            point,
            operation,
            steps,
            again: None,
        })
    }
}

/// The mean of the first blocks of all clusters; `block` are the words that one records.
fn mean_span(records: &[u64], block: usize, cluster: usize) -> u64 {
    let spans = records.chunks(block).step_by(cluster).map(span);
    spans.clone().sum::<u64>() / spans.len() as u64
}

/// Cycles from the first start to the last end of the warps of a block.
fn span(records: &[u64]) -> u64 {
    let busy = || records.chunks(RECORD).filter(|record| record[1] != 0);
    let start = busy().map(|record| record[0]).min().unwrap_or(0);
    busy().map(|record| record[1]).max().unwrap_or(0) - start
}

/// What all launches share.
struct Bench<'d> {
    driver: &'d Driver,
    multiprocessors: u32,
    data: DeviceBuffer<u32>,
    maps: DeviceBuffer<u64>,
    /// Records of all launches of a measurement, by the number of warps.
    records: HashMap<usize, DeviceBuffer<u64>>,
}

/// Blocks, warps of each, and steps of each thread.
#[derive(Clone, Copy, Debug)]
struct Shape {
    blocks: u32,
    warps: u32,
    steps: u32,
}

impl<'d> Bench<'d> {
    fn new(driver: &'d Driver) -> Result<Self> {
        let multiprocessors = driver.sm_count()?;
        // Two blocks of 32 warps on each, and one for clusters that do not divide.
        let warps = (2 * multiprocessors as usize + 2) * 32;
        let places = warps + LAUNCHES / 2;
        let data = driver.upload(&words(places * SLAB / 4))?;
        let maps: Vec<u64> = (1..=5)
            .map(|dimensions| map(driver, &data, dimensions, places as u64))
            .collect::<Result<Vec<_>>>()?
            .concat();
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
        let mut cycles = Vec::new();
        for steps in LENGTHS {
            let shape = Shape {
                blocks: cluster_blocks(form),
                warps: form.threads / 32,
                steps,
            };
            let of_first = |records: &[u64]| records[1].wrapping_sub(records[0]);
            cycles.push(self.pairs(form, functions, shape, of_first)?);
        }
        Ok(Latency::new(cycles, &LENGTHS))
    }

    fn throughput(&mut self, form: &Form, functions: &[Function; 2]) -> Result<Vec<Throughput>> {
        let step = cluster_blocks(form);
        let all = self.multiprocessors / step * step;
        let mut shapes = Vec::new();
        for blocks in [step, all] {
            let fits = |warps: &u32| form.threads == 32 || warps * 32 == form.threads;
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
            Chain::Value | Chain::Link(_) => 256,
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
                let rates = self.pairs(form, functions, shape, |records| {
                    rate(records, operations) as f32
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
        read: impl Fn(&[u64]) -> T,
    ) -> Result<Vec<[T; 2]>> {
        let warps = (shape.blocks * shape.warps) as usize;
        let size = warps * RECORD;
        if !self.records.contains_key(&warps) {
            let buffer = self.driver.zeroed::<u64>(LAUNCHES * size)?;
            self.records.insert(warps, buffer);
        }
        let records = &self.records[&warps];
        let mut launch =
            Launch::new(shape.blocks, shape.warps * 32).shared(2048 + shape.warps * 2048);
        if form.cluster {
            launch = launch.cluster([2, 1, 1]);
        }
        // Each pair has another place in memory: what a copy costs depends on the slice of the L2 cache.
        let arguments =
            |out, turn: usize| self.arguments(out, shape.steps / form.unroll, turn as u32 / 2);
        // SAFETY: these are the kernel's arguments, and it stays in its warps' parts of the buffers.
        unsafe { launch_in_turn(self.driver, functions, &launch, records, size, arguments)? };
        in_pairs(&self.driver.download(records)?, size, read)
    }

    fn arguments(&self, out: u64, trips: u32, place: u32) -> Arguments {
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
    }

    /// The cycles of a chain that takes milliseconds, over its time.
    fn clock_mhz(&mut self, modules: &[Module; 2]) -> Result<f64> {
        let function = modules[0].function(link_name(Link::Shared))?;
        let record = self.driver.zeroed::<u64>(RECORD)?;
        let arguments = self.arguments(record.as_device_ptr().as_raw(), 20_000, 0);
        let launch = Launch::new(1, 32).shared(4096);
        // SAFETY: as for every form.
        let milliseconds = unsafe { function.time_launch(&launch, &arguments)? };
        let record = self.driver.download(&record)?;
        Ok((record[1] - record[0]) as f64 / f64::from(milliseconds) / 1e3)
    }
}

/// Launches both kernels in turn, the first of each pair in turn too; each launch has a part of `records` of
/// `size` words.
///
/// # Safety
/// As for [`Function::launch`], with the arguments that `arguments` makes of the address of the part and the number
/// of the launch.
unsafe fn launch_in_turn(
    driver: &Driver,
    functions: &[Function; 2],
    launch: &Launch,
    records: &DeviceBuffer<u64>,
    size: usize,
    arguments: impl Fn(u64, usize) -> Arguments,
) -> Result<()> {
    for turn in 0..LAUNCHES {
        let out = records.as_device_ptr().as_raw() + (turn * size * 8) as u64;
        // SAFETY: the caller's promise.
        unsafe { functions[side_of(turn)].launch(launch, &arguments(out, turn))? };
    }
    Ok(driver.synchronize()?)
}

/// Reads the records of each launch that counts.
fn in_pairs<T: Copy + Default>(
    records: &[u64],
    size: usize,
    read: impl Fn(&[u64]) -> T,
) -> Result<Vec<[T; 2]>> {
    let mut pairs = vec![[T::default(); 2]; PAIRS];
    for (turn, records) in records.chunks(size).enumerate().skip(2 * WARM_UP) {
        ensure!(records[1] > records[0], "the first warp recorded no time");
        pairs[turn / 2 - WARM_UP][side_of(turn)] = read(records);
    }
    Ok(pairs)
}

/// Rust and C++ in turn, and who is first in turn too.
fn side_of(turn: usize) -> usize {
    (turn + turn / 2) % 2
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

impl Latency {
    /// The median of the cycles of one length.
    fn median_of(&self, length: usize, side: usize) -> f64 {
        let cycles = self.cycles[length].iter().map(|pair| pair[side] as f64);
        median(&Vec::from_iter(cycles))
    }

    fn new(cycles: Vec<Vec<[u64; 2]>>, lengths: &[u32]) -> Self {
        let line = |y: &dyn Fn(usize) -> f64| {
            let points = lengths
                .iter()
                .enumerate()
                .map(|(i, n)| (f64::from(*n), y(i)));
            Line::through(&points.collect::<Vec<_>>())
        };
        let fit = [0, 1].map(|side| {
            line(&|length| {
                let values: Vec<f64> = cycles[length]
                    .iter()
                    .map(|pair| pair[side] as f64)
                    .collect();
                median(&values)
            })
        });
        let ratios: Vec<f64> = (0..PAIRS)
            .map(|pair| {
                let slope = |side: usize| line(&|length| cycles[length][pair][side] as f64).slope;
                slope(0) / slope(1)
            })
            .collect();
        Self {
            fit,
            ratio: median(&ratios),
            ratio_interval: median_interval(&ratios),
            cycles,
        }
    }
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

    #[test]
    fn each_side_is_first_in_every_other_pair() {
        let sides: Vec<_> = (0..8).map(side_of).collect();
        assert_eq!(sides, [0, 1, 1, 0, 0, 1, 1, 0]);
    }

    #[test]
    fn a_chain_that_costs_twice_as_much_has_twice_the_slope() {
        let cycles = LENGTHS.map(|n| vec![[u64::from(10 * n + 7), u64::from(5 * n + 3)]; PAIRS]);
        let latency = Latency::new(cycles.to_vec(), &LENGTHS);
        assert!((latency.fit[0].slope - 10.0).abs() < 1e-9);
        assert!((latency.fit[1].intercept - 3.0).abs() < 1e-9);
        assert!((latency.ratio - 2.0).abs() < 1e-9);
    }
}
