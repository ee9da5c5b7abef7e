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
    let characters = characters.as_bytes();
    let mut bytes = [0; 16];
    let mut index = 0;
    while index < characters.len() {
        bytes[index] = characters[index];
        index += 1;
    }
    u128::from_le_bytes(bytes)
}
