//! The driver module on machines without an NVIDIA driver, and with a fake one.
//!
//! Each test runs its job in a child process, with a libcuda.so.1 of the test's choice.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use cuda_ptx_host::driver::isolate::{self, ChildFailure, Isolate};
use cuda_ptx_host::driver::sanitizer::{Sanitizer, Tool};
use cuda_ptx_host::driver::*;
use serde::{Deserialize, Serialize};

/// Long enough for anything that ends at all.
const AMPLE: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
enum Job {
    Add(u32, u32),
    Fail,
    Panic,
    Hang,
    Abort,
    Exit(i32),
    Print(usize),
    /// The codes and texts of entry points called through cust.
    Entries,
    /// Opens the driver; the answer is its description.
    Open,
    Load(Vec<u8>),
    NoSuchKernel,
    Allocate(usize),
    Synchronize,
    Launch {
        shared_bytes: u32,
        cluster: Option<[u32; 3]>,
    },
    WrongArguments,
    TensorMaps,
}

/// The child's side: libtest starts it by name in the child, and it does nothing in the parent.
#[test]
fn child_side() {
    if std::env::var_os("CUDA_PTX_TEST_CHILD").is_some() {
        isolate::serve(perform);
    }
}

fn child() -> Isolate {
    Isolate::new(["--exact", "child_side", "--nocapture"]).env("CUDA_PTX_TEST_CHILD", "1")
}

fn perform(job: Job) -> Result<String> {
    match job {
        Job::Add(a, b) => return Ok((a + b).to_string()),
        Job::Fail => bail!("out of luck"),
        Job::Panic => panic!("out of order"),
        Job::Hang => loop {
            eprintln!("process {} is about to hang", std::process::id());
            std::thread::sleep(AMPLE);
        },
        Job::Abort => std::process::abort(),
        Job::Exit(code) => std::process::exit(code),
        Job::Print(lines) => {
            (0..lines).for_each(|line| println!("line {line}"));
            bail!("printed");
        }
        Job::Entries => return Ok(entries()),
        _ => {}
    }
    let driver = Driver::open()?;
    match job {
        Job::Load(image) => drop(driver.load(&image)?),
        Job::NoSuchKernel => drop(driver.load(b"image")?.function("absent")?),
        Job::Allocate(bytes) => drop(driver.zeroed::<u8>(bytes)?),
        Job::Synchronize => driver
            .synchronize()
            .context("while waiting for the kernel")?,
        Job::Launch {
            shared_bytes,
            cluster,
        } => return launch(&driver, shared_bytes, cluster),
        Job::WrongArguments => {
            let module = driver.load(b"image")?;
            let arguments = Arguments::new().u64(0).f32(0.0);
            // SAFETY: the fake driver is not reached.
            unsafe {
                module
                    .function("probe")?
                    .launch(&Launch::new(1, 1), &arguments)?
            };
        }
        Job::TensorMaps => return tensor_maps(&driver),
        _ => {}
    }
    Ok(format!(
        "{}, CUDA {}, compute capability {}, {} SMs",
        driver.gpu_name()?,
        driver.cuda_version(),
        driver.compute_capability()?,
        driver.sm_count()?
    ))
}

fn entries() -> String {
    use cust::sys;
    let mut address = 0;
    // SAFETY: the pointers are valid; the entry points answer with a code.
    let (early, late) = unsafe {
        let early = sys::cuMemAlloc_v2(&mut address, 1);
        sys::cuInit(0);
        (early, sys::cuMemAlloc_v2(&mut address, 1))
    };
    let cust = cust::init(cust::CudaFlags::empty()).map_err(|error| error.to_string());
    format!("{early:?} {late:?} {cust:?}")
}

