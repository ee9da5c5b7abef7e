//! A job on the GPU or on the CPU, whichever there is.

use std::thread;

use anyhow::Result;
use clap::ValueEnum;

use super::schedule::Chooser;
use super::{Job, Options, Program};

/// Where a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// On the GPU, and nowhere if there is none.
    Gpu,
    /// On the CPU, which executes its PTX.
    Cpu,
    /// On the GPU if there is one, else on the CPU.
    Auto,
}

/// What a job left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// Whether it ran on the GPU.
    pub on_gpu: bool,
    /// The bytes of its buffers, in the order of the arguments.
    pub buffers: Vec<Vec<u8>>,
}

impl Job {
    /// Runs a kernel of a PTX module once. A build script or test without a GPU gets the same results
    /// from the CPU, or the [`Violation`](super::Violation) that it finds.
    ///
    /// ```
    /// use cuda_ptx_host::exec::{Argument, Job, On};
    ///
    /// let ptx = ".version 8.0\n.target sm_90\n.address_size 64
    ///     .visible .entry number(.param .u64 out) {
    ///         .reg .b32 %r<2>; .reg .b64 %rd<3>;
    ///         ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;
    ///         mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r1; ret;
    ///     }";
    /// let job = Job {
    ///     kernel: "number".to_owned(),
    ///     block: vec![64],
    ///     arguments: vec![Argument::New(4 * 64)],
    ///     ..Job::default()
    /// };
    /// let outputs = job.run_on(On::Auto, ptx)?;
    /// assert_eq!(outputs.buffers[0][4 * 63..], 63u32.to_le_bytes());
    /// # Ok::<(), anyhow::Error>(())
    /// ```
    ///
    /// # Errors
    /// No GPU where one is asked for, an error of its driver, a violation that the CPU finds, or a
    /// launch that the kernel does not take.
    pub fn run_on(&self, on: On, ptx: &str) -> Result<Outputs> {
        if on != On::Cpu {
            match gpu::open() {
                Ok(driver) => return gpu::run(self, &driver, ptx),
                Err(error) if on == On::Gpu => return Err(error),
                Err(_) => {}
            }
        }
        let program = Program::parse(ptx)?;
        let options = Options {
            workers: thread::available_parallelism().map_or(1, usize::from),
            ..Options::default()
        };
        let (_, buffers) = self.launch(&program, &options, &mut Chooser::of(&options))?;
        Ok(Outputs {
            on_gpu: false,
            buffers,
        })
    }
}

#[cfg(feature = "gpu")]
mod gpu {
    use anyhow::{Result, bail};

    use super::{Job, Outputs};
    use crate::driver::{Arguments, Driver, Launch};
    use crate::exec::Argument;

    pub fn open() -> Result<Driver> {
        Ok(Driver::open()?)
    }

    pub fn run(job: &Job, driver: &Driver, ptx: &str) -> Result<Outputs> {
        let (mut arguments, mut buffers) = (Arguments::new(), Vec::new());
        for argument in &job.arguments {
            let Some(bytes) = argument.contents()? else {
                let Argument::Value(bytes) = argument else {
                    bail!("expected a number or a buffer, found {argument:?}");
                };
                arguments = match **bytes {
                    [a, b, c, d] => arguments.u32(u32::from_le_bytes([a, b, c, d])),
                    [a, b, c, d, e, f, g, h] => {
                        arguments.u64(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
                    }
                    _ => bail!("expected a number of 4 or 8 bytes, found {}", bytes.len()),
                };
                continue;
            };
            let buffer = driver.upload(&bytes)?;
            arguments = arguments.pointer(&buffer);
            buffers.push(buffer);
        }
        let grid = job.grid()?;
        let launch = Launch {
            grid: grid.grid,
            block: grid.block,
            shared_bytes: grid.shared_bytes,
            cluster: grid.cluster,
            ..Launch::new(1, 1)
        };
        let module = driver.load(ptx.as_bytes())?;
        let function = module.function(&job.kernel)?;
        // SAFETY: the launch checks the sizes of the arguments; that the kernel stays within its buffers
        // is what whoever runs a kernel on a GPU vouches for.
        unsafe { function.launch(&launch, &arguments)? };
        driver.synchronize()?;
        let buffers = buffers.iter().map(|buffer| Ok(driver.download(buffer)?));
        Ok(Outputs {
            on_gpu: true,
            buffers: buffers.collect::<Result<_>>()?,
        })
    }
}

#[cfg(not(feature = "gpu"))]
mod gpu {
    use anyhow::{Result, bail};

    use super::{Job, Outputs};

    pub enum Never {}

    pub fn open() -> Result<Never> {
        bail!("expected the feature `gpu` of cuda-ptx-host for a launch on the GPU")
    }

    pub fn run(_: &Job, driver: &Never, _: &str) -> Result<Outputs> {
        match *driver {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::{Argument, Check, Violation};

    #[test]
    fn a_job_on_the_cpu_gives_its_buffers_or_the_mistake() {
        let ptx = ".version 8.0\n.target sm_90\n.address_size 64
            .visible .entry scale(.param .u64 data, .param .u32 factor, .param .u64 out) {
                .reg .b32 %r<5>; .reg .b64 %rd<6>;
                ld.param.u64 %rd1, [data]; ld.param.u32 %r1, [factor]; ld.param.u64 %rd2, [out];
                mov.u32 %r2, %tid.x; mul.wide.u32 %rd3, %r2, 4;
                add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
                ld.global.u32 %r3, [%rd4]; mul.lo.u32 %r4, %r3, %r1; st.global.u32 [%rd5], %r4; ret;
            }";
        let mut job = Job {
            kernel: "scale".to_owned(),
            block: vec![4],
            arguments: ["count:4", "u32:3", "new:16"]
                .map(|it| it.parse().unwrap())
                .into(),
            ..Job::default()
        };
        let outputs = job.run_on(On::Cpu, ptx).unwrap();
        let expected: Vec<u8> = [0u32, 3, 6, 9]
            .iter()
            .flat_map(|it| it.to_le_bytes())
            .collect();
        assert_eq!((outputs.on_gpu, &outputs.buffers[1]), (false, &expected));
        job.arguments[2] = Argument::New(8);
        let error = job.run_on(On::Cpu, ptx).unwrap_err();
        assert_eq!(
            error.downcast::<Violation>().unwrap().check,
            Check::OutOfBounds
        );
    }
}
