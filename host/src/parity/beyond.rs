//! The C++ side of a form that `cuda::ptx` lacks: a kernel that calls a function of CUDA, or inline assembly as the PTX
//! ISA has it.
//!
//! A function of CUDA is the better witness, because NVIDIA wrote it. Assembly says what the spec says; what it shows is
//! that Rust passes the operands on as they are meant to, and that ptxas takes the text.

use std::fmt::Write;

use super::rust::{SHARED_STRIDE, immediates, is_loaded, is_shared};
use crate::spec::{Effects, OperandValue, Scalar, Space, Twin, Type, Variant};

/// The kernel `name` for `variant`; it takes the same parameters as the Rust twin ([`super::rust::kernel`]).
pub fn kernel(name: &str, variant: &Variant) -> String {
    let mut kernel = Kernel::default();
    for (position, arg) in variant.args.iter().enumerate() {
        kernel.argument(position, &arg.name, &arg.ty, is_loaded(arg));
    }
    if let Some(result) = &variant.result {
        kernel.output("result", &result.name, &result.ty);
    }
    let call = statement(variant, &immediates(variant));
    let mut text = format!(
        "extern \"C\" __global__ void __launch_bounds__(128) {name}({}) {{\n",
        kernel.parameters.join(", ")
    );
    if kernel.shared > 0 {
        let _ = writeln!(
            text,
            "  __shared__ alignas({SHARED_STRIDE}) uint8_t shared[{}];",
            kernel.shared
        );
    }
    for statement in kernel.before.iter().chain([&call]).chain(&kernel.after) {
        let _ = writeln!(text, "  {statement}");
    }
    text + "}\n"
}

/// The statement that says the form: it reads and writes variables with the names of the arguments and of the result.
/// `immediates` are the numbers that stand for the immediate operands, in order.
pub fn statement(variant: &Variant, immediates: &[i64]) -> String {
    match &variant.twin {
        Some(Twin::Expression(expression)) => call(expression, variant),
        _ => assembly(variant, immediates),
    }
}

/// Calls the function; a result that is not the call's value is written by it.
fn call(expression: &str, variant: &Variant) -> String {
    match &variant.result {
        Some(result) if !expression.contains(';') => format!("{} = {expression};", result.name),
        _ => format!("{expression};"),
    }
}

/// The instruction as inline assembly.
fn assembly(variant: &Variant, immediates: &[i64]) -> String {
    let mut text = variant.asm_lines().join("\n").replace('%', "%%");
    let (mut outputs, mut inputs) = (Vec::new(), Vec::new());
    let mut operands = variant.asm_operands();
    // Outputs come first, as they are numbered.
    operands.sort_by_key(|operand| {
        !matches!(
            operand.value,
            OperandValue::Out { .. } | OperandValue::InOut { .. }
        )
    });
    let mut number = 0;
    for operand in &operands {
        let placeholder = format!("{{{}}}", operand.name);
        let replacement = match &operand.value {
            OperandValue::Constant { arg } => immediates[position(variant, arg)].to_string(),
            value => {
                let constraint = constraint(operand.class, value);
                match value {
                    OperandValue::Out { arg, index, .. } => {
                        outputs.push(format!("\"={constraint}\"({})", element(arg, *index)));
                    }
                    OperandValue::InOut { arg, index, .. } => {
                        outputs.push(format!("\"+{constraint}\"({arg}[{index}])"));
                    }
                    OperandValue::Implied { value, .. } => {
                        inputs.push(format!("\"{constraint}\"({value})"));
                    }
                    OperandValue::In { arg, index, ty } => {
                        inputs.push(format!("\"{constraint}\"({})", input(arg, *index, ty)));
                    }
                    OperandValue::Constant { .. } => unreachable!("handled above"),
                }
                number += 1;
                format!("%{}", number - 1)
            }
        };
        text = text.replace(&placeholder, &replacement);
    }
    // Only now: in `{{{a}, {b}}}` the last operand has a brace of the text behind its own.
    let text = text.replace("{{", "{").replace("}}", "}");
    let (volatile, clobber) = match variant.effects {
        Effects::Memory => (" volatile", " : \"memory\""),
        Effects::Volatile => (" volatile", ""),
        Effects::Pure => ("", ""),
    };
    format!(
        "asm{volatile}(\"{}\" : {} : {}{clobber});",
        text.escape_default(),
        outputs.join(", "),
        inputs.join(", ")
    )
}

/// The letter for what an operand is in C++.
fn constraint(class: Option<&str>, value: &OperandValue) -> char {
    let of = match value {
        OperandValue::In {
            ty: Type::Scalar(of) | Type::Array { of, .. },
            ..
        }
        | OperandValue::Out { of, .. }
        | OperandValue::InOut { of, .. } => Some(*of),
        _ => None,
    };
    match (of, class) {
        (Some(Scalar::F32), _) => 'f',
        (Some(Scalar::F64), _) => 'd',
        (_, Some("reg16")) => 'h',
        (_, Some("reg64")) => 'l',
        _ => 'r',
    }
}

/// The place of this argument among the immediate operands.
fn position(variant: &Variant, name: &str) -> usize {
    let before = variant.args.iter().take_while(|arg| arg.name != name);
    before
        .filter(|arg| matches!(arg.ty, Type::Immediate { .. }))
        .count()
}

fn element(name: &str, index: Option<usize>) -> String {
    match index {
        Some(index) => format!("{name}[{index}]"),
        None => name.to_owned(),
    }
}

