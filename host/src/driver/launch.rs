//! Launches: the shape of the grid, the arguments, and how long it took.

use std::ffi::c_void;

use cust::event::{Event, EventFlags};
use cust::function::{BlockSize, GridSize};
use cust::memory::{DeviceBuffer, DeviceCopy};

use super::api::{LaunchAttribute, LaunchConfig, call};
use super::error::code;
use super::module::{Function, MAX_DYNAMIC_SHARED_SIZE_BYTES, NON_PORTABLE_CLUSTER_SIZE_ALLOWED};
use super::{DriverError, TensorMap};

/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
const COOPERATIVE: u32 = 2;
/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
const CLUSTER_DIMENSION: u32 = 4;

/// The most blocks of a cluster that every GPU with clusters takes.
const PORTABLE_CLUSTER_BLOCKS: u32 = 8;

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks of the grid in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Blocks of a cluster in x, y, z; `None` leaves it to the kernel's own cluster dimensions.
    pub cluster: Option<[u32; 3]>,
    /// Whether all blocks must run at the same time, because they wait for one another.
    pub cooperative: bool,
}

impl Launch {
    /// A grid of blocks and a block of threads; each is `x`, `(x, y)` or `(x, y, z)`.
    pub fn new(grid: impl Into<GridSize>, block: impl Into<BlockSize>) -> Launch {
        let (grid, block) = (grid.into(), block.into());
        Launch {
            grid: [grid.x, grid.y, grid.z],
            block: [block.x, block.y, block.z],
            shared_bytes: 0,
            cluster: None,
            cooperative: false,
        }
    }

    /// With so many bytes of dynamic shared memory for each block.
    pub fn shared(mut self, bytes: u32) -> Launch {
        self.shared_bytes = bytes;
        self
    }

    /// With clusters of so many blocks in x, y, z.
    pub fn cluster(mut self, blocks: [u32; 3]) -> Launch {
        self.cluster = Some(blocks);
        self
    }

    /// With all blocks running at the same time; a grid that does not fit is refused.
    pub fn cooperative(mut self) -> Launch {
        self.cooperative = true;
        self
    }

    fn attributes(&self) -> Vec<LaunchAttribute> {
        let attribute = |id, value| LaunchAttribute {
            id,
            padding: 0,
            value,
            unused: [0; 13],
        };
        let cluster = self
            .cluster
            .map(|blocks| attribute(CLUSTER_DIMENSION, blocks));
        let cooperative = self.cooperative.then(|| attribute(COOPERATIVE, [1, 0, 0]));
        cluster.into_iter().chain(cooperative).collect()
    }
}

/// The arguments of a launch, in the order of the kernel's parameters.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    storage: Vec<Line>,
    /// The line where each argument starts, and its size in bytes.
    places: Vec<(usize, usize)>,
}

/// Every argument starts a line, so that any alignment up to 128 bytes is met.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
struct Line([u8; 128]);

impl Arguments {
    /// No arguments yet.
    pub fn new() -> Arguments {
        Arguments::default()
    }

    /// The address of a device buffer.
    pub fn pointer<T: DeviceCopy>(self, buffer: &DeviceBuffer<T>) -> Arguments {
        self.u64(buffer.as_device_ptr().as_raw())
    }

    /// A 32-bit integer.
    pub fn u32(self, value: u32) -> Arguments {
        self.value(value)
    }

    /// A 64-bit integer, or a device address.
    pub fn u64(self, value: u64) -> Arguments {
        self.value(value)
    }

    /// A 32-bit float.
    pub fn f32(self, value: f32) -> Arguments {
        self.value(value)
    }

    /// A tensor map, for a grid-constant parameter.
    pub fn tensor_map(self, map: TensorMap) -> Arguments {
        self.value(map)
    }

    /// A value of any type that the kernel takes by value, laid out as in C.
    ///
    /// Parameters of a kernel take 4096 bytes at most (32,764 from sm_70 and CUDA 12.1 on).
    pub fn value<T: Copy>(mut self, value: T) -> Arguments {
        const { assert!(align_of::<T>() <= align_of::<Line>()) };
        let size = size_of::<T>();
        let start = self.storage.len();
        let lines = size.div_ceil(size_of::<Line>());
        self.storage.resize(start + lines, Line([0; 128]));
        // SAFETY: the lines from `start` on hold `size` bytes, aligned to 128. They are written as a
        // `T`, padding and all, and read by the driver only.
        unsafe {
            self.storage
                .as_mut_ptr()
                .add(start)
                .cast::<T>()
                .write(value)
        };
        self.places.push((start, size));
        self
    }

    /// The bytes of each argument.
    pub fn bytes(&self) -> Vec<Vec<u8>> {
        let pointers = self.pointers().into_iter().zip(self.sizes());
        pointers
            .map(|(pointer, size)| {
                // SAFETY: each pointer is to so many bytes of `storage`, which are initialised:
                // lines are zeroed before a value is written to them, and every type that is passed
                // to a kernel is plain data.
                unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), size) }.to_vec()
            })
            .collect()
    }

    fn sizes(&self) -> Vec<usize> {
        self.places.iter().map(|place| place.1).collect()
    }

    /// The address of each argument, as `cuLaunchKernelEx` takes them.
    fn pointers(&self) -> Vec<*mut c_void> {
        let address =
            |(start, _): &(usize, usize)| self.storage[*start..].as_ptr().cast_mut().cast();
        self.places.iter().map(address).collect()
    }
}

