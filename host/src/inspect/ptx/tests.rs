use super::*;

const NVCC: &str = include_str!("../fixtures/nvcc.ptx");
const LLVM: &str = include_str!("../fixtures/llvm.ptx");

fn parse(text: &str) -> Module {
    Module::parse(text).unwrap()
}

/// One kernel with `body`, between inline-assembly markers where it has them.
fn kernel(body: &str) -> Kernel {
    let text = format!(
        ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 k_param_0)\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n{body}\nret;\n}}\n"
    );
    parse(&text).kernels.remove(0)
}

fn opcodes(kernel: &Kernel) -> Vec<&str> {
    kernel
        .instructions
        .iter()
        .map(Instruction::opcode)
        .collect()
}

#[test]
fn the_header_and_the_kernels_of_both_compilers_are_read() {
    let (nvcc, llvm) = (parse(NVCC), parse(LLVM));
    assert_eq!(
        (nvcc.version.as_str(), nvcc.target.as_str()),
        ("9.5", "sm_90a")
    );
    assert_eq!(
        (llvm.version.as_str(), llvm.target.as_str()),
        ("8.6", "sm_90a")
    );
    for module in [&nvcc, &llvm] {
        let names = Vec::from_iter(module.kernels.iter().map(|kernel| kernel.name.as_str()));
        assert_eq!(names, ["twice", "single"]);
    }
    assert_eq!(nvcc.externs, ["vprintf"]);
    assert_eq!(nvcc.kernels[0].params.len(), 3);
    assert_eq!(
        llvm.kernels[1].params[1].ty,
        ".param .u64 .ptr .shared .align 1"
    );
}

#[test]
fn a_kernel_knows_its_lines() {
    for text in [NVCC, LLVM] {
        let lines = Vec::from_iter(text.lines());
        for kernel in parse(text).kernels {
            let (first, last) = (
                lines[kernel.lines.start() - 1],
                lines[kernel.lines.end() - 1],
            );
            assert!(
                first.starts_with(&format!(".visible .entry {}(", kernel.name)),
                "{first}"
            );
            assert_eq!(last, "}");
        }
    }
}

#[test]
fn launch_bounds_and_cluster_dimensions_are_read() {
    let (nvcc, llvm) = (parse(NVCC), parse(LLVM));
    assert_eq!(nvcc.kernels[0].directives[".maxntid"], "256, 1, 1");
    assert_eq!(llvm.kernels[0].directives[".maxntid"], "256");
    for module in [nvcc, llvm] {
        let directives = &module.kernels[0].directives;
        assert_eq!(directives[".minnctapersm"], "2");
        assert_eq!(directives[".explicitcluster"], "");
        assert!(directives[".reqnctapercluster"].starts_with('2'));
    }
}

#[test]
fn a_variable_of_the_body_keeps_its_space_alignment_and_size() {
    let module = parse(NVCC);
    let shared = module.kernels[0]
        .variables
        .iter()
        .find(|it| it.name.ends_with("tile"))
        .unwrap();
    assert_eq!(shared.ty, ".shared .align 128 .b8 [1024]");
}

#[test]
fn every_instruction_is_found_with_its_guard_and_its_operands() {
    let module = parse(LLVM);
    let kernel = module.kernel("twice").unwrap();
    let text = Vec::from_iter(kernel.instructions.iter().map(Instruction::to_string));
    assert_eq!(
        text,
        [
            "ld.param.b64 %rd2, [twice_param_0]",
            "cvta.to.global.u64 %rd1, %rd2",
            "mov.u32 %r1, %tid.x",
            "setp.ne.b32 %p1, %r1, 0",
            "mov.b64 %rd3, BAR",
            "@%p1 bra $L__BB0_2",
            "ld.param.b32 %r3, [twice_param_1]",
            "cvt.u32.u64 %r2, %rd3",
            "mbarrier.init.shared::cta.b64 [%r2], %r3",
            "cvt.u32.u64 %r5, %rd3",
            "mov.b32 %r6, 0",
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%r5], %r6",
            "selp.b32 %r4, 1, 0, p",
            "setp.eq.b32 %p2, %r4, 0",
            "@%p2 bra $L__BB0_3",
            "mov.b32 %r8, -1",
            "elect.sync _|p, %r8",
            "selp.b32 %r7, 1, 0, p",
            "st.global.b32 [%rd1+32], %r7",
            "ret",
        ]
    );
}

