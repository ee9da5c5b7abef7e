//! The body of a scenario as a kernel in Rust and in C++.
//!
//! Statements are alike in both languages, but for these lines:
//!
//! | line | is |
//! |---|---|
//! | `var x = …;` | a variable of 64 bits |
//! | `ptr p = …;` | a pointer to bytes |
//! | `@r = (a; b \| c; …)` | the form, with its operands in order; `b \| c` are the words of one operand |
//! | `@r #5, 1 = (…)` | the same, with 5 and 1 for the immediate operands, which otherwise are the lowest allowed |
//!
//! Tags, immediate operands and outputs of the call are put where the form has them. A result is
//! `r`, or `r_0`, `r_1`, … if it has several words, and so are outputs. What a form reads and writes is an operand,
//! whose words afterwards are among the outputs.

mod beyond;

use std::fmt::Write;

use anyhow::{Context, Result, ensure};

use super::scenario::Scenario;
use crate::parity::cxx;
use crate::parity::form::{Form as Declaration, Slot};
use crate::parity::matching::Mirror;
use crate::parity::rust::{immediates, pointer};
use crate::spec::{Arg, Scalar, Type, Variant};

/// What all kernels of a language begin with.
pub const RUST_PRELUDE: &str = "\
#![no_std]
#![feature(abi_ptx, asm_experimental_arch, f16, stdarch_nvptx)]
#![allow(warnings)]
use cuda_ptx::*;
use cuda_ptx::warpgroup::*;
cuda_ptx::panic_trap!();
";

/// The kernel in Rust.
///
/// # Errors
///
/// The body gives the form other operands than it has.
pub fn rust(name: &str, scenario: &Scenario, mirror: Mirror) -> Result<String> {
    let mut out = String::from("kernel! {\n");
    if let Some(registers) = scenario.registers {
        writeln!(out, "#[maxnreg({registers})]")?;
    }
    let map = if scenario.takes_map {
        ", map: GridConstant<TensorMap>"
    } else {
        ""
    };
    writeln!(
        out,
        "pub fn {name}(input: *const u64, output: *mut u64, memory: *mut u8{map}) {{\nunsafe {{"
    )?;
    if scenario.shared > 0 {
        writeln!(
            out,
            "shared! {{ #[align(1024)] static SHARED: [u8; {}]; }}",
            scenario.shared
        )?;
        writeln!(out, "let shared: *mut u8 = SHARED.as_mut_ptr().cast();")?;
    }
    if scenario.takes_map {
        writeln!(
            out,
            "let tensor_map = map.as_ptr().cast_mut().cast::<u8>();"
        )?;
    }
    for line in scenario.body.lines() {
        if let Some(rest) = line.strip_prefix("var ") {
            let (variable, value) = declaration(rest)?;
            writeln!(out, "let mut {variable}: u64 = {value};")?;
        } else if let Some(rest) = line.strip_prefix("ptr ") {
            let (variable, value) = declaration(rest)?;
            writeln!(out, "let {variable}: *mut u8 = {value};")?;
        } else if let Some(call) = Call::parse(line)? {
            out += &rust_call(&call, mirror, scenario.around_call)?;
        } else {
            writeln!(out, "{line}")?;
        }
    }
    Ok(out + "}\n}\n}\n")
}

/// The kernel in C++.
///
/// # Errors
///
/// The body gives the form other operands than it has.
///
/// `form` is its declaration in the headers; without one, the spec says how C++ says it.
pub fn cxx(
    name: &str,
    scenario: &Scenario,
    form: Option<&Declaration>,
    mirror: Mirror,
) -> Result<String> {
    let attributes = match scenario.registers {
        Some(registers) => format!("__maxnreg__({registers})"),
        None => String::new(),
    };
    let map = if scenario.takes_map {
        ", const __grid_constant__ TensorMap map"
    } else {
        ""
    };
    let mut out = format!(
        "extern \"C\" __global__ void {attributes} {name}(const u64* input, u64* output, u8* memory{map}) {{\n"
    );
    if scenario.shared > 0 {
        writeln!(
            out,
            "__shared__ alignas(1024) u8 shared[{}];",
            scenario.shared
        )?;
    }
    if scenario.takes_map {
        writeln!(
            out,
            "u8* tensor_map = reinterpret_cast<u8*>(const_cast<TensorMap*>(&map));"
        )?;
    }
    for line in scenario.body.lines() {
        if let Some(rest) = line.strip_prefix("var ") {
            writeln!(out, "u64 {rest}")?;
        } else if let Some(rest) = line.strip_prefix("ptr ") {
            writeln!(out, "u8* {rest}")?;
        } else if let Some(call) = Call::parse(line)? {
            out += &match form {
                Some(form) => cxx_call(&call, form, mirror)?,
                None => beyond::call(&call, mirror.variant, scenario.around_call)?,
            };
        } else {
            writeln!(out, "{line}")?;
        }
    }
    Ok(out + "}\n")
}

