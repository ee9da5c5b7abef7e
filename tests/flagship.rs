//! The kernels of `examples/` keep everything in registers, as ptxas reports, and are short.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cuda_ptx_host::build::{Arch, KernelCrate, cubin};
use cuda_ptx_host::inspect::sass;
use cuda_ptx_host::toolchain;

/// The examples, and how many kernels each has.
const EXAMPLES: [(&str, usize); 3] = [("gemm", 3), ("layernorm", 2), ("streaming", 5)];

fn kernels(example: &str) -> PathBuf {
    toolchain::workspace_root()
        .join("examples")
        .join(example)
        .join("kernels")
}

/// The PTX of an example.
fn build(example: &str) -> Result<PathBuf> {
    KernelCrate::new(kernels(example).join("Cargo.toml"), Arch::SM_90A)
        .linker(env!("CARGO_BIN_EXE_cuda-ptx-link"))
        .ptx()
}

/// What ptxas reports of each function: its name, and bytes of stack, spill stores and spill loads.
fn report(text: &str) -> Result<Vec<(String, [u32; 3])>> {
    let lines: Vec<&str> = text.lines().collect();
    let functions = lines.windows(2).filter_map(|lines| {
        let (_, name) = lines[0].split_once("Function properties for ")?;
        Some((name, lines[1]))
    });
    functions
        .map(|(name, figures)| {
            let numbers: Vec<u32> = figures
                .split_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect();
            let numbers = <[u32; 3]>::try_from(numbers);
            let numbers = numbers
                .ok()
                .with_context(|| format!("expected three numbers for {name}, found `{figures}`"))?;
            Ok((name.to_owned(), numbers))
        })
        .collect()
}

#[test]
fn the_report_of_ptxas_is_read() {
    let text = "ptxas info    : Function properties for copy\n    \
                8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n";
    assert_eq!(report(text).unwrap(), [("copy".to_owned(), [8, 4, 12])]);
    assert!(report("ptxas info : Function properties for copy\nnothing").is_err());
}

#[test]
fn no_kernel_spills_or_uses_local_memory() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (example, count) in EXAMPLES {
        let ptx = build(example)?;
        let output = Command::new(&toolchain::cuda()?.ptxas)
            .args(["-v", "-arch=sm_90a"])
            .arg(&ptx)
            .arg("-o")
            .arg(folder.path().join("kernels.cubin"))
            .output()?;
        let text = String::from_utf8(output.stderr)?;
        ensure!(output.status.success(), "ptxas: {text}");
        // One that makes accumulators wait for each multiplication says so here.
        assert!(!text.contains("warning"), "{example}: {text}");
        let functions = report(&text)?;
        assert_eq!(functions.len(), count, "{example}: {functions:?}");
        for (name, figures) in functions {
            assert_eq!(figures, [0; 3], "{example}, {name}");
        }
    }
    Ok(())
}

#[test]
fn multiplications_follow_one_another() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let image = folder.path().join("kernels.cubin");
    cubin(&build("gemm")?, Arch::SM_90A, &image)?;
    for function in sass::disassemble(&toolchain::cuda()?.nvdisasm, &image)? {
        let opcodes = function.instructions.iter().map(|it| it.opcode.as_str());
        let warpgroup: Vec<&str> = opcodes
            .filter(|opcode| opcode.contains("GMMA") || opcode.starts_with("WARPGROUP"))
            .map(|opcode| opcode.split('.').next().unwrap_or_default())
            .collect();
        // Serialised multiplications have an arrival and a wait each.
        let (arrive, multiply, wait) = ("WARPGROUP", ["HGMMA", "QGMMA"], "WARPGROUP");
        assert_eq!(warpgroup.len(), 7, "{}: {warpgroup:?}", function.name);
        assert_eq!(warpgroup[0], arrive, "{}", function.name);
        assert!(
            warpgroup[1..5].iter().all(|it| multiply.contains(it)),
            "{}: {warpgroup:?}",
            function.name
        );
        assert_eq!(warpgroup[5..], [wait; 2], "{}", function.name);
    }
    Ok(())
}

#[test]
fn the_kernels_are_formatted() -> Result<()> {
    for (example, _) in EXAMPLES {
        let status = Command::new(env!("CARGO"))
            .args(["fmt", "--check", "--manifest-path"])
            .arg(kernels(example).join("Cargo.toml"))
            .status()?;
        ensure!(
            status.success(),
            "{example}: `cargo fmt` changes its kernels"
        );
    }
    Ok(())
}

/// Lines that are neither empty nor a comment.
fn code_lines(source: &str) -> usize {
    let lines = source.lines().map(str::trim_start);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
}

/// The files of each kernel, with all that it shares with others: every file belongs to one at least.
const FILES: [(&str, &[&str]); 4] = [
    ("gemm", &["lib.rs", "schedule.rs", "store.rs"]),
    ("layernorm", &["lib.rs", "exchange.rs", "moments.rs"]),
    ("layernorm", &["plain.rs", "moments.rs"]),
    ("streaming", &["lib.rs", "stream.rs"]),
];

#[test]
fn every_kernel_is_under_250_lines_without_assembly() -> Result<()> {
    for (example, files) in FILES {
        let mut lines = 0;
        for file in files {
            lines += code_lines(&fs::read_to_string(
                kernels(example).join("src").join(file),
            )?);
        }
        assert!(lines < 250, "{example}, {files:?}: {lines} lines of code");
    }
    for (example, _) in EXAMPLES {
        for file in fs::read_dir(kernels(example).join("src"))? {
            let name = file?.file_name();
            let mut named = FILES
                .iter()
                .filter(|kernel| kernel.0 == example)
                .flat_map(|kernel| kernel.1);
            assert!(named.any(|file| *file == name), "{example}: {name:?}");
        }
    }
    Ok(())
}

#[test]
fn comments_are_not_code() {
    let source = "//! A crate.\n\nfn f() {\n    // Why.\n    g(); // how\n}\n";
    assert_eq!(code_lines(source), 3);
}
