//! The inline assembly of one instruction.

use std::fmt::Write;

use super::docs;
use crate::spec::{Arg, Effects, OperandValue, Scalar, Space, Type, Variant};

/// The body of a function that is one instruction.
pub(super) struct Body {
    /// The inline assembly, and what moves its operands.
    pub statements: String,
    /// What the function returns; empty for nothing.
    pub value: String,
}

/// The body for a variant whose arguments have the types that it says.
pub(super) fn body(variant: &Variant) -> Body {
    body_with(variant, &literal(&instruction(variant)))
}

/// The line of the statement that is the instruction, as `asm!` takes it.
pub(super) fn instruction(variant: &Variant) -> String {
    variant
        .asm_lines()
        .into_iter()
        .find(|line| line.starts_with(variant.opcode()))
        .unwrap_or_default()
}

pub(super) fn literal(text: &str) -> String {
    format!("{text:?}")
}

/// How long an array is whose elements are operands as fields of a struct: rustc checks those in less time.
const FIELDS: usize = 8;

/// The body with `instruction` in the place of the instruction's line.
pub(super) fn body_with(variant: &Variant, instruction: &str) -> Body {
    let mut out = String::new();
    for arg in &variant.args {
        if let Type::Immediate {
            low,
            high,
            step,
            powers,
        } = arg.ty
        {
            out += &range_check(arg, (low, high), step, powers);
        }
    }
    out += &fields(variant);
    let mut operands = Vec::new();
    for operand in variant.asm_operands() {
        let value = match &operand.value {
            OperandValue::Constant { arg } => format!("const {}", arg.to_uppercase()),
            OperandValue::Implied { value, of } => {
                let class = operand.class.unwrap_or_default();
                format!("in({class}) {value:#X}_{}", of.rust())
            }
            OperandValue::InOut { arg, index, .. } => {
                let class = operand.class.unwrap_or_default();
                format!("inout({class}) {arg}[{index}]")
            }
            OperandValue::In { arg, index, ty } => {
                let class = operand.class.unwrap_or_default();
                format!("in({class}) {}", input(variant, arg, *index, ty))
            }
            OperandValue::Out { arg, index, of } => {
                let class = operand.class.unwrap_or_default();
                match (index, is_stored_directly(variant, arg)) {
                    (Some(index), true) => {
                        format!("out({class}) {}", element(variant, arg, *index))
                    }
                    _ => {
                        let local = local(variant, arg, *index);
                        let _ = writeln!(out, "let {local}: {};", register_type(*of));
                        format!("out({class}) {local}")
                    }
                }
            }
        };
        operands.push(format!("{} = {value}", operand.name));
    }
    let options = match variant.effects {
        Effects::Memory => "nostack",
        Effects::Volatile => "nomem, nostack",
        Effects::Pure => "pure, nomem, nostack",
    };
    operands.push(format!("options({options})"));
    out += &docs::effects(variant);
    out += "unsafe {\n    asm!(\n";
    for line in variant.asm_lines() {
        let line = match line.starts_with(variant.opcode()) {
            true => instruction.to_string(),
            false => literal(&line),
        };
        let _ = writeln!(out, "        {line},");
    }
    for line in filled(&operands) {
        let _ = writeln!(out, "        {line}");
    }
    out += "    );\n}\n";
    out += &stores(variant);
    Body {
        statements: out,
        value: value(variant),
    }
}

/// Long arrays as structs.
fn fields(variant: &Variant) -> String {
    let mut out = String::new();
    for arg in variant.args.iter().filter(|arg| has_fields(&arg.ty)) {
        let name = &arg.name;
        let _ = match arg.ty {
            Type::Array { .. } => writeln!(out, "let {name} = fields(&{name});"),
            _ if is_stored_directly(variant, name) => {
                writeln!(out, "let {name} = fields_mut({name});")
            }
            _ => Ok(()),
        };
    }
    out
}

fn has_fields(ty: &Type) -> bool {
    matches!(ty, Type::Array { len, .. } | Type::Out { len: Some(len), .. } if *len >= FIELDS)
}

/// An element of an array argument.
fn element(variant: &Variant, arg: &str, index: usize) -> String {
    let is_long = |other: &Arg| other.name == arg && has_fields(&other.ty);
    match variant.args.iter().any(is_long) {
        true => format!("{arg}.{index}"),
        false => format!("{arg}[{index}]"),
    }
}

/// Operands with commas, as many on a line as fit, because rustfmt does not format them.
fn filled(operands: &[String]) -> Vec<String> {
    const WIDTH: usize = 80;
    let mut lines: Vec<String> = Vec::new();
    for operand in operands {
        match lines.last_mut() {
            Some(line) if line.len() + operand.len() + 2 <= WIDTH => {
                line.push_str(&format!(" {operand},"));
            }
            _ => lines.push(format!("{operand},")),
        }
    }
    lines
}

