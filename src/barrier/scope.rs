//! The scopes of a barrier, and what a barrier's word is in each.

use super::counter;
use super::instructions::{fetch_sub_cluster, fetch_sub_cta, gpu, nanosleep, sys};
use crate::awbarrier::__mbarrier_arrive_and_drop;
use crate::target::{Has, Target, ptx_70, ptx_71, ptx_78, ptx_80, sm_80, sm_90};
use crate::{
    fence_mbarrier_init, mbarrier_arrive_drop, mbarrier_arrive_expect_tx,
    mbarrier_arrive_sem_scope_space_count, mbarrier_expect_tx, mbarrier_init, mbarrier_inval,
    mbarrier_test_wait, mbarrier_test_wait_parity, mbarrier_test_wait_parity_sem_scope,
    mbarrier_test_wait_sem_scope, mbarrier_try_wait_parity_sem_scope,
    mbarrier_try_wait_parity_sem_scope_suspend_time_hint, mbarrier_try_wait_sem_scope,
    mbarrier_try_wait_sem_scope_suspend_time_hint, scope_cluster, scope_cta, sem_acquire,
    sem_relaxed, sem_release, space_shared,
};

/// The threads of a block, C++'s `thread_scope_block`: an mbarrier object in the block's shared
/// memory.
///
/// On `sm_80`, waits poll; from `sm_90` on the hardware suspends the thread.
pub struct Block;

/// The threads of a cluster: an mbarrier object in the shared memory of one of its blocks, whose
/// threads wait; the threads of the others arrive at a [`RemoteBarrier`](super::RemoteBarrier).
pub struct Cluster;

/// The threads of a device, C++'s `thread_scope_device`: atomic operations on a word in global
/// memory.
///
/// All threads that a phase expects must be resident at once, as a cooperative launch ensures. On
/// the host, a barrier for threads of the process.
pub struct Device;

/// All threads that can reach the memory, those of other devices and of the host included, C++'s
/// `thread_scope_system`: atomic operations on a word outside shared memory.
pub struct System;

/// Who takes part in a barrier: [`Block`], [`Cluster`], [`Device`] or [`System`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the scope of a barrier",
    note = "there is: Block | Cluster | Device | System"
)]
pub trait Scope: Operations {}

/// A scope whose barriers the hardware implements, with transactions: [`Block`] or [`Cluster`].
#[diagnostic::on_unimplemented(
    message = "barriers of scope `{Self}` are not mbarrier objects",
    note = "there is: Block | Cluster"
)]
pub trait SharedScope: Scope + Transactions {}

/// A scope whose barriers are made of atomic operations: [`Device`] or [`System`].
#[diagnostic::on_unimplemented(
    message = "barriers of scope `{Self}` must be initialised in shared memory, with `Barrier::init`",
    note = "there is: Device | System"
)]
pub trait AtomicScope: Scope {}

/// What names a phase: what an arrival in it returned, or its parity.
#[derive(Clone, Copy)]
pub enum Phase {
    State(u64),
    Parity(u32),
}

/// What can be done with the word of an initialised barrier. All of it is unsafe for one reason: the
/// pointer must be to such a word, and for [`init`](Operations::init) to memory for one.
///
/// Arrivals release and waits acquire, in the scope.
pub trait Operations {
    const MAX_COUNT: u32;

    unsafe fn init(word: *mut u64, expected: u32);
    unsafe fn inval(word: *mut u64);
    unsafe fn arrive_n(word: *mut u64, count: u32) -> u64;
    unsafe fn arrive_and_drop(word: *mut u64);
    unsafe fn test_wait(word: *mut u64, phase: Phase) -> bool;
    unsafe fn try_wait(word: *mut u64, phase: Phase) -> bool;
    unsafe fn try_wait_for(word: *mut u64, phase: Phase, nanoseconds: u32) -> bool;

    #[inline(always)]
    unsafe fn arrive(word: *mut u64) -> u64 {
        unsafe { Self::arrive_n(word, 1) }
    }

    #[inline(always)]
    unsafe fn wait(word: *mut u64, phase: Phase) {
        while !unsafe { Self::try_wait(word, phase) } {}
    }

