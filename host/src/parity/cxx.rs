//! The C++ twin of a form: a kernel that calls `cuda::ptx` once.

use std::fmt::Write;

use super::form::{Form, Scalar, Slot};
use super::matching::Mirror;
use super::rust::{SHARED_STRIDE, immediate, is_loaded, is_shared};

/// What every twin starts with.
pub const PRELUDE: &str = "\
#include <cuda/annotated_ptr>
#include <cuda/ptx>
#include <cuda/std/cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>
#include <mma.h>

using namespace cuda::std;
struct bits128 { uint64_t part[2]; };
struct bits256 { uint64_t part[4]; };
template <class To, class From> __device__ To as(From from) { return *reinterpret_cast<To*>(&from); }
";

/// The kernel `name` that calls `form`. The mirror says which pointers lead to shared memory and which number stands
/// for an immediate operand.
pub fn kernel(name: &str, form: &Form, mirror: Mirror) -> String {
    if form.overload.isa.before.is_some() {
        return retired(name, form);
    }
    let mut twin = Twin::default();
    let immediate = immediate(mirror.variant);
    for (position, (slot, arg)) in form.slots.iter().zip(&mirror.variant.args).enumerate() {
        match slot {
            Slot::Pointer(ty) if is_shared(&arg.ty) => twin.shared(ty),
            Slot::Value(scalar) if is_loaded(arg) => twin.loaded(position, scalar),
            _ => twin.argument(position, slot, immediate),
        }
    }
    let call = format!(
        "{}({})",
        function(form, immediate),
        twin.arguments.join(", ")
    );
    match &form.result {
        None => twin.before.push(format!("{call};")),
        Some(scalar) => {
            twin.before
                .push(format!("{} result = {call};", scalar.name));
            twin.output("result", scalar, None);
        }
    }
    let mut text = format!(
        "extern \"C\" __global__ void __launch_bounds__(128) {name}({}) {{\n",
        twin.parameters.join(", ")
    );
    if twin.shared > 0 {
        writeln!(
            text,
            "  __shared__ alignas({SHARED_STRIDE}) uint8_t shared[{}];",
            twin.shared
        )
        .expect("writing to a String does not fail");
    }
    for statement in twin.before.iter().chain(&twin.after) {
        writeln!(text, "  {statement}").expect("writing to a String does not fail");
    }
    text + "}\n"
}

/// A form that upstream hides from toolkits as new as ours: its inline assembly alone, which takes no operands.
fn retired(name: &str, form: &Form) -> String {
    let asm = form.variant.asm.escape_default();
    format!(
        "extern \"C\" __global__ void __launch_bounds__(128) {name}() {{\n  asm volatile(\"{asm}\" ::: \"memory\");\n}}\n"
    )
}

/// The overload itself: its exact type picks it, also where upstream's overloads make a plain call ambiguous.
pub fn function(form: &Form, immediate: i64) -> String {
    let types =
        form.slots
            .iter()
            .zip(&form.overload.parameters)
            .map(|(slot, parameter)| match slot {
                Slot::Tag(tag) => format!("cuda::ptx::{tag}_t"),
                Slot::Immediate => format!("cuda::ptx::n32_t<{immediate}>"),
                Slot::Pointer(ty) => ty.clone(),
                Slot::Value(scalar) if parameter.ty.ends_with('&') => {
                    format!("const {}&", scalar.name)
                }
                Slot::Value(scalar) => scalar.name.to_owned(),
                Slot::Array(scalar, length) => format!("const {} (&)[{length}]", scalar.name),
                Slot::Output(scalar, None) => format!("{}&", scalar.name),
                Slot::Output(scalar, Some(length)) => format!("{} (&)[{length}]", scalar.name),
            });
    let types = Vec::from_iter(types).join(", ");
    let returns = form.result.map_or("void", |scalar| scalar.name);
    let template = Vec::from_iter(form.template.iter().map(|scalar| scalar.name)).join(", ");
    let template = if template.is_empty() {
        template
    } else {
        format!("<{template}>")
    };
    format!(
        "static_cast<{returns} (*)({types})>(cuda::ptx::{}{template})",
        form.overload.function
    )
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
    fn shared(&mut self, ty: &str) {
        self.arguments
            .push(format!("reinterpret_cast<{ty}>(shared + {})", self.shared));
        self.shared += SHARED_STRIDE;
    }

    /// An argument that is read from memory.
    fn loaded(&mut self, position: usize, scalar: &Scalar) {
        self.parameters
            .push(format!("const {}* a{position}", scalar.name));
        self.arguments.push(format!("*a{position}"));
    }

    fn argument(&mut self, position: usize, slot: &Slot, immediate: i64) {
        let name = format!("a{position}");
        let argument = match slot {
            Slot::Tag(tag) => format!("cuda::ptx::{tag}"),
            Slot::Immediate => format!("cuda::ptx::n32_t<{immediate}>{{}}"),
            Slot::Pointer(ty) => {
                self.parameters.push(format!("{ty} {name}"));
                name
            }
            Slot::Value(scalar) => self.value(&name, scalar),
            Slot::Array(scalar, length) => {
                let elements =
                    (0..*length).map(|index| self.value(&format!("{name}_{index}"), scalar));
                let elements = Vec::from_iter(elements).join(", ");
                self.before.push(format!(
                    "{} {name}[{length}] = {{{elements}}};",
                    scalar.name
                ));
                name
            }
            Slot::Output(scalar, length) => {
                let array = length
                    .map(|length| format!("[{length}]"))
                    .unwrap_or_default();
                self.before.push(format!("{} {name}{array};", scalar.name));
                self.output(&name, scalar, *length);
                name
            }
        };
        self.arguments.push(argument);
    }

    /// Takes a value through kernel parameters; returns the expression that puts it together.
    fn value(&mut self, name: &str, scalar: &Scalar) -> String {
        if scalar.parts > 1 {
            let parts = Vec::from_iter((0..scalar.parts).map(|part| format!("{name}_{part}")));
            self.parameters
                .extend(parts.iter().map(|part| format!("{} {part}", scalar.part)));
            return format!("{}{{{{{}}}}}", scalar.name, parts.join(", "));
        }
        self.parameters.push(format!("{} {name}", scalar.part));
        match scalar.name {
            same if same == scalar.part => name.to_owned(),
            "bool" => format!("{name} != 0"),
            other => format!("as<{other}>({name})"),
        }
    }

    /// Stores a value, or an array of them, through a kernel parameter.
    fn output(&mut self, name: &str, scalar: &Scalar, length: Option<usize>) {
        self.parameters.push(format!("{}* {name}_out", scalar.part));
        let elements = match length {
            Some(length) => Vec::from_iter((0..length).map(|index| format!("{name}[{index}]"))),
            None => vec![name.to_owned()],
        };
        let value = |element: &String| match scalar.parts {
            1 if scalar.name == scalar.part || scalar.name == "bool" => vec![element.clone()],
            1 => vec![format!("as<{}>({element})", scalar.part)],
            parts => (0..parts)
                .map(|part| format!("{element}.part[{part}]"))
                .collect(),
        };
        for (index, value) in elements.iter().flat_map(value).enumerate() {
            self.after.push(format!("{name}_out[{index}] = {value};"));
        }
    }
}
