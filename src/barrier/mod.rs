//! Barriers with types: `cuda::barrier`, `cuda::memcpy_async` and `cuda::pipeline`.
//!
//! A [`Barrier`] counts arrivals. When all that it expects have come, its *phase* is complete, who
//! waits for it goes on, and the next phase begins. Arriving and waiting are two steps, between
//! which a thread can do what needs no other thread:
//!
//! ```no_run
//! use cuda_ptx::barrier::Barrier;
//! use cuda_ptx::{get_sreg_ntid_x, get_sreg_tid_x, shared};
//!
//! shared! { static BAR: Barrier; }
//!
//! # fn block_sync() {}
//! # fn compute() {}
//! # unsafe {
//! if get_sreg_tid_x() == 0 {
//!     // One thread says how many arrivals a phase expects.
//!     Barrier::init(BAR.as_mut_ptr(), get_sreg_ntid_x());
//! }
//! block_sync();
//! let bar: &Barrier = Barrier::from_ptr(BAR.as_mut_ptr());
//!
//! let token = bar.arrive();
//! compute();
//! token.wait();
//! # }
//! ```
//!
//! What an arrival wrote before, a waiter sees afterwards: `arrive` releases and `wait` acquires.
//!
//! `docs/barriers.md` in the repository leads from here to rings of buffers that the copy engine
//! fills. In C++ and here:
//!
//! | C++ | here |
//! |---|---|
//! | `cuda::barrier<cuda::thread_scope_block>` | [`Barrier`], [`Barrier<Block>`](Block) |
//! | no class; `cuda::ptx` with `scope_cluster` | [`Barrier<Cluster>`](Cluster), [`RemoteBarrier`] |
//! | `cuda::barrier<cuda::thread_scope_device>`, `…_system>` | [`Barrier<Device>`](Device), [`Barrier<System>`](System) |
//! | `init(&bar, n)`, `init(&bar, n, f)` | [`Barrier::init`], [`Barrier::init_with`] |
//! | `bar.arrive()`, `bar.arrive(n)` | [`Barrier::arrive`], [`Barrier::arrive_n`] |
//! | `bar.wait(std::move(token))` | [`token.wait()`](ArrivalToken::wait): the token knows its barrier |
//! | `bar.arrive_and_wait()`, `bar.arrive_and_drop()` | [`Barrier::arrive_and_wait`], [`Barrier::arrive_and_drop`] |
//! | `bar.try_wait_for(token, d)`, `bar.try_wait_until(token, t)` | [`ArrivalToken::try_wait_for`], [`ArrivalToken::try_wait_until`] |
//! | `bar.wait_parity(p)`, `bar.try_wait_parity_for(p, d)` | [`Barrier::wait_parity`], [`Barrier::try_wait_parity_for`] |
//! | `cuda::device::barrier_native_handle(bar)` | [`Barrier::native_handle`] |
//! | `cuda::device::barrier_expect_tx(bar, b)` | [`Barrier::expect_tx`] |
//! | `cuda::device::barrier_arrive_tx(bar, n, b)` | [`Barrier::arrive_tx`], [`Barrier::arrive_n_tx`] |
//! | `cuda::memcpy_async(dst, src, size, bar)` | [`memcpy_async`] |
//! | `cuda::memcpy_async(group, dst, src, size, bar)` | [`memcpy_async_group`] |
//! | `cuda::aligned_size_t<16>(size)` | [`AlignedSize::<16>`](AlignedSize) |
//! | `cuda::pipeline` | [`Pipeline`] |
//!
//! # What the types rule out
//!
//! A token can be waited for once:
//!
//! ```compile_fail,E0382
//! # fn f(bar: &cuda_ptx::barrier::Barrier) {
//! let token = bar.arrive();
//! token.wait();
//! token.wait();
//! # }
//! ```
//!
//! and only on the barrier that it is from, because nothing else takes it:
//!
//! ```compile_fail,E0599
//! # fn f(bar: &cuda_ptx::barrier::Barrier, other: &cuda_ptx::barrier::Barrier) {
//! let token = bar.arrive();
//! other.wait(token);
//! # }
//! ```
//!
//! It cannot be copied to be waited for twice:
//!
//! ```compile_fail,E0599
//! # fn f(bar: &cuda_ptx::barrier::Barrier) {
//! let token = bar.arrive();
//! token.clone().wait();
//! # }
//! ```
//!
//! nor outlive the borrow of its barrier:
//!
//! ```compile_fail,E0597
//! use cuda_ptx::barrier::{Barrier, Device};
//! # fn f() {
//! let token = {
//!     let bar = Barrier::<Device>::new(1);
//!     bar.arrive()
//! };
//! token.wait();
//! # }
//! ```
//!
//! A parity is one of two, not a number that was counted wrong:
//!
//! ```compile_fail,E0308
//! # fn f(bar: &cuda_ptx::barrier::Barrier) {
//! bar.wait_parity(2);
//! # }
//! ```
//!
//! Transactions and native handles are for barriers that the hardware implements:
//!
//! ```compile_fail,E0599
//! # use cuda_ptx::barrier::{Barrier, Device};
//! # fn f(bar: &Barrier<Device>) {
//! bar.expect_tx(1024);
//! # }
//! ```
//!
//! which those with a completion function are not:
//!
//! ```compile_fail,E0599
//! # use cuda_ptx::barrier::{Barrier, Block};
//! # fn f(bar: &Barrier<Block, fn()>) {
//! bar.expect_tx(1024);
//! # }
//! ```
//!
//! A remote barrier of the cluster can be arrived at, but nobody can wait for it:
//!
//! ```compile_fail,E0599
//! # use cuda_ptx::barrier::{Barrier, Cluster};
//! # fn f(bar: &Barrier<Cluster>) {
//! unsafe { bar.remote(1) }.wait();
//! # }
//! ```
//!
//! A scope is one of four:
//!
//! ```compile_fail,E0599
//! # fn f(bar: &cuda_ptx::barrier::Barrier<u32>) {
//! bar.arrive();
//! # }
//! ```
//!
//! # What they do not
//!
//! - **More arrivals than expected.** A phase that lacks fewer arrivals than are made breaks the
//!   barrier: the hardware ends the launch with an error, or later waits end too early or never. Of
//!   a phase that also waits for transactions, all arrivals can have come already. And the lanes of
//!   a warp that arrive together arrive at once: 32 lanes do not complete a phase that lacks 16 and
//!   begin the next one.
//! - **Fewer arrivals than expected**: waiters wait for ever. A thread that leaves calls
//!   [`arrive_and_drop`](Barrier::arrive_and_drop) first.
//! - **Waiting too late.** A token is good for its phase and the next one; a parity likewise. When
//!   the barrier is two phases on, the wait may not end.
//!
//! None of these lets safe code touch memory that it does not own: what the barrier protects is
//! reached through raw pointers, and whoever dereferences them answers for the protocol.

