//! What comes out wrong without the marks of the link stage, and without the link stage: tables,
//! recorded in `broken.md` and established again by a test.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::expectation::{Fault, Kernel};

/// A way to build the corpus: the head of a column.
pub const COLUMNS: [&str; 6] = [
    "without marks, 3",
    "rustc, 1",
    "rustc, 2",
    "rustc, 3",
    "rustc, s",
    "rustc, z",
];

/// For each kernel what is wrong with it, by column; nothing where it is as expected.
pub type Facts = BTreeMap<String, [String; COLUMNS.len()]>;

/// Adds one column.
pub fn add(facts: &mut Facts, column: usize, faults: &[(String, Fault)]) {
    for (kernel, fault) in faults {
        facts.entry(kernel.clone()).or_default()[column].clone_from(&fault.what);
    }
}

/// The head of the record.
pub fn introduction(versions: &str) -> String {
    format!(
        "# What goes wrong without the link stage\n\n\
         {versions}\n\n\
         Written and checked by `tests/corpus`. A line is a kernel of `ptx/corpus` that the link \
         stage builds as written at every level; a cell says what became of it: how many of the operation there \
         are *instead of* how many were written. Unrolling with a remainder is as bad as cloning into \
         arms: the threads of a warp may be in different copies. \"Without marks\" is the link stage with \
         `CUDA_PTX_LINK_WITHOUT_CONVERGENCE=1`; \"rustc\" is rustc alone, at the level named. Statics in \
         shared memory are beyond it, so their accesses are all missing there, and the unresolved calls that \
         convert addresses keep it from touching `ldmatrix` and its like. Debug builds are right, with and \
         without.\n"
    )
}

/// What goes wrong for one architecture. Operations of which the same is true in one shape share a line.
pub fn table(arch: &str, corpus: &[Kernel], facts: &Facts) -> String {
    let mut lines: Vec<(&str, Vec<&str>, &[String; COLUMNS.len()])> = Vec::new();
    for kernel in corpus {
        let Some(broken) = facts.get(&kernel.name) else {
            continue;
        };
        let (shape, operation) = kernel.parts();
        let same = lines
            .iter_mut()
            .find(|line| line.0 == shape && line.2 == broken);
        match same {
            Some(line) => line.1.push(operation),
            None => lines.push((shape, vec![operation], broken)),
        }
    }
    lines.sort_by_key(|line| line.0);

    let mut text = format!(
        "\n## {arch}\n\nOf {} kernels, {} go wrong somewhere, {} with rustc alone at level 3.\n\n\
         | shape | operation | {} |\n|---|---|{}\n",
        corpus.len(),
        facts.len(),
        facts.values().filter(|cells| !cells[3].is_empty()).count(),
        COLUMNS.join(" | "),
        "---|".repeat(COLUMNS.len()),
    );
    for (shape, operations, cells) in lines {
        let _ = writeln!(
            text,
            "| {shape} | {} | {} |",
            operations.join(", "),
            cells.join(" | ")
        );
    }
    text
}
