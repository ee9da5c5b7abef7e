//! Reads and compares what the compilers produced: PTX text.
//!
//! | question | answered by |
//! |---|---|
//! | which instructions does this PTX kernel hold? | [`ptx::Module::parse`] |
//! | do two kernels use the same mirrored PTX instructions? | [`ptx::compare_mirrored`] |
//! | is this inline assembly the same, registers renamed? | [`ptx::Kernel::normalised_asm`] |

pub mod multiset;
pub mod ptx;

pub use multiset::{Difference, Multiset};