mod completion;
mod counter;
mod instructions;
mod memcpy;
mod pipeline;
mod remote;
mod scope;
mod time;
mod token;

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ptr;
use core::time::Duration;

pub use completion::{Completion, CompletionFunction};
pub use memcpy::{
    AlignedSize, Group, Size, ThisBlock, ThisThread, ThisWarp, memcpy_async, memcpy_async_group,
};
pub use pipeline::{Consumer, EmptySlot, FullSlot, Pipeline, Producer};
pub use remote::RemoteBarrier;
pub use scope::{AtomicScope, Block, Cluster, Device, Scope, SharedScope, System};
pub use time::Instant;
pub use token::{ArrivalToken, Parity};

use scope::Phase;
use time::{poll_for, poll_until};

/// A barrier among the threads of a [`Scope`], with an optional function that runs between the last
/// arrival of each phase and the end of the waits for it.
///
/// See the [module](self) for how it is used.
///
/// Without a completion function, a [`Block`] or [`Cluster`] barrier is an mbarrier object, which
/// has the size and alignment of a `u64` and lies in shared memory; a [`Device`] or [`System`]
/// barrier is a `u64` that is changed by atomic operations, in global memory or on the host.
#[repr(C)]
pub struct Barrier<S = Block, C: Completion = ()> {
    word: UnsafeCell<u64>,
    arrivals: UnsafeCell<C::Arrivals>,
    completion: UnsafeCell<C>,
    scope: PhantomData<S>,
}

// SAFETY: a barrier is there to be shared. The word and the arrivals are changed atomically, and of
// the threads that call the completion function each has seen what the one before did.
unsafe impl<S, C: Completion + Send> Sync for Barrier<S, C> {}

impl<S: Scope> Barrier<S> {
    /// The most arrivals that a phase can expect: 2²⁰ − 1 in shared memory, 2³¹ − 1 elsewhere.
    pub const MAX_COUNT: u32 = S::MAX_COUNT;