    /// Subtracts from a number beside the word, acquires and releases, and returns its value before.
    unsafe fn fetch_sub(number: *mut u32, subtrahend: u32) -> u32;
}

/// What can be done besides with the word of a barrier that the hardware implements.
pub trait Transactions {
    unsafe fn expect_tx(word: *mut u64, bytes: u32);
    unsafe fn arrive_expect_tx(word: *mut u64, bytes: u32) -> u64;
}

impl Scope for Block where for<'a> Target: Has<ptx_70> + Has<ptx_71> + Has<sm_80> {}

impl Operations for Block
where
    for<'a> Target: Has<ptx_70> + Has<ptx_71> + Has<sm_80>,
{
    const MAX_COUNT: u32 = (1 << 20) - 1;

    #[inline(always)]
    unsafe fn init(word: *mut u64, expected: u32) {
        unsafe { mbarrier_init(word, expected) }
    }

    #[inline(always)]
    unsafe fn inval(word: *mut u64) {
        unsafe { mbarrier_inval(word) }
    }

    #[inline(always)]
    unsafe fn arrive_n(word: *mut u64, count: u32) -> u64 {
        unsafe { by_target::arrive_n(word, count) }
    }

    #[inline(always)]
    unsafe fn arrive_and_drop(word: *mut u64) {
        unsafe { __mbarrier_arrive_and_drop(word) };
    }

    #[inline(always)]
    unsafe fn test_wait(word: *mut u64, phase: Phase) -> bool {
        match phase {
            Phase::State(state) => unsafe { mbarrier_test_wait(word, state) },
            Phase::Parity(parity) => unsafe { mbarrier_test_wait_parity(word, parity) },
        }
    }

    #[inline(always)]
    unsafe fn try_wait(word: *mut u64, phase: Phase) -> bool {
        unsafe { by_target::try_wait(word, phase) }
    }

    #[inline(always)]
    unsafe fn try_wait_for(word: *mut u64, phase: Phase, nanoseconds: u32) -> bool {
        unsafe { by_target::try_wait_for(word, phase, nanoseconds) }
    }

    #[inline(always)]
    unsafe fn fetch_sub(number: *mut u32, subtrahend: u32) -> u32 {
        unsafe { fetch_sub_cta(number, subtrahend) }
    }
}

/// What a block's barrier does from `sm_90` on.
#[cfg(any(
    not(target_arch = "nvptx64"),
    cuda_ptx_sm = "90",
    target_feature = "sm_90"
))]
mod by_target {
    use super::Phase;
    use crate::{
        mbarrier_arrive_count, mbarrier_try_wait, mbarrier_try_wait_parity,
        mbarrier_try_wait_parity_suspend_time_hint, mbarrier_try_wait_suspend_time_hint,
    };

    #[inline(always)]
    pub unsafe fn arrive_n(word: *mut u64, count: u32) -> u64 {
        unsafe { mbarrier_arrive_count(word, count) }
    }

    #[inline(always)]
    pub unsafe fn try_wait(word: *mut u64, phase: Phase) -> bool {
        match phase {
            Phase::State(state) => unsafe { mbarrier_try_wait(word, state) },
            Phase::Parity(parity) => unsafe { mbarrier_try_wait_parity(word, parity) },
        }
    }

    #[inline(always)]
    pub unsafe fn try_wait_for(word: *mut u64, phase: Phase, nanoseconds: u32) -> bool {
        match phase {
            Phase::State(state) => unsafe {
                mbarrier_try_wait_suspend_time_hint(word, state, nanoseconds)
            },
            Phase::Parity(parity) => unsafe {
                mbarrier_try_wait_parity_suspend_time_hint(word, parity, nanoseconds)
            },
        }
    }
}

/// What it does before: it tests instead of waiting, and only the last of several arrivals may
/// complete the phase.
#[cfg(all(
    target_arch = "nvptx64",
    not(any(cuda_ptx_sm = "90", target_feature = "sm_90"))
))]
mod by_target {
    use super::{Block, Operations, Phase};
    use crate::target::{Has, Target, ptx_70, ptx_71, sm_80};
    use crate::{mbarrier_arrive, mbarrier_arrive_no_complete};