fn declaration(rest: &str) -> Result<(&str, &str)> {
    rest.trim_end_matches(';')
        .split_once(" = ")
        .with_context(|| format!("expected `NAME = VALUE;`, found `{rest}`"))
}

/// A line that begins with `@`.
struct Call<'b> {
    result: &'b str,
    immediates: Vec<i64>,
    operands: Vec<Vec<&'b str>>,
}

impl<'b> Call<'b> {
    fn parse(line: &'b str) -> Result<Option<Self>> {
        let Some(rest) = line.strip_prefix('@') else {
            return Ok(None);
        };
        let (result, operands) = rest
            .split_once("= (")
            .and_then(|(result, rest)| Some((result.trim(), rest.strip_suffix(')')?)))
            .with_context(|| format!("expected `@RESULT = (OPERANDS)`, found `{line}`"))?;
        let (result, immediates) = match result.split_once('#') {
            None => (result, Vec::new()),
            Some((result, numbers)) => {
                let numbers = numbers.split(',').map(|number| number.trim().parse());
                let numbers = numbers.collect::<Result<_, _>>();
                let numbers =
                    numbers.with_context(|| format!("expected numbers after #, found `{line}`"))?;
                (result.trim(), numbers)
            }
        };
        let operands = operands
            .split(';')
            .map(str::trim)
            .filter(|operand| !operand.is_empty());
        let words = |operand: &'b str| operand.split(" | ").map(str::trim).collect();
        Ok(Some(Self {
            result,
            immediates,
            operands: operands.map(words).collect(),
        }))
    }

    /// The numbers for the immediate operands of the form.
    fn immediates(&self, variant: &Variant) -> Result<Vec<i64>> {
        let lowest = immediates(variant);
        if self.immediates.is_empty() {
            return Ok(lowest);
        }
        ensure!(
            self.immediates.len() == lowest.len(),
            "the body gives {} immediate operands to `{}`, which has {}",
            self.immediates.len(),
            variant.ptx,
            lowest.len()
        );
        Ok(self.immediates.clone())
    }

    fn result(&self) -> &str {
        if self.result.is_empty() {
            "unused"
        } else {
            self.result
        }
    }
}

/// The operands of a call, handed out in order.
#[derive(Default)]
struct Operands<'c> {
    left: std::slice::Iter<'c, Vec<&'c str>>,
}

impl<'c> Operands<'c> {
    fn next(&mut self, words: usize) -> Result<&'c [&'c str]> {
        let operand = self
            .left
            .next()
            .context("the body gives the form too few operands")?;
        ensure!(
            operand.len() == words,
            "the body gives {} words where the form takes {words}: {operand:?}",
            operand.len()
        );
        Ok(operand)
    }

    fn one(&mut self) -> Result<&'c str> {
        Ok(self.next(1)?[0])
    }

    fn end(mut self) -> Result<()> {
        ensure!(
            self.left.next().is_none(),
            "the body gives the form too many operands"
        );
        Ok(())
    }
}

