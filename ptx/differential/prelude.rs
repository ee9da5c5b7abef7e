// What every kernel of the differential tests stands on: words of input and output, memory, threads,
// and barriers written out in PTX, so that a wrong form of the crate cannot hide behind another one.
// `prelude.cuh` is the same in C++.

use core::arch::{asm, nvptx};
use cuda_ptx::address::{as_ptr_gmem, as_ptr_smem};

#[inline(always)]
unsafe fn get(words: *const u64, index: u64) -> u64 {
    *words.add(index as usize)
}

#[inline(always)]
unsafe fn put(words: *mut u64, index: u64, word: u64) {
    *words.add(index as usize) = word;
}

#[inline(always)]
unsafe fn at(memory: *mut u8, bytes: u64) -> *mut u8 {
    memory.add(bytes as usize)
}

#[inline(always)]
unsafe fn address(memory: *mut u8) -> u64 {
    memory as u64
}

#[inline(always)]
unsafe fn load(memory: *mut u8, size: u64) -> u64 {
    match size {
        1 => u64::from(*memory),
        2 => u64::from(*memory.cast::<u16>()),
        4 => u64::from(*memory.cast::<u32>()),
        _ => *memory.cast::<u64>(),
    }
}

#[inline(always)]
unsafe fn store(memory: *mut u8, size: u64, value: u64) {
    match size {
        1 => *memory = value as u8,
        2 => *memory.cast::<u16>() = value as u16,
        4 => *memory.cast::<u32>() = value as u32,
        _ => *memory.cast::<u64>() = value,
    }
}

/// The low bytes of a word as a value of any plain type.
#[inline(always)]
unsafe fn value<T: Copy>(word: u64) -> T {
    (&raw const word).cast::<T>().read()
}

/// A value of any plain type as the low bytes of a word.
#[inline(always)]
unsafe fn word<T: Copy>(value: T) -> u64 {
    let mut word = 0u64;
    (&raw mut word).cast::<T>().write(value);
    word
}

#[inline(always)]
fn flag(value: bool) -> u64 {
    u64::from(value)
}

#[inline(always)]
unsafe fn thread() -> u64 {
    nvptx::_thread_idx_x() as u64
}

#[inline(always)]
unsafe fn threads() -> u64 {
    nvptx::_block_dim_x() as u64
}

#[inline(always)]
unsafe fn block() -> u64 {
    nvptx::_block_idx_x() as u64
}

/// The number of the thread in the grid, x before y before z, threads before blocks.
#[inline(always)]
unsafe fn grid_thread() -> u64 {
    let (x, y, z) = (nvptx::_block_dim_x() as u64, nvptx::_block_dim_y() as u64, nvptx::_block_dim_z() as u64);
    let in_block = thread() + x * (nvptx::_thread_idx_y() as u64 + y * nvptx::_thread_idx_z() as u64);
    let (width, height) = (nvptx::_grid_dim_x() as u64, nvptx::_grid_dim_y() as u64);
    let of_block = block() + width * (nvptx::_block_idx_y() as u64 + height * nvptx::_block_idx_z() as u64);
    in_block + of_block * (x * y * z)
}

#[inline(always)]
unsafe fn sync() {
    nvptx::_syncthreads();
}

/// Where shared memory starts, in the units of a matrix descriptor.
#[inline(always)]
unsafe fn matrix_start(memory: *mut u8) -> u64 {
    u64::from(as_ptr_smem(memory) & 0x3_ffff) >> 4
}

/// Lets multiplications of the warpgroup see shared memory and registers.
#[inline(always)]
unsafe fn warpgroup_begin() {
    asm!("fence.proxy.async.shared::cta;");
    sync();
    asm!("wgmma.fence.sync.aligned;");
}

/// Waits for all multiplications of the warpgroup.
#[inline(always)]
unsafe fn warpgroup_end() {
    asm!("wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;");
}

#[inline(always)]
unsafe fn cluster_rank() -> u64 {
    let rank: u32;
    asm!("mov.u32 {}, %cluster_ctarank;", out(reg32) rank, options(nomem));
    rank as u64
}

#[inline(always)]
unsafe fn cluster_sync() {
    asm!("barrier.cluster.arrive.release;", "barrier.cluster.wait.acquire;");
}

#[inline(always)]
unsafe fn cluster_arrive() {
    asm!("barrier.cluster.arrive.release;");
}

#[inline(always)]
unsafe fn cluster_wait() {
    asm!("barrier.cluster.wait.acquire;");
}

/// The object in the block of that rank which has the place of `memory` in this block.
#[inline(always)]
unsafe fn remote(memory: *mut u8, rank: u64) -> *mut u8 {
    let address: u64;
    asm!("mapa.u64 {}, {}, {};", out(reg64) address, in(reg64) memory, in(reg32) rank as u32, options(nomem));
    address as *mut u8
}

