//! Documentation comments of the generated functions.

use std::fmt::Write;

use crate::spec::{Check, Form, Overload, Rule, Set, Type, Variant};

const WIDTH: usize = 96;
const ISA_DOCUMENT: &str = "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#";

/// A documentation comment, wrapped.
pub(super) fn doc(text: &str) -> String {
    comment("///", text)
}

/// A wrapped comment of the given kind, one paragraph.
pub(super) fn comment(mark: &str, text: &str) -> String {
    let mut out = String::new();
    for line in wrap(text, WIDTH - mark.len()) {
        let _ = writeln!(out, "{}", format!("{mark} {line}").trim_end());
    }
    out
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            // A continued list item is indented under its text.
            let indent = if text.starts_with("- ") { "  " } else { "" };
            lines.push(format!("{indent}{word}"));
        }
    }
    lines
}

/// The documentation of a function.
pub(super) fn function(overload: &Overload) -> String {
    let forms = overload.forms();
    let instruction = &forms[0].instruction;
    let (first, rest) = first_sentence(forms[0].about.as_ref().unwrap_or(&instruction.about));
    let mut out = doc(first);
    if !rest.is_empty() {
        out += "///\n";
        out += &doc(rest);
    }
    out += "///\n/// ```text\n";
    for form in &forms {
        let of_form = |variant: &&Variant| std::ptr::eq(&*variant.form, &***form);
        let shown = overload.variants.iter().find(of_form).map(|v| &v.shown);
        let _ = writeln!(out, "/// {}", shown.unwrap_or(&form.template));
        for set in shown_sets(form, overload) {
            let _ = writeln!(out, "/// {set}");
        }
        let _ = writeln!(out, "///     PTX ISA {}, {}", form.isas, form.targets);
    }
    out += "/// ```\n";

    let named = &overload.variants[0].args;
    let operands: Vec<&(String, String)> = instruction
        .operands
        .iter()
        .filter(|(name, _)| named.iter().any(|arg| arg.name == *name))
        .collect();
    if !operands.is_empty() {
        out += "///\n";
        for (name, meaning) in operands {
            out += &doc(&format!("- `{name}`: {meaning}"));
        }
    }
    let _ = writeln!(
        out,
        "///\n/// PTX ISA: [`{}`]({ISA_DOCUMENT}{})",
        instruction.name, instruction.link
    );
    let wrong: Vec<String> = checks(overload).map(|(_, wrong)| wrong).collect();
    if !wrong.is_empty() {
        out += "///\n/// # Panics\n///\n";
        out += &doc(&format!("In debug builds, if {}.", wrong.join(", or ")));
    }
    let mut safety: Vec<&String> = Vec::new();
    for line in forms
        .iter()
        .flat_map(|form| form.instruction.safety.iter().chain(&form.safety))
    {
        if !safety.contains(&line) {
            safety.push(line);
        }
    }
    match safety.as_slice() {
        [] => {}
        [one] => {
            out += "///\n/// # Safety\n///\n";
            out += &doc(one);
        }
        several => {
            out += "///\n/// # Safety\n///\n";
            for line in several {
                out += &doc(&format!("- {line}"));
            }
        }
    }
    out
}

/// What debug builds check of the function's arguments, each with what it is called if it is wrong.
pub(super) fn checks(overload: &Overload) -> impl Iterator<Item = (&Check, String)> {
    let args = &overload.variants[0].args;
    let checks = &overload.forms()[0].instruction.checks;
    checks
        .iter()
        .filter(|check| args.iter().any(|arg| arg.name == check.name))
        .map(|check| {
            let name = &check.name;
            let wrong = match check.rule {
                Rule::Aligned(bytes) => format!("`{name}` is not aligned to {bytes} bytes"),
                Rule::MultipleOf(factor) => format!("`{name}` is not a multiple of {factor}"),
                Rule::Within(first, last) => format!("`{name}` is not in {first} to {last}"),
            };
            (check, wrong)
        })
}

fn first_sentence(text: &str) -> (&str, &str) {
    match text.find(". ") {
        Some(end) => (&text[..=end], text[end + 2..].trim()),
        None => (text, ""),
    }
}

/// The sets of a form, as the PTX ISA writes them.
fn shown_sets(form: &Form, overload: &Overload) -> Vec<String> {
    form.sets
        .iter()
        .map(|set| {
            let members = set
                .members
                .iter()
                .map(|member| {
                    let values: Vec<String> = set
                        .names
                        .iter()
                        .zip(&member.values)
                        .map(|(name, value)| spelled(form, overload, name, value))
                        .collect();
                    let mut text = values.join("");
                    if text.is_empty() {
                        text.push('-');
                    }
                    if let Some(isa) = member.isa {
                        let _ = write!(text, " (PTX ISA {isa})");
                    }
                    if let Some(targets) = &member.targets {
                        let _ = write!(text, " ({targets})");
                    }
                    if let Some(except) = &member.except {
                        let _ = write!(text, " (not {except})");
                    }
                    text
                })
                .collect::<Vec<_>>();
            format!("    {} = {{ {} }}", set_names(set), members.join(", "))
        })
        .collect()
}

fn set_names(set: &Set) -> String {
    set.names.iter().map(|name| format!(".{name}")).collect()
}

/// How PTX spells a member of a set: a tag in its own way, anything else as written.
fn spelled(form: &Form, overload: &Overload, name: &str, value: &str) -> String {
    let tag = overload
        .variants
        .iter()
        .filter(|variant| std::ptr::eq(&*variant.form, form))
        .flat_map(|variant| &variant.args)
        .find_map(|arg| match &arg.ty {
            Type::Tag(tag) if arg.name == name && tag.name.ends_with(&format!("_{value}")) => {
                Some(tag)
            }
            _ => None,
        });
    match tag {
        Some(tag) => tag.ptx.clone(),
        None if value.is_empty() => String::new(),
        None => format!(".{value}"),
    }
}

/// A one-line comment for inline assembly that may do less than usual.
pub(super) fn effects(variant: &Variant) -> String {
    match &variant.form.effects.reason {
        Some(reason) => comment("//", reason),
        None => String::new(),
    }
}
