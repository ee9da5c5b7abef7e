//! The text of `nvdisasm -c` → functions.

use super::{Function, Instruction};
use anyhow::{Context, Result, bail};
use std::collections::HashMap;

pub(super) fn parse(text: &str) -> Result<Vec<Function>> {
    let mut sections: Vec<Section> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix(".section") {
            sections.extend(code_section(section).map(Section::new));
        } else if let Some(section) = sections.last_mut() {
            section
                .line(line)
                .with_context(|| format!("line {} of the disassembly", number + 1))?;
        }
    }
    Ok(sections.into_iter().map(Section::finish).collect())
}

/// The function whose code `.section .text.NAME,"ax",@progbits` holds.
fn code_section(section: &str) -> Option<&str> {
    let name = section.trim().split(',').next()?;
    name.trim_matches('"').strip_prefix(".text.")
}

struct Section {
    function: Function,
    /// Label → index of the instruction that follows it.
    labels: HashMap<String, usize>,
}

impl Section {
    fn new(name: &str) -> Self {
        let function = Function {
            name: name.to_owned(),
            instructions: Vec::new(),
        };
        Self {
            function,
            labels: HashMap::new(),
        }
    }

    fn line(&mut self, line: &str) -> Result<()> {
        if let Some(rest) = line.strip_prefix("/*") {
            let Some((_, code)) = rest.split_once("*/") else {
                bail!("expected `*/` after the address, found `{line}`");
            };
            self.function.instructions.extend(instruction(code)?);
        } else if let Some(label) = line.strip_suffix(':') {
            self.labels
                .insert(label.to_owned(), self.function.instructions.len());
        } else if !(line.is_empty() || line.starts_with('.') || line.starts_with("//")) {
            bail!("expected a label, a directive or an instruction, found `{line}`");
        }
        Ok(())
    }

    fn finish(mut self) -> Function {
        for operand in self
            .function
            .instructions
            .iter_mut()
            .flat_map(|it| &mut it.operands)
        {
            resolve(&self.labels, operand);
        }
        drop_padding(&mut self.function.instructions);
        self.function
    }
}

/// `` `(.L_x_3) `` → `#12`.
fn resolve(labels: &HashMap<String, usize>, operand: &mut String) {
    let Some(start) = operand.find("`(") else {
        return;
    };
    let Some(length) = operand[start..].find(')') else {
        return;
    };
    if let Some(target) = labels.get(&operand[start + 2..start + length]) {
        operand.replace_range(start..=start + length, &format!("#{target}"));
    }
}

/// Code ends with a branch to itself, which stops prefetching, and `NOP`s up to the alignment.
fn drop_padding(instructions: &mut Vec<Instruction>) {
    let is = |it: &Instruction, opcode| it.guard.is_none() && it.opcode == opcode;
    while instructions.last().is_some_and(|it| is(it, "NOP")) {
        instructions.pop();
    }
    let itself = format!("#{}", instructions.len().saturating_sub(1));
    if instructions
        .last()
        .is_some_and(|it| is(it, "BRA") && it.operands == [itself])
    {
        instructions.pop();
    }
}

/// One instruction from the text after its address; `None` for a line that holds the rest of an encoding.
fn instruction(code: &str) -> Result<Option<Instruction>> {
    let Some((code, _)) = code.split_once(';') else {
        if code.trim().is_empty() {
            return Ok(None);
        }
        bail!(
            "expected `;` after the instruction, found `{}`",
            code.trim()
        );
    };
    let mut code = code.trim();
    // `(*"BRANCH_TARGETS …"*)` is a comment of the disassembler, `&req={0} ?trans1` scheduling.
    for annotation in ["(*", " &", " ?"] {
        code = code.split(annotation).next().unwrap_or(code).trim_end();
    }
    let (guard, code) = match code.split_once(char::is_whitespace) {
        Some((guard, rest)) if guard.starts_with('@') => {
            (Some(guard.to_owned()), rest.trim_start())
        }
        _ => (None, code),
    };
    let (opcode, operands) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
    if !opcode.starts_with(|character: char| character.is_ascii_uppercase()) {
        bail!("expected an opcode, found `{code}`");
    }
    Ok(Some(Instruction {
        guard,
        opcode: opcode.to_owned(),
        operands: split_operands(operands),
    }))
}

/// Operands are separated by the commas outside brackets; `.reuse` is scheduling.
fn split_operands(operands: &str) -> Vec<String> {
    let mut depth = 0;
    let split = operands.split(|character| {
        match character {
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth -= 1,
            _ => {}
        }
        depth == 0 && character == ','
    });
    let operands = split.map(|operand| operand.trim().replace(".reuse", ""));
    operands.filter(|operand| !operand.is_empty()).collect()
}