    /// Initialises a barrier whose phases expect `expected` arrivals each.
    ///
    /// One thread does this; the others use the barrier after a synchronisation that follows: for
    /// [`Block`] `__syncthreads`, for [`Cluster`] `barrier_cluster_arrive` and `…_wait`, for
    /// [`Device`] for instance the start of the kernel.
    ///
    /// # Safety
    ///
    /// - `barrier` points to memory that nobody uses otherwise: for [`Block`] and [`Cluster`] in
    ///   this CTA's shared memory, for [`Device`] and [`System`] not in shared memory.
    /// - `expected` is from 1 to [`MAX_COUNT`](Self::MAX_COUNT).
    #[inline(always)]
    pub unsafe fn init(barrier: *mut Self, expected: u32) {
        unsafe { Self::init_with(barrier, expected, ()) }
    }
}

impl<S: Scope, C: Completion> Barrier<S, C> {
    /// Initialises a barrier that calls `completion` once in each phase: after the last arrival,
    /// before any wait for the phase ends, in the thread that arrived last.
    ///
    /// The function sees what the threads wrote before they arrived, and they see what it wrote
    /// after they waited. It must not wait for the barrier itself.
    ///
    /// # Safety
    ///
    /// As for [`init`](Barrier::init); and `completion` can be called from any thread that arrives.
    #[inline(always)]
    pub unsafe fn init_with(barrier: *mut Self, expected: u32, completion: C) {
        debug_assert!(
            expected >= 1 && expected <= S::MAX_COUNT,
            "a barrier expects at least one arrival, and no more than MAX_COUNT"
        );
        unsafe {
            S::init(word_of(barrier), C::word_count(expected));
            let arrivals = ptr::addr_of_mut!((*barrier).arrivals).cast::<C::Arrivals>();
            arrivals.write(C::initial_arrivals(expected));
            let function = ptr::addr_of_mut!((*barrier).completion).cast::<C>();
            function.write(completion);
        }
    }

    /// The barrier at an address.
    ///
    /// # Safety
    ///
    /// `barrier` points to an initialised barrier, and the initialisation happens before this. It
    /// stays one for all of `'b`.
    #[inline(always)]
    pub unsafe fn from_ptr<'b>(barrier: *const Self) -> &'b Self {
        unsafe { &*barrier }
    }

    /// Ends the life of a barrier, so that its memory can be used for something else. Drops the
    /// completion function.
    ///
    /// # Safety
    ///
    /// `barrier` points to an initialised barrier, which no thread and no copy uses any more.
    #[inline(always)]
    pub unsafe fn inval(barrier: *mut Self) {
        unsafe {
            S::inval(word_of(barrier));
            ptr::addr_of_mut!((*barrier).completion)
                .cast::<C>()
                .drop_in_place();
        }
    }