    #[inline(always)]
    pub unsafe fn arrive_n(word: *mut u64, count: u32) -> u64
    where
        for<'a> Target: Has<ptx_70> + Has<ptx_71> + Has<sm_80>,
    {
        unsafe {
            if count > 1 {
                mbarrier_arrive_no_complete(word, count - 1);
            }
            mbarrier_arrive(word)
        }
    }

    #[inline(always)]
    pub unsafe fn try_wait(word: *mut u64, phase: Phase) -> bool
    where
        for<'a> Target: Has<ptx_70> + Has<ptx_71> + Has<sm_80>,
    {
        unsafe { Block::test_wait(word, phase) }
    }

    #[inline(always)]
    pub unsafe fn try_wait_for(word: *mut u64, phase: Phase, _: u32) -> bool
    where
        for<'a> Target: Has<ptx_70> + Has<ptx_71> + Has<sm_80>,
    {
        unsafe { Block::test_wait(word, phase) }
    }
}

impl SharedScope for Block where
    for<'a> Target: Has<ptx_70> + Has<ptx_71> + Has<sm_80> + Has<ptx_80> + Has<sm_90>
{
}

impl Transactions for Block
where
    for<'a> Target: Has<ptx_80> + Has<sm_90>,
{
    #[inline(always)]
    unsafe fn expect_tx(word: *mut u64, bytes: u32) {
        unsafe { mbarrier_expect_tx(sem_relaxed, scope_cta, space_shared, word, bytes) }
    }

    #[inline(always)]
    unsafe fn arrive_expect_tx(word: *mut u64, bytes: u32) -> u64 {
        unsafe { mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, word, bytes) }
    }
}

impl Scope for Cluster where
    for<'a> Target: Has<ptx_70> + Has<sm_80> + Has<ptx_78> + Has<ptx_80> + Has<sm_90>
{
}

impl Operations for Cluster
where
    for<'a> Target: Has<ptx_70> + Has<sm_80> + Has<ptx_78> + Has<ptx_80> + Has<sm_90>,
{
    const MAX_COUNT: u32 = (1 << 20) - 1;

    #[inline(always)]
    unsafe fn init(word: *mut u64, expected: u32) {
        unsafe { mbarrier_init(word, expected) };
        // For the threads of the other blocks, once a cluster barrier has followed.
        fence_mbarrier_init(sem_release, scope_cluster);
    }

    #[inline(always)]
    unsafe fn inval(word: *mut u64) {
        unsafe { mbarrier_inval(word) }
    }

    #[inline(always)]
    unsafe fn arrive_n(word: *mut u64, count: u32) -> u64 {
        unsafe {
            mbarrier_arrive_sem_scope_space_count(
                sem_release,
                scope_cluster,
                space_shared,
                word,
                count,
            )
        }
    }

    #[inline(always)]
    unsafe fn arrive_and_drop(word: *mut u64) {
        unsafe { mbarrier_arrive_drop(sem_release, scope_cluster, space_shared, word, 1) };
    }

    #[inline(always)]
    unsafe fn test_wait(word: *mut u64, phase: Phase) -> bool {
        match phase {
            Phase::State(state) => unsafe {
                mbarrier_test_wait_sem_scope(sem_acquire, scope_cluster, word, state)
            },
            Phase::Parity(parity) => unsafe {
                mbarrier_test_wait_parity_sem_scope(sem_acquire, scope_cluster, word, parity)
            },
        }
    }

    #[inline(always)]
    unsafe fn try_wait(word: *mut u64, phase: Phase) -> bool {
        match phase {
            Phase::State(state) => unsafe {
                mbarrier_try_wait_sem_scope(sem_acquire, scope_cluster, word, state)
            },
            Phase::Parity(parity) => unsafe {
                mbarrier_try_wait_parity_sem_scope(sem_acquire, scope_cluster, word, parity)
            },
        }
    }

    #[inline(always)]
    unsafe fn try_wait_for(word: *mut u64, phase: Phase, nanoseconds: u32) -> bool {
        match phase {
            Phase::State(state) => unsafe {
                mbarrier_try_wait_sem_scope_suspend_time_hint(
                    sem_acquire,
                    scope_cluster,
                    word,
                    state,
                    nanoseconds,
                )
            },
            Phase::Parity(parity) => unsafe {
                mbarrier_try_wait_parity_sem_scope_suspend_time_hint(
                    sem_acquire,
                    scope_cluster,
                    word,
                    parity,
                    nanoseconds,
                )
            },
        }
    }

    #[inline(always)]
    unsafe fn fetch_sub(number: *mut u32, subtrahend: u32) -> u32 {
        unsafe { fetch_sub_cluster(number, subtrahend) }
    }
}

