//! The functions of one family.
//!
//! A Rust function with one variant is that instruction. One with several is generic over the
//! arguments that select the variant, and each variant is an `impl` of a trait of its own.

use std::collections::BTreeSet;
use std::fmt::Write;

use anyhow::{Result, bail};

use super::{docs, support};
use crate::spec::{Arg, Effects, Family, OperandValue, Overload, Scalar, Space, Type, Variant};

/// The text of `src/<family>.rs`.
pub(super) fn module(family: &Family) -> Result<String> {
    let mut body = String::new();
    for function in &family.functions {
        for overload in &function.overloads {
            body += &self::overload(overload)?;
        }
    }
    let mut out = support::header(&format!("spec/{}.spec", family.name));
    for line in &family.docs {
        let _ = writeln!(out, "{}", format!("//! {line}").trim_end());
    }
    out.push('\n');
    // Off the GPU `asm!` is a panic, see `src/asm.rs`.
    out += "#![cfg_attr(not(target_arch = \"nvptx64\"), allow(unused, unreachable_code))]\n";
    let overloads = family
        .functions
        .iter()
        .flat_map(|function| &function.overloads);
    if overloads
        .map(|overload| overload.variants[0].args.len())
        .max()
        > Some(7)
    {
        out += "// As many as the instruction has.\n#![allow(clippy::too_many_arguments)]\n";
    }
    out.push('\n');
    out += &imports(&body);
    out += &body;
    Ok(out)
}

/// `use` lines for the names of this crate that occur in the code.
fn imports(body: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: BTreeSet<&str> = body
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split(|c| !is_word(c)))
        .collect();
    let used = |names: &[&'static str]| -> Vec<&str> {
        names
            .iter()
            .copied()
            .filter(|name| words.contains(name))
            .collect()
    };
    let starting = |prefixes: &[&str]| -> Vec<&str> {
        let has_prefix = |word: &&str| {
            prefixes.iter().any(|prefix| {
                word.strip_prefix(prefix).is_some_and(|rest| {
                    *prefix != "sm_" && *prefix != "ptx_"
                        || rest.starts_with(|c: char| c.is_ascii_digit())
                })
            })
        };
        words.iter().copied().filter(has_prefix).collect()
    };
    let mut out = String::new();
    let mut line = |module: &str, names: Vec<&str>| {
        if !names.is_empty() {
            let _ = writeln!(out, "use crate::{module}::{{{}}};", names.join(", "));
        }
    };
    line("address", used(&["as_ptr_gmem", "as_ptr_smem"]));
    line("asm", used(&["asm"]));
    line("immediate", used(&["n32"]));
    line("sealed", used(&["Sealed"]));
    line(
        "tags",
        starting(&[
            "sem_",
            "space_",
            "scope_",
            "op_",
            "cta_group_",
            "kind_",
            "layout_",
            "mbarrier_phase_",
            "mbarrier_report_",
        ]),
    );
    let mut target = used(&["Has", "Target"]);
    target.extend(starting(&["ptx_", "sm_"]));
    line("target", target);
    out.push('\n');
    out
}

fn overload(overload: &Overload) -> Result<String> {
    match overload.variants.as_slice() {
        [variant] => single(overload, variant),
        variants => selected(overload, variants),
    }
}

/// Names for the type parameters of pointers to anything.
const POINTEES: [&str; 4] = ["T", "U", "V", "W"];

/// The generic parameters and the parameters of a function.
#[derive(Default)]
struct Signature {
    generics: Vec<String>,
    params: Vec<String>,
}

impl Signature {
    fn generics(&self) -> String {
        match self.generics.as_slice() {
            [] => String::new(),
            names => format!("<{}>", names.join(", ")),
        }
    }

    /// Adds an argument that has this type in every variant.
    fn push(&mut self, arg: &Arg) {
        let name = &arg.name;
        let param = match &arg.ty {
            // Its type says all; its value is nothing.
            Type::Tag(tag) => format!("_{name}: {}", tag.name),
            Type::Immediate { .. } => {
                let parameter = name.to_uppercase();
                self.generics.push(format!("const {parameter}: i32"));
                format!("_{name}: n32<{parameter}>")
            }
            Type::Pointer {
                mutable,
                to: Scalar::Any,
                ..
            } => {
                let is_pointee = |name: &&String| POINTEES.contains(&name.as_str());
                let pointee = POINTEES[self.generics.iter().filter(is_pointee).count()];
                self.generics.push(pointee.to_string());
                format!("{name}: {}{pointee}", pointer(*mutable))
            }
            ty => format!("{name}: {}", rust_type(ty)),
        };
        self.params.push(param);
    }
}