#[inline(always)]
unsafe fn bar_init(bar: *mut u8, count: u64) {
    asm!("mbarrier.init.shared::cta.b64 [{}], {};", in(reg32) as_ptr_smem(bar), in(reg32) count as u32);
}

#[inline(always)]
unsafe fn bar_inval(bar: *mut u8) {
    asm!("mbarrier.inval.shared::cta.b64 [{}];", in(reg32) as_ptr_smem(bar));
}

#[inline(always)]
unsafe fn bar_fence() {
    asm!("fence.mbarrier_init.release.cluster;");
}

#[inline(always)]
unsafe fn bar_arrive(bar: *mut u8, count: u64) -> u64 {
    let state: u64;
    asm!("mbarrier.arrive.release.cta.shared::cta.b64 {}, [{}], {};", out(reg64) state, in(reg32) as_ptr_smem(bar), in(reg32) count as u32);
    state
}

/// One arrival at a barrier of another block.
#[inline(always)]
unsafe fn bar_arrive_remote(bar: *mut u8) {
    asm!("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [{}];", in(reg32) as_ptr_smem(bar));
}

#[inline(always)]
unsafe fn bar_arrive_drop(bar: *mut u8, count: u64) -> u64 {
    let state: u64;
    asm!("mbarrier.arrive_drop.release.cta.shared::cta.b64 {}, [{}], {};", out(reg64) state, in(reg32) as_ptr_smem(bar), in(reg32) count as u32);
    state
}

#[inline(always)]
unsafe fn bar_expect(bar: *mut u8, bytes: u64) {
    asm!("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [{}], {};", in(reg32) as_ptr_smem(bar), in(reg32) bytes as u32);
}

#[inline(always)]
unsafe fn bar_complete(bar: *mut u8, bytes: u64) {
    asm!("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [{}], {};", in(reg32) as_ptr_smem(bar), in(reg32) bytes as u32);
}

#[inline(always)]
unsafe fn bar_pending(state: u64) -> u64 {
    let count: u32;
    asm!("mbarrier.pending_count.b64 {}, {};", out(reg32) count, in(reg64) state, options(nomem));
    count as u64
}

#[inline(always)]
unsafe fn bar_test(bar: *mut u8, parity: u64) -> u64 {
    let complete: u32;
    asm!("{{", ".reg .pred p;", "mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [{1}], {2};", "selp.u32 {0}, 1, 0, p;", "}}",
        out(reg32) complete, in(reg32) as_ptr_smem(bar), in(reg32) parity as u32);
    complete as u64
}

#[inline(always)]
unsafe fn bar_wait(bar: *mut u8, parity: u64) {
    while bar_test(bar, parity) == 0 {}
}

/// The same, but gives up after so many tests.
#[inline(always)]
unsafe fn bar_wait_at_most(bar: *mut u8, parity: u64, tests: u64) {
    let mut left = tests;
    while left > 0 && bar_test(bar, parity) == 0 {
        left -= 1;
    }
}

/// Lets the copy engine see what this thread wrote.
#[inline(always)]
unsafe fn proxy_fence() {
    asm!("fence.proxy.async;");
}

#[inline(always)]
unsafe fn bulk_commit() {
    asm!("cp.async.bulk.commit_group;", options(nomem));
}

/// Waits for all bulk groups of this thread.
#[inline(always)]
unsafe fn bulk_wait() {
    asm!("cp.async.bulk.wait_group 0;");
}

#[inline(always)]
unsafe fn bulk_load(to: *mut u8, from: *mut u8, bytes: u64, bar: *mut u8) {
    asm!("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{}], [{}], {}, [{}];",
        in(reg32) as_ptr_smem(to), in(reg64) as_ptr_gmem(from), in(reg32) bytes as u32, in(reg32) as_ptr_smem(bar));
}

#[inline(always)]
unsafe fn bulk_store(to: *mut u8, from: *mut u8, bytes: u64) {
    asm!("cp.async.bulk.global.shared::cta.bulk_group [{}], [{}], {};",
        in(reg64) as_ptr_gmem(to), in(reg32) as_ptr_smem(from), in(reg32) bytes as u32);
}

/// Starts a copy of 16 bytes that `cp.async.mbarrier.arrive` tracks.
#[inline(always)]
unsafe fn small_copy(to: *mut u8, from: *mut u8) {
    asm!("cp.async.ca.shared.global [{}], [{}], 16;", in(reg32) as_ptr_smem(to), in(reg64) as_ptr_gmem(from));
}

#[inline(always)]
unsafe fn copies_commit() {
    asm!("cp.async.commit_group;");
}

