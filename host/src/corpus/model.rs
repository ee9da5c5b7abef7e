//! What the shapes of `ptx/corpus/src/shapes.rs` compute, for a whole block at once.

use super::cases::{NOTE_ROWS, ROW};
use crate::guide::check::Element;

/// What an operation does with the numbers of a block's threads.
pub type Operation = fn(&[u32]) -> Vec<u32>;

/// A barrier changes no number, and neither does a product with zeros.
pub fn barrier(x: &[u32]) -> Vec<u32> {
    x.to_vec()
}

/// `shfl`: each lane adds its neighbour's number.
pub fn add_neighbour(x: &[u32]) -> Vec<u32> {
    (0..x.len())
        .map(|thread| x[thread].wrapping_add(x[thread ^ 1]))
        .collect()
}

/// `barrier.red.popc`: each thread adds how many numbers of the block are odd.
pub fn add_odd_of_block(x: &[u32]) -> Vec<u32> {
    let odd = x.iter().map(|x| x % 2).sum();
    x.iter().map(|x| x.wrapping_add(odd)).collect()
}

/// `barrier.red.or`: each thread adds whether a number of the block is odd.
pub fn add_any_odd_of_block(x: &[u32]) -> Vec<u32> {
    let any = u32::from(x.iter().any(|x| x % 2 == 1));
    x.iter().map(|x| x.wrapping_add(any)).collect()
}

/// What each lane makes of the numbers of its warp.
fn by_warp(x: &[u32], lane: impl Fn(&[u32], usize) -> u32) -> Vec<u32> {
    let warp = |warp: &[u32]| Vec::from_iter((0..warp.len()).map(|i| lane(warp, i)));
    x.chunks(32).flat_map(warp).collect()
}

/// The lanes of which something holds.
fn lanes(warp: &[u32], holds: impl Fn(u32) -> bool) -> u32 {
    let bit = |(lane, &x): (usize, &u32)| u32::from(holds(x)) << lane;
    warp.iter().enumerate().map(bit).sum()
}

/// `redux.sync.add`: the sum of the warp.
pub fn sum_of_warp(x: &[u32]) -> Vec<u32> {
    by_warp(x, |warp, _| {
        warp.iter().fold(0, |sum, x| sum.wrapping_add(*x))
    })
}

/// `vote.sync.ballot`: each lane adds the mask of odd numbers.
pub fn add_odd_lanes(x: &[u32]) -> Vec<u32> {
    by_warp(x, |warp, i| {
        warp[i].wrapping_add(lanes(warp, |x| x % 2 == 1))
    })
}

/// `vote.sync.any`: each lane adds whether one has an odd number.
pub fn add_any_odd(x: &[u32]) -> Vec<u32> {
    by_warp(x, |warp, i| {
        warp[i].wrapping_add(u32::from(warp.iter().any(|x| x % 2 == 1)))
    })
}

/// `match.any.sync`: each lane adds the mask of those that have its number.
pub fn add_equal_lanes(x: &[u32]) -> Vec<u32> {
    by_warp(x, |warp, i| {
        warp[i].wrapping_add(lanes(warp, |x| x == warp[i]))
    })
}

/// `match.all.sync`: each lane adds the mask of all if they have one number.
pub fn add_lanes_if_equal(x: &[u32]) -> Vec<u32> {
    by_warp(x, |warp, i| match lanes(warp, |x| x == warp[i]) {
        u32::MAX => warp[i].wrapping_add(u32::MAX),
        _ => warp[i],
    })
}

/// `movmatrix`: lane `i` has two halves of row `i / 4`, from column `i % 4 * 2` on.
pub fn transpose(x: &[u32]) -> Vec<u32> {
    let at = |warp: &[u32], row: usize, column: usize| {
        warp[row * 4 + column / 2] >> (column % 2 * 16) & 0xffff
    };
    by_warp(x, |warp, i| {
        let (row, column) = (i / 4, i % 4 * 2);
        at(warp, column, row) | at(warp, column + 1, row) << 16
    })
}

/// `mma.m8n8k16`: lane `i` has four bytes of row `i / 4` of A and of column `i / 4` of B, and two elements of C in that
/// row; A and B are the same bytes, and each element of C is the lane's number.
pub fn multiply(x: &[u32]) -> Vec<u32> {
    by_warp(x, |warp, i| {
        let bytes = |line: usize| warp[line * 4..][..4].iter().flat_map(|x| x.to_le_bytes());
        let element = |column: usize| {
            let products = bytes(i / 4).zip(bytes(column));
            let sum: u32 = products.map(|(a, b)| u32::from(a) * u32::from(b)).sum();
            sum.wrapping_add(warp[i])
        };
        let column = i % 4 * 2;
        element(column) ^ element(column + 1).wrapping_mul(3)
    })
}

/// The threads of a block.
pub struct Block {
    /// The number that each thread works on, in the end its word of the data.
    pub x: Vec<u32>,
    pub notes: Vec<u32>,
    n: u32,
    operation: Operation,
}

impl Block {
    pub fn new(x: &[u32], n: u32, operation: Operation) -> Self {
        Self {
            x: x.to_vec(),
            notes: vec![u32::POISON; NOTE_ROWS * ROW],
            n,
            operation,
        }
    }

    fn operate(&mut self) {
        self.x = (self.operation)(&self.x);
    }

    fn each(&mut self, change: impl Fn(u32) -> u32) {
        self.x.iter_mut().for_each(|x| *x = change(*x));
    }

    /// Some threads write their number beside the result.
    fn note(&mut self, row: u32, which: impl Fn(usize) -> bool) {
        for (thread, &x) in self
            .x
            .iter()
            .enumerate()
            .filter(|(thread, _)| which(*thread))
        {
            self.notes[row as usize * ROW + thread] = x;
        }
    }

