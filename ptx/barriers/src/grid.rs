//! Barriers among all threads of a grid, in global memory.

use cuda_ptx::barrier::{Barrier, CompletionFunction, Device, System};
use cuda_ptx::kernel;

use crate::thread;

/// Sums what all threads show.
pub struct Total {
    shown: *const u32,
    len: u32,
    total: *mut u32,
}

impl CompletionFunction for Total {
    fn complete(&mut self) {
        for k in 0..self.len as usize {
            // SAFETY: all have shown theirs and wait.
            unsafe { *self.total += *self.shown.add(k) };
        }
    }
}

/// In each phase every thread shows a number and then reads that of the next thread.
#[inline(always)]
unsafe fn exchange(wait: impl Fn(), phases: u32, shown: *mut u32, out: *mut u32) {
    let (rank, size) = thread();
    let mut value = rank;
    for phase in 0..phases {
        let shown = shown.add((phase % 2 * size) as usize);
        *shown.add(rank as usize) = value;
        wait();
        value = 3 * value + *shown.add(((rank + 1) % size) as usize);
    }
    *out.add(rank as usize) = value;
}

kernel! {
    /// Initialises the barriers of the other kernels, in a launch before theirs.
    pub fn grid_init(
        device: *mut Barrier<Device>,
        system: *mut Barrier<System>,
        total: *mut Barrier<Device, Total>,
        expected: u32,
        shown: *const u32,
        sum: *mut u32,
    ) {
        Barrier::init(device, expected);
        Barrier::init(system, expected);
        Barrier::init_with(total, expected, Total { shown, len: expected, total: sum });
    }

    pub fn grid_exchange(bar: *const Barrier<Device>, phases: u32, shown: *mut u32, out: *mut u32) {
        let bar = Barrier::from_ptr(bar);
        exchange(|| bar.arrive().wait(), phases, shown, out);
    }

    pub fn system_exchange(bar: *const Barrier<System>, phases: u32, shown: *mut u32, out: *mut u32) {
        let bar = Barrier::from_ptr(bar);
        exchange(|| bar.arrive_and_wait(), phases, shown, out);
    }

    /// Thread `k` drops out after `k` phases, but the last one stays for `phases`.
    pub fn grid_drop(bar: *const Barrier<Device>, phases: u32, out: *mut u32) {
        let bar = Barrier::from_ptr(bar);
        let (rank, size) = thread();
        for phase in 0..phases {
            if phase == rank && rank + 1 < size {
                *out.add(rank as usize) = phase;
                bar.arrive_and_drop();
                return;
            }
            bar.arrive_and_wait();
        }
        *out.add(rank as usize) = phases;
    }

    /// Each thread shows its number in each phase, and then the sum of all phases so far.
    pub fn grid_total(bar: *const Barrier<Device, Total>, phases: u32, shown: *mut u32, sum: *const u32, out: *mut u32) {
        let bar = Barrier::from_ptr(bar);
        let (rank, _) = thread();
        let mut seen = 0;
        for phase in 0..phases {
            *shown.add(rank as usize) = rank + phase;
            bar.arrive_and_wait();
            seen = 7 * seen + *sum;
        }
        *out.add(rank as usize) = seen;
    }
}
