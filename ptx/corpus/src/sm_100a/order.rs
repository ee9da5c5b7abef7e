//! Accesses to tensor memory and the operations that order them.

use cuda_ptx::*;

use crate::thread::Thread;

shared! {
    static COLUMNS: u32;
}

kernel! {
    /// What is loaded arrives in the registers only with the wait: nothing may be computed from it
    /// before.
    // order: tcgen05.ld < tcgen05.wait::ld < popc
    pub fn order_tensor_load(data: *mut u32, notes: *mut u32, n: u32) {
        let thread = Thread::new(data, notes);
        let mut out = [0u32];
        tcgen05_ld_32x32b(&mut out, n);
        tcgen05_wait_ld();
        thread.set(out[0].count_ones());
    }

    /// Two loads in flight, and one wait for both.
    // order: tcgen05.ld < tcgen05.ld < tcgen05.wait::ld < popc < popc
    pub fn order_tensor_loads(data: *mut u32, notes: *mut u32, n: u32) {
        let thread = Thread::new(data, notes);
        let (mut first, mut second) = ([0u32], [0u32; 2]);
        tcgen05_ld_32x32b(&mut first, n);
        tcgen05_ld_32x32b(&mut second, n + 1);
        tcgen05_wait_ld();
        thread.note(0, first[0].count_ones());
        thread.note(1, second[1].count_ones());
    }

    /// The loaded value is used on one side only, and its computation could move to the branch.
    // order: tcgen05.ld < tcgen05.wait::ld < popc
    pub fn order_tensor_load_on_one_side(data: *mut u32, notes: *mut u32, n: u32) {
        let thread = Thread::new(data, notes);
        let x = thread.get();
        let mut out = [0u32];
        tcgen05_ld_32x32b(&mut out, n);
        tcgen05_wait_ld();
        if x & 1 != 0 {
            thread.set(out[0].count_ones());
        }
    }

    /// A load behind a store needs the wait between them.
    // order: tcgen05.st < tcgen05.wait::st < tcgen05.ld < tcgen05.wait::ld
    pub fn order_tensor_store(data: *mut u32, notes: *mut u32, n: u32) {
        let thread = Thread::new(data, notes);
        let x = thread.get();
        tcgen05_st_32x32b(n, [x]);
        tcgen05_wait_st();
        let mut out = [0u32];
        tcgen05_ld_32x32b(&mut out, n);
        tcgen05_wait_ld();
        thread.set(out[0]);
    }

    /// An allocation writes the address to shared memory, where the threads read it.
    // order: tcgen05.alloc < tcgen05.relinquish_alloc_permit < bar.sync < ld.shared < tcgen05.dealloc
    pub fn order_tensor_allocation(data: *mut u32, notes: *mut u32, _n: u32) {
        let thread = Thread::new(data, notes);
        tcgen05_alloc(cta_group_1, COLUMNS.as_mut_ptr(), 32);
        tcgen05_relinquish_alloc_permit(cta_group_1);
        core::arch::nvptx::_syncthreads();
        let columns = *COLUMNS.as_mut_ptr();
        thread.set(columns);
        tcgen05_dealloc(cta_group_1, columns, 32);
    }
}