fn rust_call(call: &Call, mirror: Mirror, around: Option<[&str; 2]>) -> Result<String> {
    let variant = mirror.variant;
    let mut immediates = call.immediates(variant)?.into_iter();
    let mut operands = Operands {
        left: call.operands.iter(),
    };
    let mut arguments = Vec::new();
    let (mut before, mut after) = (String::new(), String::new());
    let mut outputs = 0;
    for arg in &variant.args {
        arguments.push(match &arg.ty {
            Type::Tag(tag) => tag.name.clone(),
            Type::Immediate { .. } => {
                format!("n32::<{{{}}}>", immediates.next().unwrap_or_default())
            }
            ty @ Type::Pointer { .. } => format!("({}) as {}", operands.one()?, pointer(ty)),
            Type::Scalar(scalar) => rust_value(*scalar, operands.next(scalar.words())?),
            Type::Array { of, len } => {
                let elements = operands
                    .next(*len)?
                    .iter()
                    .map(|word| rust_value(*of, &[word]));
                format!("[{}]", Vec::from_iter(elements).join(", "))
            }
            Type::InOut { of, len } => {
                let name = format!("inout_{}", arg.name);
                let elements = operands.next(*len)?.iter();
                let elements = elements.map(|word| rust_value(*of, &[word]));
                let elements = Vec::from_iter(elements).join(", ");
                writeln!(
                    before,
                    "let mut {name}: [{}; {len}] = [{elements}];",
                    of.rust()
                )?;
                for k in 0..*len {
                    let word = rust_word(*of, &format!("{name}[{k}]"));
                    writeln!(after, "let {}_{outputs}: u64 = {word};", call.result())?;
                    outputs += 1;
                }
                format!("&mut {name}")
            }
            Type::Out { of, len } => {
                let name = format!("out_{}", arg.name);
                let ty = match len {
                    Some(len) => format!("[{}; {len}]", of.rust()),
                    None => of.rust().to_owned(),
                };
                writeln!(before, "let mut {name}: {ty} = core::mem::zeroed();")?;
                for element in elements(&name, *of, *len) {
                    writeln!(
                        after,
                        "let {}_{outputs}: u64 = {};",
                        call.result(),
                        rust_word(*of, &element)
                    )?;
                    outputs += 1;
                }
                format!("&mut {name}")
            }
        });
    }
    operands
        .end()
        .with_context(|| format!("`{}`", variant.ptx))?;
    let function = &mirror.overload.rust_name;
    let mut text = before;
    let [begin, end] = around.unwrap_or_default();
    if around.is_some() {
        // Operands are there before.
        for (number, argument) in arguments.iter_mut().enumerate() {
            if !argument.starts_with("&mut ") {
                writeln!(text, "let argument_{number} = {argument};")?;
                *argument = format!("argument_{number}");
            }
        }
    }
    writeln!(
        text,
        "{begin}\nlet returned = {function}({});\n{end}",
        arguments.join(", ")
    )?;
    match &variant.result {
        None => {}
        Some(Arg {
            ty: Type::Scalar(scalar),
            ..
        }) if scalar.words() == 1 => {
            writeln!(
                text,
                "let {}: u64 = {};",
                call.result(),
                rust_word(*scalar, "returned")
            )?;
        }
        Some(Arg { ty, .. }) => {
            if *ty == Type::Scalar(Scalar::U128) {
                text += "let returned = core::mem::transmute::<u128, [u64; 2]>(returned);\n";
            }
            let (of, len) = match ty {
                Type::Scalar(scalar) => (Scalar::U64, scalar.words()),
                Type::Array { of, len } => (*of, *len),
                other => anyhow::bail!("a result of type {other:?}"),
            };
            for k in 0..len {
                let word = rust_word(of, &format!("returned[{k}]"));
                writeln!(text, "let {}_{k}: u64 = {word};", call.result())?;
            }
        }
    }
    Ok(text + &after)
}

fn elements(name: &str, of: Scalar, len: Option<usize>) -> Vec<String> {
    match (len, of.words()) {
        (Some(len), _) => (0..len).map(|k| format!("{name}[{k}]")).collect(),
        (None, 1) => vec![name.to_owned()],
        (None, words) => (0..words).map(|k| format!("{name}[{k}]")).collect(),
    }
}

fn rust_value(scalar: Scalar, words: &[&str]) -> String {
    match (scalar, words) {
        (Scalar::Bool, [word]) => format!("({word}) != 0"),
        (_, [word]) => format!("value::<{}>({word})", scalar.rust()),
        (Scalar::U128, words) => format!("core::mem::transmute::<_, u128>([{}])", words.join(", ")),
        (_, words) => format!("[{}]", words.join(", ")),
    }
}

fn rust_word(scalar: Scalar, value: &str) -> String {
    match scalar {
        Scalar::Bool => format!("flag({value})"),
        _ => format!("word({value})"),
    }
}

