//! Instructions that the layer needs and `cuda::ptx` does not have.

#![cfg_attr(not(target_arch = "nvptx64"), allow(unused, unreachable_code))]

#[cfg(test)]
extern crate std;

use crate::address::as_ptr_smem;
use crate::asm::asm;

/// The address of `own` in the shared memory of the block with rank `rank` in the cluster. Both are
/// generic.
#[inline(always)]
pub unsafe fn mapa(own: *mut u64, rank: u32) -> *mut u64 {
    let remote;
    unsafe {
        asm!(
            "mapa.u64 {remote}, {own}, {rank};",
            remote = out(reg64) remote,
            own = in(reg64) own,
            rank = in(reg32) rank,
            // The address follows from the operands.
            options(pure, nomem, nostack),
        );
    }
    remote
}

/// Arrives when the thread's `cp.async` copies so far are complete.
#[inline(always)]
pub unsafe fn cp_async_mbarrier_arrive_noinc(barrier: *mut u64) {
    unsafe {
        asm!(
            "cp.async.mbarrier.arrive.noinc.shared.b64 [{barrier}];",
            barrier = in(reg32) as_ptr_smem(barrier),
            // Not `nomem`: it changes the object, and the copies must stay before it.
            options(nostack),
        );
    }
}

/// Suspends the thread for about so long, at most twice as long.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub fn nanosleep(nanoseconds: u32) {
    unsafe {
        asm!(
            "nanosleep.u32 {nanoseconds};",
            nanoseconds = in(reg32) nanoseconds,
            // No access to memory depends on the time.
            options(nomem, nostack),
        );
    }
}

/// Off the GPU, for barriers between the threads of a process.
#[cfg(not(target_arch = "nvptx64"))]
pub fn nanosleep(_: u32) {
    // The tests have more threads than some machines have processors.
    #[cfg(test)]
    std::thread::yield_now();
    core::hint::spin_loop();
}

/// Subtracts from a number in shared memory, acquires and releases in a scope, and returns its value
/// before.
macro_rules! shared_fetch_sub {
    ($($name:ident = $scope:literal),*) => {$(
        #[inline(always)]
        pub unsafe fn $name(number: *mut u32, subtrahend: u32) -> u32 {
            let before;
            unsafe {
                asm!(
                    concat!("atom.acq_rel.", $scope, ".shared.add.u32 {before}, [{number}], {addend};"),
                    before = out(reg32) before,
                    number = in(reg32) as_ptr_smem(number),
                    addend = in(reg32) subtrahend.wrapping_neg(),
                    // Not `nomem`: it orders the accesses around it.
                    options(nostack),
                );
            }
            before
        }
    )*};
}
shared_fetch_sub!(fetch_sub_cta = "cta", fetch_sub_cluster = "cluster");

/// Atomic operations at generic addresses, each of which acquires and releases in a scope; a load
/// acquires.
#[cfg(target_arch = "nvptx64")]
macro_rules! atoms {
    ($($module:ident = $scope:literal),*) => {$(
        pub mod $module {
            use crate::asm::asm;

            #[inline(always)]
            pub unsafe fn load(word: *mut u64) -> u64 {
                let value;
                unsafe {
                    asm!(
                        concat!("ld.acquire.", $scope, ".u64 {value}, [{word}];"),
                        value = out(reg64) value,
                        word = in(reg64) word,
                        // Not `nomem`: later accesses must stay behind it.
                        options(nostack),
                    );
                }
                value
            }

            #[inline(always)]
            pub unsafe fn fetch_add(word: *mut u64, addend: u64) -> u64 {
                let before;
                unsafe {
                    asm!(
                        concat!("atom.acq_rel.", $scope, ".add.u64 {before}, [{word}], {addend};"),
                        before = out(reg64) before,
                        word = in(reg64) word,
                        addend = in(reg64) addend,
                        // Not `nomem`: it orders the accesses around it.
                        options(nostack),
                    );
                }
                before
            }

            #[inline(always)]
            pub unsafe fn fetch_sub(number: *mut u32, subtrahend: u32) -> u32 {
                let before;
                unsafe {
                    asm!(
                        concat!("atom.acq_rel.", $scope, ".add.u32 {before}, [{number}], {addend};"),
                        before = out(reg32) before,
                        number = in(reg64) number,
                        addend = in(reg32) subtrahend.wrapping_neg(),
                        // Not `nomem`: it orders the accesses around it.
                        options(nostack),
                    );
                }
                before
            }
        }
    )*};
}

/// Off the GPU, the atomic operations of the language, which have no scope.
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! atoms {
    ($($module:ident = $scope:literal),*) => {$(
        pub mod $module {
            use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

            pub unsafe fn load(word: *mut u64) -> u64 {
                unsafe { AtomicU64::from_ptr(word) }.load(Ordering::Acquire)
            }

            pub unsafe fn fetch_add(word: *mut u64, addend: u64) -> u64 {
                unsafe { AtomicU64::from_ptr(word) }.fetch_add(addend, Ordering::AcqRel)
            }

            pub unsafe fn fetch_sub(number: *mut u32, subtrahend: u32) -> u32 {
                unsafe { AtomicU32::from_ptr(number) }.fetch_sub(subtrahend, Ordering::AcqRel)
            }
        }
    )*};
}
atoms!(gpu = "gpu", sys = "sys");
