//! The notation of `spec/`, read line by line. Sets are kept as written; see [`super::expand`].

use std::fmt;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};

use super::Effects;
use super::tag::TagTable;
use super::target::{Isa, Isas, Targets};
use super::types::Twin;

/// A line of a spec file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// File name without directory and ending.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
}

impl Location {
    pub(super) fn new(file: &str, line: usize) -> Self {
        Location {
            file: file.to_string(),
            line,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spec/{}.spec:{}", self.file, self.line)
    }
}

/// What the forms of one PTX instruction have in common: an `instruction` block.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Where the block begins.
    pub at: Location,
    /// The instruction's name in the PTX ISA, e.g. `mbarrier.arrive`.
    pub name: String,
    /// Anchor of its section in the PTX ISA document.
    pub link: String,
    /// What it does; the first sentence stands alone.
    pub about: String,
    /// What the caller must guarantee; empty if nothing can break memory safety.
    pub safety: Vec<String>,
    /// Meaning and unit of operands.
    pub operands: Vec<(String, String)>,
    /// What debug builds check of the arguments.
    pub checks: Vec<Check>,
    /// Why dropping the result is a mistake.
    pub must_use: Option<String>,
    /// What the statement does besides computing its outputs.
    pub effects: StatedEffects,
    /// Whether calling it can never break memory safety.
    pub safe: bool,
    /// How C++ says the forms that `cuda::ptx` lacks, unless they say it themselves.
    pub twin: Option<Twin>,
    /// The module that has the functions, if they are not generated.
    pub by_hand: Option<String>,
}

/// What an argument must be, where a debug build can see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The argument.
    pub name: String,
    /// What it must be.
    pub rule: Rule,
}

/// What an argument must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A pointer aligned to this many bytes.
    Aligned(u32),
    /// A multiple of this.
    MultipleOf(u32),
    /// In this range, ends included.
    Within(u32, u32),
}

impl Check {
    fn parse(at: &Location, text: &str) -> Result<Self> {
        let parsed = text.split_once(' ').and_then(|(name, rule)| {
            let number = |digits: &str| digits.trim().parse().ok();
            let rule = if let Some(bytes) = rule.strip_prefix("aligned ") {
                Rule::Aligned(number(bytes)?)
            } else if let Some(factor) = rule.strip_prefix("multiple of ") {
                Rule::MultipleOf(number(factor)?)
            } else {
                let (first, last) = rule.split_once("..=")?;
                Rule::Within(number(first)?, number(last)?)
            };
            Some(Self {
                name: name.to_string(),
                rule,
            })
        });
        parsed.ok_or_else(|| {
            anyhow!("{at}: expected `check NAME aligned N`, `multiple of N` or `A..=B`, found `check {text}`")
        })
    }
}

/// What a statement does besides computing its outputs, and why if that is less than usual.
#[derive(Clone, Debug)]
pub struct StatedEffects {
    /// What it does.
    pub effects: Effects,
    /// Why; a full sentence.
    pub reason: Option<String>,
}

/// One `fn` of the notation: a signature and a PTX line, both possibly with sets.
#[derive(Clone, Debug)]
pub struct Form {
    /// Where it begins.
    pub at: Location,
    /// The block it belongs to.
    pub instruction: Arc<Instruction>,
    /// C++ name, with `{.set}` where a set's member is part of it.
    pub name: String,
    /// The Rust name, if the rule for names is overruled.
    pub rust_name: Option<String>,
    /// Arguments.
    pub args: Vec<FormArg>,
    /// Name and type of what it returns.
    pub result: Option<(String, String)>,
    /// The PTX line.
    pub template: String,
    /// The sets that the template and the signature refer to.
    pub sets: Vec<Set>,
    /// PTX ISA versions.
    pub isas: Isas,
    /// Architectures.
    pub targets: Targets,
    /// The type by which predicates are converted, `b32` if the form does not say.
    pub predicate: String,
    /// What the statement does besides computing its outputs.
    pub effects: StatedEffects,
    /// Replaces the instruction's description.
    pub about: Option<String>,
    /// Added to what the caller must guarantee.
    pub safety: Vec<String>,
    /// How C++ says it, if `cuda::ptx` lacks it.
    pub twin: Option<Twin>,
}

