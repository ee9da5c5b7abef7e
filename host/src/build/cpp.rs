//! The C++ twin of a kernel: a `.cu` file compiled with nvcc against the CCCL headers.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Arch, run};
use crate::toolchain;

/// A CUDA C++ source file and the architecture it is compiled for.
#[derive(Debug, Clone)]
pub struct CppTwin {
    source: PathBuf,
    arch: Arch,
}

impl CppTwin {
    /// The twin in `source`, for instance `ptx/guide/cpp/guide.cu`.
    pub fn new(source: impl Into<PathBuf>, arch: Arch) -> Self {
        Self {
            source: source.into(),
            arch,
        }
    }

    /// Compiles to PTX.
    ///
    /// # Errors
    /// If nvcc fails; its words are in the error.
    pub fn ptx(&self, out: &Path) -> Result<()> {
        self.nvcc("--ptx", out)
    }

    /// Compiles to a cubin.
    ///
    /// # Errors
    /// If nvcc fails; its words are in the error.
    pub fn cubin(&self, out: &Path) -> Result<()> {
        self.nvcc("--cubin", out)
    }

    fn nvcc(&self, output_kind: &str, out: &Path) -> Result<()> {
        let tools = toolchain::cuda()?;
        // For `--ptx` the code name must be the virtual architecture.
        let code = if output_kind == "--ptx" {
            self.arch.compute()
        } else {
            self.arch.to_string()
        };
        let mut command = Command::new(&tools.nvcc);
        command
            .args([output_kind, "-O3", "-std=c++17", "-I"])
            .arg(&tools.cccl_include)
            .arg("-gencode")
            .arg(format!("arch={},code={code}", self.arch.compute()))
            .arg(&self.source)
            .arg("-o")
            .arg(out);
        run(&mut command).with_context(|| format!("cannot compile {}", self.source.display()))
    }
}
