//! From a variant to the statement inside `asm!`.
//!
//! Inline assembly has no operands that are predicates, bytes or 128-bit values. They travel as
//! 32-bit registers, and as two 64-bit ones, and are converted inside, as in the C++ layer.

use super::types::{Scalar, Space, Type};
use super::{Arg, Variant};

/// An operand of `asm!`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsmOperand {
    /// Its name in the template.
    pub name: String,
    /// `reg16`, `reg32` or `reg64`; `None` for a constant.
    pub class: Option<&'static str>,
    /// Where it comes from or goes to.
    pub value: OperandValue,
}

/// What an operand stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperandValue {
    /// Read from an argument.
    In {
        /// The argument.
        arg: String,
        /// Its element, for several registers.
        index: Option<usize>,
        /// Its type.
        ty: Type,
    },
    /// Written to the result or to an output argument.
    Out {
        /// The result or argument.
        arg: String,
        /// Its element, for several registers.
        index: Option<usize>,
        /// What one register holds.
        of: Scalar,
    },
    /// Read from an argument and written to it.
    InOut {
        /// The argument.
        arg: String,
        /// Its element.
        index: usize,
        /// What one register holds.
        of: Scalar,
    },
    /// A value that the form implies.
    Implied {
        /// The value.
        value: u64,
        /// Its type.
        of: Scalar,
    },
    /// The const parameter of an immediate.
    Constant {
        /// The argument.
        arg: String,
    },
}

/// How one argument is split into registers.
struct Slots {
    of: Scalar,
    /// `None`: one register, not a vector.
    count: Option<usize>,
}

fn slots(ty: &Type) -> Slots {
    let scalar = |of: Scalar| match of.bits() {
        128 => Slots { of, count: Some(2) },
        256 => Slots { of, count: Some(4) },
        _ => Slots { of, count: None },
    };
    match ty {
        Type::Scalar(of) => scalar(*of),
        Type::Array { of, len } | Type::InOut { of, len } => Slots {
            of: *of,
            count: Some(*len),
        },
        Type::Out { of, len: Some(len) } => Slots {
            of: *of,
            count: Some(*len),
        },
        Type::Out { of, len: None } => scalar(*of),
        Type::Pointer {
            space: Space::Shared,
            ..
        } => scalar(Scalar::U32),
        _ => Slots {
            of: Scalar::U64,
            count: None,
        },
    }
}

fn class(bits: u16) -> &'static str {
    match bits {
        16 => "reg16",
        64.. => "reg64",
        _ => "reg32",
    }
}

fn is_output(variant: &Variant, arg: &Arg) -> bool {
    matches!(arg.ty, Type::Out { .. }) || variant.result.as_ref().is_some_and(|r| r == arg)
}

/// Outputs in the order of results, then inputs, as in the C++ layer.
pub(super) fn operands(variant: &Variant) -> Vec<AsmOperand> {
    let mut operands = Vec::new();
    let outputs = variant
        .result
        .iter()
        .chain(variant.args.iter().filter(|arg| is_output(variant, arg)));
    for arg in outputs {
        for (name, index) in registers(arg) {
            let of = slots(&arg.ty).of;
            operands.push(AsmOperand {
                name,
                class: Some(class(of.bits())),
                value: OperandValue::Out {
                    arg: arg.name.clone(),
                    index,
                    of,
                },
            });
        }
    }
    for arg in &variant.args {
        let Type::InOut { of, len } = arg.ty else {
            continue;
        };
        operands.extend((0..len).map(|index| AsmOperand {
            name: format!("{}{index}", arg.name),
            class: Some(class(of.bits())),
            value: OperandValue::InOut {
                arg: arg.name.clone(),
                index,
                of,
            },
        }));
    }
    for arg in variant.args.iter().filter(|arg| !is_output(variant, arg)) {
        let class = match &arg.ty {
            Type::Tag(_) | Type::Out { .. } | Type::InOut { .. } => continue,
            Type::Immediate { .. } => {
                operands.push(AsmOperand {
                    name: arg.name.clone(),
                    class: None,
                    value: OperandValue::Constant {
                        arg: arg.name.clone(),
                    },
                });
                continue;
            }
            Type::Pointer {
                space: Space::Shared,
                ..
            } => "reg32",
            Type::Pointer { .. } => "reg64",
            Type::Scalar(of) | Type::Array { of, .. } => class(of.bits()),
        };
        for (name, index) in registers(arg) {
            operands.push(AsmOperand {
                name,
                class: Some(class),
                value: OperandValue::In {
                    arg: arg.name.clone(),
                    index,
                    ty: arg.ty.clone(),
                },
            });
        }
    }
    for (arg, value) in &variant.implied {
        if let Type::Scalar(of) = arg.ty {
            operands.push(AsmOperand {
                name: arg.name.clone(),
                class: Some(class(of.bits())),
                value: OperandValue::Implied { value: *value, of },
            });
        }
    }
    operands
}

