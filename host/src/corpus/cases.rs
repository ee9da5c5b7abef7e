//! The kernels that run: their inputs and what they must leave in memory.

use serde::{Deserialize, Serialize};

use super::model::*;
use crate::guide::check::Element;

/// Threads of a block in most launches: eight warps.
const THREADS: u32 = 256;
/// Words in a row of notes, as in `ptx/corpus/src/thread.rs`.
pub const ROW: usize = 1024;
/// Rows that the notes have.
pub const NOTE_ROWS: usize = 8;
/// How often the loops run.
const N: u32 = 5;

/// One launch.
#[derive(Debug, Clone)]
pub struct Case {
    /// The kernel's name.
    pub kernel: String,
    /// Blocks of the grid.
    pub blocks: u32,
    /// The third parameter.
    pub n: u32,
    /// One word for each thread of a block.
    pub data: Vec<u32>,
    /// What the notes hold before.
    pub notes: Vec<u32>,
    /// The data behind the launch, where they are determined.
    pub data_after: Vec<Option<u32>>,
    /// The notes behind the launch, where they are determined.
    pub notes_after: Vec<Option<u32>>,
}

/// Which threads have odd numbers, on which the kernels branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Odd {
    /// Some lanes of each warp.
    Lanes,
    /// Some warps.
    Warps,
    /// All threads, and they have the same number.
    All,
}

/// Whether the warps of a block may be at different barrier instructions: in the two arms of a branch.
///
/// The PTX ISA allows it of `bar.sync`, whose barrier is one for all of them. CUDA C++ does not of
/// `__syncthreads()`, and `synccheck` reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Warps {
    /// They may, which shows whether an arm lost its barrier.
    Apart,
    /// All warps take the same arm.
    Together,
}

/// All launches.
#[must_use]
pub fn cases(warps: Warps) -> Vec<Case> {
    let mut cases = shapes(warps);
    cases.extend(order());
    cases
}

/// Which threads of a block may be at different places in the code when they execute an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Apart {
    /// All of them.
    Lanes,
    /// Those of different warps.
    Warps,
    /// None: a warpgroup executes the operation together.
    None,
}

/// An operation that any number of warps may execute.
struct Kind {
    name: &'static str,
    model: Operation,
    apart: Apart,
    /// Whether it is in the `hard_shapes!` of `ptx/corpus` alone.
    hard: bool,
}

const OPERATIONS: [Kind; 24] = {
    const fn kind(name: &'static str, model: Operation, apart: Apart, hard: bool) -> Kind {
        Kind {
            name,
            model,
            apart,
            hard,
        }
    }
    use Apart::{Lanes, None, Warps};
    [
        kind("bar_sync", barrier, Warps, false),
        kind("barrier_sync", barrier, Lanes, false),
        kind("syncthreads", barrier, Warps, false),
        kind("bar_warp_sync", barrier, Warps, false),
        kind("shfl", add_neighbour, Warps, false),
        kind("barrier_sync_aligned", barrier, Warps, true),
        kind("barrier_red", add_odd_of_block, Lanes, true),
        kind("barrier_red_aligned", add_any_odd_of_block, Warps, true),
        kind("barrier_arrive", barrier, Lanes, true),
        kind("barrier_arrive_aligned", barrier, Warps, true),
        kind("redux", sum_of_warp, Warps, true),
        kind("ballot", add_odd_lanes, Warps, true),
        kind("vote_any", add_any_odd, Warps, true),
        kind("match_any", add_equal_lanes, Warps, true),
        kind("match_all", add_lanes_if_equal, Warps, true),
        kind("movmatrix", transpose, Warps, true),
        kind("mma", multiply, Warps, true),
        kind("mma_sp", barrier, Warps, true),
        kind("wgmma_fence", barrier, None, true),
        kind("wgmma_commit", barrier, None, true),
        kind("wgmma_wait", barrier, None, true),
        kind("cluster_aligned", barrier, Warps, true),
        kind("dependents", barrier, Lanes, true),
        kind("dependencies", barrier, Lanes, true),
    ]
};

fn shapes(warps: Warps) -> Vec<Case> {
    let mut cases = Vec::new();
    for (shape, divergence, model) in SHAPES {
        let there = |kind: &&Kind| !kind.hard || HARD.contains(&shape);
        for kind in OPERATIONS.iter().filter(there) {
            let odd = match divergence {
                Divergence::Never => Odd::Lanes,
                Divergence::InArms => match kind.apart {
                    Apart::Lanes => Odd::Lanes,
                    Apart::Warps if warps == Warps::Apart => Odd::Warps,
                    _ => Odd::All,
                },
                Divergence::Always => Odd::All,
            };
            // The assertions are that every number is below `n`.
            let n = if shape == "between_assertions" {
                100
            } else {
                N
            };
            let data = numbers(odd, THREADS);
            let mut block = Block::new(&data, n, kind.model);
            model(&mut block);
            cases.push(Case {
                kernel: format!("{shape}_{}", kind.name),
                notes: vec![u32::POISON; block.notes.len()],
                data_after: known(&block.x),
                notes_after: known(&block.notes),
                ..Case::new("", n, &data)
            });
        }
    }
    cases
}

/// The `hard_shapes!`.
const HARD: [&str; 9] = [
    "between_ifs",
    "generic_between_ifs",
    "arms_end_alike",
    "arms_begin_alike",
    "match_arms",
    "result_on_one_side",
    "invariant",
    "unswitchable",
    "splittable",
];

