//! The driver module on a GPU of compute capability 9.0 or newer: `cargo xtask test` includes these
//! tests where there is a GPU, and the bundle carries them to one.

use std::time::Duration;

use anyhow::Result;
use cuda_ptx_host::driver::isolate::{self, ChildFailure, Isolate};
use cuda_ptx_host::driver::*;
use cust::memory::DevicePointer;
use serde::{Deserialize, Serialize};

/// Long enough for the driver to start and any of these kernels to end.
const AMPLE: Duration = Duration::from_secs(60);

const KERNELS: &str = include_str!("gpu.ptx");

#[derive(Serialize, Deserialize)]
enum Job {
    Scale,
    Spin,
    Poke(u64),
    PokeMisaligned,
    Cluster,
    LastWord(u32),
    Tile,
    TooManyArguments,
    Load(String),
    Allocate(usize),
}

/// The child's side: libtest starts it by name in the child, and it does nothing in the parent.
#[test]
fn child_side() {
    if std::env::var_os("CUDA_PTX_TEST_CHILD").is_some() {
        isolate::serve(perform);
    }
}

fn run(job: Job, limit: Duration) -> Result<String, ChildFailure> {
    Isolate::new(["--exact", "child_side", "--nocapture"])
        .env("CUDA_PTX_TEST_CHILD", "1")
        .run(&job, limit)
}

fn perform(job: Job) -> Result<String> {
    let driver = Driver::open()?;
    if let Job::Load(ptx) = job {
        driver.load(ptx.as_bytes())?;
        return Ok(String::new());
    }
    let module = driver.load(KERNELS.as_bytes())?;
    let launch = |name: &str, launch: Launch, arguments: &Arguments| -> Result<f32> {
        let kernel = module.function(name)?;
        // SAFETY: the arguments are those of the kernel's parameters in gpu.ptx.
        Ok(unsafe { kernel.time_launch(&launch, arguments)? })
    };
    match job {
        Job::Load(_) => unreachable!("answered above"),
        Job::Scale => {
            let data: Vec<f32> = (0..1000u16).map(f32::from).collect();
            let x = driver.upload(&data)?;
            let arguments = Arguments::new().pointer(&x).f32(3.0).u32(999);
            let ms = launch("scale", Launch::new(4, 256), &arguments)?;
            let x = driver.download(&x)?;
            let scaled = (0..999).all(|i| x[i] == 3.0 * data[i]) && x[999] == data[999];
            let attributes = module.function("scale")?.attributes()?;
            Ok(format!(
                "{scaled} {} {}",
                ms > 0.0,
                attributes.registers > 0
            ))
        }
        Job::Spin => {
            let flag = driver.zeroed::<u32>(1)?;
            launch("spin", Launch::new(1, 1), &Arguments::new().pointer(&flag))?;
            Ok(String::new())
        }
        Job::Poke(address) => {
            launch("poke", Launch::new(1, 1), &Arguments::new().u64(address))?;
            Ok(String::new())
        }
        Job::PokeMisaligned => {
            let word = driver.zeroed::<u64>(1)?;
            let address = word.as_device_ptr().as_raw() + 1;
            launch("poke", Launch::new(1, 1), &Arguments::new().u64(address))?;
            Ok(String::new())
        }
        Job::Cluster => {
            let out = driver.zeroed::<u32>(4)?;
            let shape = Launch::new(4, 1).cluster([2, 1, 1]);
            launch("cluster", shape, &Arguments::new().pointer(&out))?;
            Ok(format!("{:?}", driver.download(&out)?))
        }
        Job::LastWord(bytes) => {
            let out = driver.zeroed::<u32>(1)?;
            let arguments = Arguments::new().pointer(&out).u32(bytes);
            launch("last_word", Launch::new(1, 1).shared(bytes), &arguments)?;
            Ok(format!("{:?}", driver.download(&out)?))
        }
        Job::Tile => {
            let data: Vec<f32> = (0..32 * 16u16).map(f32::from).collect();
            let matrix = driver.upload(&data)?;
            let address: DevicePointer<f32> = matrix.as_device_ptr();
            let map = TensorMapBuilder::tiled(DataType::F32, address, &[32, 16], &[8, 8])
                .encode(&driver)?;
            let out = driver.zeroed::<f32>(64)?;
            let arguments = Arguments::new().tensor_map(map).pointer(&out);
            launch("tile", Launch::new(1, 64), &arguments)?;
            let expected: Vec<f32> = (0..64)
                .map(|i| data[(4 + i / 8) * 32 + 8 + i % 8])
                .collect();
            Ok((driver.download(&out)? == expected).to_string())
        }
        Job::TooManyArguments => {
            let arguments = Arguments::new().u64(0).u32(0);
            launch("spin", Launch::new(1, 1), &arguments)?;
            Ok(String::new())
        }
        Job::Allocate(bytes) => {
            driver.zeroed::<u8>(bytes)?;
            Ok(String::new())
        }
    }
}

