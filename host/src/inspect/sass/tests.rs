use super::*;

const NVCC: &str = include_str!("../fixtures/nvcc.sass");
const LLVM: &str = include_str!("../fixtures/llvm.sass");
const CALLS: &str = include_str!("../fixtures/calls.sass");

fn named(text: &str, name: &str) -> Function {
    let functions = parse(text).unwrap();
    functions
        .into_iter()
        .find(|function| function.name == name)
        .unwrap()
}

/// A function of the given instructions, as nvdisasm writes it.
fn function(instructions: &[&str]) -> Function {
    let mut text = String::from("\t.section\t.text.k,\"ax\",@progbits\nk:\n.text.k:\n");
    for (index, instruction) in instructions.iter().enumerate() {
        if instruction.ends_with(':') {
            text.push_str(&format!("{instruction}\n"));
        } else {
            text.push_str(&format!(
                "        /*{:04x}*/                   {instruction} ;\n",
                index * 16
            ));
        }
    }
    parse(&text).unwrap().remove(0)
}

const COPY: &[&str] = &[
    "LDC R1, c[0x0][0x28]",
    "LDC.64 R2, c[0x0][0x210]",
    "LDG.E R0, desc[UR4][R2.64]",
    "ISETP.NE.AND P0, PT, R0, RZ, PT",
    "@P0 STS [R4], R0",
    "EXIT",
];

fn with(position: usize, instruction: &'static str) -> Function {
    let mut instructions = COPY.to_vec();
    instructions[position] = instruction;
    function(&instructions)
}

#[test]
fn functions_are_read_without_addresses_and_padding() {
    let single = named(LLVM, "single");
    let text = Vec::from_iter(single.instructions.iter().map(Instruction::to_string));
    assert_eq!(
        text,
        [
            "LDC R1, c[0x0][0x28]",
            "LDC R2, c[0x0][0x220]",
            "ULDC UR4, c[0x0][0x218]",
            "LDC.64 R4, c[0x0][0x210]",
            "SYNCS.ARRIVE.TRANS64.ART0 R2, [UR4], R2",
            "ULDC.64 UR4, c[0x0][0x208]",
            "STG.E.64 desc[UR4][R4.64], R2",
            "EXIT",
        ]
    );
}

#[test]
fn a_guarded_nop_and_a_loop_are_no_padding() {
    assert!(
        named(NVCC, "twice")
            .instructions
            .iter()
            .any(|it| it.opcode == "NOP")
    );
    let spin = function(&[
        "NOP",
        ".L_x_1:",
        "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR6], R0",
        "@!P0 BRA `(.L_x_1)",
        "BRA `(.L_x_1)",
    ]);
    assert_eq!(spin.instructions.len(), 4);
}

#[test]
fn branches_lead_to_an_instruction() {
    let twice = named(LLVM, "twice");
    let branches = twice.instructions.iter().filter(|it| it.opcode == "BRA");
    let targets = Vec::from_iter(branches.map(|it| it.operands[0].as_str()));
    assert_eq!(targets, ["#22", "#22", "#18"]);
}

#[test]
fn a_called_function_belongs_to_its_kernel() {
    let functions = parse(CALLS).unwrap();
    assert_eq!(functions.len(), 1);
    let call = functions[0]
        .instructions
        .iter()
        .find(|it| it.base() == "CALL")
        .unwrap();
    let entry: usize = call.operands[0].trim_start_matches('#').parse().unwrap();
    assert_eq!(
        functions[0].instructions[entry].to_string(),
        "LDC R5, c[0x0][0x218]"
    );
    assert_eq!(functions[0].instructions.last().unwrap().base(), "RET");
}

#[test]
fn annotations_and_reuse_flags_are_dropped() {
    let annotated = function(&["IADD3 R4, R5.reuse, c[0x0][R0+0x10], RZ &req={0} ?trans1"]);
    assert_eq!(
        annotated.instructions[0].operands,
        ["R4", "R5", "c[0x0][R0+0x10]", "RZ"]
    );
    let branch = named(CALLS, "_Z5plainPfi")
        .instructions
        .into_iter()
        .find(|it| it.base() == "BRX")
        .unwrap();
    assert_eq!(branch.operands, ["R2 -0x1f0"]);
}

#[test]
fn text_that_is_no_disassembly_is_an_error_with_its_line() {
    let error = parse("\t.section\t.text.k,\"ax\"\nnvdisasm fatal\n").unwrap_err();
    assert!(
        format!("{error:#}").starts_with("line 2 of the disassembly: expected a label"),
        "{error:#}"
    );
}

