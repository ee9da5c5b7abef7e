//! Kernels that must fail, for tests of how failures are reported.

use std::path::PathBuf;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::read_image;
use crate::driver::{Arguments, Driver, Launch};

/// A kernel of `ptx/faults`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Waits for ever.
    Hang,
    /// Stores to address 0.
    Fault,
    /// Panics with the message "n is not zero".
    Panic,
    /// Starts a bulk copy of 8 bytes; for debug builds, which panic.
    OddCopy,
}

/// The launch of one, to be run in a child process: [`Fault::Hang`] does not return,
/// [`Fault::Fault`] returns `CUDA_ERROR_ILLEGAL_ADDRESS`, [`Fault::Panic`] and [`Fault::OddCopy`]
/// `CUDA_ERROR_ASSERT`, and all three leave a lost context.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FaultJob {
    /// The kernel.
    pub fault: Fault,
    /// A cubin or PTX of `ptx/faults`.
    pub image: PathBuf,
}

impl FaultJob {
    /// Launches the kernel with one thread and waits for it.
    ///
    /// # Errors
    /// The driver's, if all is as it should be.
    pub fn run(&self) -> Result<()> {
        let driver = Driver::open()?;
        let module = driver.load(&read_image(&self.image)?)?;
        let input = driver.zeroed::<u32>(4)?;
        let (name, arguments) = match self.fault {
            Fault::Hang => ("hang", Arguments::new()),
            Fault::Fault => ("fault", Arguments::new().u64(0)),
            Fault::Panic => ("panic", Arguments::new().u32(1)),
            Fault::OddCopy => ("odd_copy", Arguments::new().pointer(&input)),
        };
        // SAFETY: the arguments are those of the kernel; what it does wrong ends its context alone.
        unsafe {
            module
                .function(name)?
                .launch(&Launch::new(1, 1), &arguments)?;
        }
        Ok(driver.synchronize()?)
    }
}
