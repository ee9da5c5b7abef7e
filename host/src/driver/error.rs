//! What can go wrong in the driver, in words: what was expected, what was found, what to do.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Version;

/// The oldest CUDA version whose driver serves: `cuTensorMapEncodeTiled` and PTX ISA 8.0 for sm_90.
pub const OLDEST_CUDA: Version = Version {
    major: 12,
    minor: 0,
};

/// Why [`Driver::open`](super::Driver::open) gave no driver. Each displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// libcuda.so.1 could not be loaded.
    NoDriver {
        /// The dynamic loader's words.
        reason: String,
    },
    /// There is a driver, but it shows no GPU.
    NoDevice {
        /// The newest CUDA version that the driver supports.
        cuda: Version,
    },
    /// The driver is older than [`OLDEST_CUDA`].
    TooOld {
        /// The newest CUDA version that the driver supports.
        found: Version,
        /// An entry point that it lacks, if that is how it showed.
        lacks: Option<&'static str>,
    },
    /// The driver is there, but a call to start it failed.
    Cuda(DriverError),
}

impl OpenError {
    /// Whether this machine simply has no GPU to run on, as opposed to one that does not work.
    pub fn is_absence(&self) -> bool {
        matches!(
            self,
            OpenError::NoDriver { .. } | OpenError::NoDevice { .. }
        )
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            OpenError::NoDriver { reason } => write!(
                f,
                "no NVIDIA driver: expected libcuda.so.1, found none ({reason}); \
                 install NVIDIA's driver or run on a machine that has one"
            ),
            OpenError::NoDevice { cuda } => write!(
                f,
                "no NVIDIA GPU: expected at least one, found a driver (CUDA {cuda}) without any; \
                 see what `nvidia-smi -L` lists and what CUDA_VISIBLE_DEVICES hides"
            ),
            OpenError::TooOld { found, lacks } => {
                write!(
                    f,
                    "NVIDIA driver too old: expected CUDA {OLDEST_CUDA} or newer, found CUDA {found}"
                )?;
                if let Some(lacks) = lacks {
                    write!(f, " (without {lacks})")?;
                }
                write!(f, "; update the driver to release 525 or newer")
            }
            OpenError::Cuda(error) => write!(f, "the NVIDIA driver did not start: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<DriverError> for OpenError {
    fn from(error: DriverError) -> Self {
        OpenError::Cuda(error)
    }
}

/// A call to the driver that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverError {
    /// The entry point, such as `cuStreamSynchronize`.
    pub call: Box<str>,
    /// The raw `CUresult`.
    pub code: u32,
    /// The driver's name for it, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub name: Box<str>,
    /// The driver's text for it.
    pub text: Box<str>,
    /// What was asked for and what was found, where the caller knows.
    pub detail: Option<String>,
    /// The log of the driver's PTX compiler.
    pub log: Option<String>,
}

impl DriverError {
    /// What to do about it, for the codes that have a usual cause.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self.code {
            code::OUT_OF_MEMORY => "free device memory or ask for less",
            code::STUB_LIBRARY => "install NVIDIA's driver, or run on a machine that has one",
            code::NO_DEVICE => "see what `nvidia-smi -L` lists and what CUDA_VISIBLE_DEVICES hides",
            code::INVALID_IMAGE => "give a cubin or PTX as it came from the build",
            code::NO_BINARY_FOR_GPU => "build for the architecture of this GPU",
            code::INVALID_PTX => "the driver's PTX compiler rejects it: see its log",
            code::JIT_COMPILER_NOT_FOUND => {
                "build a cubin, or install libnvidia-ptxjitcompiler of the driver's release"
            }
            code::UNSUPPORTED_PTX_VERSION => {
                "build a cubin with ptxas, build for an older PTX ISA, or update the driver"
            }
            code::NOT_FOUND => "the name must be that of a kernel in the module",
            code::ILLEGAL_ADDRESS => {
                "a thread used an address outside any allocation or in the wrong state space; \
                 compute-sanitizer shows which"
            }
            code::LAUNCH_OUT_OF_RESOURCES => {
                "launch fewer threads per block, or cap the registers with launch bounds"
            }
            code::LAUNCH_TIMEOUT => {
                "the kernel ran into the display's time limit: shorten it or use a GPU without display"
            }
            code::ASSERT => "a device-side assertion failed: see the output",
            code::ILLEGAL_INSTRUCTION => {
                "a form this GPU lacks, a trap, or invalid operands (such as a bad mbarrier or tensor map)"
            }
            code::MISALIGNED_ADDRESS => {
                "align the address to the size of the access; bulk copies want 16 bytes"
            }
            code::INVALID_ADDRESS_SPACE => {
                "an instruction for shared, local or global memory met an address of another space"
            }
            code::LAUNCH_FAILED => "the kernel faulted; compute-sanitizer shows where",
            code::SYSTEM_DRIVER_MISMATCH => {
                "libcuda.so.1 and the kernel module are of different releases: reboot or reinstall the driver"
            }
            code::INVALID_CLUSTER_SIZE => {
                "the cluster must divide the grid and fit the GPU (8 blocks everywhere, 16 at most)"
            }
            _ => return None,
        })
    }

    /// Whether every later call in this process fails too: the context is lost.
    pub fn is_sticky(&self) -> bool {
        matches!(
            self.code,
            code::ECC_UNCORRECTABLE
                | code::NVLINK_UNCORRECTABLE
                | code::CONTAINED
                | code::ILLEGAL_ADDRESS
                | code::LAUNCH_TIMEOUT
                | code::ASSERT
                | code::HARDWARE_STACK_ERROR
                ..=code::LAUNCH_FAILED | code::TENSOR_MEMORY_LEAK | code::EXTERNAL_DEVICE
        )
    }

    /// The same error with what was expected and found.
    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> DriverError {
        self.detail = Some(detail.into());
        self
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let DriverError {
            call,
            code,
            name,
            text,
            ..
        } = self;
        write!(f, "{call}: {name} ({code}): {text}")?;
        if let Some(detail) = &self.detail {
            write!(f, "; {detail}")?;
        }
        if let Some(advice) = self.advice() {
            write!(f, "; {advice}")?;
        }
        if let Some(log) = &self.log {
            write!(f, "\n{}", log.trim_end())?;
        }
        Ok(())
    }
}