    /// Arrives, without waiting. The token is for the wait.
    ///
    /// A thread that does not want to wait drops it: `let _ = bar.arrive();`.
    #[inline(always)]
    pub fn arrive(&self) -> ArrivalToken<'_, S, C> {
        ArrivalToken::new(self, C::arrive_n(self, 1))
    }

    /// Arrives `count` times at once.
    ///
    /// `count` is from 1 to the number of arrivals that the phase lacks.
    #[inline(always)]
    pub fn arrive_n(&self, count: u32) -> ArrivalToken<'_, S, C> {
        debug_assert!(count >= 1, "arrive_n counts at least one arrival");
        ArrivalToken::new(self, C::arrive_n(self, count))
    }

    /// Arrives and waits for the phase.
    #[inline(always)]
    pub fn arrive_and_wait(&self) {
        self.arrive().wait();
    }

    /// Arrives, and lowers the number of arrivals that later phases expect by one: this thread takes
    /// part no more.
    ///
    /// This is for ever, and not for skipping a phase. One thread at least must stay.
    #[inline(always)]
    pub fn arrive_and_drop(&self) {
        C::arrive_and_drop(self);
    }

    /// Waits for the phase of this parity, the current or the last one.
    ///
    /// Phases are numbered from 0. A thread that waits for each in turn takes the parity from
    /// [`Parity::advance`]. A wait for [`Parity::ODD`] before the first phase is complete returns at
    /// once.
    #[inline(always)]
    pub fn wait_parity(&self, parity: Parity) {
        self.wait_phase(Phase::Parity(parity.bit()));
    }

    /// Whether the phase of this parity is complete, without waiting.
    #[inline(always)]
    #[must_use = "only `true` means that the phase is complete"]
    pub fn is_parity_complete(&self, parity: Parity) -> bool {
        self.is_phase_complete(Phase::Parity(parity.bit()))
    }

    /// Waits for the phase of this parity for as long as the hardware likes, and returns whether it
    /// is complete.
    #[inline(always)]
    #[must_use = "only `true` means that the phase is complete"]
    pub fn try_wait_parity(&self, parity: Parity) -> bool {
        self.try_wait_phase(Phase::Parity(parity.bit()))
    }

    /// Waits for the phase of this parity for `duration` at most, and returns whether it is complete.
    #[inline(always)]
    #[must_use = "only `true` means that the phase is complete"]
    pub fn try_wait_parity_for(&self, parity: Parity, duration: Duration) -> bool {
        self.try_wait_phase_for(Phase::Parity(parity.bit()), duration)
    }

    /// Waits for the phase of this parity until `deadline` at most, and returns whether it is
    /// complete.
    #[inline(always)]
    #[must_use = "only `true` means that the phase is complete"]
    pub fn try_wait_parity_until(&self, parity: Parity, deadline: Instant) -> bool {
        self.try_wait_phase_until(Phase::Parity(parity.bit()), deadline)
    }

    /// The word that is the barrier, or with a completion function the gate that it opens.
    #[inline(always)]
    fn word(&self) -> *mut u64 {
        self.word.get()
    }

    #[inline(always)]
    fn wait_phase(&self, phase: Phase) {
        // SAFETY: `self` is initialised.
        unsafe { S::wait(self.word(), phase) }
    }

    #[inline(always)]
    fn is_phase_complete(&self, phase: Phase) -> bool {
        // SAFETY: `self` is initialised.
        unsafe { S::test_wait(self.word(), phase) }
    }

    #[inline(always)]
    fn try_wait_phase(&self, phase: Phase) -> bool {
        // SAFETY: `self` is initialised.
        unsafe { S::try_wait(self.word(), phase) }
    }

    #[inline(always)]
    fn try_wait_phase_for(&self, phase: Phase, duration: Duration) -> bool {
        // SAFETY: `self` is initialised.
        poll_for(duration, |nanoseconds| unsafe {
            S::try_wait_for(self.word(), phase, nanoseconds)
        })
    }

    #[inline(always)]
    fn try_wait_phase_until(&self, phase: Phase, deadline: Instant) -> bool {
        // SAFETY: `self` is initialised.
        poll_until(deadline, |nanoseconds| unsafe {
            S::try_wait_for(self.word(), phase, nanoseconds)
        })
    }
}

impl<S: SharedScope> Barrier<S> {
    /// The mbarrier object, for the functions of [`mbarrier`](crate::mbarrier) and the copies that
    /// complete transactions on it.
    #[inline(always)]
    #[must_use]
    pub fn native_handle(&self) -> *mut u64 {
        self.word()
    }

    /// Makes the current phase wait for `bytes` more of asynchronous copies.
    ///
    /// It must not be complete yet, which is so while the thread's own arrival is lacking.
    ///
    /// - `bytes`: up to 2²⁰ − 1 in a phase.
    #[inline(always)]
    pub fn expect_tx(&self, bytes: u32) {
        // SAFETY: `self` is initialised.
        unsafe { S::expect_tx(self.word(), bytes) }
    }

    /// Makes the current phase wait for `bytes` more of asynchronous copies, and arrives.
    #[inline(always)]
    pub fn arrive_tx(&self, bytes: u32) -> ArrivalToken<'_, S> {
        // SAFETY: `self` is initialised.
        let state = unsafe { S::arrive_expect_tx(self.word(), bytes) };
        ArrivalToken::new(self, Phase::State(state))
    }

    /// Makes the current phase wait for `bytes` more of asynchronous copies, and arrives `count`
    /// times.
    #[inline(always)]
    pub fn arrive_n_tx(&self, count: u32, bytes: u32) -> ArrivalToken<'_, S> {
        self.expect_tx(bytes);
        self.arrive_n(count)
    }
}

impl<S: AtomicScope> Barrier<S> {
    /// A barrier whose phases expect `expected` arrivals each, for a place outside shared memory.
    ///
    /// # Panics
    ///
    /// If `expected` is not from 1 to [`MAX_COUNT`](Self::MAX_COUNT).
    #[must_use]
    pub const fn new(expected: u32) -> Self {
        assert!(
            expected >= 1 && expected <= counter::MAX_COUNT,
            "a barrier expects at least one arrival, and no more than MAX_COUNT"
        );
        Self {
            word: UnsafeCell::new(counter::initial(expected)),
            arrivals: UnsafeCell::new(()),
            completion: UnsafeCell::new(()),
            scope: PhantomData,
        }
    }
}

#[inline(always)]
fn word_of<S, C: Completion>(barrier: *mut Barrier<S, C>) -> *mut u64 {
    // The first field of a `repr(C)` struct.
    barrier.cast()
}

#[cfg(test)]
mod tests;
