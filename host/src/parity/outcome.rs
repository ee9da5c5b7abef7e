//! What became of each form on each architecture.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::thread;

use anyhow::Result;

use super::assemble::{Assembled, assemble};
use super::explained::Explained;
use super::twins::{Side, Subject, Twin};
use crate::build::Arch;
use crate::inspect::sass::{self, Class, Function};
use crate::toolchain::CudaTools;

/// The result of one form.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Whether both sides' PTX has the same instructions with the same operands; `None` if it was not built.
    pub ptx: Option<Ptx>,
    /// One per architecture that either side allows.
    pub verdicts: BTreeMap<Arch, Verdict>,
}

/// How the PTX of both sides compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ptx {
    /// The same instructions with the same operands.
    Equal,
    /// The first difference, in words.
    Differs(String),
}

impl Ptx {
    /// Compares what two kernels do.
    pub fn compare(rust: &Twin, cxx: &Twin) -> Self {
        if rust.dataflow == cxx.dataflow {
            return Self::Equal;
        }
        let same = rust
            .dataflow
            .iter()
            .zip(&cxx.dataflow)
            .take_while(|(rust, cxx)| rust == cxx)
            .count();
        let line = |twin: &Twin| {
            twin.dataflow
                .get(same)
                .cloned()
                .unwrap_or_else(|| "nothing".to_owned())
        };
        Self::Differs(format!(
            "Rust has `{}`, C++ has `{}`",
            line(rust),
            line(cxx)
        ))
    }
}

impl Ptx {
    /// Compares with a function of CUDA, which the compiler may not write as inline assembly: both kernels must have
    /// the instruction.
    pub fn compare_with_function(rust: &Twin, cxx: &Twin, opcode: &str) -> Self {
        let has = |twin: &Twin| {
            twin.text
                .split([' ', '\t', '\n', ';', '{'])
                .any(|word| word == opcode)
        };
        match (has(rust), has(cxx)) {
            (true, true) => Self::Equal,
            (false, _) => Self::Differs(format!("Rust lacks `{opcode}`")),
            (_, false) => Self::Differs(format!("C++ lacks `{opcode}`")),
        }
    }
}

/// The result of one form on one architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both sides were assembled and compare so.
    Equal(Class),
    /// Both were assembled and differ, for a known reason.
    Explained(String),
    /// The headers name the architecture, the spec does not, and ptxas rejects it: its words.
    Rejected(String),
    /// Anything else.
    Failed(String),
}

impl Outcome {
    /// The worst class of all architectures; `None` if one differs or failed, or none was compared.
    pub fn class(&self) -> Option<Class> {
        let mut worst = None;
        for verdict in self.verdicts.values() {
            match verdict {
                Verdict::Equal(class) => worst = worst.max(Some(*class)),
                Verdict::Rejected(_) => {}
                Verdict::Explained(_) | Verdict::Failed(_) => return None,
            }
        }
        worst
    }

    /// Whether ptxas accepts both sides on every architecture that the form allows, and there is one.
    pub fn is_assembled(&self) -> bool {
        let assembled =
            |verdict: &Verdict| matches!(verdict, Verdict::Equal(_) | Verdict::Explained(_));
        let failed = |verdict: &Verdict| matches!(verdict, Verdict::Failed(_));
        self.verdicts.values().any(assembled) && !self.verdicts.values().any(failed)
    }

    /// The architectures with a known difference, by its reason.
    pub fn explained(&self) -> BTreeMap<&str, Vec<Arch>> {
        self.by_words(|verdict| match verdict {
            Verdict::Explained(reason) => Some(reason),
            _ => None,
        })
    }

    /// The architectures that ptxas rejects and the spec leaves out, by ptxas's words.
    pub fn rejected(&self) -> BTreeMap<&str, Vec<Arch>> {
        self.by_words(|verdict| match verdict {
            Verdict::Rejected(message) => Some(message),
            _ => None,
        })
    }

    /// The architectures on which something failed, by its message.
    pub fn failed(&self) -> BTreeMap<&str, Vec<Arch>> {
        self.by_words(|verdict| match verdict {
            Verdict::Failed(message) => Some(message),
            _ => None,
        })
    }

    fn by_words(&self, words: impl Fn(&Verdict) -> Option<&String>) -> BTreeMap<&str, Vec<Arch>> {
        let mut archs: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (arch, verdict) in &self.verdicts {
            if let Some(words) = words(verdict) {
                archs.entry(words.as_str()).or_default().push(*arch);
            }
        }
        archs
    }
}

