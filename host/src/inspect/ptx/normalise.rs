//! Instruction text that does not depend on the names a compiler chose.

use super::{Instruction, Kernel, Operand, Piece, Width};
use std::collections::HashMap;
use std::fmt::Write;

/// `instructions` of `kernel` as text; registers and symbols are numbered by first use, labels by what they point at.
pub(super) fn text<'k>(
    kernel: &'k Kernel,
    instructions: impl Iterator<Item = &'k Instruction>,
) -> Vec<String> {
    let mut names = Names {
        kernel,
        registers: HashMap::new(),
        used: HashMap::new(),
        symbols: HashMap::new(),
    };
    instructions
        .map(|instruction| names.instruction(instruction))
        .collect()
}

struct Names<'k> {
    kernel: &'k Kernel,
    registers: HashMap<usize, String>,
    used: HashMap<&'static str, usize>,
    symbols: HashMap<&'k str, usize>,
}

impl<'k> Names<'k> {
    fn instruction(&mut self, instruction: &'k Instruction) -> String {
        let mut line = String::new();
        if let Some(guard) = &instruction.guard {
            line.push_str(if guard.negated { "@!" } else { "@" });
            self.operand(&guard.predicate, &mut line);
            line.push(' ');
        }
        line.push_str(&instruction.opcode);
        for (position, operand) in instruction.operands.iter().enumerate() {
            line.push_str(if position == 0 { " " } else { ", " });
            self.operand(operand, &mut line);
        }
        line
    }

    fn operand(&mut self, operand: &'k Operand, line: &mut String) {
        for piece in &operand.pieces {
            match piece {
                Piece::Punct(text) => line.push_str(text),
                Piece::Word(word) => self.word(word, line),
                Piece::Label { target, .. } => line.push_str(&format!("$L{target}")),
                Piece::Register { id, component, .. } => {
                    line.push_str(self.register(*id));
                    line.push_str(component);
                }
            }
        }
    }

    fn word(&mut self, word: &'k str, line: &mut String) {
        let kernel = self.kernel;
        let written =
            if let Some(position) = kernel.params.iter().position(|param| param.name == word) {
                write!(line, "$param{position}")
            } else if kernel.is_symbol(word) {
                let next = self.symbols.len();
                write!(line, "$symbol{}", self.symbols.entry(word).or_insert(next))
            } else {
                line.write_str(word)
            };
        written.expect("writing to a String does not fail");
    }

    fn register(&mut self, id: usize) -> &str {
        self.registers.entry(id).or_insert_with(|| {
            let class = class(self.kernel.registers[id]);
            let number = self.used.entry(class).or_default();
            *number += 1;
            format!("{class}{}", *number - 1)
        })
    }
}

/// How registers of a width are called.
pub(super) fn class(width: Width) -> &'static str {
    match width {
        Width::Predicate => "%p",
        Width::Bits(..=8) => "%b",
        Width::Bits(9..=16) => "%rs",
        Width::Bits(17..=32) => "%r",
        Width::Bits(33..=64) => "%rd",
        Width::Bits(65..) => "%rq",
    }
}