/// Whether an output is an array whose elements are what the registers hold.
fn is_stored_directly(variant: &Variant, arg: &str) -> bool {
    variant.args.iter().any(|other| match &other.ty {
        Type::Out { of, len: Some(_) } => other.name == arg && register_type(*of) == of.rust(),
        _ => false,
    })
}

/// A compile-time check of an immediate operand.
fn range_check(arg: &Arg, (low, high): (i64, i64), step: i64, powers: bool) -> String {
    let name = arg.name.to_uppercase();
    let (condition, allowed) = match (low == high, step) {
        (true, _) => (format!("{name} == {low}"), format!("must be {low}")),
        _ if powers => (
            format!("{name} >= {low} && {name} <= {high} && ({name} & ({name} - 1)) == 0"),
            format!("must be a power of two from {low} to {high}"),
        ),
        (_, 1) if high == i64::from(i32::MAX) => (
            format!("{name} >= {low}"),
            format!("must be at least {low}"),
        ),
        (_, 1) => (
            format!("{name} >= {low} && {name} <= {high}"),
            format!("must be from {low} to {high}"),
        ),
        _ => (
            format!("{name} >= {low} && {name} <= {high} && ({name} - {low}) % {step} == 0"),
            format!("must be from {low} to {high} in steps of {step}"),
        ),
    };
    format!(
        "const {{ assert!({condition}, \"`{}` {allowed}\") }};\n",
        arg.name
    )
}

/// The value of an input operand.
fn input(variant: &Variant, arg: &str, index: Option<usize>, ty: &Type) -> String {
    let element = match index {
        Some(index) => element(variant, arg, index),
        None => arg.to_string(),
    };
    match ty {
        Type::Pointer {
            space: Space::Shared,
            ..
        } => format!("as_ptr_smem({arg})"),
        Type::Pointer {
            space: Space::Global,
            ..
        } => format!("as_ptr_gmem({arg})"),
        Type::Scalar(Scalar::Bool | Scalar::U8 | Scalar::Bits(8)) => format!("u32::from({arg})"),
        Type::Scalar(of) | Type::Array { of, .. } if is_half(*of) => format!("{element}.to_bits()"),
        _ => element,
    }
}

/// What one register of an output holds.
fn register_type(of: Scalar) -> &'static str {
    match of {
        Scalar::Bool | Scalar::U8 | Scalar::Bits(8) => "u32",
        Scalar::F16 | Scalar::Bf16 => "u16",
        Scalar::F16x2 | Scalar::Bf16x2 => "u32",
        Scalar::Bits(128 | 256) => "u64",
        other => other.rust(),
    }
}

/// The variable that receives an output operand.
fn local(variant: &Variant, arg: &str, index: Option<usize>) -> String {
    let is_result = variant
        .result
        .as_ref()
        .is_some_and(|result| result.name == arg);
    match (index, is_result) {
        (Some(index), _) => format!("{arg}{index}"),
        (None, true) => arg.to_string(),
        (None, false) => format!("{arg}_register"),
    }
}

/// Stores what is returned through references.
fn stores(variant: &Variant) -> String {
    let mut out = String::new();
    for arg in &variant.args {
        if let Type::Out { of, len } = &arg.ty
            && !is_stored_directly(variant, &arg.name)
        {
            let value = value_of(variant, &arg.name, *of, *len);
            let _ = writeln!(out, "*{} = {value};", arg.name);
        }
    }
    out
}

/// The result.
fn value(variant: &Variant) -> String {
    match variant
        .result
        .as_ref()
        .map(|result| (&result.name, &result.ty))
    {
        Some((name, Type::Scalar(of))) => value_of(variant, name, *of, None),
        Some((name, Type::Array { of, len })) => value_of(variant, name, *of, Some(*len)),
        Some((name, Type::Pointer { .. })) => format!("from_ptr_dsmem({name})"),
        _ => String::new(),
    }
}

fn value_of(variant: &Variant, arg: &str, of: Scalar, len: Option<usize>) -> String {
    let count = match of.bits() {
        128 => Some(2),
        256 => Some(4),
        _ => len,
    };
    if let Some(count) = count {
        let element = |index| match local(variant, arg, Some(index)) {
            bits if is_half(of) => format!("{}::from_bits({bits})", of.rust()),
            value => value,
        };
        let names: Vec<String> = (0..count).map(element).collect();
        return format!("[{}]", names.join(", "));
    }
    let local = local(variant, arg, None);
    match of {
        Scalar::Bool => format!("{local} != 0"),
        Scalar::U8 | Scalar::Bits(8) => format!("{local} as u8"),
        of if is_half(of) => format!("{}::from_bits({local})", of.rust()),
        _ => local,
    }
}

/// Whether the type is one of the crate's own, around an integer.
fn is_half(of: Scalar) -> bool {
    matches!(
        of,
        Scalar::F16 | Scalar::Bf16 | Scalar::F16x2 | Scalar::Bf16x2
    )
}
