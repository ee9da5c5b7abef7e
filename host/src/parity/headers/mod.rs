//! Every overload and instruction variant of `cuda::ptx`, read from the headers of an installed CCCL.
//!
//! This is the second path of the parity check: it knows nothing of the spec or the generator, so a form that the spec
//! forgot shows up as missing. A construct it does not understand is an error with file and line, never a skipped form.

mod lexer;
mod parser;

use crate::build::Arch;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// What the headers of one CCCL release declare.
#[derive(Clone, Debug)]
pub struct Headers {
    /// The release, as in `3.5.0`.
    pub version: String,
    /// Every overload that is an instruction, in the order of the files' names and lines.
    pub overloads: Vec<Overload>,
    /// The functions that emit a `.pragma` (folder `pragmas/`).
    pub pragmas: Vec<Overload>,
}

impl Headers {
    /// Reads the folder that holds `cuda/ptx`, as `nvidia/cu13/include/cccl` of the PyPI wheel.
    ///
    /// # Errors
    ///
    /// The folder is not CCCL's, or a header holds something that is not understood.
    pub fn read(include: &Path) -> Result<Self> {
        let root = include.join("cuda/__ptx");
        let instructions = root.join("instructions");
        let generated = instructions.join("generated");
        let mut overloads = Vec::new();
        for folder in [&generated, &instructions] {
            for file in headers_in(folder)? {
                overloads.extend(parse_file(&file, &root)?);
            }
        }
        // Releases before 3.2 have no pragmas.
        let pragmas = root.join("pragmas");
        let files = if pragmas.is_dir() {
            headers_in(&pragmas)?
        } else {
            Vec::new()
        };
        let pragmas = files
            .iter()
            .map(|file| parse_file(file, &root))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            version: version(include)?,
            overloads,
            pragmas: pragmas.concat(),
        })
    }

    /// What one header declares, as if it were all of a release.
    #[cfg(test)]
    pub fn of_text(text: &str) -> Self {
        let overloads = parser::parse(text, "test.h").expect("the header is understood");
        Self {
            version: "0.0.0".to_owned(),
            overloads,
            pragmas: Vec::new(),
        }
    }

    /// The names of all functions.
    pub fn names(&self) -> BTreeSet<&str> {
        self.overloads
            .iter()
            .map(|overload| overload.function.as_str())
            .collect()
    }

    /// The number of inline-assembly statements of all overloads.
    pub fn variant_count(&self) -> usize {
        self.overloads
            .iter()
            .map(|overload| overload.variants.len())
            .sum()
    }
}

/// One overload of a function in `cuda::ptx`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overload {
    /// The header, relative to `cuda/__ptx`.
    pub file: String,
    /// The line of its name.
    pub line: usize,
    /// The function's name.
    pub function: String,
    /// The template parameters, as in `dot_scope Scope`.
    pub template: Vec<String>,
    /// The parameters.
    pub parameters: Vec<Parameter>,
    /// The return type.
    pub returns: String,
    /// The PTX ISA versions that have it.
    pub isa: IsaRange,
    /// The targets that its comment names; empty where it names none.
    pub targets: Vec<Target>,
    /// The instructions, one per inline-assembly statement.
    pub variants: Vec<Variant>,
}

impl Overload {
    /// Whether its comment allows `arch`; without a list of targets it allows all.
    pub fn allows(&self, arch: Arch) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|target| target.allows(arch))
    }

    /// The parameters' types without their names: what tells overloads of one function apart.
    pub fn parameter_types(&self) -> Vec<&str> {
        self.parameters
            .iter()
            .map(|parameter| parameter.ty.as_str())
            .collect()
    }
}

/// Writes `mbarrier_arrive(sem_release_t, scope_t<Scope> scope, space_shared_t, uint64_t* addr)`.
impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = Vec::from_iter(self.parameters.iter().map(Parameter::to_string));
        write!(f, "{}({})", self.function, parameters.join(", "))
    }
}