/// Assembles the forms that `arch` allows on both sides and compares the machine code.
///
/// # Errors
///
/// A tool does not start, or its output is not understood.
pub fn compare_on(
    arch: Arch,
    subjects: &[Subject],
    [rust, cxx]: &[Side; 2],
    tools: &CudaTools,
    folder: &Path,
    explained: &Explained,
) -> Result<HashMap<usize, Verdict>> {
    let name = arch.to_string();
    let in_spec = |subject: &Subject| subject.mirror.variant.targets.allow(&name);
    let in_headers = |subject: &Subject| subject.in_cxx(arch);
    let kernels = |side: &'_ Side, allows: &dyn Fn(&Subject) -> bool| -> Vec<(String, String)> {
        let allowed = subjects.iter().filter(|subject| allows(subject));
        allowed
            .filter_map(|it| {
                side.get(&it.index)
                    .map(|twin| (it.kernel(), twin.text.clone()))
            })
            .collect()
    };
    let (rust, cxx) = (kernels(rust, &in_spec), kernels(cxx, &in_headers));
    let one = |kernels: &[(String, String)], side: &str| {
        let kernels = Vec::from_iter(
            kernels
                .iter()
                .map(|(name, text)| (name.clone(), text.as_str())),
        );
        assemble(tools, &kernels, arch, folder, side)
    };
    let (rust, cxx) = both(|| one(&rust, "rust"), || one(&cxx, "cxx"))?;
    let code = match rust.is_same(&cxx)? {
        true => Code::Same,
        false => {
            let (rust, cxx) = both(|| rust.functions(tools), || cxx.functions(tools))?;
            Code::Disassembled([rust, cxx])
        }
    };

    let mut verdicts = HashMap::new();
    for subject in subjects {
        let verdict = match (in_spec(subject), in_headers(subject)) {
            (false, false) => continue,
            (true, true) => compare(subject, [&rust, &cxx], &code, explained, &name),
            (false, true) => match cxx.rejected.get(&subject.kernel()) {
                // Without the architecture, so that the same words stand for several.
                Some(message) => {
                    let words = message.split(" on .target").next().unwrap_or(message);
                    Verdict::Rejected(words.to_owned())
                }
                None => Verdict::Failed(
                    "the spec leaves out this architecture, which ptxas accepts".to_owned(),
                ),
            },
            (true, false) => {
                Verdict::Failed("the spec allows this architecture, the headers do not".to_owned())
            }
        };
        verdicts.insert(subject.index, verdict);
    }
    Ok(verdicts)
}

/// Does the work of both sides at once.
fn both<T: Send>(
    rust: impl FnOnce() -> Result<T>,
    cxx: impl FnOnce() -> Result<T> + Send,
) -> Result<(T, T)> {
    thread::scope(|scope| {
        let cxx = scope.spawn(cxx);
        let rust = rust();
        let cxx = cxx
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((rust?, cxx?))
    })
}

/// The machine code of both sides.
enum Code {
    /// Byte for byte the same.
    Same,
    /// By kernel name: Rust, C++.
    Disassembled([HashMap<String, Function>; 2]),
}

fn compare(
    subject: &Subject,
    sides: [&Assembled; 2],
    code: &Code,
    explained: &Explained,
    arch: &str,
) -> Verdict {
    let kernel = subject.kernel();
    for (side, assembled) in ["Rust", "C++"].into_iter().zip(sides) {
        if let Some(message) = assembled.rejected.get(&kernel) {
            return Verdict::Failed(format!("ptxas rejects {side}: {message}"));
        }
    }
    let Code::Disassembled(sides) = code else {
        return Verdict::Equal(Class::Identical);
    };
    let [Some(rust), Some(cxx)] = sides.each_ref().map(|side| side.get(&kernel)) else {
        return Verdict::Failed("the disassembly lacks the kernel".to_owned());
    };
    let comparison = sass::compare(rust, cxx);
    if comparison.class.is_equal() {
        return Verdict::Equal(comparison.class);
    }
    match explained.reason(subject.mirror.variant.opcode(), arch) {
        Some(reason) => Verdict::Explained(reason.to_owned()),
        None => Verdict::Failed(format!(
            "the machine code differs: {}",
            comparison.difference
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(verdicts: &[Verdict]) -> Outcome {
        let archs = ["sm_80", "sm_90", "sm_90a"].map(|arch| arch.parse().unwrap());
        Outcome {
            ptx: Some(Ptx::Equal),
            verdicts: archs.into_iter().zip(verdicts.iter().cloned()).collect(),
        }
    }

    fn explained() -> Verdict {
        Verdict::Explained("so".to_owned())
    }

    fn rejected() -> Verdict {
        Verdict::Rejected("no".to_owned())
    }

    fn failed() -> Verdict {
        Verdict::Failed("bad".to_owned())
    }

    #[test]
    fn the_first_difference_of_the_ptx_is_told() {
        let twin = |lines: &[&str]| Twin {
            text: String::new(),
            dataflow: lines.iter().map(|line| (*line).to_owned()).collect(),
        };
        assert_eq!(
            Ptx::compare(&twin(&["a", "b"]), &twin(&["a", "b"])),
            Ptx::Equal
        );
        let differs = |words: &str| Ptx::Differs(words.to_owned());
        assert_eq!(
            Ptx::compare(&twin(&["a", "b"]), &twin(&["a", "c"])),
            differs("Rust has `b`, C++ has `c`")
        );
        assert_eq!(
            Ptx::compare(&twin(&["a"]), &twin(&["a", "c"])),
            differs("Rust has `nothing`, C++ has `c`")
        );
    }

    #[test]
    fn the_worst_architecture_decides_the_class() {
        let mixed = outcome(&[
            Verdict::Equal(Class::Identical),
            Verdict::Equal(Class::Fewer),
            rejected(),
        ]);
        assert_eq!(mixed.class(), Some(Class::Fewer));
        assert_eq!(
            outcome(&[Verdict::Equal(Class::Identical), explained()]).class(),
            None
        );
        assert_eq!(outcome(&[rejected()]).class(), None);
    }

    #[test]
    fn a_form_is_assembled_if_nothing_failed_and_something_was_assembled() {
        assert!(
            outcome(&[Verdict::Equal(Class::Identical), explained(), rejected()]).is_assembled()
        );
        assert!(!outcome(&[Verdict::Equal(Class::Identical), failed()]).is_assembled());
        assert!(!outcome(&[rejected()]).is_assembled());
        assert!(!outcome(&[]).is_assembled());
    }

    #[test]
    fn architectures_are_listed_by_message() {
        let outcome = outcome(&[failed(), explained(), failed()]);
        assert_eq!(outcome.failed()["bad"].len(), 2);
        assert_eq!(outcome.explained()["so"].len(), 1);
    }
}
