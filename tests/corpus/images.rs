//! The corpus, built in the ways that the tests compare.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use cuda_ptx_host::build::{self, Arch, KernelCrate};
use cuda_ptx_host::inspect::sass;
use cuda_ptx_host::toolchain;

/// One build at a time: they share cargo's target folder.
static BUILDING: Mutex<()> = Mutex::new(());

/// The corpus for an architecture: with tensor memory, only the kernels on that.
fn corpus(arch: Arch) -> KernelCrate {
    let kernels = KernelCrate::new(manifest(), arch);
    match feature(arch) {
        Some(feature) => kernels.feature(feature),
        None => kernels,
    }
}

fn feature(arch: Arch) -> Option<&'static str> {
    (arch.number >= 100).then_some("sm_100a")
}

fn manifest() -> PathBuf {
    toolchain::workspace_root().join("ptx/corpus/Cargo.toml")
}

/// Through the link stage: the PTX. Level 0 is the debug profile.
pub fn linked(arch: Arch, level: char) -> Result<String> {
    build(corpus(arch), level)
}

/// Through the link stage, which does not mark what is convergent.
pub fn unmarked(arch: Arch, level: char) -> Result<String> {
    build(corpus(arch).without_convergence(), level)
}

fn build(kernels: KernelCrate, level: char) -> Result<String> {
    let kernels = kernels
        .linker(env!("CARGO_BIN_EXE_cuda-ptx-link"))
        .opt_level(level)
        .profile(if level == '0' { "dev" } else { "release" });
    let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    read(&kernels.ptx()?)
}

/// What ptxas makes of PTX.
pub fn assembled(arch: Arch, ptx: &str) -> Result<Vec<sass::Function>> {
    let folder = tempfile::tempdir()?;
    let (text, cubin) = (folder.path().join("ptx"), folder.path().join("cubin"));
    std::fs::write(&text, ptx)?;
    build::cubin(&text, arch, &cubin)?;
    sass::disassemble(&toolchain::cuda()?.nvdisasm, &cubin)
}

/// Through rustc alone: its own passes, its own LLVM, no link stage.
pub fn plain(arch: Arch, level: char) -> Result<String> {
    let tools = toolchain::device()?;
    let folder = tempfile::tempdir()?;
    let ptx = folder.path().join("corpus.ptx");
    let target_dir = toolchain::target_dir()
        .join("device")
        .join(format!("{arch}-plain-rustc"));
    let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(&tools.cargo);
    command
        .args([
            "rustc",
            "--quiet",
            "--lib",
            "--crate-type=rlib",
            "--release",
        ])
        .args(["-Zbuild-std=core", "--target", "nvptx64-nvidia-cuda"])
        .arg("--manifest-path")
        .arg(manifest())
        .arg("--target-dir")
        .arg(&target_dir)
        .env("RUSTC", &tools.rustc)
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            corpus(arch).target_flags().join("\x1f"),
        )
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTUP_TOOLCHAIN");
    if tools.bootstrap {
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    command.args(feature(arch).map(|feature| format!("--features={feature}")));
    command
        .args(["--", "-Ccodegen-units=1"])
        .arg(format!("-Copt-level={level}"))
        .arg(format!("--emit=asm={}", ptx.display()));
    run(&mut command)?;
    Ok(without_texts(&read(&ptx)?))
}

/// With a word for each text that the link stage would have put into an instruction: `.kind::<text 34>`.
fn without_texts(ptx: &str) -> String {
    let mut pieces = ptx.split("<text ");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (_, rest) = piece.split_once('>').expect("a text has an end");
        out.push_str("text");
        out.push_str(rest);
    }
    out
}

fn read(ptx: &Path) -> Result<String> {
    std::fs::read_to_string(ptx).with_context(|| format!("cannot read {}", ptx.display()))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().context("cannot start the build")?;
    if !output.status.success() {
        bail!("{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