impl SharedScope for Cluster where
    for<'a> Target: Has<ptx_70> + Has<sm_80> + Has<ptx_78> + Has<ptx_80> + Has<sm_90>
{
}

impl Transactions for Cluster
where
    for<'a> Target: Has<ptx_80> + Has<sm_90>,
{
    #[inline(always)]
    unsafe fn expect_tx(word: *mut u64, bytes: u32) {
        unsafe { mbarrier_expect_tx(sem_relaxed, scope_cluster, space_shared, word, bytes) }
    }

    #[inline(always)]
    unsafe fn arrive_expect_tx(word: *mut u64, bytes: u32) -> u64 {
        unsafe { mbarrier_arrive_expect_tx(sem_release, scope_cluster, space_shared, word, bytes) }
    }
}

macro_rules! atomic_scopes {
    ($($scope:ident = $atoms:ident),*) => {$(
        impl Scope for $scope {}
        impl AtomicScope for $scope {}

        impl Operations for $scope {
            const MAX_COUNT: u32 = counter::MAX_COUNT;

            #[inline(always)]
            unsafe fn init(word: *mut u64, expected: u32) {
                unsafe { word.write(counter::initial(expected)) }
            }

            #[inline(always)]
            unsafe fn inval(_: *mut u64) {}

            #[inline(always)]
            unsafe fn arrive_n(word: *mut u64, count: u32) -> u64 {
                counter::arrive(count, |change| unsafe { $atoms::fetch_add(word, change) })
            }

            #[inline(always)]
            unsafe fn arrive_and_drop(word: *mut u64) {
                counter::arrive_and_drop(|change| unsafe { $atoms::fetch_add(word, change) });
            }

            #[inline(always)]
            unsafe fn test_wait(word: *mut u64, phase: Phase) -> bool {
                let phase = match phase {
                    Phase::State(state) => state,
                    Phase::Parity(parity) => u64::from(parity) << 63,
                };
                counter::is_complete(unsafe { $atoms::load(word) }, phase)
            }

            #[inline(always)]
            unsafe fn try_wait(word: *mut u64, phase: Phase) -> bool {
                unsafe { Self::try_wait_for(word, phase, LONGEST_SLEEP) }
            }

            #[inline(always)]
            unsafe fn try_wait_for(word: *mut u64, phase: Phase, nanoseconds: u32) -> bool {
                let complete = unsafe { Self::test_wait(word, phase) };
                if !complete {
                    nanosleep(nanoseconds.min(LONGEST_SLEEP));
                }
                complete
            }

            #[inline(always)]
            unsafe fn wait(word: *mut u64, phase: Phase) {
                let mut nanoseconds = SHORTEST_SLEEP;
                while !unsafe { Self::try_wait_for(word, phase, nanoseconds) } {
                    nanoseconds = (2 * nanoseconds).min(LONGEST_SLEEP);
                }
            }

            #[inline(always)]
            unsafe fn fetch_sub(number: *mut u32, subtrahend: u32) -> u32 {
                unsafe { $atoms::fetch_sub(number, subtrahend) }
            }
        }
    )*};
}
atomic_scopes!(Device = gpu, System = sys);

/// Between two looks at the word, in nanoseconds.
const SHORTEST_SLEEP: u32 = 16;
const LONGEST_SLEEP: u32 = 1024;
