//! One kernel per instruction variant, in Rust and in C++, for comparing the two.
//!
//! Both do the same around the instruction: values come as parameters, pointers to shared memory
//! point into one array at the same offsets, and outputs are stored through pointers. So what is
//! left to differ is the instruction and how its operands are made.

use std::collections::HashMap;
use std::fmt::Write;

use crate::spec::{Arg, Family, Overload, Scalar, Space, Spec, Type, Variant};

/// Bytes between the shared-memory objects of a kernel's arguments.
const SHARED_STRIDE: usize = 1024;

/// Arrays up to this length come as parameters, longer ones through a pointer.
const MAX_VALUES: usize = 8;

/// The kernel of a variant.
#[derive(Clone, Debug)]
pub struct FormKernel<'a> {
    /// The kernel's name in both languages.
    pub name: String,
    /// The family that the variant belongs to.
    pub family: &'a Family,
    /// The Rust function that it calls.
    pub overload: &'a Overload,
    /// What the call selects.
    pub variant: &'a Variant,
}

/// The kernels of every variant, in the order of the spec.
pub fn all(spec: &Spec) -> Vec<FormKernel<'_>> {
    let mut taken: HashMap<String, usize> = HashMap::new();
    spec.variants()
        .map(|(family, overload, variant)| {
            let mut name = name(overload, variant);
            let count = taken.entry(name.clone()).or_default();
            *count += 1;
            if *count > 1 {
                let _ = write!(name, "_{count}");
            }
            FormKernel {
                name,
                family,
                overload,
                variant,
            }
        })
        .collect()
}

/// `k_`, the Rust name, and the types that select the variant.
fn name(overload: &Overload, variant: &Variant) -> String {
    let mut name = format!("k_{}", overload.rust_name);
    let selects = |index: usize| {
        let first = &overload.variants[0].args[index].ty;
        overload
            .variants
            .iter()
            .any(|other| other.args[index].ty != *first)
    };
    for (index, arg) in variant.args.iter().enumerate() {
        if !selects(index) {
            continue;
        }
        let part = match &arg.ty {
            Type::Tag(tag) => tag
                .name
                .trim_start_matches(&tag.family)
                .trim_matches('_')
                .to_string(),
            Type::Pointer {
                to: Scalar::Any, ..
            } => continue,
            Type::Pointer { to: of, .. } | Type::Scalar(of) => suffix(*of),
            Type::Array { of, len } | Type::Out { of, len: Some(len) } => {
                format!("{}x{len}", suffix(*of))
            }
            Type::Out { of, len: None } => suffix(*of),
            Type::Immediate { .. } => continue,
        };
        name += "__";
        name += &part;
    }
    name
}

fn suffix(of: Scalar) -> String {
    match of {
        Scalar::Bits(bits) => format!("b{bits}"),
        other => other.rust().to_string(),
    }
}

/// A kernel crate's `lib.rs` with these kernels.
pub fn rust(kernels: &[FormKernel]) -> String {
    let mut out = "#![no_std]\n#![feature(abi_ptx, asm_experimental_arch)]\n\
        #![allow(unused_unsafe, non_snake_case)]\n\
        use cuda_ptx::*;\npanic_trap!();\n"
        .to_string();
    for kernel in kernels {
        out += &render(kernel, &Rust);
    }
    out
}

/// A CUDA C++ source with these kernels.
pub fn cpp(kernels: &[FormKernel]) -> String {
    let mut out = "#include <cstdint>\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n\
        #include <cuda/ptx>\nnamespace ptx = cuda::ptx;\n"
        .to_string();
    for kernel in kernels {
        out += &render(kernel, &Cpp);
    }
    out
}

