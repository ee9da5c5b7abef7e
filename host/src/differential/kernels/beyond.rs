//! The call, in C++, of a form that `cuda::ptx` lacks: variables with the names of its arguments, and the statement on
//! them that parity compares too.

use anyhow::{Context, Result, ensure};

use super::{Call, Operands};
use crate::parity::beyond::{Output, pointee, register, statement};
use crate::spec::{Arg, Scalar, Type, Variant};

pub(super) fn call(call: &Call, variant: &Variant, around: Option<[&str; 2]>) -> Result<String> {
    let immediates = call.immediates(variant)?;
    let mut block = Block {
        result: call.result(),
        operands: Operands {
            left: call.operands.iter(),
        },
        ..Block::default()
    };
    let mut numbers = immediates.iter().copied();
    for (position, arg) in variant.args.iter().enumerate() {
        block.argument(position, arg, &mut numbers)?;
    }
    block.returned(variant)?;
    let Block {
        results,
        values,
        variables,
        after,
        operands,
        ..
    } = block;
    operands
        .end()
        .with_context(|| format!("`{}`", variant.ptx))?;
    let statement = statement(variant, &immediates);
    let statement = match around {
        Some([begin, end]) => format!("::{begin}\n{statement}\n::{end}"),
        None => statement,
    };
    let lines = [&values, &variables, &vec![statement], &after].map(|lines| lines.join("\n"));
    let [values, variables, statement, after] = lines;
    let results = results.iter().map(|name| format!("u64 {name};\n"));
    let results = String::from_iter(results);
    Ok(format!(
        "{results}{{\n{values}\n{{\n{variables}\n{statement}\n{after}\n}}\n}}\n"
    ))
}

/// The parts of the call under construction.
#[derive(Default)]
struct Block<'c> {
    /// The name of the result in the body.
    result: &'c str,
    operands: Operands<'c>,
    /// The words that the body can read afterwards.
    results: Vec<String>,
    /// The operands, evaluated before the name of an argument can hide one of the body's.
    values: Vec<String>,
    variables: Vec<String>,
    after: Vec<String>,
}

impl Block<'_> {
    fn argument(
        &mut self,
        position: usize,
        arg: &Arg,
        immediates: &mut impl Iterator<Item = i64>,
    ) -> Result<()> {
        let name = &arg.name;
        let variable = match &arg.ty {
            Type::Tag(_) => return Ok(()),
            Type::Immediate { .. } => {
                let number = immediates.next().unwrap_or_default();
                format!("constexpr int32_t {name} = {number};")
            }
            Type::Pointer { to, .. } => {
                let (to, word) = (pointee(*to), &self.take(position, 1)?[0]);
                format!("{to}* {name} = reinterpret_cast<{to}*>({word});")
            }
            Type::Scalar(Scalar::Bool) => {
                let word = &self.take(position, 1)?[0];
                format!("bool {name} = ({word}) != 0;")
            }
            Type::Scalar(of) if of.words() == 1 => {
                let word = &self.take(position, 1)?[0];
                format!("{} {name} = {};", register(*of), value(*of, word))
            }
            Type::Scalar(of) => {
                let words = self.take(position, of.words())?;
                format!("u64 {name}[] = {{{}}};", words.join(", "))
            }
            Type::Array { of, len } | Type::InOut { of, len } => {
                let words = self.take(position, *len)?;
                let values = Vec::from_iter(words.iter().map(|word| value(*of, word)));
                if matches!(arg.ty, Type::InOut { .. }) {
                    let elements = (0..*len).map(|index| format!("{name}[{index}]"));
                    self.outputs(Vec::from_iter(elements), *of);
                }
                format!("{} {name}[] = {{{}}};", register(*of), values.join(", "))
            }
            Type::Out { .. } => {
                let output = output(name, &arg.ty)?;
                self.outputs(output.elements, output.of);
                output.declaration
            }
        };
        self.variables.push(variable);
        Ok(())
    }

    /// The names of the words of the next operand.
    fn take(&mut self, position: usize, words: usize) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for (index, word) in self.operands.next(words)?.iter().enumerate() {
            let name = format!("operand_{position}_{index}");
            self.values.push(format!("auto {name} = {word};"));
            names.push(name);
        }
        Ok(names)
    }

    /// Words of output besides the result.
    fn outputs(&mut self, elements: Vec<String>, of: Scalar) {
        for element in elements {
            let name = format!("{}_{}", self.result, self.results.len());
            self.store(name, of, &element);
        }
    }

    fn returned(&mut self, variant: &Variant) -> Result<()> {
        let Some(result) = &variant.result else {
            return Ok(());
        };
        let output = output(&result.name, &result.ty)?;
        self.variables.push(output.declaration);
        if let [element] = &output.elements[..] {
            self.store(self.result.to_owned(), output.of, element);
            return Ok(());
        }
        ensure!(
            self.results.is_empty(),
            "`{}` has outputs besides a result of several words",
            variant.ptx
        );
        self.outputs(output.elements, output.of);
        Ok(())
    }

    fn store(&mut self, name: String, of: Scalar, element: &str) {
        let word = match of {
            Scalar::Bool => format!("::flag({element})"),
            _ => format!("::word(static_cast<{}>({element}))", register(of)),
        };
        self.after.push(format!("{name} = {word};"));
        self.results.push(name);
    }
}

fn output(name: &str, ty: &Type) -> Result<Output> {
    Output::new(name, ty).with_context(|| format!("`{name}` is no output: {ty:?}"))
}

/// A word of the body as the value of a register. `::`, as arguments may be called like the functions of the prelude.
fn value(of: Scalar, word: &str) -> String {
    format!("::value<{}>({word})", register(of))
}
