//! Kernel crates → PTX or cubin, and their C++ twins.
//!
//! ```no_run
//! use cuda_ptx_host::build::{Arch, KernelCrate, cubin};
//!
//! # fn main() -> anyhow::Result<()> {
//! let ptx = KernelCrate::new("kernels/Cargo.toml", Arch::SM_90A).ptx()?;
//! cubin(&ptx, Arch::SM_90A, "kernels.cubin")?;
//! # Ok(())
//! # }
//! ```

mod arch;
mod cargo;
mod cpp;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

pub use arch::{Arch, Isa};
pub use cpp::CppTwin;

use crate::toolchain;

/// Writes a source, unless it is there: a file that keeps its time of change also keeps cargo from building again.
pub(crate) fn write_if_changed(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// A Rust crate of kernels and how to build it.
#[derive(Debug, Clone)]
pub struct KernelCrate {
    manifest: PathBuf,
    arch: Arch,
    isa: Isa,
    profile: String,
    opt_level: Option<char>,
    features: Vec<String>,
    linker: Option<PathBuf>,
    unmarked: bool,
}

impl KernelCrate {
    /// The crate of this `Cargo.toml`, in the release profile, for the PTX ISA version that is the
    /// newest rustc knows or the first that has the architecture, whichever is higher.
    pub fn new(manifest: impl Into<PathBuf>, arch: Arch) -> Self {
        Self {
            manifest: manifest.into(),
            arch,
            isa: Isa::RUSTC_NEWEST.max(arch.first_isa()),
            profile: "release".to_owned(),
            opt_level: None,
            features: Vec::new(),
            linker: None,
            unmarked: false,
        }
    }

    /// The PTX ISA version: forms that need a newer one do not exist in this build, and the driver
    /// must know it to load the PTX.
    #[must_use]
    pub fn isa(mut self, isa: Isa) -> Self {
        self.isa = isa;
        self
    }

    /// The Cargo profile, `release` unless given.
    #[must_use]
    pub fn profile(mut self, profile: impl Into<String>) -> Self {
        self.profile = profile.into();
        self
    }

    /// The optimisation level of this crate (`0` to `3`, `s`, `z`) where it is not to be the
    /// profile's; `core` and the other dependencies keep that, and are not built again.
    #[must_use]
    pub fn opt_level(mut self, level: char) -> Self {
        self.opt_level = Some(level);
        self
    }

    /// The `cuda-ptx-link` to link with, for a program that is not its own linker (see
    /// [`link::run_as_linker`](crate::link::run_as_linker)).
    #[must_use]
    pub fn linker(mut self, program: impl Into<PathBuf>) -> Self {
        self.linker = Some(program.into());
        self
    }

    /// A Cargo feature of the crate to switch on.
    #[must_use]
    pub fn feature(mut self, feature: impl Into<String>) -> Self {
        self.features.push(feature.into());
        self
    }

    /// Leaves out the marks of convergent operations: for tests that show what goes wrong then (see
    /// [`link::convergence`](crate::link::convergence)).
    #[must_use]
    pub fn without_convergence(mut self) -> Self {
        self.unmarked = true;
        self
    }

    /// rustc's flags that name the target and what the build may use of it; a build that passes
    /// only these bypasses the link stage.
    #[must_use]
    pub fn target_flags(&self) -> Vec<String> {
        cargo::target_flags(self)
    }

    /// Builds the crate and returns where its PTX lies.
    ///
    /// # Errors
    /// If the crate does not build; cargo's own messages have been printed.
    pub fn ptx(&self) -> Result<PathBuf> {
        if self.isa < self.arch.first_isa() {
            bail!(
                "{} exists since PTX ISA {}, but {} was asked for",
                self.arch,
                self.arch.first_isa(),
                self.isa
            );
        }
        cargo::build(self)
    }
}

/// Assembles PTX with ptxas; line tables and debug information in it are kept.
///
/// # Errors
/// If the PTX cannot be read, or ptxas rejects it; its words are in the error.
pub fn cubin(ptx: &Path, arch: Arch, out: impl AsRef<Path>) -> Result<()> {
    let text =
        std::fs::read_to_string(ptx).with_context(|| format!("cannot read {}", ptx.display()))?;
    let mut command = Command::new(&toolchain::cuda()?.ptxas);
    command
        .arg(format!("-arch={arch}"))
        .args(debug_option(&text))
        .arg(ptx)
        .arg("-o")
        .arg(out.as_ref());
    run(&mut command).with_context(|| format!("ptxas rejects {} for {arch}", ptx.display()))
}

fn debug_option(ptx: &str) -> Option<&'static str> {
    let target = ptx.lines().find(|line| line.starts_with(".target "))?;
    if target.ends_with(", debug") {
        Some("-g")
    } else {
        ptx.contains("\t.loc\t").then_some("-lineinfo")
    }
}

/// Builds what `out`'s ending names, `.ptx` or `.cubin`.
///
/// # Errors
/// If the ending is another, the crate does not build, or ptxas rejects the PTX.
pub fn build(kernels: &KernelCrate, out: &Path) -> Result<()> {
    let ending = out.extension().and_then(|ending| ending.to_str());
    if !matches!(ending, Some("ptx" | "cubin")) {
        bail!(
            "`{}` must end in .ptx or .cubin, which says what to build",
            out.display()
        );
    }
    let ptx = kernels.ptx()?;
    if ending == Some("cubin") {
        return cubin(&ptx, kernels.arch, out);
    }
    std::fs::copy(&ptx, out).with_context(|| format!("cannot write {}", out.display()))?;
    Ok(())
}

/// Runs a tool that must succeed; its output is the error.
fn run(command: &mut Command) -> Result<()> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = command
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        let words = [output.stdout, output.stderr].concat();
        bail!(
            "{program} failed ({}):\n{}",
            output.status,
            String::from_utf8_lossy(&words).trim_end()
        );
    }
    Ok(())
}