/// An argument as written.
#[derive(Clone, Debug)]
pub struct FormArg {
    /// Name.
    pub name: String,
    /// Type, possibly with names of sets in it.
    pub ty: String,
    /// Written `name?`: the form exists with and without it.
    pub optional: bool,
    /// Written `if .set`: there if the member of that set is not empty.
    pub condition: Option<String>,
    /// The value that C++ takes when the argument is left out.
    pub default: Option<u64>,
}

/// `.a.b = x.y | z.w`: one or several names that take values together.
#[derive(Clone, Debug)]
pub struct Set {
    /// Where it is written.
    pub at: Location,
    /// The names.
    pub names: Vec<String>,
    /// Their joint values.
    pub members: Vec<Member>,
}

/// One of the joint values of a set.
#[derive(Clone, Debug)]
pub struct Member {
    /// One for each name of the set.
    pub values: Vec<String>,
    /// If it needs a newer PTX ISA version than the form.
    pub isa: Option<Isa>,
    /// If it needs other architectures than the form.
    pub targets: Option<Targets>,
    /// Architectures that the form has and this lacks.
    pub except: Option<Targets>,
}

/// A parsed family file.
#[derive(Debug)]
pub(super) struct Source {
    pub docs: Vec<String>,
    pub forms: Vec<Arc<Form>>,
}

pub(super) fn family(file: &str, text: &str, tags: &TagTable) -> Result<Source> {
    let mut lines = Lines::new(file, text);
    let mut docs = Vec::new();
    let mut forms = Vec::new();
    let mut instruction: Option<Arc<Instruction>> = None;
    while let Some((at, line)) = lines.next() {
        if let Some(doc) = line.strip_prefix("//!") {
            docs.push(doc.strip_prefix(' ').unwrap_or(doc).to_string());
        } else if let Some(name) = line.strip_prefix("instruction ") {
            instruction = Some(Arc::new(instruction_block(at, name.trim(), lines.block())?));
        } else if let Some(signature) = line.strip_prefix("fn ") {
            let Some(instruction) = &instruction else {
                bail!("{at}: expected `instruction NAME` before the first `fn`");
            };
            let block = lines.block();
            forms.push(Arc::new(form(at, instruction, signature, block, tags)?));
        } else {
            bail!("{at}: expected `//!`, `instruction NAME` or `fn NAME(…)`, found `{line}`");
        }
    }
    if docs.is_empty() {
        bail!("spec/{file}.spec:1: expected a description of the family in `//!` lines");
    }
    Ok(Source { docs, forms })
}

type Numbered = (Location, String);

/// Lines without comments and blank ones.
struct Lines {
    lines: std::iter::Peekable<std::vec::IntoIter<Numbered>>,
}

impl Lines {
    fn new(file: &str, text: &str) -> Self {
        let lines: Vec<Numbered> = text
            .lines()
            .enumerate()
            .map(|(index, line)| (Location::new(file, index + 1), line.trim_end().to_string()))
            .filter(|(_, line)| {
                let content = line.trim_start();
                !content.is_empty() && !content.starts_with('#')
            })
            .collect();
        Lines {
            lines: lines.into_iter().peekable(),
        }
    }

    fn next(&mut self) -> Option<Numbered> {
        self.lines.next()
    }

    /// The indented lines that follow. A line indented by more than four spaces continues the one
    /// before it.
    fn block(&mut self) -> Vec<Numbered> {
        let mut block: Vec<Numbered> = Vec::new();
        while let Some((at, line)) = self.lines.next_if(|(_, line)| line.starts_with(' ')) {
            match block.last_mut() {
                Some((_, last)) if line.starts_with("     ") => {
                    last.push(' ');
                    last.push_str(line.trim_start());
                }
                _ => block.push((at, line.trim_start().to_string())),
            }
        }
        block
    }
}