fn pointer(mutable: bool) -> &'static str {
    if mutable { "*mut " } else { "*const " }
}

fn rust_type(ty: &Type) -> String {
    match ty {
        Type::Tag(tag) => tag.name.clone(),
        Type::Immediate { .. } => "i32".to_string(),
        Type::Scalar(of) => of.rust().to_string(),
        Type::Pointer { mutable, to, .. } => format!("{}{}", pointer(*mutable), to.rust()),
        Type::Array { of, len } => format!("[{}; {len}]", of.rust()),
        Type::Out { of, len: None } => format!("&mut {}", of.rust()),
        Type::Out { of, len: Some(len) } => format!("&mut [{}; {len}]", of.rust()),
    }
}

fn result_type(result: Option<&Arg>) -> String {
    result.map_or("()".to_string(), |result| rust_type(&result.ty))
}

fn arrow(result: &str) -> String {
    match result {
        "()" => String::new(),
        ty => format!(" -> {ty}"),
    }
}

fn is_safe(overload: &Overload) -> bool {
    overload.forms().iter().all(|form| form.instruction.safe)
}

fn attributes(overload: &Overload) -> String {
    let must_use = match &overload.forms()[0].instruction.must_use {
        Some(reason) => format!("#[must_use = {reason:?}]\n"),
        None => String::new(),
    };
    let lint = if overload
        .rust_name
        .contains(|c: char| c.is_ascii_uppercase())
    {
        "#[allow(non_snake_case)] // as PTX writes it\n"
    } else {
        ""
    };
    format!(
        "{}#[inline(always)]\n{must_use}{lint}",
        docs::function(overload)
    )
}

/// `where for<'a> Target: Has<ptx_80> + Has<sm_90>`.
fn requirement(variant: &Variant) -> String {
    let bounds: Vec<String> = variant
        .isa
        .marker()
        .into_iter()
        .chain(variant.targets.marker())
        .map(|marker| format!("Has<{marker}>"))
        .collect();
    match bounds.as_slice() {
        [] => String::new(),
        bounds => format!("where for<'a> Target: {}", bounds.join(" + ")),
    }
}

/// A function that is one instruction.
fn single(overload: &Overload, variant: &Variant) -> Result<String> {
    let mut signature = Signature::default();
    for arg in &variant.args {
        signature.push(arg);
    }
    Ok(format!(
        "{}pub {}fn {}{}({}){} {} {{ {} }}\n\n",
        attributes(overload),
        if is_safe(overload) { "" } else { "unsafe " },
        overload.rust_name,
        signature.generics(),
        signature.params.join(", "),
        arrow(&result_type(variant.result.as_ref())),
        requirement(variant),
        body(variant),
    ))
}

