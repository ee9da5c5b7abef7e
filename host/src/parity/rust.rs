//! The Rust side of a form: a kernel that calls the function of this project once.

use std::fmt::Write;

use super::matching::Mirror;
use crate::spec::{Arg, Scalar, Space, Type, Variant};

/// What the crate of the kernels starts with.
pub const PRELUDE: &str = "\
#![no_std]
#![feature(abi_ptx, asm_experimental_arch, f16)]
#![allow(warnings)]
use cuda_ptx::*;
cuda_ptx::panic_trap!();
";

/// The distance of two objects in shared memory: more than any instruction here may touch.
pub const SHARED_STRIDE: usize = 1024;

/// The kernel `name` that calls `mirror`; it takes the same parameters as the C++ twin ([`super::cxx::kernel`]).
pub fn kernel(name: &str, mirror: Mirror) -> String {
    let (function, variant) = (&mirror.overload.rust_name, mirror.variant);
    let mut twin = Twin::default();
    for (position, arg) in variant.args.iter().enumerate() {
        match &arg.ty {
            ty if is_shared(ty) => twin.shared(ty),
            Type::Scalar(scalar) if is_loaded(arg) => twin.loaded(position, *scalar),
            ty => twin.argument(position, ty),
        }
    }
    let call = format!("{function}({})", twin.arguments.join(", "));
    match variant.result.as_ref().map(|result| &result.ty) {
        Some(Type::Scalar(scalar)) => {
            twin.before.push(format!("let result = {call};"));
            twin.output("result", *scalar, None);
        }
        Some(Type::Array { of, len }) => {
            twin.before.push(format!("let result = {call};"));
            twin.output("result", *of, Some(*len));
        }
        _ => twin.before.push(format!("{call};")),
    }
    let mut text = format!(
        "kernel! {{\n  #[launch_bounds(128)]\n  pub fn {name}({}) {{\n    unsafe {{\n",
        twin.parameters.join(", ")
    );
    if twin.shared > 0 {
        writeln!(
            text,
            "      shared! {{ #[align({SHARED_STRIDE})] static SHARED: [u8; {}]; }}",
            twin.shared
        )
        .expect("writing to a String does not fail");
    }
    for statement in twin.before.iter().chain(&twin.after) {
        writeln!(text, "      {statement}").expect("writing to a String does not fail");
    }
    text + "    }\n  }\n}\n"
}

/// The number that stands for an immediate operand on both sides: the lowest allowed.
pub fn immediate(variant: &Variant) -> i64 {
    immediates(variant).first().copied().unwrap_or(0)
}

/// The same for each immediate operand, in order.
pub fn immediates(variant: &Variant) -> Vec<i64> {
    let low = |arg: &Arg| match arg.ty {
        Type::Immediate { low, .. } => Some(low),
        _ => None,
    };
    variant.args.iter().filter_map(low).collect()
}

/// Whether an argument of this type is a pointer to shared memory.
pub fn is_shared(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Pointer {
            space: Space::Shared,
            ..
        }
    )
}

/// Whether both sides read this argument from memory. ptxas 13.5 crashes if it is a kernel parameter: the state of an
/// `mbarrier.test_wait` before sm_90, and the scales of a `cvt` to `s2f6x2`. And the compilers load a parameter of 8
/// bits in different ways.
pub fn is_loaded(arg: &Arg) -> bool {
    match arg.ty {
        Type::Scalar(scalar) => {
            let crashes = ["state", "scale"].contains(&arg.name.as_str());
            crashes && scalar != Scalar::Bool || scalar.bits() == 8
        }
        _ => false,
    }
}

/// The type of a pointer, as in `*mut [f32; 2]`.
pub fn pointer(ty: &Type) -> String {
    let Type::Pointer {
        mutable, to, len, ..
    } = ty
    else {
        unreachable!("only pointers come here")
    };
    let qualifier = if *mutable { "mut" } else { "const" };
    let to = if *to == Scalar::Any { "u8" } else { to.rust() };
    match len {
        Some(len) => format!("*{qualifier} [{to}; {len}]"),
        None => format!("*{qualifier} {to}"),
    }
}

/// How a value travels through kernel parameters: their type and number.
fn parts(scalar: Scalar) -> (&'static str, usize) {
    match scalar {
        Scalar::Bool => ("u32", 1),
        Scalar::F16 | Scalar::Bf16 => ("u16", 1),
        Scalar::F16x2 | Scalar::Bf16x2 => ("u32", 1),
        Scalar::Bits(128) | Scalar::U128 => ("u64", 2),
        Scalar::Bits(256) => ("u64", 4),
        other => (other.rust(), 1),
    }
}