#[test]
fn a_call_with_its_parameter_scope_is_read() {
    let module = parse(NVCC);
    let call = module.kernels[0]
        .instructions
        .iter()
        .find(|it| it.opcode == "call.uni")
        .unwrap();
    assert_eq!(
        call.to_string(),
        "call.uni (retval0), vprintf, (param0, param1)"
    );
}

#[test]
fn inline_assembly_blocks_are_told_apart() {
    let module = parse(NVCC);
    let blocks = Vec::from_iter(
        module.kernels[0]
            .instructions
            .iter()
            .filter_map(|it| it.asm_block),
    );
    assert_eq!(blocks, [0, 1, 2, 3, 4, 5, 6, 7, 7, 8, 9, 9]);
}

#[test]
fn several_instructions_on_a_line_vectors_and_negated_guards_are_read() {
    let kernel =
        kernel("{.reg .b64 t; @!%p1 mov.b64 t, {%r1, %r2};ld.global.v2.b32 {%r3,%r4}, [t+-8];}");
    let text = Vec::from_iter(kernel.instructions.iter().map(Instruction::to_string));
    assert_eq!(
        text,
        [
            "@!%p1 mov.b64 t, {%r1, %r2}",
            "ld.global.v2.b32 {%r3, %r4}, [t+-8]",
            "ret"
        ]
    );
    assert_eq!(kernel.instructions[1].operands.len(), 2);
}

#[test]
fn line_information_pragmas_and_debug_sections_are_skipped() {
    let text = ".version 9.0\n.target sm_90, debug\n.address_size 64\n.file 1 \"a;{b.rs\"\n\
        .entry k()\n.pragma \"nounroll\";\n{\n.loc 1 2 3, function_name $s, inlined_at 1 4 5\n.pragma \"x\";\nret;\n}\n\
        .section .debug_str\n{\n$s:\n.b8 107, 0\n}\n.section .debug_loc { }\n";
    let module = parse(text);
    assert_eq!(module.target, "sm_90, debug");
    assert_eq!(opcodes(&module.kernels[0]), ["ret"]);
}

#[test]
fn functions_and_initialised_variables_are_no_kernels() {
    let text = ".version 9.0\n.target sm_90\n.global .align 4 .b8 t[2] = {1, 2};\n\
        .extern .shared .align 16 .b8 dynamic[];\n.func (.param .b32 r) f(.param .b32 f_0);\n\
        .func (.param .b32 r) f(.param .b32 f_0)\n{\nret;\n}\n.entry k()\n{\nexit;\n}\n";
    let module = parse(text);
    assert_eq!(module.functions.len(), 1);
    assert_eq!(module.functions[0].params[0].name, "f_0");
    assert_eq!(module.kernels.len(), 1);
    assert_eq!(module.externs, ["dynamic"]);
}

#[test]
fn the_same_inline_assembly_from_both_compilers_is_equal_after_renaming() {
    let (nvcc, llvm) = (parse(NVCC), parse(LLVM));
    let expected = ["mbarrier.arrive.release.cta.shared::cta.b64 %rd0, [%r0], %r1"];
    assert_eq!(nvcc.kernel("single").unwrap().normalised_asm(), expected);
    assert_eq!(llvm.kernel("single").unwrap().normalised_asm(), expected);
}

#[test]
fn predicates_of_two_blocks_with_one_name_are_two_registers() {
    let block = "// begin inline asm\n{ .reg .pred P; setp.ne.s32 P, %r1, 0; selp.b32 %r2, 1, 0, P; }\n// end inline asm\n";
    assert_eq!(
        kernel(&block.repeat(2)).normalised_asm(),
        [
            "setp.ne.s32 %p0, %r0, 0",
            "selp.b32 %r1, 1, 0, %p0",
            "setp.ne.s32 %p1, %r0, 0",
            "selp.b32 %r1, 1, 0, %p1",
        ]
    );
}

