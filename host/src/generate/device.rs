//! The functions of one family.
//!
//! A Rust function with one variant is that instruction. One with several is generic over the
//! arguments that select the variant, and each variant is an `impl` of a trait of its own.

use std::collections::BTreeSet;
use std::fmt::Write;

use anyhow::{Result, bail};

use super::body::{body, body_with, instruction, literal};
use super::shape::{
    Element, Length, Position, Shape, angle, arrow, camel_case, length_of, result_type, rust_type,
    scalar_of, tuple,
};
use super::{docs, support};
use crate::spec::{Family, Overload, Rule, Scalar, Type, Variant};

/// Whether a function of the family is generated.
pub(super) fn is_generated(family: &Family) -> bool {
    let mut overloads = family
        .functions
        .iter()
        .flat_map(|function| &function.overloads);
    overloads.any(|overload| overload.by_hand().is_none())
}

/// The text of `src/<family>.rs`.
pub(super) fn module(family: &Family) -> Result<String> {
    let mut body = String::new();
    for function in &family.functions {
        let generated = |overload: &&Overload| overload.by_hand().is_none();
        for overload in function.overloads.iter().filter(generated) {
            body += &self::overload(overload)?;
        }
    }
    let mut out = support::header(&format!("spec/{}.spec", family.name));
    for line in &family.docs {
        let _ = writeln!(out, "{}", format!("//! {line}").trim_end());
    }
    out.push('\n');
    out += "// Forms that the build target lacks have no body, and off the GPU `asm!` is a panic.\n\
        #![allow(unused, unreachable_code)]\n";
    let overloads = family
        .functions
        .iter()
        .flat_map(|function| &function.overloads)
        .filter(|overload| overload.by_hand().is_none());
    if overloads
        .map(|overload| overload.variants[0].args.len())
        .max()
        > Some(7)
    {
        out += "// As many as the instruction has.\n#![allow(clippy::too_many_arguments)]\n";
    }
    out.push('\n');
    out += &imports(&body, family);
    out += &body;
    Ok(out)
}

/// `use` lines for the names of this crate that occur in the code.
fn imports(body: &str, family: &Family) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words: BTreeSet<&str> = body
        .lines()
        .filter(|line| !line.trim_start().starts_with(['/', '"']))
        .flat_map(|line| line.split(|c| !is_word(c)))
        .collect();
    if body.contains(TARGET_BEGINS) {
        words.insert("on_target");
    }
    let mut tags = BTreeSet::new();
    let mut target = BTreeSet::from(["Has", "Target", "lacking", "on_target"].map(String::from));
    let overloads = family
        .functions
        .iter()
        .flat_map(|function| &function.overloads);
    for variant in overloads.flat_map(|overload| &overload.variants) {
        target.extend(variant.isas.marker());
        target.extend(variant.targets.marker());
        for arg in &variant.args {
            if let Type::Tag(tag) = &arg.ty {
                tags.insert(tag.name.clone());
            }
        }
    }
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let modules: [(&str, BTreeSet<String>); 7] = [
        (
            "address",
            names(&["as_ptr_gmem", "as_ptr_smem", "from_ptr_dsmem"]),
        ),
        ("asm", names(&["asm"])),
        ("immediate", names(&["n32"])),
        ("sealed", names(&["Sealed"])),
        ("tags", tags),
        ("target", target),
        (
            "value",
            names(&[
                "Value",
                "array_bits_mut",
                "array_to_bits",
                "bf16",
                "bf16x2",
                "f16",
                "f16x2",
                "fields",
                "fields_mut",
            ]),
        ),
    ];
    let mut out = String::new();
    for (module, names) in modules {
        let used: Vec<String> = names
            .into_iter()
            .filter(|name| words.contains(name.as_str()))
            .collect();
        if !used.is_empty() {
            let _ = writeln!(out, "use crate::{module}::{{{}}};", used.join(", "));
        }
    }
    out.push('\n');
    out
}

