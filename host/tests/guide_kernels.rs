//! The guide's kernels, built in both languages: what must hold without a GPU.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use cuda_ptx_host::build::{self, Arch, CppTwin};
use cuda_ptx_host::guide;
use cuda_ptx_host::inspect::{ptx, resources, sass};
use cuda_ptx_host::toolchain;

/// One side of the guide, read back.
struct Side {
    language: guide::Language,
    ptx_text: String,
    ptx: ptx::Module,
    sass: Vec<sass::Function>,
    resources: BTreeMap<String, resources::Resources>,
}

/// Rust and C++.
static SIDES: LazyLock<[Side; 2]> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let (rust, cpp) = (
        folder.path().join("rust.ptx"),
        folder.path().join("cpp.ptx"),
    );
    let rust_cubin = assembled(&build_ptx("ptx/guide", &rust));
    let twin = CppTwin::new(
        toolchain::workspace_root().join("ptx/guide/src/guide.cu"),
        Arch::SM_90A,
    );
    twin.ptx(&cpp).unwrap();
    let cpp_cubin = cpp.with_extension("cubin");
    twin.cubin(&cpp_cubin).unwrap();
    [
        Side::read(guide::Language::Rust, &rust, &rust_cubin),
        Side::read(guide::Language::Cpp, &cpp, &cpp_cubin),
    ]
});

/// Builds a kernel crate as a user does; a test program cannot be the linker.
fn build_ptx(kernel_crate: &str, out: &Path) -> std::path::PathBuf {
    let manifest = toolchain::workspace_root()
        .join(kernel_crate)
        .join("Cargo.toml");
    let status = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["build", "--arch", "sm_90a", "--manifest-path"])
        .arg(manifest)
        .arg("--out")
        .arg(out)
        .status()
        .unwrap();
    assert!(status.success(), "{kernel_crate} does not build");
    out.to_path_buf()
}

fn assembled(ptx: &Path) -> std::path::PathBuf {
    let cubin = ptx.with_extension("cubin");
    build::cubin(ptx, Arch::SM_90A, &cubin).unwrap();
    cubin
}

impl Side {
    fn read(language: guide::Language, ptx: &Path, cubin: &Path) -> Self {
        let tools = toolchain::cuda().unwrap();
        let ptx_text = std::fs::read_to_string(ptx).unwrap();
        Self {
            language,
            ptx: ptx::Module::parse(&ptx_text).unwrap(),
            ptx_text,
            sass: sass::disassemble(&tools.nvdisasm, cubin).unwrap(),
            resources: resources::of_cubin(&tools.cuobjdump, cubin).unwrap(),
        }
    }

    fn sass(&self, name: &str) -> &sass::Function {
        self.sass
            .iter()
            .find(|function| function.name == name)
            .unwrap()
    }
}

#[test]
fn every_case_is_a_kernel_of_both_languages_and_the_other_way_round() {
    let cases: BTreeSet<&str> = guide::cases().iter().map(|case| case.name()).collect();
    for side in &*SIDES {
        let kernels: BTreeSet<&str> = side.ptx.kernels.iter().map(|k| k.name.as_str()).collect();
        assert_eq!(kernels, cases, "{}", side.language);
    }
}

#[test]
fn both_languages_use_the_same_instructions_with_all_qualifiers() {
    let [rust, cpp] = &*SIDES;
    for case in guide::cases() {
        let kernel = |side: &'static Side| side.ptx.kernel(case.name()).unwrap();
        let comparison = ptx::compare_mirrored(kernel(rust), kernel(cpp));
        assert_eq!(
            comparison.is_equal(),
            case.differs_by_design().is_none(),
            "{}: {comparison:?}",
            case.name()
        );
        if comparison.is_equal() {
            assert!(!comparison.common.is_empty(), "{}", case.name());
        }
    }
}

#[test]
fn both_languages_take_the_same_parameters_and_launch_bounds() {
    let [rust, cpp] = &*SIDES;
    for case in guide::cases() {
        let kernel = |side: &'static Side| side.ptx.kernel(case.name()).unwrap();
        let bounds = |side| kernel(side).directives.get(".maxntid").cloned();
        assert!(bounds(rust).is_some(), "{}", case.name());
        assert_eq!(
            kernel(rust).params.len(),
            kernel(cpp).params.len(),
            "{}",
            case.name()
        );
    }
}

