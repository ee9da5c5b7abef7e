//! What happens between the last arrival of a phase and the end of the waits for it.

use super::Barrier;
use super::scope::{Phase, Scope};

/// A function that a barrier calls once in each phase.
///
/// Every `FnMut()` is one. Because the type of a closure cannot be written down, a barrier that is
/// declared with [`shared!`](crate::shared!) needs a type with a name:
///
/// ```no_run
/// use cuda_ptx::barrier::{Barrier, Block, CompletionFunction};
/// use cuda_ptx::shared;
///
/// struct Sum {
///     addends: *const [u32; 128],
///     total: u32,
/// }
///
/// impl CompletionFunction for Sum {
///     fn complete(&mut self) {
///         // SAFETY: the threads wrote their addends before they arrived.
///         self.total += unsafe { *self.addends }.iter().sum::<u32>();
///     }
/// }
///
/// shared! {
///     static ADDENDS: [u32; 128];
///     static BAR: Barrier<Block, Sum>;
/// }
///
/// # unsafe {
/// let addends = ADDENDS.as_mut_ptr();
/// Barrier::init_with(BAR.as_mut_ptr(), 128, Sum { addends, total: 0 });
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the completion function of a barrier",
    note = "expected an `FnMut()`, or a type that implements `CompletionFunction`"
)]
pub trait CompletionFunction {
    /// Does what is to be done once in each phase.
    ///
    /// It sees what the threads wrote before they arrived, and they see what it wrote after they
    /// waited. They all wait for it, so it should be short, and it must not use the barrier.
    fn complete(&mut self);
}

impl<F: FnMut()> CompletionFunction for F {
    #[inline(always)]
    fn complete(&mut self) {
        self();
    }
}

/// What a barrier does when a phase completes: nothing, `()`, or a [`CompletionFunction`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the completion function of a barrier",
    note = "expected `()` for none, an `FnMut()`, or a type that implements `CompletionFunction`"
)]
pub trait Completion: Sized + Sealed {
    /// Arrivals that the barrier's word does not count.
    #[doc(hidden)]
    type Arrivals;
    #[doc(hidden)]
    fn initial_arrivals(expected: u32) -> Self::Arrivals;
    /// How many arrivals the word expects.
    #[doc(hidden)]
    fn word_count(expected: u32) -> u32;
    #[doc(hidden)]
    fn arrive_n<S: Scope>(barrier: &Barrier<S, Self>, count: u32) -> Phase;
    #[doc(hidden)]
    fn arrive_and_drop<S: Scope>(barrier: &Barrier<S, Self>);
}

/// Without a function, the word does it all.
impl Completion for () {
    type Arrivals = ();

    #[inline(always)]
    fn initial_arrivals(_: u32) {}

    #[inline(always)]
    fn word_count(expected: u32) -> u32 {
        expected
    }

    #[inline(always)]
    fn arrive_n<S: Scope>(barrier: &Barrier<S>, count: u32) -> Phase {
        // SAFETY: a reference is to an initialised barrier; here and below.
        Phase::State(unsafe { S::arrive_n(barrier.word(), count) })
    }

    #[inline(always)]
    fn arrive_and_drop<S: Scope>(barrier: &Barrier<S>) {
        unsafe { S::arrive_and_drop(barrier.word()) }
    }
}

/// With a function, arrivals are counted beside the word, so that each thread learns whether it is
/// the last: an mbarrier object cannot tell, because the lanes of a warp that arrive on it together
/// all see the count before any of them. The word is a gate that expects one arrival, the one that
/// follows the function.
impl<F: CompletionFunction> Completion for F {
    type Arrivals = Arrivals;

    #[inline(always)]
    fn initial_arrivals(expected: u32) -> Arrivals {
        Arrivals {
            pending: expected,
            expected,
        }
    }

    #[inline(always)]
    fn word_count(_: u32) -> u32 {
        1
    }

    #[inline(always)]
    fn arrive_n<S: Scope>(barrier: &Barrier<S, F>, count: u32) -> Phase {
        // SAFETY: the barrier is initialised.
        let before = unsafe { S::fetch_sub(barrier.pending(), count) };
        debug_assert!(
            before & COUNT >= count,
            "more threads arrive than the barrier expects in a phase"
        );
        let parity = before >> 31;
        if before & COUNT == count && count != 0 {
            // SAFETY: this is the last arrival, and after it nobody arrives until the gate opens.
            unsafe { complete(barrier, parity) };
        }
        Phase::Parity(parity)
    }

    #[inline(always)]
    fn arrive_and_drop<S: Scope>(barrier: &Barrier<S, F>) {
        // Before the arrival, so that the last one sees it.
        // SAFETY: the barrier is initialised.
        unsafe { S::fetch_sub(barrier.expected(), 1) };
        Self::arrive_n(barrier, 1);
    }
}

/// The arrivals of a barrier with a completion function.
#[doc(hidden)]
#[repr(C)]
pub struct Arrivals {
    /// The parity of the phase in bit 31; below it, how many arrivals the phase lacks.
    pending: u32,
    /// How many arrivals the next phase expects.
    expected: u32,
}

/// The bits of `pending` that count.
const COUNT: u32 = (1 << 31) - 1;

impl<S, F: CompletionFunction> Barrier<S, F> {
    #[inline(always)]
    fn pending(&self) -> *mut u32 {
        // The first field of a `repr(C)` struct.
        self.arrivals.get().cast()
    }

    #[inline(always)]
    fn expected(&self) -> *mut u32 {
        self.pending().wrapping_add(1)
    }
}

/// Calls the function, begins the next phase and opens the gate.
///
/// # Safety
///
/// The caller has made the last arrival of the phase of this parity.
#[inline(always)]
unsafe fn complete<S: Scope, F: CompletionFunction>(barrier: &Barrier<S, F>, parity: u32) {
    // SAFETY: all arrivals of the phase happened before; the next ones wait for the gate, whose
    // opening publishes this.
    unsafe {
        (*barrier.completion.get()).complete();
        *barrier.pending() = (parity ^ 1) << 31 | *barrier.expected();
        S::arrive(barrier.word());
    }
}

/// Keeps [`Completion`] closed.
pub trait Sealed {}

impl Sealed for () {}
impl<F: CompletionFunction> Sealed for F {}
