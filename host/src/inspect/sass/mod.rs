//! SASS: the machine instructions of a cubin, and how far apart two functions are.

mod compare;
mod parser;
mod rename;

use crate::inspect::Multiset;
use anyhow::{Context, Result, bail};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::process::Command;

pub use compare::{Class, Comparison, OpcodeComparison, compare, compare_opcodes};

/// The machine code of one kernel: its code section, with the device functions it calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// The kernel's symbol.
    pub name: String,
    /// The instructions in order, without the padding after the last one.
    pub instructions: Vec<Instruction>,
}

impl Function {
    /// All [operations](Instruction::operation), counted.
    pub fn opcodes(&self) -> Multiset {
        self.instructions
            .iter()
            .map(Instruction::operation)
            .collect()
    }

    /// Every instruction as text, with registers named by first use.
    ///
    /// Operands known to be register pairs or quadruples (`R2.64`, the data of `LDG.E.128`, the result of `IMAD.WIDE`)
    /// keep their registers together; others are named one by one.
    pub fn renamed(&self) -> Vec<String> {
        rename::text(&self.instructions)
    }
}

/// One machine instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The predicate in front, as in `@!P0`.
    pub guard: Option<String>,
    /// The opcode with its modifiers, as in `LDG.E.64`.
    pub opcode: String,
    /// The operands. A branch target is `#` and the index of the instruction it leads to.
    pub operands: Vec<String>,
}

impl Instruction {
    /// The opcode with those modifiers that mean something: whether two integers are equal does not
    /// depend on their signs, so `ISETP.NE.U32.AND` (what `setp.ne.b32` becomes) is
    /// `ISETP.NE.AND` (what `setp.ne.s32` becomes).
    pub fn operation(&self) -> Cow<'_, str> {
        let equality = [
            "ISETP.EQ.U32",
            "ISETP.NE.U32",
            "UISETP.EQ.U32",
            "UISETP.NE.U32",
        ];
        match equality
            .into_iter()
            .find(|compare| self.opcode.starts_with(compare))
        {
            Some(compare) => Cow::Owned(self.opcode.replacen(
                compare,
                compare.trim_end_matches(".U32"),
                1,
            )),
            None => Cow::Borrowed(&self.opcode),
        }
    }

    /// The opcode without its modifiers.
    pub fn base(&self) -> &str {
        self.opcode.split('.').next().unwrap_or(&self.opcode)
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(guard) = &self.guard {
            write!(f, "{guard} ")?;
        }
        f.write_str(&self.opcode)?;
        for (position, operand) in self.operands.iter().enumerate() {
            write!(f, "{}{operand}", if position == 0 { " " } else { ", " })?;
        }
        Ok(())
    }
}

/// Disassembles all functions of `cubin` in one run of `nvdisasm`.
///
/// # Errors
///
/// `nvdisasm` does not start or refuses the file, or writes something that is not understood.
pub fn disassemble(nvdisasm: &Path, cubin: &Path) -> Result<Vec<Function>> {
    // -raw -ndf: no control-flow analysis, which is slow and may fail.
    let output = Command::new(nvdisasm)
        .args(["-c", "-raw", "-ndf"])
        .arg(cubin)
        .output()
        .with_context(|| format!("expected to run the disassembler {}", nvdisasm.display()))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!(
            "nvdisasm refused {} ({}): {}",
            cubin.display(),
            output.status,
            message.trim()
        );
    }
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text).with_context(|| format!("reading the disassembly of {}", cubin.display()))
}

/// Parses what `nvdisasm -c` writes.
///
/// # Errors
///
/// A line that is no label, directive or instruction; the message has its number.
pub fn parse(text: &str) -> Result<Vec<Function>> {
    parser::parse(text)
}

/// The accesses through generic addresses: `LD`, `ST` and `ATOM`, which the hardware has to look up at run time.
///
/// `LDS`, `STS`, `LDG`, `STG` and the like name their address space. (`RED` is the global reduction before sm_90.)
pub fn generic_accesses(function: &Function) -> Vec<&Instruction> {
    let generic = |instruction: &&Instruction| matches!(instruction.base(), "LD" | "ST" | "ATOM");
    function.instructions.iter().filter(generic).collect()
}

#[cfg(test)]
mod tests;
