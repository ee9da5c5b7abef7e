//! Poisoned outputs, and the comparison with what they must be.

use std::fmt::Debug;

use anyhow::{Result, bail};
use cust::memory::DeviceCopy;
use cust::memory::bytemuck::Pod;

use super::device::{Buffer, Device};

/// Elements behind the end of each output that no kernel may write.
const GUARD: usize = 64;

/// An output element.
pub trait Element: Pod + DeviceCopy + Debug {
    /// What an element has before the launch; no expectation has it.
    const POISON: Self;

    /// Whether two are the same number; all NaN are.
    fn same(self, other: Self) -> bool;
}

impl Element for u32 {
    const POISON: Self = 0xdead_beef;

    fn same(self, other: Self) -> bool {
        self == other
    }
}

impl Element for f32 {
    const POISON: Self = f32::from_bits(u32::POISON);

    fn same(self, other: Self) -> bool {
        self.to_bits() == other.to_bits() || self.is_nan() && other.is_nan()
    }
}

/// What an output of `len` elements holds before the launch, its guard included.
pub fn poison<T: Element>(len: usize) -> Vec<T> {
    vec![T::POISON; len + GUARD]
}

/// An output of `len` elements, poisoned.
pub fn poisoned<T: Element>(device: &Device, len: usize) -> Result<Buffer<T>> {
    device.upload(&poison(len))
}

/// An output that holds input before the launch.
pub fn guarded<T: Element>(device: &Device, input: &[T]) -> Result<Buffer<T>> {
    device.upload(&[input, &[T::POISON; GUARD]].concat())
}

/// Compares an output, as [`poisoned`] or [`guarded`] made it, with its expectation.
pub fn check<T: Element>(expected: &[T], found: &[T]) -> Result<()> {
    let (found, guard) = found.split_at(expected.len());
    let wrong = |i: &usize| !expected[*i].same(found[*i]);
    if let Some(i) = (0..expected.len()).find(wrong) {
        let written = if found[i].same(T::POISON) {
            ", which is the poison: it was never written"
        } else {
            ""
        };
        bail!(
            "element {i}: expected {:?}, found {:?}{written}; {} of {} elements are wrong",
            expected[i],
            found[i],
            (0..expected.len()).filter(wrong).count(),
            expected.len()
        );
    }
    if let Some(i) = guard.iter().position(|element| !element.same(T::POISON)) {
        bail!(
            "element {}: expected nothing to be written behind the end of {} elements, found {:?}",
            expected.len() + i,
            expected.len(),
            guard[i]
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_guard(found: &[u32]) -> Vec<u32> {
        [found, &[u32::POISON; GUARD]].concat()
    }

    #[test]
    fn the_first_wrong_element_is_named() {
        check(&[1, 2, 3], &with_guard(&[1, 2, 3])).unwrap();
        let error = check(&[1, 2, 3], &with_guard(&[1, 7, 8])).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("element 1: expected 2, found 7; 2 of 3"),
            "{error}"
        );
    }

    #[test]
    fn an_element_that_was_not_written_is_called_so() {
        let error = check(&[1], &with_guard(&[u32::POISON])).unwrap_err();
        assert!(error.to_string().contains("never written"), "{error}");
    }

    #[test]
    fn a_write_behind_the_end_is_found() {
        let mut found = with_guard(&[1, 2]);
        found[3] = 0;
        let error = check(&[1, 2], &found).unwrap_err();
        assert!(error.to_string().contains("element 3"), "{error}");
    }

    #[test]
    fn floats_are_compared_bit_by_bit_but_for_nan() {
        assert!(f32::NAN.same(-f32::NAN));
        assert!(!0.0f32.same(-0.0));
        assert!(!1.0f32.same(1.0 + f32::EPSILON));
    }
}
