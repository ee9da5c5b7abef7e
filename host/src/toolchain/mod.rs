//! Finds the tools that build kernels, and installs what is missing.
//!
//! [`device`] answers with a rustc that carries its sources and with LLVM tools of a fitting version, [`cuda`] with
//! nvcc, ptxas, the disassemblers and the CCCL headers. Both look first, install second, and otherwise end in one
//! [`StepError`] that names the step, the cause and the command that would fix it. A found tool costs a few file
//! look-ups and one or two `--version` calls, once per process.
//!
//! | environment variable | meaning |
//! |---|---|
//! | `CUDA_PTX_ROOT` | the checkout, when the program runs elsewhere than where it was built |
//! | `CUDA_PTX_CUDA_ROOT` | a CUDA toolkit to use as it is |
//! | `CUDA_PTX_RUSTC` | a rustc to use for device code |
//! | `CUDA_PTX_LLVM_BIN` | the folder with `llvm-link`, `opt` and `llc` |
//!
//! The versions that are installed are those of `host/toolchain.toml`.

mod cuda;
mod debian;
mod device;
mod error;
mod llvm;
mod lock;
mod machine;
mod pinned;
mod process;
mod progress;
mod report;
mod version;
mod wheels;

#[cfg(test)]
mod fake;

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Result;

pub use cuda::{CudaSet, CudaTools};
pub use device::DeviceToolchain;
pub use error::StepError;
pub use llvm::LlvmTools;
pub use report::{Component, Origin, SetupReport};

use machine::Machine;

/// The device toolchain: found, else installed.
pub fn device() -> Result<DeviceToolchain> {
    static FOUND: Mutex<Option<DeviceToolchain>> = Mutex::new(None);
    once(&FOUND, || device::find_or_install(&Machine::this()))
}

/// The LLVM tools alone, for a link stage that rustc runs: those that `CUDA_PTX_LLVM_BIN` names, else those of
/// [`device`].
pub fn llvm() -> Result<LlvmTools> {
    match llvm::from_environment(&Machine::this())? {
        Some(llvm) => Ok(llvm.tools),
        None => Ok(device()?.llvm),
    }
}

/// The CUDA tools that assemble every target: [`CudaSet::Assembler`].
pub fn cuda() -> Result<CudaTools> {
    cuda_version(CudaSet::Assembler)
}

/// The CUDA tools of one pinned set: found, else installed.
pub fn cuda_version(set: CudaSet) -> Result<CudaTools> {
    static ASSEMBLER: Mutex<Option<CudaTools>> = Mutex::new(None);
    static DRIVER_13_0: Mutex<Option<CudaTools>> = Mutex::new(None);
    let found = match set {
        CudaSet::Assembler => &ASSEMBLER,
        CudaSet::Driver13_0 => &DRIVER_13_0,
    };
    once(found, || cuda::find_or_install(&Machine::this(), set))
}

/// Sets up what is missing and says what is used and where it came from.
pub fn setup_report() -> Result<SetupReport> {
    Ok(SetupReport::new(&device()?, &cuda()?))
}

/// The root of the checkout: `CUDA_PTX_ROOT`, else where this package was built.
pub fn workspace_root() -> PathBuf {
    match env::var_os("CUDA_PTX_ROOT") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("the host package lies in the workspace root")
            .to_path_buf(),
    }
}

/// Cargo's target folder: `CARGO_TARGET_DIR`, else `target` in the [`workspace_root`].
pub fn target_dir() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) if !dir.is_empty() => {
            std::path::absolute(&dir).unwrap_or_else(|_| PathBuf::from(dir))
        }
        _ => workspace_root().join("target"),
    }
}

/// Keeps the first success; a failure is tried again by the next call.
fn once<T: Clone>(found: &Mutex<Option<T>>, find: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut found = found
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if found.is_none() {
        *found = Some(find()?);
    }
    Ok(found.clone().expect("set above"))
}
