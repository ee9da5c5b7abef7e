//! How cargo is called for a kernel crate.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{Isa, KernelCrate};
use crate::toolchain;

const TARGET: &str = "nvptx64-nvidia-cuda";

/// Builds the crate's library as a `cdylib`, whose file is the PTX.
pub fn build(kernels: &KernelCrate) -> Result<PathBuf> {
    if !kernels.manifest.is_file() {
        bail!(
            "there is no manifest {}: expected the Cargo.toml of a kernel crate",
            kernels.manifest.display()
        );
    }
    let tools = toolchain::device()?;
    let target_dir = toolchain::target_dir().join("device").join(format!(
        "{}-ptx{}",
        kernels.arch,
        kernels.isa.number()
    ));
    fs::create_dir_all(&target_dir)
        .with_context(|| format!("cannot create {}", target_dir.display()))?;

    let mut command = Command::new(&tools.cargo);
    command
        .args([
            "rustc",
            "--lib",
            "--crate-type=cdylib",
            "-Zbuild-std=core",
            "--target",
            TARGET,
        ])
        .args([
            "--message-format",
            message_format(),
            "--profile",
            &kernels.profile,
        ])
        .arg("--manifest-path")
        .arg(&kernels.manifest)
        .arg("--target-dir")
        .arg(&target_dir)
        .env("RUSTC", &tools.rustc)
        .env("CARGO_ENCODED_RUSTFLAGS", rustflags(kernels).join("\x1f"))
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTUP_TOOLCHAIN")
        .stdout(Stdio::piped());
    if tools.bootstrap {
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    if !kernels.features.is_empty() {
        command.arg("--features").arg(kernels.features.join(","));
    }
    command.arg("--").args(link_arguments(kernels)?);
    if let Some(level) = kernels.opt_level {
        command.arg(format!("-Copt-level={level}"));
    }
    run(&mut command).with_context(|| {
        format!(
            "cannot build the kernel crate {}",
            kernels.manifest.display()
        )
    })
}

/// JSON messages, coloured where a person reads them.
fn message_format() -> &'static str {
    if std::io::stderr().is_terminal() {
        "json-diagnostic-rendered-ansi"
    } else {
        "json"
    }
}

/// The flags that every crate of the build gets, `core` included.
fn rustflags(kernels: &KernelCrate) -> Vec<String> {
    let rustc_isa = kernels.isa.min(Isa::LLVM_NEWEST);
    let mut flags = vec![
        "--cfg=cuda_ptx_link".to_owned(),
        format!("-Ctarget-cpu={}", kernels.arch.llvm_cpu()),
        format!("-Ctarget-feature=+ptx{}", rustc_isa.number()),
        // The link stage must see the code before any pass that may duplicate a barrier.
        "-Cno-prepopulate-passes".to_owned(),
        "-Zmir-enable-passes=-JumpThreading".to_owned(),
    ];
    // What this build may use, also where rustc has no target feature for it.
    flags.extend(
        crate::spec::included_architectures(&kernels.arch.to_string())
            .iter()
            .map(|name| format!("--cfg=cuda_ptx_sm=\"{name}\"")),
    );
    flags.extend(
        kernels
            .isa
            .and_older()
            .map(|isa| format!("--cfg=cuda_ptx_isa=\"{}\"", isa.number())),
    );
    flags
}

/// Makes this very program the linker, unless another is given. The stamp changes with the program,
/// so that cargo links again when the link stage is another.
fn link_arguments(kernels: &KernelCrate) -> Result<Vec<OsString>> {
    let linker = match &kernels.linker {
        Some(program) => program.clone(),
        None => crate::link::install()?,
    };
    let modified = fs::metadata(&linker)
        .with_context(|| format!("cannot find the linker {}", linker.display()))?
        .modified()?
        .duration_since(std::time::UNIX_EPOCH)?
        .as_nanos();
    let marking = if crate::link::convergence::is_marked() {
        ""
    } else {
        "-without-convergence"
    };
    let mut flag = OsString::from("-Clinker=");
    flag.push(linker);
    let mut arguments = vec![
        flag,
        format!("--cfg=cuda_ptx_link_stamp=\"{modified}{marking}\"").into(),
    ];
    if kernels.isa > Isa::LLVM_NEWEST {
        arguments.push(format!("-Clink-arg=--ptx-version={}", kernels.isa).into());
    }
    if kernels.arch.llvm_cpu() != kernels.arch.to_string() {
        arguments.push(format!("-Clink-arg=--ptx-target={}", kernels.arch).into());
    }
    Ok(arguments)
}

/// Runs cargo, prints the compiler's messages, and returns the PTX among the artifacts.
fn run(command: &mut Command) -> Result<PathBuf> {
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let output = BufReader::new(child.stdout.take().context("cargo has no output")?);
    let mut ptx = None;
    for line in output.lines() {
        let message: Value =
            serde_json::from_str(&line?).context("cargo wrote a message that is not JSON")?;
        match message["reason"].as_str() {
            Some("compiler-message") => print_message(&message["message"]),
            Some("compiler-artifact") => ptx = ptx_file(&message).or(ptx),
            _ => {}
        }
    }
    if !child.wait()?.success() {
        bail!("cargo failed; its messages are above");
    }
    ptx.context("cargo built no PTX: the crate has no library target")
}

/// rustc warns of each `ptxNN` target feature, which we must use and which is not the user's doing.
fn print_message(message: &Value) {
    let text = message["message"].as_str().unwrap_or_default();
    let ours = text.contains("unstable feature specified for `-Ctarget-feature`")
        || text.ends_with("warning emitted");
    if let (false, Some(rendered)) = (ours, message["rendered"].as_str()) {
        eprint!("{rendered}");
    }
}

fn ptx_file(artifact: &Value) -> Option<PathBuf> {
    let mut files = artifact["filenames"]
        .as_array()?
        .iter()
        .filter_map(Value::as_str);
    files.find(|file| file.ends_with(".ptx")).map(PathBuf::from)
}