/// What differs between the languages.
trait Language {
    fn value_type(&self, of: Scalar) -> String;
    fn pointer_type(&self, of: Scalar, mutable: bool) -> String;
    /// A tag or the like, in an argument list.
    fn tag(&self, name: &str) -> String;
    fn immediate(&self, value: i64) -> String;
    /// A pointer to the shared-memory object at an offset.
    fn shared(&self, offset: usize, to: Scalar, mutable: bool) -> String;
    /// The value that a parameter stands for.
    fn parameter_as(&self, name: &str, of: Scalar) -> String;
    fn element(&self, pointer: &str, index: usize) -> String;
    fn array(&self, name: &str, of: Scalar, elements: &[String]) -> String;
    /// Declares a variable that an argument is written to, and names it as an argument.
    fn out_variable(&self, name: &str, of: Scalar, len: Option<usize>) -> (String, String);
    fn call(&self, kernel: &FormKernel, args: &[String]) -> String;
    fn store(&self, pointer: &str, index: usize, value: &str, of: Scalar) -> String;
    fn wide_element(&self, value: &str, index: usize) -> String;
    fn result(&self, call: &str) -> String;
    fn kernel(
        &self,
        kernel: &FormKernel,
        params: &[(String, String)],
        shared: usize,
        body: &str,
    ) -> String;
}

fn render(kernel: &FormKernel, language: &dyn Language) -> String {
    let variant = kernel.variant;
    let mut params: Vec<(String, String)> = Vec::new();
    let mut body = String::new();
    let mut args = Vec::new();
    let mut stores = String::new();
    let mut shared = 0;
    for arg in &variant.args {
        let name = &arg.name;
        args.push(match &arg.ty {
            Type::Tag(tag) => language.tag(&tag.name),
            Type::Immediate { low, .. } => language.immediate(*low),
            Type::Pointer {
                space: Space::Shared,
                mutable,
                to,
            } => {
                shared += SHARED_STRIDE;
                language.shared(shared - SHARED_STRIDE, *to, *mutable)
            }
            Type::Pointer { mutable, to, .. } => {
                params.push((name.clone(), language.pointer_type(*to, *mutable)));
                name.clone()
            }
            Type::Scalar(of) => scalar(language, name, *of, &mut params),
            Type::Array { of, len } => {
                let elements = elements(language, name, *of, *len, &mut params);
                body += &language.array(name, *of, &elements);
                format!("{name}_values")
            }
            Type::Out { of, len } => {
                params.push((
                    format!("{name}_out"),
                    language.pointer_type(stored(*of), true),
                ));
                let (declaration, argument) = language.out_variable(name, *of, *len);
                body += &declaration;
                stores += &store_all(language, &format!("{name}_out"), name, *of, *len);
                argument
            }
        });
    }
    let call = language.call(kernel, &args);
    match &variant.result {
        None => {
            let _ = writeln!(body, "{call};");
        }
        Some(result) => {
            let (of, len) = register(result);
            params.push((
                "result_out".to_string(),
                language.pointer_type(stored(of), true),
            ));
            body += &language.result(&call);
            body += &store_all(language, "result_out", "result", of, len);
        }
    }
    body += &stores;
    language.kernel(kernel, &params, shared, &body)
}

fn register(arg: &Arg) -> (Scalar, Option<usize>) {
    match &arg.ty {
        Type::Array { of, len } => (*of, Some(*len)),
        Type::Scalar(of) => (*of, None),
        _ => (Scalar::U64, None),
    }
}

/// What an output is stored as.
fn stored(of: Scalar) -> Scalar {
    match of {
        Scalar::Bool => Scalar::U32,
        Scalar::Bits(128 | 256) => Scalar::U64,
        other => other,
    }
}

/// An argument that is a value: as one parameter, or for a wide one as several of 64 bits.
fn scalar(
    language: &dyn Language,
    name: &str,
    of: Scalar,
    params: &mut Vec<(String, String)>,
) -> String {
    if of.bits() == 8 {
        // The compilers differ in how they load a parameter of 8 bits.
        params.push((name.to_string(), language.pointer_type(of, false)));
        return language.element(name, 0);
    }
    let words = usize::from(of.bits() / 64);
    if words < 2 {
        let parameter = if of == Scalar::Bool { Scalar::U32 } else { of };
        params.push((name.to_string(), language.value_type(parameter)));
        return language.parameter_as(name, of);
    }
    let words: Vec<String> = (0..words).map(|index| format!("{name}{index}")).collect();
    for word in &words {
        params.push((word.clone(), language.value_type(Scalar::U64)));
    }
    language.parameter_as(&words.join(", "), of)
}

