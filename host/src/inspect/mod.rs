//! Reads and compares what the compilers produced: PTX text and SASS.
//!
//! | question | answered by |
//! |---|---|
//! | which instructions does this PTX kernel hold? | [`ptx::Module::parse`] |
//! | do two kernels use the same mirrored PTX instructions? | [`ptx::compare_mirrored`] |
//! | is this inline assembly the same, registers renamed? | [`ptx::Kernel::normalised_asm`] |
//! | which machine instructions does this cubin hold? | [`sass::disassemble`] |
//! | how far apart are two machine functions? | [`sass::compare`], [`sass::compare_opcodes`] |
//! | does a kernel reach shared memory through generic addresses? | [`sass::generic_accesses`] |
//! | what comes before an instruction on every path, and what is in a loop? | [`flow::Flow`] |
//! | how many registers and how much memory does a kernel take? | [`resources::of_cubin`] |

pub mod flow;
pub mod multiset;
pub mod ptx;
pub mod resources;
pub mod sass;

pub use multiset::{Difference, Multiset};