fn launch(driver: &Driver, shared_bytes: u32, cluster: Option<[u32; 3]>) -> Result<String> {
    let module = driver.load(b"image")?;
    let probe = module.function("probe")?;
    let out = driver.zeroed::<u32>(16)?;
    let map = TensorMap([77; 16]);
    let arguments = Arguments::new()
        .pointer(&out)
        .f32(2.5)
        .tensor_map(map)
        .u32(9);
    let launch = Launch {
        cluster,
        ..Launch::new((5, 6, 7), (32, 2)).shared(shared_bytes)
    };
    // SAFETY: the arguments are those of `probe`.
    let ms = unsafe { probe.time_launch(&launch, &arguments)? };
    ensure!(ms == 1.25, "{ms} ms");
    Ok(format!("{:?}", driver.download(&out)?))
}

fn tensor_maps(driver: &Driver) -> Result<String> {
    use cust::memory::DevicePointer;
    let address = DevicePointer::<u16>::from_raw(0x4000);
    let tiled = TensorMapBuilder::tiled(DataType::Bf16, address, &[640, 480], &[64, 8])
        .strides(&[2048])
        .element_strides(&[1, 2])
        .swizzle(Swizzle::Bytes128)
        .l2_promotion(L2Promotion::Bytes256)
        .out_of_bounds(OutOfBounds::Nan)
        .encode(driver)?;
    let corners = (&[-1][..], &[1][..]);
    let im2col = TensorMapBuilder::im2col(DataType::F16, address, &[64, 20, 4], corners, 32, 128)
        .encode(driver)?;
    Ok(format!("{:?} {:?}", &tiled.0[..14], &im2col.0[..14]))
}

/// Folders to put in LD_LIBRARY_PATH, each with a libcuda.so.1.
struct Libraries {
    _dir: tempfile::TempDir,
    /// A driver like a current one.
    current: PathBuf,
    /// A driver without cuLaunchKernelEx.
    old: PathBuf,
    /// A file that is no library: as on a machine without a driver, also where there is one.
    none: PathBuf,
}

fn libraries() -> &'static Libraries {
    static LIBRARIES: OnceLock<Libraries> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let [current, old, none] = ["current", "old", "none"].map(|name| {
            let folder = dir.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            folder
        });
        compile(&current, &[]);
        compile(&old, &["-DOLD"]);
        std::fs::write(none.join("libcuda.so.1"), "no library").unwrap();
        Libraries {
            _dir: dir,
            current,
            old,
            none,
        }
    })
}

fn compile(folder: &Path, flags: &[&str]) {
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(folder.join("libcuda.so.1"))
        .args(flags)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_driver.c"))
        .status()
        .expect("a C compiler named cc");
    assert!(status.success());
}

fn with_library(
    folder: &Path,
    variables: &[(&str, &str)],
    job: &Job,
) -> Result<String, ChildFailure> {
    let child = child().env("LD_LIBRARY_PATH", folder);
    let child = variables
        .iter()
        .fold(child, |child, (name, value)| child.env(name, value));
    child.run(job, AMPLE)
}

/// The message of a job that fails.
fn message(folder: &Path, variables: &[(&str, &str)], job: &Job) -> String {
    let failure = with_library(folder, variables, job).expect_err("the job fails");
    assert!(
        matches!(
            failure,
            ChildFailure::Driver { .. } | ChildFailure::Failed { .. }
        ),
        "{failure}"
    );
    failure.headline()
}

#[test]
fn a_child_answers() {
    assert_eq!(child().run(&Job::Add(2, 3), AMPLE), Ok("5".to_owned()));
}

#[test]
fn an_error_of_the_job_is_reported() {
    let failure = child().run::<_, String>(&Job::Fail, AMPLE).unwrap_err();
    assert!(matches!(&failure, ChildFailure::Failed { message, .. } if message == "out of luck"));
}

#[test]
fn a_hanging_child_is_killed_at_the_limit() {
    let start = Instant::now();
    let limit = Duration::from_secs(1);
    let failure = child().run::<_, String>(&Job::Hang, limit).unwrap_err();
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
    let ChildFailure::Hung {
        after,
        gone: true,
        output,
    } = &failure
    else {
        panic!("{failure}");
    };
    assert_eq!(*after, limit);
    assert!(output.contains("about to hang"), "{output}");
    assert!(
        failure
            .to_string()
            .starts_with("hung: expected an answer within 1s"),
        "{failure}"
    );
}

