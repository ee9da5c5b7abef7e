use super::*;
use crate::spec::Spec;

/// A header with two functions that do not exist: one that differs by tag, and one with every kind of parameter.
pub(super) const HEADER: &str = r#"
/* // frob.scope.b64 state, [addr], count; // PTX ISA 80, SM_90 */
#if __cccl_ptx_isa >= 800
template <::cuda::ptx::dot_scope _Scope>
_CCCL_DEVICE_API bool frob(::cuda::ptx::scope_t<_Scope> __scope, ::cuda::std::uint64_t* __addr, const ::cuda::std::uint32_t& __count)
{
  ::cuda::std::uint32_t __done;
  if constexpr (__scope == scope_cta)
  {
    asm("{\n\t.reg .pred P_OUT;\n\tfrob.cta.b64 P_OUT, [%1], %2; // 1.\n\tselp.b32 %0, 1, 0, P_OUT;\n\t}"
        : "=r"(__done) : "r"(__as_ptr_smem(__addr)), "r"(__count) : "memory");
  }
  else if constexpr (__scope == scope_cluster)
  {
    asm("{\n\t.reg .pred P_OUT;\n\tfrob.cluster.b64 P_OUT, [%1], %2; // 1.\n\tselp.b32 %0, 1, 0, P_OUT;\n\t}"
        : "=r"(__done) : "r"(__as_ptr_smem(__addr)), "r"(__count) : "memory");
  }
  return static_cast<bool>(__done);
}
#endif
/* // twist.b32 out, in, imm; // PTX ISA 86, SM_100a */
#if __cccl_ptx_isa >= 860
template <typename _B32, ::cuda::std::enable_if_t<sizeof(_B32) == 4, bool> = true, int _N32>
_CCCL_DEVICE_API void twist(_B32 (&__out)[2], const _B32 (&__in)[2], ::cuda::ptx::n32_t<_N32> __imm)
{
  asm("twist.b32 {%0, %1}, {%2, %3}, %4;"
      : "=r"(__out[0]), "=r"(__out[1]) : "r"(__in[0]), "r"(__in[1]), "n"(__imm.value) :);
}
#endif
"#;

const TAGS: &str = "tags scope\n    Threads.\n    cta      .cta      One CTA.\n    cluster  .cluster  A cluster.\n";

pub(super) const FAMILY: &str = "//! Nothing real.\n
instruction frob
    link frob
    about Frobs.
    safety Do not.
    effects memory

fn frob(scope, addr: shared *mut u64, count: u32) -> done: bool
    frob.scope.b64 done, [addr], count;
    .scope = cta | cluster
    PTX 8.0, sm_90

instruction twist
    link twist
    about Twists.
    effects pure It only computes.
    safety Do not.

fn twist(out: &mut [b32; 2], input: [b32; 2], imm: n32 3..=7)
    twist.b32 out, input, imm;
    PTX 8.6, sm_100a
";

pub(super) fn spec(family: &str) -> Spec {
    crate::spec::build(TAGS, &[("frobbing".to_owned(), family.to_owned())]).unwrap()
}

fn pairs_with_mirror(matching: &Matching) -> Vec<bool> {
    matching
        .pairs
        .iter()
        .map(|pair| pair.mirror.is_some())
        .collect()
}

#[test]
fn every_variant_finds_its_mirror() {
    let (headers, spec) = (Headers::of_text(HEADER), spec(FAMILY));
    let matching = Matching::new(&headers, &spec).unwrap();
    assert_eq!(pairs_with_mirror(&matching), [true, true, true]);
    assert!(matching.extra.is_empty());
    let tags = Vec::from_iter(matching.pairs.iter().map(|pair| pair.form.tags().join(" ")));
    assert_eq!(tags, ["scope_cta", "scope_cluster", ""]);
    for pair in &matching.pairs[..2] {
        let opcode = pair.mirror.unwrap().variant.opcode();
        assert!(pair.form.variant.asm.contains(opcode), "{opcode}");
    }
}

#[test]
fn a_form_that_the_spec_forgot_is_missing() {
    let (headers, spec) = (
        Headers::of_text(HEADER),
        spec(&FAMILY.replace("cta | cluster", "cta")),
    );
    let matching = Matching::new(&headers, &spec).unwrap();
    assert_eq!(pairs_with_mirror(&matching), [true, false, true]);
    let scope = (0..3).collect();
    let report = Report::new(
        "0.0.0",
        BTreeMap::new(),
        &matching,
        &scope,
        &BTreeMap::new(),
    );
    assert!(!report.holds());
    assert!(
        report
            .summary()
            .contains("missing: frob(scope_t<Scope> scope, uint64_t* addr, const uint32_t& count)")
    );
    assert!(
        report.summary().contains("1/2 overloads"),
        "{}",
        report.summary()
    );
}

