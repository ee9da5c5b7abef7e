//! The results for a reader: a Markdown table per family, and charts.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};

use super::chart::{self, Axes, Bar, Series};
use super::job::{Latency, Measured, SituationPoint, Throughput};
use super::runner::{Results, SituationResult};
use super::setup::{Actor, Chain, Link};
use super::source::{LINKS, link_name};
use super::statistics::median;

/// The R² below which a row is marked.
const STRAIGHT: f64 = 0.99;
/// How far Rust may be from C++ before a row is marked.
const EQUAL: [f64; 2] = [0.98, 1.02];
/// How far two runs may be apart before a row is marked.
const SAME: f64 = 0.03;

impl Results {
    /// Writes the tables and the charts.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn report(&self, tables: &Path, charts: &Path) -> Result<()> {
        std::fs::create_dir_all(charts)
            .with_context(|| format!("cannot create {}", charts.display()))?;
        std::fs::write(tables, self.tables())
            .with_context(|| format!("cannot write {}", tables.display()))?;
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
        let marked = |mark: fn(&Measured) -> bool| self.timed.iter().filter(|m| mark(m)).count();
        let mut out = format!(
            "# Instruction costs: {}\n\n\
             `cargo xtask bench-report` makes this page from the JSON beside it. Driver for CUDA {}; multiprocessor \
             clock {least:.0} to {most:.0} MHz as found, median {:.0} MHz.\n\n\
             {timed} of {} forms timed, {} listed at the end with the reason; the other {} of `cuda::ptx` are for other \
             architectures. Rust over C++ outside {} to {}: {} forms; a line with R² below {STRAIGHT}: {}; read once, so \
             that the figure is not the instruction's: {}.\n\n",
            self.gpu,
            self.driver,
            median(&clocks),
            self.forms,
            self.untimed.len(),
            self.elsewhere,
            EQUAL[0],
            EQUAL[1],
            marked(unequal),
            marked(crooked),
            marked(|m| m.form.collapsed),
        );
        if let Some(agreement) = self.repeated() {
            let _ = write!(out, "{agreement}\n\n");
        }
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

    /// Whether the second run of the same command found what the first did; nothing if there was none.
    #[must_use]
    pub fn repeated(&self) -> Option<Agreement> {
        let forms = self.timed.iter().filter(|m| !m.form.collapsed);
        let forms = forms.filter_map(|m| Some((form_name(m), &m.latency, m.again.as_ref()?)));
        let points = self.points();
        let points = points.filter_map(|(name, p)| Some((name, &p.steps, p.again.as_ref()?)));
        Agreement::of(forms, points)
    }

    /// How the medians compare with those of another run, which had its own machine, clock and time.
    #[must_use]
    pub fn against(&self, other: &Self) -> Option<Agreement> {
        let latencies: HashMap<_, _> = other
            .timed
            .iter()
            .map(|m| (form_name(m), &m.latency))
            .collect();
        let forms = self.timed.iter().filter(|m| !m.form.collapsed);
        let forms = forms.filter_map(|m| {
            let name = form_name(m);
            let other = latencies.get(&name)?;
            Some((name, &m.latency, *other))
        });
        let steps: HashMap<_, _> = other.points().map(|(name, p)| (name, &p.steps)).collect();
        let points = self.points().filter_map(|(name, p)| {
            let other = steps.get(&name)?;
            Some((name, &p.steps, *other))
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
                peak(measured, false),
                peak(measured, true),
                remarks(measured),
            );
        }
        out
    }

    fn published_table(&self) -> String {
        let mut out = "\n## Published figures for the same GPU\n\n\
                       | what | published, cycles | here, Rust | here, C++ | difference |\n|---|--:|--:|--:|--:|\n"
            .to_owned();
        for figure in PUBLISHED {
            let Some(cycles) = self.same_as(figure) else {
                let _ = writeln!(
                    out,
                    "| {} | {} | not timed | | |",
                    figure.what, figure.cycles
                );
                continue;
            };
            let [rust, cpp] = cycles.map(|cycles| cycles / figure.parts);
            let difference = 100.0 * (rust / figure.cycles - 1.0);
            let _ = writeln!(
                out,
                "| {} | {} | {rust:.0} | {cpp:.0} | {difference:+.0} % |",
                figure.what, figure.cycles
            );
        }
        out
    }

