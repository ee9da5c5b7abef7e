//! Arrivals, reads, writes and copies at another CTA of the cluster.

use cuda_ptx::*;

use crate::common::{
    arm, barrier, buffer, cluster_sync, fixed, init_barriers, load_cluster, map_to, opaque,
    store_cluster, thread, wait,
};

/// A round trip of arrivals between two CTAs.
macro_rules! ping_pong {
    ($name:ident, $order:ident) => {
        situation! {
            /// CTA 0 and CTA `p` in turn: each waits for the other's arrival, then arrives. A step is a round trip; CTA 0
            /// has arrived once more, before the first.
            fn $name(out, _data, _maps, steps, passes, p, _q) {
                init_barriers(1, 1);
                let rank = get_sreg_cluster_ctarank();
                let own = fixed(barrier(0));
                let other = fixed(map_to(own, p - rank % (p + 1)));
                let busy = thread() == 0 && (rank == 0 || rank == p);
                let mut parity = 0;
                if busy && rank == 0 {
                    mbarrier_arrive_sem_scope_space($order, scope_cluster, space_cluster, other);
                }
                timed!(out, steps, passes, cluster_sync(), busy, parity, {
                    wait(own, parity);
                    parity = opaque(parity ^ 1);
                    mbarrier_arrive_sem_scope_space($order, scope_cluster, space_cluster, other);
                });
                if busy && rank == p {
                    wait(own, parity);
                }
                cluster_sync();
            }
        }
    };
}
ping_pong!(remote_arrive, sem_release);
ping_pong!(remote_arrive_relaxed, sem_relaxed);

situation! {
    /// CTA 0 and CTA `p` in turn: each waits for `q` bytes from the other, then copies as many there. A step is
    /// a round trip; CTA 0 has copied once more, before the first. Nobody reads the bytes, which are the same each
    /// time: that a copy is complete is known to who receives it and not to who sends the next one to the same place.
    fn remote_copy(out, _data, _maps, steps, passes, p, q) {
        init_barriers(1, 1);
        let rank = get_sreg_cluster_ctarank();
        let (own, shared) = (fixed(barrier(0)), fixed(buffer(0)));
        let other = fixed(map_to(own, p - rank % (p + 1)));
        let target = fixed(map_to(buffer(q), p - rank % (p + 1)));
        let mut parity = 0;
        let busy = thread() == 0 && (rank == 0 || rank == p);
        if busy && rank == 0 {
            cp_async_bulk_bar(space_cluster, space_shared, target, shared, q, other);
        }
        timed!(out, steps, passes, cluster_sync(), busy, parity, {
            arm(own, q);
            wait(own, parity);
            parity = opaque(parity ^ 1);
            cp_async_bulk_bar(space_cluster, space_shared, target, shared, q, other);
        });
        if busy && rank == p {
            arm(own, q);
            wait(own, parity);
        }
        cluster_sync();
    }
}

situation! {
    /// A warp of CTA 0 reads the shared memory of CTA `p`, each address from the value before; 8 reads a step.
    fn remote_read(out, _data, _maps, steps, passes, p, _q) {
        init_barriers(1, 1);
        let rank = get_sreg_cluster_ctarank();
        // Zeros, which the host cannot know to be: 0 is added to the address.
        buffer(1024 + thread() * 4).cast::<u32>().write(get_sreg_clusterid_y());
        let target = fixed(map_to(buffer(1024 + thread() * 4), p));
        let mut address = address::as_ptr_dsmem(target);
        timed!(out, steps, passes, cluster_sync(), rank == 0, address, {
            eight!({ address += load_cluster(address); });
        });
    }
}

situation! {
    /// A warp of CTA 0 writes to the shared memory of CTA `p`, without waiting; 8 writes a step.
    fn remote_write(out, _data, _maps, steps, passes, p, _q) {
        init_barriers(1, 1);
        let rank = get_sreg_cluster_ctarank();
        let target = fixed(map_to(buffer(1024 + thread() * 4), p));
        let address = address::as_ptr_dsmem(target);
        timed!(out, steps, passes, cluster_sync(), rank == 0, 0, {
            // Stores to one place would be merged.
            store_cluster(address, passes);
            store_cluster(address + 128, passes);
            store_cluster(address + 256, passes);
            store_cluster(address + 384, passes);
            store_cluster(address + 512, passes);
            store_cluster(address + 640, passes);
            store_cluster(address + 768, passes);
            store_cluster(address + 896, passes);
        });
    }
}

situation! {
    /// All threads of the cluster arrive at and wait for `barrier.cluster`.
    fn cluster_barrier(out, _data, _maps, steps, passes, _p, _q) {
        init_barriers(1, 1);
        timed!(out, steps, passes, cluster_sync(), true, 0, { cluster_sync(); });
    }
}
