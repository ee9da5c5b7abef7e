//! A form of `cuda::ptx` by its declaration in the C++ headers, or one beyond it by the spec's.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::parity::form::{Form as Declaration, Slot};
use crate::parity::matching::Mirror;
use crate::spec::Type;

/// What decides how a form is run, and what must come out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// The name of its kernels.
    pub kernel: String,
    /// The family of the spec, of a form that `cuda::ptx` lacks.
    pub family: Option<String>,
    /// The C++ function; of a form that `cuda::ptx` lacks, the one in Rust.
    pub function: String,
    /// The opcode with its qualifiers.
    pub instruction: String,
    /// The tags among the arguments, in order.
    pub tags: Vec<String>,
    /// The other arguments' C++ types, in order: `uint32_t`, `const void*`, `uint32_t[4]`; outputs are left out, but
    /// not what is read and written.
    pub operands: Vec<String>,
    /// How many immediate operands there are among the arguments.
    pub immediates: usize,
    /// How many words the outputs have, with those that are also read.
    pub outputs: usize,
    /// The C++ type of what it returns.
    pub result: Option<String>,
}

impl Form {
    /// From the declaration at this position of the headers.
    pub fn new(index: usize, declaration: &Declaration) -> Self {
        let mut operands = Vec::new();
        let (mut outputs, mut immediates) = (0, 0);
        for slot in &declaration.slots {
            match slot {
                Slot::Tag(_) => {}
                Slot::Immediate => immediates += 1,
                Slot::Pointer(ty) => operands.push(ty.clone()),
                Slot::Value(scalar) => operands.push(scalar.name.to_owned()),
                Slot::Array(scalar, length) => operands.push(format!("{}[{length}]", scalar.name)),
                Slot::Output(scalar, length) => outputs += scalar.parts * length.unwrap_or(1),
            }
        }
        let function = declaration.overload.function.clone();
        Self {
            kernel: format!("d{index:04}_{function}"),
            family: None,
            instruction: opcode(&declaration.variant.asm),
            tags: declaration.tags().into_iter().map(str::to_owned).collect(),
            operands,
            immediates,
            outputs,
            result: declaration.result.map(|scalar| scalar.name.to_owned()),
            function,
        }
    }

    /// One that `cuda::ptx` lacks: the variant at this position among those of its function.
    pub fn beyond(index: usize, mirror: Mirror) -> Self {
        let variant = mirror.variant;
        let function = mirror.overload.rust_name.clone();
        let (mut tags, mut operands) = (Vec::new(), Vec::new());
        let (mut outputs, mut immediates) = (0, 0);
        for arg in &variant.args {
            match &arg.ty {
                Type::Tag(tag) => tags.push(tag.name.clone()),
                Type::Immediate { .. } => immediates += 1,
                Type::Pointer { mutable, to, .. } => {
                    let constant = if *mutable { "" } else { "const " };
                    operands.push(format!("{constant}{}*", to.cxx()));
                }
                Type::Scalar(of) => operands.push(of.cxx().to_owned()),
                Type::Array { of, len } => operands.push(format!("{}[{len}]", of.cxx())),
                Type::InOut { of, len } => {
                    operands.push(format!("{}[{len}]", of.cxx()));
                    outputs += len;
                }
                Type::Out { of, len } => outputs += of.words() * len.unwrap_or(1),
            }
        }
        Self {
            kernel: format!("b{index:04}_{function}"),
            family: Some(mirror.family.name.clone()),
            function,
            instruction: variant.opcode().to_owned(),
            tags,
            operands,
            immediates,
            outputs,
            result: variant.result.as_ref().map(|result| match &result.ty {
                Type::Array { of, len } => format!("{}[{len}]", of.cxx()),
                Type::Scalar(of) => of.cxx().to_owned(),
                _ => String::new(),
            }),
        }
    }

    /// Whether `cuda::ptx` lacks it.
    pub fn is_beyond(&self) -> bool {
        self.family.is_some()
    }

    /// Whether this tag is among the arguments.
    pub fn has(&self, tag: &str) -> bool {
        self.tags.iter().any(|it| it == tag)
    }

    /// Whether this is among the dot-separated parts of the opcode.
    pub fn says(&self, qualifier: &str) -> bool {
        self.instruction.split('.').any(|it| it == qualifier)
    }

    /// The last part of the opcode: mostly the type.
    pub fn last(&self) -> &str {
        self.instruction.rsplit('.').next().unwrap_or_default()
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.function, self.instruction)
    }
}

/// The opcode of the one instruction in inline assembly that is not there to move predicates.
fn opcode(asm: &str) -> String {
    let statements = asm.split([';', '\n', '{', '}']).map(str::trim);
    let mut opcodes = statements
        .filter_map(|statement| statement.split_whitespace().next())
        .filter(|word| !word.starts_with(['.', '/', '%', '@']) && !word.is_empty());
    let mut moves = None;
    let found = opcodes.find(|word| {
        let moves_only = ["selp.", "mov.", "setp."]
            .iter()
            .any(|prefix| word.starts_with(prefix));
        if moves_only && moves.is_none() {
            moves = Some((*word).to_owned());
        }
        !moves_only
    });
    found.map(str::to_owned).or(moves).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::opcode;

    #[test]
    fn the_opcode_is_not_that_of_the_moves_around_it() {
        assert_eq!(opcode("shl.b32 %0, %1, %2;"), "shl.b32");
        assert_eq!(
            opcode(
                "{\n\t.reg .pred P_OUT;\n\telect.sync _|P_OUT, %1;\n\tselp.b32 %0, 1, 0, P_OUT;\n}"
            ),
            "elect.sync"
        );
        assert_eq!(opcode("mov.u32 %0, %%tid.x;"), "mov.u32");
        assert_eq!(opcode("exit;"), "exit");
    }
}
