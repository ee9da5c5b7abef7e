//! Machine instructions as text in which register numbers do not depend on the register allocator.

use super::Instruction;
use std::collections::HashMap;

/// `instructions` as text; the registers of each file are numbered by first use.
pub(super) fn text(instructions: &[Instruction]) -> Vec<String> {
    let mut names = Names::default();
    instructions
        .iter()
        .map(|instruction| names.instruction(instruction))
        .collect()
}

/// New numbers of the registers of every file (`R`, `UR`, `P`, `UP`, `B`).
#[derive(Default)]
struct Names<'a> {
    files: HashMap<&'a str, HashMap<u32, usize>>,
}

impl<'a> Names<'a> {
    fn instruction(&mut self, instruction: &'a Instruction) -> String {
        let mut line = String::new();
        if let Some(guard) = &instruction.guard {
            self.words(guard, 1, &mut line);
            line.push(' ');
        }
        line.push_str(&instruction.operation());
        for (position, operand) in instruction.operands.iter().enumerate() {
            line.push_str(if position == 0 { " " } else { ", " });
            self.words(operand, width(instruction, position), &mut line);
        }
        line
    }

    /// Copies `operand`, renaming each register; one outside brackets stands for `width` registers in a row.
    fn words(&mut self, operand: &'a str, width: u32, line: &mut String) {
        let mut rest = operand;
        let mut depth = 0;
        while let Some(first) = rest.chars().next() {
            if is_word(first) {
                let length = rest
                    .find(|character| !is_word(character))
                    .unwrap_or(rest.len());
                let (word, after) = rest.split_at(length);
                let pair = after.starts_with(".64");
                let width = if pair {
                    2
                } else if depth == 0 {
                    width
                } else {
                    1
                };
                match register(word) {
                    Some((file, number)) => line.push_str(&self.name(file, number, width)),
                    None => line.push_str(word),
                }
                rest = after;
            } else {
                depth += i32::from(first == '[') - i32::from(first == ']');
                line.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }

    fn name(&mut self, file: &'a str, number: u32, width: u32) -> String {
        let names = self.files.entry(file).or_default();
        for member in number..number + width {
            let next = names.len();
            names.entry(member).or_insert(next);
        }
        format!("{file}{}", names[&number])
    }
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// `UR12` → (`UR`, 12); `RZ`, `PT`, `SR_TID` and numbers are no registers.
fn register(word: &str) -> Option<(&str, u32)> {
    let file = word.trim_end_matches(|character: char| character.is_ascii_digit());
    let number = word[file.len()..].parse().ok()?;
    matches!(file, "R" | "UR" | "P" | "UP" | "B").then_some((file, number))
}

/// How many registers the operand at `position` takes, where the opcode says so; otherwise 1.
fn width(instruction: &Instruction, position: usize) -> u32 {
    let modifiers = || instruction.opcode.split('.').skip(1);
    match instruction.base() {
        "IMAD" | "UIMAD" if modifiers().any(|modifier| modifier == "WIDE") => match position {
            0 | 3 => 2,
            _ => 1,
        },
        "LD" | "LDG" | "LDS" | "LDL" | "LDC" | "ULDC" | "LDCU" | "ST" | "STG" | "STS" | "STL" => {
            let width = modifiers().find_map(|modifier| match modifier {
                "64" => Some(2),
                "96" => Some(3),
                "128" => Some(4),
                _ => None,
            });
            width.unwrap_or(1)
        }
        _ => 1,
    }
}
