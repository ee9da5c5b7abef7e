//! The operations of the corpus and the instructions they become.

/// An operation that must stay where it is.
#[derive(Debug, PartialEq, Eq)]
pub struct Operation {
    /// The function in `ptx/corpus/src/operations.rs`.
    pub name: &'static str,
    /// What its PTX instruction starts with.
    pub ptx: &'static str,
    /// Its machine instruction.
    pub sass: Sass,
}

/// What ptxas makes of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sass {
    /// One instruction that starts like this.
    Exact(&'static str),
    /// As `Exact`, but ptxas knows what the instruction computes: it may drop one whose result is not
    /// used and make one of two that a converged warp executes.
    Computed(&'static str),
    /// No instruction of its own: ptxas tracks which threads are converged, and synchronises them
    /// only where they may not be.
    Tracked,
}

const fn operation(name: &'static str, ptx: &'static str, sass: Sass) -> Operation {
    Operation { name, ptx, sass }
}

/// Those of sm_90a.
pub const SM_90A: [Operation; 7] = [
    operation("bar_sync", "bar.sync", Sass::Exact("BAR.SYNC")),
    operation("barrier_sync", "barrier.sync", Sass::Exact("BAR.SYNC")),
    operation("syncthreads", "bar.sync", Sass::Exact("BAR.SYNC")),
    operation("bar_warp_sync", "bar.warp.sync", Sass::Tracked),
    operation("elect", "elect.sync", Sass::Computed("ELECT")),
    operation(
        "cluster_arrive",
        "barrier.cluster.arrive",
        Sass::Exact("UCGABAR_ARV"),
    ),
    operation(
        "cluster_wait",
        "barrier.cluster.wait",
        Sass::Exact("UCGABAR_WAIT"),
    ),
];

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
        "bar.warp.sync" | "call" => return None,
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