fn elements(
    language: &dyn Language,
    name: &str,
    of: Scalar,
    len: usize,
    params: &mut Vec<(String, String)>,
) -> Vec<String> {
    if len <= MAX_VALUES {
        let names: Vec<String> = (0..len).map(|index| format!("{name}{index}")).collect();
        for element in &names {
            params.push((element.clone(), language.value_type(of)));
        }
        return names
            .iter()
            .map(|element| language.parameter_as(element, of))
            .collect();
    }
    params.push((name.to_string(), language.pointer_type(of, false)));
    (0..len)
        .map(|index| language.element(name, index))
        .collect()
}

fn store_all(
    language: &dyn Language,
    pointer: &str,
    value: &str,
    of: Scalar,
    len: Option<usize>,
) -> String {
    let count = match of.bits() {
        128 => Some(2),
        256 => Some(4),
        _ => None,
    };
    match (count, len) {
        (Some(count), _) => (0..count)
            .map(|i| language.store(pointer, i, &language.wide_element(value, i), Scalar::U64))
            .collect(),
        (None, Some(len)) => (0..len)
            .map(|i| language.store(pointer, i, &format!("{value}[{i}]"), of))
            .collect(),
        (None, None) => language.store(pointer, 0, value, of),
    }
}

struct Rust;

impl Language for Rust {
    fn value_type(&self, of: Scalar) -> String {
        of.rust().to_string()
    }

    fn pointer_type(&self, of: Scalar, mutable: bool) -> String {
        let to = if of == Scalar::Any { "u8" } else { of.rust() };
        format!("*{} {to}", if mutable { "mut" } else { "const" })
    }

    fn tag(&self, name: &str) -> String {
        name.to_string()
    }

    fn immediate(&self, value: i64) -> String {
        format!("n32::<{value}>")
    }

    fn shared(&self, offset: usize, to: Scalar, mutable: bool) -> String {
        let cast = format!(
            "SMEM.as_mut_ptr().byte_add({offset}).cast::<{}>()",
            match to {
                Scalar::Any => "u8",
                to => to.rust(),
            }
        );
        if mutable {
            cast
        } else {
            cast + ".cast_const()"
        }
    }

    fn parameter_as(&self, name: &str, of: Scalar) -> String {
        match of {
            Scalar::Bool => format!("{name} != 0"),
            Scalar::Bits(128 | 256) => format!("[{name}]"),
            _ => name.to_string(),
        }
    }

    fn element(&self, pointer: &str, index: usize) -> String {
        format!("{pointer}.add({index}).read()")
    }

    fn array(&self, name: &str, _of: Scalar, elements: &[String]) -> String {
        format!("let {name}_values = [{}];\n", elements.join(", "))
    }

    fn out_variable(&self, name: &str, of: Scalar, len: Option<usize>) -> (String, String) {
        let zero = match of {
            Scalar::Bool => "false".to_string(),
            _ => format!(
                "::core::mem::zeroed::<{}>()",
                match len {
                    Some(len) => format!("[{}; {len}]", of.rust()),
                    None => of.rust().to_string(),
                }
            ),
        };
        (
            format!("let mut {name} = {zero};\n"),
            format!("&mut {name}"),
        )
    }

    fn call(&self, kernel: &FormKernel, args: &[String]) -> String {
        format!("{}({})", kernel.overload.rust_name, args.join(", "))
    }

    fn store(&self, pointer: &str, index: usize, value: &str, of: Scalar) -> String {
        let value = if of == Scalar::Bool {
            format!("{value} as u32")
        } else {
            value.to_string()
        };
        format!("{pointer}.add({index}).write({value});\n")
    }

    fn wide_element(&self, value: &str, index: usize) -> String {
        format!("{value}[{index}]")
    }

    fn result(&self, call: &str) -> String {
        format!("let result = {call};\n")
    }

    fn kernel(
        &self,
        kernel: &FormKernel,
        params: &[(String, String)],
        shared: usize,
        body: &str,
    ) -> String {
        let params: Vec<String> = params
            .iter()
            .map(|(name, ty)| format!("{name}: {ty}"))
            .collect();
        let shared = match shared {
            0 => String::new(),
            bytes => format!("shared! {{ #[align(1024)] static SMEM: [u8; {bytes}]; }}\n"),
        };
        format!(
            "kernel! {{\npub fn {}({}) {{\n{shared}unsafe {{\n{body}}}\n}}\n}}\n",
            kernel.name,
            params.join(", ")
        )
    }
}

struct Cpp;

