//! Barriers of atomic operations between threads of this process: the same code that runs on the
//! device, but for the instructions.

extern crate std;

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::vec::Vec;

use super::*;

const THREADS: u32 = 8;
const PHASES: u32 = 500;

/// Runs `body` in all threads, with the number of each.
fn in_threads(body: impl Fn(u32) + Sync) {
    thread::scope(|scope| {
        for rank in 0..THREADS {
            let body = &body;
            scope.spawn(move || body(rank));
        }
    });
}

/// Memory that is written before arrivals and read after waits.
struct Plain<T>(UnsafeCell<T>);

// SAFETY: the tests order their accesses by a barrier.
unsafe impl<T> Sync for Plain<T> {}

impl<T: Copy> Plain<T> {
    fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    fn get(&self) -> T {
        unsafe { *self.0.get() }
    }

    fn set(&self, value: T) {
        unsafe { *self.0.get() = value };
    }
}

#[test]
fn what_was_written_before_an_arrival_is_read_after_the_wait() {
    let bar = Barrier::<Device>::new(THREADS);
    let shown: Vec<_> = (0..2 * THREADS).map(|_| Plain::new(0)).collect();
    in_threads(|rank| {
        let mut parity = Parity::EVEN;
        for phase in 0..PHASES {
            let shown = &shown[(phase % 2 * THREADS) as usize..][..THREADS as usize];
            shown[rank as usize].set(phase);
            let token = bar.arrive();
            if rank % 2 == 0 {
                token.wait();
            } else {
                bar.wait_parity(parity);
                assert!(token.is_complete());
            }
            parity.advance();
            for other in shown {
                assert_eq!(other.get(), phase);
            }
        }
    });
}

#[test]
fn one_thread_can_arrive_for_others() {
    let bar = Barrier::<System>::new(2 * THREADS - 1);
    let arrived = AtomicU32::new(0);
    in_threads(|rank| {
        for phase in 0..PHASES {
            arrived.fetch_add(1, Relaxed);
            if rank == 0 {
                bar.arrive_n(THREADS).wait();
            } else {
                bar.arrive_and_wait();
            }
            assert!(arrived.load(Relaxed) >= (phase + 1) * THREADS);
        }
    });
}

#[test]
fn threads_drop_out_and_the_others_go_on() {
    // The last arrival of a phase is often one that drops out: all but one thread do, one after
    // another.
    for round in 0..200 {
        let bar = Barrier::<Device>::new(THREADS);
        let left = AtomicU32::new(THREADS);
        in_threads(|rank| {
            for _ in 0..rank * (1 + round % 7) {
                bar.arrive_and_wait();
            }
            if rank + 1 < THREADS {
                left.fetch_sub(1, Relaxed);
                bar.arrive_and_drop();
            } else {
                for _ in 0..10 {
                    bar.arrive_and_wait();
                }
                assert_eq!(left.load(Relaxed), 1);
            }
        });
    }
}

/// A barrier with a completion function, in place.
fn with_completion<C: Completion, R>(
    expected: u32,
    completion: C,
    body: impl FnOnce(&Barrier<Device, C>) -> R,
) -> R {
    let mut bar = MaybeUninit::uninit();
    unsafe {
        Barrier::init_with(bar.as_mut_ptr(), expected, completion);
        let result = body(Barrier::from_ptr(bar.as_ptr()));
        Barrier::inval(bar.as_mut_ptr());
        result
    }
}

/// Sums what the threads show and publishes the sum, without any synchronisation of its own.
struct Sum<'a> {
    shown: &'a [Plain<u32>],
    calls: &'a Plain<u32>,
    total: &'a Plain<u32>,
}

impl CompletionFunction for Sum<'_> {
    fn complete(&mut self) {
        let sum: u32 = self.shown.iter().map(Plain::get).sum();
        self.total.set(self.total.get() + sum);
        self.calls.set(self.calls.get() + 1);
    }
}

#[test]
fn a_completion_function_runs_once_in_a_phase_between_arrivals_and_waits() {
    let shown: Vec<_> = (0..THREADS).map(|_| Plain::new(0)).collect();
    let (calls, total) = (Plain::new(0), Plain::new(0));
    let sum = Sum {
        shown: &shown,
        calls: &calls,
        total: &total,
    };
    let all_read = Barrier::<Device>::new(THREADS);
    with_completion(THREADS, sum, |bar| {
        in_threads(|rank| {
            for phase in 0..PHASES {
                shown[rank as usize].set(rank + phase);
                bar.arrive_and_wait();
                assert_eq!(calls.get(), phase + 1);
                let ranks = THREADS * (THREADS - 1) / 2;
                let phases = phase * (phase + 1) / 2;
                assert_eq!(total.get(), (phase + 1) * ranks + THREADS * phases);
                // The next phase begins when all have read.
                all_read.arrive_and_wait();
            }
        });
    });
}

#[test]
fn a_completion_function_runs_for_threads_that_drop_out_too() {
    let calls = AtomicU32::new(0);
    let count = || {
        calls.fetch_add(1, Relaxed);
    };
    with_completion(THREADS, count, |bar| {
        in_threads(|rank| {
            for _ in 0..rank {
                bar.arrive_and_wait();
            }
            bar.arrive_and_drop();
        });
    });
    assert_eq!(calls.into_inner(), THREADS);
}

#[test]
fn a_completion_function_is_dropped_with_its_barrier() {
    let drops = AtomicU32::new(0);
    struct OnDrop<'a>(&'a AtomicU32);
    impl Drop for OnDrop<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let guard = OnDrop(&drops);
    let function = move || {
        let _ = &guard;
    };
    with_completion(1, function, |bar| {
        bar.arrive_and_wait();
        assert_eq!(drops.load(Relaxed), 0);
    });
    assert_eq!(drops.load(Relaxed), 1);
}

#[test]
fn a_barrier_without_a_function_is_one_word() {
    assert_eq!(size_of::<Barrier>(), 8);
    assert_eq!(size_of::<[Barrier<Device>; 4]>(), 32);
    assert_eq!(align_of::<Barrier<Cluster>>(), 8);
}
