//! Accesses to memory around the operations that order them.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering};

use cuda_ptx::*;

use crate::thread::Thread;

/// The largest block.
const THREADS: usize = 1024;
/// How many words the bulk copies move: one for each of 256 threads.
const WORDS: u32 = 256;

shared! {
    static BARRIER: u64;
    #[align(128)]
    static TILE: [u32; THREADS];
}

/// The word of this thread in shared memory.
#[inline(always)]
fn own() -> *mut u32 {
    tile(get_sreg_tid_x())
}

/// The word of the last thread for the first one, and so on.
#[inline(always)]
fn others() -> *mut u32 {
    tile(get_sreg_ntid_x() - 1 - get_sreg_tid_x())
}

#[inline(always)]
fn tile(k: u32) -> *mut u32 {
    TILE.as_mut_ptr().cast::<u32>().wrapping_add(k as usize)
}

#[inline(always)]
unsafe fn bar_sync() {
    asm!("bar.sync 0;", options(nostack));
}

#[inline(always)]
unsafe fn bar_warp_sync() {
    asm!("bar.warp.sync -1;", options(nostack));
}

/// A function that stays one. The barrier is an LLVM intrinsic, of which an analysis may think that
/// it writes no variable.
#[inline(never)]
unsafe fn syncthreads_in_function() {
    core::arch::nvptx::_syncthreads();
}

#[inline(never)]
unsafe fn bar_sync_in_function() {
    bar_sync();
}

#[inline(never)]
unsafe fn doubled(x: u32) -> u32 {
    bar_sync();
    x * 2
}

#[inline(never)]
unsafe fn tripled(x: u32) -> u32 {
    bar_sync();
    x * 3
}

