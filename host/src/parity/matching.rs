//! Which form of the spec mirrors which variant of the headers.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context, Result};

use super::form::{Form, Slot};
use super::headers::{Headers, Overload};
use crate::inspect::ptx;
use crate::spec::{self, Family, Spec, Type};

/// A variant of the headers and its mirror.
#[derive(Debug)]
pub struct Pair<'a> {
    /// The variant.
    pub form: Form<'a>,
    /// Its mirror; `None` if the spec lacks it.
    pub mirror: Option<Mirror<'a>>,
}

/// A variant of the spec.
#[derive(Clone, Copy, Debug)]
pub struct Mirror<'a> {
    /// Its family.
    pub family: &'a Family,
    /// The Rust function.
    pub overload: &'a spec::Overload,
    /// The instruction.
    pub variant: &'a spec::Variant,
}

/// Both lists side by side.
#[derive(Debug)]
pub struct Matching<'a> {
    /// One per variant of the headers, in their order.
    pub pairs: Vec<Pair<'a>>,
    /// What the spec says that `cuda::ptx` lacks, in its order.
    pub beyond: Vec<Mirror<'a>>,
    /// What else the spec has and the headers have not.
    pub extra: Vec<Mirror<'a>>,
    /// The pragmas of the headers that the spec lacks.
    pub missing_pragmas: Vec<&'a Overload>,
    /// The family of each function that the spec has.
    families: HashMap<&'a str, &'a str>,
}

impl<'a> Matching<'a> {
    /// Finds the mirror of every variant: the same function, the same tags, and the same instruction with operands in
    /// the same order, or at least the same opcode.
    ///
    /// # Errors
    ///
    /// A variant whose types or text are not understood.
    pub fn new(headers: &'a Headers, spec: &'a Spec) -> Result<Self> {
        let mut candidates = Candidates::new(spec)?;
        let mut pairs = Vec::new();
        for overload in &headers.overloads {
            for variant in &overload.variants {
                pairs.push(Pair {
                    form: Form::new(overload, variant)?,
                    mirror: None,
                });
            }
        }
        let texts = pairs
            .iter()
            .map(|pair| upstream_text(&pair.form))
            .collect::<Result<Vec<_>>>()?;
        // Every equal text first, so that a near match takes no other variant's mirror.
        for (pair, text) in pairs.iter_mut().zip(&texts) {
            pair.mirror = candidates.take(&pair.form, |candidate| candidate.text == *text);
        }
        for (pair, text) in pairs
            .iter_mut()
            .zip(&texts)
            .filter(|(pair, _)| pair.mirror.is_none())
        {
            pair.mirror = candidates.take(&pair.form, |candidate| {
                opcodes(&candidate.text) == opcodes(text)
            });
        }
        share_mirrors(&mut pairs, &texts);
        let functions = |family: &'a Family| {
            let name = family.name.as_str();
            family
                .functions
                .iter()
                .map(move |function| (function.name.as_str(), name))
        };
        let families = spec.families.iter().flat_map(functions).collect();
        let (mut extra, mut missing_pragmas) = (candidates.left(), Vec::new());
        for pragma in &headers.pragmas {
            let same = |mirror: &Mirror| {
                mirror.variant.function == pragma.function && is_pragma(pragma, mirror)
            };
            match extra.iter().position(same) {
                Some(at) => drop(extra.remove(at)),
                None => missing_pragmas.push(pragma),
            }
        }
        let beyond = spec.variants().filter(|(.., variant)| variant.is_beyond());
        let beyond = beyond.map(|(family, overload, variant)| Mirror {
            family,
            overload,
            variant,
        });
        Ok(Self {
            pairs,
            beyond: beyond.collect(),
            extra,
            missing_pragmas,
            families,
        })
    }

    /// The family that has, or would have, the pair's mirror; `None` if the spec does not have the function.
    pub fn family_of(&self, pair: &Pair) -> Option<&'a str> {
        self.families
            .get(pair.form.overload.function.as_str())
            .copied()
    }

    /// The names of the families that mirror something.
    pub fn families(&self) -> Vec<&'a str> {
        let names: BTreeSet<_> = self.families.values().copied().collect();
        names.into_iter().collect()
    }
}

/// Whether the mirror's text is the pragma; a pragma is no instruction, so no kernel shows it.
fn is_pragma(pragma: &Overload, mirror: &Mirror) -> bool {
    let text = mirror.variant.asm_lines().join("\n");
    pragma.variants.iter().all(|variant| variant.asm == text)
}

/// Releases before 3.4 write an instruction once per preprocessor condition on the architecture: one mirror serves all.
fn share_mirrors(pairs: &mut [Pair], texts: &[Vec<String>]) {
    for at in 1..pairs.len() {
        let (before, rest) = pairs.split_at_mut(at);
        let pair = &mut rest[0];
        if pair.mirror.is_none() && pair.form.variant.arch_guard.is_some() {
            let of_overload = before.iter().zip(texts).rev();
            let mut of_overload = of_overload
                .take_while(|(it, _)| std::ptr::eq(it.form.overload, pair.form.overload));
            let same = |(it, text): &(&Pair, &Vec<String>)| {
                it.form.slots == pair.form.slots && **text == texts[at]
            };
            pair.mirror = of_overload.find(same).and_then(|(it, _)| it.mirror);
        }
    }
}

/// Variants of the spec that mirror nothing yet, by function and tags.
struct Candidates<'a> {
    by_call: HashMap<(String, Vec<String>), Vec<Candidate<'a>>>,
}

