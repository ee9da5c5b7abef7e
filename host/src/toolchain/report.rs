//! What is used and where it came from, for `demo --json`.

use serde::{Deserialize, Serialize};

use super::cuda::CudaTools;
use super::device::DeviceToolchain;

/// Where a tool came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// It was on the machine.
    Installed,
    /// PyPI wheels that the project unpacked.
    Wheels,
    /// A Debian package.
    Debian,
    /// A rustup toolchain.
    Rustup,
    /// An environment variable names it.
    Environment,
}

/// The versions in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupReport {
    /// The compiler of device code.
    pub rustc: Component,
    /// The LLVM tools of the link stage.
    pub llvm: Component,
    /// The CUDA tools.
    pub cuda: Component,
    /// The C++ headers that the twins are compiled with.
    pub cccl: Component,
}

/// One tool's version and origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    /// As `13.5.37`.
    pub version: String,
    /// Where it came from.
    pub origin: Origin,
}

impl SetupReport {
    pub(super) fn new(device: &DeviceToolchain, cuda: &CudaTools) -> Self {
        let component = |version: &str, origin| Component {
            version: version.to_string(),
            origin,
        };
        Self {
            rustc: component(&device.rustc_version, device.rustc_origin),
            llvm: component(&device.llvm_version, device.llvm_origin),
            cuda: component(&cuda.version, cuda.origin),
            cccl: component(&cuda.cccl_version, cuda.origin),
        }
    }
}
