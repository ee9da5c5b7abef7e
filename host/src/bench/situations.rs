//! The situations of `ptx/bench`, and the points at which each is measured.

use serde::{Deserialize, Serialize};

use crate::driver::Swizzle;

/// A kernel of `ptx/bench` and where it is measured.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// The kernel.
    pub kernel: &'static str,
    /// What it shows, for the title of a table.
    pub title: &'static str,
    /// What `at` of a point counts.
    pub axis: &'static str,
    /// What a step is, for the reader: operations of each thread, so that figures are per operation.
    pub operations: u32,
    /// Steps of the shortest run; the others have two, three and four times as many.
    pub steps: u32,
    points: fn() -> Vec<Point>,
}

/// One launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The value on the axis.
    pub at: u32,
    /// Tells the lines of one chart apart, if there are several.
    pub line: u32,
    /// The kernel's `p`.
    pub p: u32,
    /// The kernel's `q`.
    pub q: u32,
    /// Threads of a block.
    pub threads: u32,
    /// CTAs of the cluster, which is the grid.
    pub cluster: u32,
    /// Bytes of shared memory behind the barriers.
    pub buffer: u32,
    /// Pairs of launches, one in each language.
    pub pairs: usize,
    /// Whether as many clusters run as there are multiprocessors, instead of one.
    pub chip: bool,
    /// Whether each launch reads global memory that none has read before.
    pub fresh: bool,
    /// Whether the first step of a launch is timed, without a pass that warms up, instead of the steps of a chain.
    pub first: bool,
}

const POINT: Point = Point {
    at: 0,
    line: 0,
    p: 0,
    q: 1,
    threads: 32,
    cluster: 1,
    buffer: 8192,
    pairs: 31,
    chip: false,
    fresh: false,
    first: false,
};

impl Situation {
    /// Where it is measured.
    #[must_use]
    pub fn points(&self) -> Vec<Point> {
        (self.points)()
    }
}

fn alone() -> Vec<Point> {
    vec![Point {
        threads: 1,
        at: 1,
        ..POINT
    }]
}

fn by_threads() -> Vec<Point> {
    let threads = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
    threads
        .map(|threads| Point {
            at: threads,
            threads,
            ..POINT
        })
        .to_vec()
}

fn by_warps() -> Vec<Point> {
    let warps = [1, 2, 4, 8, 16, 32];
    warps
        .map(|warps| Point {
            at: 32 * warps,
            threads: 32 * warps,
            ..POINT
        })
        .to_vec()
}

fn two_warps() -> Vec<Point> {
    vec![Point {
        at: 2,
        threads: 64,
        ..POINT
    }]
}

fn by_hint() -> Vec<Point> {
    let hints = [0, 100, 1_000, 10_000, 100_000];
    hints
        .map(|hint| Point {
            at: hint,
            p: hint,
            threads: 1,
            ..POINT
        })
        .to_vec()
}

/// 16 B to 128 KiB.
fn by_size() -> Vec<Point> {
    let sizes = [16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10];
    sizes
        .map(|size| Point {
            at: size,
            line: 1,
            p: size,
            buffer: size.max(8192),
            ..POINT
        })
        .to_vec()
}

/// The same, with 1, 2, 4 and 8 loads in flight as far as shared memory reaches.
fn by_size_and_stages() -> Vec<Point> {
    let stages = [1, 2, 4, 8];
    let points = stages.iter().flat_map(|&stages| {
        by_size().into_iter().map(move |point| Point {
            line: stages,
            q: stages,
            buffer: (point.p * stages).max(8192),
            ..point
        })
    });
    points.filter(|point| point.buffer <= 200 << 10).collect()
}

/// One load after the other, and each in another page of memory.
fn from_memory() -> Vec<Point> {
    let points = [0, PAGE].into_iter().flat_map(|page| {
        [256, 1 << 10, 4 << 10, 16 << 10].map(|size| Point {
            at: size,
            line: page >> 10,
            p: size,
            q: size.max(page),
            buffer: size.max(8192),
            pairs: 120,
            fresh: true,
            ..POINT
        })
    });
    points.chain(of_first_load()).collect()
}

/// The line of the first load of a launch.
pub const FIRST: u32 = 3;

