//! From the forms as written to one [`Variant`] per instruction.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail};

use super::parse::{Form, Member, Set, Source};
use super::tag::TagTable;
use super::types::{Twin, Type};
use super::{Arg, Variant};

/// Set name → how PTX spells the chosen member, without the leading dot.
type Choice = BTreeMap<String, String>;

pub(super) fn variants(source: &Source, tags: &TagTable) -> Result<Vec<Variant>> {
    let mut variants = Vec::new();
    for form in &source.forms {
        for members in combinations(&form.sets) {
            for present in presences(form) {
                variants.push(variant(form, &members, &present, tags)?);
            }
        }
    }
    Ok(variants)
}

/// Every choice of one member from each set.
fn combinations(sets: &[Set]) -> Vec<Vec<(&Set, &Member)>> {
    sets.iter().fold(vec![Vec::new()], |combinations, set| {
        combinations
            .iter()
            .flat_map(|combination| {
                set.members.iter().map(|member| {
                    let mut combination = combination.clone();
                    combination.push((set, member));
                    combination
                })
            })
            .collect()
    })
}

/// Every choice of optional arguments, and of those with a default: the names of those given.
fn presences(form: &Form) -> Vec<Vec<&str>> {
    form.args
        .iter()
        .filter(|arg| arg.optional || arg.default.is_some())
        .fold(vec![Vec::new()], |choices, arg| {
            let with = choices.iter().map(|choice| {
                let mut choice = choice.clone();
                choice.push(arg.name.as_str());
                choice
            });
            choices.iter().cloned().chain(with).collect()
        })
}

fn variant(
    form: &Arc<Form>,
    members: &[(&Set, &Member)],
    present: &[&str],
    tags: &TagTable,
) -> Result<Variant> {
    let at = &form.at;
    let mut choice = Choice::new();
    let (mut isas, mut targets) = (form.isas, form.targets.clone());
    for (set, member) in members {
        for (name, value) in set.names.iter().zip(&member.values) {
            choice.insert(name.clone(), value.clone());
        }
        isas.first = member.isa.map_or(isas.first, |newer| isas.first.max(newer));
        targets = member.targets.clone().unwrap_or(targets);
        if let Some(except) = &member.except {
            targets = targets.without(except);
        }
    }

    let mut args = Vec::new();
    let mut implied = Vec::new();
    let mut absent = Vec::new();
    for arg in &form.args {
        let there = match &arg.condition {
            Some(set) => match choice.get(set) {
                Some(value) => !value.is_empty(),
                None => bail!("{at}: `if .{set}`: the form has no set `.{set}`"),
            },
            None => {
                !(arg.optional || arg.default.is_some()) || present.contains(&arg.name.as_str())
            }
        };
        if !there && arg.default.is_none() {
            absent.push(arg.name.as_str());
            continue;
        }
        let ty = match tags.family(&arg.ty) {
            Some(family) => {
                let Some(value) = choice.get(&arg.name) else {
                    bail!("{at}: `{}` needs a set `.{} = …`", arg.name, arg.name);
                };
                let Some(tag) = family.member(value) else {
                    bail!("{at}: there is no tag `{}_{value}`", family.name);
                };
                Type::Tag(tag.clone())
            }
            None => at.check(Type::parse(&substitute(&arg.ty, &choice), tags))?,
        };
        if let Type::Tag(tag) = &ty {
            // In the PTX line the argument's name stands for the tag.
            let spelling = tag.ptx.strip_prefix('.').unwrap_or_default();
            choice.insert(arg.name.clone(), spelling.to_string());
        }
        let name = arg.name.clone();
        match arg.default {
            Some(value) if !there => implied.push((Arg { name, ty }, value)),
            _ => args.push(Arg { name, ty }),
        }
    }
    let result = match &form.result {
        Some((name, ty)) => Some(Arg {
            name: name.clone(),
            ty: at.check(Type::parse(&substitute(ty, &choice), tags))?,
        }),
        None => None,
    };

    let given = args.iter().chain(&result);
    let names: Vec<&str> = given
        .chain(implied.iter().map(|(arg, _)| arg))
        .map(|arg| arg.name.as_str())
        .collect();
    let variant = Variant {
        function: function_name(form, &choice)?,
        ptx: template(form, &choice, &names, &absent)?,
        shown: shown(form, &choice, &absent)?,
        form: Arc::clone(form),
        args,
        implied,
        result,
        twin: form.twin.as_ref().map(|twin| self::twin(twin, &choice)),
        effects: form.effects.effects,
        isas,
        targets,
    };
    check_use(form, &variant)?;
    Ok(variant)
}

/// The twin with sets in braces replaced, as in `__reduce_{.op}_sync(mask, value)`.
fn twin(twin: &Twin, choice: &Choice) -> Twin {
    match twin {
        Twin::Assembly => Twin::Assembly,
        Twin::Expression(text) => Twin::Expression(interpolate(text, choice)),
    }
}

/// Replaces `{.set}` by the member alone.
fn interpolate(text: &str, choice: &Choice) -> String {
    choice.iter().fold(text.to_string(), |text, (name, value)| {
        text.replace(&format!("{{.{name}}}"), value)
    })
}