fn overload(overload: &Overload) -> Result<String> {
    let shape = Shape::new(overload)?;
    let variants = overload.variants.as_slice();
    Ok(match variants {
        [variant] => single(overload, variant, &shape),
        _ if shape.selects() => selected(overload, variants, &shape),
        _ => bail!(
            "{}: nothing tells the forms of `{}` apart",
            variants[0].form.at,
            overload.rust_name
        ),
    })
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

/// What a variant needs of the build target: `ptx_80`, `sm_90`.
fn markers(variant: &Variant) -> Vec<String> {
    let isa = variant.isas.marker().into_iter();
    isa.chain(variant.targets.marker()).collect()
}

/// `where for<'a> Target: Has<ptx_80> + Has<sm_90>`.
fn bounds(markers: &[String]) -> String {
    let bounds: Vec<String> = markers
        .iter()
        .map(|marker| format!("Has<{marker}>"))
        .collect();
    match bounds.as_slice() {
        [] => String::new(),
        bounds => format!("where for<'a> Target: {}", bounds.join(" + ")),
    }
}

/// What a function demands of its type parameters and of the build target.
pub(super) fn where_clause(overload: &Overload, shape: &Shape, module: &str) -> String {
    match overload.variants.as_slice() {
        [variant] => bounds(&markers(variant)),
        _ => {
            let (selector, parameters) = shape.selectors();
            let bound = format!("{}{}", camel_case(&overload.rust_name), angle(&parameters));
            format!("where {selector}: {module}{bound}")
        }
    }
}

/// What a debug build checks of the arguments before the instruction.
fn checks(overload: &Overload) -> String {
    let mut out = String::new();
    for (check, wrong) in docs::checks(overload) {
        let name = &check.name;
        let holds = match check.rule {
            Rule::Aligned(bytes) => format!("{name}.addr().is_multiple_of({bytes})"),
            Rule::MultipleOf(factor) => format!("{name}.is_multiple_of({factor})"),
            Rule::Within(0, last) => format!("{name} <= {last}"),
            Rule::Within(first, last) => format!("({first}..={last}).contains(&{name})"),
        };
        let instruction = &overload.forms()[0].instruction.name;
        let _ = writeln!(out, "debug_assert!({holds}, \"{instruction}: {wrong}\");");
    }
    out
}

/// A function that is one instruction.
fn single(overload: &Overload, variant: &Variant, shape: &Shape) -> String {
    let mut convert = String::new();
    for position in shape.args.iter().filter(|position| position.is_converted()) {
        // Of a pointer only the address matters.
        if !matches!(position.arg.ty, Type::Pointer { .. }) {
            let _ = writeln!(
                convert,
                "let {} = {};",
                position.arg.name,
                position.converted()
            );
        }
    }
    let body = body(variant);
    let (result, value) = match &shape.result {
        Some(result) => (result.public_type(), from_bits(result, &body.value)),
        None => ("()".to_string(), String::new()),
    };
    format!(
        "{}pub {}fn {}{}({}){} {} {{ {}{convert}{}{value} }}\n\n",
        attributes(overload),
        if is_safe(overload) { "" } else { "unsafe " },
        overload.rust_name,
        shape.generics(),
        shape.params(),
        arrow(&result),
        bounds(&markers(variant)),
        checks(overload),
        body.statements,
    )
}

/// The result as the caller wants it.
fn from_bits(result: &Position, value: &str) -> String {
    match result.element {
        Element::Bits(name, _) | Element::Sized(name) => format!("{name}::from_bits({value})"),
        _ => value.to_string(),
    }
}

/// A function that is generic over the variant, and the trait that its variants implement.
fn selected(overload: &Overload, variants: &[Variant], shape: &Shape) -> String {
    let name = &overload.rust_name;
    let trait_name = camel_case(name);
    let (selector, parameters) = shape.selectors();
    let bound = format!("{trait_name}{}", angle(&parameters));

    let is_passed = |position: &&Position| !matches!(position.arg.ty, Type::Tag(_));
    let passed: Vec<String> = shape
        .args
        .iter()
        .filter(is_passed)
        .map(Position::converted)
        .collect();
    let receiver = if shape.tags.is_empty() {
        format!("<{selector} as {bound}>::issue")
    } else {
        let tags: Vec<String> = shape
            .tags
            .iter()
            .map(|&index| shape.args[index].arg.name.clone())
            .collect();
        format!("{}.issue", tuple(&tags))
    };
    let call = format!("{receiver}({})", passed.join(", "));
    let result = result_type(variants[0].result.as_ref());
    let one_result = variants
        .iter()
        .all(|v| v.result.is_some() == variants[0].result.is_some())
        && (shape.result.is_some() || variants[0].result.is_none());
    let (output, in_trait, in_function, call) = match &shape.result {
        Some(result) if one_result => (
            String::new(),
            arrow(&trait_type(result, shape)),
            arrow(&result.public_type()),
            from_bits(result, &call),
        ),
        _ if one_result => (String::new(), arrow(&result), arrow(&result), call),
        _ => (
            "/// What the form returns.\ntype Output;\n".to_string(),
            " -> Self::Output".to_string(),
            format!(" -> <{selector} as {bound}>::Output"),
            call,
        ),
    };
    let (unsafety, call) = if is_safe(overload) {
        ("", call)
    } else {
        ("unsafe ", format!("unsafe {{ {call} }}"))
    };
    let immediates: Vec<String> = shape.immediates().collect();
    let immediates = angle(&immediates);

    let mut out = format!(
        "{}pub {unsafety}fn {name}{}({}){in_function} {} {{ {}{call} }}\n\n",
        attributes(overload),
        shape.generics(),
        shape.params(),
        where_clause(overload, shape, ""),
        checks(overload),
    );
    out += &docs::doc(&format!("The forms of [`{name}`]."));
    out += &unimplemented(overload, shape);
    let sealed = match (shape.tags.is_empty(), selector.starts_with('[')) {
        (false, _) => "Sealed",
        (true, true) => "Sized",
        (true, false) => "Value",
    };
    let _ = writeln!(
        out,
        "pub trait {trait_name}{}: {sealed} {{\n{output}#[doc(hidden)]\n{unsafety}fn issue{immediates}({}){in_trait} {{ lacking() }}\n}}\n",
        angle(&shape.trait_parameters()),
        issue_params(shape, None),
    );
    out += &implementations(overload, shape, &trait_name, one_result);
    out
}

/// Variants in a table, where this many or more differ in nothing but the selecting types and the
/// text of the instruction.
const TABLE: usize = 3;

/// What implements the trait.
fn implementations(
    overload: &Overload,
    shape: &Shape,
    trait_name: &str,
    one_result: bool,
) -> String {
    let variants: Vec<Variant> = overload
        .variants
        .iter()
        .flat_map(|variant| concrete(variant, shape))
        .collect();
    let mut groups: Vec<(String, Vec<&Variant>)> = Vec::new();
    for variant in &variants {
        let text = implementation(
            variant,
            overload,
            shape,
            (trait_name, one_result),
            ("Selector", &[DEMAND.to_string()], "\"$ptx\""),
        );
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, group)) => group.push(variant),
            None => groups.push((text, vec![variant])),
        }
    }
    let mut out = String::new();
    for (text, group) in groups {
        if group.len() >= TABLE {
            out += &table(&text, &group, shape);
            continue;
        }
        for variant in group {
            out += &implementation(
                variant,
                overload,
                shape,
                (trait_name, one_result),
                (
                    &selectors_of(variant, shape).0,
                    &markers(variant),
                    &literal(&instruction(variant)),
                ),
            );
            out += "\n\n";
        }
    }
    out
}

