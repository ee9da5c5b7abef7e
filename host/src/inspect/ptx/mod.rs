//! PTX text as kernels and instructions.
//!
//! Both compilers' dialects are read: nvcc's (NVVM) and LLVM's. Registers are resolved through nested scopes, so the
//! `P_OUT` of one inline-assembly block is not the `P_OUT` of the next.

mod dataflow;
pub(crate) mod lexer;
mod mirrored;
mod normalise;
mod parser;

use crate::inspect::Multiset;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

pub use mirrored::{MirroredComparison, compare_mirrored, is_mirrored};

/// One PTX module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// The PTX ISA version, as in `.version 9.0`.
    pub version: String,
    /// The target with its options, as in `.target sm_90a`.
    pub target: String,
    /// The kernels (`.entry`) in their order.
    pub kernels: Vec<Kernel>,
    /// The device functions (`.func`) that have a body.
    pub functions: Vec<Kernel>,
    /// Names declared without a body or an initial value (`.extern`): what is still missing at link time.
    pub externs: Vec<String>,
    /// Those of the `externs` that do not return (`.noreturn`).
    pub noreturns: Vec<String>,
}

impl Module {
    /// Parses PTX text.
    ///
    /// # Errors
    ///
    /// Text that is not PTX; the message has the line and what was expected there.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        parser::parse(text)
    }

    /// The kernel called `name`.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }
}

/// One kernel or device function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its symbol.
    pub name: String,
    /// The lines of the text that hold it (from 1), the closing `}` included.
    pub lines: RangeInclusive<usize>,
    /// The parameters, in order.
    pub params: Vec<Param>,
    /// Performance and cluster directives in front of the body, as `.maxntid` → `256, 1, 1`.
    pub directives: BTreeMap<String, String>,
    /// Every instruction in the order of the text.
    pub instructions: Vec<Instruction>,
    /// Variables declared in the body (`.shared`, `.local`, …), as written.
    pub variables: Vec<Variable>,
    /// Where the indexed branches lead: index of a `brx.idx` → indices of its targets.
    pub branch_targets: BTreeMap<usize, Vec<usize>>,
    registers: Vec<Width>,
    /// Names declared outside any body, shared by all kernels of the module.
    globals: Arc<BTreeSet<String>>,
}

impl Kernel {
    /// All opcodes with their qualifiers, counted.
    pub fn opcodes(&self) -> Multiset {
        self.instructions
            .iter()
            .map(|instruction| instruction.opcode.as_str())
            .collect()
    }

    /// The opcodes of the instructions that `cuda::ptx` mirrors ([`is_mirrored`]), counted.
    ///
    /// Compilers unroll loops, so compare the [items](Multiset::items) of two kernels and not their counts.
    pub fn mirrored(&self) -> Multiset {
        let mirrored = self
            .instructions
            .iter()
            .filter(|instruction| is_mirrored(instruction));
        mirrored
            .map(|instruction| instruction.opcode.as_str())
            .collect()
    }

    /// Whether `word` names a variable or function of the kernel or the module.
    fn is_symbol(&self, word: &str) -> bool {
        self.globals.contains(word) || self.variables.iter().any(|variable| variable.name == word)
    }

    /// Every instruction as text, with registers, symbols and labels named by first use.
    ///
    /// Two kernels with the same normalised text and the same variables are the same program.
    pub fn normalised(&self) -> Vec<String> {
        normalise::text(self, self.instructions.iter())
    }

    /// Every instruction of inline assembly and every store of a kernel without branches, with each operand written as
    /// where its value comes from: a parameter, a symbol, a number, or the operation that made it.
    ///
    /// Two kernels with the same text do the same with the same arguments; the order of loads and of address
    /// arithmetic, and the names of registers, are the compiler's.
    pub fn dataflow(&self) -> Vec<String> {
        dataflow::text(self)
    }

    /// The instructions of the inline assembly alone, named by their own first use.
    ///
    /// This is what the author of an intrinsic wrote, whatever the compiler put around it. Which argument an operand
    /// is does not show: see [`Kernel::dataflow`].
    pub fn normalised_asm(&self) -> Vec<String> {
        normalise::text(
            self,
            self.instructions.iter().filter(|it| it.asm_block.is_some()),
        )
    }
}

/// One parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// State space, alignment, type and array length, as in `.param .align 64 .b8 [128]`.
    pub ty: String,
}

/// One variable of a kernel's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// State space, alignment, type and array length, as in `.shared .align 8 .b64`.
    pub ty: String,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The predicate in front, as in `@!%p1`.
    pub guard: Option<Guard>,
    /// The opcode with all its qualifiers.
    pub opcode: String,
    /// The operands, split at the commas outside brackets.
    pub operands: Vec<Operand>,
    /// The inline-assembly block it was written in, counted from 0; `None` for the compiler's own instructions.
    pub asm_block: Option<usize>,
    /// The line of the text (from 1).
    pub line: usize,
}

impl Instruction {
    /// The opcode with all its qualifiers.
    pub fn opcode(&self) -> &str {
        &self.opcode
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(guard) = &self.guard {
            write!(
                f,
                "{}{} ",
                if guard.negated { "@!" } else { "@" },
                guard.predicate
            )?;
        }
        f.write_str(&self.opcode)?;
        for (position, operand) in self.operands.iter().enumerate() {
            write!(f, "{}{operand}", if position == 0 { " " } else { ", " })?;
        }
        Ok(())
    }
}

/// A guard predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Whether the instruction runs where the predicate is false.
    pub negated: bool,
    /// The predicate register.
    pub predicate: Operand,
}

/// One operand, as its pieces: registers, and the text between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operand {
    pieces: Vec<Piece>,
}

impl Operand {
    /// The numbers of its registers.
    fn registers(&self) -> impl Iterator<Item = usize> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Register { id, .. } => Some(*id),
            _ => None,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// A register: its number in the kernel, its name in the text, and a component (`.x`) or nothing.
    Register {
        id: usize,
        name: String,
        component: String,
    },
    /// A label and the index of the instruction that follows it.
    Label { name: String, target: usize },
    /// Any other word: a number, symbol or special register.
    Word(String),
    /// Punctuation.
    Punct(String),
}

impl Operand {
    /// The index of the instruction that this label stands in front of.
    pub fn target(&self) -> Option<usize> {
        match self.pieces[..] {
            [Piece::Label { target, .. }] => Some(target),
            _ => None,
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Register {
                name, component, ..
            } => write!(f, "{name}{component}"),
            Piece::Label { name, .. } => f.write_str(name),
            Piece::Word(text) | Piece::Punct(text) => f.write_str(text),
        })
    }
}

/// The width class of a register; its type within the class is the compiler's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Width {
    Predicate,
    Bits(u16),
}

#[cfg(test)]
mod tests;
