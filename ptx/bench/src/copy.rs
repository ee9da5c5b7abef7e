//! Bulk and tensor copies by size, stages, dimensions, and to several CTAs.

use core::arch::asm;

use cuda_ptx::*;

use crate::common::{
    arm, barrier, block_sync, buffer, cluster_sync, fixed, init_barriers, opaque, test, thread,
    wait,
};

/// Loads stay within so many bytes of global memory, which the L2 cache holds.
const REGION: u32 = 16 << 20;
/// Where in it a CTA begins, times its number.
const SHARE: u32 = 64 << 10;

/// One thread of a CTA loads `p` bytes a step, with `q` loads in flight.
macro_rules! stream_in {
    ($name:ident, $wait:ident) => {
        situation! {
            /// One thread loads `p` bytes a step, with `q` loads in flight.
            fn $name(out, data, _maps, steps, passes, p, q) {
                init_barriers(q, 1);
                let (mut stage, mut parity, mut offset) = (0, 0, get_sreg_ctaid_x() * SHARE);
                if thread() == 0 {
                    while stage < q {
                        arm(barrier(stage), p);
                        cp_async_bulk_bar(space_cluster, space_global, buffer(stage * p), data.add(offset as usize), p, barrier(stage));
                        offset = (offset + p) % REGION;
                        stage += 1;
                    }
                    stage = 0;
                }
                timed!(out, steps, passes, block_sync(), thread() == 0, parity, {
                    $wait(barrier(stage), parity);
                    arm(barrier(stage), p);
                    cp_async_bulk_bar(space_cluster, space_global, buffer(stage * p), data.add(offset as usize), p, barrier(stage));
                    offset = (offset + p) % REGION;
                    stage += 1;
                    if stage == q {
                        stage = 0;
                        parity = opaque(parity ^ 1);
                    }
                });
                if thread() == 0 {
                    let mut left = q;
                    while left > 0 {
                        $wait(barrier(stage), parity);
                        stage += 1;
                        if stage == q {
                            stage = 0;
                            parity = opaque(parity ^ 1);
                        }
                        left -= 1;
                    }
                }
            }
        }
    };
}
stream_in!(bulk_load, wait);
// The same, and each wait tests again and again.
stream_in!(bulk_load_tested, test);
// The same on all multiprocessors.
stream_in!(chip_load, wait);

situation! {
    /// One thread loads `p` bytes and waits, `q` bytes further each time.
    fn bulk_load_apart(out, data, _maps, steps, passes, p, q) {
        init_barriers(1, 1);
        let (bar, shared) = (fixed(barrier(0)), fixed(buffer(0)));
        let (mut parity, mut offset) = (0, 0u64);
        timed!(out, steps, passes, block_sync(), thread() == 0, parity, {
            arm(bar, p);
            cp_async_bulk_bar(space_cluster, space_global, shared, data.add(offset as usize), p, bar);
            wait(bar, parity);
            parity = opaque(parity ^ 1);
            offset += q as u64;
        });
    }
}

/// One thread of each CTA copies `p` bytes to global memory, with `q` copies in flight; 4 at most.
macro_rules! chip_write {
    ($name:ident, |$to:ident, $from:ident, $bytes:ident| $copy:expr) => {
        situation! {
            /// Each CTA copies `p` bytes to global memory, with 4 copies in flight.
            fn $name(out, data, _maps, steps, passes, p, q) {
                init_barriers(1, 1);
                let $bytes = p;
                let (mut stage, mut offset) = (0, get_sreg_ctaid_x() * SHARE);
                timed!(out, steps, passes, block_sync(), thread() == 0, offset, {
                    let ($to, $from) = (data.add(offset as usize), buffer(stage * p));
                    $copy;
                    cp_async_bulk_commit_group();
                    cp_async_bulk_wait_group_read(n32::<3>);
                    offset = (offset + p) % REGION;
                    stage += 1;
                    if stage == q {
                        stage = 0;
                    }
                });
                cp_async_bulk_wait_group(n32::<0>);
            }
        }
    };
}
chip_write!(chip_store, |to, from, bytes| cp_async_bulk(
    space_global,
    space_shared,
    to,
    from,
    bytes
));
chip_write!(chip_add, |to, from, bytes| cp_reduce_async_bulk(
    space_global,
    space_shared,
    op_add,
    to.cast::<u32>(),
    from.cast::<u32>(),
    bytes
));

situation! {
    /// One thread stores `p` bytes and waits until they are written.
    fn bulk_store(out, data, _maps, steps, passes, p, _q) {
        init_barriers(1, 1);
        let shared = fixed(buffer(0));
        let mut offset = 0;
        timed!(out, steps, passes, block_sync(), thread() == 0, offset, {
            cp_async_bulk(space_global, space_shared, data.add(offset as usize), shared, p);
            cp_async_bulk_commit_group();
            cp_async_bulk_wait_group(n32::<0>);
            offset = (offset + p) % REGION;
        });
    }
}

