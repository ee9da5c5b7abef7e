//! What all situations share.

use core::arch::asm;

use cuda_ptx::*;

extern_shared! {
    /// The first 1024 bytes are for barriers.
    #[align(1024)]
    pub static SHARED: [u8];
}

/// Defines a situation: `kernel!` with the parameters that all of them have.
macro_rules! situation {
    ($(#[doc = $doc:literal])* fn $name:ident($out:ident, $data:ident, $maps:ident, $steps:ident, $passes:ident, $p:ident, $q:ident) $body:block) => {
        cuda_ptx::kernel! {
            $(#[doc = $doc])*
            ///
            /// # Safety
            /// `host/src/bench/situations.rs` says with what it is launched.
            #[launch_bounds(1024)]
            pub fn $name($out: *mut u64, $data: *mut u8, $maps: *const u8, $steps: u32, $passes: u32, $p: u32, $q: u32) $body
        }
    };
}

/// Runs `$step` `$steps` times in the threads that are `$active`, and again for each pass; records the cycles of
/// the last pass.
macro_rules! timed {
    ($out:ident, $steps:ident, $passes:ident, $sync:expr, $active:expr, $sink:expr, $step:block) => {{
        let (mut start, mut end) = (0, 0);
        let mut pass = 0;
        loop {
            crate::common::nounroll();
            $sync;
            let count = crate::common::opaque(if pass + 1 < $passes { 8 } else { $steps });
            if $active {
                start = crate::common::clock();
                let mut step = 0;
                loop {
                    crate::common::nounroll();
                    $step;
                    step = crate::common::opaque(step + 1);
                    if step >= count {
                        break;
                    }
                }
                end = crate::common::clock();
            }
            pass = crate::common::opaque(pass + 1);
            if pass >= $passes {
                break;
            }
        }
        $sync;
        crate::common::record($out, start, end, $sink);
    }};
}

/// Eight times the same.
macro_rules! eight {
    ($step:block) => {
        { $step $step $step $step $step $step $step $step }
    };
}

/// The same value, of which no compiler knows that: it cannot unroll a loop that counts so.
#[inline(always)]
pub unsafe fn opaque(mut value: u32) -> u32 {
    asm!("/* {0} */", inout(reg32) value, options(nomem, nostack));
    value
}

/// Keeps the assembler from unrolling the loop whose body begins with it.
#[inline(always)]
pub unsafe fn nounroll() {
    asm!(".pragma \"nounroll\";", options(nomem, nostack));
}

/// The same address in shared memory, of which no compiler and no assembler knows where it comes from: otherwise
/// they make it anew in the loop, each in its own way.
#[inline(always)]
pub unsafe fn fixed<T>(pointer: *mut T) -> *mut T {
    let mut address = address::as_ptr_dsmem(pointer);
    asm!(
        "{{ .reg .b32 mask; activemask.b32 mask; shfl.sync.idx.b32 {0}, {0}, {1}, 31, mask; }}",
        inout(reg32) address, in(reg32) thread() % 32, options(nostack)
    );
    address::from_ptr_dsmem(address)
}

#[inline(always)]
pub unsafe fn thread() -> u32 {
    get_sreg_tid_x()
}

#[inline(always)]
pub unsafe fn clock() -> u64 {
    get_sreg_clock64()
}

#[inline(always)]
pub unsafe fn block_sync() {
    core::arch::nvptx::_syncthreads();
}

#[inline(always)]
pub unsafe fn cluster_sync() {
    barrier_cluster_arrive();
    barrier_cluster_wait();
}

/// The barrier of this number.
#[inline(always)]
pub unsafe fn barrier(index: u32) -> *mut u64 {
    SHARED.as_mut_ptr().byte_add(index as usize * 8).cast()
}

/// The buffer behind the barriers.
#[inline(always)]
pub unsafe fn buffer(offset: u32) -> *mut u8 {
    SHARED.as_mut_ptr().byte_add(1024 + offset as usize)
}

/// One thread initialises so many barriers, and all of the cluster see it.
#[inline(always)]
pub unsafe fn init_barriers(barriers: u32, count: u32) {
    if thread() == 0 {
        let mut index = 0;
        while index < barriers {
            mbarrier_init(barrier(index), count);
            index += 1;
        }
        fence_mbarrier_init(sem_release, scope_cluster);
    }
    // What copies will read is not zero.
    let mut offset = thread() * 4;
    while offset < 1024 {
        buffer(offset).cast::<u32>().write(offset + 1);
        offset += get_sreg_ntid_x() * 4;
    }
    fence_proxy_async();
    cluster_sync();
}

#[inline(always)]
pub unsafe fn arm(bar: *mut u64, bytes: u32) {
    let _ = mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, bar, bytes);
}

#[inline(always)]
pub unsafe fn wait(bar: *mut u64, parity: u32) {
    while !mbarrier_try_wait_parity(bar, parity) {}
}

/// As `wait`, but the thread does not sleep between its tests.
#[inline(always)]
pub unsafe fn test(bar: *mut u64, parity: u32) {
    while !mbarrier_test_wait_parity(bar, parity) {}
}

/// The same place in the shared memory of another CTA of the cluster.
#[inline(always)]
pub unsafe fn map_to<T>(pointer: *mut T, rank: u32) -> *mut T {
    let mapped: *mut T;
    asm!("mapa.u64 {0}, {1}, {2};", out(reg64) mapped, in(reg64) pointer, in(reg32) rank, options(pure, nomem));
    mapped
}

/// Loads from the shared memory of the cluster.
#[inline(always)]
pub unsafe fn load_cluster(address: u32) -> u32 {
    let value: u32;
    asm!("ld.shared::cluster.u32 {0}, [{1}];", out(reg32) value, in(reg32) address);
    value
}

/// Stores to the shared memory of the cluster.
#[inline(always)]
pub unsafe fn store_cluster(address: u32, value: u32) {
    asm!("st.shared::cluster.u32 [{0}], {1};", in(reg32) address, in(reg32) value);
}

#[inline(always)]
pub unsafe fn record(out: *mut u64, start: u64, end: u64, sink: u32) {
    if thread() % 32 == 0 {
        let warp = get_sreg_ctaid_x() * get_sreg_ntid_x().div_ceil(32) + thread() / 32;
        let out = out.add(warp as usize * 4);
        out.write(start);
        out.add(1).write(end);
        out.add(2).write(u64::from(sink));
        out.add(3).write(u64::from(get_sreg_smid()));
    }
}
