//! Which instructions are `cuda::ptx`'s, and whether two kernels use the same ones.

use super::{Instruction, Kernel};
use serde::Serialize;
use std::collections::BTreeSet;

/// Instructions that no compiler emits by itself for ordinary code: each one was asked for.
const ASKED_FOR: &[&str] = &[
    "applypriority",
    "barrier.cluster",
    "clusterlaunchcontrol",
    "cp.async",
    "cp.reduce",
    "elect",
    "fabric",
    "fence",
    "getctarank",
    "ldmatrix",
    "mapa",
    "mbarrier",
    "multimem",
    "prefetch",
    "prefetchu",
    "red.async",
    "setmaxnreg",
    "st.async",
    "st.bulk",
    "stmatrix",
    "tcgen05",
    "tensormap",
];

/// Instructions that compilers emit too: mirrored only where they were written as inline assembly.
const ORDINARY: &[&str] = &[
    "bfind", "bmsk", "exit", "ld", "prmt", "shfl", "shl", "shr", "st", "trap",
];

/// Whether `instruction` comes from `cuda::ptx` rather than from the compiler or from the scaffolding of an asm block.
pub fn is_mirrored(instruction: &Instruction) -> bool {
    let is = |family: &str| in_family(&instruction.opcode, family);
    ASKED_FOR.iter().any(|family| is(family))
        || (instruction.asm_block.is_some() && ORDINARY.iter().any(|f| is(f)))
}

/// Whether `opcode` is `family` or `family` with more qualifiers.
fn in_family(opcode: &str, family: &str) -> bool {
    opcode
        .strip_prefix(family)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The mirrored instructions of two kernels, as sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MirroredComparison {
    /// Opcodes that both sides use.
    pub common: BTreeSet<String>,
    /// Opcodes that only the Rust kernel uses.
    pub only_rust: BTreeSet<String>,
    /// Opcodes that only the C++ kernel uses.
    pub only_cxx: BTreeSet<String>,
}

impl MirroredComparison {
    /// Whether both sides use the same instructions with the same qualifiers.
    pub fn is_equal(&self) -> bool {
        self.only_rust.is_empty() && self.only_cxx.is_empty()
    }
}

/// Compares which mirrored instructions two kernels use, not how often: compilers unroll loops.
pub fn compare_mirrored(rust: &Kernel, cxx: &Kernel) -> MirroredComparison {
    let set = |kernel: &Kernel| {
        kernel
            .mirrored()
            .items()
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    let (rust, cxx) = (set(rust), set(cxx));
    MirroredComparison {
        common: &rust & &cxx,
        only_rust: &rust - &cxx,
        only_cxx: &cxx - &rust,
    }
}