fn instruction_block(at: Location, name: &str, block: Vec<Numbered>) -> Result<Instruction> {
    let mut instruction = Instruction {
        at,
        name: name.to_string(),
        link: String::new(),
        about: String::new(),
        safety: Vec::new(),
        operands: Vec::new(),
        checks: Vec::new(),
        must_use: None,
        effects: StatedEffects {
            effects: Effects::Memory,
            reason: None,
        },
        safe: false,
        twin: None,
        by_hand: None,
    };
    for (at, line) in block {
        let (key, text) = line.split_once(' ').unwrap_or((line.as_str(), ""));
        let text = text.trim().to_string();
        match key {
            "link" => instruction.link = text,
            "about" => instruction.about = text,
            "safety" => instruction.safety.push(text),
            "operand" => match text.split_once(' ') {
                Some((operand, meaning)) => instruction
                    .operands
                    .push((operand.to_string(), meaning.trim().to_string())),
                None => bail!("{at}: expected `operand NAME MEANING`, found `{line}`"),
            },
            "check" => instruction.checks.push(Check::parse(&at, &text)?),
            "must_use" => instruction.must_use = Some(text),
            "safe" => instruction.safe = true,
            "effects" => instruction.effects = stated_effects(&at, &text)?,
            "cxx" => instruction.twin = Some(twin(&text)),
            "by_hand" => instruction.by_hand = Some(text),
            _ => bail!(
                "{at}: expected link, about, safety, safe, operand, check, must_use, effects, cxx or by_hand, found `{key}`"
            ),
        }
    }
    let at = &instruction.at;
    if instruction.about.is_empty() || instruction.link.is_empty() {
        bail!("{at}: `instruction {name}` needs `about` and `link`");
    }
    if instruction.safe != instruction.safety.is_empty() {
        bail!("{at}: `instruction {name}` needs either `safety` lines or `safe`");
    }
    Ok(instruction)
}

fn form(
    at: Location,
    instruction: &Arc<Instruction>,
    signature: &str,
    block: Vec<Numbered>,
    tags: &TagTable,
) -> Result<Form> {
    // A long signature goes on in the block, until its parentheses are closed.
    let mut signature = signature.trim().to_string();
    let mut lines = block.into_iter().peekable();
    while !is_closed(&signature) {
        match lines.next() {
            Some((_, more)) => signature = format!("{signature} {more}"),
            None => bail!("{at}: `(` of the signature is not closed"),
        }
    }
    let (name, args, result) = parse_signature(&at, &signature, tags)?;

    let mut template = None;
    let mut requirement = None;
    let mut sets = Vec::new();
    let mut rust_name = None;
    let mut predicate = "b32".to_string();
    let mut effects = instruction.effects.clone();
    let mut about = None;
    let mut safety = Vec::new();
    let mut twin = instruction.twin.clone();
    for (at, line) in lines {
        if line.starts_with('.') && !line.ends_with(';') {
            sets.push(set(&at, &line)?);
        } else if line.starts_with("PTX ") {
            requirement = Some(parse_requirement(&at, &line)?);
        } else if line.ends_with(';') {
            if template.replace(line).is_some() {
                bail!("{at}: the form has a PTX line already");
            }
        } else if let Some(name) = line.strip_prefix("rust ") {
            rust_name = Some(name.trim().to_string());
        } else if let Some(text) = line.strip_prefix("predicate ") {
            predicate = text.trim().to_string();
        } else if let Some(text) = line.strip_prefix("effects ") {
            effects = stated_effects(&at, text)?;
        } else if let Some(text) = line.strip_prefix("about ") {
            about = Some(text.trim().to_string());
        } else if let Some(text) = line.strip_prefix("safety ") {
            safety.push(text.trim().to_string());
        } else if let Some(text) = line.strip_prefix("cxx ") {
            twin = Some(self::twin(text));
        } else {
            bail!(
                "{at}: expected a PTX line (ending in `;`), a set (`.name = …`), `PTX VERSION, \
                 sm_N`, `rust`, `predicate`, `effects`, `about`, `safety` or `cxx`, found `{line}`"
            );
        }
    }
    let Some(template) = template else {
        bail!("{at}: the form has no PTX line (ending in `;`)");
    };
    let Some((isas, targets)) = requirement else {
        bail!("{at}: the form has no `PTX VERSION, sm_N` line");
    };
    Ok(Form {
        at,
        instruction: Arc::clone(instruction),
        name,
        rust_name,
        args,
        result,
        template,
        sets,
        isas,
        targets,
        predicate,
        effects,
        about,
        safety,
        twin,
    })
}

/// `asm`, or an expression.
fn twin(text: &str) -> Twin {
    match text.trim() {
        "asm" => Twin::Assembly,
        expression => Twin::Expression(expression.to_string()),
    }
}

