//! Bulk copies: their buffers, sizes, transaction counts and proxies.

use cuda_ptx::*;

use crate::{TILE_BYTES, TILE_LEN, rank, row, size, sync};

shared! {
    static BAR: u64;
    #[align(128)]
    static TILE: [u32; TILE_LEN as usize];
}

unsafe fn start() -> (*mut u64, *mut u32) {
    let bar = BAR.as_mut_ptr();
    if rank() == 0 {
        mbarrier_init(bar, 1);
    }
    sync();
    (bar, TILE.as_mut_ptr().cast())
}

unsafe fn load(bar: *mut u64, tile: *mut u32, source: *const u32, expected: u32, bytes: u32) {
    let _ = mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, bar, expected);
    cp_async_bulk_bar(space_shared, space_global, tile, source, bytes, bar);
}

/// What a copy brings is read after the wait for it.
unsafe fn read_before_wait<const RIGHT: bool>(input: *const u32, output: *mut u32) {
    let (bar, tile) = start();
    if rank() == 0 {
        load(bar, tile, input, TILE_BYTES, TILE_BYTES);
    }
    if RIGHT {
        while !mbarrier_try_wait_parity(bar, 0) {}
    }
    *output.add(rank() as usize) = *tile.add(rank() as usize);
    while !mbarrier_try_wait_parity(bar, 0) {}
}
row!(early_read, early_read_right, read_before_wait);

/// All readers have left a buffer before it is filled again.
unsafe fn refill_too_early<const RIGHT: bool>(input: *const u32, output: *mut u32) {
    let (bar, tile) = start();
    for i in 0..2 {
        if rank() == 0 {
            load(
                bar,
                tile,
                input.add((i * TILE_LEN) as usize),
                TILE_BYTES,
                TILE_BYTES,
            );
        }
        while !mbarrier_try_wait_parity(bar, i) {}
        *output.add((i * TILE_LEN + rank()) as usize) = *tile.add(rank() as usize);
        if RIGHT {
            sync();
        }
    }
}
row!(early_refill, early_refill_right, refill_too_early);

/// As many bytes are expected as come.
unsafe fn expect_too_much<const RIGHT: bool>(input: *const u32, _: *mut u32) {
    let (bar, tile) = start();
    if rank() == 0 {
        let expected = if RIGHT { TILE_BYTES } else { 2 * TILE_BYTES };
        load(bar, tile, input, expected, TILE_BYTES);
    }
    while !mbarrier_try_wait_parity(bar, 0) {}
}
row!(bytes_missing, bytes_missing_right, expect_too_much);

/// A transaction count is below 2^20.
unsafe fn count_of_bytes_too_large<const RIGHT: bool>(input: *const u32, _: *mut u32) {
    let (bar, tile) = start();
    if rank() == 0 {
        if !RIGHT {
            mbarrier_expect_tx(sem_relaxed, scope_cta, space_shared, bar, 1 << 20);
        }
        load(bar, tile, input, TILE_BYTES, TILE_BYTES);
    }
    while !mbarrier_try_wait_parity(bar, 0) {}
}
row!(
    too_many_bytes,
    too_many_bytes_right,
    count_of_bytes_too_large
);

/// Both addresses are multiples of 16 bytes.
unsafe fn misaligned_source<const RIGHT: bool>(input: *const u32, _: *mut u32) {
    let (bar, tile) = start();
    if rank() == 0 {
        let source = input.add(if RIGHT { 4 } else { 1 });
        load(bar, tile, source, TILE_BYTES, TILE_BYTES);
    }
    while !mbarrier_try_wait_parity(bar, 0) {}
}
row!(misaligned, misaligned_right, misaligned_source);

/// The size is a multiple of 16 bytes.
unsafe fn odd_size<const RIGHT: bool>(input: *const u32, _: *mut u32) {
    let (bar, tile) = start();
    if rank() == 0 {
        let bytes = if RIGHT { 112 } else { 100 };
        load(bar, tile, input, bytes, bytes);
    }
    while !mbarrier_try_wait_parity(bar, 0) {}
}
row!(bad_size, bad_size_right, odd_size);

/// A copy stays within its buffers.
unsafe fn past_the_end<const RIGHT: bool>(input: *const u32, _: *mut u32) {
    let (bar, tile) = start();
    if rank() == 0 {
        let source = input.add(if RIGHT { 4096 - 64 } else { 4096 - 4 });
        load(bar, tile, source, TILE_BYTES, TILE_BYTES);
    }
    while !mbarrier_try_wait_parity(bar, 0) {}
}
row!(past_end, past_end_right, past_the_end);

