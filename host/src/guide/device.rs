//! What the launches need of a device: the GPU through the driver, or the CPU executing PTX.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use anyhow::{Context, Result};
use cust::memory::bytemuck::{self, Pod};
use cust::memory::{DeviceBuffer, DeviceCopy};

use crate::driver::{Arguments, Driver, Function, Launch};
use crate::exec::{self, Grid, Memory, Options, Program};

/// A device and its memory.
pub enum Device<'a> {
    Gpu(&'a Driver),
    Cpu(Cpu<'a>),
}

/// The CPU: a program, the memory of its buffers, and the seed of the next schedule.
pub struct Cpu<'a> {
    program: &'a Program,
    memory: RefCell<Memory>,
    seed: Cell<u64>,
}

/// A kernel on the device.
pub enum Kernel<'a> {
    Gpu(Function<'a>),
    Cpu(&'a str),
}

/// A buffer on the device.
pub enum Buffer<T: DeviceCopy> {
    Gpu(DeviceBuffer<T>),
    Cpu(exec::Buffer, PhantomData<T>),
}

impl<'a> Device<'a> {
    /// The CPU, whose schedules start with that of `seed`.
    pub fn cpu(program: &'a Program, seed: u64) -> Self {
        Self::Cpu(Cpu {
            program,
            memory: RefCell::new(Memory::new()),
            seed: Cell::new(seed),
        })
    }

    /// A buffer with a copy of `data`.
    pub fn upload<T: Pod + DeviceCopy>(&self, data: &[T]) -> Result<Buffer<T>> {
        Ok(match self {
            Self::Gpu(driver) => Buffer::Gpu(driver.upload(data)?),
            Self::Cpu(cpu) => {
                let bytes = bytemuck::cast_slice(data);
                Buffer::Cpu(cpu.memory.borrow_mut().upload(bytes), PhantomData)
            }
        })
    }

    /// The elements of a buffer, after the launches before.
    pub fn download<T: Pod + DeviceCopy>(&self, buffer: &Buffer<T>) -> Result<Vec<T>> {
        match (self, buffer) {
            (Self::Gpu(driver), Buffer::Gpu(buffer)) => Ok(driver.download(buffer)?),
            (Self::Cpu(cpu), Buffer::Cpu(buffer, _)) => {
                let memory = cpu.memory.borrow();
                let bytes = memory.download(*buffer).chunks_exact(size_of::<T>());
                Ok(bytes.map(bytemuck::pod_read_unaligned).collect())
            }
            _ => anyhow::bail!("expected a buffer of this device"),
        }
    }

    /// Launches a kernel.
    ///
    /// # Safety
    /// As for [`Function::launch`]; on the CPU, nothing that a kernel does is unsafe.
    pub unsafe fn launch(
        &self,
        kernel: &Kernel,
        launch: &Launch,
        arguments: &Arguments,
    ) -> Result<()> {
        match (self, kernel) {
            // SAFETY: the caller's promise.
            (Self::Gpu(_), Kernel::Gpu(function)) => unsafe {
                Ok(function.launch(launch, arguments)?)
            },
            (Self::Cpu(cpu), Kernel::Cpu(name)) => cpu.launch(name, launch, arguments),
            _ => anyhow::bail!("expected a kernel of this device"),
        }
    }

    /// Whether launches are to be small.
    pub fn is_cpu(&self) -> bool {
        matches!(self, Self::Cpu(_))
    }
}

impl Cpu<'_> {
    fn launch(&self, kernel: &str, launch: &Launch, arguments: &Arguments) -> Result<()> {
        let seed = self.seed.get();
        self.seed.set(seed.wrapping_add(1));
        let grid = Grid {
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes,
            cluster: launch.cluster,
        };
        let options = Options {
            seed,
            ..Options::default()
        };
        let mut memory = self.memory.borrow_mut();
        self.program
            .run(kernel, &grid, &arguments.bytes(), &mut memory, &options)
            .with_context(|| format!("schedule {seed}, {launch}"))?;
        Ok(())
    }
}

impl<T: DeviceCopy> Buffer<T> {
    /// Its address on the device.
    pub fn address(&self) -> u64 {
        match self {
            Self::Gpu(buffer) => buffer.as_device_ptr().as_raw(),
            Self::Cpu(buffer, _) => buffer.address(),
        }
    }
}
