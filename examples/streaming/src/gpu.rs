//! Large arrays on the GPU.

use std::cell::RefCell;
use std::ffi::c_void;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use cuda_ptx_host::driver::{Arguments, Driver, Launch, Module};
use cust::device::{Device, DeviceAttribute};
use cust::memory::{AsyncCopyDestination, CopyDestination, DeviceBuffer};
use measure::{Competitor, Contest, Outcome, Record, Work};

use crate::cpu::check_sum;
use crate::data::{self, Operation, Type};
use crate::shapes::{self, Shape, Tried};

const RUST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.cubin"));
const CPP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/twins.cubin"));

/// Words that are generated, or checked, at a time.
const CHUNK: usize = 64 << 20;

unsafe extern "C" {
    fn cub_sum_f32(
        scratch: *mut c_void,
        scratch_bytes: *mut usize,
        input: *const c_void,
        sum: *mut f32,
        count: u64,
        stream: *mut c_void,
    ) -> i32;
    fn cub_sum_bf16(
        scratch: *mut c_void,
        scratch_bytes: *mut usize,
        input: *const c_void,
        sum: *mut f32,
        count: u64,
        stream: *mut c_void,
    ) -> i32;
}

/// The device memory of all operations.
struct Arrays<'d> {
    driver: &'d Driver,
    input: DeviceBuffer<u32>,
    output: RefCell<DeviceBuffer<u32>>,
    sum: DeviceBuffer<f32>,
    partials: DeviceBuffer<f32>,
    /// What kernels count with: 0 before and after.
    counter: DeviceBuffer<u32>,
}

impl<'d> Arrays<'d> {
    fn new(driver: &'d Driver, bytes: u64) -> Result<Self> {
        let words = bytes as usize / 4;
        Ok(Self {
            driver,
            input: driver.zeroed(words)?,
            output: RefCell::new(driver.zeroed(words)?),
            sum: driver.zeroed(1)?,
            partials: driver.zeroed(1 << 16)?,
            counter: driver.zeroed(1)?,
        })
    }

    fn bytes(&self) -> u64 {
        self.input.len() as u64 * 4
    }

    fn fill(&mut self, element: Type) -> Result<()> {
        let mut words = vec![0; CHUNK.min(self.input.len())];
        for first in (0..self.input.len()).step_by(CHUNK) {
            let count = CHUNK.min(self.input.len() - first);
            data::input(element, first as u64, &mut words[..count]);
            self.input.index(first..first + count).copy_from(&words[..count])?;
        }
        Ok(())
    }

    /// Queues a kernel.
    fn launch(&self, module: &Module, operation: Operation, shape: Shape) -> Result<()> {
        let kernel = module.function(operation.kernel())?;
        let output = self.output.borrow();
        let mut arguments = match operation {
            Operation::Sum(_) => {
                Arguments::new().pointer(&self.sum).pointer(&self.partials).pointer(&self.counter)
            }
            _ => Arguments::new().pointer(&*output),
        };
        arguments = arguments.pointer(&self.input).u64(self.bytes()).u32(shape.tile_bytes);
        if !matches!(operation, Operation::Sum(_)) {
            arguments = arguments.pointer(&self.counter);
        }
        if let Operation::Scale(_) = operation {
            arguments = arguments.f32(data::FACTOR);
        }
        let launch = Launch::new(shape.blocks, 32 * shape.warps).shared(shape.shared_bytes());
        // SAFETY: the arguments are those of the kernel; all buffers live until the next synchronisation.
        unsafe { kernel.launch(&launch, &arguments)? };
        Ok(())
    }

    /// Queues the driver's copy.
    fn copy(&self) -> Result<()> {
        // SAFETY: both buffers live until the next synchronisation.
        unsafe { self.output.borrow_mut().async_copy_from(&self.input, self.driver.stream())? };
        Ok(())
    }

    /// Clears the results.
    fn clear(&mut self) -> Result<()> {
        let words = self.input.len();
        // The old one is freed first.
        *self.output.borrow_mut() = self.driver.zeroed(0)?;
        self.output = RefCell::new(self.driver.zeroed(words)?);
        self.sum = self.driver.zeroed(1)?;
        Ok(())
    }

    /// Checks every element of the result.
    fn check(&self, operation: Operation) -> Result<()> {
        self.driver.synchronize()?;
        if let Operation::Sum(element) = operation {
            let found = self.driver.download(&self.sum)?[0];
            return check_sum(f64::from(found), data::sum(element, self.bytes() / 4));
        }
        let output = self.output.borrow();
        let mut words = vec![0; CHUNK.min(output.len())];
        let mut wrong = 0;
        for first in (0..output.len()).step_by(CHUNK) {
            let count = CHUNK.min(output.len() - first);
            output.index(first..first + count).copy_to(&mut words[..count])?;
            wrong += data::wrong(operation, first as u64, &mut words[..count]);
        }
        ensure!(wrong == 0, "{wrong} words of {} are wrong", output.len());
        Ok(())
    }
}