/// Waits until no more than so many of the latest groups of small copies are pending.
#[inline(always)]
unsafe fn copies_wait_0() {
    asm!("cp.async.wait_group 0;");
}

#[inline(always)]
unsafe fn copies_wait_1() {
    asm!("cp.async.wait_group 1;");
}

#[inline(always)]
unsafe fn copies_wait_2() {
    asm!("cp.async.wait_group 2;");
}

#[inline(always)]
unsafe fn copies_wait_3() {
    asm!("cp.async.wait_group 3;");
}

#[inline(always)]
unsafe fn copies_wait_all() {
    asm!("cp.async.wait_all;");
}

/// Waits at a barrier of the block by its number.
#[inline(always)]
unsafe fn named_sync(number: u64, threads: u64) {
    asm!("barrier.sync {}, {};", in(reg32) number as u32, in(reg32) threads as u32);
}

/// A load with a cache policy.
#[inline(always)]
unsafe fn load_hinted(memory: *mut u8, policy: u64) -> u64 {
    let value: u64;
    asm!("ld.global.L2::cache_hint.b64 {}, [{}], {};", out(reg64) value, in(reg64) as_ptr_gmem(memory), in(reg64) policy);
    value
}

/// A relaxed store that other threads may watch.
#[inline(always)]
unsafe fn publish(memory: *mut u8, value: u64) {
    asm!("st.relaxed.sys.u64 [{}], {};", in(reg64) memory, in(reg64) value);
}

/// A relaxed load of what another thread may store.
#[inline(always)]
unsafe fn watch(memory: *mut u8) -> u64 {
    let value: u64;
    asm!("ld.relaxed.sys.u64 {}, [{}];", out(reg64) value, in(reg64) memory);
    value
}

/// The same of 4 bytes: a flag.
#[inline(always)]
unsafe fn raise(flag: *mut u8) {
    asm!("st.relaxed.sys.u32 [{}], 1;", in(reg64) flag);
}

#[inline(always)]
unsafe fn is_raised(flag: *mut u8) -> u64 {
    let value: u32;
    asm!("ld.relaxed.sys.u32 {}, [{}];", out(reg32) value, in(reg64) flag);
    value as u64
}

/// A generic address of local memory.
#[inline(always)]
unsafe fn local_place() -> *mut u8 {
    let address: u64;
    asm!("{{", ".local .align 8 .b8 LOCAL_place[8];", "cvta.local.u64 {}, LOCAL_place;", "}}", out(reg64) address, options(nomem));
    address as *mut u8
}

#[inline(always)]
unsafe fn full_fence() {
    asm!("fence.acq_rel.sys;");
}

#[inline(always)]
unsafe fn tensor_load(to: *mut u8, map: *mut u8, x: u64, bar: *mut u8) {
    asm!("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [{}], [{}, {{{}}}], [{}];",
        in(reg32) as_ptr_smem(to), in(reg64) map, in(reg32) x as u32, in(reg32) as_ptr_smem(bar));
}

#[inline(always)]
unsafe fn tensor_load_2d(to: *mut u8, map: *mut u8, x: u64, y: u64, bar: *mut u8) {
    asm!("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [{}], [{}, {{{}, {}}}], [{}];",
        in(reg32) as_ptr_smem(to), in(reg64) map, in(reg32) x as u32, in(reg32) y as u32, in(reg32) as_ptr_smem(bar));
}

#[inline(always)]
unsafe fn tensor_load_3d(to: *mut u8, map: *mut u8, x: u64, y: u64, z: u64, bar: *mut u8) {
    asm!("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [{}], [{}, {{{}, {}, {}}}], [{}];",
        in(reg32) as_ptr_smem(to), in(reg64) map, in(reg32) x as u32, in(reg32) y as u32, in(reg32) z as u32, in(reg32) as_ptr_smem(bar));
}

#[inline(always)]
unsafe fn map_release() {
    asm!("fence.proxy.tensormap::generic.release.gpu;");
}

#[inline(always)]
unsafe fn map_publish(to: *mut u8, from: *mut u8) {
    asm!("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [{}], [{}], 128;",
        in(reg64) as_ptr_gmem(to), in(reg32) as_ptr_smem(from));
}

#[inline(always)]
unsafe fn map_acquire(map: *mut u8) {
    asm!("fence.proxy.tensormap::generic.acquire.gpu [{}], 128;", in(reg64) map);
}

#[inline(always)]
unsafe fn registers_decrease() {
    asm!("setmaxnreg.dec.sync.aligned.u32 24;", options(nomem));
}

#[inline(always)]
unsafe fn policy_evict_first() -> u64 {
    let policy: u64;
    asm!("createpolicy.fractional.L2::evict_first.b64 {}, 0f3F800000;", out(reg64) policy, options(pure, nomem));
    policy
}
