//! The device crate's `macros.rs`: for each C++ name that is several Rust functions, a macro of that
//! name that picks one by the number of its arguments.
//!
//! Where several take the same number, a trait picks by their types.

use std::fmt::Write;

use anyhow::{Result, bail};

use super::device::where_clause;
use super::docs::doc;
use super::shape::{Shape, arrow, camel_case, result_type};
use super::support::header;
use crate::spec::{Function, Overload, Spec};

pub(super) fn macros(spec: &Spec) -> Result<String> {
    let mut macros = String::new();
    let mut picks = String::new();
    for family in &spec.families {
        for function in family
            .functions
            .iter()
            .filter(|it| generated(it).count() > 1)
        {
            macros += &by_count(function);
            for group in ambiguous(function) {
                picks += &pick(function, &group, &family.name)?;
            }
        }
    }
    Ok(format!(
        "{}//! Macros with the names of C++: `mbarrier_arrive!(addr, count)` is what the C++ call\n\
         //! `cuda::ptx::mbarrier_arrive(addr, count)` is, so that a port need not look up the Rust name of\n\
         //! each overload. They are called in `unsafe` blocks, as the functions are.\n\n\
         {macros}\
         /// What macros pick from when several functions take the same number of arguments.\n\
         #[doc(hidden)]\n\
         pub mod pick {{\n\
         use crate::immediate::n32;\nuse crate::tags::*;\nuse crate::target::*;\nuse crate::value::Value;\n\n\
         {picks}}}\n",
        header("spec/")
    ))
}

/// The functions but those that C++ does not have under the name.
fn generated(function: &Function) -> impl Iterator<Item = &Overload> {
    let overloads = function.overloads.iter();
    overloads.filter(|overload| overload.by_hand().is_none())
}

fn arity(overload: &Overload) -> usize {
    overload.variants[0].args.len()
}

/// The functions that share their number of arguments with others, in groups.
fn ambiguous(function: &Function) -> Vec<Vec<&Overload>> {
    let mut groups: Vec<Vec<&Overload>> = Vec::new();
    for overload in generated(function) {
        match groups
            .iter_mut()
            .find(|group| arity(group[0]) == arity(overload))
        {
            Some(group) => group.push(overload),
            None => groups.push(vec![overload]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

fn pick_name(function: &Function, arity: usize) -> String {
    format!("{}{arity}", camel_case(&function.name))
}

/// The macro: one arm for each number of arguments.
fn by_count(function: &Function) -> String {
    let name = &function.name;
    let ambiguous = ambiguous(function);
    let mut out = doc(&format!(
        "`cuda::ptx::{name}` with any of its argument lists:"
    ));
    out += "///\n";
    let mut arms = String::new();
    let mut seen = Vec::new();
    for overload in generated(function) {
        let args: Vec<&str> = overload.variants[0]
            .args
            .iter()
            .map(|arg| arg.name.as_str())
            .collect();
        let rust_name = &overload.rust_name;
        let _ = writeln!(
            out,
            "/// - `({})` is [`{rust_name}`](fn@crate::{rust_name})",
            args.join(", ")
        );
        if seen.contains(&args.len()) {
            continue;
        }
        seen.push(args.len());
        let is_ambiguous = ambiguous.iter().any(|group| arity(group[0]) == args.len());
        let names: Vec<String> = match is_ambiguous {
            true => (1..=args.len())
                .map(|index| format!("argument{index}"))
                .collect(),
            false => args.iter().map(|arg| arg.to_string()).collect(),
        };
        let pattern: Vec<String> = names.iter().map(|name| format!("${name}:expr")).collect();
        let pattern = match pattern.as_slice() {
            [] => String::new(),
            several => format!("{} $(,)?", several.join(", ")),
        };
        let values: Vec<String> = names.iter().map(|name| format!("${name}")).collect();
        let values = values.join(", ");
        let call = match is_ambiguous {
            true => format!(
                "$crate::macros::pick::{}::call(({values}))",
                pick_name(function, args.len())
            ),
            false => format!("$crate::{rust_name}({values})"),
        };
        let _ = writeln!(arms, "({pattern}) => {{ {call} }};");
    }
    let _ = writeln!(out, "#[macro_export]\nmacro_rules! {name} {{\n{arms}}}\n");
    out
}

/// The trait that tells apart functions with the same number of arguments.
fn pick(function: &Function, group: &[&Overload], family: &str) -> Result<String> {
    let trait_name = pick_name(function, arity(group[0]));
    let result = result_type(group[0].variants[0].result.as_ref());
    let mut out = format!(
        "#[diagnostic::on_unimplemented(\n\
         message = \"no form of `{}` takes these {} arguments\",\n",
        function.name,
        arity(group[0])
    );
    for overload in group {
        let types = Shape::new(overload)?.params();
        let _ = writeln!(out, "note = \"there is ({types})\",");
    }
    let _ = writeln!(
        out,
        ")]\npub trait {trait_name} {{\n/// Calls the function.\n///\n/// # Safety\n///\n/// What the function demands.\nunsafe fn call(self){};\n}}\n",
        arrow(&result)
    );
    for overload in group {
        if overload
            .variants
            .iter()
            .any(|v| result_type(v.result.as_ref()) != result)
        {
            bail!(
                "{}: functions that a macro picks from must return the same",
                overload.variants[0].form.at
            );
        }
        let shape = Shape::new(overload)?;
        let types = shape.param_types().join(", ");
        let names: Vec<String> = (1..=arity(overload))
            .map(|index| format!("a{index}"))
            .collect();
        let names = names.join(", ");
        let _ = writeln!(
            out,
            "impl{} {trait_name} for ({types}) {} {{\n#[inline(always)]\nunsafe fn call(self){} {{\nlet ({names}) = self;\nunsafe {{ crate::{}({names}) }}\n}}\n}}\n",
            shape.generics(),
            where_clause(overload, &shape, &format!("crate::{family}::")),
            arrow(&result),
            overload.rust_name,
        );
    }
    Ok(out)
}
