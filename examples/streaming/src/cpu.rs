//! Small arrays on the CPU, which executes the kernels' PTX and checks every barrier and access.

use anyhow::{Context, Result, ensure};
use cuda_ptx_host::exec::{Buffer, Grid, Memory, Options, Program};

use crate::data::{self, Operation};
use crate::shapes::Shape;

const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));
/// Tiles of a batch and a half.
const SHAPE: Shape = Shape { tile_bytes: 3072, warps: 2, blocks: 2 };
/// Tiles for every warp to go around its ring, and one that is not full.
const BYTES: usize = 4 * 6 * 3072 + 528;
pub const SCHEDULES: u64 = 8;

/// Executes every operation under so many schedules.
pub fn run(schedules: u64) -> Result<()> {
    let program = Program::parse(PTX)?;
    for operation in Operation::ALL {
        for schedule in 0..schedules {
            execute(&program, operation, schedule)
                .with_context(|| format!("{}, schedule {schedule}", operation.kernel()))?;
        }
        println!("{}: {BYTES} bytes, right under {schedules} schedules", operation.kernel());
    }
    Ok(())
}

fn execute(program: &Program, operation: Operation, seed: u64) -> Result<()> {
    let mut words = vec![0; BYTES / 4];
    data::input(operation.element(), 0, &mut words);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut memory = Memory::new();
    let input = memory.upload(&bytes);
    let output = memory.uninitialised(BYTES);
    let partials = memory.uninitialised(BYTES);

    let counter = memory.upload(&[0; 4]);

    let address = |buffer: Buffer| buffer.address().to_le_bytes().to_vec();
    let mut arguments = vec![address(output)];
    if let Operation::Sum(_) = operation {
        arguments.extend([partials, counter].map(address));
    }
    arguments.extend([address(input), (BYTES as u64).to_le_bytes().to_vec()]);
    arguments.push(SHAPE.tile_bytes.to_le_bytes().to_vec());
    if !matches!(operation, Operation::Sum(_)) {
        arguments.push(address(counter));
    }
    if let Operation::Scale(_) = operation {
        arguments.push(data::FACTOR.to_le_bytes().to_vec());
    }
    let mut grid = Grid::new([SHAPE.blocks, 1, 1], [32 * SHAPE.warps, 1, 1]);
    grid.shared_bytes = SHAPE.shared_bytes();
    let options = Options { seed, ..Options::default() };
    program.run(operation.kernel(), &grid, &arguments, &mut memory, &options)?;

    ensure!(memory.download(counter) == [0; 4], "the counter is not 0 again");
    let found = memory.download(output);
    if let Operation::Sum(element) = operation {
        let found = f32::from_le_bytes(found[..4].try_into()?);
        return check_sum(f64::from(found), data::sum(element, BYTES as u64 / 4));
    }
    let mut words: Vec<u32> =
        found.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    let wrong = data::wrong(operation, 0, &mut words);
    ensure!(wrong == 0, "{wrong} words of {} are wrong", words.len());
    Ok(())
}

/// Sums in f32, of numbers of one sign, lose no more than this however they are ordered.
pub fn check_sum(found: f64, expected: f64) -> Result<()> {
    let error = (found - expected).abs() / expected;
    ensure!(error < 1e-5, "expected a sum of {expected}, found {found}: relative error {error:.1e}");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_kernel_streams_on_the_cpu() {
        super::run(2).unwrap();
    }
}