    /// The cycles of the form or of the point of a situation that a published figure is about.
    fn same_as(&self, figure: &Published) -> Option<[f64; 2]> {
        if let Some(form) = self.timed.iter().find(|m| m.form.kernel == figure.kernel) {
            return Some(self.cycles(form));
        }
        let situation = self.situations.iter().find(|s| s.kernel == figure.kernel)?;
        let mut points = situation.points.iter();
        let same = |p: &&SituationPoint| (p.point.line, p.point.at) == (figure.line, figure.at);
        points.find(same).map(|point| point.operation)
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

    /// One bar for each function, chain and set of forms that cost the same to a tenth.
    fn bars<'a>(&self, forms: impl Iterator<Item = &'a Measured>) -> Vec<Bar> {
        let mut groups: BTreeMap<String, Vec<[f64; 2]>> = BTreeMap::new();
        for measured in forms.filter(|m| !m.form.collapsed) {
            groups
                .entry(group(measured))
                .or_default()
                .push(self.cycles(measured));
        }
        let mut bars: Vec<Bar> = groups
            .into_iter()
            .map(|(label, cycles)| {
                let side =
                    |side: usize| median(&cycles.iter().map(|c| c[side]).collect::<Vec<_>>());
                let forms = match cycles.len() {
                    1 => String::new(),
                    count => format!(" ({count} forms)"),
                };
                (label + &forms, [side(0), side(1)])
            })
            .collect();
        bars.sort_by(|a, b| a.1[0].total_cmp(&b.1[0]));
        bars
    }