#[test]
fn labels_are_named_by_what_they_point_at_and_end_with_their_scope() {
    let looped = |label: &str| {
        format!("{{ {label}: @%p1 bra {label}; }} {{ {label}: @!%p1 bra.uni {label}; }}")
    };
    let kernel_a = kernel(&looped("WAIT"));
    assert_eq!(
        kernel_a.normalised(),
        ["@%p0 bra $L0", "@!%p0 bra.uni $L1", "ret"]
    );
    assert_eq!(
        kernel_a.normalised(),
        kernel(&looped("$L__BB0_7")).normalised()
    );
}

#[test]
fn symbols_are_named_by_use() {
    let body = |name: &str| {
        format!(
            ".shared .align 8 .b64 {name};\nld.param.u64 %rd1, [k_param_0];\nmov.u32 %r1, {name};\nst.shared.b64 [{name}+8], %rd1;"
        )
    };
    let normalised = kernel(&body("_ZN3BARE")).normalised();
    assert_eq!(
        normalised,
        [
            "ld.param.u64 %rd0, [$param0]",
            "mov.u32 %r0, $symbol0",
            "st.shared.b64 [$symbol0+8], %rd0",
            "ret"
        ]
    );
    assert_eq!(normalised, kernel(&body("bar")).normalised());
}

const BODY: &str = "// begin inline asm\nmbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %rd1, [%r1], %r2;\n\
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2], %r2, [%r1];\n// end inline asm\n";

/// What the normalised text of [`BODY`] must notice.
fn differs_when(from: &str, to: &str) {
    let (planted, original) = (BODY.replacen(from, to, 1), kernel(BODY));
    assert_ne!(planted, BODY, "`{from}` is in the text");
    assert_ne!(
        kernel(&planted).normalised_asm(),
        original.normalised_asm(),
        "`{from}` → `{to}`"
    );
}

#[test]
fn a_planted_difference_is_caught_in_the_normalised_text() {
    differs_when(".release.cta.", ".release.cluster.");
    differs_when(".release.cta.shared::cta", ".release.cta.shared");
    differs_when("[%r1], %r2;", "[%r2], %r1;");
    differs_when("%r2, [%r1];", "%r2, [%r3];");
    differs_when(
        "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %rd1, [%r1], %r2;",
        "",
    );
    differs_when("%rd1,", "_,");
}

#[test]
fn a_swap_that_is_only_another_name_is_not_a_difference() {
    let swapped = BODY
        .replace("%r1", "%r7")
        .replace("%r2", "%r1")
        .replace("%rd1", "%rd5");
    assert_eq!(
        kernel(&swapped).normalised_asm(),
        kernel(BODY).normalised_asm()
    );
}

#[test]
fn a_register_of_another_width_is_a_difference() {
    let wide = kernel(&BODY.replace("[%r3]", "[%rd3]"));
    assert_ne!(wide.normalised_asm(), kernel(BODY).normalised_asm());
}

/// Two parameters and a shared object, in the order in which one compiler loads them.
const FLOW: &str = ".shared .align 8 .b64 bar;\nld.param.b64 %rd1, [k_param_0];\ncvta.to.global.u64 %rd2, %rd1;\n\
    mov.b32 %r1, 7;\nmov.b32 %r2, bar;\nadd.s32 %r3, %r2, 1024;\n\
    // begin inline asm\nmbarrier.arrive.shared.b64 %rd3, [%r3], %r1;\n// end inline asm\n\
    st.global.b64 [%rd2+8], %rd3;";

#[test]
fn the_dataflow_names_where_operands_come_from() {
    assert_eq!(
        kernel(FLOW).dataflow(),
        [
            "mbarrier.arrive.shared.b64 %rd0, [%r($symbol0)+1024], %r(7)",
            "st.global.b64 [%rd($param0)+8], %rd0",
        ]
    );
}