/// Small numbers.
fn numbers(odd: Odd, threads: u32) -> Vec<u32> {
    let number = |thread: u32| match odd {
        Odd::Lanes => (thread * 7 + 3) % 10,
        Odd::Warps => (thread / 32 * 7 + 3) % 10,
        Odd::All => 3,
    };
    (0..threads).map(number).collect()
}

fn known(words: &[u32]) -> Vec<Option<u32>> {
    words.iter().copied().map(Some).collect()
}

impl Case {
    /// A launch of one block that leaves everything as it is.
    fn new(kernel: &str, n: u32, data: &[u32]) -> Self {
        let notes = vec![u32::POISON; NOTE_ROWS * ROW];
        Self {
            kernel: kernel.to_owned(),
            blocks: 1,
            n,
            data: data.to_vec(),
            data_after: known(data),
            notes_after: known(&notes),
            notes,
        }
    }

    /// Each thread's word behind the launch.
    fn leaves(mut self, word: impl Fn(usize) -> u32) -> Self {
        self.data_after = (0..self.data.len()).map(|i| Some(word(i))).collect();
        self
    }

    /// Words at the start of the notes behind the launch.
    fn notes(mut self, words: impl IntoIterator<Item = Option<u32>>) -> Self {
        for (note, word) in self.notes_after.iter_mut().zip(words) {
            *note = word;
        }
        self
    }
}

/// The kernels of `ptx/corpus/src/sm_90a/order.rs`.
fn order() -> Vec<Case> {
    let data = numbers(Odd::Lanes, THREADS);
    let warps = numbers(Odd::Warps, THREADS);
    let (warp, one) = (&data[..32], &data[..1]);
    let reversed = |i: usize| data[data.len() - 1 - i];
    let case = |kernel: &str| Case::new(kernel, N, &data);

    let mut poll = Case::new("order_poll_flag", N, one).notes([Some(1), Some(one[0])]);
    poll.notes[0] = 1;
    let undetermined = |mut case: Case| {
        case.data_after.fill(None);
        case
    };
    let odd_notes = |case: Case, factor: u32| {
        let rows = [1, factor].map(|factor| {
            let note = |&x: &u32| if x % 2 == 1 { x * factor } else { u32::POISON };
            let mut row: Vec<_> = data.iter().map(note).map(Some).collect();
            row.resize(ROW, Some(u32::POISON));
            row
        });
        case.notes(rows.concat())
    };
    vec![
        case("order_exchange").leaves(reversed),
        case("order_exchange_by_function").leaves(reversed),
        case("order_exchange_by_intrinsic").leaves(reversed),
        // Any lane may be the elected one, so all lanes of a warp have the same number.
        Case::new("order_broadcast", N, &warps),
        case("order_exchange_twice").leaves(|i| data[i] + N),
        // An odd number of exchanges.
        case("order_exchange_in_loop").leaves(|i| reversed(i) + N),
        case("order_bulk_store").notes(data.iter().map(|x| Some(x + 1))),
        case("order_bulk_source_reused")
            .leaves(|_| N)
            .notes(known(&data)),
        case("order_bulk_load").leaves(reversed),
        case("order_arrive_and_wait").leaves(reversed),
        undetermined(case("order_two_phases")),
        poll,
        Case::new("order_publish", N, one)
            .leaves(|_| N)
            .notes([Some(1)]),
        Case::new("order_overwrite", N, one).leaves(|_| N + 1),
        Case {
            blocks: 2,
            ..case("order_cluster").leaves(reversed)
        },
        Case::new("order_matrix", N, warp).leaves(|i| warp[i] + 1),
        Case::new("order_tensormap", N, warp).notes([Some(N); 32]),
        undetermined(case("order_clock")),
        odd_notes(case("order_call_by_pointer").leaves(|i| data[i] * 2), 2),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_kernel_of_its_own() {
        let cases = cases(Warps::Apart);
        let mut names: Vec<_> = cases.iter().map(|case| &case.kernel).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), cases.len());
        assert!(names.len() >= 60, "{}", names.len());
    }

    #[test]
    fn warps_are_in_both_arms_or_in_one() {
        let arms = |warps| {
            let cases = cases(warps);
            let case = cases
                .into_iter()
                .find(|case| case.kernel == "arms_end_alike_bar_sync")
                .unwrap();
            let odd = case.data.iter().filter(|x| *x % 2 == 1).count();
            (odd > 0, odd < case.data.len())
        };
        assert_eq!(arms(Warps::Apart), (true, true));
        assert_eq!(arms(Warps::Together), (true, false));
    }

    #[test]
    fn what_an_unswitchable_loop_leaves() {
        let cases = cases(Warps::Apart);
        let case = |name: &str| cases.iter().find(|case| case.kernel == name).unwrap();
        let barrier = case("unswitchable_bar_sync");
        // Thread 0 has 3, which is odd, and xors it with 0 to 4.
        assert_eq!(barrier.data[0], 3);
        assert_eq!(barrier.data_after[0], Some(7));
        assert_eq!(barrier.notes_after[2 * ROW], Some(2));
        // Thread 1 has 0, which is even.
        assert_eq!(barrier.notes_after[2 * ROW + 1], Some(u32::POISON));
        // With `shfl` both get 3 + 0 in the first iteration.
        let shfl = case("unrollable_shfl");
        assert_eq!(shfl.data_after[0], shfl.data_after[1]);
    }
}
