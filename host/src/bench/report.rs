//! The results for a reader: a Markdown table per family, and charts.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use super::agreement::unsteady;
use super::job::{Measured, Throughput};
use super::pairs::Latency;
use super::runner::{Results, SituationResult};
use super::setup::{Actor, Chain, Link};
use super::situation_job::SituationPoint;
use super::source::{LINKS, link_name};
use super::statistics::median;

/// The R² below which a row is marked.
const STRAIGHT: f64 = 0.99;
/// How far Rust may be from C++ before a row is marked.
const EQUAL: [f64; 2] = [0.98, 1.02];

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
        let [mirrored, beyond] = [false, true].map(|beyond| self.counts_in_words(beyond));
        let mut out = format!(
            "# Instruction costs: {}\n\n\
             `cargo xtask bench-report` makes this page from the JSON beside it. Driver for CUDA {}; multiprocessor \
             clock {least:.0} to {most:.0} MHz as found, median {:.0} MHz.\n\n\
             {mirrored} {beyond}\n\nRust over C++ outside {} to {}: {} forms; a line with R² below {STRAIGHT}: {}; read once, so \
             that the figure is not the instruction's: {}; the same machine instructions in both languages: {}.\n\n",
            self.gpu,
            self.driver,
            self.clock(),
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
                | accumulate | multiplies and adds to the product of the one before |\n\
                | completion | waits until its operation is complete |\n\
                | exchange | is half a round trip between two CTAs of a cluster |\n\n";
        out += "`one SM` and `chip` are the highest rates in operations per cycle and multiprocessor over 1 to 64 warps, \
                with the number of warps that reach it; operations are of threads, or of one lane per warp. Copies move \
                1 KiB, and their rates are bytes per cycle; of `cp.async`, the bytes of all threads. The rates of \
                multiplications are FLOP per cycle, two for a multiplication and an addition; those with the zeros that a \
                sparse matrix leaves out count too.\n";
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

    /// How many forms are timed and how many are not, of `cuda::ptx` or beyond it.
    pub(super) fn counts(&self, beyond: bool) -> [usize; 2] {
        let timed = self.timed.iter().filter(|m| m.form.beyond == beyond);
        let untimed = self.untimed.iter().filter(|u| u.beyond == beyond);
        [timed.count(), untimed.count()]
    }

    /// What became of the forms; nothing if there are none.
    pub(super) fn counts_in_words(&self, beyond: bool) -> String {
        let [timed, untimed] = self.counts(beyond);
        let (whose, elsewhere) = match beyond {
            false => ("`cuda::ptx`", self.elsewhere),
            true => ("those that `cuda::ptx` lacks", self.elsewhere_beyond),
        };
        match timed + untimed {
            0 => String::new(),
            forms => format!(
                "Of {whose}, {timed} of {forms} forms are timed, {untimed} listed at the end with the reason; the other \
                 {elsewhere} are for other architectures."
            ),
        }
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
                 another place in global memory, and the cost is the mean of the middle 80 % of {pairs} places. Of the \
                 situations it is the mean of the middle 80 % of 31 pairs, and of 120 or 1024 where memory is read that no \
                 cache has. `statistic` in the JSON says which it is.",
            );
        }
        words + "\n\n"
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
    pub(super) fn cycles(&self, measured: &Measured) -> [f64; 2] {
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

    /// Cycles of a step of all warps of a block, with nothing else on its multiprocessor.
    pub(super) fn cycles_of_block(&self, kernel: &str, warps: u32) -> Option<f64> {
        let found = self.timed.iter().find(|m| m.form.kernel == kernel)?;
        let mut alone = found.throughput.iter();
        let alone = alone.find(|t| (t.multiprocessors, t.warps) == (1, warps))?;
        Some(f64::from(32 * warps) / alone.rate[0])
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
}

/// Three significant digits or all of the integer part.
pub(super) fn figure(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

fn unequal(measured: &Measured) -> bool {
    !measured.form.collapsed && !is_equal(measured.latency.ratio)
}

fn crooked(measured: &Measured) -> bool {
    !measured.form.collapsed && measured.latency.fit.iter().any(|line| line.r2 < STRAIGHT)
}

fn chain_name(chain: Chain) -> &'static str {
    match chain {
        Chain::Value => "value",
        Chain::Link(_) => "link",
        Chain::Order => "order",
        Chain::Accumulate => "accumulate",
        Chain::Completion => "completion",
        Chain::Exchange => "exchange",
    }
}

/// The highest rate per multiprocessor, with one busy or with all, and the warps that reach it.
fn peak(measured: &Measured, chip: bool) -> Option<(f64, u32)> {
    let form = &measured.form;
    let unit = match form.flops {
        0 => f64::from(form.bytes.max(1)),
        flops => f64::from(flops) / f64::from(form.threads),
    };
    let all = |t: &&Throughput| (t.multiprocessors > 2) == chip;
    let rate = |t: &Throughput| t.rate[0] * unit / f64::from(t.multiprocessors);
    let rates = measured.throughput.iter().filter(all);
    let rates = rates.map(|t| (rate(t), t.warps));
    rates.max_by(|a, b| a.0.total_cmp(&b.0))
}

fn peak_cell(measured: &Measured, chip: bool) -> String {
    peak(measured, chip).map_or(String::new(), |(rate, warps)| match measured.form.flops {
        0 => format!("{rate:.3} at {warps}"),
        _ => format!("{rate:.0} at {warps}"),
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
        let why = match form.difference.as_str() {
            "" => format!("the same {rust} instructions in both loops"),
            difference => format!("loops of {rust} and {cpp} instructions: {difference}"),
        };
        remarks.push(format!("**unequal**; {why}"));
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
        let [timed, untimed] = results.counts(false);
        assert_eq!(timed + untimed, 976);
        assert_eq!(timed + untimed + results.elsewhere, 2792);
    }
}