#[test]
fn a_form_with_another_qualifier_is_missing_and_extra() {
    let (headers, spec) = (
        Headers::of_text(HEADER),
        spec(&FAMILY.replace("twist.b32", "twist.u32")),
    );
    let matching = Matching::new(&headers, &spec).unwrap();
    assert_eq!(pairs_with_mirror(&matching), [true, true, false]);
    assert_eq!(matching.extra.len(), 1);
}

#[test]
fn a_form_with_swapped_operands_is_still_built_so_that_the_ptx_shows_it() {
    let swapped = FAMILY.replace("done, [addr], count", "done, [count], addr");
    let (headers, spec) = (Headers::of_text(HEADER), spec(&swapped));
    let matching = Matching::new(&headers, &spec).unwrap();
    assert_eq!(pairs_with_mirror(&matching), [true, true, true]);
}

#[test]
fn both_kernels_take_the_same_parameters() {
    let (headers, spec) = (Headers::of_text(HEADER), spec(FAMILY));
    let matching = Matching::new(&headers, &spec).unwrap();
    let texts = |index: usize| {
        let pair = &matching.pairs[index];
        let mirror = pair.mirror.unwrap();
        (
            rust::kernel("k", mirror),
            cxx::kernel("k", &pair.form, mirror),
        )
    };
    let (rust, cxx) = texts(1);
    assert!(
        rust.contains("pub fn k(a2: u32, result_out: *mut u32)"),
        "{rust}"
    );
    assert!(
        rust.contains("frob(scope_cluster, SHARED.as_mut_ptr().byte_add(0) as *mut u64, a2)"),
        "{rust}"
    );
    assert!(
        cxx.contains(" k(uint32_t a2, uint32_t* result_out)"),
        "{cxx}"
    );
    let call = "static_cast<bool (*)(cuda::ptx::scope_cluster_t, uint64_t*, const uint32_t&)>(cuda::ptx::frob)\
        (cuda::ptx::scope_cluster, reinterpret_cast<uint64_t*>(shared + 0), a2)";
    assert!(cxx.contains(call), "{cxx}");

    let (rust, cxx) = texts(2);
    assert!(
        rust.contains("pub fn k(a0_out: *mut u32, a1_0: u32, a1_1: u32)"),
        "{rust}"
    );
    assert!(
        rust.contains("twist(&mut a0, [a1_0, a1_1], n32::<3>)"),
        "{rust}"
    );
    assert!(
        cxx.contains(" k(uint32_t* a0_out, uint32_t a1_0, uint32_t a1_1)"),
        "{cxx}"
    );
    assert!(cxx.contains("(a0, a1, cuda::ptx::n32_t<3>{})"), "{cxx}");
    assert!(cxx.contains("a0_out[1] = a0[1];"), "{cxx}");
}

#[test]
fn an_unknown_type_is_an_error_with_its_line() {
    let headers = Headers::of_text(&HEADER.replace(
        "const ::cuda::std::uint32_t& __count",
        "const banana& __count",
    ));
    let error = format!("{:#}", Matching::new(&headers, &spec(FAMILY)).unwrap_err());
    assert!(
        error.contains("test.h:5") && error.contains("`banana`"),
        "{error}"
    );
}

#[test]
fn forms_are_compiled_once_where_most_of_them_exist() {
    let (headers, spec) = (Headers::of_text(HEADER), spec(FAMILY));
    let matching = Matching::new(&headers, &spec).unwrap();
    let subjects = matching.pairs.iter().enumerate();
    let subjects = Vec::from_iter(subjects.map(|(index, pair)| Subject {
        index,
        upstream: Some(&pair.form),
        mirror: pair.mirror.unwrap(),
    }));
    let plan_of = |names: &[&str]| {
        let archs = Vec::from_iter(names.iter().map(|name| name.parse().unwrap()));
        let plan = plan(&subjects, &archs);
        Vec::from_iter(
            plan.iter()
                .map(|(arch, subjects)| (arch.to_string(), subjects.len())),
        )
    };
    assert_eq!(
        plan_of(&["sm_80", "sm_90", "sm_100a"]),
        [("sm_100a".to_owned(), 3)]
    );
    assert_eq!(plan_of(&["sm_80", "sm_90"]), [("sm_90".to_owned(), 2)]);
    assert_eq!(plan_of(&["sm_80"]), []);
}

