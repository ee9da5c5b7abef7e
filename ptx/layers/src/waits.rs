//! Arrivals and waits of a block's barrier.

use core::time::Duration;

use cuda_ptx::barrier::{Barrier, Parity};
use cuda_ptx::*;

use crate::{BAR, load, store, sync};

#[inline(always)]
unsafe fn typed(expected: u32) -> &'static Barrier {
    if get_sreg_tid_x() == 0 {
        Barrier::init(BAR.as_mut_ptr(), expected);
    }
    sync();
    Barrier::from_ptr(BAR.as_mut_ptr())
}

#[inline(always)]
unsafe fn object(expected: u32) -> *mut u64 {
    if get_sreg_tid_x() == 0 {
        mbarrier_init(BAR.as_mut_ptr().cast(), expected);
    }
    sync();
    BAR.as_mut_ptr().cast()
}

kernel! {
    pub fn arrive_and_wait__barrier(n: u32, out: *mut u32) {
        let bar = typed(n);
        store(n);
        bar.arrive_and_wait();
        *out = load();
    }

    pub fn arrive_and_wait__ptx(n: u32, out: *mut u32) {
        let bar = object(n);
        store(n);
        let state = mbarrier_arrive(bar);
        while !mbarrier_try_wait(bar, state) {}
        *out = load();
    }

    pub fn phases__barrier(n: u32, phases: u32, out: *mut u32) {
        let bar = typed(n);
        let mut parity = Parity::EVEN;
        let mut value = n;
        for _ in 0..phases {
            store(value);
            let _ = bar.arrive();
            bar.wait_parity(parity.advance());
            value ^= load();
        }
        *out = value;
    }

    pub fn phases__ptx(n: u32, phases: u32, out: *mut u32) {
        let bar = object(n);
        let mut parity = 0;
        let mut value = n;
        for _ in 0..phases {
            store(value);
            let _ = mbarrier_arrive(bar);
            while !mbarrier_try_wait_parity(bar, parity) {}
            parity ^= 1;
            value ^= load();
        }
        *out = value;
    }

    pub fn arrive_n__barrier(n: u32, count: u32, out: *mut u32) {
        let bar = typed(n);
        store(n);
        bar.arrive_n(count).wait();
        *out = load();
    }

    pub fn arrive_n__ptx(n: u32, count: u32, out: *mut u32) {
        let bar = object(n);
        store(n);
        let state = mbarrier_arrive_count(bar, count);
        while !mbarrier_try_wait(bar, state) {}
        *out = load();
    }

    pub fn try_wait__barrier(n: u32, out: *mut u32) {
        let bar = typed(n);
        store(n);
        let mut token = bar.arrive();
        let mut polls = 0;
        while let Err(same) = token.try_wait() {
            token = same;
            polls += 1;
        }
        *out = load() + polls;
    }

    pub fn try_wait__ptx(n: u32, out: *mut u32) {
        let bar = object(n);
        store(n);
        let state = mbarrier_arrive(bar);
        let mut polls = 0;
        while !mbarrier_try_wait(bar, state) {
            polls += 1;
        }
        *out = load() + polls;
    }

    pub fn is_complete__barrier(n: u32, out: *mut u32) {
        let bar = typed(n);
        store(n);
        let token = bar.arrive();
        *out = token.is_complete() as u32;
        *out.add(1) = bar.is_parity_complete(Parity::EVEN) as u32;
        token.wait();
    }

    pub fn is_complete__ptx(n: u32, out: *mut u32) {
        let bar = object(n);
        store(n);
        let state = mbarrier_arrive(bar);
        *out = mbarrier_test_wait(bar, state) as u32;
        *out.add(1) = mbarrier_test_wait_parity(bar, 0) as u32;
        while !mbarrier_try_wait(bar, state) {}
    }

    pub fn timed__barrier(n: u32, nanoseconds: u32, out: *mut u32) {
        let bar = typed(n);
        store(n);
        let limit = Duration::new(0, nanoseconds);
        let _ = bar.arrive();
        *out = bar.try_wait_parity_for(Parity::EVEN, limit) as u32;
    }

    pub fn timed__ptx(n: u32, nanoseconds: u32, out: *mut u32) {
        let bar = object(n);
        store(n);
        let limit = Duration::new(0, nanoseconds);
        let _ = mbarrier_arrive(bar);
        let now = get_sreg_globaltimer();
        let mut left = limit.as_secs().saturating_mul(1_000_000_000);
        left = left.saturating_add(u64::from(limit.subsec_nanos()));
        let deadline = now.saturating_add(left);
        let mut poll = || loop {
            let hint = left.min(u64::from(u32::MAX)) as u32;
            if mbarrier_try_wait_parity_suspend_time_hint(bar, 0, hint) {
                return true;
            }
            left = deadline.saturating_sub(get_sreg_globaltimer());
            if left == 0 {
                return false;
            }
        };
        *out = poll() as u32;
    }

    pub fn transactions__barrier(n: u32, bytes: u32, input: *const u32, out: *mut u32) {
        let bar = typed(n);
        let tile = crate::TILES.as_mut_ptr().cast::<u32>();
        if get_sreg_tid_x() == 0 {
            bar.expect_tx(bytes);
            cp_async_bulk_bar(space_shared, space_global, tile, input, bytes, bar.native_handle());
            cp_async_bulk_bar(space_shared, space_global, tile.add(256), input, bytes, bar.native_handle());
            bar.arrive_tx(bytes).wait();
        } else {
            bar.arrive_n_tx(2, 0).wait();
        }
        *out = load();
    }

    pub fn transactions__ptx(n: u32, bytes: u32, input: *const u32, out: *mut u32) {
        let bar = object(n);
        let tile = crate::TILES.as_mut_ptr().cast::<u32>();
        if get_sreg_tid_x() == 0 {
            mbarrier_expect_tx(sem_relaxed, scope_cta, space_shared, bar, bytes);
            cp_async_bulk_bar(space_shared, space_global, tile, input, bytes, bar);
            cp_async_bulk_bar(space_shared, space_global, tile.add(256), input, bytes, bar);
            let state = mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, bar, bytes);
            while !mbarrier_try_wait(bar, state) {}
        } else {
            mbarrier_expect_tx(sem_relaxed, scope_cta, space_shared, bar, 0);
            let state = mbarrier_arrive_count(bar, 2);
            while !mbarrier_try_wait(bar, state) {}
        }
        *out = load();
    }

    pub fn drop_out__barrier(n: u32, out: *mut u32) {
        let bar = typed(n);
        store(n);
        if get_sreg_tid_x() == 7 {
            bar.arrive_and_drop();
            return;
        }
        bar.arrive_and_wait();
        bar.arrive_and_wait();
        *out = load();
        sync();
        if get_sreg_tid_x() == 0 {
            Barrier::inval(BAR.as_mut_ptr());
        }
    }

    pub fn drop_out__ptx(n: u32, out: *mut u32) {
        let bar = object(n);
        store(n);
        if get_sreg_tid_x() == 7 {
            let _ = mbarrier_arrive_drop(sem_release, scope_cta, space_shared, bar, 1);
            return;
        }
        let state = mbarrier_arrive(bar);
        while !mbarrier_try_wait(bar, state) {}
        let state = mbarrier_arrive(bar);
        while !mbarrier_try_wait(bar, state) {}
        *out = load();
        sync();
        if get_sreg_tid_x() == 0 {
            mbarrier_inval(bar);
        }
    }
}
