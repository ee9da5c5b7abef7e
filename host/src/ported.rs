//! The kernel of `ptx/ported` on the GPU, and the C++ that it was ported from.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::build::{self, Arch, CppTwin, KernelCrate};
use crate::driver::{Arguments, DataType, Driver, Launch, TensorMapBuilder};
use crate::guide::{self, check, random};
use crate::toolchain;

const CLUSTER_SIZE: u32 = 4;
const TILE_ROWS: u32 = 64;
const COLUMNS: u32 = 32;
/// What one copy moves: elements of a row, and rows.
const BOX: [u32; 2] = [COLUMNS, TILE_ROWS / CLUSTER_SIZE];

/// Builds the cubins of both languages into `folder`, as `ported-rust.cubin` and
/// `ported-cpp.cubin`.
///
/// # Errors
/// If a tool is missing or a side does not build.
pub fn build(arch: Arch, folder: &Path) -> Result<[PathBuf; 2]> {
    let source = toolchain::workspace_root().join("ptx/ported");
    let cubins = cubins(folder);
    build::build(
        &KernelCrate::new(source.join("Cargo.toml"), arch),
        &cubins[0],
    )?;
    CppTwin::new(source.join("src/transpose_multicast.cu"), arch).cubin(&cubins[1])?;
    Ok(cubins)
}

/// Where [`build()`] puts the cubins: Rust, C++.
#[must_use]
pub fn cubins(folder: &Path) -> [PathBuf; 2] {
    ["ported-rust.cubin", "ported-cpp.cubin"].map(|name| folder.join(name))
}

/// The transposition of matrices of several sizes by one image.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// A cubin with the kernel.
    pub image: PathBuf,
}

impl Job {
    /// Runs the kernel and checks every element; gives the number of launches.
    ///
    /// # Errors
    /// If there is no GPU, a launch fails, or an element is wrong.
    pub fn run(&self) -> Result<u32> {
        let driver = Driver::open()?;
        let module = driver.load(&guide::read_image(&self.image)?)?;
        let kernel = module.function("transpose_multicast")?;
        let mut launches = 0;
        for (tiles, block) in [(1, 32), (3, 128), (1000, 128), (5000, 1024)] {
            let rows = tiles * TILE_ROWS;
            let matrix = random::floats(u64::from(tiles), (rows * COLUMNS) as usize);
            let input = driver.upload(&matrix)?;
            let out = driver.upload(&check::poison::<f32>(matrix.len()))?;
            let dims = [u64::from(COLUMNS), u64::from(rows)];
            let map = TensorMapBuilder::tiled(DataType::F32, input.as_device_ptr(), &dims, &BOX)
                .encode(&driver)?;
            let arguments = Arguments::new().tensor_map(map).pointer(&out).u32(rows);
            // SAFETY: these are the kernel's parameters, and the grid has a cluster for each tile.
            unsafe { kernel.launch(&Launch::new(tiles * CLUSTER_SIZE, block), &arguments)? };
            check::check(&transposed(&matrix, rows as usize), &driver.download(&out)?)
                .with_context(|| format!("{rows} rows, blocks of {block} threads"))?;
            launches += 1;
        }
        Ok(launches)
    }
}

fn transposed(matrix: &[f32], rows: usize) -> Vec<f32> {
    let columns = matrix.len() / rows;
    (0..matrix.len())
        .map(|i| matrix[i % rows * columns + i / rows])
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_become_columns() {
        let matrix = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(
            super::transposed(&matrix, 3),
            [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]
        );
    }
}
