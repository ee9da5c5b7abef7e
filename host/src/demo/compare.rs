//! What the two compilers made of the same kernel.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::Images;
use crate::guide::Case;
use crate::inspect::{ptx, sass};
use crate::toolchain;

/// Whether both sides have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// They have.
    Equal,
    /// They have not; the reason says what only one side has.
    Differs,
}

impl Verdict {
    fn of(equal: bool) -> Self {
        if equal { Self::Equal } else { Self::Differs }
    }

    /// As in the JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Differs => "differs",
        }
    }
}

/// One kernel of both sides, compared.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Comparison {
    /// The kernel's name.
    pub name: String,
    /// The set of mirrored PTX instructions with all their qualifiers.
    pub ptx: Verdict,
    /// The set of SASS opcodes with their modifiers.
    pub sass: Verdict,
    /// How many SASS instructions each side has: Rust, C++.
    pub sass_insns: [usize; 2],
    /// What only one side has, and accesses to shared memory through generic addresses; empty if
    /// there is nothing to say.
    pub remarks: Vec<String>,
}

/// Compares every kernel of the images, in the order of the Rust source.
///
/// # Errors
/// If an image cannot be read, or a kernel exists on one side alone.
pub fn compare(images: &Images) -> Result<Vec<Comparison>> {
    let rust_ptx = read_ptx(&images.rust_ptx())?;
    let cpp_ptx = read_ptx(&images.cpp_ptx())?;
    let nvdisasm = toolchain::cuda()?.nvdisasm;
    let rust_sass = sass::disassemble(&nvdisasm, &images.rust_cubin())?;
    let cpp_sass = sass::disassemble(&nvdisasm, &images.cpp_cubin())?;

    let one = |kernel: &ptx::Kernel| {
        let name = &kernel.name;
        let twin = cpp_ptx
            .kernel(name)
            .with_context(|| format!("the kernel `{name}` has no C++ twin"))?;
        let mirrored = ptx::compare_mirrored(kernel, twin);
        let (rust, cpp) = (function(&rust_sass, name)?, function(&cpp_sass, name)?);
        let opcodes = sass::compare_opcodes(rust, cpp);
        let by_design = Case::of_kernel(name).and_then(Case::differs_by_design);
        let mut remarks: Vec<String> = by_design.into_iter().map(str::to_owned).collect();
        remark(&mut remarks, "PTX only in Rust", &mirrored.only_rust);
        remark(&mut remarks, "PTX only in C++", &mirrored.only_cxx);
        remark(&mut remarks, "SASS only in Rust", &opcodes.only_rust);
        remark(&mut remarks, "SASS only in C++", &opcodes.only_cxx);
        let generic: Vec<String> = sass::generic_accesses(rust)
            .iter()
            .map(ToString::to_string)
            .collect();
        remark(&mut remarks, "generic accesses in Rust", &generic);
        Ok(Comparison {
            name: name.clone(),
            ptx: Verdict::of(mirrored.is_equal()),
            sass: Verdict::of(opcodes.is_equal()),
            sass_insns: opcodes.instructions,
            remarks,
        })
    };
    rust_ptx.kernels.iter().map(one).collect()
}

fn remark<'a>(remarks: &mut Vec<String>, what: &str, items: impl IntoIterator<Item = &'a String>) {
    let items: Vec<&str> = items.into_iter().map(String::as_str).collect();
    if !items.is_empty() {
        remarks.push(format!("{what}: {}", items.join(", ")));
    }
}

fn read_ptx(path: &Path) -> Result<ptx::Module> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    ptx::Module::parse(&text).with_context(|| format!("cannot understand {}", path.display()))
}

fn function<'a>(functions: &'a [sass::Function], name: &str) -> Result<&'a sass::Function> {
    functions
        .iter()
        .find(|function| function.name == name)
        .with_context(|| format!("the kernel `{name}` is missing from a cubin"))
}
