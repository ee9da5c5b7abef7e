//! Reproducible numbers: element `i` of stream `seed` is a function of both, so that threads can
//! generate parts of one array.

use std::thread;

/// A 64-bit number, by the finaliser of SplitMix64.
pub fn hash(seed: u64, index: u64) -> u64 {
    let mut x = seed
        .wrapping_mul(0xd134_2543_de82_ef95)
        .wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// `len` integers.
pub fn integers(seed: u64, len: usize) -> Vec<u32> {
    (0..len as u64).map(|i| hash(seed, i) as u32).collect()
}

/// `len` floats in [0, 1).
pub fn floats(seed: u64, len: usize) -> Vec<f32> {
    const ULP: f32 = 1.0 / (1 << 24) as f32;
    let mut floats = vec![0.0; len];
    let part = len.div_ceil(parallelism()).max(1);
    thread::scope(|scope| {
        for (number, part_of_floats) in floats.chunks_mut(part).enumerate() {
            scope.spawn(move || {
                for (i, float) in part_of_floats.iter_mut().enumerate() {
                    let index = (number * part + i) as u64;
                    *float = (hash(seed, index) >> 40) as f32 * ULP;
                }
            });
        }
    });
    floats
}

/// How many threads are worth starting.
pub fn parallelism() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_repeat() {
        assert_eq!(integers(1, 100), integers(1, 100));
        let same = integers(1, 1000)
            .iter()
            .zip(integers(2, 1000))
            .filter(|(a, b)| **a == *b)
            .count();
        assert_eq!(same, 0);
    }

    #[test]
    fn floats_are_spread_over_the_unit_interval() {
        let floats = floats(7, 100_001);
        assert!(floats.iter().all(|float| (0.0..1.0).contains(float)));
        let mean = floats.iter().map(|float| f64::from(*float)).sum::<f64>() / 100_001.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }
}
