//! The kernels of both sides, built once for an architecture, and their PTX kernel by kernel.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result};

use super::form::Form;
use super::matching::Mirror;
use super::{beyond, cxx, rust};
use crate::build::{Arch, CppTwin, Isa, KernelCrate, write_if_changed};
use crate::inspect::ptx::Module;
use crate::toolchain;

/// The newest PTX ISA version: everything that the headers have exists in it.
const ISA: Isa = Isa { major: 9, minor: 5 };

/// A form that has both sides.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its position in the headers, or behind those of the headers if they lack it.
    pub index: usize,
    /// The variant of the headers; without one the spec says how C++ says it.
    pub upstream: Option<&'a Form<'a>>,
    /// The variant of the spec.
    pub mirror: Mirror<'a>,
}

impl Subject<'_> {
    /// The name of its kernels.
    pub fn kernel(&self) -> String {
        format!("f{:04}_{}", self.index, self.mirror.overload.function)
    }

    /// Whether C++ has it on this architecture.
    pub fn in_cxx(&self, arch: Arch) -> bool {
        match self.upstream {
            Some(form) => form.overload.allows(arch),
            None => self.mirror.variant.targets.allow(&arch.to_string()),
        }
    }

    /// What reports call it: the C++ function and the instruction.
    pub fn form(&self) -> String {
        format!(
            "{}: {}",
            self.mirror.overload.function,
            self.mirror.variant.opcode()
        )
    }
}

/// One kernel of one side.
#[derive(Clone, Debug)]
pub struct Twin {
    /// Its PTX.
    pub text: String,
    /// What it does: its inline assembly and stores, each operand as where its value comes from.
    pub dataflow: Vec<String>,
}

/// The kernels of one side by the position of their form.
pub type Side = HashMap<usize, Twin>;

/// Builds the kernels of `subjects` for `arch` on both sides: Rust, C++.
///
/// # Errors
///
/// A side does not build, or a kernel is missing from what it built.
pub fn build(subjects: &[Subject], arch: Arch) -> Result<[Side; 2]> {
    let folder = toolchain::target_dir()
        .join("parity")
        .join(arch.to_string());
    let (rust, cxx) = thread::scope(|scope| {
        let cxx = scope.spawn(|| build_cxx(subjects, arch, &folder.join("cxx")));
        let rust = build_rust(subjects, arch, &folder.join("rust"));
        (
            rust,
            cxx.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        )
    });
    Ok([side(subjects, &rust?)?, side(subjects, &cxx?)?])
}

fn build_rust(subjects: &[Subject], arch: Arch, folder: &Path) -> Result<PathBuf> {
    let root = toolchain::workspace_root();
    let manifest = format!(
        "[package]\nname = \"parity-kernels\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         cuda-ptx = {{ path = {:?} }}\n\n[workspace]\n",
        root.display().to_string()
    );
    let mut source = rust::PRELUDE.to_owned();
    for subject in subjects {
        source += &rust::kernel(&subject.kernel(), subject.mirror);
    }
    write_if_changed(&folder.join("Cargo.toml"), &manifest)?;
    write_if_changed(&folder.join("src/lib.rs"), &source)?;
    KernelCrate::new(folder.join("Cargo.toml"), arch)
        .isa(ISA)
        .ptx()
}

fn build_cxx(subjects: &[Subject], arch: Arch, folder: &Path) -> Result<PathBuf> {
    let mut source = cxx::PRELUDE.to_owned();
    for subject in subjects {
        source += &match subject.upstream {
            Some(form) => cxx::kernel(&subject.kernel(), form, subject.mirror),
            None => beyond::kernel(&subject.kernel(), subject.mirror.variant),
        };
    }
    let file = folder.join("twins.cu");
    write_if_changed(&file, &source)?;
    let ptx = folder.join("twins.ptx");
    let _ = fs::remove_file(&ptx);
    // nvcc has ptxas check the PTX, whose rejections are for `assemble` to attribute.
    match CppTwin::new(file, arch).ptx(&ptx) {
        Err(error) if !ptx.is_file() => return Err(error),
        _ => {}
    }
    Ok(ptx)
}

fn side(subjects: &[Subject], ptx: &Path) -> Result<Side> {
    let text = fs::read_to_string(ptx).with_context(|| format!("cannot read {}", ptx.display()))?;
    let module =
        Module::parse(&text).with_context(|| format!("cannot understand {}", ptx.display()))?;
    let lines = Vec::from_iter(text.lines());
    let kernels: HashMap<_, _> = module
        .kernels
        .iter()
        .map(|kernel| (kernel.name.as_str(), kernel))
        .collect();
    let twin = |subject: &Subject| {
        let name = subject.kernel();
        let kernel = kernels
            .get(name.as_str())
            .with_context(|| format!("{} lacks the kernel {name}", ptx.display()))?;
        let text = lines[kernel.lines.start() - 1..*kernel.lines.end()].join("\n");
        Ok((
            subject.index,
            Twin {
                text,
                dataflow: kernel.dataflow(),
            },
        ))
    };
    subjects.iter().map(twin).collect()
}
