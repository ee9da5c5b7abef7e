//! The operations of the corpus and the instructions they become.

/// An operation that must stay where it is.
#[derive(Debug, PartialEq, Eq)]
pub struct Operation {
    /// The function in `ptx/corpus/src/*/operations.rs`.
    pub name: &'static str,
    /// What its PTX instruction starts with.
    pub ptx: &'static str,
    /// Its machine instruction.
    pub sass: Sass,
    /// Whether it is in the `hard_shapes!` alone.
    pub hard: bool,
}

/// What ptxas makes of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sass {
    /// One instruction that starts like this.
    Exact(&'static str),
    /// As `Exact`, but ptxas knows what the instruction computes: it may drop one whose result is not
    /// used and make one of two that a converged warp executes.
    Computed(&'static str),
    /// Nothing whose places can be told from the machine code.
    Hidden,
}

const fn operation(name: &'static str, ptx: &'static str, sass: Sass) -> Operation {
    Operation {
        name,
        ptx,
        sass,
        hard: false,
    }
}

const fn hard(name: &'static str, ptx: &'static str, sass: Sass) -> Operation {
    Operation {
        hard: true,
        ..operation(name, ptx, sass)
    }
}

/// Those of sm_90a.
pub const SM_90A: [Operation; 36] = {
    use Sass::{Computed, Exact, Hidden};
    [
        operation("bar_sync", "bar.sync", Exact("BAR.SYNC")),
        operation("barrier_sync", "barrier.sync", Exact("BAR.SYNC")),
        operation("syncthreads", "bar.sync", Exact("BAR.SYNC")),
        // ptxas tracks which threads are converged, and synchronises them only where they may not be.
        operation("bar_warp_sync", "bar.warp.sync", Hidden),
        operation("elect", "elect.sync", Computed("ELECT")),
        operation("shfl", "shfl.sync", Computed("SHFL")),
        // A loop that tries until there are enough registers.
        operation("setmaxnreg_inc", "setmaxnreg.inc", Hidden),
        operation("setmaxnreg_dec", "setmaxnreg.dec", Exact("USETMAXREG")),
        operation("ldmatrix", "ldmatrix.sync", Computed("LDSM")),
        operation("stmatrix", "stmatrix.sync", Exact("STSM")),
        operation(
            "tensormap",
            "tensormap.cp_fenceproxy",
            Exact("ATOMG.E.EXCH"),
        ),
        operation(
            "cluster_arrive",
            "barrier.cluster.arrive",
            Exact("UCGABAR_ARV"),
        ),
        operation(
            "cluster_wait",
            "barrier.cluster.wait",
            Exact("UCGABAR_WAIT"),
        ),
        hard(
            "barrier_sync_aligned",
            "barrier.sync.aligned",
            Exact("BAR.SYNC"),
        ),
        hard("barrier_red", "barrier.red.popc.u32", Exact("BAR.RED.POPC")),
        hard(
            "barrier_red_aligned",
            "barrier.red.or.aligned",
            Exact("BAR.RED.OR"),
        ),
        hard("barrier_arrive", "barrier.arrive", Exact("BAR.ARV")),
        hard(
            "barrier_arrive_aligned",
            "barrier.arrive.aligned",
            Exact("BAR.ARV"),
        ),
        hard("redux", "redux.sync", Computed("REDUX")),
        hard("ballot", "vote.sync.ballot", Computed("VOTE")),
        hard("vote_any", "vote.sync.any", Computed("VOTE")),
        hard("match_any", "match.any.sync", Computed("MATCH.ANY")),
        hard("match_all", "match.all.sync", Computed("MATCH.ALL")),
        hard("active", "activemask", Computed("VOTE")),
        hard("elect_leader", "elect.sync", Computed("ELECT")),
        hard("movmatrix", "movmatrix.sync", Computed("MOVM")),
        hard("mma", "mma.sync", Computed("IMMA")),
        hard("mma_sp", "mma.sp::ordered_metadata.sync", Computed("IMMA")),
        hard("wgmma_fence", "wgmma.fence.sync", Exact("WARPGROUP.ARRIVE")),
        // Without a multiplication ptxas puts one there that does nothing.
        hard("wgmma_commit", "wgmma.commit_group.sync", Hidden),
        hard(
            "wgmma_wait",
            "wgmma.wait_group.sync",
            Exact("WARPGROUP.DEPBAR"),
        ),
        hard("wgmma_mma", "wgmma.mma_async.sync", Exact("HGMMA")),
        hard(
            "cluster_arrive_aligned",
            "barrier.cluster.arrive.release.aligned",
            Exact("UCGABAR_ARV"),
        ),
        hard(
            "cluster_aligned",
            "barrier.cluster.wait.acquire.aligned",
            Exact("UCGABAR_WAIT"),
        ),
        hard(
            "dependents",
            "griddepcontrol.launch_dependents",
            Exact("PREEXIT"),
        ),
        hard("dependencies", "griddepcontrol.wait", Exact("ACQBULK")),
    ]
};

/// Those of sm_100a, on tensor memory.
pub const SM_100A: [Operation; 10] = {
    use Sass::{Computed, Exact, Hidden};
    [
        // A loop that tries until there are enough columns.
        operation("tcgen05_alloc", "tcgen05.alloc", Hidden),
        operation("tcgen05_dealloc", "tcgen05.dealloc", Exact("UTCATOMSWS")),
        operation(
            "tcgen05_relinquish",
            "tcgen05.relinquish_alloc_permit",
            Exact("UVIRTCOUNT.DEALLOC"),
        ),
        operation("tcgen05_ld", "tcgen05.ld", Computed("LDTM")),
        operation("tcgen05_st", "tcgen05.st", Exact("STTM")),
        operation("tcgen05_wait_ld", "tcgen05.wait::ld", Hidden),
        operation("tcgen05_wait_st", "tcgen05.wait::st", Hidden),
        // A loop over the threads, one after the other, because their operands may differ.
        hard("tcgen05_mma", "tcgen05.mma", Hidden),
        hard("tcgen05_mma_ashift", "tcgen05.mma", Hidden),
        hard("tcgen05_mma_ws_sp", "tcgen05.mma.ws.sp", Hidden),
    ]
};

/// The machine instruction of what an `order:` line names; `None` where there is none that stands
/// for it alone.
pub fn sass_of(ptx: &str) -> Option<&'static str> {
    Some(match ptx {
        "st.shared" => "STS",
        "ld.shared" => "LDS",
        "st.global" => "STG",
        "ld.global" => "LDG.E ",
        "ld.acquire" => "LDG.E.STRONG",
        "bar.sync" => "BAR.SYNC",
        "bar.warp.sync" | "call" | "tensormap.cp_fenceproxy" => return None,
        "ldmatrix" => "LDSM",
        "stmatrix" => "STSM",
        "popc" => "POPC",
        "tcgen05.ld" => "LDTM",
        "tcgen05.st" => "STTM",
        "tcgen05.alloc" | "tcgen05.dealloc" => return None,
        "tcgen05.relinquish_alloc_permit" | "tcgen05.wait::ld" | "tcgen05.wait::st" => return None,
        "barrier.cluster.arrive" => "UCGABAR_ARV",
        "barrier.cluster.wait" => "UCGABAR_WAIT",
        "fence.proxy.async" => "FENCE.VIEW.ASYNC",
        "fence.acq_rel" => "MEMBAR",
        "fence.mbarrier_init" => return None,
        "cp.async.bulk.global" => "UBLKCP.G.S",
        "cp.async.bulk.shared" => "UBLKCP.S.G",
        "cp.async.bulk.commit_group" => "UTMACMDFLUSH",
        "cp.async.bulk.wait_group" | "cp.async.bulk.wait_group.read" => "DEPBAR",
        "mbarrier.init" => "SYNCS.EXCH",
        "mbarrier.arrive" | "mbarrier.arrive.expect_tx" => "SYNCS.ARRIVE",
        "mbarrier.test_wait" | "mbarrier.try_wait" => "SYNCS.PHASECHK",
        "%clock64" => "SR_CLOCKLO",
        _ => panic!("say in operations.rs what ptxas makes of `{ptx}`"),
    })
}