impl Function<'_> {
    /// Queues a launch on the driver's stream; a fault of the kernel shows when it is waited for.
    ///
    /// # Safety
    /// The arguments are those of the kernel's parameters, and what it does with them stays within
    /// buffers that live until it has finished.
    pub unsafe fn launch(&self, launch: &Launch, arguments: &Arguments) -> Result<(), DriverError> {
        self.check_arguments(arguments)?;
        self.allow_shared(launch.shared_bytes)?;
        let attributes = launch.attributes();
        if launch
            .cluster
            .is_some_and(|dim| dim.iter().product::<u32>() > PORTABLE_CLUSTER_BLOCKS)
        {
            self.set_attribute(NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)?;
        }
        let config = LaunchConfig {
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes,
            stream: self.driver.stream_handle(),
            attributes: attributes.as_ptr(),
            attribute_count: attributes.len() as u32,
        };
        let pointers = arguments.pointers();
        call!(
            self.driver.api,
            cuLaunchKernelEx(&config, self.handle, pointers.as_ptr(), std::ptr::null())
        )
        .map_err(|error| error.with_detail(format!("kernel `{}`, {launch}", self.name)))
    }

    /// Launches and waits; gives the time between events before and after it, in milliseconds.
    ///
    /// # Safety
    /// As for [`launch`](Function::launch).
    pub unsafe fn time_launch(
        &self,
        launch: &Launch,
        arguments: &Arguments,
    ) -> Result<f32, DriverError> {
        let driver = self.driver;
        let event = || {
            driver
                .api
                .cust("cuEventCreate", Event::new(EventFlags::DEFAULT))
        };
        let record = |event: &Event| {
            driver
                .api
                .cust("cuEventRecord", event.record(&driver.stream))
        };
        let (start, stop) = (event()?, event()?);
        record(&start)?;
        // SAFETY: the caller's promise.
        unsafe { self.launch(launch, arguments)? };
        record(&stop)?;
        driver.synchronize()?;
        driver
            .api
            .cust("cuEventElapsedTime", stop.elapsed_time_f32(&start))
    }

    /// The driver reads as many arguments as the kernel has parameters, however many there are.
    fn check_arguments(&self, arguments: &Arguments) -> Result<(), DriverError> {
        match &self.parameters {
            Some(expected) if *expected != arguments.sizes() => Err(self
                .driver
                .api
                .error("cuLaunchKernelEx", code::INVALID_VALUE)
                .with_detail(format!(
                    "kernel `{}` takes parameters of {expected:?} bytes, given are {:?} bytes",
                    self.name,
                    arguments.sizes()
                ))),
            _ => Ok(()),
        }
    }

    /// Beyond 48 KiB, a kernel must be told how much dynamic shared memory its blocks may have.
    fn allow_shared(&self, bytes: u32) -> Result<(), DriverError> {
        if bytes <= self.shared_limit.get() {
            return Ok(());
        }
        self.set_attribute(MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes).map_err(|error| {
            let most = self.driver.shared_bytes_per_block().map_or("?".to_owned(), |n| n.to_string());
            let fixed = self.attributes().map_or("?".to_owned(), |a| a.shared_bytes.to_string());
            error.with_detail(format!(
                "kernel `{}` asks for {bytes} bytes of dynamic and {fixed} of static shared memory; \
                 a block may have {most} in all",
                self.name
            ))
        })?;
        self.shared_limit.set(bytes);
        Ok(())
    }
}

impl std::fmt::Display for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Launch {
            grid,
            block,
            shared_bytes,
            cluster,
            cooperative,
        } = self;
        write!(
            f,
            "grid {grid:?}, block {block:?}, {shared_bytes} bytes of dynamic shared memory"
        )?;
        if let Some(cluster) = cluster {
            write!(f, ", cluster {cluster:?}")?;
        }
        if *cooperative {
            write!(f, ", cooperative")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_keep_order_size_alignment_and_value() {
        #[derive(Clone, Copy)]
        #[repr(C, align(64))]
        struct Big([u8; 4096]);
        let arguments = Arguments::new()
            .u64(0x1234_5678_9abc_def0)
            .value(Big([7; 4096]))
            .f32(1.5)
            .u32(9);
        assert_eq!(arguments.sizes(), [8, 4096, 4, 4]);
        let pointers = arguments.pointers();
        // SAFETY: each pointer is to a value of that type in `arguments`.
        unsafe {
            assert_eq!(*pointers[0].cast::<u64>(), 0x1234_5678_9abc_def0);
            assert!(pointers[1].cast::<Big>().is_aligned());
            assert!((*pointers[1].cast::<Big>()).0 == [7; 4096]);
            assert_eq!(*pointers[2].cast::<f32>(), 1.5);
            assert_eq!(*pointers[3].cast::<u32>(), 9);
        }
    }

    #[test]
    fn a_launch_is_one_line() {
        let launch = Launch::new((4, 2), 128).shared(65536).cluster([2, 1, 1]);
        assert_eq!(
            launch.to_string(),
            "grid [4, 2, 1], block [128, 1, 1], 65536 bytes of dynamic shared memory, cluster [2, 1, 1]"
        );
    }
}
