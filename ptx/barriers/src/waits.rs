//! Waits that end before the phase does.

use core::time::Duration;

use cuda_ptx::barrier::{Barrier, Instant, Parity};
use cuda_ptx::{get_sreg_tid_x, kernel, shared};

use crate::sync;

shared! {
    static BAR: Barrier;
}

kernel! {
    /// One thread: what each kind of wait says before and after the phase completes.
    pub fn answers(out: *mut u32) {
        let limit = Duration::from_micros(3);
        Barrier::init(BAR.as_mut_ptr(), 2);
        let bar: &Barrier = Barrier::from_ptr(BAR.as_mut_ptr());
        let mut results = 0;
        let mut note = |result: bool| results = 2 * results + result as u32;

        let token = bar.arrive();
        note(token.is_complete());
        note(bar.is_parity_complete(Parity::EVEN));
        note(bar.is_parity_complete(Parity::ODD));
        note(bar.try_wait_parity_for(Parity::ODD, limit));

        let other = bar.arrive();
        note(token.is_complete());
        note(bar.is_parity_complete(Parity::EVEN));
        note(bar.is_parity_complete(Parity::ODD));
        note(token.try_wait_for(limit).is_ok());
        note(other.try_wait_until(Instant::now()).is_ok());
        note(bar.try_wait_parity_for(Parity::EVEN, limit));
        note(bar.try_wait_parity_until(Parity::EVEN, Instant::now() + limit));
        *out = results;
    }

    /// Thread 0 arrives for all; the others only wait.
    pub fn one_arrives_for_all(out: *mut u32) {
        if get_sreg_tid_x() == 0 {
            Barrier::init(BAR.as_mut_ptr(), 100);
        }
        sync();
        let bar: &Barrier = Barrier::from_ptr(BAR.as_mut_ptr());
        if get_sreg_tid_x() == 0 {
            *out = 42;
            let _ = bar.arrive_n(60);
            bar.arrive_n_tx(40, 0).wait();
        }
        bar.wait_parity(Parity::EVEN);
        *out.add(1 + get_sreg_tid_x() as usize) = *out;
    }
}