situation! {
    /// One thread stores `p` bytes and waits until they are read.
    fn bulk_store_read(out, data, _maps, steps, passes, p, _q) {
        init_barriers(1, 1);
        let shared = fixed(buffer(0));
        let mut offset = 0;
        timed!(out, steps, passes, block_sync(), thread() == 0, offset, {
            cp_async_bulk(space_global, space_shared, data.add(offset as usize), shared, p);
            cp_async_bulk_commit_group();
            cp_async_bulk_wait_group_read(n32::<0>);
            offset = (offset + p) % REGION;
        });
        cp_async_bulk_wait_group(n32::<0>);
    }
}

situation! {
    /// One thread adds `p` bytes of `u32` to global memory and waits.
    fn bulk_add(out, data, _maps, steps, passes, p, _q) {
        init_barriers(1, 1);
        let shared = fixed(buffer(0));
        let mut offset = 0;
        timed!(out, steps, passes, block_sync(), thread() == 0, offset, {
            cp_reduce_async_bulk(space_global, space_shared, op_add, data.add(offset as usize).cast::<u32>(), shared.cast::<u32>(), p);
            cp_async_bulk_commit_group();
            cp_async_bulk_wait_group(n32::<0>);
            offset = (offset + p) % REGION;
        });
    }
}

situation! {
    /// Every CTA of a cluster of `q` gets the same `p` bytes: one of them loads for all.
    fn load_multicast(out, data, _maps, steps, passes, p, q) {
        init_barriers(1, 1);
        let (lane, shared) = (thread(), fixed(buffer(0)));
        let (bar, mask, rank) = (fixed(barrier(0)), opaque((1 << q) - 1), get_sreg_cluster_ctarank());
        let (mut parity, mut offset) = (0, 0);
        timed!(out, steps, passes, cluster_sync(), true, parity, {
            if opaque(lane) == 0 {
                arm(bar, p);
                if opaque(rank) == 0 {
                    cp_async_bulk_bar_cta_mask(space_cluster, space_global, shared, data.add(offset as usize), p, bar, mask as u16);
                }
                wait(bar, parity);
            }
            parity = opaque(parity ^ 1);
            offset = (offset + p) % REGION;
            cluster_sync();
        });
    }
}

situation! {
    /// Every CTA of a cluster of `q` gets the same `p` bytes: each loads for itself.
    fn load_separate(out, data, _maps, steps, passes, p, _q) {
        init_barriers(1, 1);
        let (lane, shared) = (thread(), fixed(buffer(0)));
        let bar = fixed(barrier(0));
        let (mut parity, mut offset) = (0, 0);
        timed!(out, steps, passes, cluster_sync(), true, parity, {
            if opaque(lane) == 0 {
                arm(bar, p);
                cp_async_bulk_bar(space_cluster, space_global, shared, data.add(offset as usize), p, bar);
                wait(bar, parity);
            }
            parity = opaque(parity ^ 1);
            offset = (offset + p) % REGION;
            cluster_sync();
        });
    }
}

/// Loads a tile of `p` bytes by tensor map `q`; the last coordinate grows.
macro_rules! tensor_load {
    ($name:ident, $($zero:literal)*) => {
        situation! {
            /// One thread loads a tile of `p` bytes by tensor map `q`.
            fn $name(out, _data, maps, steps, passes, p, q) {
                init_barriers(1, 1);
                let shared = fixed(buffer(0));
                let bar = fixed(barrier(0));
                let map = maps.add(q as usize * 128);
                let (mut parity, mut tile) = (0, 0);
                timed!(out, steps, passes, block_sync(), thread() == 0, parity, {
                    arm(bar, p);
                    cp_async_bulk_tensor_bar(space_cluster, space_global, shared, map, [$($zero,)* tile], bar);
                    wait(bar, parity);
                    parity = opaque(parity ^ 1);
                    tile = (tile + 256) % 65536;
                });
            }
        }
    };
}
tensor_load!(tensor_load_1d,);
tensor_load!(tensor_load_2d, 0);
tensor_load!(tensor_load_3d, 0 0);
tensor_load!(tensor_load_4d, 0 0 0);
tensor_load!(tensor_load_5d, 0 0 0 0);

/// 16 `cp.async` of 16 bytes, which are no part of `cuda::ptx`, into all levels of cache or into the L2 cache alone.
macro_rules! cp_async {
    ($name:ident, $cache:literal) => {
        situation! {
            /// Issues 16 `cp.async` of 16 bytes.
            fn $name(out, data, _maps, steps, passes, _p, _q) {
                init_barriers(1, 1);
                let to = address::as_ptr_smem(buffer(thread() % 256 * 16));
                let from = address::as_ptr_gmem(data.add(thread() as usize * 16));
                timed!(out, steps, passes, block_sync(), true, 0, {
                    eight!({
                        asm!(concat!("cp.async.", $cache, ".shared.global [{0}], [{1}], 16;"), in(reg32) to, in(reg64) from);
                        asm!(concat!("cp.async.", $cache, ".shared.global [{0}], [{1}], 16;"), in(reg32) to, in(reg64) from);
                    });
                });
                asm!("cp.async.wait_all;");
            }
        }
    };
}
cp_async!(cp_async_ca, "ca");
cp_async!(cp_async_cg, "cg");