/// An `impl` for a selecting type, with what it demands of the build target, and the text of the
/// instruction.
fn implementation(
    variant: &Variant,
    overload: &Overload,
    shape: &Shape,
    (trait_name, one_result): (&str, bool),
    (selector, demands, ptx): (&str, &[String], &str),
) -> String {
    let unsafety = if is_safe(overload) { "" } else { "unsafe " };
    let immediates: Vec<String> = shape.immediates().collect();
    let result = result_type(variant.result.as_ref());
    let output = match one_result {
        true => String::new(),
        false => format!("type Output = {result};\n"),
    };
    let (begins, ends) = match demands {
        [] => (String::new(), String::new()),
        demands => (
            format!("{TARGET_BEGINS}{}\n", demands.join(" ")),
            format!("{TARGET_ENDS}\n"),
        ),
    };
    let body = body_with(variant, ptx);
    format!(
        "impl {trait_name}{} for {selector} {} {{\n{output}{begins}#[inline(always)]\n{unsafety}fn issue{}({}){} {{ {}{} }}\n{ends}}}",
        angle(&selectors_of(variant, shape).1),
        bounds(demands),
        angle(&immediates),
        issue_params(shape, Some(variant)),
        arrow(&result),
        body.statements,
        body.value,
    )
}

/// Before and after an `impl` that stands for the `impl`s of a table, and that [`expand_macros`]
/// makes a macro.
const TABLE_BEGINS: &str = "// table begins";
const TABLE_ENDS: &str = "// table ends";