impl std::error::Error for DriverError {}

/// The driver's error in a chain of causes, if there is one.
pub fn driver_error(error: &anyhow::Error) -> Option<&DriverError> {
    error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(OpenError::Cuda(error)) => Some(error),
        _ => cause.downcast_ref(),
    })
}

/// Values of `CUresult` (cuda.h of CUDA 13).
pub(crate) mod code {
    pub const INVALID_VALUE: u32 = 1;
    pub const OUT_OF_MEMORY: u32 = 2;
    pub const STUB_LIBRARY: u32 = 34;
    pub const NO_DEVICE: u32 = 100;
    pub const INVALID_IMAGE: u32 = 200;
    pub const NO_BINARY_FOR_GPU: u32 = 209;
    pub const ECC_UNCORRECTABLE: u32 = 214;
    pub const INVALID_PTX: u32 = 218;
    pub const NVLINK_UNCORRECTABLE: u32 = 220;
    pub const JIT_COMPILER_NOT_FOUND: u32 = 221;
    pub const UNSUPPORTED_PTX_VERSION: u32 = 222;
    pub const CONTAINED: u32 = 226;
    pub const NOT_FOUND: u32 = 500;
    pub const ILLEGAL_ADDRESS: u32 = 700;
    pub const LAUNCH_OUT_OF_RESOURCES: u32 = 701;
    pub const LAUNCH_TIMEOUT: u32 = 702;
    pub const ASSERT: u32 = 710;
    pub const HARDWARE_STACK_ERROR: u32 = 714;
    pub const ILLEGAL_INSTRUCTION: u32 = 715;
    pub const MISALIGNED_ADDRESS: u32 = 716;
    pub const INVALID_ADDRESS_SPACE: u32 = 717;
    pub const LAUNCH_FAILED: u32 = 719;
    pub const TENSOR_MEMORY_LEAK: u32 = 721;
    pub const SYSTEM_DRIVER_MISMATCH: u32 = 803;
    pub const EXTERNAL_DEVICE: u32 = 911;
    pub const INVALID_CLUSTER_SIZE: u32 = 912;
}
