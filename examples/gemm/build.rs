//! Builds the kernels.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use cuda_ptx_host::build::{self, Arch, KernelCrate};
use cuda_ptx_host::link;

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
    for source in ["kernels/src", "kernels/Cargo.toml", "../../src"] {
        println!("cargo:rerun-if-changed={source}");
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let kernels = KernelCrate::new("kernels/Cargo.toml", Arch::SM_90A);
    build::build(&kernels, &out.join("kernels.ptx"))?;
    build::cubin(&out.join("kernels.ptx"), Arch::SM_90A, out.join("kernels.cubin"))
}
