//! The results for a reader: a Markdown table per family, and charts.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};

use super::chart::{self, Axes, Bar, Series};
use super::job::{Measured, Throughput};
use super::pairs::Latency;
use super::runner::{Results, SituationResult};
use super::setup::{Actor, Chain, Link};
use super::situation_job::SituationPoint;
use super::situations::{FIRST, PAGE};
use super::source::{LINKS, link_name};
use super::statistics::median;

/// The R² below which a row is marked.
const STRAIGHT: f64 = 0.99;
/// How far Rust may be from C++ before a row is marked.
const EQUAL: [f64; 2] = [0.98, 1.02];
/// How far two runs may be apart before a row is marked.
const SAME: f64 = 0.03;
/// How far costs may be apart that share a bar.
const SAME_BAR: f64 = 0.03;

impl Results {
    /// Writes the tables, the page in words, and the charts.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn report(&self, tables: &Path, charts: &Path) -> Result<()> {
        std::fs::create_dir_all(charts)
            .with_context(|| format!("cannot create {}", charts.display()))?;
        std::fs::write(tables, self.tables())
            .with_context(|| format!("cannot write {}", tables.display()))?;
        self.write_costs()?;
        self.charts(charts)
    }

    /// Everything as Markdown.
    #[must_use]
    pub fn tables(&self) -> String {
        let mut out = self.head();
        for (family, forms) in self.by_family() {
            let _ = write!(out, "\n## {family}\n\n{}", self.family(&forms));
        }
        out += "\n## Situations\n\nCycles of an operation, Rust and C++; with the lines of a chart below each other.\n";
        for situation in &self.situations {
            out += &table_of(situation);
        }
        out += &self.published_table();
        out += &self.untimed_table();
        out
    }

    fn head(&self) -> String {
        let clocks: Vec<f64> = self.clock_mhz.iter().flatten().copied().collect();
        let least = clocks.iter().copied().fold(f64::MAX, f64::min);
        let most = clocks.iter().copied().fold(0.0, f64::max);
        let timed = self.timed.len();
        let mut out = format!(
            "# Instruction costs: {}\n\n\
             `cargo xtask bench-report` makes this page from the JSON beside it. Driver for CUDA {}; multiprocessor \
             clock {least:.0} to {most:.0} MHz as found, median {:.0} MHz.\n\n\
             {timed} of {} forms timed, {} listed at the end with the reason; the other {} of `cuda::ptx` are for other \
             architectures. Rust over C++ outside {} to {}: {} forms; a line with R² below {STRAIGHT}: {}; read once, so \
             that the figure is not the instruction's: {}; the same machine instructions in both languages: {}.\n\n",
            self.gpu,
            self.driver,
            self.clock(),
            self.forms,
            self.untimed.len(),
            self.elsewhere,
            EQUAL[0],
            EQUAL[1],
            self.unequal(),
            self.crooked(),
            self.collapsed(),
            self.alike(),
        );
        if let Some(agreement) = self.repeated() {
            let _ = write!(out, "{agreement}\n\n");
        }
        out += &self.statistics_in_words();
        out += "`cycles` is the slope of chains of 64, 128, 192 and 256 steps, in Rust and in C++. What makes a step \
                wait for the one before, and what is in a step besides the instruction:\n\n\
                | chain | a step |\n|---|---|\n\
                | value | takes the result of the one before as its operand |\n\
                | link | takes it through one to three integer instructions, whose own slope is subtracted |\n\
                | order | follows in program order: the interval at which one thread (or warp) issues it |\n\
                | completion | waits until its operation is complete |\n\
                | exchange | is half a round trip between two CTAs of a cluster |\n\n";
        out += "`one SM` and `chip` are the highest rates in operations per cycle and multiprocessor over 1 to 64 warps, \
                with the number of warps that reach it; operations are of threads, or of one lane per warp. Copies move \
                1 KiB, and their rates are bytes per cycle.\n";
        for link in LINKS {
            let _ = writeln!(
                out,
                "\nThe slope of the link `{}` alone: {:.1} cycles.",
                link_name(link),
                self.link(link)
            );
        }
        out
    }

    fn statistics_in_words(&self) -> String {
        let pairs_of = |places: bool| {
            let form = self.timed.iter().find(|m| m.form.places == places);
            form.and_then(|m| m.latency.cycles.first()).map(Vec::len)
        };
        let mut words = String::new();
        if let Some(pairs) = pairs_of(false) {
            let _ = write!(
                words,
                "A cost is the median of {pairs} pairs of launches, Rust and C++ in turn."
            );
        }
        if let Some(pairs) = pairs_of(true) {
            let forms = self.timed.iter().filter(|m| m.form.places).count();
            let _ = write!(
                words,
                " What {forms} forms cost depends on the slice of the L2 cache that their bytes are in: each pair has \
                 another place in global memory, and the cost is the mean of the middle 80 % of {pairs} places. So it is \
                 for loads from memory. `statistic` in the JSON says which it is.",
            );
        }
        words + "\n\n"
    }

    /// Whether the second run of the same command found what the first did; nothing if there was none.
    #[must_use]
    pub fn repeated(&self) -> Option<Agreement> {
        let forms = self.timed.iter().filter(|m| !m.form.collapsed);
        let forms = forms
            .filter_map(|m| Some((form_name(m), m.latency.slopes(), m.again.as_ref()?.slopes())));
        let points = self.points();
        let points = points.filter_map(|(name, p)| Some((name, p.operation, p.again?)));
        Agreement::of(forms, points)
    }

    /// How the medians compare with those of another run, which had its own machine, clock and time.
    #[must_use]
    pub fn against(&self, other: &Self) -> Option<Agreement> {
        let latencies: HashMap<_, _> = other
            .timed
            .iter()
            .map(|m| (form_name(m), m.latency.slopes()))
            .collect();
        let forms = self.timed.iter().filter(|m| !m.form.collapsed);
        let forms = forms.filter_map(|m| {
            let name = form_name(m);
            let other = latencies.get(&name)?;
            Some((name, m.latency.slopes(), *other))
        });
        let operations: HashMap<_, _> = other.points().map(|(n, p)| (n, p.operation)).collect();
        let points = self.points().filter_map(|(name, p)| {
            let other = operations.get(&name)?;
            Some((name, p.operation, *other))
        });
        Agreement::of(forms, points)
    }

    /// The points of all situations, with names.
    fn points(&self) -> impl Iterator<Item = (String, &SituationPoint)> {
        self.situations.iter().flat_map(|situation| {
            let name = |p: &SituationPoint| {
                format!(
                    "`{}` at {}, line {}",
                    situation.kernel, p.point.at, p.point.line
                )
            };
            situation.points.iter().map(move |p| (name(p), p))
        })
    }

    fn by_family(&self) -> BTreeMap<&str, Vec<&Measured>> {
        let mut families: BTreeMap<&str, Vec<&Measured>> = BTreeMap::new();
        for measured in &self.timed {
            families
                .entry(&measured.form.family)
                .or_default()
                .push(measured);
        }
        families
    }

    /// The slope of a link alone.
    fn link(&self, link: Link) -> f64 {
        let found = self.links.iter().find(|m| m.form.kernel == link_name(link));
        let slope = found.map_or(0.0, |m| m.latency.fit[1].slope);
        if link == Link::Register {
            slope / 2.0
        } else {
            slope
        }
    }

    /// Cycles of the instruction in Rust and C++, without what links the steps.
    fn cycles(&self, measured: &Measured) -> [f64; 2] {
        let slope = measured.latency.fit.map(|line| line.slope);
        match measured.form.chain {
            Chain::Link(link) => slope.map(|s| (s - self.link(link)).max(0.0)),
            Chain::Exchange => slope.map(|s| s / 2.0),
            _ => slope,
        }
    }

    fn family(&self, forms: &[&Measured]) -> String {
        let mut out = "| instruction | chain | cycles Rust | cycles C++ | R² | Rust/C++ | one SM | chip | remarks |\n\
                       |---|---|--:|--:|--:|--:|--:|--:|---|\n"
            .to_owned();
        for measured in forms {
            let [rust, cpp] = self.cycles(measured);
            let latency = &measured.latency;
            let [low, high] = latency.ratio_interval;
            let _ = writeln!(
                out,
                "| `{}` | {} | {rust:.1} | {cpp:.1} | {:.4} | {:.3} ({low:.3} to {high:.3}) | {} | {} | {} |",
                measured.form.form.replace('|', "\\|"),
                chain_name(measured.form.chain),
                latency.fit[0].r2.min(latency.fit[1].r2),
                latency.ratio,
                peak_cell(measured, false),
                peak_cell(measured, true),
                remarks(measured),
            );
        }
        out
    }

    fn published_table(&self) -> String {
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

    /// The cycles of a form in Rust and C++, by the name of its kernel.
    pub(super) fn cycles_of_form(&self, kernel: &str) -> Option<[f64; 2]> {
        let found = self.timed.iter().find(|m| m.form.kernel == kernel)?;
        Some(self.cycles(found))
    }

    /// The cycles of all forms of a family, in both languages.
    pub(super) fn cycles_of_family(&self, family: &str) -> impl Iterator<Item = f64> {
        let forms = self.timed.iter().filter(move |m| m.form.family == family);
        forms.flat_map(|measured| self.cycles(measured))
    }

    /// The cycles of an operation at a point of a situation, in Rust and C++.
    pub(super) fn cycles_at(&self, kernel: &str, line: u32, at: u32) -> Option<[f64; 2]> {
        let situation = self.situations.iter().find(|s| s.kernel == kernel)?;
        let mut points = situation.points.iter();
        let same = |p: &&SituationPoint| (p.point.line, p.point.at) == (line, at);
        points.find(same).map(|point| point.operation)
    }

    /// Bytes or operations of a form per cycle and multiprocessor, all of them busy.
    pub(super) fn peak_of_chip(&self, kernel: &str) -> Option<f64> {
        let found = self.timed.iter().find(|m| m.form.kernel == kernel)?;
        peak(found, true).map(|(rate, _)| rate)
    }

    /// The median clock of the multiprocessors, in MHz.
    pub(super) fn clock(&self) -> f64 {
        median(&Vec::from_iter(self.clock_mhz.iter().flatten().copied()))
    }

    /// Forms that do not cost in Rust what they cost in C++.
    pub(super) fn unequal(&self) -> usize {
        self.timed.iter().filter(|m| unequal(m)).count()
    }

    /// Forms whose loop holds the same machine instructions in both languages.
    pub(super) fn alike(&self) -> usize {
        let alike = |m: &&Measured| ["identical", "equivalent"].contains(&m.form.sass.as_str());
        self.timed.iter().filter(alike).count()
    }

    /// Forms whose points are not on a line.
    pub(super) fn crooked(&self) -> usize {
        self.timed.iter().filter(|m| crooked(m)).count()
    }

    /// Forms of which the assembler kept fewer than it was given.
    pub(super) fn collapsed(&self) -> usize {
        self.timed.iter().filter(|m| m.form.collapsed).count()
    }

    fn untimed_table(&self) -> String {
        let mut reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for form in &self.untimed {
            reasons
                .entry((&form.family, &form.reason))
                .or_default()
                .push(&form.form);
        }
        let mut out = "\n## Not timed\n\n| family | forms | reason | the first of them |\n|---|--:|---|---|\n".to_owned();
        for ((family, reason), forms) in reasons {
            let _ = writeln!(
                out,
                "| {family} | {} | {reason} | `{}` |",
                forms.len(),
                forms[0]
            );
        }
        out
    }

    fn charts(&self, folder: &Path) -> Result<()> {
        for (name, title, families) in [
            (
                "latency-barriers",
                "mbarrier and cluster barrier",
                &["mbarrier", "barrier_cluster"][..],
            ),
            ("latency-fences", "Fences, nothing in flight", &["fence"]),
            (
                "latency-registers",
                "Bits, warps, special registers",
                &["bits", "warp", "cluster", "control", "sreg"],
            ),
            (
                "latency-memory",
                "Loads, stores, prefetches, matrices",
                &["ld_st", "matrix", "prefetch", "tensormap"],
            ),
            (
                "latency-copies",
                "Copies and reductions of 1 KiB, asynchronous stores",
                &[
                    "cp_async_bulk",
                    "cp_async_bulk_tensor",
                    "cp_reduce_async_bulk",
                    "async_store",
                ],
            ),
        ] {
            let forms = self
                .timed
                .iter()
                .filter(|m| families.contains(&m.form.family.as_str()));
            let bars = self.bars(forms);
            if !bars.is_empty() {
                let path = folder.join(name).with_extension("svg");
                chart::bars(&path, title, "cycles of a step", &bars)?;
            }
        }
        for chart in LINE_CHARTS {
            let series = self.series(chart);
            if series.iter().all(|line| line.points.is_empty()) {
                continue;
            }
            chart::lines(
                &folder.join(chart.name).with_extension("svg"),
                chart.axes,
                &series,
            )?;
        }
        Ok(())
    }

    /// One bar for forms that begin alike and cost the same, the cheapest first.
    fn bars<'a>(&self, forms: impl Iterator<Item = &'a Measured>) -> Vec<Bar> {
        let mut groups: Vec<Vec<&Measured>> = Vec::new();
        for form in forms.filter(|m| !m.form.collapsed) {
            match groups
                .iter_mut()
                .find(|group| self.share_bar(group[0], form))
            {
                Some(group) => group.push(form),
                None => groups.push(vec![form]),
            }
        }
        let mut bars = Vec::from_iter(groups.iter().map(|group| self.bar(group)));
        bars.sort_by(|a, b| a.1[0].total_cmp(&b.1[0]));
        bars
    }

    fn share_bar(&self, a: &Measured, b: &Measured) -> bool {
        let [(first, operand), (second, other)] = [a, b].map(name_in_chart);
        let (x, y) = (self.cycles(a), self.cycles(b));
        let close = |side: usize| (x[side] / y[side] - 1.0).abs() < SAME_BAR;
        stem(&first) == stem(&second) && operand == other && close(0) && close(1)
    }

    fn bar(&self, group: &[&Measured]) -> Bar {
        let cycles = Vec::from_iter(group.iter().map(|form| self.cycles(form)));
        let side = |side: usize| median(&Vec::from_iter(cycles.iter().map(|c| c[side])));
        let names = Vec::from_iter(group.iter().map(|form| name_in_chart(form)));
        let opcodes = Vec::from_iter(names.iter().map(|(opcode, _)| opcode.as_str()));
        let forms = match group.len() {
            1 => String::new(),
            count => format!(" ({count} forms)"),
        };
        (
            in_common(&opcodes) + names[0].1 + &forms,
            [side(0), side(1)],
        )
    }

    fn series(&self, chart: &LineChart) -> Vec<Series> {
        let mut series = Vec::new();
        for (kernel, name) in chart.kernels {
            let (kernel, only) = match kernel.split_once(' ') {
                Some((kernel, line)) => (kernel, Some(line)),
                None => (*kernel, None),
            };
            let Some(situation) = self.situations.iter().find(|s| s.kernel == kernel) else {
                continue;
            };
            let mut lines: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
            for point in &situation.points {
                let at = f64::from(point.point.at);
                let value = (chart.value)(at, point.operation[0]);
                lines.entry(point.point.line).or_default().push((at, value));
            }
            lines.retain(|line, _| only.is_none_or(|only| only == line.to_string()));
            for (line, points) in lines {
                series.push(Series {
                    name: name.replace("{}", &line.to_string()),
                    points,
                });
            }
        }
        series
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

/// A chart of situations. The figures are Rust's.
struct LineChart {
    name: &'static str,
    axes: Axes<'static>,
    /// Situations, with a line if only that is drawn, and names of their lines; `{}` is the line.
    kernels: &'static [(&'static str, &'static str)],
    /// From place and cycles to what is drawn.
    value: fn(f64, f64) -> f64,
}

const fn cycles(_at: f64, cycles: f64) -> f64 {
    cycles
}

const LINE_CHARTS: &[LineChart] = &[
    LineChart {
        name: "contention",
        axes: Axes {
            title: "mbarrier.arrive at one barrier",
            x: "threads",
            y: "cycles until all have arrived",
            logarithmic: [true, true],
        },
        kernels: &[
            ("arrive_converged", "lanes together"),
            ("arrive_elected", "one lane of each warp"),
            ("arrive_diverged", "lane after lane"),
            ("phase_of_block", "all arrive and wait"),
            ("syncthreads", "__syncthreads()"),
        ],
        value: cycles,
    },
    LineChart {
        name: "bulk-load-latency",
        axes: Axes {
            title: "Bulk load of one CTA from the L2 cache",
            x: "bytes of a load",
            y: "cycles of a load",
            logarithmic: [true, true],
        },
        kernels: &[("bulk_load", "{} in flight")],
        value: cycles,
    },
    LineChart {
        name: "bulk-load-memory",
        axes: Axes {
            title: "Bulk load and wait of one CTA, by where the bytes are",
            x: "bytes of a load",
            y: "cycles",
            logarithmic: [true, false],
        },
        kernels: &[
            ("bulk_load_apart 2048", "memory, each load in another page"),
            ("bulk_load_apart 0", "memory, one load next to the other"),
            ("bulk_load 1", "L2 cache"),
        ],
        value: cycles,
    },
    LineChart {
        name: "bulk-load-throughput",
        axes: Axes {
            title: "Bulk load of one CTA from the L2 cache",
            x: "bytes of a load",
            y: "bytes per cycle",
            logarithmic: [true, false],
        },
        kernels: &[("bulk_load", "{} in flight")],
        value: |bytes, cycles| bytes / cycles,
    },
    LineChart {
        name: "chip-throughput",
        axes: Axes {
            title: "Bulk copies by all multiprocessors at once, 4 in flight on each",
            x: "bytes of a copy",
            y: "bytes per cycle and multiprocessor",
            logarithmic: [true, false],
        },
        kernels: &[
            ("chip_load", "load"),
            ("chip_store", "store"),
            ("chip_add", "reduction, add u32"),
        ],
        value: |bytes, cycles| bytes / cycles,
    },
    LineChart {
        name: "bulk-store",
        axes: Axes {
            title: "Bulk copies of one CTA by direction, one at a time",
            x: "bytes",
            y: "cycles",
            logarithmic: [true, true],
        },
        kernels: &[
            ("bulk_load 1", "load"),
            ("bulk_store", "store, until written"),
            ("bulk_store_read", "store, until read"),
            ("bulk_add", "add u32, until written"),
        ],
        value: cycles,
    },
    LineChart {
        name: "multicast",
        axes: Axes {
            title: "The same bytes to each CTA of a cluster, and a cluster barrier",
            x: "bytes",
            y: "cycles",
            logarithmic: [true, false],
        },
        kernels: &[
            ("load_multicast 2", "multicast to {}"),
            ("load_multicast 8", "multicast to {}"),
            ("load_separate 2", "{} loads"),
            ("load_separate 8", "{} loads"),
        ],
        value: cycles,
    },
    LineChart {
        name: "distance",
        axes: Axes {
            title: "Between CTA 0 and another of a cluster of 16",
            x: "rank of the other CTA",
            y: "cycles",
            logarithmic: [false, false],
        },
        kernels: &[
            ("remote_arrive 16", "round trip of arrivals, release"),
            (
                "remote_arrive_relaxed 16",
                "round trip of arrivals, relaxed",
            ),
            ("remote_read 16", "read"),
        ],
        value: cycles,
    },
    LineChart {
        name: "fences",
        axes: Axes {
            title: "Stores, then a fence; 4 warps",
            x: "stores of each thread before the fence",
            y: "cycles",
            logarithmic: [false, true],
        },
        kernels: &[
            ("global_acq_rel_sys", "global, fence.acq_rel.sys"),
            ("global_acq_rel_gpu", "global, fence.acq_rel.gpu"),
            (
                "global_proxy_async_global",
                "global, fence.proxy.async.global",
            ),
            ("global_acq_rel_cta", "global, fence.acq_rel.cta"),
            ("global_stores", "global, no fence"),
            ("shared_proxy_async", "shared, fence.proxy.async"),
            (
                "shared_proxy_async_shared",
                "shared, fence.proxy.async.shared::cta",
            ),
        ],
        value: cycles,
    },
];

/// Three significant digits or all of the integer part.
pub(super) fn figure(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// How the medians of two runs compare.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    forms: Share,
    points: Share,
}

/// A name with the cycles in Rust and C++ that two runs found.
type Twice = (String, [f64; 2], [f64; 2]);

/// The cycles of one kind, Rust's and C++'s, and those that are further apart than [`SAME`].
#[derive(Clone, Debug, PartialEq)]
struct Share {
    all: usize,
    apart: Vec<String>,
}

impl Agreement {
    /// Of names with the first and the second run; nothing of nothing.
    fn of(forms: impl Iterator<Item = Twice>, points: impl Iterator<Item = Twice>) -> Option<Self> {
        let agreement = Self {
            forms: Share::of(forms),
            points: Share::of(points),
        };
        (agreement.forms.all + agreement.points.all > 0).then_some(agreement)
    }
}

impl Share {
    fn of(pairs: impl Iterator<Item = Twice>) -> Self {
        let mut share = Self {
            all: 0,
            apart: Vec::new(),
        };
        for (name, first, second) in pairs {
            for (side, language) in ["Rust", "C++"].into_iter().enumerate() {
                share.all += 1;
                let (a, b) = (first[side], second[side]);
                if apart(a, b) {
                    share
                        .apart
                        .push(format!("{name} ({language}: {a:.1}, then {b:.1})"));
                }
            }
        }
        share
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { forms, points } = self;
        let within = |share: &Share| share.all - share.apart.len();
        write!(
            f,
            "A second run: {} of {} costs of forms and {} of {} of situations are within {:.0} %.",
            within(forms),
            forms.all,
            within(points),
            points.all,
            100.0 * SAME
        )?;
        let apart = Vec::from_iter(forms.apart.iter().chain(&points.apart).map(String::as_str));
        if apart.is_empty() {
            return Ok(());
        }
        write!(f, " The others: {}.", apart.join("; "))
    }
}

fn apart(a: f64, b: f64) -> bool {
    (b / a - 1.0).abs() > SAME
}

/// The kernel: two forms may share the instruction.
fn form_name(measured: &Measured) -> String {
    format!("`{}`", measured.form.kernel)
}

/// Whether the second run found another cost.
fn unsteady(first: [f64; 2], second: Option<[f64; 2]>) -> bool {
    second.is_some_and(|second| (0..2).any(|side| apart(first[side], second[side])))
}

fn unequal(measured: &Measured) -> bool {
    !measured.form.collapsed && !is_equal(measured.latency.ratio)
}

fn crooked(measured: &Measured) -> bool {
    !measured.form.collapsed && measured.latency.fit.iter().any(|line| line.r2 < STRAIGHT)
}

/// The opcode, and the operand that changes its cost.
fn name_in_chart(measured: &Measured) -> (String, &'static str) {
    let form = &measured.form.form;
    let (opcode, operands) = form.split_once(' ').unwrap_or((form, ""));
    match operands.split_once('%') {
        Some((_, register)) => (format!("%{register}"), ""),
        None if operands.contains("suspend_time_hint") => (opcode.to_owned(), " with a hint"),
        None if operands.ends_with(", count") => (opcode.to_owned(), " with a count"),
        None => (opcode.to_owned(), ""),
    }
}

/// What an opcode begins with: forms of another stem have a bar of their own.
fn stem(opcode: &str) -> String {
    const MORE: [&str; 7] = [
        "async", "bulk", "reduce", "tensor", "prefetch", "proxy", "cluster",
    ];
    let is_type = |part: &str| part.len() < 4 && part.ends_with(|c: char| c.is_ascii_digit());
    let parts = opcode.split('.').enumerate();
    let stem = parts.take_while(|(index, part)| {
        *index == 0 || *index == 1 && !is_type(part) || MORE.contains(part)
    });
    Vec::from_iter(stem.map(|(_, part)| part)).join(".")
}

/// The parts that all opcodes have, with a star for those that only some have.
fn in_common(opcodes: &[&str]) -> String {
    let count = |opcode: &&&str| opcode.split('.').count();
    let longest = opcodes
        .iter()
        .max_by_key(count)
        .copied()
        .unwrap_or_default();
    let in_all = |part: &str| opcodes.iter().all(|o| o.split('.').any(|p| p == part));
    let parts = longest
        .split('.')
        .map(|part| if in_all(part) { part } else { "*" });
    let mut parts = Vec::from_iter(parts);
    parts.dedup_by(|a, b| *a == "*" && *b == "*");
    parts.join(".")
}

fn chain_name(chain: Chain) -> &'static str {
    match chain {
        Chain::Value => "value",
        Chain::Link(_) => "link",
        Chain::Order => "order",
        Chain::Completion => "completion",
        Chain::Exchange => "exchange",
    }
}