/// What the `impl` of a table needs of the build target, before it is a macro.
const DEMAND: &str = "Demand";

/// Before and after a function that exists where the build target has what the comment says.
const TARGET_BEGINS: &str = "// on target: ";
const TARGET_ENDS: &str = "// on target ends";

/// The `impl` with placeholders, and a table of its cases: selecting type, demands, PTX.
fn table(implementation: &str, group: &[&Variant], shape: &Shape) -> String {
    let mut out = format!("{TABLE_BEGINS}\n{implementation}\n{TABLE_ENDS}\n\nforms! {{\n");
    for variant in group {
        let _ = writeln!(
            out,
            "    {}: {}\n        {}",
            selectors_of(variant, shape).0,
            markers(variant).join(" "),
            literal(&instruction(variant))
        );
    }
    out + "}\n\n"
}

/// Makes macros of what is marked. That comes after rustfmt, which does not format macros.
pub(super) fn expand_macros(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_table, mut on_target) = (false, false);
    for line in text.lines() {
        let code = line.trim_start();
        let table = if in_table { "        " } else { "" };
        if code == TABLE_BEGINS {
            in_table = true;
            out += "macro_rules! forms {\n    \
                ($($selector:ty: $($has:ident)* $ptx:literal)*) => {$(\n";
        } else if code == TABLE_ENDS {
            in_table = false;
            out += "    )*};\n}\n";
        } else if let Some(markers) = code.strip_prefix(TARGET_BEGINS) {
            on_target = true;
            let markers = markers.replace(DEMAND, "$($has)*");
            let _ = writeln!(out, "{table}    on_target! {{ [{markers}]");
        } else if code == TARGET_ENDS {
            on_target = false;
            let _ = writeln!(out, "{table}    }}");
        } else if line.is_empty() {
            out.push('\n');
        } else {
            let indent = if on_target { "    " } else { "" };
            let line = match in_table {
                true => line
                    .replace("for Selector", "for $selector")
                    .replace("Has<Demand>", "$(Has<$has> +)*")
                    .replace("\"$ptx\"", "$ptx"),
                false => line.to_owned(),
            };
            let _ = writeln!(out, "{table}{indent}{line}");
        }
    }
    out
}

/// The parameters of the trait's function: in the trait, or in the `impl` of a variant.
fn issue_params(shape: &Shape, variant: Option<&Variant>) -> String {
    let mut params = Vec::new();
    if !shape.tags.is_empty() {
        params.push("self".to_string());
    }
    for (index, position) in shape.args.iter().enumerate() {
        let name = &position.arg.name;
        match (&position.arg.ty, variant) {
            (Type::Tag(_), _) => {}
            (Type::Immediate { .. }, _) => {
                params.push(format!("_{name}: n32<{}>", name.to_uppercase()));
            }
            (_, Some(variant)) => {
                params.push(format!("{name}: {}", rust_type(&variant.args[index].ty)));
            }
            (_, None) => {
                params.push(format!("{name}: {}", trait_type(position, shape)));
            }
        }
    }
    params.join(", ")
}

/// The type of an argument or result in the trait: `Self` where it is what implements the trait.
fn trait_type(position: &Position, shape: &Shape) -> String {
    let ty = position.register_type().replace("::Bits", "");
    let own = shape.selectors().0.replace("::Bits", "");
    if !shape.tags.is_empty() {
        ty
    } else if own.starts_with('[') {
        ty.replace(&own, "Self")
    } else {
        // A type parameter, which stands between spaces and brackets.
        ty.split_inclusive([' ', '[', ';'])
            .map(|word| match word.trim_end_matches([' ', ';']) == own {
                true => word.replace(&own, "Self"),
                false => word.to_string(),
            })
            .collect()
    }
}

