//! Names of the Rust functions.
//!
//! The shortest form of a C++ name keeps it. A longer one appends the names of the arguments that
//! the shortest lacks, in their order, unless the spec names it (`rust NAME`). Whether the memory of
//! a copy is called `dst_mem` or `src_mem` makes no difference.

use std::collections::HashMap;

use anyhow::{Result, bail};

use super::{Function, Overload, Spec, Variant};

/// Sorts variants into functions and overloads.
pub(super) fn group(variants: Vec<Variant>) -> Result<Vec<Function>> {
    let mut functions: Vec<(String, Vec<Variant>)> = Vec::new();
    for variant in variants {
        match functions
            .iter_mut()
            .find(|(name, _)| *name == variant.function)
        {
            Some((_, variants)) => variants.push(variant),
            None => functions.push((variant.function.clone(), vec![variant])),
        }
    }
    functions
        .into_iter()
        .map(|(name, variants)| function(name, variants))
        .collect()
}

fn function(name: String, variants: Vec<Variant>) -> Result<Function> {
    let mut overloads: Vec<Overload> = Vec::new();
    let shortest = variants
        .iter()
        .min_by_key(|variant| variant.args.len())
        .map(arg_names)
        .unwrap_or_default();
    for variant in variants {
        let rust_name = match &variant.form.rust_name {
            Some(name) => name.clone(),
            None => rust_name(&name, &shortest, &arg_names(&variant)),
        };
        match overloads
            .iter_mut()
            .find(|overload| overload.rust_name == rust_name)
        {
            Some(overload) => {
                check_same_shape(&overload.variants[0], &variant)?;
                overload.variants.push(variant);
            }
            None => overloads.push(Overload {
                function: name.clone(),
                rust_name,
                variants: vec![variant],
            }),
        }
    }
    overloads.sort_by_key(|overload| overload.variants[0].args.len());
    Ok(Function { name, overloads })
}

fn arg_names(variant: &Variant) -> Vec<String> {
    variant.args.iter().map(|arg| arg.name.clone()).collect()
}

fn rust_name(name: &str, shortest: &[String], args: &[String]) -> String {
    let is_memory = |arg: &String| arg.ends_with("_mem");
    let extra = args
        .iter()
        .filter(|arg| !shortest.contains(arg) && !is_memory(arg));
    std::iter::once(name)
        .chain(extra.map(String::as_str))
        .collect::<Vec<_>>()
        .join("_")
}

/// One Rust function has one list of arguments, and no two cases with the same types.
fn check_same_shape(first: &Variant, other: &Variant) -> Result<()> {
    if arg_names(first) != arg_names(other) {
        bail!(
            "{}: `{}` has the arguments ({}) here and ({}) at {}, but the same Rust name",
            other.form.at,
            other.function,
            arg_names(other).join(", "),
            arg_names(first).join(", "),
            first.form.at,
        );
    }
    Ok(())
}

/// No two Rust functions have one name, and no two variants of one the same argument types.
pub(super) fn check_unique(spec: &Spec) -> Result<()> {
    let mut seen: HashMap<&str, &Overload> = HashMap::new();
    for (_, overload, variant) in spec.variants() {
        let first = *seen.entry(&overload.rust_name).or_insert(overload);
        if !std::ptr::eq(first, overload) {
            bail!(
                "{}: the Rust name `{}` is taken by {}",
                variant.form.at,
                overload.rust_name,
                first.variants[0].form.at
            );
        }
        let twins = overload
            .variants
            .iter()
            .filter(|other| other.args == variant.args);
        if twins.count() > 1 {
            bail!(
                "{}: two forms of `{}` take the same argument types; one is `{}`",
                variant.form.at,
                overload.rust_name,
                variant.ptx
            );
        }
    }
    Ok(())
}