#[test]
fn the_dataflow_does_not_depend_on_order_names_and_folding() {
    let other = ".shared .align 8 .b64 _ZN3bar;\nmov.b32 %r4, _ZN3bar+1024;\nmov.b32 %r6, 7;\n\
        // begin inline asm\nmbarrier.arrive.shared.b64 %rd5, [%r4], %r6;\n// end inline asm\n\
        ld.param.u64 %rd4, [k_param_0];\ncvta.to.global.u64 %rd4, %rd4;\nadd.s64 %rd6, %rd4, 8;\nst.global.u64 [%rd6], %rd5;";
    assert_eq!(kernel(other).dataflow(), kernel(FLOW).dataflow());
}

#[test]
fn swapped_operands_and_results_are_a_difference_of_the_dataflow() {
    for (from, to) in [
        ("[%r3], %r1;", "[%r1], %r3;"),
        ("%r2, 1024", "%r2, 1032"),
        ("%r1, 7", "%r1, 8"),
        ("+8], %rd3", "+16], %rd3"),
        ("+8], %rd3", "+8], %rd2"),
        ("[%r3]", "[%rd2]"),
    ] {
        assert!(FLOW.contains(from), "`{from}` is in the text");
        assert_ne!(
            kernel(&FLOW.replace(from, to)).dataflow(),
            kernel(FLOW).dataflow(),
            "`{from}` → `{to}`"
        );
    }
}

#[test]
fn mirrored_instructions_are_told_from_the_compilers() {
    let module = parse(NVCC);
    let mirrored = module.kernels[0].mirrored();
    assert_eq!(
        Vec::from_iter(mirrored.items()),
        [
            "barrier.cluster.arrive.release",
            "barrier.cluster.wait.acquire",
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
            "elect.sync",
            "fence.mbarrier_init.release.cluster",
            "getctarank.shared::cluster.u32",
            "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64",
            "mbarrier.arrive.shared.b64",
            "mbarrier.init.shared.b64",
            "mbarrier.try_wait.parity.shared::cta.b64",
        ]
    );
}

#[test]
fn a_shift_is_mirrored_only_in_inline_assembly() {
    assert!(kernel("shl.b32 %r1, %r2, 3;").mirrored().is_empty());
    let written = kernel("// begin inline asm\nshl.b32 %r1, %r2, %r3;\n// end inline asm");
    assert_eq!(written.mirrored().count("shl.b32"), 1);
    assert!(
        kernel("fenced.x;").mirrored().is_empty(),
        "a family is whole words"
    );
}

#[test]
fn the_comparison_names_the_side_an_instruction_is_missing_on() {
    let rust = kernel(
        "fence.acq_rel.cluster; mbarrier.inval.shared.b64 [%r1]; mbarrier.inval.shared.b64 [%r2];",
    );
    let cxx = kernel("fence.acq_rel.gpu; mbarrier.inval.shared.b64 [%r1];");
    let comparison = compare_mirrored(&rust, &cxx);
    assert!(!comparison.is_equal());
    assert_eq!(
        Vec::from_iter(&comparison.only_rust),
        ["fence.acq_rel.cluster"]
    );
    assert_eq!(Vec::from_iter(&comparison.only_cxx), ["fence.acq_rel.gpu"]);
    assert_eq!(
        Vec::from_iter(&comparison.common),
        ["mbarrier.inval.shared.b64"]
    );
    assert!(compare_mirrored(&rust, &rust).is_equal());
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    let error = |text: &str| Module::parse(text).unwrap_err().to_string();
    assert!(error("ret;\n").starts_with("line 1: expected a directive"));
    assert!(error(".version 9.0\n.target sm_90\n.entry k()\n{\nret;\n").contains("expected `}`"));
    assert!(
        error(".version 9.0\n.target sm_90\n.entry k()\n{\n[%r1];\n}")
            .starts_with("line 5: expected an instruction")
    );
    assert!(
        error(".version 9.0\n.target sm_90\n.entry k()\n{\n.reg .banana x;\n}")
            .starts_with("line 5: expected a register type")
    );
    assert!(error("").contains("`.version`"));
}