#[test]
fn a_signal_a_panic_and_an_exit_are_told_apart() {
    let failure = |job| child().run::<_, String>(&job, AMPLE).unwrap_err();
    assert!(failure(Job::Abort).headline().contains("SIGABRT"));
    assert!(matches!(
        failure(Job::Exit(3)),
        ChildFailure::Exited { code: 3, .. }
    ));
    assert!(matches!(
        failure(Job::Exit(0)),
        ChildFailure::Exited { code: 0, .. }
    ));
    let ChildFailure::Exited { code: 101, output } = failure(Job::Panic) else {
        panic!("a panic exits with 101");
    };
    assert!(output.contains("out of order"), "{output}");
}

fn under_a_sanitizer() -> Isolate {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_sanitizer.sh");
    child().under(&Sanitizer::at(program, Tool::Memcheck))
}

#[test]
fn what_a_sanitizer_finds_is_a_failure_of_a_job_that_is_done() {
    let quiet = under_a_sanitizer();
    assert_eq!(quiet.run(&Job::Add(2, 3), AMPLE), Ok("5".to_owned()));
    let loud = under_a_sanitizer().env("FAKE_SANITIZER_FINDS", "1");
    let failure = loud.run::<_, String>(&Job::Add(2, 3), AMPLE).unwrap_err();
    assert!(
        matches!(&failure, ChildFailure::Sanitizer { output } if output.contains("Invalid")),
        "{failure}"
    );
}