struct Candidate<'a> {
    mirror: Mirror<'a>,
    text: Vec<String>,
    order: usize,
}

impl<'a> Candidates<'a> {
    fn new(spec: &'a Spec) -> Result<Self> {
        let mut by_call: HashMap<_, Vec<_>> = HashMap::new();
        // What C++ writes as a default argument is a function of its own in Rust, but the same form.
        let own = spec
            .variants()
            .filter(|(.., variant)| variant.implied.is_empty() && !variant.is_beyond());
        for (order, (family, overload, variant)) in own.enumerate() {
            let tags = variant.args.iter().filter_map(|arg| match &arg.ty {
                Type::Tag(tag) => Some(tag.name.clone()),
                _ => None,
            });
            let candidate = Candidate {
                mirror: Mirror {
                    family,
                    overload,
                    variant,
                },
                text: spec_text(variant)?,
                order,
            };
            by_call
                .entry((variant.function.clone(), tags.collect()))
                .or_default()
                .push(candidate);
        }
        Ok(Self { by_call })
    }

    /// Takes the candidate that `fits` and whose argument types agree best.
    fn take(&mut self, form: &Form, fits: impl Fn(&Candidate) -> bool) -> Option<Mirror<'a>> {
        let tags = form.tags().into_iter().map(str::to_owned).collect();
        let candidates = self
            .by_call
            .get_mut(&(form.overload.function.clone(), tags))?;
        let fitting = candidates.iter().enumerate().filter(|(_, candidate)| {
            candidate.mirror.variant.args.len() == form.slots.len() && fits(candidate)
        });
        let (best, _) = fitting.max_by_key(|(at, candidate)| {
            (
                agreement(form, candidate.mirror.variant),
                std::cmp::Reverse(*at),
            )
        })?;
        Some(candidates.remove(best).mirror)
    }

    fn left(self) -> Vec<Mirror<'a>> {
        let mut left = Vec::from_iter(self.by_call.into_values().flatten());
        left.sort_by_key(|candidate| candidate.order);
        left.into_iter().map(|candidate| candidate.mirror).collect()
    }
}

/// How many parameters have the same type on both sides.
fn agreement(form: &Form, variant: &spec::Variant) -> usize {
    let same = |(slot, arg): &(&Slot, &spec::Arg)| match (slot, &arg.ty) {
        (Slot::Value(scalar), Type::Scalar(of)) => rust_name(scalar.name) == of.rust(),
        (Slot::Array(scalar, length), Type::Array { of, len }) => {
            length == len && rust_name(scalar.name) == of.rust()
        }
        (Slot::Output(scalar, length), Type::Out { of, len }) => {
            length == len && rust_name(scalar.name) == of.rust()
        }
        (Slot::Pointer(ty), Type::Pointer { to, .. }) => {
            rust_name(ty.trim_start_matches("const ").trim_end_matches('*')) == to.rust()
        }
        _ => false,
    };
    form.slots.iter().zip(&variant.args).filter(same).count()
}

/// `uint32_t` → `u32`.
fn rust_name(cxx: &str) -> String {
    match cxx {
        "float" => "f32".to_owned(),
        "double" => "f64".to_owned(),
        "void" => "()".to_owned(),
        "__half" => "f16".to_owned(),
        "__half2" => "f16x2".to_owned(),
        "__nv_bfloat16" => "bf16".to_owned(),
        "__nv_bfloat162" => "bf16x2".to_owned(),
        "bits128" => "[u64; 2]".to_owned(),
        "bits256" => "[u64; 4]".to_owned(),
        other => other
            .replace("uint", "u")
            .replace("int", "i")
            .replace("_t", ""),
    }
}

/// The instructions of inline assembly whose operands are `%0`, `%1`, …
///
/// # Errors
///
/// The text is not understood.
pub fn upstream_text(form: &Form) -> Result<Vec<String>> {
    let asm = form
        .variant
        .asm
        .replace("%%", "\0")
        .replace('%', "%o")
        .replace('\0', "%");
    canonical(&asm).with_context(|| {
        let overload = form.overload;
        format!(
            "{}:{}: the inline assembly of `{}`",
            overload.file, form.variant.line, overload.function
        )
    })
}

/// The same of a variant of the spec, its named operands numbered as the C++ layer orders them.
///
/// # Errors
///
/// The text is not understood.
pub fn spec_text(variant: &spec::Variant) -> Result<Vec<String>> {
    let mut asm = variant.asm_lines().join("\n");
    for (number, operand) in variant.asm_operands().iter().enumerate() {
        asm = asm.replace(&format!("{{{}}}", operand.name), &format!("%o{number}"));
    }
    // Only now: in `{{{a}, {b}}}` the last operand has a brace of the text behind its own.
    let asm = asm.replace("{{", "{").replace("}}", "}");
    canonical(&asm).with_context(|| format!("{}: the inline assembly `{asm}`", variant.form.at))
}

/// Operand widths are left out: they are compared where the compilers have built the code.
fn canonical(asm: &str) -> Result<Vec<String>> {
    let text = format!(
        ".version 9.5\n.target sm_90a\n.entry k()\n{{\n.reg .b64 %o<512>;\n// begin inline asm\n{asm}\n// end inline asm\n}}\n"
    );
    let module = ptx::Module::parse(&text)?;
    Ok(module.kernels[0].normalised_asm())
}

fn opcodes(instructions: &[String]) -> Vec<&str> {
    instructions
        .iter()
        .map(|it| it.split(' ').next().unwrap_or(it))
        .collect()
}