/// A function that is generic over the variant, and the trait that its variants implement.
fn selected(overload: &Overload, variants: &[Variant]) -> Result<String> {
    let first = &variants[0];
    let name = &overload.rust_name;
    let trait_name = camel_case(name);
    let mut signature = Signature::default();
    let mut rest = Signature::default();
    let mut selectors: Vec<usize> = Vec::new();
    let mut passed = Vec::new();
    for (index, arg) in first.args.iter().enumerate() {
        if variants
            .iter()
            .all(|variant| rust_type(&variant.args[index].ty) == rust_type(&arg.ty))
        {
            signature.push(arg);
            if !matches!(arg.ty, Type::Tag(_)) {
                rest.push(arg);
                passed.push(passed_value(arg));
            }
        } else if variants
            .iter()
            .all(|variant| matches!(variant.args[index].ty, Type::Tag(_)))
        {
            let parameter = camel_case(&arg.name);
            signature.generics.push(parameter.clone());
            signature.params.push(format!("{}: {parameter}", arg.name));
            selectors.push(index);
        } else {
            bail!(
                "{}: the forms of `{name}` differ in the type of `{}`",
                first.form.at,
                arg.name
            );
        }
    }
    let tuple = |types: Vec<String>| match types.as_slice() {
        [one] => one.clone(),
        several => format!("({})", several.join(", ")),
    };
    let selector = tuple(
        selectors
            .iter()
            .map(|&i| camel_case(&first.args[i].name))
            .collect(),
    );
    let values = tuple(
        selectors
            .iter()
            .map(|&i| first.args[i].name.clone())
            .collect(),
    );

    let one_result = variants
        .iter()
        .all(|variant| variant.result == first.result);
    let result = result_type(first.result.as_ref());
    let (output, in_trait, in_function) = if one_result {
        (String::new(), arrow(&result), arrow(&result))
    } else {
        (
            "/// What the form returns.\ntype Output;\n".to_string(),
            " -> Self::Output".to_string(),
            format!(" -> <{selector} as {trait_name}>::Output"),
        )
    };
    let (unsafety, call) = if is_safe(overload) {
        ("", format!("{values}.issue({})", passed.join(", ")))
    } else {
        (
            "unsafe ",
            format!("unsafe {{ {values}.issue({}) }}", passed.join(", ")),
        )
    };
    let mut rest_params = vec!["self".to_string()];
    rest_params.extend(rest.params.iter().cloned());
    let rest_params = rest_params.join(", ");

    let mut out = format!(
        "{}pub {unsafety}fn {name}{}({}){in_function} where {selector}: {trait_name} {{ {call} }}\n\n",
        attributes(overload),
        signature.generics(),
        signature.params.join(", "),
    );
    out += &docs::doc(&format!("The forms of [`{name}`]."));
    out += &unimplemented(overload, &selectors);
    let _ = writeln!(
        out,
        "pub trait {trait_name}: Sealed {{\n{output}#[doc(hidden)]\n{unsafety}fn issue{}({rest_params}){in_trait};\n}}\n",
        rest.generics()
    );
    for variant in variants {
        let types = tuple(
            selectors
                .iter()
                .map(|&i| rust_type(&variant.args[i].ty))
                .collect(),
        );
        let result = result_type(variant.result.as_ref());
        let output = if one_result {
            String::new()
        } else {
            format!("type Output = {result};\n")
        };
        let _ = writeln!(
            out,
            "impl {trait_name} for {types} {} {{\n{output}#[inline(always)]\n{unsafety}fn issue{}({rest_params}){} {{ {} }}\n}}\n",
            requirement(variant),
            rest.generics(),
            arrow(&result),
            body(variant),
        );
    }
    Ok(out)
}

/// How the generic function hands an argument on.
fn passed_value(arg: &Arg) -> String {
    match arg.ty {
        Type::Immediate { .. } => format!("_{}", arg.name),
        _ => arg.name.clone(),
    }
}

/// The compile error for a combination that does not exist.
fn unimplemented(overload: &Overload, selectors: &[usize]) -> String {
    let args: Vec<&str> = selectors
        .iter()
        .map(|&index| overload.variants[0].args[index].name.as_str())
        .collect();
    let mut out = format!(
        "#[diagnostic::on_unimplemented(\nmessage = \"`{}` has no form for `{{Self}}`\",\nlabel = \"no such {}\",\n",
        overload.rust_name,
        args.join(", "),
    );
    for form in overload.forms() {
        let choices: Vec<String> = selectors
            .iter()
            .map(|&index| {
                let mut names: Vec<String> = Vec::new();
                for variant in &overload.variants {
                    let name = rust_type(&variant.args[index].ty);
                    if std::ptr::eq(&*variant.form, &**form) && !names.contains(&name) {
                        names.push(name);
                    }
                }
                names.join(" | ")
            })
            .collect();
        let _ = writeln!(out, "note = \"there is: {}\",", choices.join(", "));
    }
    out + ")]\n"
}

/// `mbarrier_arrive` → `MbarrierArrive`.
fn camel_case(name: &str) -> String {
    name.split('_')
        .map(|part| {
            let mut chars = part.chars();
            match chars.next() {
                Some(first) => first.to_ascii_uppercase().to_string() + chars.as_str(),
                None => String::new(),
            }
        })
        .collect()
}

