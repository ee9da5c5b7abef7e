use super::*;

const TAGS: &str = "\
tags sem
    Memory ordering.
    release  .release  Publishes.
    relaxed  .relaxed  No ordering.
tags space
    State space.
    shared   .shared::cta      This CTA's.
    cluster  .shared::cluster  The cluster's.
";

const HEAD: &str = "\
//! Test.
instruction test.it
    link anchor
    about Does it.
    safe
";

/// The spec of a family `test` with these forms after `HEAD`.
fn spec(forms: &str) -> Result<Spec> {
    build(TAGS, &[("test".to_string(), format!("{HEAD}{forms}"))])
}

/// `(Rust name, PTX)` of every variant.
fn variants(forms: &str) -> Vec<(String, String)> {
    spec(forms)
        .unwrap()
        .variants()
        .map(|(_, overload, variant)| (overload.rust_name.clone(), variant.ptx.clone()))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, ptx): &(&str, &str)| (name.to_string(), ptx.to_string());
    expected.iter().map(owned).collect()
}

#[test]
fn sets_and_optional_arguments_are_expanded_in_order() {
    let forms = "
fn test(sem, count?: u32)
    test.it.sem{, count};
    .sem = release | relaxed
    PTX 8.0, sm_90
";
    // `{, count}` needs an operand before it to be of use; the bare opcode is fine.
    let forms = forms.replace("{, count}", " _{, count}");
    assert_eq!(
        variants(&forms),
        pairs(&[
            ("test", "test.it.release _;"),
            ("test", "test.it.relaxed _;"),
            ("test_count", "test.it.release _, {count};"),
            ("test_count", "test.it.relaxed _, {count};"),
        ])
    );
}

#[test]
fn a_longer_form_appends_the_arguments_that_the_shortest_lacks() {
    let forms = "
fn test(space_shared, addr: shared *mut u64, count: u32)
    test.it.space [addr], count;
    PTX 8.0, sm_90
fn test(addr: shared *mut u64)
    test.it [addr];
    PTX 8.0, sm_90
fn test(addr: shared *mut u64, count: u32, mask: u32)
    test.it [addr], count, mask;
    rust better_name
    PTX 8.0, sm_90
";
    assert_eq!(
        variants(forms),
        pairs(&[
            ("test", "test.it [{addr}];"),
            ("test_space_count", "test.it.shared::cta [{addr}], {count};"),
            ("better_name", "test.it [{addr}], {count}, {mask};"),
        ])
    );
}

#[test]
fn joint_sets_take_values_together() {
    let forms = "
fn test{.mode}(addr: shared *mut type)
    test.it.mode.type [addr];
    .mode.type = a::b.{u32 u64} | -.s32
    PTX 8.0, sm_90
";
    assert_eq!(
        variants(forms),
        pairs(&[
            ("test_a_b", "test.it.a::b.u32 [{addr}];"),
            ("test_a_b", "test.it.a::b.u64 [{addr}];"),
            ("test", "test.it.s32 [{addr}];"),
        ])
    );
}

#[test]
fn a_member_can_need_more_than_its_form() {
    let spec = spec(
        "
fn test(sem)
    test.it.sem;
    .sem = release | relaxed PTX 8.6, sm_100f
    PTX 8.0, sm_90
",
    )
    .unwrap();
    let needs: Vec<String> = spec
        .variants()
        .map(|(_, _, variant)| format!("{} {}", variant.isas, variant.targets))
        .collect();
    assert_eq!(needs, ["8.0 sm_90 and later", "8.6 sm_100a/f"]);
    let (_, _, relaxed) = spec.variants().nth(1).unwrap();
    assert!(relaxed.is_available("sm_100a", Isa(86)));
    assert!(!relaxed.is_available("sm_100a", Isa(80)));
    assert!(!relaxed.is_available("sm_120a", Isa(86)));
}

#[test]
fn predicates_are_converted_inside_the_statement() {
    let spec = spec(
        "
fn test(enable: bool, seen: &mut bool, coords: [i32; 2]) -> done: bool
    test.it done|seen, [coords], enable;
    PTX 8.0, sm_90
",
    )
    .unwrap();
    let (_, _, variant) = spec.variants().next().unwrap();
    assert_eq!(
        variant.asm_lines(),
        [
            "{{",
            ".reg .pred P_OUT_done;",
            ".reg .pred PRED_enable;",
            ".reg .pred P_OUT_seen;",
            "setp.ne.b32 PRED_enable, {enable}, 0;",
            "test.it P_OUT_done|P_OUT_seen, [{{{coords0}, {coords1}}}], PRED_enable;",
            "selp.b32 {done}, 1, 0, P_OUT_done;",
            "selp.b32 {seen}, 1, 0, P_OUT_seen;",
            "}}",
        ]
    );
}

/// The message for forms that are wrong. It begins with file and line, counted from the forms.
fn error(forms: &str) -> String {
    let head_lines = HEAD.lines().count();
    let message = format!("{:#}", spec(forms).unwrap_err());
    let (line, rest) = message
        .strip_prefix("spec/test.spec:")
        .and_then(|rest| rest.split_once(": "))
        .unwrap_or_else(|| panic!("no file and line in `{message}`"));
    format!("{}: {rest}", line.parse::<usize>().unwrap() - head_lines)
}

