//! What an arrival leaves behind: the name of its phase.

use core::time::Duration;

use super::Barrier;
use super::completion::Completion;
use super::scope::{Block, Phase, Scope};
use super::time::Instant;

/// The phase that an arrival counted for, and its barrier.
///
/// It is used up by the wait, so nobody waits for it twice, and there is no way to wait for it on
/// another barrier. It must be used in its phase or the next: a thread that is expected in every
/// phase cannot be later, if it waits before it arrives again.
#[must_use = "the phase is complete only after `token.wait()`; `let _ = …` says that nobody waits"]
pub struct ArrivalToken<'b, S = Block, C: Completion = ()> {
    barrier: &'b Barrier<S, C>,
    phase: Phase,
}

impl<'b, S: Scope, C: Completion> ArrivalToken<'b, S, C> {
    #[inline(always)]
    pub(super) fn new(barrier: &'b Barrier<S, C>, phase: Phase) -> Self {
        Self { barrier, phase }
    }

    /// Waits for the phase. What the threads wrote before they arrived in it is then visible.
    #[inline(always)]
    pub fn wait(self) {
        self.barrier.wait_phase(self.phase);
    }

    /// Whether the phase is complete, without waiting. If so, no [`wait`](Self::wait) is needed.
    #[inline(always)]
    #[must_use = "only `true` means that the phase is complete"]
    pub fn is_complete(&self) -> bool {
        self.barrier.is_phase_complete(self.phase)
    }

    /// Waits for the phase for as long as the hardware likes. If that was not long enough, returns
    /// the token.
    ///
    /// # Errors
    ///
    /// If the phase is not complete.
    #[inline(always)]
    pub fn try_wait(self) -> Result<(), Self> {
        if self.barrier.try_wait_phase(self.phase) {
            Ok(())
        } else {
            Err(self)
        }
    }

    /// Waits for the phase for `duration` at most. If that was not long enough, returns the token.
    ///
    /// # Errors
    ///
    /// If the phase is not complete.
    #[inline(always)]
    pub fn try_wait_for(self, duration: Duration) -> Result<(), Self> {
        if self.barrier.try_wait_phase_for(self.phase, duration) {
            Ok(())
        } else {
            Err(self)
        }
    }

    /// Waits for the phase until `deadline` at most. If that was not long enough, returns the token.
    ///
    /// # Errors
    ///
    /// If the phase is not complete.
    #[inline(always)]
    pub fn try_wait_until(self, deadline: Instant) -> Result<(), Self> {
        if self.barrier.try_wait_phase_until(self.phase, deadline) {
            Ok(())
        } else {
            Err(self)
        }
    }
}

/// The parity of the number of a phase. The first phase is 0, which is even.
///
/// ```no_run
/// # use cuda_ptx::barrier::{Barrier, Parity};
/// # fn compute() {}
/// # fn f(bar: &Barrier) {
/// let mut parity = Parity::EVEN;
/// for _ in 0..10 {
///     let _ = bar.arrive();
///     compute();
///     bar.wait_parity(parity.advance());
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parity(u32);

impl Parity {
    /// That of phases 0, 2, 4, …
    pub const EVEN: Self = Self(0);
    /// That of phases 1, 3, 5, …, and of the one before the first, for which no wait blocks.
    pub const ODD: Self = Self(1);

    /// The parity of a phase's number.
    #[inline(always)]
    #[must_use]
    pub const fn of(phase: u32) -> Self {
        Self(phase & 1)
    }

    /// The parity of the next phase.
    #[inline(always)]
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 ^ 1)
    }

    /// Goes on to the next phase and returns the parity of this one.
    #[inline(always)]
    pub const fn advance(&mut self) -> Self {
        let this = *self;
        *self = this.next();
        this
    }

    /// As the instructions take it: 0 or 1.
    #[inline(always)]
    #[must_use]
    pub const fn bit(self) -> u32 {
        self.0
    }
}
