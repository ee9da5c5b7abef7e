//! Functions of C++ for the forms that `cuda::ptx` lacks, from what parity compares with.

use crate::parity::beyond::{Output, pointee, register, registers, statement, wide};
use crate::parity::rust::immediates;
use crate::spec::{Arg, Scalar, Type, Variant};

/// A function `name` that takes the operands of `variant` by their names, without tags and immediates, and returns its
/// result; one of several registers as `Values`, which the prelude has.
pub fn function(name: &str, variant: &Variant) -> String {
    let (mut parameters, mut body) = (Vec::new(), Vec::new());
    let mut returned = ("void".to_owned(), String::new());
    if let Some(result) = &variant.result
        && let Some(output) = Output::new(&result.name, &result.ty)
    {
        let (of, len) = registers(&result.ty);
        let register = match of {
            Scalar::Bool => "bool",
            of => register(of),
        };
        body.push(output.declaration);
        let elements = output.elements.into_iter();
        returned = match len {
            Some(len) => {
                let elements =
                    elements.map(|element| format!("static_cast<{register}>({element})"));
                let elements = Vec::from_iter(elements).join(", ");
                let ty = format!("Values<{register}, {len}>");
                (ty.clone(), format!("return {ty}{{{elements}}};"))
            }
            None => (
                register.to_owned(),
                elements.map(|e| format!("return {e};")).collect(),
            ),
        };
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