#[test]
fn errors_say_where_and_what_was_expected() {
    let body = "    PTX 8.0, sm_90\n";
    let cases = [
        ("nonsense\n", "1: expected `//!`, `instruction NAME`"),
        ("fn test(\n", "1: `(` of the signature is not closed"),
        ("fn test()\n", "1: the form has no PTX line"),
        (
            "fn test()\n    test.it;\n",
            "1: the form has no `PTX VERSION",
        ),
        (
            "fn test()\n    test.it;\n    PTX 8.9, sm_90\n",
            "3: `8.9` is not a PTX ISA version",
        ),
        (
            "fn test()\n    test.it;\n    PTX 8.0, sm_91\n",
            "3: unknown architecture `sm_91`",
        ),
        (
            "fn test()\n    test.it;\n    PTX 8.0, sm_90 100\n",
            "3: expected architectures",
        ),
        (
            "fn test()\n    test.it;\n    test.it;\n",
            "3: the form has a PTX line already",
        ),
        (
            "fn test()\n    test.it;\n    what\n",
            "3: expected a PTX line",
        ),
        (
            "fn test(a: u31)\n    test.it a;\n    BODY",
            "1: unknown type `u31`",
        ),
        (
            "fn test(a: u32, a: u32)\n    test.it a;\n    BODY",
            "1: the name `a` is there twice",
        ),
        (
            "fn test(a: u32)\n    test.it b;\n    BODY",
            "1: operand `b` is neither",
        ),
        (
            "fn test(a: u32)\n    test.it;\n    BODY",
            "1: `a` is not an operand",
        ),
        (
            "fn test(thing)\n    test.it;\n    BODY",
            "1: expected `NAME: TYPE`, a tag",
        ),
        (
            "fn test(sem)\n    test.it.sem;\n    BODY",
            "1: `sem` needs a set",
        ),
        (
            "fn test(sem)\n    test.it.sem;\n    .sem = sc\n    BODY",
            "1: there is no tag `sem_sc`",
        ),
        (
            "fn test(sem)\n    test.it.sem;\n    .sem = release | release\n    BODY",
            "3: `release` is in the set twice",
        ),
        (
            "fn test()\n    test.it.a.b;\n    .a.b = c | d.e\n    BODY",
            "3: expected 2 parts",
        ),
        (
            "fn test{.x}()\n    test.it;\n    BODY",
            "1: the form has no set `.x`",
        ),
        (
            "fn test(p: *mut u64)\n    test.it [p];\n    BODY",
            "1: unknown type",
        ),
        (
            "fn test()\n    test.it;\n    effects pure\n    BODY",
            "3: `volatile` and `pure` need a reason",
        ),
    ];
    for (forms, expected) in cases {
        let message = error(&forms.replace("    BODY", body));
        assert!(message.starts_with(expected), "{forms}: {message}");
    }
}

#[test]
fn ambiguous_forms_are_errors() {
    let form = |args: &str, ptx: &str| format!("fn test({args})\n    {ptx};\n    PTX 8.0, sm_90\n");
    let twice = form("a: u32", "test.it a") + &form("a: u32", "test.that a");
    assert!(error(&twice).contains("take the same argument types"));
    let renamed = form("", "test.it")
        + &form("a: u32, b: u32", "test.it a, b")
        + &form("b: u32, a: u32", "test.it a, b").replace("    PTX", "    rust test_a_b\n    PTX");
    assert!(
        error(&renamed).contains("but the same Rust name"),
        "{}",
        error(&renamed)
    );
    let taken = form("", "test.it")
        + &form("a: u32", "test.it a")
        + &form("b: u64", "test.it b").replace("fn test", "fn test_a");
    assert!(
        error(&taken).contains("the Rust name `test_a` is taken"),
        "{}",
        error(&taken)
    );
}

#[test]
fn an_instruction_says_what_the_caller_must_guarantee_or_that_it_is_safe() {
    let text = "//! Test.\ninstruction test.it\n    link anchor\n    about Does it.\n";
    let message = build(TAGS, &[("test".to_string(), text.to_string())]).unwrap_err();
    assert!(
        message.to_string().starts_with("spec/test.spec:2: "),
        "{message}"
    );
}

#[test]
fn the_spec_of_the_workspace_is_sound() {
    let spec = load().unwrap();
    assert!(spec.variants().count() > 200);
}

#[test]
fn an_architecture_includes_older_ones_and_its_own_suffixes() {
    assert_eq!(
        included_architectures("sm_100a")
            .into_iter()
            .rev()
            .take(4)
            .collect::<Vec<_>>(),
        ["100f", "100a", "100", "90"]
    );
    assert!(!included_architectures("sm_100a").contains(&"90a"));
}

#[test]
fn ranges_lengths_and_twins_follow_the_chosen_member() {
    let spec = spec(
        "
fn test(d: inout [f32; n/2], a: u32)
    test.m{.n}.it d, a;
    .n = 8..=24 step 8
    cxx test_{.n}(d, a)
    PTX 8.0, sm_90
",
    )
    .unwrap();
    let variants: Vec<_> = spec.variants().map(|(.., variant)| variant).collect();
    let ptx = variants.iter().map(|variant| variant.ptx.as_str());
    assert_eq!(
        ptx.collect::<Vec<_>>(),
        [
            "test.m8.it {d}, {a};",
            "test.m16.it {d}, {a};",
            "test.m24.it {d}, {a};"
        ]
    );
    let last = variants[2];
    let of = Scalar::F32;
    assert_eq!(last.args[0].ty, Type::InOut { of, len: 12 });
    assert_eq!(last.asm_operands().len(), 13);
    assert_eq!(
        last.twin,
        Some(Twin::Expression("test_24(d, a)".to_string()))
    );
}