#[test]
fn a_pragma_is_mirrored_by_a_form_with_its_text() {
    let pragma = "#if __cccl_ptx_isa >= 900\n_CCCL_DEVICE static void whirl() noexcept\n\
        {\n  asm volatile(\".pragma \\\"whirl\\\";\");\n}\n#endif\n";
    let mut headers = Headers::of_text(HEADER);
    headers.pragmas = Headers::of_text(pragma).overloads;
    let spec_without = spec(FAMILY);
    let matching = Matching::new(&headers, &spec_without).unwrap();
    assert_eq!(matching.missing_pragmas.len(), 1);
    let report = Report::new(
        "0.0.0",
        BTreeMap::new(),
        &matching,
        &(0..3).collect(),
        &BTreeMap::new(),
    );
    assert!(!report.holds() && report.summary().contains("missing: whirl()"));

    let form = "\ninstruction .pragma\n    link whirl\n    about Whirls.\n    safe\n    effects volatile It must stay.\n\n\
        fn whirl()\n    .pragma \"whirl\";\n    PTX 9.0, sm_75\n";
    let spec_with = spec(&format!("{FAMILY}{form}"));
    let matching = Matching::new(&headers, &spec_with).unwrap();
    assert!(matching.missing_pragmas.is_empty() && matching.extra.is_empty());
}

#[test]
fn another_isa_version_than_the_headers_say_is_a_failure() {
    let (headers, spec) = (
        Headers::of_text(HEADER),
        spec(&FAMILY.replace("PTX 8.6", "PTX 8.7")),
    );
    let matching = Matching::new(&headers, &spec).unwrap();
    let scope = (0..3).collect();
    let report = Report::new(
        "0.0.0",
        BTreeMap::new(),
        &matching,
        &scope,
        &BTreeMap::new(),
    );
    assert!(
        report
            .summary()
            .contains("twist: twist.b32: since PTX ISA 86 in the headers, 87 in the spec")
    );
    assert!(!report.holds());
}

#[test]
fn an_architecture_that_ptxas_does_not_know_lists_those_it_does() {
    assert_eq!(
        architectures(Some("sm_107a")).unwrap()[0].to_string(),
        "sm_107a"
    );
    let error = architectures(Some("sm_70")).unwrap_err().to_string();
    assert!(
        error.contains("sm_75") && error.contains("sm_121f"),
        "{error}"
    );
    assert!(architectures(None).unwrap().len() > 20);
}

/// What [`FAMILY`] has beyond the headers.
const BEYOND: &str = "
instruction shake
    link shake
    about Shakes.
    safety Do not.
    cxx asm

fn shake(d: inout [f32; n/2], a: u64, scale: bool)
    shake.m{.n}k8 d, a, scale;
    .n = 4..=8 step 4
    PTX 8.0, sm_90

fn hug(a: u32) -> d: u32
    hug.op d, a;
    .op = b32
    cxx __hug{.op}(a)
    PTX 8.0, sm_90
";

#[test]
fn a_form_with_a_twin_is_beyond_the_headers_and_neither_missing_nor_extra() {
    let (headers, spec) = (
        Headers::of_text(HEADER),
        spec(&(FAMILY.to_owned() + BEYOND)),
    );
    let matching = Matching::new(&headers, &spec).unwrap();
    assert_eq!(pairs_with_mirror(&matching), [true, true, true]);
    assert!(matching.extra.is_empty());
    let opcodes = matching.beyond.iter().map(|mirror| mirror.variant.opcode());
    assert_eq!(
        Vec::from_iter(opcodes),
        ["shake.m4k8", "shake.m8k8", "hug.b32"]
    );

    let kernels = matching
        .beyond
        .iter()
        .map(|mirror| beyond::kernel("k", mirror.variant));
    let kernels = Vec::from_iter(kernels);
    assert!(
        kernels[0].contains("k(float* a0, uint64_t a, uint32_t a2)"),
        "{}",
        kernels[0]
    );
    for line in [
        "d[1] = a0[1];",
        "shake.m4k8 {%0, %1}, %2, PRED_scale;",
        r#": "+f"(d[0]), "+f"(d[1]) : "l"(a), "r"(static_cast<uint32_t>(scale)) : "memory");"#,
        "a0[1] = d[1];",
    ] {
        assert!(kernels[0].contains(line), "{line} is not in {}", kernels[0]);
    }
    assert!(kernels[2].contains("d = __hugb32(a);"), "{}", kernels[2]);
}