/// Replaces whole words that name a set.
fn substitute(text: &str, choice: &Choice) -> String {
    words(text)
        .map(|word| choice.get(word).map_or(word, String::as_str))
        .collect()
}

/// Maximal runs of identifier characters, and what is between them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = rest
            .find(|c| is_word(c) != is_word(first))
            .unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        rest = tail;
        Some(word)
    })
}

/// Replaces `{.set}` by an underscore and the member, if it is not empty.
fn function_name(form: &Form, choice: &Choice) -> Result<String> {
    let mut name = String::new();
    let mut rest = form.name.as_str();
    while let Some((before, after)) = rest.split_once("{.") {
        let Some((set, tail)) = after.split_once('}') else {
            bail!("{}: `{{` in `{}` is not closed", form.at, form.name);
        };
        let Some(value) = choice.get(set) else {
            bail!("{}: the form has no set `.{set}`", form.at);
        };
        name.push_str(before);
        if !value.is_empty() {
            name.push('_');
            name.push_str(&value.replace("::", "_"));
        }
        rest = tail;
    }
    name.push_str(rest);
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.chars().all(valid) {
        bail!("{}: `{name}` is not a function's name", form.at);
    }
    Ok(name)
}

/// The PTX line with sets replaced, absent operands dropped and the others as `{name}`.
fn template(form: &Form, choice: &Choice, names: &[&str], absent: &[&str]) -> Result<String> {
    let line = form.template.trim_end_matches(';');
    let (opcode, operands) = line.split_once(' ').unwrap_or((line, ""));
    let mut ptx = opcode_of(form, opcode, choice);
    let operands = drop_absent(form, operands.trim(), absent)?;
    if !operands.is_empty() {
        ptx.push(' ');
    }
    // `%tid.x` and `%clock64` are registers of the machine; a string is what it is.
    let mut special = false;
    for word in words(&operands) {
        let is_name = word.starts_with(|c: char| c.is_ascii_lowercase());
        if special && is_name {
            ptx.push_str(choice.get(word).map_or(word, String::as_str));
        } else if !is_name {
            special = word.ends_with(['%', '"']) || (special && word == ".");
            ptx.push_str(word);
        } else if names.contains(&word) {
            ptx.push_str(&format!("{{{word}}}"));
        } else {
            bail!(
                "{}: operand `{word}` is neither an argument nor the result",
                form.at
            );
        }
    }
    ptx.push(';');
    Ok(ptx)
}

/// The PTX line with sets left as they are.
fn shown(form: &Form, choice: &Choice, absent: &[&str]) -> Result<String> {
    let in_set = |name: &String| form.sets.iter().any(|set| set.names.contains(name));
    let fixed: Choice = choice
        .iter()
        .filter(|(name, _)| !in_set(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let line = form.template.as_str();
    let Some((opcode, operands)) = line.split_once(' ') else {
        return Ok(opcode_of(form, line, &fixed));
    };
    let operands = drop_absent(form, operands, absent)?;
    Ok(format!("{} {operands}", opcode_of(form, opcode, &fixed)))
}

/// Replaces `.name` and `::name` where `name` is a set or a tag.
fn opcode_of(form: &Form, opcode: &str, choice: &Choice) -> String {
    let is_argument = |name: &str| form.args.iter().any(|arg| arg.name == name);
    let mut out = String::new();
    let opcode = &interpolate(opcode, choice);
    let pieces: Vec<&str> = words(opcode).collect();
    for (index, piece) in pieces.iter().enumerate() {
        let qualifies = pieces.get(index + 1).is_some_and(|next| *next == "::");
        match choice.get(*piece) {
            // `.kind::f16` is not the tag `kind`, which would be all of that; `::space::read` is one.
            Some(value) if !qualifies || !is_argument(piece) || pieces[index - 1] == "::" => {
                if value.is_empty() && out.ends_with('.') {
                    out.pop();
                }
                out.push_str(value);
            }
            _ => out.push_str(piece),
        }
    }
    out
}

/// Resolves `{, operand}`: kept without its braces if the operand is there, else dropped.
fn drop_absent(form: &Form, operands: &str, absent: &[&str]) -> Result<String> {
    let mut out = String::new();
    let mut rest = operands;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((group, tail)) = after.split_once('}') else {
            bail!("{}: `{{` in the PTX line is not closed", form.at);
        };
        out.push_str(before);
        if !words(group).any(|word| absent.contains(&word)) {
            out.push_str(group);
        }
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

/// Every argument that is no tag is an operand of the instruction.
fn check_use(form: &Form, variant: &Variant) -> Result<()> {
    let operand = |arg: &&Arg| !matches!(arg.ty, Type::Tag(_));
    let mut values = variant.args.iter().filter(operand).chain(&variant.result);
    match values.find(|arg| !variant.ptx.contains(&format!("{{{}}}", arg.name))) {
        Some(arg) => bail!(
            "{}: `{}` is not an operand of `{}`",
            form.at,
            arg.name,
            variant.ptx
        ),
        None => Ok(()),
    }
}
