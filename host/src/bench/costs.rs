//! The page that says in words what to choose: its text, with the figures of a run filled in.
//!
//! | in the text | becomes |
//! |---|---|
//! | `[[form KERNEL]]` | the cycles of a form in Rust, without what links its steps |
//! | `[[at SITUATION LINE AT]]` | the cycles of an operation in Rust at a point of a situation |
//! | `[[half SITUATION LINE AT]]` | half of that, of a round trip |
//! | `[[rate SITUATION LINE AT]]` | the bytes of the point, which `AT` counts, per cycle |
//! | `[[peak KERNEL]]` | bytes, FLOP or operations per cycle and multiprocessor, all of them busy |
//! | `[[busy KERNEL WARPS]]` | cycles of a step of all warps of a block that is alone on its multiprocessor |
//! | `[[beyond_timed]]` | what became of the forms that `cuda::ptx` lacks |
//! | `[[least FAMILY]]`, `[[most FAMILY]]` | the least and the most cycles of a family's forms |
//! | `[[A / B]]`, `[[A - B]]` | a quotient or a difference of two of these |
//! | `[[clock]]`, `[[gpu]]`, `[[driver]]`, `[[timed]]`, `[[unequal]]`, `[[crooked]]`, `[[collapsed]]`, `[[alike]]` | what the head of the tables says |
//! | `[[repeated]]`, `[[took]]` | how a second run compares, and how long both took |

use anyhow::{Context, Result, bail};

use super::report::figure;
use super::runner::Results;
use crate::toolchain;

const TEXT: &str = include_str!("costs.md");
const FIRST: &str =
    "<!-- Made by `cargo xtask bench-report` from host/src/bench/costs.md. Do not edit. -->\n\n";

impl Results {
    /// The page with the figures of these results.
    ///
    /// # Errors
    /// If the text asks for a figure that the results lack.
    pub fn costs(&self) -> Result<String> {
        self.fill(TEXT).map(|text| FIRST.to_owned() + &text)
    }

    fn fill(&self, text: &str) -> Result<String> {
        let mut parts = text.split("[[");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (what, rest) = part
                .split_once("]]")
                .with_context(|| format!("expected `]]` after `[[{part}`"))?;
            out += &self
                .word(what)
                .with_context(|| format!("the page asks for [[{what}]]"))?;
            out += rest;
        }
        Ok(out)
    }

    fn word(&self, what: &str) -> Result<String> {
        Ok(match what {
            "gpu" => self.gpu.clone(),
            "driver" => self.driver.clone(),
            "clock" => format!("{:.2} GHz", self.clock() / 1e3),
            "beyond_timed" => self.counts_in_words(true),
            "timed" => self.counts(false)[0].to_string(),
            "unequal" => self.unequal().to_string(),
            "crooked" => self.crooked().to_string(),
            "collapsed" => self.collapsed().to_string(),
            "alike" => self.alike().to_string(),
            "repeated" => self
                .repeated()
                .map_or("There was no second run.".to_owned(), |a| a.to_string()),
            "took" => self.seconds.map_or(String::new(), |seconds| {
                format!("Everything took {seconds:.0} s.")
            }),
            _ => figure(self.expression(what)?),
        })
    }

    fn expression(&self, what: &str) -> Result<f64> {
        let both = |a, b| Ok::<_, anyhow::Error>((self.term(a)?, self.term(b)?));
        if let Some((a, b)) = what.split_once(" / ") {
            return both(a, b).map(|(a, b)| a / b);
        }
        if let Some((a, b)) = what.split_once(" - ") {
            return both(a, b).map(|(a, b)| a - b);
        }
        self.term(what)
    }

    fn term(&self, what: &str) -> Result<f64> {
        match *Vec::from_iter(what.split(' ')) {
            ["form", kernel] => self.cycles_of_form(kernel).map(|[rust, _]| rust),
            ["peak", kernel] => self.peak_of_chip(kernel),
            ["busy", kernel, warps] => self.cycles_of_block(kernel, warps.parse()?),
            ["least", family] => self.cycles_of_family(family).reduce(f64::min),
            ["most", family] => self.cycles_of_family(family).reduce(f64::max),
            [kind, situation, line, at] => {
                let (line, at) = (line.parse()?, at.parse()?);
                let cycles = self.cycles_at(situation, line, at);
                let cycles = cycles.map(|[rust, _]| rust);
                match kind {
                    "at" => cycles,
                    "half" => cycles.map(|cycles| cycles / 2.0),
                    "rate" => cycles.map(|cycles| f64::from(at) / cycles),
                    _ => bail!("expected `at`, `half` or `rate`, found `{kind}`"),
                }
            }
            _ => bail!("expected one of the words that host/src/bench/costs.rs lists"),
        }
        .context("it was not measured")
    }

    /// Writes the page.
    ///
    /// # Errors
    /// If a figure is missing, or the file cannot be written.
    pub fn write_costs(&self) -> Result<()> {
        let path = toolchain::workspace_root().join("docs/instruction-costs.md");
        std::fs::write(&path, self.costs()?)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::bench::situations::{SITUATIONS, Situation};
    use crate::bench::{forms, setup};
    use crate::spec;

    fn results() -> Results {
        let folder = toolchain::workspace_root().join("benches/results");
        Results::read(&folder.join("h200-instructions.json")).unwrap()
    }

    #[test]
    fn a_figure_of_the_results_is_filled_in() {
        let results = results();
        let [rust, _] = results.cycles_at("arrive_wait", 0, 1).unwrap();
        let filled =
            results.fill("takes [[at arrive_wait 0 1]] and [[half arrive_wait 0 1]] cycles");
        let expected = format!("takes {} and {} cycles", figure(rust), figure(rust / 2.0));
        assert_eq!(filled.unwrap(), expected);
    }

    #[test]
    fn every_figure_that_the_page_asks_for_is_measured() {
        let spec = spec::load().unwrap();
        let timed = forms::all(&spec).into_iter();
        let timed = timed.filter(|form| setup::setup_of(form.variant).is_ok());
        let timed: HashSet<String> = timed.map(|form| form.name).collect();
        let has_point = |situation: &str, line: &str, at: &str| {
            let situation = SITUATIONS.iter().find(|s| s.kernel == situation);
            let points = situation.map(Situation::points).unwrap_or_default();
            let place = (line.parse().unwrap(), at.parse().unwrap());
            points.iter().any(|point| (point.line, point.at) == place)
        };
        let mut terms = 0;
        for part in TEXT.split("[[").skip(1) {
            let (word, _) = part.split_once("]]").unwrap();
            for term in word.split(" / ").flat_map(|term| term.split(" - ")) {
                match *Vec::from_iter(term.split(' ')) {
                    ["form" | "peak", kernel] | ["busy", kernel, _] => {
                        assert!(timed.contains(kernel), "{kernel}");
                    }
                    ["at" | "half" | "rate", situation, line, at] => {
                        assert!(has_point(situation, line, at), "{term}");
                    }
                    _ => continue,
                }
                terms += 1;
            }
        }
        assert!(terms > 150, "{terms}");
    }

    #[test]
    fn a_figure_that_was_not_measured_is_an_error() {
        for text in [
            "[[at arrive_wait 0 77]]",
            "[[form k_none]]",
            "[[nothing]]",
            "[[clock",
        ] {
            assert!(results().fill(text).is_err(), "{text}");
        }
    }
}