fn cxx_call(call: &Call, form: &Declaration, mirror: Mirror) -> Result<String> {
    let immediates = call.immediates(mirror.variant)?;
    let immediate = immediates.first().copied().unwrap_or_default();
    let mut operands = Operands {
        left: call.operands.iter(),
    };
    let mut arguments = Vec::new();
    let (mut before, mut after) = (String::new(), String::new());
    let mut outputs = 0;
    for (position, slot) in form.slots.iter().enumerate() {
        arguments.push(match slot {
            Slot::Tag(tag) => format!("cuda::ptx::{tag}"),
            Slot::Immediate => format!("cuda::ptx::n32_t<{immediate}>{{}}"),
            Slot::Pointer(ty) => format!("reinterpret_cast<{ty}>({})", operands.one()?),
            Slot::Value(scalar) => cxx_value(scalar.name, operands.next(scalar.parts)?),
            Slot::Array(scalar, length) => {
                let elements = operands
                    .next(*length)?
                    .iter()
                    .map(|word| cxx_value(scalar.name, &[word]));
                let name = format!("array_{position}");
                let elements = Vec::from_iter(elements).join(", ");
                writeln!(before, "{} {name}[{length}] = {{{elements}}};", scalar.name)?;
                name
            }
            Slot::Output(scalar, length) => {
                let name = format!("out_{position}");
                let brackets = length
                    .map(|length| format!("[{length}]"))
                    .unwrap_or_default();
                writeln!(before, "{} {name}{brackets};", scalar.name)?;
                let elements = match length {
                    Some(length) => (0..*length).map(|k| format!("{name}[{k}]")).collect(),
                    None => vec![name.clone()],
                };
                for element in elements {
                    writeln!(after, "{}_{outputs} = word({element});", call.result())?;
                    outputs += 1;
                }
                name
            }
        });
    }
    operands
        .end()
        .with_context(|| format!("`{}`", form.variant.asm))?;
    // A block of its own, so that the names of two calls do not meet; results are declared before it.
    let mut text = String::new();
    let single = form.result.filter(|result| result.parts == 1).is_some();
    let many = form
        .result
        .map_or(0, |result| if result.parts > 1 { result.parts } else { 0 });
    if single {
        writeln!(text, "u64 {};", call.result())?;
    }
    for k in 0..many.max(outputs) {
        writeln!(text, "u64 {}_{k};", call.result())?;
    }
    writeln!(text, "{{\n{before}")?;
    let called = format!(
        "{}({})",
        cxx::function(form, immediate),
        arguments.join(", ")
    );
    match form.result {
        None => writeln!(text, "{called};")?,
        Some(result) if result.parts == 1 => {
            writeln!(
                text,
                "{} returned = {called};\n{} = word(returned);",
                result.name,
                call.result()
            )?;
        }
        Some(result) => {
            writeln!(text, "{} returned = {called};", result.name)?;
            for k in 0..result.parts {
                writeln!(text, "{}_{k} = returned.part[{k}];", call.result())?;
            }
        }
    }
    Ok(text + &after + "}\n")
}

fn cxx_value(name: &str, words: &[&str]) -> String {
    match (name, words) {
        ("bool", [word]) => format!("({word}) != 0"),
        (_, [word]) => format!("value<{name}>({word})"),
        (_, words) => format!("{name}{{{{{}}}}}", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_operands_of_several_words() {
        let call = Call::parse("@r = (at(memory, 8 * i); get(input, 1) | get(input, 2))")
            .unwrap()
            .unwrap();
        assert_eq!(call.result(), "r");
        assert_eq!(
            call.operands,
            [
                vec!["at(memory, 8 * i)"],
                vec!["get(input, 1)", "get(input, 2)"]
            ]
        );
        assert!(call.immediates.is_empty());
        let call = Call::parse("@ #5 = ()").unwrap().unwrap();
        assert_eq!((call.result, &call.immediates[..]), ("", &[5][..]));
        assert!(call.operands.is_empty());
        let call = Call::parse("@r #-1, 0 = (x)").unwrap().unwrap();
        assert_eq!((call.result, &call.immediates[..]), ("r", &[-1, 0][..]));
        assert!(Call::parse("put(output, 0, 1);").unwrap().is_none());
        assert!(Call::parse("@r = get(input, 0)").is_err());
    }
}
