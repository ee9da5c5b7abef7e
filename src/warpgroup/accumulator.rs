//! The part of D that a thread holds.

use core::ops::{Deref, DerefMut};

use super::Element;
use super::registers::{self, Registers};

/// A thread's registers of D. `N` registers are 2 `N` columns of `f32` or `i32`, and 4 `N` columns
/// of `f16`, of which a register holds two ([`f16x2`](crate::f16x2)).
///
/// The only way to make one is [`zero`](Self::zero), which leaves it in registers. An array written
/// as `[0.0; 128]` is a loop for rustc, and what a loop indexes is local memory for ptxas, which
/// then also has to serialise the multiplications.
#[repr(transparent)]
pub struct Accumulator<T, const N: usize>([T; N]);

impl<T: Element, const N: usize> Accumulator<T, N> {
    /// All zero.
    #[inline(always)]
    #[must_use]
    pub fn zero() -> Self {
        // SAFETY: zeros are a value of every `Element`. It is one store of so many bytes, not a loop.
        unsafe { core::mem::zeroed() }
    }

    /// Keeps accesses to the registers on their side of this line: what is written before is in the
    /// registers here, and what is read after is read after. No instruction comes of it.
    ///
    /// The compiler does not know that [`wgmma_wait_group`](crate::wgmma_wait_group) completes writes to
    /// these registers, and could read them before it. So this follows the wait after which they are
    /// read, and precedes the fence before which they were written
    /// (`warpgroup_fence_operand` in CUTLASS).
    #[inline(always)]
    pub fn fence(&mut self)
    where
        [u32; N]: Registers,
    {
        self.registers()
            .each(|_, register| registers::fence(register));
    }

    #[inline(always)]
    fn registers(&mut self) -> &mut [u32; N] {
        // SAFETY: an `Element` is plain data of 32 bits.
        unsafe { &mut *(&raw mut self.0).cast() }
    }

    /// Calls `f` with the number of each register and the register.
    ///
    /// A loop over the registers is not the same: unless the compiler unrolls it, and of 128 turns it does
    /// not, it needs them in local memory.
    #[inline(always)]
    pub fn for_each(&mut self, mut f: impl FnMut(u32, &mut T))
    where
        [u32; N]: Registers,
    {
        self.registers().each(
            #[inline(always)]
            // SAFETY: as above.
            |index, register| f(index, unsafe { &mut *core::ptr::from_mut(register).cast() }),
        );
    }

    /// Calls `f` with the numbers of every second register, and with it and the next: elements of
    /// neighbouring columns.
    #[inline(always)]
    pub fn for_each_pair(&mut self, mut f: impl FnMut(u32, [T; 2]))
    where
        [u32; N]: Registers,
    {
        let mut first = None;
        self.for_each(
            #[inline(always)]
            |index, &mut second| match first.take() {
                None => first = Some(second),
                Some(first) => f(index - 1, [first, second]),
            },
        );
    }

    /// Row and column in D of the (first) element in register `index` of a thread.
    ///
    /// `thread` is the thread's place in its warpgroup, from 0 to 127. Registers `2 i` and `2 i + 1`
    /// are neighbours in one row.
    #[inline(always)]
    #[must_use]
    pub const fn position(thread: u32, index: u32) -> (u32, u32) {
        let (warp, lane) = (thread / 32, thread % 32);
        let pair = index * T::ELEMENTS / 2;
        let row = warp * 16 + lane / 4 + pair % 2 * 8;
        let column = pair / 2 * 8 + lane % 4 * 2 + index * T::ELEMENTS % 2;
        (row, column)
    }
}

impl<T, const N: usize> Deref for Accumulator<T, N> {
    type Target = [T; N];

    #[inline(always)]
    fn deref(&self) -> &[T; N] {
        &self.0
    }
}

impl<T, const N: usize> DerefMut for Accumulator<T, N> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T; N] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::f16x2;
    use std::collections::BTreeSet;

    #[test]
    fn the_threads_hold_every_element_once() {
        let mut seen = BTreeSet::new();
        for thread in 0..128 {
            for index in 0..8 {
                seen.insert(Accumulator::<f32, 8>::position(thread, index));
            }
        }
        let all = (0..64).flat_map(|row| (0..16).map(move |column| (row, column)));
        assert_eq!(seen, all.collect());
        // Figure "WGMMA .m64nNk16 register fragment layout for accumulator matrix D".
        assert_eq!(Accumulator::<f32, 8>::position(0, 3), (8, 1));
        assert_eq!(Accumulator::<f32, 8>::position(37, 4), (17, 10));
        assert_eq!(Accumulator::<f16x2, 4>::position(37, 1), (25, 2));
        assert_eq!(Accumulator::<f16x2, 4>::position(37, 2), (17, 10));
    }

    #[test]
    fn registers_are_visited_in_order() {
        let mut d = Accumulator::<f32, 4>::zero();
        d.for_each(|index, register| *register = index as f32);
        assert_eq!(*d, [0.0, 1.0, 2.0, 3.0]);
        let mut pairs = std::vec::Vec::new();
        d.for_each_pair(|index, pair| pairs.push((index, pair)));
        assert_eq!(pairs, [(0, [0.0, 1.0]), (2, [2.0, 3.0])]);
    }

    #[test]
    fn zero_is_zero() {
        assert_eq!(*Accumulator::<f32, 4>::zero(), [0.0; 4]);
    }
}