#[test]
fn shared_memory_is_never_reached_through_a_generic_address() {
    for side in &*SIDES {
        for function in &side.sass {
            // The class with a completion function is made of atomic operations on a generic address.
            if side.language == guide::Language::Cpp && function.name == "psum_barrier" {
                continue;
            }
            let generic = sass::generic_accesses(function);
            assert!(
                generic.is_empty(),
                "{} in {}: {generic:?}",
                function.name,
                side.language
            );
            let shared = function
                .instructions
                .iter()
                .any(|instruction| matches!(instruction.base(), "LDS" | "STS"));
            assert!(shared, "{} uses no shared memory", function.name);
        }
    }
}

#[test]
fn rust_takes_as_much_shared_memory_as_cpp_and_no_stack() {
    let [rust, cpp] = &*SIDES;
    for case in guide::cases() {
        let (rust, cpp) = (rust.resources[case.name()], cpp.resources[case.name()]);
        assert!(rust.shared <= cpp.shared, "{}", case.name());
        if case.differs_by_design().is_none() {
            assert_eq!(rust.shared, cpp.shared, "{}", case.name());
        }
        assert_eq!((rust.stack, rust.local), (0, 0), "{}", case.name());
    }
}

#[test]
fn consumers_load_sixteen_bytes_at_once() {
    for side in &*SIDES {
        let opcodes = side.sass("producer_consumer").opcodes();
        assert!(opcodes.count("LDS.128") > 0, "{}", side.language);
    }
}

#[test]
fn every_wait_polls() {
    for side in &*SIDES {
        for kernel in &side.ptx.kernels {
            let waits = unpolled_waits(&side.ptx_text, kernel);
            assert_eq!(waits, [0; 0], "{} in {}", kernel.name, side.language);
        }
    }
}

#[test]
fn the_kernels_that_go_wrong_are_built_to() {
    let folder = tempfile::tempdir().unwrap();
    let ptx = build_ptx("ptx/faults", &folder.path().join("faults.ptx"));
    assembled(&ptx);
    let text = std::fs::read_to_string(ptx).unwrap();
    let module = ptx::Module::parse(&text).unwrap();
    // Two arrivals are expected, one comes.
    let hang = module.kernel("hang").unwrap().opcodes();
    assert_eq!(hang.count("mbarrier.arrive.shared.b64"), 1);
    assert_eq!(
        unpolled_waits(&text, module.kernel("hang").unwrap()),
        [0; 0]
    );
    let fault = module.kernel("fault").unwrap().opcodes();
    assert_eq!(fault.count("st.volatile.global.b32"), 1);
}

/// The lines of the `mbarrier.try_wait`s that are not in a loop of their own: one that goes round
/// from the wait to the wait without an arrival.
fn unpolled_waits(text: &str, kernel: &ptx::Kernel) -> Vec<usize> {
    let label_lines: BTreeMap<&str, usize> = (1..)
        .zip(text.lines())
        .filter_map(|(number, line)| {
            let (label, _) = line.split_once(':')?;
            label.starts_with('$').then_some((label, number))
        })
        .collect();
    let waits =
        |instruction: &ptx::Instruction| instruction.opcode.starts_with("mbarrier.try_wait");
    let mut start = 0;
    let mut unpolled = Vec::new();
    for (i, instruction) in kernel.instructions.iter().enumerate() {
        if instruction.opcode.starts_with("mbarrier.arrive") {
            start = instruction.line;
        }
        if !waits(instruction) {
            continue;
        }
        let loops = kernel.instructions[i + 1..]
            .iter()
            .take_while(|later| !later.opcode.starts_with("mbarrier"))
            .filter(|later| later.opcode.starts_with("bra"))
            .filter_map(|branch| label_lines.get(branch.operands[0].to_string().as_str()))
            .any(|target| (start..=instruction.line).contains(target));
        if !loops {
            unpolled.push(instruction.line);
        }
    }
    unpolled
}

#[test]
fn a_wait_that_only_an_outer_loop_repeats_is_not_called_polling() {
    let kernel = |branch_back_to: &str| {
        format!(
            ".version 8.7\n.target sm_90a\n.address_size 64\n\
             .visible .entry k()\n{{\n.reg .pred %p<3>;\n.reg .b64 %rd<2>;\n.reg .b32 %r<2>;\n\
             mov.b32 %r1, 0;\n\
             $OUTER:\n\
             mbarrier.arrive.shared.b64 %rd1, [%r1];\n\
             $INNER:\n\
             mbarrier.try_wait.shared::cta.b64 %p1, [%r1], %rd1;\n\
             @!%p1 bra {branch_back_to};\n\
             ret;\n}}\n"
        )
    };
    let unpolled = |text: &str| unpolled_waits(text, &ptx::Module::parse(text).unwrap().kernels[0]);
    assert_eq!(unpolled(&kernel("$INNER")), [0; 0]);
    assert_eq!(unpolled(&kernel("$OUTER")), [13]);
}
