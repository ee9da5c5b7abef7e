//! The examples of the families' documentation are kernels that assemble.

use cuda_ptx_host::build::{self, Arch, Isa, KernelCrate};
use cuda_ptx_host::{spec, toolchain};

/// The documentation of a family, or that of the module where its functions are written by hand.
fn page(family: &spec::Family) -> Vec<String> {
    if family.docs.iter().any(|line| line == "```") {
        return family.docs.clone();
    }
    let by_hand = family.functions[0].overloads[0].by_hand();
    let module = by_hand.unwrap_or_else(|| panic!("{} has no example", family.name));
    let file = toolchain::workspace_root().join("src").join(module);
    let text = std::fs::read_to_string(file.join("mod.rs")).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("//!"));
    lines
        .map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned())
        .collect()
}

/// The code block of a family's documentation, as a module of a kernel crate.
fn module(family: &spec::Family) -> String {
    let page = page(family);
    let mut blocks = page.split(|line| line == "```");
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

/// Whether some form of the family is available for `arch`.
fn fits(family: &spec::Family, arch: &str) -> bool {
    let overloads = family.functions.iter().flat_map(|it| &it.overloads);
    let mut variants = overloads.flat_map(|overload| &overload.variants);
    variants.any(|variant| variant.targets.allow(arch))
}

#[test]
fn the_example_of_every_family_builds_for_the_gpu() {
    let spec = spec::load().unwrap();
    let (blackwell, hopper): (Vec<_>, Vec<_>) = spec
        .families
        .iter()
        .partition(|family| fits(family, "sm_100a"));
    assert!(hopper.iter().all(|family| fits(family, "sm_90a")));
    build("sm_100a", &blackwell);
    build("sm_90a", &hopper);
}

fn build(arch: &str, families: &[&spec::Family]) {
    let modules: String = families.iter().map(|family| module(family)).collect();
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
    let arch: Arch = arch.parse().unwrap();
    let kernels = KernelCrate::new(folder.path().join("Cargo.toml"), arch)
        .isa(Isa { major: 9, minor: 5 })
        .linker(env!("CARGO_BIN_EXE_cuda-ptx-link"));
    build::build(&kernels, &folder.path().join("examples.cubin")).unwrap();
}
