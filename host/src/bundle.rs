//! A folder with everything a GPU machine needs: it has no Rust, no compiler and no CUDA toolkit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::bench;
use crate::build::{self, Arch, KernelCrate};
use crate::demo::{self, Comparison, Images};
use crate::differential;
use crate::toolchain::{self, SetupReport};
use crate::{barriers, corpus, ported, wgmma};

/// The name of the bundle's program.
const PROGRAM: &str = "run";
/// The name of the tests of the driver module that the bundle carries.
const GPU_TESTS: &str = "gpu-tests";
/// The programs of `examples/` that the bundle carries.
const EXAMPLES: [&str; 3] = ["gemm", "layernorm", "streaming"];
const MANIFEST: &str = "bundle.json";

/// A bundle: its images, and what was compared when it was built.
#[derive(Debug)]
pub struct Bundle {
    folder: PathBuf,
    manifest: Manifest,
}

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    toolchain: SetupReport,
    comparisons: Vec<Comparison>,
}

impl Bundle {
    /// Builds a bundle for `arch` in `folder`, which must not exist or be an older bundle.
    ///
    /// # Errors
    /// If a tool is missing, something does not build, or the folder holds something else.
    pub fn build(arch: Arch, folder: &Path) -> Result<Self> {
        if folder.exists()
            && !folder.join(MANIFEST).is_file()
            && fs::read_dir(folder)?.next().is_some()
        {
            bail!(
                "{} is not a bundle and not empty: name another folder",
                folder.display()
            );
        }
        let toolchain = toolchain::setup_report()?;
        let images = Images::build(arch, folder)?;
        let bundle = Self {
            folder: folder.to_path_buf(),
            manifest: Manifest {
                toolchain,
                comparisons: demo::compare(&images)?,
            },
        };
        let faults = KernelCrate::new(
            toolchain::workspace_root().join("ptx/faults/Cargo.toml"),
            arch,
        );
        build::build(&faults, &bundle.faults())?;
        build::build(&faults.profile("dev"), &bundle.debug_faults())?;
        ported::build(arch, folder)?;
        wgmma::build(arch, folder)?;
        barriers::build(arch, folder)?;
        let plan = differential::Plan {
            arch,
            extent: differential::Extent::All,
            mutants: &differential::MUTANTS,
            linker: None,
        };
        differential::Images::build(plan, folder)?;
        bench::images::Images::build(arch, folder)?;
        corpus::build(arch, folder)?;
        let (harness, examples) = ("host/Cargo.toml", "examples/Cargo.toml");
        let run = ["build", "--bin", "cuda-ptx-run"];
        bundle.copy_executable(harness, &run, "cuda-ptx-run", PROGRAM)?;
        let tests = ["test", "--no-run", "--test", "gpu"];
        bundle.copy_executable(harness, &tests, "gpu", GPU_TESTS)?;
        for example in EXAMPLES {
            bundle.copy_executable(examples, &["build", "--bin", example], example, example)?;
        }
        fs::write(
            folder.join(MANIFEST),
            serde_json::to_string_pretty(&bundle.manifest)? + "\n",
        )?;
        Ok(bundle)
    }

    /// The bundle that the running program belongs to.
    ///
    /// # Errors
    /// If there is none in the program's folder.
    pub fn of_this_program() -> Result<Self> {
        let program = std::env::current_exe().context("cannot find the running program")?;
        let folder = program
            .parent()
            .context("the program lies in no folder")?
            .to_path_buf();
        let path = folder.join(MANIFEST);
        let text = fs::read_to_string(&path).with_context(|| {
            format!(
                "cannot read {}: this program runs from the folder that `cargo xtask bundle` made",
                path.display()
            )
        })?;
        let manifest = serde_json::from_str(&text)
            .with_context(|| format!("cannot understand {}", path.display()))?;
        Ok(Self { folder, manifest })
    }

    /// Where everything lies.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The kernels of the guide.
    #[must_use]
    pub fn images(&self) -> Images {
        Images::in_folder(&self.folder)
    }

    /// The kernel ported from C++, and its original: Rust, C++.
    #[must_use]
    pub fn ported(&self) -> [PathBuf; 2] {
        ported::cubins(&self.folder)
    }

    /// The kernels with typed barriers.
    #[must_use]
    pub fn barriers(&self) -> PathBuf {
        barriers::image(&self.folder)
    }

    /// The matrix products: Rust, C++.
    #[must_use]
    pub fn wgmma(&self) -> [PathBuf; 2] {
        wgmma::cubins(&self.folder)
    }

    /// The corpus at one optimisation level.
    #[must_use]
    pub fn corpus(&self, level: char) -> PathBuf {
        corpus::image(&self.folder, level)
    }

    /// The kernels that must fail.
    #[must_use]
    pub fn faults(&self) -> PathBuf {
        self.folder.join("faults-rust.cubin")
    }

    /// The same, built with debug assertions.
    #[must_use]
    pub fn debug_faults(&self) -> PathBuf {
        self.folder.join("faults-rust-debug.cubin")
    }

    /// The tests of the driver module.
    #[must_use]
    pub fn gpu_tests(&self) -> PathBuf {
        self.folder.join(GPU_TESTS)
    }

    /// The tools that built the kernels, and what was found when they were compared.
    #[must_use]
    pub fn into_findings(self) -> (SetupReport, Vec<Comparison>) {
        (self.manifest.toolchain, self.manifest.comparisons)
    }

    /// Builds an executable of this manifest, optimised and without symbols, and copies it here.
    fn copy_executable(
        &self,
        manifest: &str,
        arguments: &[&str],
        target: &str,
        name: &str,
    ) -> Result<()> {
        let mut command = Command::new(&toolchain::device()?.cargo);
        command
            .args(arguments)
            .args([
                "--release",
                "--manifest-path",
                manifest,
                "--message-format=json-render-diagnostics",
            ])
            .arg("--target-dir")
            .arg(toolchain::target_dir())
            .args(["--config", "profile.release.strip=true"])
            .current_dir(toolchain::workspace_root())
            .stderr(std::process::Stdio::inherit());
        let output = command.output().context("cannot run cargo")?;
        if !output.status.success() {
            bail!("cannot build {target} for the bundle; cargo's messages are above");
        }
        let executable = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|message| message["target"]["name"] == target)
            .find_map(|message| message["executable"].as_str().map(PathBuf::from))
            .with_context(|| format!("cargo built no executable {target}"))?;
        let copy = self.folder.join(name);
        fs::copy(&executable, &copy).with_context(|| format!("cannot write {}", copy.display()))?;
        Ok(())
    }
}
