//! The typed layer and the C primitives cost nothing: they compile to the machine code of the
//! intrinsics.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use cuda_ptx_host::build::{self, Arch, KernelCrate};
use cuda_ptx_host::inspect::sass::{self, Class, Function};
use cuda_ptx_host::toolchain;

/// Groups in which ptxas puts the same instructions into another order.
const REORDERED: [&str; 1] = ["ring"];

/// The machine code of a kernel crate.
fn machine_code(kernel_crate: &str, arch: Arch) -> Result<Vec<Function>> {
    let folder = tempfile::tempdir()?;
    let cubin = folder.path().join("kernels.cubin");
    let manifest = toolchain::workspace_root()
        .join(kernel_crate)
        .join("Cargo.toml");
    let kernels = KernelCrate::new(manifest, arch).linker(env!("CARGO_BIN_EXE_cuda-ptx-link"));
    build::build(&kernels, &cubin)?;
    sass::disassemble(&toolchain::cuda()?.nvdisasm, &cubin)
}

/// The kernels in `ptx/layers`, by group and then by layer.
fn groups(arch: Arch) -> Result<BTreeMap<String, BTreeMap<String, Function>>> {
    let mut groups = BTreeMap::<_, BTreeMap<_, _>>::new();
    for function in machine_code("ptx/layers", arch)? {
        let (group, layer) = function
            .name
            .split_once("__")
            .with_context(|| format!("kernel `{}` names no layer", function.name))?;
        groups
            .entry(group.to_owned())
            .or_default()
            .insert(layer.to_owned(), function.clone());
    }
    Ok(groups)
}

#[test]
fn every_layer_compiles_to_the_machine_code_of_the_intrinsics() -> Result<()> {
    let groups = groups(Arch::SM_90A)?;
    let mut compared = Vec::new();
    let mut different = Vec::new();
    for (group, layers) in &groups {
        let intrinsics = layers
            .get("ptx")
            .with_context(|| format!("group `{group}` has no kernel of the intrinsics"))?;
        for (layer, function) in layers.iter().filter(|(layer, _)| *layer != "ptx") {
            let comparison = sass::compare(function, intrinsics);
            compared.push(layer.as_str());
            let class = if REORDERED.contains(&group.as_str()) {
                Class::Equivalent
            } else {
                Class::Identical
            };
            if comparison.class != class {
                different.push(format!(
                    "{group} in {layer}: expected {class}, found {} {:?}\n{}\nagainst\n{}",
                    comparison.class,
                    comparison.difference,
                    function.renamed().join("\n"),
                    intrinsics.renamed().join("\n")
                ));
            }
        }
    }
    for layer in ["barrier", "awbarrier"] {
        ensure!(compared.contains(&layer), "nothing compares `{layer}`");
    }
    ensure!(different.is_empty(), "{}", different.join("\n\n"));
    Ok(())
}

/// The listings that the guide has for `cuda::ptx` and for `cuda::barrier`, which are the same but for
/// the layer. (`track_kernel` arrives in another scope, `track_bulk_copy` copies in another way.)
const LISTINGS: [&str; 4] = [
    "early_exit",
    "init_barrier",
    "producer_consumer",
    "split_arrive_wait",
];

#[test]
fn the_guide_s_kernels_are_the_same_with_types() -> Result<()> {
    let functions = machine_code("ptx/guide", Arch::SM_90A)?;
    let find = |name: &str| {
        functions
            .iter()
            .find(|function| function.name == name)
            .with_context(|| format!("there is no kernel `{name}`"))
    };
    for listing in LISTINGS {
        let intrinsics = find(listing)?;
        let typed = find(&format!("{listing}_barrier"))?;
        let comparison = sass::compare(typed, intrinsics);
        ensure!(
            comparison.class == Class::Identical,
            "{listing}: {} {:?}",
            comparison.class,
            comparison.difference
        );
    }
    Ok(())
}
