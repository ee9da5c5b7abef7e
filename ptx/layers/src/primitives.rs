//! The C primitives.

use cuda_ptx::awbarrier::*;
use cuda_ptx::*;

use crate::{BAR, load, store, sync};

kernel! {
    pub fn primitives__awbarrier(n: u32, out: *mut u32) {
        let bar = BAR.as_mut_ptr().cast::<u64>();
        if get_sreg_tid_x() == 0 {
            __mbarrier_init(bar, n);
        }
        sync();
        store(n);
        if n > 5 {
            let _ = __mbarrier_arrive_noComplete(bar, 3);
        }
        let token = __mbarrier_arrive(bar);
        *out = __mbarrier_token_pending_count(token);
        if __mbarrier_test_wait(bar, token) || __mbarrier_test_wait_parity(bar, false) {
            *out.add(1) = load();
        }
        while !__mbarrier_try_wait(bar, token, 1000) {}
        while !__mbarrier_try_wait_parity(bar, false, 1000) {}
        *out.add(2) = load();
        sync();
        if get_sreg_tid_x() == 0 {
            __mbarrier_inval(bar);
        }
    }

    pub fn primitives__ptx(n: u32, out: *mut u32) {
        let bar = BAR.as_mut_ptr().cast::<u64>();
        if get_sreg_tid_x() == 0 {
            mbarrier_init(bar, n);
        }
        sync();
        store(n);
        if n > 5 {
            let _ = mbarrier_arrive_no_complete(bar, 3);
        }
        let token = mbarrier_arrive(bar);
        *out = mbarrier_pending_count(token);
        if mbarrier_test_wait(bar, token) || mbarrier_test_wait_parity(bar, 0) {
            *out.add(1) = load();
        }
        while !mbarrier_try_wait_suspend_time_hint(bar, token, 1000) {}
        while !mbarrier_try_wait_parity_suspend_time_hint(bar, 0, 1000) {}
        *out.add(2) = load();
        sync();
        if get_sreg_tid_x() == 0 {
            mbarrier_inval(bar);
        }
    }

    pub fn drops__awbarrier(n: u32, out: *mut u32) {
        let bar = BAR.as_mut_ptr().cast::<u64>();
        if get_sreg_tid_x() == 0 {
            __mbarrier_init(bar, n);
        }
        sync();
        let _ = __mbarrier_arrive_and_drop_noComplete(bar, 2);
        let token = __mbarrier_arrive_and_drop(bar);
        *out = __mbarrier_token_pending_count(token);
    }

    pub fn drops__ptx(n: u32, out: *mut u32) {
        let bar = BAR.as_mut_ptr().cast::<u64>();
        if get_sreg_tid_x() == 0 {
            mbarrier_init(bar, n);
        }
        sync();
        let _ = mbarrier_arrive_drop_no_complete(bar, 2);
        let token = mbarrier_arrive_drop(sem_release, scope_cta, space_shared, bar, 1);
        *out = mbarrier_pending_count(token);
    }
}
