//! Kernels that go wrong: the harness must report each by name, and lose nothing but its child
//! process.

#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]

use cuda_ptx::{
    cp_async_bulk_bar, kernel, mbarrier_arrive, mbarrier_init, mbarrier_try_wait, shared, space_global,
    space_shared,
};

shared! {
    static BAR: u64;
    #[align(128)]
    static TILE: [u8; 16];
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

    /// A bulk copy of 8 bytes, which is no multiple of 16: a debug build panics before it starts.
    ///
    /// # Safety
    /// `input` is 16 bytes of global memory. To be launched in a debug build only.
    pub fn odd_copy(input: *const u8) {
        let bar = BAR.as_mut_ptr();
        mbarrier_init(bar, 1);
        cp_async_bulk_bar(space_shared, space_global, TILE.as_mut_ptr(), input, 8, bar);
    }

    /// Panics: the driver reports the message and the place, and the host's next call returns
    /// `CUDA_ERROR_ASSERT`.
    pub fn panic(n: u32) {
        assert!(n == 0, "n is not zero");
    }
}

cuda_ptx::panic_report!();
