//! rustc's linker for `nvptx64-nvidia-cuda`; see [`cuda_ptx_host::link`].

use std::process::ExitCode;

use anyhow::Result;
use cuda_ptx_host::{link, toolchain};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cuda-ptx-link: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments = link::Arguments::parse(std::env::args().skip(1))?;
    link::link(&arguments, &toolchain::llvm()?)
}
