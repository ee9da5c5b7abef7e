use super::*;

/// A header in the shape of CCCL's, with instructions that do not exist.
const HEADER: &str = r#"
#ifndef GUARD_H
#define GUARD_H
/*
// frob.sem.scope.b64 state, [addr]; // 1. PTX ISA
80, SM_90a, SM_100a,
SM_100f template <dot_scope Scope>
*/
#if __cccl_ptx_isa >= 800
template <::cuda::ptx::dot_scope _Scope, ::cuda::std::enable_if_t<sizeof(_B4) == 4, bool> = true>
_CCCL_DEVICE_API ::cuda::std::uint64_t frob(
  ::cuda::ptx::sem_release_t,
  ::cuda::ptx::scope_t<_Scope> __scope,
  const ::cuda::std::uint32_t (&__values)[2],
  ::cuda::ptx::n32_t<_N32> __count = {})
{
  static_assert(__scope == scope_cta || __scope == scope_cluster, "");
  ::cuda::std::uint64_t __state;
  if constexpr (__scope == scope_cta && sizeof(_B4) == 4)
  {
    asm volatile("{\n\t.reg .pred P; \n\t"
        "frob.release.cta.b64   %0, %1; // 1. \n\t"
        "}"
        : "=l"(__state)
        : "r"(__as_ptr_smem(__values)), "n"(__count.value)
        : "memory");
  }
  else
  {
    asm("frob.release.cluster.b64 %0, %1;" : "=l"(__state) : "r"(/*as_b32*/ *reinterpret_cast<const ::cuda::std::int32_t*>(&__values[0])) :);
  }
  return __state;
}
#endif // __cccl_ptx_isa >= 800
#if __cccl_ptx_isa >= 930 && __cccl_ptx_isa < 950
_CCCL_DEVICE static inline void frob() noexcept
{
#  if _CCCL_CUDA_COMPILER(NVHPC) || __CUDA_ARCH__ >= 900
  asm("frob;");
#  else
  longlong2 __error{0, 0};
  __frob_is_not_supported();
#  endif
}
enum class __mode { __a, __b };
[[maybe_unused]] _CCCL_DEVICE static inline int __helper(int __x) { if (__x == 0) { __x = 1; } return __x; }
extern "C" _CCCL_DEVICE void __frob_is_not_supported();
#endif
#endif
"#;

fn overloads(source: &str) -> Vec<Overload> {
    parser::parse(source, "frob.h").unwrap()
}

fn fault(from: &str, to: &str) -> Fault {
    assert!(HEADER.contains(from), "`{from}` is in the header");
    parser::parse(&HEADER.replacen(from, to, 1), "frob.h").unwrap_err()
}

#[test]
fn overloads_are_read_with_their_signature_and_availability() {
    let overloads = overloads(HEADER);
    assert_eq!(
        overloads.len(),
        2,
        "a helper, an enum and a declaration are no overloads"
    );
    let first = &overloads[0];
    assert_eq!(
        first.to_string(),
        "frob(sem_release_t, scope_t<Scope> scope, const uint32_t (&values)[2], n32_t<N32> count)"
    );
    assert_eq!(
        first.parameter_types(),
        [
            "sem_release_t",
            "scope_t<Scope>",
            "const uint32_t(&)[2]",
            "n32_t<N32>"
        ]
    );
    assert_eq!(
        first.template,
        [
            "dot_scope Scope",
            "enable_if_t<sizeof(B4) == 4, bool> = true"
        ]
    );
    assert_eq!(first.returns, "uint64_t");
    assert_eq!(first.line, 11);
    assert_eq!(
        first.isa,
        IsaRange {
            since: 800,
            before: None
        }
    );
    let targets = Vec::from_iter(first.targets.iter().map(Target::to_string));
    assert_eq!(targets, ["sm_90a", "sm_100a", "sm_100f"]);
    assert_eq!(
        overloads[1].isa,
        IsaRange {
            since: 930,
            before: Some(950)
        }
    );
    assert_eq!(overloads[1].targets, []);
}