    /// Whether the number of each thread is odd.
    fn odd(&self) -> Vec<bool> {
        self.x.iter().map(|x| x % 2 == 1).collect()
    }

    /// `for i in 0..n { before(i); x = op(x) ^ i; }`.
    fn iterate(&mut self, before: impl Fn(&mut Self, u32)) {
        for i in 0..self.n {
            before(self, i);
            self.operate();
            self.each(|x| x ^ i);
        }
    }
}

/// When the threads of a block may execute a shape's operation at different places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Divergence {
    /// Never: all threads come to the operation together.
    Never,
    /// When some numbers are odd: each arm has the operation.
    InArms,
    /// When the numbers differ: not all threads come to the operation, or not equally often.
    Always,
}

/// A shape that runs: its name, and what it does.
pub type Shape = (&'static str, Divergence, fn(&mut Block));

pub const SHAPES: [Shape; 26] = {
    use Divergence::{Always, InArms, Never};
    [
        ("between_ifs", Never, between_ifs),
        ("generic_between_ifs", Never, between_ifs),
        ("call_between_ifs", Never, |block| {
            let odd = block.odd();
            block.note(0, |thread| odd[thread]);
            block.operate();
            block.each(|x| x.wrapping_mul(5));
            block.note(1, |thread| odd[thread]);
        }),
        ("between_assertions", Never, |block| {
            block.operate();
            block.note(0, |_| true);
        }),
        ("arms_end_alike", InArms, |block| {
            note_side(block);
            block.operate();
        }),
        ("arms_begin_alike", InArms, |block| {
            let odd = block.odd();
            block.operate();
            block.note(0, |thread| odd[thread]);
            block.note(1, |thread| !odd[thread]);
        }),
        ("match_arms", InArms, |block| {
            let arms: Vec<u32> = block.x.iter().map(|x| (x % 4).min(2)).collect();
            for arm in 0..3 {
                block.note(arm, |thread| arms[thread] == arm);
            }
            block.operate();
        }),
        ("call_in_arms", InArms, |block| {
            note_side(block);
            block.operate();
            block.each(|x| x.wrapping_mul(5));
        }),
        ("closure_in_arms", InArms, |block| {
            note_side(block);
            let n = block.n;
            block.each(|x| x + n);
            block.operate();
        }),
        ("before_return", Never, |block| {
            let (odd, before) = (block.odd(), block.x.clone());
            block.note(0, |thread| odd[thread]);
            block.operate();
            keep(block, &before, |thread| odd[thread]);
        }),
        ("result_on_one_side", Never, |block| {
            let (odd, before) = (block.odd(), block.x.clone());
            block.operate();
            keep(block, &before, |thread| !odd[thread]);
        }),
        ("result_unused", Never, |block| block.each(|x| x + 1)),
        ("repeated", Never, |block| {
            let before = block.x.clone();
            block.operate();
            let first = std::mem::replace(&mut block.x, before);
            block.operate();
            for (x, first) in block.x.iter_mut().zip(first) {
                *x ^= first;
            }
        }),
        ("unrollable", Never, |block| block.iterate(|_, _| {})),
        ("generic_loop", Never, |block| block.iterate(|_, _| {})),
        ("invariant", Never, |block| {
            block.operate();
            let n = block.n;
            block.each(|x| x.wrapping_mul(n));
        }),
        ("unswitchable", Never, |block| {
            let odd = block.odd();
            block.iterate(|block, i| block.note(i, |thread| odd[thread]));
        }),
        ("peelable", Never, |block| {
            block.iterate(|block, i| block.note(i, |_| i == 0));
        }),
        ("splittable", Never, |block| {
            let own = block.x.clone();
            block.iterate(|block, i| block.note(i, |thread| i < own[thread]));
        }),
        ("one_arm", Always, |block| {
            if block.odd()[0] {
                block.operate();
            }
        }),
        ("short_circuit", Always, |block| {
            let odd = block.odd()[0];
            block.operate();
            let n = block.n;
            block.each(|x| u32::from(odd && x > n));
        }),
        ("after_return", Always, |block| match block.odd()[0] {
            true => block.note(0, |_| true),
            false => block.operate(),
        }),
        ("divergent_trip_count", Always, |block| {
            for i in 0..block.x[0] {
                block.operate();
                block.each(|x| x ^ i);
            }
        }),
        ("continue", Always, |block| {
            for i in 1..=block.n {
                block.note(i, |_| true);
                if (block.x[0] ^ i) % 2 == 0 {
                    block.operate();
                    block.each(|x| x ^ i);
                }
            }
        }),
        ("break_behind", Always, |block| {
            loop {
                block.operate();
                block.each(|x| x.wrapping_add(1));
                if block.x[0] > block.n {
                    break;
                }
                block.note(0, |_| true);
            }
        }),
        ("in_loop_condition", Always, |block| {
            while (block.operation)(&block.x)[0] < block.n {
                block.note(block.x[0], |_| true);
                block.each(|x| x.wrapping_mul(2).wrapping_add(1));
            }
        }),
    ]
};

fn between_ifs(block: &mut Block) {
    let odd = block.odd();
    block.note(0, |thread| odd[thread]);
    block.operate();
    block.note(1, |thread| odd[thread]);
}

/// A note in row 0 by odd numbers, in row 1 by even ones.
fn note_side(block: &mut Block) {
    let odd = block.odd();
    block.note(0, |thread| odd[thread]);
    block.note(1, |thread| !odd[thread]);
}

/// Some threads leave their word of the data as it was.
fn keep(block: &mut Block, before: &[u32], which: impl Fn(usize) -> bool) {
    for thread in (0..before.len()).filter(|&thread| which(thread)) {
        block.x[thread] = before[thread];
    }
}