/// The parts of the kernel under construction.
#[derive(Default)]
struct Twin {
    /// Bytes of shared memory.
    shared: usize,
    parameters: Vec<String>,
    before: Vec<String>,
    arguments: Vec<String>,
    after: Vec<String>,
}

impl Twin {
    /// A pointer to an object of its own in shared memory.
    fn shared(&mut self, ty: &Type) {
        let object = format!("SHARED.as_mut_ptr().byte_add({})", self.shared);
        self.arguments.push(format!("{object} as {}", pointer(ty)));
        self.shared += SHARED_STRIDE;
    }

    fn loaded(&mut self, position: usize, scalar: Scalar) {
        self.parameters
            .push(format!("a{position}: *const {}", scalar.rust()));
        self.arguments.push(format!("*a{position}"));
    }

    fn argument(&mut self, position: usize, ty: &Type) {
        let name = format!("a{position}");
        let argument = match ty {
            Type::Tag(tag) => tag.name.clone(),
            Type::Immediate { low, .. } => format!("n32::<{low}>"),
            Type::Pointer { .. } => {
                self.parameters.push(format!("{name}: *mut u64"));
                format!("{name} as {}", pointer(ty))
            }
            Type::Scalar(scalar) => self.value(&name, *scalar),
            Type::Array { of, len } => {
                let elements = (0..*len).map(|index| self.value(&format!("{name}_{index}"), *of));
                format!("[{}]", Vec::from_iter(elements).join(", "))
            }
            Type::InOut { of, len } => {
                // One by one, or the array would be copied to local memory.
                self.parameters.push(format!("{name}: *mut {}", of.rust()));
                self.before.push(format!(
                    "let mut {name}_values: [{}; {len}] = core::mem::zeroed();",
                    of.rust()
                ));
                for index in 0..*len {
                    self.before
                        .push(format!("{name}_values[{index}] = *{name}.add({index});"));
                    self.after
                        .push(format!("*{name}.add({index}) = {name}_values[{index}];"));
                }
                format!("&mut {name}_values")
            }
            Type::Out { of, len } => {
                // Not `[0; N]`, which is a loop and would leave the array in local memory.
                let ty = match len {
                    Some(len) => format!("[{}; {len}]", of.rust()),
                    None => of.rust().to_owned(),
                };
                self.before
                    .push(format!("let mut {name}: {ty} = core::mem::zeroed();"));
                self.output(&name, *of, *len);
                format!("&mut {name}")
            }
        };
        self.arguments.push(argument);
    }

    /// Takes a value through kernel parameters; returns the expression that puts it together.
    fn value(&mut self, name: &str, scalar: Scalar) -> String {
        let (part, count) = parts(scalar);
        if count > 1 {
            let names = Vec::from_iter((0..count).map(|part| format!("{name}_{part}")));
            self.parameters
                .extend(names.iter().map(|name| format!("{name}: {part}")));
            let halves = format!("[{}]", names.join(", "));
            return match scalar {
                Scalar::U128 => format!("core::mem::transmute::<[u64; 2], u128>({halves})"),
                _ => halves,
            };
        }
        self.parameters.push(format!("{name}: {part}"));
        match scalar {
            Scalar::Bool => format!("{name} != 0"),
            same if same.rust() == part => name.to_owned(),
            other => format!("core::mem::transmute::<{part}, {}>({name})", other.rust()),
        }
    }

    /// Stores a value, or an array of them, through a kernel parameter.
    fn output(&mut self, name: &str, scalar: Scalar, length: Option<usize>) {
        let (part, count) = parts(scalar);
        self.parameters.push(format!("{name}_out: *mut {part}"));
        let elements = match length {
            Some(length) => Vec::from_iter((0..length).map(|index| format!("{name}[{index}]"))),
            None => vec![name.to_owned()],
        };
        let value = |element: &String| match (count, scalar) {
            (1, Scalar::Bool) => vec![format!("{element} as u32")],
            (1, same) if same.rust() == part => vec![element.clone()],
            (1, other) => vec![format!(
                "core::mem::transmute::<{}, {part}>({element})",
                other.rust()
            )],
            (_, Scalar::U128) => vec![
                format!("{element} as u64"),
                format!("({element} >> 64) as u64"),
            ],
            _ => (0..count)
                .map(|part| format!("{element}[{part}]"))
                .collect(),
        };
        for (index, value) in elements.iter().flat_map(value).enumerate() {
            self.after
                .push(format!("*{name}_out.add({index}) = {value};"));
        }
    }
}