fn of_first_load() -> impl Iterator<Item = Point> {
    [256, 1 << 10, 4 << 10, 16 << 10]
        .into_iter()
        .map(|size| Point {
            at: size,
            line: FIRST,
            p: size,
            q: size,
            buffer: size.max(8192),
            pairs: 1024,
            fresh: true,
            first: true,
            ..POINT
        })
}

/// Every multiprocessor copies, with as many copies in flight as hide the latency.
fn of_chip(stages: u32) -> Vec<Point> {
    let sizes = [256, 1 << 10, 4 << 10, 16 << 10, 32 << 10];
    sizes
        .map(|size| Point {
            at: size,
            line: stages,
            p: size,
            q: stages,
            buffer: (size * stages).max(8192),
            chip: true,
            ..POINT
        })
        .to_vec()
}

fn in_cluster() -> Vec<Point> {
    let points = [2, 4, 8].into_iter().flat_map(|cluster| {
        [256, 1 << 10, 4 << 10, 16 << 10, 64 << 10].map(|size| Point {
            at: size,
            line: cluster,
            p: size,
            q: cluster,
            cluster,
            buffer: size.max(8192),
            ..POINT
        })
    });
    points.collect()
}

/// Every other CTA of clusters of 2 to 16.
fn by_distance() -> Vec<Point> {
    let points = [2, 4, 8, 16].into_iter().flat_map(|cluster| {
        (1..cluster).map(move |rank| Point {
            at: rank,
            line: cluster,
            p: rank,
            cluster,
            ..POINT
        })
    });
    points.collect()
}

fn copies_to_peer() -> Vec<Point> {
    let sizes = [16, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10];
    sizes
        .map(|size| Point {
            at: size,
            line: 2,
            p: 1,
            q: size,
            cluster: 2,
            buffer: (2 * size).max(8192),
            ..POINT
        })
        .to_vec()
}

fn by_cluster() -> Vec<Point> {
    let clusters = [1, 2, 4, 8, 16];
    clusters
        .map(|cluster| Point {
            at: cluster,
            cluster,
            threads: 128,
            ..POINT
        })
        .to_vec()
}

fn by_stores() -> Vec<Point> {
    let stores = [0, 1, 2, 4, 8, 16];
    stores
        .map(|stores| Point {
            at: stores,
            p: stores,
            threads: 128,
            ..POINT
        })
        .to_vec()
}

/// The maps of this number of dimensions.
fn by_swizzle(dimensions: usize) -> Vec<Point> {
    let maps = MAPS.iter().enumerate();
    maps.filter(|(_, map)| map.tile.len() == dimensions)
        .map(|(index, map)| Point {
            at: map.swizzle_bytes(),
            p: 4 * map.tile.iter().product::<u32>(),
            q: index as u32,
            ..POINT
        })
        .collect()
}

/// Bytes of a page of global memory.
pub const PAGE: u32 = 2 << 20;

/// A tensor map and the tile that a copy by it moves.
#[derive(Clone, Copy, Debug)]
pub struct Map {
    /// Elements of 4 bytes, innermost first.
    pub tile: &'static [u32],
    /// How 16-byte chunks are permuted.
    pub swizzle: Swizzle,
}

impl Map {
    fn swizzle_bytes(&self) -> u32 {
        match self.swizzle {
            Swizzle::None => 0,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128
            | Swizzle::Bytes128Atom32
            | Swizzle::Bytes128Atom32Flip8
            | Swizzle::Bytes128Atom64 => 128,
        }
    }
}

const fn map(tile: &'static [u32], swizzle: Swizzle) -> Map {
    Map { tile, swizzle }
}

/// The maps that the kernels are given: tiles of 1 KiB.
pub const MAPS: [Map; 8] = [
    map(&[256], Swizzle::None),
    map(&[8, 32], Swizzle::None),
    map(&[8, 32], Swizzle::Bytes32),
    map(&[8, 32], Swizzle::Bytes64),
    map(&[8, 32], Swizzle::Bytes128),
    map(&[8, 8, 4], Swizzle::None),
    map(&[8, 4, 4, 2], Swizzle::None),
    map(&[8, 4, 2, 2, 2], Swizzle::None),
];

const fn situation(
    kernel: &'static str,
    title: &'static str,
    axis: &'static str,
    operations: u32,
    points: fn() -> Vec<Point>,
) -> Situation {
    Situation {
        kernel,
        title,
        axis,
        operations,
        steps: 32,
        points,
    }
}

