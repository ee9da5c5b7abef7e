//! Launches the kernel of a situation in a child process at all its points, Rust and C++ in turn.

use std::path::PathBuf;

use anyhow::{Context, Result};
use cust::memory::DeviceBuffer;
use serde::{Deserialize, Serialize};

use super::images::Images;
use super::job::{load, words};
use super::pairs::{self, Latency, RECORD, Statistic};
use super::situations::{MAPS, Point, SITUATIONS, Situation};
use crate::driver::{Arguments, DataType, Driver, Function, Launch, TensorMapBuilder};

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
    /// The operation once more, after everything else, in another process.
    pub again: Option<[f64; 2]>,
}

/// Global memory that the situations use: more than they wander through, in bytes.
const SITUATION_DATA: usize = 40 << 20;
/// The same where each launch reads memory that no other reads: 16 KiB for each step of each launch, or a page for each
/// step.
const FRESH_DATA: usize = 576 << 20;
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
        let mut data = driver.zeroed::<u32>(bytes / 4)?;
        driver.copy_to_device(&words(SITUATION_DATA / 4), &mut data)?;
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
        let launches = pairs::launches(point.pairs);
        let block = point.threads.div_ceil(32) as usize * RECORD;
        let size = block * blocks as usize;
        let mut cycles = Vec::new();
        for steps in lengths {
            if point.fresh {
                pairs::evict(self.driver)?;
            }
            let arguments = |out, turn: usize| {
                let skipped = turn as u64 * fresh;
                Arguments::new()
                    .u64(out)
                    .u64(self.data.as_device_ptr().as_raw() + skipped)
                    .pointer(self.maps)
                    .u32(steps)
                    .u32(passes)
                    .u32(point.p)
                    .u32(point.q)
            };
            let records = self.driver.zeroed::<u64>(launches * size)?;
            // SAFETY: these are the kernel's arguments, and the buffers are as large as it expects.
            unsafe {
                pairs::launch_in_turn(
                    self.driver,
                    self.functions,
                    &launch,
                    &records,
                    size,
                    arguments,
                )?;
            }
            cycles.push(pairs::in_pairs(
                &self.driver.download(&records)?,
                size,
                |records| mean_span(records, block, point.cluster as usize),
            )?);
        }
        let steps = Latency::new(Statistic::TrimmedMean, cycles, &lengths);
        Ok(SituationPoint {
            point,
            operation: operation(situation, &point, &steps),
            again: None,
            steps,
        })
    }
}

/// Cycles of an operation in Rust and in C++.
fn operation(situation: &Situation, point: &Point, steps: &Latency) -> [f64; 2] {
    [0, 1].map(|side| match point.first {
        true => steps.of_length(0, side),
        false => steps.fit[side].slope / f64::from(situation.operations),
    })
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