/// `memory`, `volatile REASON` or `pure REASON`.
fn stated_effects(at: &Location, text: &str) -> Result<StatedEffects> {
    let (effects, reason) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let effects = match effects {
        "memory" => Effects::Memory,
        "volatile" => Effects::Volatile,
        "pure" => Effects::Pure,
        _ => bail!("{at}: expected memory, volatile or pure, found `{effects}`"),
    };
    let reason = Some(reason.trim().to_string()).filter(|reason| !reason.is_empty());
    if (effects == Effects::Memory) == reason.is_some() {
        bail!("{at}: `volatile` and `pure` need a reason, `memory` takes none");
    }
    Ok(StatedEffects { effects, reason })
}

fn is_closed(signature: &str) -> bool {
    let count = |c| signature.matches(c).count();
    count('(') > 0 && count('(') == count(')')
}

type Signature = (String, Vec<FormArg>, Option<(String, String)>);

/// `NAME(ARG, …)` or `NAME(ARG, …) -> RESULT: TYPE`.
fn parse_signature(at: &Location, text: &str, tags: &TagTable) -> Result<Signature> {
    let expected = "expected `fn NAME(ARGUMENTS)` or `fn NAME(ARGUMENTS) -> RESULT: TYPE`";
    let (Some(open), Some(close)) = (text.find('('), text.rfind(')')) else {
        bail!("{at}: {expected}, found `fn {text}`");
    };
    let name = text[..open].trim();
    let rest = text[close + 1..].trim();
    let result = if rest.is_empty() {
        None
    } else {
        match rest
            .strip_prefix("->")
            .and_then(|rest| rest.split_once(':'))
        {
            Some((name, ty)) => Some((name.trim().to_string(), ty.trim().to_string())),
            None => bail!("{at}: {expected}, found `fn {text}`"),
        }
    };
    let mut args: Vec<FormArg> = Vec::new();
    for arg in split_arguments(&text[open + 1..close]) {
        let arg = argument(at, arg, tags)?;
        let taken = args.iter().any(|other| other.name == arg.name)
            || result.as_ref().is_some_and(|(name, _)| *name == arg.name);
        if taken {
            bail!("{at}: the name `{}` is there twice", arg.name);
        }
        args.push(arg);
    }
    if name.is_empty() {
        bail!("{at}: {expected}, found `fn {text}`");
    }
    Ok((name.to_string(), args, result))
}

