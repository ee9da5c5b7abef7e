//! What the kernels must compute, in plain sequential code.

use std::collections::BTreeSet;
use std::thread;

use anyhow::{Result, ensure};

use super::random::parallelism;

/// The length of the tiles of `track_bulk_copy`.
pub const TILE_LEN: usize = 1024;

const WARP_SIZE: usize = 32;

/// Whose value a thread reads.
fn partner(rank: usize, size: usize) -> usize {
    (rank + size / 2 + 1) % size
}

/// The work between arrival and wait.
fn compute(value: u32, iteration: u32) -> u32 {
    value
        .wrapping_mul(1_664_525)
        .wrapping_add(1_013_904_223)
        .wrapping_add(iteration)
}

/// `init_barrier` and `track_kernel`: each thread gets its partner's element.
pub fn exchange(input: &[u32], block: usize) -> Vec<u32> {
    let read = |of_block: &[u32]| -> Vec<u32> {
        (0..block)
            .map(|rank| of_block[partner(rank, block)])
            .collect()
    };
    input.chunks(block).flat_map(read).collect()
}

/// `split_arrive_wait`: nobody leaves.
pub fn split_arrive_wait(iterations: u32, data: &[u32], block: usize) -> Vec<u32> {
    early_exit(iterations, &vec![u32::MAX; data.len()], data, block)
}

/// `early_exit`: in each iteration, all threads show a value before any reads one.
pub fn early_exit(iterations: u32, leave_at: &[u32], data: &[u32], block: usize) -> Vec<u32> {
    let mut data = data.to_vec();
    for (values, leave_at) in data.chunks_mut(block).zip(leave_at.chunks(block)) {
        let mut shown = [vec![0; block], vec![0; block]];
        for i in 0..iterations {
            let shown = &mut shown[i as usize % 2];
            for rank in 0..block {
                if i < leave_at[rank] {
                    shown[rank] = values[rank];
                    values[rank] = compute(values[rank], i);
                } else if i == leave_at[rank] {
                    shown[rank] = !values[rank];
                }
            }
            for rank in (0..block).filter(|rank| i < leave_at[*rank]) {
                values[rank] ^= shown[partner(rank, block)];
            }
        }
    }
    data
}

/// `psum_barrier`: to its sum, a block adds one element for each thread, each plus the sum so far.
pub fn running_sums(data: &[u32], grid: usize, block: usize) -> Vec<u32> {
    let of_block = |number: usize| {
        let part = data.len() / grid;
        let phases = data[number * part..][..part].chunks(block);
        phases.fold(0u32, |sum, elements| {
            elements.iter().fold(sum, |next, element| {
                next.wrapping_add(*element).wrapping_add(sum)
            })
        })
    };
    (0..grid).map(of_block).collect()
}

/// `warp_entanglement`: of what the lanes of a warp found when they arrived, so many counts differ.
pub fn check_updates(found: &[u32], updates: usize) -> Result<()> {
    for (warp, found) in found.chunks(WARP_SIZE).enumerate() {
        let counts: BTreeSet<_> = found.iter().collect();
        ensure!(
            counts.len() == updates,
            "warp {warp}: expected {updates} updates of the barrier, found {}: {counts:?}",
            counts.len()
        );
    }
    Ok(())
}

/// `track_bulk_copy`: each tile in reverse.
pub fn reverse_tiles(input: &[u32]) -> Vec<u32> {
    input
        .chunks(TILE_LEN)
        .flat_map(|tile| tile.iter().rev().copied())
        .collect()
}

/// How `producer_consumer` is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamShape {
    /// Blocks.
    pub grid: u32,
    /// Threads of a block, the producer's warp included.
    pub block: u32,
    /// Elements of one of the two buffers: a multiple of 4.
    pub buffer_len: u32,
}

/// `producer_consumer`: the sum of each block, with the additions in the kernel's order.
///
/// The comparison is therefore exact; a tolerance would let a missing chunk of small numbers pass.
pub fn block_sums(input: &[f32], shape: StreamShape) -> Vec<f32> {
    let mut sums = vec![0.0; shape.grid as usize];
    let part = sums.len().div_ceil(parallelism()).max(1);
    thread::scope(|scope| {
        for (number, part_of_sums) in sums.chunks_mut(part).enumerate() {
            scope.spawn(move || {
                for (i, sum) in part_of_sums.iter_mut().enumerate() {
                    *sum = block_sum(input, shape, number * part + i);
                }
            });
        }
    });
    sums
}

fn block_sum(input: &[f32], shape: StreamShape, index: usize) -> f32 {
    let consumers = shape.block as usize - WARP_SIZE;
    // Four sums for each consumer, side by side.
    let mut sums = vec![0.0f32; consumers * 4];
    let chunks = input.chunks(shape.buffer_len as usize);
    for chunk in chunks.skip(index).step_by(shape.grid as usize) {
        let (groups, rest) = chunk.split_at(chunk.len() / 4 * 4);
        // The consumers take one group each, and again.
        for row in groups.chunks(sums.len()) {
            for (sum, element) in sums.iter_mut().zip(row) {
                *sum += element;
            }
        }
        for (consumer, element) in rest.iter().enumerate() {
            sums[consumer * 4] += element;
        }
    }
    let of_thread = |sums: &[f32]| (sums[0] + sums[1]) + (sums[2] + sums[3]);
    let producers = [0.0; WARP_SIZE];
    tree_sum(
        producers
            .into_iter()
            .chain(sums.chunks(4).map(of_thread))
            .collect(),
    )
}

