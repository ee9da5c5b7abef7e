//! The examples of the families' documentation are kernels that assemble.

use cuda_ptx_host::build::{self, Arch, Isa, KernelCrate};
use cuda_ptx_host::{spec, toolchain};

/// The code block of a family's documentation, as a module of a kernel crate.
fn module(family: &spec::Family) -> String {
    let mut blocks = family.docs.split(|line| line == "```");
    let code: Vec<&str> = blocks
        .nth(1)
        .unwrap_or_else(|| panic!("{} has no example", family.name))
        .iter()
        .map(String::as_str)
        // What makes it compile off the GPU.
        .filter(|line| !line.starts_with("# "))
        .collect();
    format!(
        "pub mod {} {{\n#[allow(unused_imports)]\nuse core::arch::nvptx::_syncthreads;\n{}\n}}\n",
        family.name,
        code.join("\n")
    )
}

#[test]
fn the_example_of_every_family_builds_for_the_gpu() {
    let spec = spec::load().unwrap();
    let modules: String = spec.families.iter().map(module).collect();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("Cargo.toml"),
        format!(
            "[package]\nname = \"examples\"\nedition = \"2024\"\n\n[dependencies]\ncuda-ptx = {{ path = {:?} }}\n",
            toolchain::workspace_root()
        ),
    )
    .unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(
        folder.path().join("src/lib.rs"),
        format!(
            "#![no_std]\n#![feature(abi_ptx, stdarch_nvptx)]\ncuda_ptx::panic_trap!();\n{modules}"
        ),
    )
    .unwrap();
    let arch: Arch = "sm_100a".parse().unwrap();
    let kernels = KernelCrate::new(folder.path().join("Cargo.toml"), arch)
        .isa(Isa { major: 9, minor: 5 })
        .linker(env!("CARGO_BIN_EXE_cuda-ptx-link"));
    build::build(&kernels, &folder.path().join("examples.cubin")).unwrap();
}