#[test]
fn another_register_allocation_is_identical() {
    let other = function(&[
        "LDC R9, c[0x0][0x28]",
        "LDC.64 R6, c[0x0][0x210]",
        "LDG.E R11, desc[UR8][R6.64]",
        "ISETP.NE.AND P3, PT, R11, RZ, PT",
        "@P3 STS [R2], R11",
        "EXIT",
    ]);
    let comparison = compare(&other, &function(COPY));
    assert_eq!(comparison.class, Class::Identical);
    assert!(comparison.difference.is_empty());
}

#[test]
fn a_register_swap_that_matters_is_not_identical() {
    assert_eq!(
        compare(&with(4, "@P0 STS [R0], R4"), &function(COPY)).class,
        Class::Equivalent
    );
    assert_eq!(
        compare(&with(4, "@!P0 STS [R4], R0"), &function(COPY)).class,
        Class::Equivalent
    );
}

#[test]
fn the_other_half_of_a_pair_is_not_identical() {
    let low = function(&["LDC.64 R2, c[0x0][0x210]", "STS [R4], R2"]);
    let high = function(&["LDC.64 R2, c[0x0][0x210]", "STS [R4], R3"]);
    let other = function(&["LDC.64 R2, c[0x0][0x210]", "STS [R4], R7"]);
    assert_eq!(compare(&low, &high).class, Class::Equivalent);
    assert_eq!(compare(&high, &other).class, Class::Equivalent);
}

#[test]
fn another_constant_is_not_identical() {
    assert_eq!(
        compare(&with(1, "LDC.64 R2, c[0x0][0x218]"), &function(COPY)).class,
        Class::Equivalent
    );
}

#[test]
fn another_order_is_equivalent() {
    let mut moved = COPY.to_vec();
    moved.swap(0, 1);
    assert_eq!(
        compare(&function(&moved), &function(COPY)).class,
        Class::Equivalent
    );
}

#[test]
fn a_missing_instruction_is_fewer_on_one_side_and_differs_on_the_other() {
    let shorter = function(&COPY[1..]);
    assert_eq!(compare(&shorter, &function(COPY)).class, Class::Fewer);
    let longer = compare(&function(COPY), &shorter);
    assert_eq!(longer.class, Class::Differs);
    assert_eq!(longer.difference.to_string(), "Rust has 1 LDC more");
}

#[test]
fn one_modifier_differs() {
    let comparison = compare(&with(2, "LDG.E.64 R0, desc[UR4][R2.64]"), &function(COPY));
    assert_eq!(comparison.class, Class::Differs);
    assert_eq!(
        comparison.difference.to_string(),
        "Rust has 1 LDG.E.64 more; C++ has 1 LDG.E more"
    );
}

#[test]
fn only_the_last_class_is_not_equal() {
    let equal = [
        Class::Identical,
        Class::Equivalent,
        Class::Fewer,
        Class::Differs,
    ]
    .map(Class::is_equal);
    assert_eq!(equal, [true, true, true, false]);
}

#[test]
fn whole_kernels_are_compared_by_which_opcodes_they_use() {
    let mut twice = COPY.to_vec();
    twice.extend_from_slice(COPY);
    let comparison = compare_opcodes(&function(&twice), &function(COPY));
    assert!(comparison.is_equal());
    assert_eq!(comparison.instructions, [12, 6]);

    let comparison = compare_opcodes(&with(4, "@P0 ST.E desc[UR4][R4.64], R0"), &function(COPY));
    assert!(!comparison.is_equal());
    assert_eq!(
        (comparison.only_rust, comparison.only_cxx),
        (vec!["ST.E".to_owned()], vec!["STS".to_owned()])
    );
}

#[test]
fn generic_accesses_are_those_without_an_address_space() {
    let accesses = [
        "LDS R0, [R1]",
        "LD.E R0, desc[UR4][R2.64]",
        "LDG.E R0, desc[UR4][R2.64]",
        "ST.E.64 desc[UR4][R2.64], R4",
    ];
    let mixed = function(&accesses);
    let generic = Vec::from_iter(
        generic_accesses(&mixed)
            .into_iter()
            .map(|it| it.opcode.as_str()),
    );
    assert_eq!(generic, ["LD.E", "ST.E.64"]);
    assert!(generic_accesses(&named(NVCC, "twice")).is_empty());
}

#[test]
fn equality_has_no_sign_but_order_has() {
    let operation = |opcode: &str| {
        let instruction = Instruction {
            guard: None,
            opcode: opcode.to_owned(),
            operands: Vec::new(),
        };
        instruction.operation().into_owned()
    };
    assert_eq!(operation("ISETP.NE.U32.AND"), "ISETP.NE.AND");
    assert_eq!(operation("UISETP.EQ.U32.OR"), "UISETP.EQ.OR");
    for opcode in [
        "ISETP.GE.U32.AND",
        "ISETP.NE.AND",
        "ISETP.NE.U64.AND",
        "STS",
    ] {
        assert_eq!(operation(opcode), opcode);
    }
}