/// Adds the upper half to the lower until one value is left.
fn tree_sum(mut values: Vec<f32>) -> f32 {
    while values.len() > 1 {
        let upper = values.split_off(values.len().div_ceil(2));
        for (value, other) in values.iter_mut().zip(upper) {
            *value += other;
        }
    }
    values[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guide::random;

    #[test]
    fn each_thread_gets_its_partner_s_element() {
        // Partners are 4 / 2 + 1 = 3 and 3 / 2 + 1 = 2 threads on.
        assert_eq!(exchange(&[10, 11, 12, 13], 4), [13, 10, 11, 12]);
        assert_eq!(exchange(&[0, 1, 2, 3, 4, 5], 3), [2, 0, 1, 5, 3, 4]);
    }

    #[test]
    fn one_iteration_mixes_the_next_value_with_the_partner_s_old_one() {
        let (a, b, c) = (5, 77, 1000);
        let next = |x: u32| x * 1_664_525 + 1_013_904_223;
        let expected = [next(a) ^ c, next(b) ^ a, next(c) ^ b];
        assert_eq!(split_arrive_wait(1, &[a, b, c], 3), expected);
    }

    #[test]
    fn who_leaves_shows_a_last_value_and_keeps_its_own() {
        // Thread 0 reads thread 2, 1 reads 0, 2 reads 1. Thread 0 leaves at once: thread 1 reads its
        // last value in iteration 0 and the initial 0 of the other tile in iteration 1.
        let found = early_exit(2, &[0, 9, 9], &[5, 6, 7], 3);
        let (b1, c1) = (compute(6, 0) ^ !5, compute(7, 0) ^ 6);
        assert_eq!(found, [5, compute(b1, 1), compute(c1, 1) ^ b1]);
    }

    #[test]
    fn each_addend_has_the_sum_so_far() {
        // 1 + 2 = 3, then 3 + (3 + 3) + (4 + 3); 5 + 6 = 11, then 11 + (7 + 11) + (8 + 11).
        let data = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(running_sums(&data, 2, 2), [16, 48]);
        assert_eq!(running_sums(&[], 3, 2), [0, 0, 0]);
    }

    #[test]
    fn a_warp_made_as_many_updates_as_its_lanes_found_counts() {
        let (together, one_by_one) = ([[7; 32], [5; 32]].concat(), Vec::from_iter(0..64));
        check_updates(&together, 1).unwrap();
        check_updates(&one_by_one, 32).unwrap();
        let error = check_updates(&[[7; 32], [5; 32]].concat(), 32).unwrap_err();
        assert!(error.to_string().contains("warp 0: expected 32"), "{error}");
        assert!(check_updates(&[together, vec![1; 31], vec![2]].concat(), 1).is_err());
    }

    #[test]
    fn tiles_are_reversed_one_by_one() {
        let input: Vec<u32> = (0..1026).collect();
        let found = reverse_tiles(&input);
        assert_eq!(found[..2], [1023, 1022]);
        assert_eq!(found[1023..], [0, 1025, 1024]);
    }

    #[test]
    fn a_block_sums_every_grid_th_chunk() {
        let shape = StreamShape {
            grid: 2,
            block: 64,
            buffer_len: 4,
        };
        // Chunks 1 2 3 4 | 5 6 7 8 | 9 10 11: the first and third are block 0's.
        let input: Vec<f32> = (1..=11u8).map(f32::from).collect();
        assert_eq!(block_sums(&input, shape), [40.0, 26.0]);
        assert_eq!(block_sums(&[], shape), [0.0, 0.0]);
    }

    #[test]
    fn a_tree_adds_the_upper_half_to_the_lower() {
        // 1 + big is big, twice: from the left, the two ones would make a 2 that counts.
        let big = 16_777_216.0;
        assert_eq!(tree_sum(vec![1.0, 1.0, big]), big);
        assert_eq!(tree_sum(vec![1.0, 2.0, 3.0, 4.0]), 10.0);
        assert_eq!(tree_sum(vec![7.0]), 7.0);
    }

    #[test]
    fn block_sums_are_near_the_exact_sum() {
        let input = random::floats(3, 100_003);
        for (grid, block, buffer_len) in [(1, 64, 4), (3, 96, 256), (7, 288, 1024), (2, 1024, 8192)]
        {
            let shape = StreamShape {
                grid,
                block,
                buffer_len,
            };
            let sum: f64 = block_sums(&input, shape).into_iter().map(f64::from).sum();
            let exact: f64 = input.iter().map(|x| f64::from(*x)).sum();
            // Each thread adds few numbers below 1: far less than one element is lost.
            assert!(
                (sum - exact).abs() < 0.5,
                "{shape:?}: {sum} instead of {exact}"
            );
        }
    }
}
