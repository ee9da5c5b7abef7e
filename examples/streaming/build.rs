//! Builds the kernels, their C++ twins, and CUB's reduction.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use cuda_ptx_host::build::{self, Arch, CppTwin, KernelCrate};
use cuda_ptx_host::{link, toolchain};

fn main() -> ExitCode {
    // The build script is its own linker.
    if let Some(code) = link::run_as_linker() {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    for source in ["kernels/src", "kernels/Cargo.toml", "cpp", "../../src"] {
        println!("cargo:rerun-if-changed={source}");
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let kernels = KernelCrate::new("kernels/Cargo.toml", Arch::SM_90A);
    build::build(&kernels, &out.join("kernels.ptx"))?;
    build::cubin(&out.join("kernels.ptx"), Arch::SM_90A, out.join("kernels.cubin"))?;
    CppTwin::new("cpp/streaming.cu", Arch::SM_90A).cubin(&out.join("twins.cubin"))?;
    build_cub(&out)
}

/// CUB's reduction is host and device code: a library that is linked, with the CUDA runtime and the
/// C++ library, statically.
fn build_cub(out: &Path) -> Result<()> {
    let tools = toolchain::cuda()?;
    let status = Command::new(&tools.nvcc)
        .args(["--lib", "-O3", "-std=c++17", "-gencode", "arch=compute_90,code=sm_90"])
        .args(["-Xcompiler", "-fPIC", "-I"])
        .arg(&tools.cccl_include)
        .arg("cpp/cub.cu")
        .arg("-o")
        .arg(out.join("libcub_sum.a"))
        .status()
        .context("cannot run nvcc")?;
    ensure!(status.success(), "nvcc cannot compile cpp/cub.cu");
    let cxx = Command::new("g++").arg("-print-file-name=libstdc++.a").output().context("cannot run g++")?;
    let cxx = PathBuf::from(String::from_utf8(cxx.stdout)?.trim());
    for folder in [
        out,
        &tools.root.join("lib"),
        &tools.root.join("lib64"),
        cxx.parent().context("g++ has no libstdc++.a")?,
    ] {
        println!("cargo:rustc-link-search=native={}", folder.display());
    }
    for library in ["cub_sum", "cudart_static", "stdc++"] {
        println!("cargo:rustc-link-lib=static={library}");
    }
    Ok(())
}
