//! How cargo is called for a kernel crate.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{Isa, KernelCrate};
use crate::{link, toolchain};

const TARGET: &str = "nvptx64-nvidia-cuda";

/// Builds the crate's library as a `cdylib`, whose file is the PTX.
///
/// Cargo gives that file no hash in its name, so crates of one name that share a target folder
/// overwrite each other's. The link stage therefore writes a copy to a place of this build alone.
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

    let linker = match &kernels.linker {
        Some(program) => program.clone(),
        None => link::install()?,
    };
    let ptx = ptx_path(kernels)?;

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
        .env(link::COPY, &ptx)
        .env("CARGO_ENCODED_RUSTFLAGS", rustflags(kernels).join("\x1f"))
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTUP_TOOLCHAIN")
        // Set where a build script runs under `cargo clippy`: another compiler than `RUSTC`.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .stdout(Stdio::piped());
    if tools.bootstrap {
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    if !kernels.features.is_empty() {
        command.arg("--features").arg(kernels.features.join(","));
    }
    if kernels.unmarked {
        command.env(link::convergence::SWITCH, "1");
    }
    command
        .arg("--")
        .arg(linker_argument(&linker))
        .args(header_arguments(kernels))
        .arg(link_stamp(kernels, &linker, &ptx)?);
    if let Some(level) = kernels.opt_level {
        command.arg(format!("-Copt-level={level}"));
    }
    run(&mut command).with_context(|| {
        format!(
            "cannot build the kernel crate {}",
            kernels.manifest.display()
        )
    })?;
    if !ptx.is_file() {
        bail!(
            "cargo built no PTX of {}: expected a library crate",
            kernels.manifest.display()
        );
    }
    Ok(ptx)
}

/// Where the PTX of this build and no other lies.
fn ptx_path(kernels: &KernelCrate) -> Result<PathBuf> {
    let manifest = kernels.manifest.canonicalize()?;
    let mut hasher = DefaultHasher::new();
    (&manifest, kernels.arch, kernels.isa, &kernels.profile).hash(&mut hasher);
    (kernels.opt_level, &kernels.features).hash(&mut hasher);
    is_marked(kernels).hash(&mut hasher);
    let folder = format!("{:016x}", hasher.finish());
    let name = manifest.parent().and_then(Path::file_name);
    let name = Path::new(name.unwrap_or(OsStr::new("kernels"))).with_added_extension("ptx");
    Ok(toolchain::target_dir()
        .join("device/ptx")
        .join(folder)
        .join(name))
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
    let mut flags = target_flags(kernels);
    flags.extend([
        // The link stage must see the code before any pass that may duplicate a barrier.
        "-Cno-prepopulate-passes".to_owned(),
        "-Zmir-enable-passes=-JumpThreading".to_owned(),
    ]);
    flags
}

/// Those of the flags that name the target, and what the build may use of it.
pub fn target_flags(kernels: &KernelCrate) -> Vec<String> {
    let rustc_isa = kernels.isa.min(Isa::LLVM_NEWEST);
    let mut flags = vec![
        "--cfg=cuda_ptx_link".to_owned(),
        format!("-Ctarget-cpu={}", kernels.arch.llvm_cpu()),
        format!("-Ctarget-feature=+ptx{}", rustc_isa.number()),
    ];
    // Also where rustc has no target feature for it.
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

/// What the PTX's header must say, where that is newer than what rustc and LLVM know.
fn header_arguments(kernels: &KernelCrate) -> Vec<String> {
    let mut arguments = Vec::new();
    if kernels.isa > Isa::LLVM_NEWEST {
        arguments.push(format!("-Clink-arg=--ptx-version={}", kernels.isa));
    }
    if kernels.arch.llvm_cpu() != kernels.arch.to_string() {
        arguments.push(format!("-Clink-arg=--ptx-target={}", kernels.arch));
    }
    arguments
}

/// For this crate alone: cargo would build `core` again for another linker of the target.
fn linker_argument(linker: &Path) -> OsString {
    let mut argument = OsString::from("-Clinker=");
    argument.push(linker);
    argument
}

fn is_marked(kernels: &KernelCrate) -> bool {
    !kernels.unmarked && link::convergence::is_marked()
}

/// An argument that changes with the link stage, and while its output is missing, so that cargo links
/// again.
fn link_stamp(kernels: &KernelCrate, linker: &Path, ptx: &Path) -> Result<String> {
    let since_epoch = |time: SystemTime| time.duration_since(UNIX_EPOCH).map(|t| t.as_nanos());
    let modified = fs::metadata(linker)
        .with_context(|| format!("cannot find the linker {}", linker.display()))?
        .modified()?;
    let missing = match ptx.is_file() {
        true => String::new(),
        false => format!("-{}", since_epoch(SystemTime::now())?),
    };
    let marking = match is_marked(kernels) {
        true => "",
        false => "-without-convergence",
    };
    let modified = since_epoch(modified)?;
    Ok(format!(
        "--cfg=cuda_ptx_link_stamp=\"{modified}{marking}{missing}\""
    ))
}

/// Runs cargo and prints the compiler's messages.
fn run(command: &mut Command) -> Result<()> {
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let output = BufReader::new(child.stdout.take().context("cargo has no output")?);
    for line in output.lines() {
        let message: Value =
            serde_json::from_str(&line?).context("cargo wrote a message that is not JSON")?;
        if message["reason"] == "compiler-message" {
            print_message(&message["message"]);
        }
    }
    if !child.wait()?.success() {
        bail!("cargo failed; its messages are above");
    }
    Ok(())
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
