//! The device crate's `tags.rs`, `target.rs` and `names.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::docs::doc;
use crate::spec::{Isa, Spec, Targets};

/// The head of a generated file.
pub(super) fn header(source: &str) -> String {
    format!("{} from {source}. Do not edit.\n\n", super::MARKER)
}

/// Tag types.
pub(super) fn tags(spec: &Spec) -> String {
    let mut out = header("spec/tags.spec");
    out += "//! Tags: empty values whose type selects an instruction.\n//!\n\
        //! A tag is passed where C++ passes a `cuda::ptx` constant of that name, as in\n\
        //! `fence(sem_acq_rel, scope_gpu)`. It is a type as well as a value.\n\n\
        // The names are those of C++, for the type as for the value.\n\
        #![allow(non_camel_case_types)]\n\n\
        use crate::sealed::Sealed;\n\n";
    for family in &spec.tags.families {
        let _ = writeln!(out, "// {}: {}\n", family.name, family.doc);
        for tag in &family.tags {
            out += &doc(&tag.doc);
            let spelling = match tag.ptx.as_str() {
                "" => "PTX writes nothing.".to_string(),
                ptx => format!("PTX writes `{ptx}`."),
            };
            out += &doc("");
            out += &doc(&spelling);
            let _ = writeln!(
                out,
                "#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\npub struct {};\n",
                tag.name
            );
        }
    }
    let names: Vec<&str> = spec
        .tags
        .families
        .iter()
        .flat_map(|family| &family.tags)
        .map(|tag| tag.name.as_str())
        .collect();
    let _ = writeln!(
        out,
        "macro_rules! seal {{\n    ($($tag:ident),* $(,)?) => {{\n        $(impl Sealed for $tag {{}})*\n    }};\n}}\n\nseal!({});",
        names.join(", ")
    );
    out
}

/// Requirements on the build target, as types.
pub(super) fn target(spec: &Spec) -> String {
    let mut isas = BTreeMap::new();
    let mut targets = BTreeSet::new();
    for (_, _, variant) in spec.variants() {
        if let Some(marker) = variant.isas.marker() {
            isas.insert(marker, variant.isas.first);
        }
        targets.insert(variant.targets.clone());
    }
    let mut out = header("spec/");
    out += "//! What the build target has: PTX ISA versions and architectures, as types.\n//!\n\
        //! A function that needs PTX ISA 8.0 and `sm_90` is declared\n\
        //! `where for<'a> Target: Has<ptx_80> + Has<sm_90>`, so a build for an older target is a\n\
        //! compile error at the call. (`for<'a>` lets a bound be false until then.) On the host\n\
        //! everything is there. PTX ISA 6.0 and `sm_70`, the oldest that rustc 1.97 has, are taken for\n\
        //! granted.\n\
        //!\n\
        //! `cargo xtask build` sets the cfgs `cuda_ptx_sm` and `cuda_ptx_isa`, because rustc does not\n\
        //! have a target feature for every architecture and version.\n\n\
        // Names as in PTX.\n\
        #![allow(non_camel_case_types)]\n\n\
        /// What the crate is being built for.\n\
        pub struct Target;\n\n\
        /// Met by [`Target`] if the build target has `F`: a PTX ISA version or later, or one of a set\n\
        /// of architectures.\n\
        #[diagnostic::on_unimplemented(\n\
            message = \"this instruction needs `{F}`, which the build target does not have\",\n\
            label = \"needs `{F}`\",\n\
            note = \"`ptx_80` is PTX ISA 8.0 or later, `sm_90` is sm_90 or later, `sm_90a_100f` is sm_90a, sm_100a or sm_100f\",\n\
            note = \"choose the target with `cargo xtask build --arch`\"\n\
        )]\n\
        pub trait Has<F> {}\n\n\
        macro_rules! keep {\n    ($($code:tt)*) => { $($code)* };\n}\n\n\
        // Off the GPU everything is there.\n\
        #[cfg_attr(not(target_arch = \"nvptx64\"), allow(unused_macros))]\n\
        macro_rules! omit {\n    ($($code:tt)*) => {};\n}\n\n\
        /// Code for build targets that have all of these: nothing elsewhere, where nobody can call it, so that\n\
        /// rustc need not check it.\n\
        macro_rules! on_target {\n    \
            ([] $($code:tt)*) => { $($code)* };\n    \
            ([$one:ident] $($code:tt)*) => { $one! { $($code)* } };\n    \
            ([$isa:ident $architecture:ident] $($code:tt)*) => {\n        \
                $architecture! { $isa! { $($code)* } }\n    \
            };\n}\n\n\
        pub(crate) use on_target;\n\n\
        /// In place of a form that the build target lacks: its bounds do not hold, so nobody can call it.\n\
        pub(crate) fn lacking() -> ! {\n    panic!(\"the build target lacks this form\")\n}\n\n\
        /// Says where [`Target`] has something. A macro of that name keeps or omits code.\n\
        macro_rules! has {\n    ($feature:ident if $condition:meta) => {\n        \
            #[cfg($condition)]\n        impl Has<$feature> for Target {}\n        \
            #[cfg($condition)]\n        pub(crate) use keep as $feature;\n        \
            #[cfg(not($condition))]\n        pub(crate) use omit as $feature;\n    };\n}\n\n";
    for (marker, isa) in isas {
        let docs = doc(&format!("PTX ISA {isa} or later."));
        let _ = writeln!(
            out,
            "{docs}pub struct {marker};\nhas!({marker} if {});\n",
            isa_cfg(isa)
        );
    }
    for targets in targets {
        if let Some(marker) = targets.marker() {
            let docs = doc(&format!("{targets}."));
            let _ = writeln!(
                out,
                "{docs}pub struct {marker};\nhas!({marker} if {});\n",
                targets_cfg(&targets)
            );
        }
    }
    out
}

