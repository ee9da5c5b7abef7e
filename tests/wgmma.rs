//! The matrix products of `ptx/wgmma` keep their accumulators in registers, and their multiplications
//! follow one another without a wait.

use anyhow::{Context, Result};
use cuda_ptx_host::build::{self, Arch, KernelCrate};
use cuda_ptx_host::inspect::{resources, sass};
use cuda_ptx_host::toolchain;

/// The kernels, and what their multiplications are in machine code.
const KERNELS: [(&str, &str); 2] = [
    ("tile_bf16", "HGMMA.64x256x16.F32.BF16"),
    ("tile_e4m3", "QGMMA.64x256x32.F32.E4M3.E4M3"),
];

#[test]
fn accumulators_stay_in_registers_and_multiplications_are_not_serialised() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let cubin = folder.path().join("kernels.cubin");
    let manifest = toolchain::workspace_root().join("ptx/wgmma/Cargo.toml");
    let kernels =
        KernelCrate::new(manifest, Arch::SM_90A).linker(env!("CARGO_BIN_EXE_cuda-ptx-link"));
    build::build(&kernels, &cubin)?;
    let tools = toolchain::cuda()?;
    let resources = resources::of_cubin(&tools.cuobjdump, &cubin)?;
    let functions = sass::disassemble(&tools.nvdisasm, &cubin)?;
    for (kernel, multiplication) in KERNELS {
        let resources = resources
            .get(kernel)
            .with_context(|| format!("no {kernel}"))?;
        assert_eq!(
            (resources.local, resources.stack),
            (0, 0),
            "{kernel}: {resources:?}"
        );
        let function = functions.iter().find(|function| function.name == kernel);
        let function = function.with_context(|| format!("no {kernel}"))?;
        let opcodes = function.instructions.iter().map(|it| it.opcode.as_str());
        let warpgroup: Vec<_> = opcodes
            .filter(|opcode| opcode.contains("GMMA") || opcode.starts_with("WARPGROUP"))
            .collect();
        // Serialised multiplications have an arrival and a wait each.
        let mut expected = vec!["WARPGROUP.ARRIVE"];
        expected.extend([multiplication; 4]);
        expected.extend(["WARPGROUP.DEPBAR.LE"; 2]);
        assert_eq!(warpgroup, expected, "{kernel}");
    }
    Ok(())
}
