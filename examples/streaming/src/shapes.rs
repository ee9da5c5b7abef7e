//! How an array is shared among the warps: one shape for both languages, found by trying.

use std::fmt;

use anyhow::Result;
use measure::Quartiles;

/// How the array is shared among the warps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub tile_bytes: u32,
    pub warps: u32,
    pub blocks: u32,
}

impl Shape {
    /// The dynamic shared memory of a block: for every warp four tiles, and for each of them two barriers and
    /// its number.
    pub fn shared_bytes(self) -> u32 {
        self.warps * 4 * (self.tile_bytes + 20)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { tile_bytes, warps, blocks } = self;
        write!(f, "{blocks} blocks of {warps} warps, tiles of {tile_bytes} bytes")
    }
}

/// KiB of a tile.
const TILES: [u32; 13] = [2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32];
/// Warps of a block: no more than the kernels' launch bounds allow.
const WARPS: [u32; 10] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16];
/// KiB of all rings of a multiprocessor: less hides no latency, and more there is not.
const RINGS: std::ops::RangeInclusive<u32> = 32..=224;
/// Rounds in which all are tried, and the best again.
const ROUNDS: [usize; 2] = [3, 21];
const FINALISTS: usize = 8;

/// All shapes, with one and two blocks for every multiprocessor.
fn all(multiprocessors: u32) -> impl Iterator<Item = Shape> {
    let blocks = [1, 2].into_iter();
    let rings = blocks.flat_map(|blocks| WARPS.into_iter().map(move |warps| [blocks, warps]));
    let shapes = rings.flat_map(|[blocks, warps]| TILES.into_iter().map(move |kib| [blocks, warps, kib]));
    shapes.filter(|[blocks, warps, kib]| RINGS.contains(&(4 * blocks * warps * kib))).map(
        move |[blocks, warps, kib]| Shape { tile_bytes: kib << 10, warps, blocks: blocks * multiprocessors },
    )
}

/// A shape, and the median times of both languages.
type Trial = (Shape, [f64; 2]);

/// What came of trying all shapes.
pub struct Tried {
    all: Vec<Trial>,
    /// The best first.
    finalists: Vec<Trial>,
}

/// Tries all shapes, and the best of them in more rounds; `time` gives the milliseconds of a shape in
/// language 0 or 1. Best is the least sum of both languages' medians.
pub fn tried(multiprocessors: u32, mut time: impl FnMut(Shape, usize) -> Result<f64>) -> Result<Tried> {
    let all = trials(all(multiprocessors).collect(), ROUNDS[0], &mut time)?;
    let finalists = all.iter().take(FINALISTS).map(|trial| trial.0).collect();
    Ok(Tried { all, finalists: trials(finalists, ROUNDS[1], &mut time)? })
}

/// Times every shape in both languages once in every round; the best first.
fn trials(
    shapes: Vec<Shape>,
    rounds: usize,
    time: &mut impl FnMut(Shape, usize) -> Result<f64>,
) -> Result<Vec<Trial>> {
    let mut times = vec![[const { Vec::new() }; 2]; shapes.len()];
    for round in 0..rounds {
        for (shape, times) in shapes.iter().zip(&mut times) {
            for turn in 0..2 {
                let language = (round + turn) % 2;
                times[language].push(time(*shape, language)?);
            }
        }
    }
    let medians = times.iter().map(|times| [0, 1].map(|language| Quartiles::of(&times[language]).median));
    let mut trials: Vec<Trial> = shapes.into_iter().zip(medians).collect();
    trials.sort_by(|(_, a), (_, b)| (a[0] + a[1]).total_cmp(&(b[0] + b[1])));
    Ok(trials)
}

impl Tried {
    pub fn best(&self) -> Shape {
        self.finalists[0].0
    }

    /// What was chosen, and what else was close.
    pub fn summary(&self) -> String {
        let finalists = self.finalists.iter().map(|(Shape { tile_bytes, warps, blocks }, [rust, cpp])| {
            format!("{blocks} x {warps} x {tile_bytes}: {rust:.4} {cpp:.4}")
        });
        let finalists: Vec<String> = finalists.collect();
        format!(
            "{}, of {} shapes; finalists (blocks x warps x bytes: ms of Rust and C++): {}",
            self.best(),
            self.all.len(),
            finalists.join(", ")
        )
    }

    /// A line for every shape, the finalists first.
    pub fn rows(&self) -> impl Iterator<Item = String> {
        let trials = self.finalists.iter().chain(&self.all);
        trials.map(|(Shape { tile_bytes, warps, blocks }, [rust, cpp])| {
            format!("{blocks}\t{warps}\t{tile_bytes}\t{rust:.5}\t{cpp:.5}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_that_is_best_for_both_wins() {
        // Best in Rust is half a millisecond worse in C++.
        let time = |shape: Shape, language| {
            let far = f64::from(shape.tile_bytes.abs_diff(8 << 10) + shape.warps + shape.blocks);
            Ok(far + if language == 1 && shape.warps == 1 { 2.5 } else { 0.0 })
        };
        let tried = tried(132, time).unwrap();
        assert_eq!(tried.best(), Shape { tile_bytes: 8 << 10, warps: 2, blocks: 132 });
        assert_eq!(tried.finalists.len(), FINALISTS);
        assert_eq!(tried.rows().count(), FINALISTS + tried.all.len());
    }

    #[test]
    fn every_shape_fits_a_multiprocessor() {
        for shape in all(1) {
            // One KiB of each block is the system's.
            assert!(shape.blocks * (shape.shared_bytes() + 1024) <= 228 << 10, "{shape}");
            assert!(shape.blocks * shape.warps * 32 <= 2048, "{shape}");
        }
    }
}
