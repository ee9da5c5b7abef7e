//! Text in inline assembly: `<text N>` becomes the characters that the number `N` holds.
//!
//! A `const` operand of `asm!` is a number. `cuda_ptx` passes up to 16 characters of an instruction in
//! one, the first in the lowest byte, so that they can depend on a type.

use anyhow::{Context, Result, ensure};

const BEGIN: &str = "<text ";
const END: char = '>';

/// Writes all texts of a module.
pub fn write(ir: &str) -> Result<String> {
    let mut out = String::with_capacity(ir.len());
    for line in ir.split_inclusive('\n') {
        match line.contains(BEGIN) && line.contains(" asm ") {
            true => out.push_str(
                &line_with_texts(line)
                    .with_context(|| format!("in the IR line `{}`", line.trim_end()))?,
            ),
            false => out.push_str(line),
        }
    }
    Ok(out)
}

fn line_with_texts(line: &str) -> Result<String> {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (number, tail) = after.split_once(END).context("a text without an end")?;
        let number: u128 = number
            .parse()
            .with_context(|| format!("expected a text as a number, found `{number}`"))?;
        out.push_str(before);
        out.push_str(&characters(number)?);
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

fn characters(number: u128) -> Result<String> {
    let bytes = number.to_le_bytes();
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_text = |byte: &u8| {
        matches!(byte, b' ' | b',' | b'-' | b'.' | b':' | b'_') || byte.is_ascii_alphanumeric()
    };
    ensure!(
        text.iter().all(is_text) && bytes[text.len()..].iter().all(|byte| *byte == 0),
        "the number {number} does not hold the characters of an instruction"
    );
    Ok(text.iter().copied().map(char::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> u128 {
        text.bytes()
            .rev()
            .fold(0, |number, byte| number << 8 | u128::from(byte))
    }

    #[test]
    fn a_number_becomes_its_characters() {
        let (types, tail) = (number(".f16.e4m3.e5m2"), number(", 1, -1"));
        let ir = format!(
            "  call void asm \"a<text {types}><text 0> $0<text {tail}>;\", \"r\"(i32 %0)\n  ret void\n"
        );
        assert_eq!(
            write(&ir).unwrap(),
            "  call void asm \"a.f16.e4m3.e5m2 $0, 1, -1;\", \"r\"(i32 %0)\n  ret void\n"
        );
    }

    #[test]
    fn other_strings_are_left_alone() {
        let ir = "@s = constant [9 x i8] c\"<text 5>\\00\"\n";
        assert_eq!(write(ir).unwrap(), ir);
    }

    #[test]
    fn a_number_that_is_no_text_is_an_error() {
        for text in ["<text 34>", "<text -1>", "<text 65", "<text 4259905>"] {
            assert!(
                write(&format!("  call void asm \"{text}\", \"\"()\n")).is_err(),
                "{text}"
            );
        }
    }
}