/// Ordinary stores, then the copy engine: `fence.proxy.async` by the writer, before the barrier.
unsafe fn store_without_proxy_fence<const RIGHT: bool>(_: *const u32, output: *mut u32) {
    let tile = TILE.as_mut_ptr().cast::<u32>();
    *tile.add(rank() as usize) = rank();
    if RIGHT {
        fence_proxy_async_space(space_shared);
    }
    sync();
    write_out(output, tile);
}
row!(
    no_proxy_fence,
    no_proxy_fence_right,
    store_without_proxy_fence
);

/// The fence comes after the stores.
unsafe fn fence_before_store<const RIGHT: bool>(_: *const u32, output: *mut u32) {
    let tile = TILE.as_mut_ptr().cast::<u32>();
    if !RIGHT {
        fence_proxy_async_space(space_shared);
    }
    *tile.add(rank() as usize) = rank();
    if RIGHT {
        fence_proxy_async_space(space_shared);
    }
    sync();
    write_out(output, tile);
}
row!(early_fence, early_fence_right, fence_before_store);

/// Copies the tile out and waits until it has been read.
unsafe fn write_out(output: *mut u32, tile: *const u32) {
    if rank() == 0 {
        cp_async_bulk(space_global, space_shared, output, tile, TILE_BYTES);
        cp_async_bulk_commit_group();
        cp_async_bulk_wait_group(n32::<0>);
    }
    sync();
}

/// A source is written again after `wait_group.read`.
unsafe fn overwrite_source<const RIGHT: bool>(_: *const u32, output: *mut u32) {
    let tile = TILE.as_mut_ptr().cast::<u32>();
    *tile.add(rank() as usize) = rank();
    fence_proxy_async_space(space_shared);
    sync();
    if rank() == 0 {
        cp_async_bulk(space_global, space_shared, output, tile, TILE_BYTES);
        cp_async_bulk_commit_group();
        if RIGHT {
            cp_async_bulk_wait_group_read(n32::<0>);
        }
    }
    sync();
    *tile.add(rank() as usize) = size();
    if rank() == 0 {
        cp_async_bulk_wait_group(n32::<0>);
    }
}
row!(source_reused, source_reused_right, overwrite_source);

/// The shared memory of a CTA lives until its threads exit, not until its copies are over.
unsafe fn exit_before_copy<const RIGHT: bool>(_: *const u32, output: *mut u32) {
    let tile = TILE.as_mut_ptr().cast::<u32>();
    *tile.add(rank() as usize) = rank();
    fence_proxy_async_space(space_shared);
    sync();
    if rank() == 0 {
        cp_async_bulk(space_global, space_shared, output, tile, TILE_BYTES);
        cp_async_bulk_commit_group();
        if RIGHT {
            cp_async_bulk_wait_group_read(n32::<0>);
        }
    }
}
row!(
    early_exit_of_copy,
    early_exit_of_copy_right,
    exit_before_copy
);

/// A multicast arrives in every CTA of its mask: each must expect it.
unsafe fn multicast_unexpected<const RIGHT: bool>(input: *const u32, output: *mut u32) {
    let bar = BAR.as_mut_ptr();
    let tile = TILE.as_mut_ptr().cast::<u32>();
    let cta = get_sreg_cluster_ctarank();
    if rank() == 0 {
        mbarrier_init(bar, 1);
        fence_mbarrier_init(sem_release, scope_cluster);
    }
    barrier_cluster_arrive();
    barrier_cluster_wait();
    if rank() == 0 {
        if RIGHT || cta == 0 {
            let _ =
                mbarrier_arrive_expect_tx(sem_release, scope_cta, space_shared, bar, TILE_BYTES);
        }
        if cta == 0 {
            cp_async_bulk_bar_cta_mask(
                space_cluster,
                space_global,
                tile,
                input,
                TILE_BYTES,
                bar,
                0b11,
            );
        }
    }
    while !mbarrier_try_wait_parity(bar, 0) {}
    *output.add((cta * TILE_LEN + rank()) as usize) = *tile.add(rank() as usize);
    barrier_cluster_arrive();
    barrier_cluster_wait();
}
row!(multicast, multicast_right, multicast_unexpected);
