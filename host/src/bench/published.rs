//! What others have published for the same GPU, beside what is measured here.

use std::fmt::Write;

use super::runner::Results;
use super::situations::{FIRST, PAGE};

impl Results {
    /// A table.
    pub(super) fn published_table(&self) -> String {
        let mut out = "\n## Published figures for the same GPU\n\n\
                       Each with what of ours is the nearest to it, and with what differs from that in one respect.\n\n\
                       | what | published, cycles | ours | Rust | C++ | difference |\n|---|--:|---|--:|--:|--:|\n"
            .to_owned();
        for figure in PUBLISHED {
            for (ours, kernel, (line, at), parts) in figure.ours {
                let found = self
                    .cycles_of_form(kernel)
                    .or_else(|| self.cycles_at(kernel, *line, *at));
                let cells = found.map_or("not timed | | ".to_owned(), |cycles| {
                    let [rust, cpp] = cycles.map(|cycles| cycles / parts);
                    let difference = 100.0 * (rust / figure.cycles - 1.0);
                    format!("{rust:.0} | {cpp:.0} | {difference:+.0} %")
                });
                let (what, cycles) = (figure.what, figure.cycles);
                let _ = writeln!(out, "| {what} | {cycles} | {ours} | {cells} |");
            }
        }
        out
    }
}

/// A figure that others have published for an H200.
struct Published {
    what: &'static str,
    cycles: f64,
    ours: &'static [Ours],
}

/// What of ours is compared: in words, a form or a situation with line and place, and how many of what was published
/// an operation of it holds.
type Ours = (&'static str, &'static str, (u32, u32), f64);

const fn published(what: &'static str, cycles: f64, ours: &'static [Ours]) -> Published {
    Published { what, cycles, ours }
}

const FROM_FIRST: &str = "from memory, the first load of a launch";
const FROM_MEMORY: &str = "from memory, each load next to the one before";
const FROM_PAGES: &str = "from memory, each load in another page of 2 MiB";
const FROM_CACHE: &str = "from the L2 cache";

const PUBLISHED: &[Published] = &[
    published(
        "`mbarrier.arrive` at the own barrier",
        6.0,
        &[
            (
                "one thread, the state dropped",
                "arrive_unused",
                (0, 1),
                1.0,
            ),
            (
                "one thread, the state used",
                "arrive_converged",
                (0, 1),
                1.0,
            ),
        ],
    ),
    published(
        "`mbarrier.try_wait.parity` that succeeds",
        43.0,
        &[("latency", "k_mbarrier_try_wait_parity", (0, 0), 1.0)],
    ),
    published(
        "`mbarrier.arrive.expect_tx` of 0 and wait",
        71.0,
        &[("one thread", "expect_wait", (0, 1), 1.0)],
    ),
    published(
        "bulk load and wait, 256 B",
        1351.0,
        &[
            (FROM_FIRST, "bulk_load_apart", (FIRST, 256), 1.0),
            (FROM_PAGES, "bulk_load_apart", (PAGE >> 10, 256), 1.0),
            (FROM_MEMORY, "bulk_load_apart", (0, 256), 1.0),
            (FROM_CACHE, "bulk_load", (1, 256), 1.0),
        ],
    ),
    published(
        "bulk load and wait, 1 KiB",
        1346.0,
        &[
            (FROM_FIRST, "bulk_load_apart", (FIRST, 1024), 1.0),
            (FROM_PAGES, "bulk_load_apart", (PAGE >> 10, 1024), 1.0),
            (FROM_MEMORY, "bulk_load_apart", (0, 1024), 1.0),
            (FROM_CACHE, "bulk_load", (1, 1024), 1.0),
        ],
    ),
    published(
        "bulk load and wait, 4 KiB",
        1649.0,
        &[
            (FROM_FIRST, "bulk_load_apart", (FIRST, 4096), 1.0),
            (FROM_PAGES, "bulk_load_apart", (PAGE >> 10, 4096), 1.0),
            (FROM_MEMORY, "bulk_load_apart", (0, 4096), 1.0),
            (FROM_CACHE, "bulk_load", (1, 4096), 1.0),
        ],
    ),
    published(
        "bulk load and wait, 16 KiB",
        1887.0,
        &[
            (FROM_FIRST, "bulk_load_apart", (FIRST, 16_384), 1.0),
            (FROM_PAGES, "bulk_load_apart", (PAGE >> 10, 16_384), 1.0),
            (FROM_MEMORY, "bulk_load_apart", (0, 16_384), 1.0),
            (FROM_CACHE, "bulk_load", (1, 16_384), 1.0),
        ],
    ),
    published(
        "remote arrive until the owner's wait returns",
        212.0,
        &[
            (
                "half a round trip, relaxed",
                "remote_arrive_relaxed",
                (2, 1),
                2.0,
            ),
            ("half a round trip, release", "remote_arrive", (2, 1), 2.0),
        ],
    ),
    published(
        "read of another CTA's shared memory",
        220.0,
        &[
            ("in a cluster of two", "remote_read", (2, 1), 1.0),
            ("in a cluster of four", "remote_read", (4, 1), 1.0),
        ],
    ),
    published(
        "16 `cp.async` of 16 bytes, issue",
        65.0,
        &[
            ("`cp.async.cg` by one thread", "cp_async_cg", (0, 1), 1.0),
            ("`cp.async.ca` by one thread", "cp_async_ca", (0, 1), 1.0),
            ("`cp.async.ca` by a warp", "cp_async_ca", (0, 32), 1.0),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::situations::SITUATIONS;

    #[test]
    fn every_published_figure_has_a_form_or_a_point() {
        for (_, kernel, place, _) in PUBLISHED.iter().flat_map(|figure| figure.ours) {
            let situation = SITUATIONS.iter().find(|s| s.kernel == *kernel);
            let has_point = situation.is_some_and(|situation| {
                let mut points = situation.points().into_iter();
                points.any(|p| (p.line, p.at) == *place)
            });
            assert!(has_point || kernel.starts_with("k_"), "{kernel}");
        }
    }
}
