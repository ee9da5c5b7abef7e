//! `cargo bench`: times every instruction form and the situations, in Rust and in C++.
//!
//! `cargo bench -- FILTER` times only what has FILTER in its family, function or instruction. Without a GPU it
//! says so and has nothing to do.

use std::process::ExitCode;

use anyhow::Result;
use cuda_ptx_host::bench::{images::Images, runner};
use cuda_ptx_host::build::Arch;
use cuda_ptx_host::driver::Driver;
use cuda_ptx_host::{child, link, toolchain};

fn main() -> ExitCode {
    if let Some(code) = link::run_as_linker() {
        return code;
    }
    child::serve_if_child();
    if let Err(reason) = Driver::open() {
        println!("nothing was timed: {reason}");
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    // Cargo itself passes `--bench`.
    let filter = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let folder = toolchain::target_dir().join("bench/images");
    Images::build(Arch::SM_90A, &folder)?;
    let path = toolchain::target_dir().join("bench/results.json");
    let results = runner::run(
        &folder,
        &runner::Options {
            filter: filter.as_deref(),
            json: Some(&path),
            repeat: false,
        },
    )?;
    println!("{}\n{}", results.tables(), results.summary());
    println!("all points: {}", path.display());
    Ok(())
}
