//! What a straight-line kernel does, whatever registers and order a compiler chose.

use std::collections::HashMap;
use std::fmt::Write;

use super::normalise::class;
use super::{Instruction, Kernel, Operand, Piece};

/// Every instruction of inline assembly and every store, with each operand written as where its value comes from.
///
/// A register that inline assembly defines is named by first use; one that the compiler defines is its origin: a
/// parameter, a symbol, a number, or the operation that made it. So two operands that are swapped are a difference,
/// which [`Kernel::normalised_asm`] cannot see.
pub(super) fn text(kernel: &Kernel) -> Vec<String> {
    let mut flow = Flow {
        kernel,
        origins: HashMap::new(),
        names: HashMap::new(),
        used: HashMap::new(),
        symbols: Vec::new(),
    };
    let mut lines = Vec::new();
    for instruction in &kernel.instructions {
        if instruction.asm_block.is_some() || instruction.opcode.starts_with("st.") {
            lines.push(flow.line(instruction));
        } else {
            flow.define(instruction);
        }
    }
    lines
}

/// A value: what it starts from, and a number that is added to it.
#[derive(Clone, Debug)]
struct Origin {
    base: String,
    offset: i128,
}

impl Origin {
    fn new(base: String) -> Self {
        match base.parse() {
            Ok(offset) => Self {
                base: String::new(),
                offset,
            },
            Err(_) => Self { base, offset: 0 },
        }
    }

    fn text(&self) -> String {
        match (self.base.as_str(), self.offset) {
            ("", offset) => offset.to_string(),
            (base, 0) => base.to_owned(),
            (base, offset) => format!("{base}{offset:+}"),
        }
    }
}

/// `st.global.u32` → `st.global.b32`, where the type is no more than a width: one compiler writes bits, another numbers.
fn untyped(opcode: &str) -> String {
    let moves_bits = ["st.", "ld.", "selp.", "setp.eq.", "setp.ne."];
    match opcode.rsplit_once('.') {
        Some((rest, ty)) if moves_bits.iter().any(|family| opcode.starts_with(family)) => {
            format!("{rest}.{}", ty.replacen(['u', 's', 'f'], "b", 1))
        }
        _ => opcode.to_owned(),
    }
}

struct Flow<'k> {
    kernel: &'k Kernel,
    /// Registers that the compiler has defined so far.
    origins: HashMap<usize, Origin>,
    /// Registers that inline assembly defines.
    names: HashMap<usize, String>,
    used: HashMap<&'static str, usize>,
    symbols: Vec<&'k str>,
}

impl<'k> Flow<'k> {
    fn line(&mut self, instruction: &'k Instruction) -> String {
        let mut line = String::new();
        if let Some(guard) = &instruction.guard {
            let negated = if guard.negated { "!" } else { "" };
            let _ = write!(line, "@{negated}{} ", self.operand(&guard.predicate));
        }
        match instruction.asm_block {
            Some(_) => line.push_str(&instruction.opcode),
            None => line.push_str(&untyped(&instruction.opcode)),
        }
        for (position, operand) in instruction.operands.iter().enumerate() {
            let operand = self.operand(operand);
            let _ = write!(line, "{}{operand}", if position == 0 { " " } else { ", " });
        }
        line
    }

    /// Notes where the registers of the first operand get their values.
    fn define(&mut self, instruction: &'k Instruction) {
        let [result, sources @ ..] = &instruction.operands[..] else {
            return;
        };
        let results = Vec::from_iter(result.registers());
        let origin = self.value(&instruction.opcode, sources);
        for (position, &id) in results.iter().enumerate() {
            let mut origin = origin.clone();
            if results.len() > 1 {
                origin.base = format!("{}.{position}", origin.text());
                origin.offset = 0;
            }
            self.origins.insert(id, origin);
        }
    }

