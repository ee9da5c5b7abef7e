//! The runnable kernels of `ptx/corpus` on the GPU: those that a barrier in the wrong place would
//! hang or spoil.
//!
//! A [`Job`] runs all of them in one image. What each must leave in memory is computed here from its
//! source's meaning: all threads of a block execute an operation together. [`Executable`] runs those
//! that need no instruction beyond the [executor's](crate::exec) on the CPU.

mod cases;
mod cpu;
mod model;
pub mod sanitize;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};

use crate::build::{self, Arch, KernelCrate};
use crate::child::{self, ChildJob};
use crate::driver::isolate::ChildFailure;
use crate::driver::{Arguments, Driver, Launch};
use crate::guide::device::{Device, Kernel};
use crate::guide::{self, check};
use crate::toolchain;

pub use cases::{Case, Warps, cases};
pub use cpu::Executable;

/// The optimisation levels that there are images of; 0 is the debug profile.
pub const LEVELS: [char; 6] = ['0', '1', '2', '3', 's', 'z'];

/// Enough for all kernels of an image.
const LIMIT: Duration = Duration::from_secs(60);

/// Enough for one kernel.
const LIMIT_OF_ONE: Duration = Duration::from_secs(20);

/// Builds the cubins of all levels into `folder`.
///
/// # Errors
/// If a tool is missing or the crate does not build.
pub fn build(arch: Arch, folder: &Path) -> Result<()> {
    let manifest = toolchain::workspace_root().join("ptx/corpus/Cargo.toml");
    for level in LEVELS {
        let kernels = KernelCrate::new(&manifest, arch)
            .opt_level(level)
            .profile(if level == '0' { "dev" } else { "release" });
        build::build(&kernels, &image(folder, level))?;
    }
    Ok(())
}

/// Where [`build()`] puts the cubin of a level.
#[must_use]
pub fn image(folder: &Path, level: char) -> PathBuf {
    folder.join(format!("corpus-{level}.cubin"))
}

/// Kernels of one image.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// A cubin of the corpus.
    pub image: PathBuf,
    /// These kernels instead of all.
    pub kernels: Option<Vec<String>>,
    /// Where the warps are.
    pub warps: Warps,
}

impl Job {
    /// Runs the kernels in this process and gives their number.
    ///
    /// # Errors
    /// If there is no GPU, a launch fails, or a result is wrong; the message has the kernel's name.
    pub fn run(&self) -> Result<usize> {
        let driver = Driver::open()?;
        let module = driver.load(&guide::read_image(&self.image)?)?;
        let mut cases = cases(self.warps);
        if let Some(kernels) = &self.kernels {
            cases.retain(|case| kernels.contains(&case.kernel));
        }
        let device = Device::Gpu(&driver);
        for case in &cases {
            let launch = || run(&device, &Kernel::Gpu(module.function(&case.kernel)?), case);
            launch().with_context(|| case.kernel.clone())?;
        }
        Ok(cases.len())
    }
}

fn run(device: &Device, kernel: &Kernel, case: &Case) -> Result<()> {
    let data = check::guarded(device, &case.data)?;
    let notes = check::guarded(device, &case.notes)?;
    let arguments = Arguments::new()
        .u64(data.address())
        .u64(notes.address())
        .u32(case.n);
    let block = u32::try_from(case.data.len())?;
    // SAFETY: the kernels of the corpus take two pointers and a number; the data have a word for
    // each thread of a block, and the notes a row for each that a kernel writes.
    unsafe { device.launch(kernel, &Launch::new(case.blocks, block), &arguments)? };
    compare(&case.data_after, &device.download(&data)?).context("the data")?;
    compare(&case.notes_after, &device.download(&notes)?).context("the notes")
}

/// Compares memory with what is known of it.
fn compare(expected: &[Option<u32>], found: &[u32]) -> Result<()> {
    let known = expected.iter().zip(found);
    let expected: Vec<u32> = known
        .map(|(known, found)| known.unwrap_or(*found))
        .collect();
    check::check(&expected, found)
}

/// Runs all kernels of an image in a child process; if it hangs, each alone, to name the one.
///
/// # Errors
/// If a kernel hangs, fails or is wrong.
pub fn run_in_child(image: &Path) -> Result<usize> {
    let job = |kernels: Option<Vec<String>>| {
        ChildJob::Corpus(Job {
            image: image.to_path_buf(),
            kernels,
            warps: Warps::Apart,
        })
    };
    let failure = match child::run::<usize>(&job(None), LIMIT) {
        Ok(count) => return Ok(count),
        Err(failure) => failure,
    };
    if matches!(failure, ChildFailure::Hung { .. }) {
        for case in cases(Warps::Apart) {
            child::run::<usize>(&job(Some(vec![case.kernel.clone()])), LIMIT_OF_ONE)
                .with_context(|| case.kernel)?;
        }
    }
    Err(anyhow!(failure))
}