/// The name of the driver's error in a job, and its message.
fn driver_failure(job: Job) -> (String, String) {
    match run(job, AMPLE) {
        Err(ChildFailure::Driver { error, message, .. }) => (error.name.into(), message),
        other => panic!("expected an error of the driver, found {other:?}"),
    }
}

#[test]
#[ignore = "needs a GPU"]
fn a_kernel_computes_and_is_timed() {
    assert_eq!(run(Job::Scale, AMPLE).unwrap(), "true true true");
}

#[test]
#[ignore = "needs a GPU"]
fn a_kernel_that_hangs_is_killed_and_the_next_one_runs() {
    let failure = run(Job::Spin, Duration::from_secs(10)).unwrap_err();
    assert!(matches!(failure, ChildFailure::Hung { .. }), "{failure}");
    assert_eq!(run(Job::Scale, AMPLE).unwrap(), "true true true");
}

#[test]
#[ignore = "needs a GPU"]
fn a_kernel_that_faults_is_named_and_the_next_one_runs() {
    assert_eq!(
        driver_failure(Job::Poke(16)).0,
        "CUDA_ERROR_ILLEGAL_ADDRESS"
    );
    assert_eq!(
        driver_failure(Job::PokeMisaligned).0,
        "CUDA_ERROR_MISALIGNED_ADDRESS"
    );
    assert_eq!(run(Job::Scale, AMPLE).unwrap(), "true true true");
}

#[test]
#[ignore = "needs a GPU"]
fn a_cluster_is_launched() {
    assert_eq!(run(Job::Cluster, AMPLE).unwrap(), "[2, 2, 2, 2]");
}

#[test]
#[ignore = "needs a GPU"]
fn dynamic_shared_memory_goes_beyond_48_kib_up_to_the_limit() {
    // Just beyond: the kernel has 16 bytes of its own.
    assert_eq!(run(Job::LastWord(48 << 10), AMPLE).unwrap(), "[42]");
    assert_eq!(run(Job::LastWord(100 << 10), AMPLE).unwrap(), "[42]");
    let (_, message) = driver_failure(Job::LastWord(1 << 20));
    assert!(
        message.contains("1048576 bytes of dynamic and 16 of static shared memory"),
        "{message}"
    );
}

#[test]
#[ignore = "needs a GPU"]
fn a_tensor_map_reaches_the_kernel() {
    assert_eq!(run(Job::Tile, AMPLE).unwrap(), "true");
}

#[test]
#[ignore = "needs a GPU"]
fn arguments_that_do_not_fit_are_refused() {
    let (_, message) = driver_failure(Job::TooManyArguments);
    assert!(
        message.contains("takes parameters of [8] bytes, given are [8, 4] bytes"),
        "{message}"
    );
}

#[test]
#[ignore = "needs a GPU"]
fn bad_ptx_is_explained() {
    let header = ".target sm_90\n.address_size 64\n";
    let load =
        |version, body| driver_failure(Job::Load(format!(".version {version}\n{header}{body}")));
    let (name, message) = load("8.0", ".visible .entry k() { nonsense; }");
    assert_eq!(name, "CUDA_ERROR_INVALID_PTX");
    assert!(
        message.contains("ptxas") && message.contains("line 4"),
        "{message}"
    );
    let (name, message) = load("99.0", ".visible .entry k() { ret; }");
    assert_eq!(name, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
    assert!(
        message.contains("found PTX .version 99.0 for sm_90"),
        "{message}"
    );
}

#[test]
#[ignore = "needs a GPU"]
fn out_of_memory_says_what_is_free() {
    let (name, message) = driver_failure(Job::Allocate(1 << 50));
    assert_eq!(name, "CUDA_ERROR_OUT_OF_MEMORY");
    assert!(
        message.contains("1125899906842624 bytes asked for"),
        "{message}"
    );
}
