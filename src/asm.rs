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