/// Whether rustc 1.96 has this as a `target_feature` that `cfg` sees.
fn rustc_knows(feature: &str) -> bool {
    match feature.strip_prefix("ptx") {
        Some(version) => version
            .parse()
            .is_ok_and(|version: u16| (70..=87).contains(&version)),
        None => [
            "75", "80", "86", "87", "89", "90", "90a", "100", "100a", "120", "120a",
        ]
        .contains(&feature.trim_start_matches("sm_")),
    }
}

fn isa_cfg(isa: Isa) -> String {
    let mut conditions = vec![format!("cuda_ptx_isa = \"{}\"", isa.0)];
    let feature = format!("ptx{}", isa.0);
    if rustc_knows(&feature) {
        conditions.push(format!("target_feature = \"{feature}\""));
    }
    cfg(conditions)
}

fn targets_cfg(targets: &Targets) -> String {
    let names: Vec<&str> = match targets.oldest() {
        Some(oldest) => vec![oldest],
        None => targets.members().collect(),
    };
    let known = names
        .iter()
        .filter(|name| rustc_knows(&format!("sm_{name}")));
    cfg(names
        .iter()
        .map(|name| format!("cuda_ptx_sm = \"{name}\""))
        .chain(known.map(|name| format!("target_feature = \"sm_{name}\"")))
        .collect())
}

fn cfg(conditions: Vec<String>) -> String {
    format!(
        "any(not(target_arch = \"nvptx64\"), {})",
        conditions.join(", ")
    )
}

/// Re-exports of every function.
pub(super) fn names(spec: &Spec) -> String {
    let mut out = header("spec/");
    out += "//! Every function of the crate, by family: what `use cuda_ptx::*` brings.\n\n";
    for family in &spec.families {
        let mut modules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let overloads = family
            .functions
            .iter()
            .flat_map(|function| &function.overloads);
        for overload in overloads {
            let module = overload.by_hand().unwrap_or(&family.name);
            modules.entry(module).or_default().push(&overload.rust_name);
        }
        for (module, names) in modules {
            let _ = writeln!(out, "pub use crate::{module}::{{{}}};", names.join(", "));
        }
    }
    out
}