/// The inline assembly, and what moves its operands.
fn body(variant: &Variant) -> String {
    let mut out = String::new();
    for arg in &variant.args {
        if let Type::Immediate { low, high, step } = arg.ty {
            out += &range_check(arg, low, high, step);
        }
    }
    let mut operands = Vec::new();
    for operand in variant.asm_operands() {
        let value = match &operand.value {
            OperandValue::Constant { arg } => format!("const {}", arg.to_uppercase()),
            OperandValue::In { arg, index, ty } => {
                let class = operand.class.unwrap_or_default();
                format!("in({class}) {}", input(arg, *index, ty))
            }
            OperandValue::Out { arg, index, of } => {
                let class = operand.class.unwrap_or_default();
                let local = local(variant, arg, *index);
                let _ = writeln!(out, "let {local}: {};", register_type(*of));
                format!("out({class}) {local}")
            }
        };
        operands.push(format!("{} = {value}", operand.name));
    }
    let options = match variant.effects {
        Effects::Memory => "nostack",
        Effects::Volatile => "nomem, nostack",
        Effects::Pure => "pure, nomem, nostack",
    };
    let mut parts: Vec<String> = variant
        .asm_lines()
        .iter()
        .map(|line| format!("{line:?}"))
        .collect();
    parts.append(&mut operands);
    parts.push(format!("options({options})"));
    out += &docs::effects(variant);
    let _ = writeln!(
        out,
        "unsafe {{\n    asm!(\n        {},\n    );\n}}",
        parts.join(",\n        ")
    );
    out += &outputs(variant);
    out
}

/// A compile-time check of an immediate operand.
fn range_check(arg: &Arg, low: i64, high: i64, step: i64) -> String {
    let name = arg.name.to_uppercase();
    let (condition, allowed) = match (low == high, step) {
        (true, _) => (format!("{name} == {low}"), format!("must be {low}")),
        (_, 1) if high == i64::from(i32::MAX) => (
            format!("{name} >= {low}"),
            format!("must be at least {low}"),
        ),
        (_, 1) => (
            format!("{name} >= {low} && {name} <= {high}"),
            format!("must be from {low} to {high}"),
        ),
        _ => (
            format!("{name} >= {low} && {name} <= {high} && ({name} - {low}) % {step} == 0"),
            format!("must be from {low} to {high} in steps of {step}"),
        ),
    };
    format!(
        "const {{ assert!({condition}, \"`{}` {allowed}\") }};\n",
        arg.name
    )
}

/// The value of an input operand.
fn input(arg: &str, index: Option<usize>, ty: &Type) -> String {
    let element = match index {
        Some(index) => format!("{arg}[{index}]"),
        None => arg.to_string(),
    };
    match ty {
        Type::Pointer {
            space: Space::Shared,
            ..
        } => format!("as_ptr_smem({arg})"),
        Type::Pointer {
            space: Space::Global,
            ..
        } => format!("as_ptr_gmem({arg})"),
        Type::Scalar(Scalar::Bool | Scalar::U8) => format!("u32::from({arg})"),
        _ => element,
    }
}

/// What one register of an output holds.
fn register_type(of: Scalar) -> &'static str {
    match of {
        Scalar::Bool | Scalar::U8 => "u32",
        Scalar::Bits(128 | 256) => "u64",
        other => other.rust(),
    }
}

/// The variable that receives an output operand.
fn local(variant: &Variant, arg: &str, index: Option<usize>) -> String {
    let is_result = variant
        .result
        .as_ref()
        .is_some_and(|result| result.name == arg);
    match (index, is_result) {
        (Some(index), _) => format!("{arg}{index}"),
        (None, true) => arg.to_string(),
        (None, false) => format!("{arg}_register"),
    }
}

/// Stores outputs and makes the result.
fn outputs(variant: &Variant) -> String {
    let mut out = String::new();
    for arg in &variant.args {
        let Type::Out { of, len } = &arg.ty else {
            continue;
        };
        let value = value_of(variant, &arg.name, *of, *len);
        let _ = writeln!(out, "*{} = {value};", arg.name);
    }
    if let Some(result) = &variant.result {
        match &result.ty {
            Type::Scalar(of) => out += &value_of(variant, &result.name, *of, None),
            Type::Array { of, len } => out += &value_of(variant, &result.name, *of, Some(*len)),
            _ => {}
        }
    }
    out
}

fn value_of(variant: &Variant, arg: &str, of: Scalar, len: Option<usize>) -> String {
    let count = match of.bits() {
        128 => Some(2),
        256 => Some(4),
        _ => len,
    };
    if let Some(count) = count {
        let names: Vec<String> = (0..count).map(|i| local(variant, arg, Some(i))).collect();
        return format!("[{}]", names.join(", "));
    }
    let local = local(variant, arg, None);
    match of {
        Scalar::Bool => format!("{local} != 0"),
        Scalar::U8 => format!("{local} as u8"),
        _ => local,
    }
}
