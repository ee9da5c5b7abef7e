//! The CUDA driver: context, memory, modules, launches, error names and a watchdog.
//!
//! cust owns the context, the stream, events and device buffers. What is newer than the CUDA 11.4
//! that it was generated for, or whose errors matter, is called through entry points resolved with
//! `dlsym`, and every error carries the driver's own name and text for its code.
//!
//! A program that uses this module links and starts without NVIDIA's driver: see
//! `libcuda/entries.c` and [`Driver::open`]. cust's build script asks for a CUDA installation all
//! the same; a crate outside this workspace that has none names any folder that holds a `lib64/`,
//! with this in its `.cargo/config.toml`:
//!
//! ```toml
//! [env]
//! CUDA_LIBRARY_PATH = "/usr"
//! ```
//!
//! ```no_run
//! use cuda_ptx_host::driver::{Arguments, Driver, Launch};
//!
//! # fn main() -> anyhow::Result<()> {
//! let driver = Driver::open()?;
//! let module = driver.load(&std::fs::read("kernels.cubin")?)?;
//! let scale = module.function("scale")?;
//! let x = driver.upload(&[1.0f32; 1024])?;
//! let arguments = Arguments::new().pointer(&x).f32(2.0).u32(1024);
//! // SAFETY: `scale(x: *mut f32, factor: f32, n: u32)` writes the n elements of `x` only.
//! unsafe { scale.launch(&Launch::new(4, 256), &arguments)? };
//! driver.synchronize()?;
//! let x: Vec<f32> = driver.download(&x)?;
//! # Ok(())
//! # }
//! ```
//!
//! A kernel that may hang or fault runs in a child process under a time limit: [`isolate`].

mod api;
mod error;
pub mod isolate;
mod launch;
mod memory;
mod module;
pub mod sanitizer;
mod tensor_map;

use std::fmt;

use cust::context::Context;
use cust::device::Device;
use cust::stream::{Stream, StreamFlags};

use api::{Api, call};
pub use error::{DriverError, OLDEST_CUDA, OpenError, driver_error};
pub use launch::{Arguments, Launch};
pub use module::{Function, FunctionAttributes, Module};
pub use tensor_map::{
    DataType, Interleave, L2Promotion, OutOfBounds, Swizzle, TensorMap, TensorMapBuilder, WideMode,
};

// Values of `CUdevice_attribute`.
const CLOCK_RATE: u32 = 13;
const MULTIPROCESSOR_COUNT: u32 = 16;
const COMPUTE_CAPABILITY_MAJOR: u32 = 75;
const COMPUTE_CAPABILITY_MINOR: u32 = 76;
const MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: u32 = 97;

/// The driver, the primary context of the first GPU, and a stream on it.
///
/// The context is current on the thread that opened it. `CUDA_VISIBLE_DEVICES` chooses the GPU.
pub struct Driver {
    api: &'static Api,
    version: Version,
    device: Device,
    stream: Stream,
    // Released last: the stream belongs to it.
    _context: Context,
}

impl Driver {
    /// Loads libcuda.so.1 and retains the primary context of the first GPU.
    pub fn open() -> Result<Driver, OpenError> {
        let api = Api::load()?;
        let version = version(api)?;
        if version < OLDEST_CUDA {
            return Err(OpenError::TooOld {
                found: version,
                lacks: None,
            });
        }
        let mut devices = 0;
        match call!(api, cuInit(0)).and_then(|()| call!(api, cuDeviceGetCount(&mut devices))) {
            Ok(()) if devices > 0 => {}
            Err(error) if error.code != error::code::NO_DEVICE => return Err(error.into()),
            _ => return Err(OpenError::NoDevice { cuda: version }),
        }
        // cust's entry points are filled by its own first call.
        api.cust("cuInit", cust::init(cust::CudaFlags::empty()))?;
        let device = api.cust("cuDeviceGet", Device::get_device(0))?;
        let context = api.cust("cuDevicePrimaryCtxRetain", Context::new(device))?;
        let stream = Stream::new(StreamFlags::DEFAULT, None);
        Ok(Driver {
            api,
            version,
            device,
            stream: api.cust("cuStreamCreateWithPriority", stream)?,
            _context: context,
        })
    }

    /// The name of the GPU, such as `NVIDIA H200`.
    pub fn gpu_name(&self) -> Result<String, DriverError> {
        self.api.cust("cuDeviceGetName", self.device.name())
    }

    /// The newest CUDA version that the driver supports.
    pub fn cuda_version(&self) -> Version {
        self.version
    }

    /// The compute capability of the GPU, such as 9.0.
    pub fn compute_capability(&self) -> Result<Version, DriverError> {
        Ok(Version {
            major: self.attribute(COMPUTE_CAPABILITY_MAJOR)?,
            minor: self.attribute(COMPUTE_CAPABILITY_MINOR)?,
        })
    }

    /// The number of streaming multiprocessors.
    pub fn sm_count(&self) -> Result<u32, DriverError> {
        self.attribute(MULTIPROCESSOR_COUNT)
    }

    /// The peak clock of the multiprocessors, in kilohertz.
    pub fn sm_clock_khz(&self) -> Result<u32, DriverError> {
        self.attribute(CLOCK_RATE)
    }

    /// The most shared memory that a block may have, static and dynamic, in bytes.
    pub fn shared_bytes_per_block(&self) -> Result<u32, DriverError> {
        self.attribute(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
    }

    /// Free and total device memory, in bytes.
    pub fn memory_info(&self) -> Result<(u64, u64), DriverError> {
        let (mut free, mut total) = (0, 0);
        call!(self.api, cuMemGetInfo_v2(&mut free, &mut total))?;
        Ok((free as u64, total as u64))
    }

    /// The stream that launches go to. It waits for the default stream and is waited for by it.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Waits until all launches have finished; gives the error of a kernel that faulted.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        call!(self.api, cuStreamSynchronize(self.stream_handle()))
    }

    fn stream_handle(&self) -> api::Handle {
        self.stream.as_inner().cast()
    }

    fn attribute(&self, attribute: u32) -> Result<u32, DriverError> {
        let mut value = 0;
        call!(
            self.api,
            cuDeviceGetAttribute(&mut value, attribute, self.device.as_raw())
        )?;
        Ok(value as u32)
    }
}

fn version(api: &Api) -> Result<Version, DriverError> {
    let mut version = 0;
    call!(api, cuDriverGetVersion(&mut version))?;
    Ok(Version::from_cuda(version))
}

/// A version of CUDA, of the PTX ISA, or a compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The part before the dot.
    pub major: u32,
    /// The part after the dot.
    pub minor: u32,
}

impl Version {
    /// From CUDA's encoding: 1000 × major + 10 × minor.
    fn from_cuda(version: i32) -> Version {
        let version = version.max(0) as u32;
        Version {
            major: version / 1000,
            minor: version % 1000 / 10,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
