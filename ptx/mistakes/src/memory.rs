//! Races, and memory that is not there.

use cuda_ptx::*;

use crate::{TILE_LEN, rank, row, size, sync};

shared! {
    static TILE: [u32; TILE_LEN as usize];
}

unsafe fn tile() -> *mut u32 {
    TILE.as_mut_ptr().cast()
}

/// A neighbour's element is read after a barrier.
unsafe fn read_neighbour<const RIGHT: bool>(input: *const u32, output: *mut u32) {
    *tile().add(rank() as usize) = *input.add(rank() as usize);
    if RIGHT {
        sync();
    }
    let neighbour = (rank() + 32) % size();
    *output.add(rank() as usize) = *tile().add(neighbour as usize);
}
row!(unsynced_read, unsynced_read_right, read_neighbour);

/// CTAs that nothing orders write different elements.
unsafe fn same_element<const RIGHT: bool>(_: *const u32, output: *mut u32) {
    let cta = get_sreg_ctaid_x();
    if rank() == 0 {
        *output.add(if RIGHT { cta as usize } else { 0 }) = cta + 1;
    }
}
row!(shared_element, shared_element_right, same_element);

/// Shared memory holds nothing until it is written.
unsafe fn read_unwritten<const RIGHT: bool>(_: *const u32, output: *mut u32) {
    // Every second element is written.
    let written = rank() & !1;
    if rank() % 2 == 0 {
        *tile().add(rank() as usize) = rank();
    }
    sync();
    let read = if RIGHT { written } else { rank() };
    *output.add(rank() as usize) = *tile().add(read as usize);
}
row!(unwritten, unwritten_right, read_unwritten);

/// A buffer ends where it ends.
unsafe fn write_past_end<const RIGHT: bool>(_: *const u32, output: *mut u32) {
    let first = if RIGHT {
        4096 - size()
    } else {
        4096 - size() + 1
    };
    *output.add((first + rank()) as usize) = 1;
}
row!(store_past_end, store_past_end_right, write_past_end);

/// A vector is aligned to its size.
unsafe fn misaligned_vector<const RIGHT: bool>(input: *const u32, output: *mut u32) {
    let source = input.add(if RIGHT { 2 } else { 1 }).cast::<u64>();
    *output.add(rank() as usize) = source.add(rank() as usize).read() as u32;
}
row!(odd_vector, odd_vector_right, misaligned_vector);

/// A CTA stays until nobody reads its shared memory any more.
unsafe fn leave_before_peer_reads<const RIGHT: bool>(_: *const u32, output: *mut u32) {
    let cta = get_sreg_cluster_ctarank();
    *tile().add(rank() as usize) = cta * 1000 + rank();
    barrier_cluster_arrive();
    barrier_cluster_wait();
    if cta == 0 {
        // Long enough for the other CTA to be gone.
        for i in 0..200 {
            output.add((2048 + rank()) as usize).write_volatile(i);
        }
        let remote = mapa(space_cluster, tile().add(rank() as usize).cast_const(), 1);
        *output.add(rank() as usize) = *remote;
    }
    if RIGHT {
        barrier_cluster_arrive();
        barrier_cluster_wait();
    }
}
row!(left_alone, left_alone_right, leave_before_peer_reads);
