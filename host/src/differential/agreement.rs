//! What a launch gave against what it must give, and against what the other language gave.

use super::scenario::{Case, POISON, Word};

/// What one launch gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The words of output, those behind the end too.
    pub output: Vec<u64>,
    /// The global memory.
    pub memory: Vec<u8>,
}

/// Compares what the kernels in Rust and in C++ gave, where launches give the same each time.
///
/// # Errors
///
/// The first difference.
pub fn of_languages(
    expected: &[Word],
    [rust, cpp]: [&Found; 2],
    case: &Case,
) -> Result<(), String> {
    for (at, (rust, cpp)) in rust.output.iter().zip(&cpp.output).enumerate() {
        let reproducible = expected
            .get(at)
            .map_or(u64::MAX, |word| word.reproducible());
        if rust & reproducible != cpp & reproducible {
            return Err(format!(
                "word {at} of the output: Rust {rust:#x}, C++ {cpp:#x}"
            ));
        }
    }
    if case.expected.memory.is_empty() {
        return Ok(());
    }
    match rust
        .memory
        .iter()
        .zip(&cpp.memory)
        .position(|(rust, cpp)| rust != cpp)
    {
        None => Ok(()),
        Some(at) => Err(format!(
            "byte {at} of global memory: Rust {:#x}, C++ {:#x}",
            rust.memory[at], cpp.memory[at]
        )),
    }
}

/// Compares what a launch gave with what it must give; `expected` are the words that the case expects.
///
/// # Errors
///
/// The first difference.
pub fn with_isa(expected: &[Word], found: &Found, case: &Case) -> Result<(), String> {
    let (words, guard) = found.output.split_at(expected.len());
    let wrong = expected
        .iter()
        .zip(words)
        .position(|(expected, found)| !expected.fits(*found));
    if let Some(at) = wrong {
        return Err(format!(
            "word {at} of the output: expected {}, found {:#x}",
            describe(expected[at]),
            words[at]
        ));
    }
    if let Some(at) = guard.iter().position(|word| *word != POISON) {
        return Err(format!(
            "word {} of the output: expected nothing to be written behind the end, found {:#x}",
            expected.len() + at,
            guard[at]
        ));
    }
    if let Some(relation) = &case.expected.relation {
        relation(words)?;
    }
    let memory = &case.expected.memory;
    match memory
        .iter()
        .zip(&found.memory)
        .position(|(expected, found)| expected != found)
    {
        None => Ok(()),
        Some(at) => Err(format!(
            "byte {at} of global memory: expected {:#x}, found {:#x}",
            memory[at], found.memory[at]
        )),
    }
}

pub(super) fn describe(word: Word) -> String {
    match word {
        Word::Is(word) => format!("{word:#x}"),
        Word::Masked(word, mask) => format!("{word:#x} in the bits {mask:#x}"),
        Word::Within(low, high) => format!("{low} to {high}"),
        Word::Opaque(_) | Word::Free => "anything".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::scenario;
    use crate::driver::Launch;

    fn found(output: &[u64]) -> Found {
        Found {
            output: [output, &[POISON; 16]].concat(),
            memory: Vec::new(),
        }
    }

    fn case() -> Case {
        let images = crate::differential::form::Form {
            kernel: String::new(),
            family: None,
            function: "exit".to_owned(),
            instruction: "exit".to_owned(),
            tags: Vec::new(),
            operands: Vec::new(),
            immediates: 0,
            outputs: 0,
            result: None,
        };
        let scenario = scenario::of(&images).unwrap_or_else(|reason| panic!("{reason}"));
        let case = (scenario.cases)(1).remove(0);
        assert_eq!(case.launch, Launch::new(1, 256));
        case
    }

    #[test]
    fn the_first_difference_is_named() {
        let expected = [
            Word::Is(1),
            Word::Masked(0xff, 0xf0),
            Word::Opaque(u64::MAX),
        ];
        let agrees = |words: &[u64]| with_isa(&expected, &found(words), &case());
        assert_eq!(agrees(&[1, 0xf3, 9]), Ok(()));
        assert_eq!(
            agrees(&[2, 0xf3, 9]),
            Err("word 0 of the output: expected 0x1, found 0x2".to_owned())
        );
        assert!(
            agrees(&[1, 0x13, 9])
                .unwrap_err()
                .contains("in the bits 0xf0")
        );
    }

    #[test]
    fn what_the_isa_leaves_open_must_still_be_the_same() {
        let agree = |words: [u64; 2]| {
            let [rust, cpp] = words.map(|word| found(&[word]));
            of_languages(&[Word::Opaque(0xff)], [&rust, &cpp], &case())
        };
        assert_eq!(agree([5, 0x105]), Ok(()));
        assert!(agree([5, 6]).is_err());
    }

    #[test]
    fn a_word_behind_the_end_is_found() {
        let mut found = found(&[1]);
        found.output[3] = 0;
        assert!(
            with_isa(&[Word::Is(1)], &found, &case())
                .unwrap_err()
                .contains("behind the end")
        );
    }
}