#[test]
fn a_target_allows_later_ones_itself_or_its_family() {
    let allowed = |number, suffix| {
        let target = Target { number, suffix };
        let archs = [
            "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100f", "sm_100a", "sm_103a",
        ];
        let allowed = archs
            .into_iter()
            .filter(|arch| target.allows(arch.parse().unwrap()));
        allowed.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        allowed(90, None),
        "sm_90 sm_90a sm_100 sm_100f sm_100a sm_103a"
    );
    assert_eq!(allowed(90, Some('a')), "sm_90a");
    assert_eq!(allowed(100, Some('f')), "sm_100f sm_100a");
}

#[test]
fn variants_are_read_with_their_condition_text_and_operands() {
    let overloads = overloads(HEADER);
    let [cta, cluster] = &overloads[0].variants[..] else {
        panic!("two variants")
    };
    assert_eq!(cta.conditions, ["scope == scope_cta && sizeof(B4) == 4"]);
    assert_eq!(
        cta.statements(),
        [".reg .pred P", "frob.release.cta.b64 %0, %1"]
    );
    assert_eq!(
        (cta.volatile, cta.clobbers.as_slice()),
        (true, &["memory".to_owned()][..])
    );
    let inputs = Vec::from_iter(
        cta.inputs
            .iter()
            .map(|it| (it.constraint.as_str(), it.expression.as_str())),
    );
    assert_eq!(inputs, [("r", "as_ptr_smem(values)"), ("n", "count.value")]);
    assert_eq!(cta.outputs.len(), 1);

    assert_eq!(cluster.conditions, ["otherwise"]);
    assert_eq!(
        cluster.inputs[0].expression,
        "*reinterpret_cast<const int32_t*>(&values[0])"
    );
    assert_eq!((cluster.volatile, cluster.clobbers.len()), (false, 0));
}

#[test]
fn an_architecture_guard_of_an_older_release_is_kept() {
    let overloads = overloads(HEADER);
    assert_eq!(overloads[1].variants.len(), 1);
    let guard = overloads[1].variants[0].arch_guard.as_deref();
    assert_eq!(
        guard,
        Some("_CCCL_CUDA_COMPILER(NVHPC) || __CUDA_ARCH__ >= 900")
    );
    assert_eq!(overloads[0].variants[0].arch_guard, None);
}

#[test]
fn what_is_not_understood_is_an_error_with_its_line() {
    let cases = [
        ("static_assert(", "for (", 17, "expected a declaration"),
        ("if constexpr (", "if (", 19, "`constexpr`"),
        ("asm(\"frob;\")", "other()", 36, "inline assembly in `frob`"),
        (
            "#if __cccl_ptx_isa >= 800",
            "#if 1",
            11,
            "`#if __cccl_ptx_isa >= …`",
        ),
        (
            "#if __cccl_ptx_isa >= 800",
            "#if __cccl_ptx_isa > 800",
            11,
            "range of `__cccl_ptx_isa`",
        ),
        (
            "__x = 1;",
            "asm(\"hidden;\");",
            46,
            "without inline assembly",
        ),
        ("SM_100f", "SM_banana", 11, "target"),
        ("\"r\"(__as_ptr_smem(__values))", "__values", 25, "operand"),
        ("\\n\\t.reg", "\\q.reg", 21, "escape"),
    ];
    for (from, to, line, message) in cases {
        let fault = fault(from, to);
        assert!(fault.message.contains(message), "`{to}`: {}", fault.message);
        assert_eq!(fault.line, line, "`{to}`: {}", fault.message);
    }
}

#[test]
fn a_function_that_does_not_end_is_an_error() {
    let (start, _) = HEADER.split_once("return").unwrap();
    let fault = parser::parse(start, "frob.h").unwrap_err();
    assert!(
        fault.message.contains("end of the file"),
        "{}",
        fault.message
    );
}

#[test]
fn a_folder_without_cccl_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = Headers::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("nvidia-cuda-cccl"), "{error}");
}

#[test]
fn a_fault_in_a_folder_names_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let generated = folder.path().join("cuda/__ptx/instructions/generated");
    std::fs::create_dir_all(&generated).unwrap();
    std::fs::write(
        generated.join("frob.h"),
        HEADER.replacen("static_assert(", "goto (", 1),
    )
    .unwrap();
    let error = Headers::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("generated/frob.h:17: expected"), "{error}");
}