/// Names of the registers of an argument.
fn registers(arg: &Arg) -> Vec<(String, Option<usize>)> {
    match slots(&arg.ty).count {
        None => vec![(arg.name.clone(), None)],
        Some(count) => (0..count)
            .map(|index| (format!("{}{index}", arg.name), Some(index)))
            .collect(),
    }
}

/// The lines of the statement, braces doubled where they are literal.
pub(super) fn lines(variant: &Variant) -> Vec<String> {
    let mut declare = Vec::new();
    let mut before = Vec::new();
    let mut after = Vec::new();
    let mut instruction = variant.ptx.clone();
    let values: Vec<&Arg> = variant.result.iter().chain(&variant.args).collect();
    let predicates = values
        .iter()
        .filter(|arg| is_output(variant, arg) && slots(&arg.ty).of == Scalar::Bool)
        .count();
    for arg in values {
        let name = &arg.name;
        let Slots { of, count } = slots(&arg.ty);
        let output = is_output(variant, arg);
        let operand = if of == Scalar::Bool && !matches!(arg.ty, Type::Tag(_)) {
            let predicate = match (output, predicates) {
                (true, 1) => "P_OUT".to_string(),
                (true, _) => format!("P_OUT_{name}"),
                (false, _) => format!("PRED_{name}"),
            };
            declare.push(format!(".reg .pred {predicate};"));
            if output {
                let ty = &variant.form.predicate;
                after.push(format!("selp.{ty} {{{name}}}, 1, 0, {predicate};"));
            } else {
                before.push(format!("setp.ne.b32 {predicate}, {{{name}}}, 0;"));
            }
            predicate
        } else if output && of == Scalar::U8 {
            // Narrower than any register of inline assembly.
            let byte = format!("B_OUT_{name}");
            declare.push(format!(".reg .b8 {byte};"));
            after.push(format!("cvt.u32.u8 {{{name}}}, {byte};"));
            byte
        } else if of == Scalar::U8 && matches!(arg.ty, Type::Scalar(_)) {
            let byte = format!("B_{name}");
            declare.push(format!(".reg .b8 {byte};"));
            before.push(format!("cvt.u8.u32 {byte}, {{{name}}};"));
            byte
        } else if of.bits() == 128 {
            let wide = format!("B128_{name}");
            let halves = vector(name, 2);
            declare.push(format!(".reg .b128 {wide};"));
            if output {
                after.push(format!("mov.b128 {halves}, {wide};"));
            } else {
                before.push(format!("mov.b128 {wide}, {halves};"));
            }
            wide
        } else if let Some(count) = count {
            vector(name, count)
        } else {
            continue;
        };
        instruction = instruction.replace(&format!("{{{name}}}"), &operand);
    }
    if declare.is_empty() {
        return vec![instruction];
    }
    let mut lines = vec!["{{".to_string()];
    lines.append(&mut declare);
    lines.append(&mut before);
    lines.push(instruction);
    lines.append(&mut after);
    lines.push("}}".to_string());
    lines
}

/// `{{{name0}, {name1}}}`.
fn vector(name: &str, count: usize) -> String {
    let names: Vec<String> = (0..count)
        .map(|index| format!("{{{name}{index}}}"))
        .collect();
    format!("{{{{{}}}}}", names.join(", "))
}
