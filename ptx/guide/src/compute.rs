//! The work that the guide overlaps with the barrier and leaves undefined.

/// The next value of a thread, for which it needs no other thread.
#[inline(always)]
pub fn compute(value: u32, iteration: u32) -> u32 {
    value
        .wrapping_mul(1_664_525)
        .wrapping_add(1_013_904_223)
        .wrapping_add(iteration)
}
