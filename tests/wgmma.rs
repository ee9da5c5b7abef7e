//! The matrix products of `ptx/wgmma` keep their accumulators in registers, their multiplications follow one
//! another without a wait, and the CPU finds the right products.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use cuda_ptx_host::build::{self, Arch, KernelCrate};
use cuda_ptx_host::exec::Program;
use cuda_ptx_host::inspect::{resources, sass};
use cuda_ptx_host::{toolchain, wgmma};

/// The kernels, and what their multiplications are in machine code.
const KERNELS: [(&str, &str); 2] = [
    ("tile_bf16", "HGMMA.64x256x16.F32.BF16"),
    ("tile_e4m3", "QGMMA.64x256x32.F32.E4M3.E4M3"),
];

fn kernels() -> KernelCrate {
    KernelCrate::new(wgmma::manifest(), Arch::SM_90A).linker(env!("CARGO_BIN_EXE_cuda-ptx-link"))
}

#[test]
fn accumulators_stay_in_registers_and_multiplications_are_not_serialised() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let cubins = wgmma::cubins(folder.path());
    build::build(&kernels(), &cubins[0])?;
    wgmma::twin(Arch::SM_90A).cubin(&cubins[1])?;
    for cubin in cubins {
        inspect(&cubin).with_context(|| cubin.display().to_string())?;
    }
    Ok(())
}

fn inspect(cubin: &Path) -> Result<()> {
    let tools = toolchain::cuda()?;
    let resources = resources::of_cubin(&tools.cuobjdump, cubin)?;
    let functions = sass::disassemble(&tools.nvdisasm, cubin)?;
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

#[test]
fn the_cpu_finds_the_products_of_both_languages() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let twin = folder.path().join("tile.ptx");
    wgmma::twin(Arch::SM_90A).ptx(&twin)?;
    let programs = [kernels().ptx()?, twin].map(|ptx| Program::parse(&fs::read_to_string(ptx)?));
    let [rust, cpp] = programs;
    let (rust, cpp) = (rust?, cpp?);
    for element in wgmma::Element::ALL {
        let [rust, cpp] = [(&rust, 1), (&cpp, 2)]
            .map(|(program, schedule)| wgmma::run_on_cpu(program, element, schedule));
        assert!(rust? == cpp?, "{element:?}");
    }
    Ok(())
}
