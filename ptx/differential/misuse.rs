// Kernels that break a rule on purpose, one rule each. What the hardware does is recorded.
// `memory` is 64 KiB of global memory; what a kernel writes to its beginning is shown.

/// Copies `size` bytes from `memory + from` to shared memory at `to`, of which `expected` are announced.
unsafe fn copy(to: u64, from: u64, size: u32, expected: u32, memory: *mut u8) {
    shared! { static BAR: u64; #[align(128)] static DATA: [u8; 8192]; }
    let (bar, data) = (BAR.as_mut_ptr(), DATA.as_mut_ptr().cast::<u8>());
    mbarrier_init(bar, 1);
    fence_mbarrier_init(sem_release, scope_cluster);
    mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, bar, expected);
    cp_async_bulk_bar(space_shared, space_global, data.add(to as usize), memory.add(from as usize).cast_const(), size, bar);
    while !mbarrier_try_wait_parity(bar, 0) {}
    memory.cast::<u64>().write(data.add(to as usize & !7).cast::<u64>().read());
}

kernel! {
    pub fn bulk_copy_from_misaligned_global(memory: *mut u8) { copy(0, 8, 64, 64, memory) }
    pub fn bulk_copy_to_misaligned_shared(memory: *mut u8) { copy(8, 0, 64, 64, memory) }
    pub fn bulk_copy_of_8_bytes(memory: *mut u8) { copy(0, 0, 8, 8, memory) }
    pub fn bulk_copy_of_0_bytes(memory: *mut u8) { copy(0, 0, 0, 0, memory) }
    pub fn bulk_copy_of_24_bytes(memory: *mut u8) { copy(0, 0, 24, 24, memory) }
    pub fn bulk_copy_from_no_allocation(memory: *mut u8) { copy(0, 1 << 40, 64, 64, memory) }
    pub fn bulk_copy_behind_shared_memory(memory: *mut u8) { copy(1 << 20, 0, 64, 64, memory) }
    pub fn more_bytes_expected_than_copied(memory: *mut u8) { copy(0, 0, 64, 128, memory) }

    /// The phase completes before the copy does.
    pub fn bytes_not_expected(memory: *mut u8) { copy(0, 0, 8192, 0, memory) }

    pub fn arrival_missing(memory: *mut u8) {
        shared! { static BAR: u64; }
        let bar = BAR.as_mut_ptr();
        mbarrier_init(bar, 2);
        mbarrier_arrive(bar);
        while !mbarrier_try_wait_parity(bar, 0) {}
    }

    pub fn one_arrival_too_many(memory: *mut u8) {
        shared! { static BAR: u64; }
        let bar = BAR.as_mut_ptr();
        mbarrier_init(bar, 2);
        mbarrier_arrive_count(bar, 3);
        memory.cast::<u64>().write(u64::from(mbarrier_test_wait_parity(bar, 0)));
        memory.cast::<u64>().add(1).write(bar.read());
    }

    pub fn barrier_of_0_arrivals(memory: *mut u8) {
        shared! { static BAR: u64; }
        let bar = BAR.as_mut_ptr();
        mbarrier_init(bar, 0);
        memory.cast::<u64>().write(u64::from(mbarrier_test_wait_parity(bar, 0)));
        memory.cast::<u64>().add(1).write(bar.read());
    }

    pub fn barrier_of_too_many_arrivals(memory: *mut u8) {
        shared! { static BAR: u64; }
        let bar = BAR.as_mut_ptr();
        mbarrier_init(bar, 1 << 20);
        memory.cast::<u64>().write(u64::from(mbarrier_test_wait_parity(bar, 0)));
        memory.cast::<u64>().add(1).write(bar.read());
    }

    pub fn barrier_misaligned(memory: *mut u8) {
        shared! { static BAR: [u64; 2]; }
        let bar = BAR.as_mut_ptr().cast::<u8>().add(4).cast::<u64>();
        mbarrier_init(bar, 1);
        mbarrier_arrive(bar);
        memory.cast::<u64>().write(u64::from(mbarrier_test_wait_parity(bar, 0)));
    }

    pub fn barrier_in_global_memory(memory: *mut u8) {
        let bar = memory.cast::<u64>();
        mbarrier_init(bar, 1);
        mbarrier_arrive(bar);
        memory.cast::<u64>().add(1).write(u64::from(mbarrier_test_wait_parity(bar, 0)));
    }

    pub fn barrier_not_initialised(memory: *mut u8) {
        shared! { static BAR: u64; }
        let bar = BAR.as_mut_ptr();
        bar.write_volatile(0);
        mbarrier_arrive(bar);
        memory.cast::<u64>().write(u64::from(mbarrier_test_wait_parity(bar, 0)));
        memory.cast::<u64>().add(1).write(bar.read());
    }

    /// Two phases are complete; the parity of the first is that of the third, which is not.
    pub fn parity_of_two_phases_ago(memory: *mut u8) {
        shared! { static BAR: u64; }
        let bar = BAR.as_mut_ptr();
        mbarrier_init(bar, 1);
        mbarrier_arrive(bar);
        mbarrier_arrive(bar);
        while !mbarrier_try_wait_parity(bar, 0) {}
    }

    /// The first wait for an empty buffer takes parity 1.
    pub fn first_wait_for_empty_with_parity_0(memory: *mut u8) {
        shared! { static BAR: u64; }
        let bar = BAR.as_mut_ptr();
        mbarrier_init(bar, 1);
        while !mbarrier_try_wait_parity(bar, 0) {}
    }

    pub fn bytes_beyond_the_greatest_count(memory: *mut u8) {
        shared! { static BAR: u64; }
        let bar = BAR.as_mut_ptr();
        mbarrier_init(bar, 1);
        mbarrier_expect_tx(sem_relaxed, scope_cta, space_shared, bar, (1 << 20) + 16);
        mbarrier_arrive(bar);
        memory.cast::<u64>().write(u64::from(mbarrier_test_wait_parity(bar, 0)));
        memory.cast::<u64>().add(1).write(bar.read());
    }

    pub fn rank_outside_the_cluster(memory: *mut u8) {
        shared! { static DATA: [u64; 4]; }
        let other: *mut u64 = mapa(space_cluster, DATA.as_mut_ptr().cast::<u64>().cast_const(), 5);
        other.write_volatile(1);
    }

    /// The other block may have ended.
    pub fn arrival_at_a_block_that_ended(memory: *mut u8) {
        shared! { static BAR: u64; }
        let bar = BAR.as_mut_ptr();
        mbarrier_init(bar, 1);
        fence_mbarrier_init(sem_release, scope_cluster);
        barrier_cluster_arrive();
        barrier_cluster_wait();
        if get_sreg_cluster_ctarank() == 1 { return; }
        let start = get_sreg_globaltimer();
        while get_sreg_globaltimer() - start < 2_000_000 {}
        let remote: *mut u64 = mapa(space_cluster, bar.cast_const(), 1);
        mbarrier_arrive_sem_scope_space(sem_release, scope_cluster, space_cluster, remote);
    }

    pub fn tensor_map_misaligned(memory: *mut u8, map: GridConstant<TensorMap>) {
        shared! { static BAR: u64; #[align(128)] static DATA: [u8; 4096]; }
        let bar = BAR.as_mut_ptr();
        let place = memory.add(32).cast::<u64>();
        for i in 0..16 { place.add(i).write_volatile(map.as_ptr().cast::<u64>().add(i).read()); }
        mbarrier_init(bar, 1);
        fence_mbarrier_init(sem_release, scope_cluster);
        fence_proxy_async();
        mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, bar, 128);
        cp_async_bulk_tensor_bar(space_shared, space_global, DATA.as_mut_ptr().cast::<u8>(), place.cast_const(), [0], bar);
        while !mbarrier_try_wait_parity(bar, 0) {}
    }

    pub fn tensor_map_of_garbage(memory: *mut u8, map: GridConstant<TensorMap>) {
        shared! { static BAR: u64; #[align(128)] static DATA: [u8; 4096]; }
        let bar = BAR.as_mut_ptr();
        let place = memory.cast::<u64>();
        for i in 0..16 { place.add(i).write_volatile(0x5555_5555_5555_5555); }
        mbarrier_init(bar, 1);
        fence_mbarrier_init(sem_release, scope_cluster);
        fence_proxy_async();
        mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, bar, 128);
        cp_async_bulk_tensor_bar(space_shared, space_global, DATA.as_mut_ptr().cast::<u8>(), place.cast_const(), [0], bar);
        while !mbarrier_try_wait_parity(bar, 0) {}
    }

    pub fn tensor_tile_misaligned(memory: *mut u8, map: GridConstant<TensorMap>) {
        shared! { static BAR: u64; #[align(128)] static DATA: [u8; 4096]; }
        let bar = BAR.as_mut_ptr();
        mbarrier_init(bar, 1);
        fence_mbarrier_init(sem_release, scope_cluster);
        mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, bar, 128);
        cp_async_bulk_tensor_bar(space_shared, space_global, DATA.as_mut_ptr().cast::<u8>().add(16), map.as_ptr(), [0], bar);
        while !mbarrier_try_wait_parity(bar, 0) {}
    }

    /// Shows the beginning and the second chunk of the second line.
    pub fn tile_of_two_lines(memory: *mut u8, map: GridConstant<TensorMap>) {
        shared! { static BAR: u64; #[align(1024)] static DATA: [u8; 4096]; }
        let (bar, data) = (BAR.as_mut_ptr(), DATA.as_mut_ptr().cast::<u8>());
        mbarrier_init(bar, 1);
        fence_mbarrier_init(sem_release, scope_cluster);
        mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, bar, 1024);
        cp_async_bulk_tensor_bar(space_shared, space_global, data, map.as_ptr(), [0, 0], bar);
        while !mbarrier_try_wait_parity(bar, 0) {}
        memory.cast::<u64>().write(data.add(128).cast::<u64>().read());
        memory.cast::<u64>().add(1).write(data.add(144).cast::<u64>().read());
    }

    /// In the innermost dimension a tile begins at a multiple of 16 bytes.
    pub fn tensor_corner_misaligned(memory: *mut u8, map: GridConstant<TensorMap>) {
        shared! { static BAR: u64; #[align(128)] static DATA: [u8; 4096]; }
        let bar = BAR.as_mut_ptr();
        mbarrier_init(bar, 1);
        fence_mbarrier_init(sem_release, scope_cluster);
        mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, bar, 128);
        cp_async_bulk_tensor_bar(space_shared, space_global, DATA.as_mut_ptr().cast::<u8>(), map.as_ptr(), [5], bar);
        while !mbarrier_try_wait_parity(bar, 0) {}
    }

    /// A load may begin before the tensor, a store may not.
    pub fn tensor_store_before_the_tensor(memory: *mut u8, map: GridConstant<TensorMap>) {
        shared! { #[align(128)] static DATA: [u8; 4096]; }
        cp_async_bulk_tensor(space_global, space_shared, map.as_ptr(), [-16], DATA.as_mut_ptr().cast::<u8>().cast_const());
        cp_async_bulk_commit_group();
        cp_async_bulk_wait_group(n32::<0>);
    }

    /// A tile over the edge is filled up and counts in full.
    pub fn tensor_tile_expected_without_its_fill(memory: *mut u8, map: GridConstant<TensorMap>) {
        shared! { static BAR: u64; #[align(128)] static DATA: [u8; 4096]; }
        let bar = BAR.as_mut_ptr();
        mbarrier_init(bar, 1);
        fence_mbarrier_init(sem_release, scope_cluster);
        mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, bar, 64);
        cp_async_bulk_tensor_bar(space_shared, space_global, DATA.as_mut_ptr().cast::<u8>(), map.as_ptr(), [-16], bar);
        while !mbarrier_try_wait_parity(bar, 0) {}
    }

    /// The pool has no registers to give.
    #[maxnreg(64)]
    pub fn registers_that_nobody_returned(memory: *mut u8) { setmaxnreg_inc(n32::<232>) }

    pub fn store_misaligned(memory: *mut u8) { st(space_global, memory.add(4).cast::<u64>(), 1u64) }
    pub fn load_from_address_0(memory: *mut u8) { memory.cast::<u32>().write(ld(space_global, core::ptr::null::<u32>())) }
    pub fn row_of_a_matrix_misaligned(memory: *mut u8) {
        shared! { #[align(128)] static DATA: [u8; 4096]; }
        let mut fragment = [0u32; 1];
        let row = DATA.as_mut_ptr().cast::<u8>().add(8 + 16 * get_sreg_laneid() as usize);
        ldmatrix_m8n8(space_shared, &mut fragment, row.cast::<u16>().cast_const());
        memory.cast::<u32>().add(get_sreg_laneid() as usize).write(fragment[0]);
    }

    /// What a launch that breaks no rule gives, between the others.
    pub fn nothing_wrong(memory: *mut u8) { copy(0, 0, 64, 64, memory) }
}