fn input(name: &str, index: Option<usize>, ty: &Type) -> String {
    let element = element(name, index);
    match ty {
        Type::Pointer { space, .. } => match space {
            Space::Shared => format!("static_cast<uint32_t>(__cvta_generic_to_shared({element}))"),
            Space::Global => format!("__cvta_generic_to_global({element})"),
            Space::Generic => element,
        },
        Type::Scalar(of) | Type::Array { of, .. } if *of == Scalar::Bool || of.bits() == 8 => {
            format!("static_cast<uint32_t>({element})")
        }
        _ => element,
    }
}

/// The parts of the kernel under construction. Variables have the names of the arguments.
#[derive(Default)]
struct Kernel {
    /// Bytes of shared memory.
    shared: usize,
    parameters: Vec<String>,
    before: Vec<String>,
    after: Vec<String>,
}

impl Kernel {
    fn argument(&mut self, position: usize, name: &str, ty: &Type, loaded: bool) {
        let parameter = format!("a{position}");
        match ty {
            Type::Tag(_) => {}
            Type::Immediate { low, .. } => self
                .before
                .push(format!("constexpr int32_t {name} = {low};")),
            Type::Pointer { to, .. } if is_shared(ty) => {
                let to = pointee(*to);
                self.before.push(format!(
                    "{to}* {name} = reinterpret_cast<{to}*>(shared + {});",
                    self.shared
                ));
                self.shared += SHARED_STRIDE;
            }
            Type::Pointer { to, .. } => {
                self.parameters.push(format!("{}* {name}", pointee(*to)));
            }
            Type::Scalar(of) if loaded => {
                self.parameters
                    .push(format!("const {}* {parameter}", register(*of)));
                self.before
                    .push(format!("{} {name} = *{parameter};", register(*of)));
            }
            Type::Scalar(Scalar::Bool) => {
                self.parameters.push(format!("uint32_t {parameter}"));
                self.before.push(format!("bool {name} = {parameter} != 0;"));
            }
            Type::Scalar(of) => match of.words() {
                1 => self.parameters.push(format!("{} {name}", register(*of))),
                words => {
                    let parts = (0..words).map(|part| format!("{parameter}_{part}"));
                    self.array(name, Scalar::U64, Vec::from_iter(parts));
                }
            },
            Type::Array { of, len } => {
                let elements = (0..*len).map(|index| format!("{parameter}_{index}"));
                self.array(name, *of, Vec::from_iter(elements));
            }
            Type::InOut { of, len } => {
                let of = register(*of);
                self.parameters.push(format!("{of}* {parameter}"));
                self.before.push(format!("{of} {name}[{len}];"));
                for index in 0..*len {
                    self.before
                        .push(format!("{name}[{index}] = {parameter}[{index}];"));
                    self.after
                        .push(format!("{parameter}[{index}] = {name}[{index}];"));
                }
            }
            Type::Out { .. } => self.output(&parameter, name, ty),
        }
    }

    /// An array put together from parameters.
    fn array(&mut self, name: &str, of: Scalar, elements: Vec<String>) {
        let of = register(of);
        self.parameters
            .extend(elements.iter().map(|element| format!("{of} {element}")));
        self.before.push(format!(
            "{of} {name}[{}] = {{{}}};",
            elements.len(),
            elements.join(", ")
        ));
    }

    /// A variable that is written, and stored through a parameter.
    fn output(&mut self, parameter: &str, name: &str, ty: &Type) {
        let Some(variable) = Output::new(name, ty) else {
            return;
        };
        let of = register(variable.of);
        self.parameters.push(format!("{of}* {parameter}_out"));
        for (index, element) in variable.elements.iter().enumerate() {
            self.after
                .push(format!("{parameter}_out[{index}] = {element};"));
        }
        self.before.push(variable.declaration);
    }
}

/// A variable that a form writes.
pub struct Output {
    /// Its declaration, without a value.
    pub declaration: String,
    /// What one element is.
    pub of: Scalar,
    /// Its elements as expressions; those of a predicate are comparisons.
    pub elements: Vec<String>,
}

impl Output {
    /// The variable `name` for a result or output of type `ty`.
    pub fn new(name: &str, ty: &Type) -> Option<Self> {
        if !matches!(ty, Type::Scalar(_) | Type::Array { .. } | Type::Out { .. }) {
            return None;
        }
        let (of, len) = registers(ty);
        let array = len.map(|len| format!("[{len}]")).unwrap_or_default();
        let element = |index| match of {
            Scalar::Bool => element(name, index) + " != 0",
            _ => element(name, index),
        };
        Some(Self {
            declaration: format!("{} {name}{array};", wide(of)),
            of,
            elements: match len {
                Some(len) => (0..len).map(|index| element(Some(index))).collect(),
                None => vec![element(None)],
            },
        })
    }
}

/// Of what type and how many registers a value is; no number if it is no array.
pub fn registers(ty: &Type) -> (Scalar, Option<usize>) {
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

/// The type of a register that carries a value out of an instruction: it may be wider than the value.
pub fn wide(of: Scalar) -> &'static str {
    match of.bits() {
        8 => "uint32_t",
        _ => register(of),
    }
}

/// The type that a pointer points to.
pub fn pointee(to: Scalar) -> &'static str {
    if to == Scalar::Any {
        "uint8_t"
    } else {
        register(to)
    }
}

/// The type of a register, and of a kernel parameter that carries it.
pub fn register(of: Scalar) -> &'static str {
    match of {
        Scalar::I16 => "int16_t",
        Scalar::I32 => "int32_t",
        Scalar::I64 => "int64_t",
        Scalar::F32 => "float",
        Scalar::F64 => "double",
        _ => match of.bits() {
            8 => "uint8_t",
            16 => "uint16_t",
            32 => "uint32_t",
            _ => "uint64_t",
        },
    }
}
