//! Kernels that go wrong: the harness must report each by name, and lose nothing but its child
//! process.

#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]

use cuda_ptx::{kernel, mbarrier_arrive, mbarrier_init, mbarrier_try_wait, shared};

shared! {
    static BAR: u64;
}

kernel! {
    /// Never ends: waits for a second arrival that nobody makes. The watchdog's business.
    pub fn hang() {
        let bar = BAR.as_mut_ptr();
        mbarrier_init(bar, 2);
        let token = mbarrier_arrive(bar);
        while !mbarrier_try_wait(bar, token) {}
    }

    /// Stores to an address. With one that belongs to no allocation (0, for instance) the context is
    /// lost: `CUDA_ERROR_ILLEGAL_ADDRESS`.
    ///
    /// # Safety
    /// To be launched alone in a process, with one thread.
    pub fn fault(address: *mut u32) {
        address.write_volatile(1);
    }

    /// Panics: the driver reports the message and the place, and the host's next call returns
    /// `CUDA_ERROR_ASSERT`.
    pub fn panic(n: u32) {
        assert!(n == 0, "n is not zero");
    }
}

cuda_ptx::panic_report!();