    fn series(&self, chart: &LineChart) -> Vec<Series> {
        let mut series = Vec::new();
        for (kernel, name) in chart.kernels {
            let Some(situation) = self.situations.iter().find(|s| s.kernel == *kernel) else {
                continue;
            };
            let mut lines: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
            for point in &situation.points {
                let at = f64::from(point.point.at);
                let value = (chart.value)(at, point.operation[0]);
                lines.entry(point.point.line).or_default().push((at, value));
            }
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

/// A figure that others have published for an H200, and the form or the point of a situation that is the same.
struct Published {
    what: &'static str,
    cycles: f64,
    kernel: &'static str,
    line: u32,
    at: u32,
    /// How many of it an operation of the situation holds.
    parts: f64,
}

const fn published(
    what: &'static str,
    cycles: f64,
    kernel: &'static str,
    (line, at): (u32, u32),
    parts: f64,
) -> Published {
    Published {
        what,
        cycles,
        kernel,
        line,
        at,
        parts,
    }
}

const PUBLISHED: &[Published] = &[
    published(
        "`mbarrier.arrive` at the own barrier",
        6.0,
        "arrive_converged",
        (0, 1),
        1.0,
    ),
    published(
        "`mbarrier.try_wait.parity` that succeeds",
        43.0,
        "k_mbarrier_try_wait_parity",
        (0, 1),
        1.0,
    ),
    published(
        "`mbarrier.arrive.expect_tx` of 0 and wait",
        71.0,
        "expect_wait",
        (0, 1),
        1.0,
    ),
    published(
        "bulk load and wait, 256 B",
        1351.0,
        "bulk_load",
        (1, 256),
        1.0,
    ),
    published(
        "bulk load and wait, 1 KiB",
        1346.0,
        "bulk_load",
        (1, 1024),
        1.0,
    ),
    published(
        "bulk load and wait, 4 KiB",
        1649.0,
        "bulk_load",
        (1, 4096),
        1.0,
    ),
    published(
        "bulk load and wait, 16 KiB",
        1887.0,
        "bulk_load",
        (1, 16_384),
        1.0,
    ),
    published(
        "remote arrive until the owner's wait returns",
        212.0,
        "remote_arrive",
        (2, 1),
        2.0,
    ),
    published(
        "read of another CTA's shared memory",
        220.0,
        "remote_read",
        (2, 1),
        1.0,
    ),
    published(
        "16 `cp.async` of 16 bytes, issue",
        65.0,
        "cp_async",
        (0, 32),
        1.0,
    ),
];

/// A chart of situations. The figures are Rust's.
struct LineChart {
    name: &'static str,
    axes: Axes<'static>,
    /// Kernels and names of their lines.
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
            ("arrive_diverged", "lane after lane"),
            ("arrive_elected", "one lane of each warp"),
            ("phase_of_block", "all arrive and wait"),
            ("syncthreads", "__syncthreads()"),
        ],
        value: cycles,
    },
    LineChart {
        name: "bulk-load-latency",
        axes: Axes {
            title: "Bulk load of one CTA: cycles of a load",
            x: "bytes of a load",
            y: "cycles",
            logarithmic: [true, true],
        },
        kernels: &[("bulk_load", "{} in flight")],
        value: cycles,
    },
    LineChart {
        name: "bulk-load-throughput",
        axes: Axes {
            title: "Bulk load of one CTA: throughput",
            x: "bytes of a load",
            y: "bytes per cycle",
            logarithmic: [true, false],
        },
        kernels: &[("bulk_load", "{} in flight")],
        value: |bytes, cycles| bytes / cycles,
    },
    LineChart {
        name: "bulk-store",
        axes: Axes {
            title: "Bulk copies by direction",
            x: "bytes",
            y: "cycles",
            logarithmic: [true, true],
        },
        kernels: &[
            ("bulk_load", "load, {} in flight"),
            ("bulk_store", "store, until written"),
            ("bulk_store_read", "store, until read"),
            ("bulk_add", "add u32, until written"),
        ],
        value: cycles,
    },
    LineChart {
        name: "multicast",
        axes: Axes {
            title: "The same bytes to each CTA of a cluster",
            x: "bytes",
            y: "cycles",
            logarithmic: [true, true],
        },
        kernels: &[
            ("load_multicast", "multicast to {}"),
            ("load_separate", "{} loads"),
        ],
        value: cycles,
    },
    LineChart {
        name: "distance",
        axes: Axes {
            title: "Between two CTAs of a cluster",
            x: "rank of the other CTA",
            y: "cycles",
            logarithmic: [false, false],
        },
        kernels: &[
            ("remote_arrive", "round trip of arrivals, cluster of {}"),
            ("remote_read", "read, cluster of {}"),
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
            ("shared_proxy_async", "shared, fence.proxy.async"),
            (
                "global_proxy_async_global",
                "global, fence.proxy.async.global",
            ),
            ("global_acq_rel_cta", "global, fence.acq_rel.cta"),
            ("global_acq_rel_gpu", "global, fence.acq_rel.gpu"),
            ("global_acq_rel_sys", "global, fence.acq_rel.sys"),
            ("global_stores", "global, no fence"),
        ],
        value: cycles,
    },
];

/// How the medians of two runs compare.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    forms: Share,
    points: Share,
}

/// The slopes of one kind, Rust's and C++'s, and those that are further apart than [`SAME`].
#[derive(Clone, Debug, PartialEq)]
struct Share {
    all: usize,
    apart: Vec<String>,
}

impl Agreement {
    /// Of names with the first and the second run; nothing of nothing.
    fn of<'a>(
        forms: impl Iterator<Item = (String, &'a Latency, &'a Latency)>,
        points: impl Iterator<Item = (String, &'a Latency, &'a Latency)>,
    ) -> Option<Self> {
        let agreement = Self {
            forms: Share::of(forms),
            points: Share::of(points),
        };
        (agreement.forms.all + agreement.points.all > 0).then_some(agreement)
    }
}