#[test]
fn a_child_that_hangs_under_a_sanitizer_is_killed_with_it() {
    let failure = under_a_sanitizer()
        .run::<_, String>(&Job::Hang, Duration::from_secs(1))
        .unwrap_err();
    assert!(matches!(failure, ChildFailure::Hung { .. }), "{failure}");
    let process = failure.output().split_once("process ").unwrap().1;
    let process = process.split(' ').next().unwrap();
    // Nobody may be there to wait for it: then it stays as a zombie.
    let lives = || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z"))
    };
    let start = Instant::now();
    while lives() {
        assert!(
            start.elapsed() < AMPLE,
            "process {process} goes on: {failure}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_answer_of_another_type_is_reported() {
    let failure = child().run::<_, u32>(&Job::Add(2, 3), AMPLE).unwrap_err();
    assert!(
        matches!(failure, ChildFailure::BadAnswer { .. }),
        "{failure}"
    );
}

#[test]
fn much_output_is_cut_to_its_end() {
    let failure = child()
        .run::<_, String>(&Job::Print(100_000), AMPLE)
        .unwrap_err();
    assert!(failure.output().len() <= 4 << 10);
    assert!(failure.output().ends_with("line 99999\n"), "{failure}");
}

#[test]
fn a_large_job_reaches_the_child() {
    let image = vec![b'x'; 1 << 20];
    let failure = with_library(&libraries().none, &[], &Job::Load(image)).unwrap_err();
    assert!(
        failure.headline().starts_with("no NVIDIA driver"),
        "{failure}"
    );
}

#[test]
fn serve_by_hand_says_so() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_side", "--nocapture"])
        .env("CUDA_PTX_TEST_CHILD", "1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("started by the program itself"));
}

#[test]
fn this_program_needs_no_libcuda() {
    // With this variable glibc's loader lists the libraries that a program needs, as ldd does.
    let listing = Command::new(std::env::current_exe().unwrap())
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .output()
        .unwrap();
    let needed = String::from_utf8(listing.stdout).unwrap();
    assert!(needed.contains("libc.so"), "{needed}");
    assert!(!needed.contains("libcuda"), "{needed}");
}

#[test]
fn without_a_driver_entry_points_answer_with_the_documented_codes() {
    let answer = with_library(&libraries().none, &[], &Job::Entries).unwrap();
    let (codes, text) = answer.split_once(" Err(").unwrap();
    assert_eq!(codes, "CUDA_ERROR_NOT_INITIALIZED CUDA_ERROR_STUB_LIBRARY");
    assert!(
        text.contains("no NVIDIA driver") && text.contains("libcuda.so.1"),
        "{text}"
    );
}

#[test]
fn entry_points_lead_to_the_driver() {
    let codes = [("FAKE_cuMemAlloc_v2", "2")];
    let answer = with_library(&libraries().current, &codes, &Job::Entries).unwrap();
    assert_eq!(
        answer,
        "CUDA_ERROR_NOT_INITIALIZED CUDA_ERROR_OUT_OF_MEMORY Ok(())"
    );
}

#[test]
fn without_a_driver_open_says_so_in_one_line() {
    let message = message(&libraries().none, &[], &Job::Open);
    assert!(
        message.starts_with("no NVIDIA driver: expected libcuda.so.1, found none ("),
        "{message}"
    );
    assert!(!message.contains('\n'), "{message}");
}

#[test]
fn without_a_gpu_open_says_so() {
    let message = message(&libraries().current, &[("FAKE_cuInit", "100")], &Job::Open);
    assert!(
        message.starts_with("no NVIDIA GPU: expected at least one, found a driver (CUDA 13.0)"),
        "{message}"
    );
}

#[test]
fn an_old_driver_is_refused() {
    let expected = "NVIDIA driver too old: expected CUDA 12.0 or newer, found CUDA 11.4";
    for folder in [&libraries().old, &libraries().current] {
        let message = message(folder, &[("FAKE_VERSION", "11040")], &Job::Open);
        assert!(message.starts_with(expected), "{message}");
    }
    let message = message(&libraries().old, &[], &Job::Open);
    assert!(
        message.contains("found CUDA 13.0 (without cuLaunchKernelEx)"),
        "{message}"
    );
}

#[test]
fn a_driver_that_does_not_start_is_named_by_its_code() {
    let failure =
        with_library(&libraries().current, &[("FAKE_cuInit", "803")], &Job::Open).unwrap_err();
    let ChildFailure::Driver { error, .. } = &failure else {
        panic!("{failure}");
    };
    assert_eq!(
        (error.code, &*error.name),
        (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")
    );
    assert!(
        failure
            .headline()
            .starts_with("the NVIDIA driver did not start: cuInit:"),
        "{failure}"
    );
}

#[test]
fn the_gpu_is_described() {
    let answer = with_library(&libraries().current, &[], &Job::Open);
    assert_eq!(
        answer.unwrap(),
        "Fake H200, CUDA 13.0, compute capability 9.0, 132 SMs"
    );
}

#[test]
fn rejected_ptx_comes_with_the_compilers_words() {
    let job = Job::Load(b".version 8.0\n.target sm_90\n".to_vec());
    let message = message(
        &libraries().current,
        &[("FAKE_cuModuleLoadDataEx", "218")],
        &job,
    );
    assert!(
        message.starts_with("cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218)"),
        "{message}"
    );
    assert!(
        message.contains("the image is PTX .version 8.0 for sm_90"),
        "{message}"
    );
    assert!(
        message.ends_with("\nptxas: line 7: unknown `.ver`"),
        "{message}"
    );
}

#[test]
fn ptx_newer_than_the_driver_and_code_for_another_gpu_are_named() {
    let job = Job::Load(b".version 9.5\n.target sm_100a\n".to_vec());
    let load = |code| {
        message(
            &libraries().current,
            &[("FAKE_cuModuleLoadDataEx", code)],
            &job,
        )
    };
    let newer = load("222");
    assert!(
        newer.contains("CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
        "{newer}"
    );
    assert!(
        newer.contains("CUDA 13.0 compiles, found PTX .version 9.5"),
        "{newer}"
    );
    let other = load("209");
    assert!(
        other.contains("expected code for compute capability 9.0, found PTX"),
        "{other}"
    );
    assert!(other.contains("for sm_100a"), "{other}");
}

#[test]
fn an_absent_kernel_is_named() {
    let message = message(&libraries().current, &[], &Job::NoSuchKernel);
    assert!(message.contains("CUDA_ERROR_NOT_FOUND"), "{message}");
    assert!(
        message.contains("no kernel `absent` in the module"),
        "{message}"
    );
}

#[test]
fn out_of_memory_says_how_much_was_asked_for_and_is_free() {
    let job = Job::Allocate(4096);
    let message = message(&libraries().current, &[("FAKE_cuMemAlloc_v2", "2")], &job);
    assert!(message.contains("CUDA_ERROR_OUT_OF_MEMORY"), "{message}");
    assert!(
        message.contains("4096 bytes asked for, 1000 bytes free of 2000"),
        "{message}"
    );
}

#[test]
fn a_fault_is_named_also_where_cust_does_not_know_its_code() {
    for (code, name) in [
        ("700", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("721", "CUDA_ERROR_TENSOR_MEMORY_LEAK"),
    ] {
        let codes = [("FAKE_cuStreamSynchronize", code)];
        let failure = with_library(&libraries().current, &codes, &Job::Synchronize).unwrap_err();
        let ChildFailure::Driver { error, message, .. } = &failure else {
            panic!("{failure}");
        };
        assert_eq!(&*error.name, name);
        assert!(error.is_sticky());
        assert!(
            message.starts_with("while waiting for the kernel: cuStreamSynchronize:"),
            "{message}"
        );
    }
    let codes = [("FAKE_cuStreamSynchronize", "12345")];
    let unknown = message(&libraries().current, &codes, &Job::Synchronize);
    assert!(
        unknown.contains("an error without a name (12345)"),
        "{unknown}"
    );
}

#[test]
fn a_launch_passes_its_shape_and_arguments() {
    let job = Job::Launch {
        shared_bytes: 0,
        cluster: None,
    };
    let answer = with_library(&libraries().current, &[], &job).unwrap();
    assert_eq!(
        answer,
        "[5, 6, 7, 32, 2, 1, 0, 1, 0, 0, 0, 0, 25, 77, 0, 9]"
    );
    let job = Job::Launch {
        shared_bytes: 100_000,
        cluster: Some([1, 2, 1]),
    };
    let answer = with_library(&libraries().current, &[], &job).unwrap();
    assert_eq!(
        answer,
        "[5, 6, 7, 32, 2, 1, 100000, 1, 4, 1, 2, 1, 25, 77, 0, 9]"
    );
}

#[test]
fn more_shared_memory_than_a_block_may_have_is_refused_with_the_limit() {
    let job = Job::Launch {
        shared_bytes: 232_448,
        cluster: None,
    };
    let message = message(&libraries().current, &[], &job);
    assert!(
        message.contains("232448 bytes of dynamic and 101 of static shared memory"),
        "{message}"
    );
    assert!(
        message.contains("a block may have 232448 in all"),
        "{message}"
    );
}

#[test]
fn arguments_that_do_not_fit_the_parameters_are_refused() {
    let message = message(&libraries().current, &[], &Job::WrongArguments);
    assert!(
        message.contains("takes parameters of [8, 4, 128, 4] bytes, given are [8, 4] bytes"),
        "{message}"
    );
}

#[test]
fn tensor_maps_are_encoded_with_the_arguments_in_order() {
    let answer = with_library(&libraries().current, &[], &Job::TensorMaps).unwrap();
    assert_eq!(
        answer,
        "[9, 2, 16384, 640, 480, 2048, 64, 8, 1, 2, 0, 3, 3, 1] \
         [6, 3, 16384, 4, 2560, 18446744073709551615, 1, 32, 128, 1, 0, 0, 0, 0]"
    );
}