/// Splits at commas that are not inside brackets.
fn split_arguments(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (index, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// `NAME: TYPE`, `NAME?: TYPE`, `NAME: TYPE = DEFAULT`, `NAME: TYPE if .SET`; a tag or a family of
/// tags alone is named after the family.
fn argument(at: &Location, text: &str, tags: &TagTable) -> Result<FormArg> {
    let (text, condition) = match text.split_once(" if .") {
        Some((text, set)) => (text, Some(set.trim().to_string())),
        None => (text, None),
    };
    let (text, default) = match text.split_once(" = ") {
        Some((text, value)) => match parse_number(value.trim()) {
            Some(value) => (text, Some(value)),
            None => bail!("{at}: `{}` is not a number", value.trim()),
        },
        None => (text, None),
    };
    let family_name;
    let (name, ty) = match text.split_once(':') {
        Some((name, ty)) => (name.trim(), ty.trim()),
        None => {
            let tag = text.trim();
            let family = tags.constant(tag).map(|tag| tag.family);
            if family.is_none() && tags.family(tag).is_none() {
                bail!("{at}: expected `NAME: TYPE`, a tag or a family of tags, found `{tag}`");
            }
            family_name = family.unwrap_or_else(|| tag.to_string());
            (family_name.as_str(), tag)
        }
    };
    let (name, optional) = match name.strip_suffix('?') {
        Some(name) => (name, true),
        None => (name, false),
    };
    if !is_identifier(name) {
        bail!("{at}: `{name}` is not an argument's name in snake case");
    }
    Ok(FormArg {
        name: name.to_string(),
        ty: ty.to_string(),
        optional,
        condition,
        default,
    })
}

fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// `.a.b = x.y | {z w}.v PTX 8.6`.
fn set(at: &Location, line: &str) -> Result<Set> {
    let Some((names, members)) = line.split_once('=') else {
        bail!("{at}: expected `.NAME = MEMBER | MEMBER`, found `{line}`");
    };
    let names: Vec<String> = names
        .trim()
        .split('.')
        .skip(1)
        .map(|name| name.trim().to_string())
        .collect();
    let mut set = Set {
        at: at.clone(),
        names,
        members: Vec::new(),
    };
    for text in members.split('|') {
        if let Some(range) = range(at, text.trim())? {
            set.members.extend(range);
            continue;
        }
        for member in member(at, text.trim(), set.names.len())? {
            if set
                .members
                .iter()
                .any(|other| other.values == member.values)
            {
                bail!("{at}: `{}` is in the set twice", member.values.join("."));
            }
            set.members.push(member);
        }
    }
    Ok(set)
}

/// The members of `8..=256 step 8`; `None` if it is something else.
fn range(at: &Location, text: &str) -> Result<Option<Vec<Member>>> {
    let Some((low, rest)) = text.split_once("..=") else {
        return Ok(None);
    };
    let (high, step) = rest.split_once(" step ").unwrap_or((rest, "1"));
    let number = |text: &str| text.trim().parse::<usize>();
    let (Ok(low), Ok(high), Ok(step @ 1..)) = (number(low), number(high), number(step)) else {
        bail!("{at}: expected `LOW..=HIGH step STEP`, found `{text}`");
    };
    let member = |value: usize| Member {
        values: vec![value.to_string()],
        isa: None,
        targets: None,
        except: None,
    };
    Ok(Some((low..=high).step_by(step).map(member).collect()))
}

/// The members that one alternative of a set stands for; `{a b}` stands for both.
fn member(at: &Location, text: &str, parts: usize) -> Result<Vec<Member>> {
    let (values, requirement) = match text.find(" PTX ").or_else(|| text.find(" sm_")) {
        Some(index) => (text[..index].trim(), text[index..].trim()),
        None => (text, ""),
    };
    let (values, except) = match values.split_once(" not ") {
        Some((values, except)) => (values.trim(), except),
        None => match values.strip_suffix(" not") {
            Some(values) => (values.trim(), requirement),
            None => (values, ""),
        },
    };
    let requirement = if except.is_empty() { requirement } else { "" };
    let (isa, targets) = match requirement.strip_prefix("PTX ") {
        _ if requirement.is_empty() => (None, None),
        Some(rest) => {
            let (isa, targets) = rest.split_once(',').unwrap_or((rest, ""));
            let isa = at.check(Isa::parse(isa.trim()))?;
            let targets = targets.trim();
            let targets = (!targets.is_empty())
                .then(|| at.check(Targets::parse(targets)))
                .transpose()?;
            (Some(isa), targets)
        }
        None => (None, Some(at.check(Targets::parse(requirement))?)),
    };
    let except = (!except.is_empty())
        .then(|| at.check(Targets::parse(except)))
        .transpose()?;

    let mut tuples: Vec<Vec<String>> = vec![Vec::new()];
    for alternatives in split_member(values) {
        tuples = tuples
            .iter()
            .flat_map(|tuple| {
                alternatives.iter().map(|value| {
                    let mut tuple = tuple.clone();
                    tuple.push(value.clone());
                    tuple
                })
            })
            .collect();
    }
    if tuples.iter().any(|tuple| tuple.len() != parts) {
        bail!("{at}: expected {parts} parts separated by dots, found `{values}`");
    }
    Ok(tuples
        .into_iter()
        .map(|values| Member {
            values,
            isa,
            targets: targets.clone(),
            except: except.clone(),
        })
        .collect())
}

/// Splits `a.{b c}.d` at its dots, and the braces at their spaces. `-` is the empty value.
fn split_member(text: &str) -> Vec<Vec<String>> {
    text.split('.')
        .map(|part| {
            let inner = part.trim().trim_start_matches('{').trim_end_matches('}');
            inner
                .split_whitespace()
                .map(|value| value.strip_prefix('-').unwrap_or(value).to_string())
                .collect()
        })
        .collect()
}

/// `PTX 8.0, sm_90`.
fn parse_requirement(at: &Location, line: &str) -> Result<(Isas, Targets)> {
    let Some((isa, targets)) = line["PTX ".len()..].split_once(',') else {
        bail!("{at}: expected `PTX VERSION, sm_N`, found `{line}`");
    };
    Ok((
        at.check(Isas::parse(isa.trim()))?,
        at.check(Targets::parse(targets.trim()))?,
    ))
}

impl Location {
    /// Puts the location before a message.
    pub(super) fn check<T>(&self, result: Result<T, String>) -> Result<T> {
        result.map_err(|message| anyhow::anyhow!("{self}: {message}"))
    }
}
