//! Small products on the CPU, which executes the kernels' PTX and checks every barrier, register and access.

use anyhow::{Context, Result, ensure};
use cuda_ptx_host::exec::{
    Buffer, DataType, Grid, Interleave, Memory, Options, OutOfBounds, Program, Swizzle, Tensor,
};

use crate::matrix;
use crate::{KERNELS, Kernel, SHARED_BYTES, THREADS};

const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));
/// Two tiles for one cluster, neither of them full; together they have slabs to go around the ring, some not full.
const M: u64 = 200;
const N: u64 = 296;
const SLABS: u64 = 2;
pub const SCHEDULES: u64 = 4;

/// Executes the kernels, or the one of this name, under so many schedules.
pub fn run(kernel: Option<&str>, size: Option<[u64; 3]>, schedules: u64) -> Result<()> {
    let program = Program::parse(PTX)?;
    for kernel in KERNELS.into_iter().filter(|it| kernel.is_none_or(|name| name == it.0)) {
        let slab = 128 / kernel.1.bytes() as u64;
        let size = size.unwrap_or([M, N, SLABS * slab + slab / 2]);
        for schedule in 0..schedules {
            execute(&program, kernel, size, schedule)
                .with_context(|| format!("{}, {size:?}, schedule {schedule}", kernel.0))?;
        }
        println!("{}: {size:?}, right under {schedules} schedules", kernel.0);
    }
    Ok(())
}

fn execute(
    program: &Program,
    (name, input, output, tolerance): Kernel,
    size: [u64; 3],
    seed: u64,
) -> Result<()> {
    let [m, n, k] = size;
    let [a, b] = [(m, 1 << 40), (n, 2 << 40)].map(|(rows, seed)| input.random((rows * k) as usize, seed));
    let mut memory = Memory::new();
    let buffers =
        [memory.upload(&a), memory.upload(&b), memory.uninitialised((m * n) as usize * output.bytes())];
    let maps = [
        map(input.data_type(), buffers[0], [k, m], 128),
        map(input.data_type(), buffers[1], [k, n], 128),
        map(output.data_type(), buffers[2], [n, m], 64),
    ];
    let numbers = [m as u32, n as u32, k as u32, 1].map(|number| number.to_le_bytes().to_vec());
    let arguments: Vec<Vec<u8>> = maps.into_iter().chain(numbers).collect();
    let mut grid = Grid::new([2, 1, 1], [THREADS, 1, 1]);
    grid.shared_bytes = SHARED_BYTES;
    program.run(name, &grid, &arguments, &mut memory, &Options { seed, ..Options::default() })?;

    let c = memory.download(buffers[2]);
    let [rows, columns, _] = size.map(|x| x as usize);
    let all: Vec<usize> = (0..rows).collect();
    let expected = matrix::rows(input, &a, &b, size, &all);
    // By column, as `expected` is.
    let found = (0..columns).flat_map(|column| (0..rows).map(move |row| row * columns + column));
    let error = matrix::relative_error(found.map(|index| output.number(c, index)).zip(expected));
    ensure!(
        error < tolerance,
        "relative norm of the error: expected less than {tolerance}, found {error:.2e}"
    );
    Ok(())
}

/// The map of a matrix that is copied in boxes of 128 bytes in so many rows.
fn map(data_type: DataType, buffer: Buffer, dims: [u64; 2], rows: u32) -> Vec<u8> {
    let tensor = Tensor {
        data_type,
        address: buffer.address(),
        dims: dims.to_vec(),
        strides: vec![dims[0] * data_type.bytes()],
        tile: vec![128 / data_type.bytes() as u32, rows],
        steps: vec![1, 1],
        interleave: Interleave::None,
        swizzle: Swizzle::Bytes128,
        out_of_bounds: OutOfBounds::Zero,
        columns: None,
    };
    tensor.encode().to_vec()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_kernel_multiplies_on_the_cpu() {
        super::run(None, None, 1).unwrap();
    }
}
