//! Every form with the name of its kernels.

use std::collections::HashMap;
use std::fmt::Write;

use crate::spec::{Family, Overload, Scalar, Spec, Type, Variant};

/// A form and the name of the kernels that time it.
#[derive(Clone, Debug)]
pub struct FormKernel<'a> {
    /// The kernel's name in both languages.
    pub name: String,
    /// The family that the variant belongs to.
    pub family: &'a Family,
    /// The Rust function that it calls.
    pub overload: &'a Overload,
    /// What the call selects.
    pub variant: &'a Variant,
}

/// The kernels of every form, in the order of the spec: first those of `cuda::ptx`, then what it lacks.
pub fn all(spec: &Spec) -> Vec<FormKernel<'_>> {
    let mut taken: HashMap<String, usize> = HashMap::new();
    let of = |beyond: bool| {
        let variants = spec.variants();
        // What C++ has a default argument for is two functions in Rust, and one form.
        variants.filter(move |(.., variant)| {
            variant.implied.is_empty() && variant.is_beyond() == beyond
        })
    };
    of(false)
        .chain(of(true))
        .map(|(family, overload, variant)| {
            let mut name = name(overload, variant);
            let count = taken.entry(name.clone()).or_default();
            *count += 1;
            if *count > 1 {
                let _ = write!(name, "_{count}");
            }
            FormKernel {
                name,
                family,
                overload,
                variant,
            }
        })
        .collect()
}

/// `k_`, the Rust name, and the types that select the variant.
fn name(overload: &Overload, variant: &Variant) -> String {
    let mut name = format!("k_{}", overload.rust_name);
    let selects = |index: usize| {
        let first = &overload.variants[0].args[index].ty;
        let mut variants = overload.variants.iter();
        variants.any(|other| other.args[index].ty != *first)
    };
    for (index, arg) in variant.args.iter().enumerate() {
        if let (true, Some(part)) = (selects(index), part(&arg.ty)) {
            name += "__";
            name += &part;
        }
    }
    name
}

fn part(ty: &Type) -> Option<String> {
    Some(match ty {
        Type::Tag(tag) => {
            let member = tag.name.trim_start_matches(&tag.family);
            member.trim_matches('_').to_owned()
        }
        Type::Pointer {
            to: Scalar::Any, ..
        }
        | Type::Immediate { .. } => return None,
        Type::Pointer { to: of, .. } | Type::Scalar(of) | Type::Out { of, len: None } => {
            scalar(*of)
        }
        Type::Array { of, len } | Type::InOut { of, len } | Type::Out { of, len: Some(len) } => {
            format!("{}x{len}", scalar(*of))
        }
    })
}

fn scalar(of: Scalar) -> String {
    match of {
        Scalar::Bits(bits) => format!("b{bits}"),
        other => other.rust().to_owned(),
    }
}
