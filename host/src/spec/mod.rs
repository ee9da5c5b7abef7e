//! The instruction forms of the crate, read from `spec/`.
//!
//! `spec/README.md` describes the notation. [`load`] reads every family, expands the sets in each
//! form and checks the result, so that what comes out can be used without further checks:
//! families hold [`Function`]s (one C++ name), these hold [`Overload`]s (one Rust function each),
//! and these hold [`Variant`]s (one PTX instruction each).

mod expand;
mod name;
mod parse;
mod ptx;
mod tag;
mod target;
mod types;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};

pub use parse::{Check, Form, FormArg, Instruction, Location, Member, Rule, Set, StatedEffects};
pub use ptx::{AsmOperand, OperandValue};
pub use tag::{Tag, TagFamily, TagTable};
pub use target::{Isa, Isas, Targets, all_architectures, included_architectures};
pub use types::{Scalar, Space, Twin, Type};

/// Everything in `spec/`.
#[derive(Debug)]
pub struct Spec {
    /// The instruction families, in the order of their names.
    pub families: Vec<Family>,
    /// The tag types and constants (`sem_release`, …).
    pub tags: TagTable,
}

/// One file of `spec/` and one module of the device crate.
#[derive(Debug)]
pub struct Family {
    /// Module name, e.g. `mbarrier`.
    pub name: String,
    /// The module's documentation, in Markdown.
    pub docs: Vec<String>,
    /// The functions, in the order in which the file first names them.
    pub functions: Vec<Function>,
}

/// All that one C++ name of `cuda::ptx` stands for.
#[derive(Debug)]
pub struct Function {
    /// The C++ name, which is also that of the shortest Rust function.
    pub name: String,
    /// One Rust function each; the first has the fewest arguments.
    pub overloads: Vec<Overload>,
}

/// One Rust function: the variants of a C++ name that take the same arguments.
#[derive(Debug)]
pub struct Overload {
    /// The C++ name.
    pub function: String,
    /// The Rust name: the C++ name, and the names of the arguments that the shortest form lacks.
    pub rust_name: String,
    /// At least one.
    pub variants: Vec<Variant>,
}

/// One PTX instruction, with everything that a set or a choice left open decided.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The C++ name.
    pub function: String,
    /// The form in the spec that this is a case of.
    pub form: Arc<Form>,
    /// The arguments, in order.
    pub args: Vec<Arg>,
    /// Operands that are not arguments here: what C++ takes by default for an argument left out.
    pub implied: Vec<(Arg, u64)>,
    /// What the function returns.
    pub result: Option<Arg>,
    /// The instruction, with operands as `{name}`, e.g.
    /// `mbarrier.arrive.shared.b64 {state}, [{addr}];`, without what moves predicates and 128-bit
    /// values in and out of registers.
    pub ptx: String,
    /// The instruction as documentation shows it: as in the spec, without the operands that this
    /// variant lacks, and with the tags that its form leaves no choice of.
    pub shown: String,
    /// How C++ says this, if `cuda::ptx` lacks it.
    pub twin: Option<Twin>,
    /// What the inline assembly does besides computing its outputs.
    pub effects: Effects,
    /// The PTX ISA versions that have this instruction.
    pub isas: Isas,
    /// The architectures that have it.
    pub targets: Targets,
}

/// An argument or a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arg {
    /// Name, in snake case.
    pub name: String,
    /// Type.
    pub ty: Type,
}

/// What an inline assembly statement may do, as the C++ layer declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effects {
    /// `"memory"` clobber: orders memory accesses of the thread.
    Memory,
    /// `asm volatile` without a clobber: must stay where it is, touches no memory.
    Volatile,
    /// Neither: the outputs depend on the inputs alone.
    Pure,
}

impl Variant {
    /// The opcode with its qualifiers, e.g. `mbarrier.arrive.shared.b64`.
    pub fn opcode(&self) -> &str {
        self.ptx
            .split([' ', ';'])
            .next()
            .unwrap_or(self.ptx.as_str())
    }

    /// Whether `cuda::ptx` lacks this.
    pub fn is_beyond(&self) -> bool {
        self.twin.is_some()
    }

    /// Whether the instruction can be assembled for `architecture` (such as `sm_90a`) at `isa`.
    pub fn is_available(&self, architecture: &str, isa: Isa) -> bool {
        self.isas.contain(isa) && self.targets.allow(architecture)
    }

    /// The statement inside `asm!`: one line per instruction, operands as `{name}`.
    pub fn asm_lines(&self) -> Vec<String> {
        ptx::lines(self)
    }

    /// The operands of [`Variant::asm_lines`], outputs first.
    pub fn asm_operands(&self) -> Vec<AsmOperand> {
        ptx::operands(self)
    }
}

impl Overload {
    /// The module with the function, if it is not generated.
    pub fn by_hand(&self) -> Option<&str> {
        self.variants[0].form.instruction.by_hand.as_deref()
    }

    /// The forms of the spec that the variants come from, each once.
    pub fn forms(&self) -> Vec<&Arc<Form>> {
        let mut forms: Vec<&Arc<Form>> = Vec::new();
        for variant in &self.variants {
            if !forms.iter().any(|form| Arc::ptr_eq(form, &variant.form)) {
                forms.push(&variant.form);
            }
        }
        forms
    }
}

impl Spec {
    /// Every variant with its overload, family by family.
    pub fn variants(&self) -> impl Iterator<Item = (&Family, &Overload, &Variant)> {
        self.families.iter().flat_map(|family| {
            family.functions.iter().flat_map(move |function| {
                function.overloads.iter().flat_map(move |overload| {
                    overload
                        .variants
                        .iter()
                        .map(move |variant| (family, overload, variant))
                })
            })
        })
    }
}

impl fmt::Display for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Effects::Memory => "memory",
            Effects::Volatile => "volatile",
            Effects::Pure => "pure",
        })
    }
}

/// The spec of this workspace.
pub fn load() -> Result<Spec> {
    load_from(&directory())
}

/// `spec/` of this workspace.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join("spec")
}

/// Reads `tags.spec` and every other `*.spec` file of `directory`.
pub fn load_from(directory: &Path) -> Result<Spec> {
    let mut tags = None;
    let mut sources = Vec::new();
    let entries =
        std::fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "spec") {
            continue;
        }
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name == "tags" {
            tags = Some(text);
        } else {
            sources.push((name, text));
        }
    }
    let tags = tags.with_context(|| format!("{} has no tags.spec", directory.display()))?;
    sources.sort();
    build(&tags, &sources)
}

/// The spec made of the text of `tags.spec` and of `(family, text)` pairs.
pub fn build(tags: &str, families: &[(String, String)]) -> Result<Spec> {
    let tags = tag::parse("tags", tags)?;
    let mut spec = Spec {
        families: Vec::new(),
        tags,
    };
    for (name, text) in families {
        let source = parse::family(name, text, &spec.tags)?;
        let variants = expand::variants(&source, &spec.tags)?;
        spec.families.push(Family {
            name: name.clone(),
            docs: source.docs,
            functions: name::group(variants)?,
        });
    }
    name::check_unique(&spec)?;
    Ok(spec)
}

#[cfg(test)]
mod tests;
