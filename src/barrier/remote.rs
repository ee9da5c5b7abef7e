//! A barrier in the shared memory of another block of the cluster.

use core::marker::PhantomData;

use super::Barrier;
use super::instructions::mapa;
use super::scope::Cluster;
use crate::target::{Has, Target, ptx_78, ptx_80, sm_90};
use crate::{
    mbarrier_arrive_drop, mbarrier_arrive_expect_tx, mbarrier_arrive_sem_scope_space,
    mbarrier_arrive_sem_scope_space_count, mbarrier_expect_tx, scope_cluster, sem_relaxed,
    sem_release, space_cluster,
};

/// The barrier that a [`Barrier<Cluster>`](Cluster) is in some block of the cluster, made by
/// [`Barrier::remote`].
///
/// The threads of that block wait for it; those of others only arrive, and get no token.
#[derive(Clone, Copy)]
pub struct RemoteBarrier<'b> {
    word: *mut u64,
    of: PhantomData<&'b Barrier<Cluster>>,
}

impl Barrier<Cluster> {
    /// The barrier at the same place in the shared memory of the block with rank `rank` in the
    /// cluster, which can be this one.
    ///
    /// ```text
    /// mapa.u64 remote, barrier, rank;
    ///     PTX ISA 7.8, sm_90 and later
    /// ```
    ///
    /// # Safety
    ///
    /// The cluster has a block of this rank, which has initialised the barrier before this, and does
    /// not end before the last use of the result. A cluster barrier after the initialisation and one
    /// after the last use ensure both.
    #[inline(always)]
    #[must_use]
    pub unsafe fn remote(&self, rank: u32) -> RemoteBarrier<'_>
    where
        for<'a> Target: Has<ptx_78> + Has<sm_90>,
    {
        RemoteBarrier {
            word: unsafe { mapa(self.word.get(), rank) },
            of: PhantomData,
        }
    }
}

/// The forms with `.release` and `.cluster`, for what happens in this block before the arrival to be
/// seen by the waiters in the other one.
impl RemoteBarrier<'_>
where
    for<'a> Target: Has<ptx_80> + Has<sm_90>,
{
    /// The mbarrier object as a generic address, for the functions of [`mbarrier`](crate::mbarrier)
    /// that take `space_cluster`.
    #[inline(always)]
    #[must_use]
    pub fn native_handle(self) -> *mut u64 {
        self.word
    }

    /// Arrives.
    #[inline(always)]
    pub fn arrive(self) {
        // SAFETY: `remote` was promised a barrier; here and below.
        unsafe {
            mbarrier_arrive_sem_scope_space(sem_release, scope_cluster, space_cluster, self.word);
        }
    }

    /// Arrives `count` times at once.
    #[inline(always)]
    pub fn arrive_n(self, count: u32) {
        unsafe {
            mbarrier_arrive_sem_scope_space_count(
                sem_release,
                scope_cluster,
                space_cluster,
                self.word,
                count,
            );
        }
    }

    /// Arrives, and lowers the number of arrivals that later phases expect by one.
    #[inline(always)]
    pub fn arrive_and_drop(self) {
        unsafe { mbarrier_arrive_drop(sem_release, scope_cluster, space_cluster, self.word, 1) }
    }

    /// Makes the current phase wait for `bytes` more of asynchronous copies.
    #[inline(always)]
    pub fn expect_tx(self, bytes: u32) {
        unsafe { mbarrier_expect_tx(sem_relaxed, scope_cluster, space_cluster, self.word, bytes) }
    }

    /// Makes the current phase wait for `bytes` more of asynchronous copies, and arrives.
    #[inline(always)]
    pub fn arrive_tx(self, bytes: u32) {
        unsafe {
            mbarrier_arrive_expect_tx(sem_release, scope_cluster, space_cluster, self.word, bytes);
        }
    }
}
