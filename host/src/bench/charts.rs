//! Which charts there are, and what they show.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use super::chart::{self, Axes, Bar, Series};
use super::job::Measured;
use super::runner::Results;
use super::statistics::median;

/// How far costs may be apart that share a bar.
const SAME_BAR: f64 = 0.03;

/// Cycles of the longest `mma.sync` that a tensor core executes; ptxas writes calls for what takes more.
const MOST_OF_MMA: f64 = 90.0;

impl Results {
    /// Draws all that the results have something for.
    pub(super) fn charts(&self, folder: &Path) -> Result<()> {
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
                "latency-warp",
                "Warp collectives, barriers of a CTA, conversions",
                &[
                    "warp_collective",
                    "barrier_cta",
                    "convert",
                    "cache",
                    "pacing",
                ],
            ),
            (
                "latency-mma",
                "mma.sync by a tensor core: one after the other into one accumulator",
                &["mma"],
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
            let forms = self.timed.iter().filter(|m| {
                let called = m.form.family == "mma" && self.cycles(m)[0] > MOST_OF_MMA;
                families.contains(&m.form.family.as_str()) && !called
            });
            let bars = self.bars(forms);
            if !bars.is_empty() {
                let path = folder.join(name).with_extension("svg");
                chart::bars(&path, title, "cycles of a step", &bars)?;
            }
        }
        self.multiplications(folder)?;
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

    /// FLOP per cycle of `wgmma` by the number of columns.
    fn multiplications(&self, folder: &Path) -> Result<()> {
        let columns = [8, 16, 32, 64, 96, 128, 192, 256];
        let mut series = Vec::new();
        for (name, types, of, columns_of_register) in WGMMA {
            let points = columns.iter().filter_map(|n| {
                let registers = n / columns_of_register;
                let kernel = format!("k_wgmma_mma_async__{types}__{of}x{registers}__u64");
                Some((f64::from(*n), self.peak_of_chip(&kernel)?))
            });
            series.push(Series {
                name: (*name).to_owned(),
                points: points.collect(),
            });
        }
        if series.iter().any(|line| !line.points.is_empty()) {
            for (name, flop) in PEAKS {
                series.push(Series {
                    name: (*name).to_owned(),
                    points: vec![(8.0, *flop), (256.0, *flop)],
                });
            }
            series.retain(|line| !line.points.is_empty());
            let axes = Axes {
                title: "wgmma, A and B in shared memory, all multiprocessors",
                x: "columns (N)",
                y: "FLOP per cycle and multiprocessor",
                logarithmic: [true, true],
            };
            chart::lines(&folder.join("wgmma-throughput.svg"), axes, &series)?;
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

/// Lines of the chart of `wgmma`: a name, the types of A and B, that of D, and how many columns a register of D is of.
const WGMMA: &[(&str, &str, &str, u32)] = &[
    ("s8, D s32", "s8__s8", "i32", 2),
    ("e4m3, D f32", "e4m3__e4m3", "f32", 2),
    ("bf16, D f32", "bf16__bf16", "f32", 2),
    ("tf32, D f32", "tf32__tf32", "f32", 2),
];

/// What NVIDIA states for the GPU, dense, as FLOP per cycle and multiprocessor: 1979, 989 and 495 TFLOPS of 132
/// multiprocessors at 1.83 GHz.
const PEAKS: &[(&str, f64)] = &[
    ("stated for 8 bits", 8192.0),
    ("stated for 16 bits", 4096.0),
    ("stated for tf32", 2048.0),
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