/// The types that select one variant: what implements the trait, and the trait's parameters.
fn selectors_of(variant: &Variant, shape: &Shape) -> (String, Vec<String>) {
    let at = |wanted: &dyn Fn(&Position) -> bool| {
        let result = shape.result.iter().zip(&variant.result);
        shape
            .args
            .iter()
            .zip(&variant.args)
            .chain(result)
            .find(|(position, _)| wanted(position))
            .map(|(_, arg)| &arg.ty)
    };
    let mut types: Vec<String> = Vec::new();
    for (_, element) in &shape.types {
        if matches!(element, Element::Sized(_) | Element::Selected(_)) {
            let of = at(&|position| position.element == *element).and_then(scalar_of);
            types.push(of.map_or(String::new(), |of| of.rust().to_string()));
        }
    }
    let mut lengths: Vec<String> = Vec::new();
    for name in &shape.lengths {
        let len = at(&|position| position.length == Length::Selected(name)).and_then(length_of);
        lengths.push(len.map_or(String::new(), |len| len.to_string()));
    }
    if !shape.tags.is_empty() {
        let tags: Vec<String> = shape
            .tags
            .iter()
            .map(|&index| rust_type(&variant.args[index].ty))
            .collect();
        types.append(&mut lengths);
        return (tuple(&tags), types);
    }
    if types.is_empty() {
        let array = at(&|position| matches!(position.length, Length::Selected(_)));
        let own = match array {
            Some(Type::Array { of, len } | Type::Out { of, len: Some(len) }) => {
                format!("[{}; {len}]", of.rust())
            }
            _ => String::new(),
        };
        return (own, lengths.split_off(shape.implied_lengths()));
    }
    let first = types.remove(0);
    types.append(&mut lengths);
    (first, types)
}

/// Where a type selects the variant, any type of 32 bits means each of them.
fn concrete(variant: &Variant, shape: &Shape) -> Vec<Variant> {
    let selected = |position: &&Position| matches!(position.element, Element::Selected(_));
    let bits = shape
        .args
        .iter()
        .zip(&variant.args)
        .find(|(position, _)| selected(position))
        .and_then(|(_, arg)| scalar_of(&arg.ty))
        .filter(|of| matches!(of, Scalar::Bits(_)));
    let Some(bits) = bits else {
        return vec![variant.clone()];
    };
    let types: &[Scalar] = match bits {
        Scalar::Bits(16) => &[Scalar::U16, Scalar::I16],
        Scalar::Bits(32) => &[Scalar::U32, Scalar::I32, Scalar::F32],
        Scalar::Bits(64) => &[Scalar::U64, Scalar::I64, Scalar::F64],
        _ => return vec![variant.clone()],
    };
    types
        .iter()
        .map(|&of| {
            let mut variant = variant.clone();
            for arg in variant.args.iter_mut().chain(&mut variant.result) {
                if scalar_of(&arg.ty) == Some(bits) {
                    arg.ty = with_scalar(&arg.ty, of);
                }
            }
            variant
        })
        .collect()
}

fn with_scalar(ty: &Type, new: Scalar) -> Type {
    match ty.clone() {
        Type::Scalar(_) => Type::Scalar(new),
        Type::Pointer {
            space,
            mutable,
            len,
            ..
        } => Type::Pointer {
            space,
            mutable,
            to: new,
            len,
        },
        Type::Array { len, .. } => Type::Array { of: new, len },
        Type::Out { len, .. } => Type::Out { of: new, len },
        other => other,
    }
}

/// The compile error for a combination that does not exist.
fn unimplemented(overload: &Overload, shape: &Shape) -> String {
    let selecting: Vec<usize> = (0..shape.args.len())
        .filter(|index| {
            let position = &shape.args[*index];
            shape.tags.contains(index)
                || matches!(position.element, Element::Sized(_) | Element::Selected(_))
                || matches!(position.length, Length::Selected(_))
        })
        .collect();
    let names: Vec<&str> = selecting
        .iter()
        .map(|&i| shape.args[i].arg.name.as_str())
        .collect();
    let (_, parameters) = shape.selectors();
    let with: String = parameters
        .iter()
        .map(|name| format!(", `{{{}}}`", name.trim_end_matches("::Bits")))
        .collect();
    let mut out = format!(
        "#[diagnostic::on_unimplemented(\nmessage = \"`{}` has no form for `{{Self}}`{with}\",\nlabel = \"no such {}\",\n",
        overload.rust_name,
        names.join(", "),
    );
    for form in overload.forms() {
        let choices: Vec<String> = selecting
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
