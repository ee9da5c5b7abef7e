//! `asm!` for the generated functions.

#[cfg(target_arch = "nvptx64")]
pub(crate) use core::arch::asm;

/// Off the GPU there are no PTX registers: the functions exist for documentation and type checks,
/// and calling one is a mistake.
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! asm {
    ($($instruction:tt)*) => {
        ::core::panic!("a PTX instruction was called off the GPU")
    };
}

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use asm;

/// Up to 16 characters of an instruction as a `const` operand of `asm!`. A template writes
/// `<text {operand}>`, and the link stage puts the characters there.
///
/// So the text can depend on a type, which saves an `asm!` of its own for each.
#[must_use]
pub(crate) const fn text(characters: &str) -> u128 {
    let [text] = texts(characters);
    text
}

/// Up to `16 * N` characters, as operands that follow each other in the template.
#[must_use]
pub(crate) const fn texts<const N: usize>(characters: &str) -> [u128; N] {
    let characters = characters.as_bytes();
    assert!(characters.len() <= 16 * N, "the characters do not fit");
    let mut texts = [0; N];
    let mut index = 0;
    while index < characters.len() {
        texts[index / 16] |= (characters[index] as u128) << (index % 16 * 8);
        index += 1;
    }
    texts
}