/// What the spec says about the C++ call.
fn stated<'a>(variant: &'a Variant, what: &str) -> Option<&'a str> {
    let of = |(name, how): &'a (String, String)| (name == what).then_some(how.as_str());
    variant.cpp.iter().find_map(of)
}

impl Language for Cpp {
    fn value_type(&self, of: Scalar) -> String {
        match of {
            Scalar::U8 | Scalar::Bits(8) => "uint8_t",
            Scalar::U16 | Scalar::Bits(16) => "uint16_t",
            Scalar::U32 | Scalar::Bits(32) => "uint32_t",
            Scalar::U64 | Scalar::Bits(64) => "uint64_t",
            Scalar::I16 => "int16_t",
            Scalar::I32 => "int32_t",
            Scalar::I64 => "int64_t",
            Scalar::F32 => "float",
            Scalar::F64 => "double",
            Scalar::F16 => "__half",
            Scalar::Bf16 => "__nv_bfloat16",
            Scalar::F16x2 => "__half2",
            Scalar::Bf16x2 => "__nv_bfloat162",
            Scalar::Bool => "bool",
            Scalar::Bits(128) => "ulonglong2",
            Scalar::Bits(_) => "ulonglong4_32a",
            Scalar::Any => "void",
        }
        .to_string()
    }

    fn pointer_type(&self, of: Scalar, mutable: bool) -> String {
        format!(
            "{}{}*",
            if mutable { "" } else { "const " },
            self.value_type(of)
        )
    }

    fn tag(&self, name: &str) -> String {
        format!("ptx::{name}")
    }

    fn immediate(&self, value: i64) -> String {
        format!("ptx::n32_t<{value}>{{}}")
    }

    fn shared(&self, offset: usize, to: Scalar, mutable: bool) -> String {
        format!("({})(smem + {offset})", self.pointer_type(to, mutable))
    }

    fn parameter_as(&self, name: &str, of: Scalar) -> String {
        match of {
            Scalar::Bool => format!("{name} != 0"),
            Scalar::Bits(128 | 256) => format!("{}{{{name}}}", self.value_type(of)),
            _ => name.to_string(),
        }
    }

    fn element(&self, pointer: &str, index: usize) -> String {
        format!("{pointer}[{index}]")
    }

    fn array(&self, name: &str, of: Scalar, elements: &[String]) -> String {
        let len = elements.len();
        format!(
            "{} {name}_values[{len}] = {{{}}};\n",
            self.value_type(of),
            elements.join(", ")
        )
    }

    fn out_variable(&self, name: &str, of: Scalar, len: Option<usize>) -> (String, String) {
        let len = len.map_or(String::new(), |len| format!("[{len}]"));
        (
            format!("{} {name}{len};\n", self.value_type(of)),
            name.to_string(),
        )
    }

    fn call(&self, kernel: &FormKernel, args: &[String]) -> String {
        let template = match stated(kernel.variant, "<>") {
            Some(types) => format!("<{types}>"),
            None => String::new(),
        };
        let args: Vec<String> = kernel
            .variant
            .args
            .iter()
            .zip(args)
            .map(|(arg, text)| match stated(kernel.variant, &arg.name) {
                Some(ty) => format!("({ty})({text})"),
                None => text.clone(),
            })
            .collect();
        let function = &kernel.variant.function;
        format!("ptx::{function}{template}({})", args.join(", "))
    }

    fn store(&self, pointer: &str, index: usize, value: &str, _of: Scalar) -> String {
        format!("{pointer}[{index}] = {value};\n")
    }

    fn wide_element(&self, value: &str, index: usize) -> String {
        format!("{value}.{}", ["x", "y", "z", "w"][index])
    }

    fn result(&self, call: &str) -> String {
        format!("auto result = {call};\n")
    }

    fn kernel(
        &self,
        kernel: &FormKernel,
        params: &[(String, String)],
        shared: usize,
        body: &str,
    ) -> String {
        let params: Vec<String> = params
            .iter()
            .map(|(name, ty)| format!("{ty} {name}"))
            .collect();
        let shared = match shared {
            0 => String::new(),
            bytes => format!("__shared__ alignas(1024) unsigned char smem[{bytes}];\n"),
        };
        format!(
            "extern \"C\" __global__ void {}({}) {{\n{shared}{body}}}\n",
            kernel.name,
            params.join(", ")
        )
    }
}
