//! rustc's linker for `nvptx64-nvidia-cuda`, for builds by plain cargo; see [`cuda_ptx_host::link`].

use std::process::ExitCode;

use cuda_ptx_host::link;

fn main() -> ExitCode {
    link::run_as_linker().unwrap_or_else(|| {
        eprintln!("this program must keep its name, {}", link::LINKER_NAME);
        ExitCode::FAILURE
    })
}
