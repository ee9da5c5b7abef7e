//! The guide's kernels as PTX and cubin, in both languages.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::build::{self, Arch, CppTwin, KernelCrate};
use crate::toolchain;

/// Where the four images of the guide's kernels lie.
#[derive(Debug, Clone)]
pub struct Images {
    folder: PathBuf,
}

impl Images {
    /// The images in `folder`, built earlier.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Builds all images for `arch` into `folder`.
    ///
    /// # Errors
    /// If a tool is missing or a side does not build.
    pub fn build(arch: Arch, folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let images = Self::in_folder(folder);
        let source = toolchain::workspace_root().join("ptx/guide");
        let kernels = KernelCrate::new(source.join("Cargo.toml"), arch);
        build::build(&kernels, &images.rust_ptx())?;
        build::cubin(&images.rust_ptx(), arch, images.rust_cubin())?;
        let twin = CppTwin::new(source.join("src/guide.cu"), arch);
        twin.ptx(&images.cpp_ptx())?;
        twin.cubin(&images.cpp_cubin())?;
        Ok(images)
    }

    /// The PTX of the link stage.
    #[must_use]
    pub fn rust_ptx(&self) -> PathBuf {
        self.folder.join("guide-rust.ptx")
    }

    /// The cubin of the Rust kernels.
    #[must_use]
    pub fn rust_cubin(&self) -> PathBuf {
        self.folder.join("guide-rust.cubin")
    }

    /// The PTX that nvcc writes.
    #[must_use]
    pub fn cpp_ptx(&self) -> PathBuf {
        self.folder.join("guide-cpp.ptx")
    }

    /// The cubin of the C++ kernels.
    #[must_use]
    pub fn cpp_cubin(&self) -> PathBuf {
        self.folder.join("guide-cpp.cubin")
    }
}