/// The highest rate per multiprocessor: with one busy, or with all.
/// The highest rate per multiprocessor, with one busy or with all, and the warps that reach it.
fn peak(measured: &Measured, chip: bool) -> Option<(f64, u32)> {
    let bytes = f64::from(measured.form.bytes.max(1));
    let all = |t: &&Throughput| (t.multiprocessors > 2) == chip;
    let rate = |t: &Throughput| t.rate[0] * bytes / f64::from(t.multiprocessors);
    let rates = measured.throughput.iter().filter(all);
    let rates = rates.map(|t| (rate(t), t.warps));
    rates.max_by(|a, b| a.0.total_cmp(&b.0))
}

fn peak_cell(measured: &Measured, chip: bool) -> String {
    peak(measured, chip).map_or(String::new(), |(rate, warps)| {
        format!("{rate:.3} at {warps}")
    })
}

fn remarks(measured: &Measured) -> String {
    let form = &measured.form;
    let mut remarks = Vec::new();
    if !form.with.is_empty() {
        remarks.push(format!("step holds {}", form.with));
    }
    if form.actor == Actor::Lane {
        remarks.push("one lane".to_owned());
    }
    if form.collapsed {
        remarks.push("read once or merged by the compiler: not the instruction's cost".to_owned());
    }
    if crooked(measured) {
        remarks.push("**R² low**".to_owned());
    }
    if !form.collapsed
        && unsteady(
            measured.latency.slopes(),
            measured.again.as_ref().map(Latency::slopes),
        )
    {
        remarks.push("**unsteady**".to_owned());
    }
    if unequal(measured) {
        let [rust, cpp] = form.instructions;
        remarks.push(format!(
            "**unequal**; loop: {}, {rust} and {cpp} instructions",
            form.sass
        ));
    }
    remarks.join("; ")
}