impl Share {
    fn of<'a>(pairs: impl Iterator<Item = (String, &'a Latency, &'a Latency)>) -> Self {
        let mut share = Self {
            all: 0,
            apart: Vec::new(),
        };
        for (name, first, second) in pairs {
            for (side, language) in ["Rust", "C++"].into_iter().enumerate() {
                share.all += 1;
                let [a, b] = [first, second].map(|latency| latency.fit[side].slope);
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
            "A second run: {} of {} medians of forms and {} of {} of situations are within {:.0} %.",
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

/// The instruction, and its kernel: two forms may share the instruction.
fn form_name(measured: &Measured) -> String {
    format!("`{}` (`{}`)", measured.form.form, measured.form.kernel)
}

/// Whether the second run found another median.
fn unsteady(first: &Latency, second: Option<&Latency>) -> bool {
    second.is_some_and(|second| {
        let mut sides = first.fit.iter().zip(&second.fit);
        sides.any(|(a, b)| apart(a.slope, b.slope))
    })
}

fn unequal(measured: &Measured) -> bool {
    !measured.form.collapsed && !(EQUAL[0]..=EQUAL[1]).contains(&measured.latency.ratio)
}

fn crooked(measured: &Measured) -> bool {
    !measured.form.collapsed && measured.latency.fit.iter().any(|line| line.r2 < STRAIGHT)
}

/// The function, and what in its opcode changes its cost: order, scope and space.
fn group(measured: &Measured) -> String {
    let opcode = measured.form.form.split(' ').next().unwrap_or_default();
    let last = opcode.rsplit('.').next().unwrap_or_default();
    let digits = last.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let is_type = digits.len() < last.len() && digits.chars().all(|c| c.is_ascii_digit());
    match measured.form.family.as_str() {
        "ld_st" | "cp_reduce_async_bulk" | "async_store" if is_type => opcode
            .trim_end_matches(last)
            .trim_end_matches('.')
            .to_owned(),
        _ if measured.form.form.contains("suspend_time_hint") => format!("{opcode} with a hint"),
        _ if measured.form.form.ends_with(", count") => format!("{opcode} with a count"),
        _ => opcode.to_owned(),
    }
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
fn peak(measured: &Measured, chip: bool) -> String {
    let bytes = f64::from(measured.form.bytes.max(1));
    let all = |t: &&Throughput| (t.multiprocessors > 2) == chip;
    let rate = |t: &Throughput| t.rate[0] * bytes / f64::from(t.multiprocessors);
    let best = measured.throughput.iter().filter(all);
    let best = best.max_by(|a, b| rate(a).total_cmp(&rate(b)));
    best.map_or(String::new(), |t| format!("{:.3} at {}", rate(t), t.warps))
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
    if !form.collapsed && unsteady(&measured.latency, measured.again.as_ref()) {
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
            match unsteady(&point.steps, point.again.as_ref()) {
                true => "**unsteady**",
                false => "",
            },
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
        for figure in PUBLISHED {
            let situation = SITUATIONS.iter().find(|s| s.kernel == figure.kernel);
            let has_point = situation.is_some_and(|situation| {
                let mut points = situation.points().into_iter();
                points.any(|p| (p.line, p.at) == (figure.line, figure.at))
            });
            assert!(
                has_point || figure.kernel.starts_with("k_"),
                "{}",
                figure.what
            );
        }
    }

    #[test]
    fn the_committed_results_make_the_committed_tables() {
        let folder = crate::toolchain::workspace_root().join("benches/results");
        let results = Results::read(&folder.join("h200-instructions.json")).unwrap();
        let tables = std::fs::read_to_string(folder.join("h200-instructions.md")).unwrap();
        assert!(results.tables() == tables, "run `cargo xtask bench-report`");
        assert_eq!(results.timed.len() + results.untimed.len(), 976);
        assert_eq!(results.forms, 976);
        assert_eq!(results.forms + results.elsewhere, 2792);
    }
}