const fn slow(situation: Situation, steps: u32) -> Situation {
    Situation { steps, ..situation }
}

/// All situations.
pub const SITUATIONS: &[Situation] = &[
    situation(
        "arrive_converged",
        "mbarrier.arrive at one barrier, the lanes of a warp together",
        "threads",
        8,
        by_threads,
    ),
    situation(
        "arrive_diverged",
        "mbarrier.arrive at one barrier, lane after lane",
        "threads",
        1,
        by_threads,
    ),
    situation(
        "arrive_elected",
        "mbarrier.arrive at one barrier, one lane of each warp",
        "threads",
        8,
        by_warps,
    ),
    situation(
        "arrive_unused",
        "mbarrier.arrive at one barrier, its state not used",
        "threads",
        8,
        by_threads,
    ),
    situation(
        "wait_ready",
        "mbarrier.try_wait.parity, the phase complete",
        "threads",
        8,
        by_threads,
    ),
    situation(
        "test_ready",
        "mbarrier.test_wait.parity, the phase complete",
        "threads",
        8,
        by_threads,
    ),
    situation(
        "test_pending",
        "mbarrier.test_wait.parity, the phase not complete",
        "threads",
        8,
        by_threads,
    ),
    slow(
        situation(
            "wait_gives_up",
            "mbarrier.try_wait.parity until it gives up",
            "threads",
            1,
            alone,
        ),
        2,
    ),
    slow(
        situation(
            "wait_gives_up_hint",
            "mbarrier.try_wait.parity until it gives up, by the hint",
            "hint in ns",
            1,
            by_hint,
        ),
        4,
    ),
    situation(
        "arrive_wait",
        "mbarrier.arrive and wait by one thread",
        "threads",
        1,
        alone,
    ),
    situation(
        "expect_wait",
        "mbarrier.arrive.expect_tx of 0 bytes and wait by one thread",
        "threads",
        1,
        alone,
    ),
    situation(
        "phase_of_block",
        "mbarrier.arrive and wait by a whole block",
        "threads",
        1,
        by_threads,
    ),
    situation("syncthreads", "__syncthreads()", "threads", 1, by_threads),
    situation(
        "phase_round_trip",
        "round trip between two warps over two mbarriers",
        "warps",
        1,
        two_warps,
    ),
    situation(
        "bulk_load",
        "bulk load and wait, by loads in flight",
        "bytes",
        1,
        by_size_and_stages,
    ),
    situation(
        "bulk_load_tested",
        "bulk load and wait by mbarrier.test_wait in a loop",
        "bytes",
        1,
        by_size,
    ),
    situation(
        "bulk_load_apart",
        "bulk load and wait, from memory that is in no cache: each load next to the one before (line 0), 2048 KiB further, \
         or the first of a launch (line 3)",
        "bytes",
        1,
        from_memory,
    ),
    situation(
        "chip_load",
        "bulk loads by all multiprocessors, a CTA on each: cycles of a load",
        "bytes",
        1,
        || of_chip(4),
    ),
    situation(
        "chip_store",
        "bulk stores by all multiprocessors: cycles of a store",
        "bytes",
        1,
        || of_chip(4),
    ),
    situation(
        "chip_add",
        "bulk reductions, add u32, by all multiprocessors: cycles of a reduction",
        "bytes",
        1,
        || of_chip(4),
    ),
    situation(
        "bulk_store",
        "bulk store and wait until written",
        "bytes",
        1,
        by_size,
    ),
    situation(
        "bulk_store_read",
        "bulk store and wait until read",
        "bytes",
        1,
        by_size,
    ),
    situation(
        "bulk_add",
        "bulk reduction, add u32, and wait",
        "bytes",
        1,
        by_size,
    ),
    situation(
        "load_multicast",
        "the same bytes to each CTA of a cluster: one multicast load",
        "bytes",
        1,
        in_cluster,
    ),
    situation(
        "load_separate",
        "the same bytes to each CTA of a cluster: a load for each",
        "bytes",
        1,
        in_cluster,
    ),
    situation(
        "tensor_load_1d",
        "tensor load of 1 KiB and wait, 1 dimension",
        "swizzle",
        1,
        || by_swizzle(1),
    ),
    situation(
        "tensor_load_2d",
        "tensor load of 1 KiB and wait, 2 dimensions",
        "swizzle",
        1,
        || by_swizzle(2),
    ),
    situation(
        "tensor_load_3d",
        "tensor load of 1 KiB and wait, 3 dimensions",
        "swizzle",
        1,
        || by_swizzle(3),
    ),
    situation(
        "tensor_load_4d",
        "tensor load of 1 KiB and wait, 4 dimensions",
        "swizzle",
        1,
        || by_swizzle(4),
    ),
    situation(
        "tensor_load_5d",
        "tensor load of 1 KiB and wait, 5 dimensions",
        "swizzle",
        1,
        || by_swizzle(5),
    ),
    situation(
        "cp_async_cg",
        "16 times cp.async.cg of 16 bytes, issue only",
        "threads",
        1,
        by_threads,
    ),
    situation(
        "cp_async_ca",
        "16 times cp.async.ca of 16 bytes, issue only",
        "threads",
        1,
        by_threads,
    ),
    situation(
        "remote_arrive",
        "round trip of mbarrier.arrive between two CTAs, by cluster size",
        "rank of the other",
        1,
        by_distance,
    ),
    situation(
        "remote_arrive_relaxed",
        "the same with relaxed arrivals",
        "rank of the other",
        1,
        by_distance,
    ),
    situation(
        "remote_copy",
        "round trip of a bulk copy between two CTAs",
        "bytes",
        1,
        copies_to_peer,
    ),
    situation(
        "remote_read",
        "ld.shared::cluster, each address from the value before",
        "rank of the other",
        8,
        by_distance,
    ),
    situation(
        "remote_write",
        "st.shared::cluster, issue only",
        "rank of the other",
        8,
        by_distance,
    ),
    situation(
        "cluster_barrier",
        "barrier.cluster.arrive and wait",
        "CTAs",
        1,
        by_cluster,
    ),
    situation(
        "shared_stores",
        "stores to shared memory, no fence",
        "stores",
        1,
        by_stores,
    ),
    situation(
        "shared_proxy_async",
        "stores to shared memory, then fence.proxy.async",
        "stores",
        1,
        by_stores,
    ),
    situation(
        "shared_proxy_async_shared",
        "stores to shared memory, then fence.proxy.async.shared::cta",
        "stores",
        1,
        by_stores,
    ),
    situation(
        "global_stores",
        "stores to global memory, no fence",
        "stores",
        1,
        by_stores,
    ),
    situation(
        "global_proxy_async_global",
        "stores to global memory, then fence.proxy.async.global",
        "stores",
        1,
        by_stores,
    ),
    situation(
        "global_acq_rel_cta",
        "stores to global memory, then fence.acq_rel.cta",
        "stores",
        1,
        by_stores,
    ),
    situation(
        "global_acq_rel_cluster",
        "stores to global memory, then fence.acq_rel.cluster",
        "stores",
        1,
        by_stores,
    ),
    situation(
        "global_acq_rel_gpu",
        "stores to global memory, then fence.acq_rel.gpu",
        "stores",
        1,
        by_stores,
    ),
    situation(
        "global_acq_rel_sys",
        "stores to global memory, then fence.acq_rel.sys",
        "stores",
        1,
        by_stores,
    ),
    situation(
        "global_sc_gpu",
        "stores to global memory, then fence.sc.gpu",
        "stores",
        1,
        by_stores,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_situation_has_a_kernel_in_both_languages() {
        let folder = crate::toolchain::workspace_root().join("ptx/bench/src");
        let text = |ending: &str| {
            let files = ["barrier", "cluster", "copy", "fence"];
            let read = |file| std::fs::read_to_string(folder.join(file).with_extension(ending));
            files.map(|file| read(file).unwrap()).concat()
        };
        let (rust, cpp) = (text("rs").replace("(\n    ", "("), text("cu"));
        for situation in SITUATIONS {
            let name = situation.kernel;
            let defines = [format!("fn {name}("), format!("!({name}")];
            assert!(defines.iter().any(|d| rust.contains(d)), "{name}");
            assert!(cpp.contains(&format!("({name}")), "{name}");
        }
    }

    #[test]
    fn every_point_fits_a_multiprocessor() {
        for situation in SITUATIONS {
            for point in situation.points() {
                let bytes = 1024 + point.buffer;
                assert!(bytes <= 227 << 10, "{}: {point:?}", situation.kernel);
                assert!(point.threads <= 1024 && point.cluster <= 16);
            }
        }
    }
}