fn point_remarks(point: &SituationPoint) -> String {
    let [rust, cpp] = point.steps.fit;
    let marks = [
        (rust.r2.min(cpp.r2) < STRAIGHT, "**R² low**"),
        (!is_equal(point.steps.ratio), "**unequal**"),
        (unsteady(point.operation, point.again), "**unsteady**"),
    ];
    let marks = marks.iter().filter(|(holds, _)| *holds);
    Vec::from_iter(marks.map(|(_, mark)| *mark)).join("; ")
}

fn is_equal(ratio: f64) -> bool {
    (EQUAL[0]..=EQUAL[1]).contains(&ratio)
}

fn table_of(situation: &SituationResult) -> String {
    let mut out = format!("\n### {} (`{}`)\n\n", situation.title, situation.kernel);
    if let Some(failure) = &situation.failure {
        let _ = writeln!(out, "Not timed: {failure}");
        return out;
    }
    let _ = writeln!(
        out,
        "| line | {} | Rust | C++ | R² | Rust/C++ | |\n|--:|--:|--:|--:|--:|--:|---|",
        situation.axis
    );
    for point in &situation.points {
        let [low, high] = point.steps.ratio_interval;
        let _ = writeln!(
            out,
            "| {} | {} | {:.1} | {:.1} | {:.4} | {:.3} ({low:.3} to {high:.3}) | {} |",
            point.point.line,
            point.point.at,
            point.operation[0],
            point.operation[1],
            point.steps.fit[0].r2.min(point.steps.fit[1].r2),
            point.steps.ratio,
            point_remarks(point),
        );
    }
    out
}

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

    #[test]
    fn costs_more_than_three_percent_apart_are_named() {
        let pairs = [
            ("near".to_owned(), [100.0, 50.0], [102.9, 50.0]),
            ("off".to_owned(), [100.0, 50.0], [103.1, 50.0]),
        ];
        let agreement = Agreement::of(pairs.into_iter(), std::iter::empty()).unwrap();
        assert_eq!(
            agreement.to_string(),
            "A second run: 3 of 4 costs of forms and 0 of 0 of situations are within 3 %. \
             The others: off (Rust: 100.0, then 103.1)."
        );
        assert!(Agreement::of(std::iter::empty(), std::iter::empty()).is_none());
    }

    #[test]
    fn a_bar_is_named_by_what_its_opcodes_have_in_common() {
        let names = ["ld.global.b32", "ld.global.nc.L1::evict_last.b32"];
        assert_eq!(in_common(&names), "ld.global.*.b32");
        assert_eq!(in_common(&names[..1]), "ld.global.b32");
    }

    #[test]
    fn a_stem_is_the_instruction_without_modifiers_and_type() {
        for (opcode, expected) in [
            (
                "mbarrier.arrive.release.cta.shared::cta.b64",
                "mbarrier.arrive",
            ),
            ("bfind.u32", "bfind"),
            (
                "cp.reduce.async.bulk.tensor.1d.global",
                "cp.reduce.async.bulk.tensor",
            ),
        ] {
            assert_eq!(stem(opcode), expected);
        }
    }

    #[test]
    fn the_committed_results_make_the_committed_tables() {
        let folder = crate::toolchain::workspace_root().join("benches/results");
        let results = Results::read(&folder.join("h200-instructions.json")).unwrap();
        let tables = std::fs::read_to_string(folder.join("h200-instructions.md")).unwrap();
        assert!(results.tables() == tables, "run `cargo xtask bench-report`");
        let page = crate::toolchain::workspace_root().join("docs/instruction-costs.md");
        let page = std::fs::read_to_string(page).unwrap();
        assert!(
            results.costs().unwrap() == page,
            "run `cargo xtask bench-report`"
        );
        assert_eq!(results.timed.len() + results.untimed.len(), 976);
        assert_eq!(results.forms, 976);
        assert_eq!(results.forms + results.elsewhere, 2792);
    }
}