/// CUB's reduction, with the scratch memory that it wants.
struct Cub {
    element: Type,
    scratch: DeviceBuffer<u8>,
}

impl Cub {
    fn new(arrays: &Arrays, element: Type) -> Result<Self> {
        let mut bytes = 0;
        call_cub(arrays, element, std::ptr::null_mut(), &mut bytes)?;
        Ok(Self { element, scratch: arrays.driver.zeroed(bytes.max(1))? })
    }

    fn launch(&self, arrays: &Arrays) -> Result<()> {
        let scratch = self.scratch.as_device_ptr().as_raw() as *mut c_void;
        call_cub(arrays, self.element, scratch, &mut self.scratch.len())
    }
}

fn call_cub(arrays: &Arrays, element: Type, scratch: *mut c_void, bytes: &mut usize) -> Result<()> {
    let input = arrays.input.as_device_ptr().as_raw() as *const c_void;
    let sum = arrays.sum.as_device_ptr().as_raw() as *mut f32;
    let stream = arrays.driver.stream().as_inner().cast();
    // SAFETY: as cpp/cub.cu declares them; the arrays live until the next synchronisation.
    let code = unsafe {
        match element {
            Type::F32 => cub_sum_f32(scratch, bytes, input, sum, arrays.bytes() / 4, stream),
            Type::Bf16 => cub_sum_bf16(scratch, bytes, input, sum, arrays.bytes() / 2, stream),
        }
    };
    ensure!(code == 0, "CUB's DeviceReduce gives CUDA error {code}");
    Ok(())
}

/// What an operation moves; the peak is the clock and the width of the memory, as the driver tells
/// them.
fn work(operation: Operation, bytes: u64) -> Result<Work> {
    let device = Device::get_device(0)?;
    let clock_hz = f64::from(device.get_attribute(DeviceAttribute::MemoryClockRate)?) * 1e3;
    let bus_bytes = f64::from(device.get_attribute(DeviceAttribute::GlobalMemoryBusWidth)?) / 8.0;
    let passes = if let Operation::Sum(_) = operation { 1.0 } else { 2.0 };
    // Two transfers a clock.
    Ok(Work::Bytes { moved: passes * bytes as f64, peak: 2.0 * clock_hz * bus_bytes })
}

/// Checks and measures everything; the times of all shapes go into the file `shapes`.
pub fn run(bytes: u64, rounds: usize, json: Option<&Path>, shapes: Option<&Path>) -> Result<()> {
    let driver = Driver::open()?;
    let modules = [driver.load(RUST)?, driver.load(CPP)?];
    let mut arrays = Arrays::new(&driver, bytes)?;
    let mut outcomes = Vec::new();
    let mut table = "operation\tblocks\twarps\ttile bytes\tRust ms\tC++ ms\n".to_owned();
    for element in [Type::F32, Type::Bf16] {
        arrays.fill(element)?;
        for operation in Operation::ALL.into_iter().filter(|operation| operation.element() == element) {
            let tried = shapes::tried(driver.sm_count()?, |shape, language| {
                measure::time(&driver, &mut || arrays.launch(&modules[language], operation, shape))
            })?;
            for row in tried.rows() {
                table += &format!("{}\t{row}\n", operation.kernel());
            }
            for (module, language) in modules.iter().zip(["Rust", "C++"]) {
                arrays.clear()?;
                arrays.launch(module, operation, tried.best())?;
                arrays.check(operation).with_context(|| format!("{} in {language}", operation.kernel()))?;
            }
            let outcome = measure(&driver, &arrays, operation, &modules, &tried, rounds)?;
            println!("{}", outcome.summary());
            outcomes.push(outcome);
        }
    }
    if let Some(path) = shapes {
        std::fs::write(path, table).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = json {
        measure::write(path, "streaming", &Record::new(&driver, outcomes)?)?;
    }
    Ok(())
}

fn measure(
    driver: &Driver,
    arrays: &Arrays,
    operation: Operation,
    [rust, cpp]: &[Module; 2],
    tried: &Tried,
    rounds: usize,
) -> Result<Outcome> {
    let cub = match operation {
        Operation::Sum(element) => Some(Cub::new(arrays, element)?),
        _ => None,
    };
    let mut competitors = vec![
        Competitor::new("Rust", || arrays.launch(rust, operation, tried.best())),
        Competitor::new("C++ twin", || arrays.launch(cpp, operation, tried.best())),
    ];
    if operation == Operation::Copy {
        competitors.push(Competitor::new("cuMemcpyDtoDAsync", || arrays.copy()));
    }
    if let Some(cub) = &cub {
        competitors.push(Competitor::new("cub::DeviceReduce", || cub.launch(arrays)));
    }
    let name = format!("{}, {} bytes", operation.kernel(), arrays.bytes());
    let checked = format!("every element checked; {}", tried.summary());
    let contest = Contest { name: &name, work: work(operation, arrays.bytes())?, checked: &checked, rounds };
    contest.run(driver, competitors)
}