    fn value(&mut self, opcode: &str, sources: &'k [Operand]) -> Origin {
        let is = |family: &str| opcode.starts_with(family);
        match sources {
            [source] if is("mov.") || is("cvta.") || is("cvt.u32.u64") || is("ld.param.") => {
                self.origin(source)
            }
            [left, right] if is("add.") => {
                let (left, right) = (self.origin(left), self.origin(right));
                match (left.base.as_str(), right.base.as_str()) {
                    (_, "") => Origin {
                        offset: left.offset + right.offset,
                        ..left
                    },
                    ("", _) => Origin {
                        offset: left.offset + right.offset,
                        ..right
                    },
                    _ => Origin::new(format!("add({}, {})", left.text(), right.text())),
                }
            }
            _ => {
                let sources = sources.iter().map(|source| self.operand(source));
                let opcode = untyped(opcode);
                Origin::new(format!("{opcode}({})", Vec::from_iter(sources).join(", ")))
            }
        }
    }

    /// A source that is one value: `%r1`, `symbol`, `symbol+8`, `[param]`, `-1`.
    fn origin(&mut self, operand: &'k Operand) -> Origin {
        if let [Piece::Register { id, component, .. }] = &operand.pieces[..]
            && component.is_empty()
            && let Some(origin) = self.origins.get(id)
        {
            return origin.clone();
        }
        let text = self.operand(operand);
        let text = text.trim_start_matches('[').trim_end_matches(']');
        match text.rsplit_once('+') {
            Some((base, offset)) => match offset.parse() {
                Ok(offset) => Origin {
                    base: base.to_owned(),
                    offset,
                },
                Err(_) => Origin::new(text.to_owned()),
            },
            None => Origin::new(text.to_owned()),
        }
    }

    fn operand(&mut self, operand: &'k Operand) -> String {
        let mut text = String::new();
        let mut pieces = operand.pieces.iter().peekable();
        while let Some(piece) = pieces.next() {
            match piece {
                Piece::Punct(punct) => text.push_str(punct),
                Piece::Label { target, .. } => {
                    let _ = write!(text, "$L{target}");
                }
                Piece::Word(word) => text.push_str(&self.word(word)),
                Piece::Register { id, component, .. } => {
                    let mut origin = self.register(*id);
                    // `[%rd1+8]`: the offset belongs to the value.
                    while let [Piece::Punct(plus), Piece::Word(offset)] =
                        Vec::from_iter(pieces.clone().take(2))[..]
                        && plus == "+"
                        && let Ok(offset) = offset.parse::<i128>()
                    {
                        origin.offset += offset;
                        pieces.nth(1);
                    }
                    let _ = write!(text, "{}{component}", origin.text());
                }
            }
        }
        text
    }

    fn word(&mut self, word: &'k str) -> String {
        let params = &self.kernel.params;
        if let Some(position) = params.iter().position(|param| param.name == word) {
            return format!("$param{position}");
        }
        if !self.kernel.is_symbol(word) {
            return word.to_owned();
        }
        let known = self.symbols.iter().position(|symbol| *symbol == word);
        let position = known.unwrap_or_else(|| {
            self.symbols.push(word);
            self.symbols.len() - 1
        });
        format!("$symbol{position}")
    }

    /// The origin of a register with its width class, so that another width is another operand.
    fn register(&mut self, id: usize) -> Origin {
        let class = class(self.kernel.registers[id]);
        match self.origins.get(&id) {
            Some(Origin { base, offset }) if base.is_empty() => {
                return Origin {
                    base: format!("{class}({offset})"),
                    offset: 0,
                };
            }
            Some(Origin { base, offset }) => {
                return Origin {
                    base: format!("{class}({base})"),
                    offset: *offset,
                };
            }
            None => {}
        }
        let used = &mut self.used;
        let name = self.names.entry(id).or_insert_with(|| {
            let number = used.entry(class).or_default();
            *number += 1;
            format!("{class}{}", *number - 1)
        });
        Origin {
            base: name.clone(),
            offset: 0,
        }
    }
}
