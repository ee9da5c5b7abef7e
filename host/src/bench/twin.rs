//! Functions of C++ for the forms that `cuda::ptx` lacks, from what parity compares with.

use crate::parity::beyond::{pointee, register, statement};
use crate::parity::rust::immediates;
use crate::spec::{Arg, Scalar, Type, Variant};

/// A function `name` that takes the operands of `variant` by their names, without tags and immediates, and returns its
/// result; one of several registers as `Values`, which the prelude has.
pub fn function(name: &str, variant: &Variant) -> String {
    let (mut parameters, mut body) = (Vec::new(), Vec::new());
    let mut returned = ("void".to_owned(), String::new());
    if let Some(result) = &variant.result {
        match registers(&result.ty) {
            (of, Some(len)) => {
                let (name, registers) = (&result.name, register(of));
                body.push(format!("{} {name}[{len}];", wide(of)));
                let elements = (0..len).map(|i| format!("static_cast<{registers}>({name}[{i}])"));
                let elements = Vec::from_iter(elements).join(", ");
                let ty = format!("Values<{registers}, {len}>");
                returned = (ty.clone(), format!("return {ty}{{{elements}}};"));
            }
            (of, None) => {
                body.push(format!("{} {};", wide(of), result.name));
                returned = match of {
                    Scalar::Bool => ("bool".to_owned(), format!("return {} != 0;", result.name)),
                    of => (register(of).to_owned(), format!("return {};", result.name)),
                };
            }
        }
    }
    let mut numbers = immediates(variant).into_iter();
    for arg in &variant.args {
        match arg.ty {
            Type::Tag(_) => {}
            Type::Immediate { .. } => {
                let number = numbers.next().unwrap_or_default();
                body.push(format!("constexpr int32_t {} = {number};", arg.name));
            }
            _ => parameters.push(parameter(arg)),
        }
    }
    format!(
        "static __device__ __forceinline__ {} {name}({}) {{\n  {}\n  {}\n  {}\n}}\n",
        returned.0,
        parameters.join(", "),
        body.join(" "),
        statement(variant, &immediates(variant)),
        returned.1
    )
}

fn parameter(Arg { name, ty }: &Arg) -> String {
    let written = matches!(ty, Type::InOut { .. } | Type::Out { .. });
    let constant = if written { "" } else { "const " };
    let (of, len) = registers(ty);
    match (ty, len) {
        (Type::Pointer { to, .. }, _) => format!("{}* {name}", pointee(*to)),
        (Type::Scalar(Scalar::Bool), _) => format!("bool {name}"),
        (_, Some(len)) => format!("{constant}{} (&{name})[{len}]", register(of)),
        (_, None) if written => format!("{}& {name}", wide(of)),
        (_, None) => format!("{} {name}", register(of)),
    }
}

/// Of what type and how many registers a value is; no number if it is no array.
fn registers(ty: &Type) -> (Scalar, Option<usize>) {
    match ty {
        Type::Array { of, len } | Type::InOut { of, len } | Type::Out { of, len: Some(len) } => {
            (*of, Some(*len))
        }
        Type::Scalar(of) | Type::Out { of, len: None } => match of.words() {
            1 => (*of, None),
            words => (Scalar::U64, Some(words)),
        },
        Type::Pointer { .. } => (Scalar::U64, None),
        _ => (Scalar::U32, None),
    }
}

/// The type of a register that carries a value out of an instruction.
fn wide(of: Scalar) -> &'static str {
    match of.bits() {
        8 => "uint32_t",
        _ => register(of),
    }
}