kernel! {
    /// The value stored is known where it is loaded, unless another thread has written it.
    // order: st.shared < bar.sync < ld.shared
    pub fn order_exchange(data: *mut u32, notes: *mut u32, _n: u32) {
        let thread = Thread::new(data, notes);
        *own() = thread.get();
        bar_sync();
        thread.set(*others());
    }

    /// The barrier is in a function that stays one.
    // order: st.shared < bar.sync < ld.shared
    pub fn order_exchange_by_function(data: *mut u32, notes: *mut u32, _n: u32) {
        let thread = Thread::new(data, notes);
        *own() = thread.get();
        bar_sync_in_function();
        thread.set(*others());
    }

    /// The barrier is an LLVM intrinsic in a function that stays one.
    // order: st.shared < bar.sync < ld.shared
    pub fn order_exchange_by_intrinsic(data: *mut u32, notes: *mut u32, _n: u32) {
        let thread = Thread::new(data, notes);
        *own() = thread.get();
        syncthreads_in_function();
        thread.set(*others());
    }

    /// One lane stores, all lanes load.
    // order: st.shared? < bar.warp.sync < ld.shared
    pub fn order_broadcast(data: *mut u32, notes: *mut u32, _n: u32) {
        let thread = Thread::new(data, notes);
        let x = thread.get();
        let first = tile(get_sreg_tid_x() & !31);
        if elect_sync(u32::MAX) {
            *first = x;
        }
        bar_warp_sync();
        thread.set(*first);
    }

    /// The second load looks like the first.
    // order: st.shared < bar.sync < ld.shared < bar.sync < st.shared < bar.sync < ld.shared
    pub fn order_exchange_twice(data: *mut u32, notes: *mut u32, n: u32) {
        let thread = Thread::new(data, notes);
        *own() = thread.get();
        bar_sync();
        let x = *others();
        bar_sync();
        *own() = x + n;
        bar_sync();
        thread.set(*others());
    }

    /// One word could stay in a register for the whole loop.
    // order: st.shared < bar.sync in loop < ld.shared in loop < bar.sync in loop < st.shared? in loop < ld.shared
    pub fn order_exchange_in_loop(data: *mut u32, notes: *mut u32, n: u32) {
        let thread = Thread::new(data, notes);
        let x = thread.get();
        *own() = x;
        for _ in 0..n {
            bar_sync();
            let x = *others();
            bar_sync();
            *own() = x + 1;
        }
        thread.set(*own());
    }

    /// The copy engine must find what the threads stored.
    // order: st.shared < fence.proxy.async < bar.sync < cp.async.bulk.global < cp.async.bulk.commit_group < cp.async.bulk.wait_group
    pub fn order_bulk_store(data: *mut u32, notes: *mut u32, _n: u32) {
        let thread = Thread::new(data, notes);
        *own() = thread.get() + 1;
        fence_proxy_async_space(space_shared);
        bar_sync();
        if get_sreg_tid_x() == 0 {
            cp_async_bulk(space_global, space_shared, notes, tile(0), WORDS * 4);
            cp_async_bulk_commit_group();
            cp_async_bulk_wait_group(n32::<0>);
        }
    }

    /// The source of a copy is overwritten only when it has been read.
    // order: st.shared < fence.proxy.async < bar.sync < cp.async.bulk.global? < cp.async.bulk.commit_group? < cp.async.bulk.wait_group.read? < bar.sync < st.shared < bar.sync < ld.shared
    pub fn order_bulk_source_reused(data: *mut u32, notes: *mut u32, n: u32) {
        let thread = Thread::new(data, notes);
        *own() = thread.get();
        fence_proxy_async_space(space_shared);
        bar_sync();
        if get_sreg_tid_x() == 0 {
            cp_async_bulk(space_global, space_shared, notes, tile(0), WORDS * 4);
            cp_async_bulk_commit_group();
            cp_async_bulk_wait_group_read(n32::<0>);
        }
        bar_sync();
        *own() = n;
        bar_sync();
        thread.set(*others());
    }

    /// What a bulk copy brings is loaded behind the wait, and the wait repeats.
    // order: mbarrier.init? < fence.mbarrier_init? < bar.sync < mbarrier.arrive.expect_tx? < cp.async.bulk.shared? < mbarrier.try_wait in loop < ld.shared
    pub fn order_bulk_load(data: *mut u32, notes: *mut u32, _n: u32) {
        let thread = Thread::new(data, notes);
        let barrier = BARRIER.as_mut_ptr();
        let lead = get_sreg_tid_x() == 0;
        if lead {
            mbarrier_init(barrier, 1);
            fence_mbarrier_init(sem_release, scope_cluster);
        }
        bar_sync();
        if lead {
            let bytes = WORDS * 4;
            let _ = mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, barrier, bytes);
            cp_async_bulk_bar(space_shared, space_global, tile(0), data, bytes, barrier);
        }
        while !mbarrier_try_wait_parity(barrier, 0) {}
        thread.set(*others());
    }

    /// Stores stay before the arrival that releases them, loads behind the wait that acquires.
    // order: st.shared < mbarrier.arrive < mbarrier.test_wait in loop < ld.shared
    pub fn order_arrive_and_wait(data: *mut u32, notes: *mut u32, _n: u32) {
        let thread = Thread::new(data, notes);
        let barrier = BARRIER.as_mut_ptr();
        if get_sreg_tid_x() == 0 {
            mbarrier_init(barrier, get_sreg_ntid_x());
        }
        bar_sync();
        *own() = thread.get();
        let token = mbarrier_arrive(barrier);
        while !mbarrier_test_wait(barrier, token) {}
        thread.set(*others());
    }

    /// Two waits that look alike are for two phases.
    // order: mbarrier.arrive < mbarrier.try_wait in loop < mbarrier.arrive < mbarrier.try_wait in loop
    pub fn order_two_phases(data: *mut u32, notes: *mut u32, _n: u32) {
        let thread = Thread::new(data, notes);
        let barrier = BARRIER.as_mut_ptr();
        if get_sreg_tid_x() == 0 {
            mbarrier_init(barrier, get_sreg_ntid_x());
        }
        bar_sync();
        let token = mbarrier_arrive(barrier);
        while !mbarrier_try_wait(barrier, token) {}
        let token = mbarrier_arrive(barrier);
        while !mbarrier_try_wait(barrier, token) {}
        thread.set(token as u32);
    }

    /// A loop without an effect of its own goes on until another thread has stored.
    // order: ld.acquire in loop < ld.global
    pub fn order_poll_flag(data: *mut u32, notes: *mut u32, _n: u32) {
        let thread = Thread::new(data, notes);
        let flag = AtomicU32::from_ptr(notes);
        while flag.load(Ordering::Acquire) == 0 {}
        *notes.add(1) = thread.get();
    }

    /// The flag follows the data.
    // order: st.global < fence.acq_rel < st.global
    pub fn order_publish(data: *mut u32, notes: *mut u32, n: u32) {
        *data = n;
        fence(sem_acq_rel, scope_gpu);
        *notes = 1;
    }

    /// The later store would make the earlier one dead, if nobody could look between them.
    // order: st.global < fence.acq_rel < st.global
    pub fn order_overwrite(data: *mut u32, notes: *mut u32, n: u32) {
        let _ = notes;
        *data = n;
        fence(sem_acq_rel, scope_gpu);
        *data = n + 1;
    }

    /// The other thread blocks of the cluster may write this one's shared memory.
    // order: st.shared < barrier.cluster.arrive < barrier.cluster.wait < ld.shared
    #[cluster_dim(2, 1, 1)]
    pub fn order_cluster(data: *mut u32, notes: *mut u32, _n: u32) {
        let thread = Thread::new(data, notes);
        *own() = thread.get();
        barrier_cluster_arrive();
        barrier_cluster_wait();
        thread.set(*others());
    }

    /// What the threads stored is loaded as a matrix, and stored as one, and loaded.
    // order: st.shared < bar.warp.sync < ldmatrix < bar.warp.sync < stmatrix < bar.warp.sync < ld.shared
    pub fn order_matrix(data: *mut u32, notes: *mut u32, _n: u32) {
        let thread = Thread::new(data, notes);
        let row = tile(4 * get_sreg_laneid()).cast::<u16>();
        let mut fragment = [0];
        *own() = thread.get();
        bar_warp_sync();
        ldmatrix_m8n8(space_shared, &mut fragment, row);
        bar_warp_sync();
        stmatrix_m8n8(row, [fragment[0].wrapping_add(1)]);
        bar_warp_sync();
        thread.set(*own());
    }

    /// The map is complete before it is published.
    // order: st.shared < bar.warp.sync < tensormap.cp_fenceproxy
    pub fn order_tensormap(data: *mut u32, notes: *mut u32, n: u32) {
        let _ = data;
        *own() = n;
        bar_warp_sync();
        tensormap_cp_fenceproxy(sem_release, scope_gpu, notes, tile(0), n32::<128>);
    }

    /// A measurement starts before and ends behind what it measures.
    // order: %clock64 < bar.sync < %clock64
    pub fn order_clock(data: *mut u32, notes: *mut u32, _n: u32) {
        let thread = Thread::new(data, notes);
        let start = get_sreg_clock64();
        bar_sync();
        let end = get_sreg_clock64();
        thread.set((end - start) as u32);
    }

    /// A call through a pointer, between two ifs on one condition: what it calls may be a barrier.
    // order: call
    pub fn order_call_by_pointer(data: *mut u32, notes: *mut u32, n: u32) {
        let thread = Thread::new(data, notes);
        let x = thread.get();
        let odd = x & 1 != 0;
        let function = if n & 1 != 0 { doubled } else { tripled };
        let function: unsafe fn(u32) -> u32 = core::hint::black_box(function);
        if odd {
            thread.note(0, x);
        }
        let y = function(x);
        if odd {
            thread.note(1, y);
        }
        thread.set(y);
    }
}