/// One parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The type without namespaces, as in `const uint32_t&` or `uint32_t(&)[4]`.
    pub ty: String,
    /// The name; empty for a tag that needs none.
    pub name: String,
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.ty.split_once("(&)"), self.name.as_str()) {
            (_, "") => f.write_str(&self.ty),
            (Some((element, length)), name) => write!(f, "{element} (&{name}){length}"),
            (None, name) => write!(f, "{} {name}", self.ty),
        }
    }
}

/// One inline-assembly statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The line of its `asm`.
    pub line: usize,
    /// The conditions of the `if constexpr`s around it, outermost first, as in `scope == scope_cta`.
    pub conditions: Vec<String>,
    /// The preprocessor condition on the architecture around it, where a release has one.
    pub arch_guard: Option<String>,
    /// The text, escapes resolved.
    pub asm: String,
    /// The output operands.
    pub outputs: Vec<AsmOperand>,
    /// The input operands.
    pub inputs: Vec<AsmOperand>,
    /// The clobbers, which is `memory` or nothing.
    pub clobbers: Vec<String>,
    /// Whether it says `volatile`.
    pub volatile: bool,
}

impl Variant {
    /// The statements of the text, without the braces around them, comments and runs of blanks.
    pub fn statements(&self) -> Vec<String> {
        let lines = self
            .asm
            .lines()
            .map(|line| line.split("//").next().unwrap_or_default());
        let text = lexer::collapse(&Vec::from_iter(lines).join(" "));
        let inner = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'))
            .unwrap_or(&text);
        let statements = inner
            .split(';')
            .map(str::trim)
            .filter(|statement| !statement.is_empty());
        statements.map(str::to_owned).collect()
    }
}

/// An operand of inline assembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsmOperand {
    /// The constraint, as in `=r` or `l`.
    pub constraint: String,
    /// The C++ expression.
    pub expression: String,
}

/// PTX ISA versions, times 100: `__cccl_ptx_isa >= 930 && __cccl_ptx_isa < 950`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IsaRange {
    /// The first version.
    pub since: u32,
    /// The first version that no longer has it.
    pub before: Option<u32>,
}

/// A target that an overload's comment names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Ten times the compute capability, as 90.
    pub number: u32,
    /// Nothing (this and all later targets), `a` (this target alone) or `f` (its family).
    pub suffix: Option<char>,
}

impl Target {
    /// Whether code for `arch` may use what this target has.
    pub fn allows(self, arch: Arch) -> bool {
        match self.suffix {
            None => arch.number >= self.number,
            Some('f') => arch.number == self.number && arch.suffix.is_some(),
            suffix => arch.number == self.number && arch.suffix == suffix,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.number)?;
        self.suffix.map_or(Ok(()), |suffix| write!(f, "{suffix}"))
    }
}

/// What was not understood, and where.
#[derive(Debug)]
struct Fault {
    line: usize,
    message: String,
}

impl Fault {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
        }
    }
}

fn headers_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = folder.read_dir().with_context(|| {
        format!(
            "expected CCCL's headers in {}; is this the include folder of nvidia-cuda-cccl?",
            folder.display()
        )
    })?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "h") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn parse_file(path: &Path, root: &Path) -> Result<Vec<Overload>> {
    let source =
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let name = path
        .strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string();
    match parser::parse(&source, &name) {
        Ok(overloads) => Ok(overloads),
        Err(fault) => bail!("{}:{}: {}", path.display(), fault.line, fault.message),
    }
}

/// `#define CCCL_VERSION 3005000` → `3.5.0`.
fn version(include: &Path) -> Result<String> {
    let path = include.join("cuda/std/__cccl/version.h");
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let number = text
        .lines()
        .find_map(|line| line.strip_prefix("#define CCCL_VERSION "));
    match number.and_then(|number| number.trim().parse::<u32>().ok()) {
        Some(number) => Ok(format!(
            "{}.{}.{}",
            number / 1_000_000,
            number / 1000 % 1000,
            number % 1000
        )),
        None => bail!(
            "{}: expected `#define CCCL_VERSION` and a number",
            path.display()
        ),
    }
}

#[cfg(test)]
mod tests;
