//! The result as a table and as JSON.

use std::collections::{BTreeMap, BTreeSet};

use comfy_table::{Table, presets};
use serde::{Serialize, Serializer};

use super::matching::Matching;
use super::outcome::{Outcome, Ptx, Verdict};
use super::twins::Subject;
use crate::build::Arch;
use crate::inspect::sass::Class;
use crate::spec::Twin;

/// The whole result.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The release of the headers.
    pub cccl: String,
    /// The tools, by name.
    pub toolchain: BTreeMap<&'static str, String>,
    /// Functions with their argument types.
    pub overloads: Overloads,
    /// Instructions.
    pub variants: Variants,
    /// The forms of each architecture.
    #[serde(serialize_with = "by_name")]
    pub architectures: BTreeMap<Arch, Counts>,
    /// The forms of each family.
    pub families: BTreeMap<String, FamilyCounts>,
    /// The forms that the headers lack, where they are compared.
    #[serde(skip_serializing_if = "Beyond::is_empty")]
    pub beyond: Beyond,
}

/// How the forms compare that the headers lack.
#[derive(Debug, Default, Serialize)]
pub struct Beyond {
    forms: usize,
    /// Those whose other side is a function of CUDA, not inline assembly.
    with_function: usize,
    #[serde(flatten)]
    compared: Compared,
    /// The forms of each architecture.
    #[serde(serialize_with = "by_name")]
    architectures: BTreeMap<Arch, Counts>,
    /// The forms of each family.
    families: BTreeMap<String, FamilyCounts>,
}

impl Beyond {
    fn is_empty(&self) -> bool {
        self.forms == 0
    }
}

/// Which overloads are mirrored.
#[derive(Debug, Serialize)]
pub struct Overloads {
    upstream: usize,
    mirrored: usize,
    missing: Vec<String>,
    extra: Vec<String>,
}

/// How the variants compare.
#[derive(Debug, Serialize)]
pub struct Variants {
    upstream: usize,
    #[serde(flatten)]
    compared: Compared,
}

/// How forms compare.
#[derive(Debug, Default, Serialize)]
pub struct Compared {
    ptx_equal: usize,
    assembled: usize,
    sass_identical: usize,
    sass_equivalent: usize,
    sass_fewer: usize,
    sass_equal: usize,
    sass_explained: Vec<Remark>,
    failed: Vec<Remark>,
    /// Architectures that the headers name and ptxas rejects; the spec leaves them out.
    rejected: Vec<Remark>,
}

/// Something to say about a form.
#[derive(Debug, Serialize)]
pub struct Remark {
    form: String,
    architectures: Vec<String>,
    reason: String,
}

/// Verdicts of forms.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    forms: usize,
    identical: usize,
    equivalent: usize,
    fewer: usize,
    explained: usize,
    rejected: usize,
    failed: usize,
}

/// Verdicts of a family's forms.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FamilyCounts {
    overloads: usize,
    mirrored: usize,
    variants: usize,
    ptx_equal: usize,
    assembled: usize,
    identical: usize,
    equivalent: usize,
    fewer: usize,
    explained: usize,
    failed: usize,
}

impl Counts {
    fn add(&mut self, verdict: &Verdict) {
        self.forms += 1;
        match verdict {
            Verdict::Equal(Class::Identical) => self.identical += 1,
            Verdict::Equal(Class::Equivalent) => self.equivalent += 1,
            Verdict::Equal(_) => self.fewer += 1,
            Verdict::Explained(_) => self.explained += 1,
            Verdict::Rejected(_) => self.rejected += 1,
            Verdict::Failed(_) => self.failed += 1,
        }
    }
}

/// The family of functions that no spec file names.
const NO_FAMILY: &str = "(not mirrored)";

impl Report {
    /// Counts the outcomes of `matching`, restricted to the pairs whose positions are in `scope`.
    pub fn new(
        cccl: &str,
        toolchain: BTreeMap<&'static str, String>,
        matching: &Matching,
        scope: &BTreeSet<usize>,
        outcomes: &BTreeMap<usize, Outcome>,
    ) -> Self {
        let mut report = Self {
            cccl: cccl.to_owned(),
            toolchain,
            overloads: Overloads {
                upstream: 0,
                mirrored: 0,
                missing: Vec::new(),
                extra: Vec::new(),
            },
            variants: Variants::new(scope.len()),
            architectures: BTreeMap::new(),
            families: BTreeMap::new(),
            beyond: Beyond::default(),
        };
        report.count_overloads(matching, scope);
        for &index in scope {
            let pair = &matching.pairs[index];
            let family = report
                .families
                .entry(matching.family_of(pair).unwrap_or(NO_FAMILY).to_owned())
                .or_default();
            family.variants += 1;
            let Some(mirror) = pair.mirror else { continue };
            let outcome = outcomes.get(&index).cloned().unwrap_or_default();
            let form = Subject {
                index,
                upstream: Some(&pair.form),
                mirror,
            }
            .form();
            family.add(&outcome);
            report.variants.compared.add(&form, &outcome);
            report.variants.compared.check_isa(
                &form,
                pair.form.overload.isa.since,
                u32::from(mirror.variant.isas.first.0),
            );
            for (arch, verdict) in &outcome.verdicts {
                report.architectures.entry(*arch).or_default().add(verdict);
            }
        }
        report
    }

    /// Counts the outcomes of those of `subjects` that the headers lack.
    pub fn count_beyond(&mut self, subjects: &[Subject], outcomes: &BTreeMap<usize, Outcome>) {
        let beyond = &mut self.beyond;
        for subject in subjects.iter().filter(|subject| subject.upstream.is_none()) {
            let outcome = outcomes.get(&subject.index).cloned().unwrap_or_default();
            let family = subject.mirror.family.name.clone();
            let family = beyond.families.entry(family).or_default();
            family.variants += 1;
            family.add(&outcome);
            beyond.forms += 1;
            let twin = &subject.mirror.variant.twin;
            beyond.with_function += usize::from(matches!(twin, Some(Twin::Expression(_))));
            beyond.compared.add(&subject.form(), &outcome);
            for (arch, verdict) in &outcome.verdicts {
                beyond.architectures.entry(*arch).or_default().add(verdict);
            }
        }
    }

    fn count_overloads(&mut self, matching: &Matching, scope: &BTreeSet<usize>) {
        let pairs = Vec::from_iter(scope.iter().map(|&index| &matching.pairs[index]));
        for pairs in pairs.chunk_by(|a, b| std::ptr::eq(a.form.overload, b.form.overload)) {
            let overload = pairs[0].form.overload;
            let family = matching.family_of(pairs[0]).unwrap_or(NO_FAMILY);
            let family = self.families.entry(family.to_owned()).or_default();
            self.overloads.upstream += 1;
            family.overloads += 1;
            if pairs.iter().all(|pair| pair.mirror.is_some()) {
                self.overloads.mirrored += 1;
                family.mirrored += 1;
            } else {
                self.overloads
                    .missing
                    .push(format!("{overload} ({}:{})", overload.file, overload.line));
            }
        }
        let missing = matching.missing_pragmas.iter();
        self.overloads
            .missing
            .extend(missing.map(|pragma| format!("{pragma} ({}:{})", pragma.file, pragma.line)));
        self.overloads.extra = matching
            .extra
            .iter()
            .filter(|mirror| self.families.contains_key(&mirror.family.name))
            .map(|mirror| format!("{}: {}", mirror.overload.rust_name, mirror.variant.opcode()))
            .collect();
    }

    /// Whether every form of the headers is mirrored, equal or explained.
    pub fn holds(&self) -> bool {
        self.overloads.missing.is_empty()
            && self.variants.compared.failed.is_empty()
            && self.beyond.compared.failed.is_empty()
    }

    /// One row per family, then one per architecture.
    pub fn tables(&self) -> String {
        let mut families = table(&[
            "family",
            "overloads",
            "mirrored",
            "variants",
            "PTX equal",
            "assembled",
            "identical",
            "equivalent",
            "fewer",
            "explained",
            "failed",
        ]);
        let beyond = self.beyond.families.iter();
        let beyond = beyond.map(|(name, it)| (format!("beyond: {name}"), it));
        let mirrored = self.families.iter().map(|(name, it)| (name.clone(), it));
        for (name, it) in mirrored.chain(beyond) {
            let counts = [
                it.overloads,
                it.mirrored,
                it.variants,
                it.ptx_equal,
                it.assembled,
                it.identical,
                it.equivalent,
                it.fewer,
                it.explained,
                it.failed,
            ];
            families.add_row(row(&name, &counts));
        }
        let mut architectures = table(&[
            "architecture",
            "forms",
            "identical",
            "equivalent",
            "fewer",
            "explained",
            "rejected",
            "failed",
        ]);
        let beyond = self.beyond.architectures.iter();
        let beyond = beyond.map(|(arch, it)| (format!("beyond: {arch}"), it));
        let mirrored = self.architectures.iter();
        for (name, it) in mirrored
            .map(|(arch, it)| (arch.to_string(), it))
            .chain(beyond)
        {
            let counts = [
                it.forms,
                it.identical,
                it.equivalent,
                it.fewer,
                it.explained,
                it.rejected,
                it.failed,
            ];
            architectures.add_row(row(&name, &counts));
        }
        format!("{families}\n{architectures}")
    }

    /// One line per function with missing overloads.
    fn missing_functions(&self) -> Vec<String> {
        let function =
            |overload: &String| overload.split('(').next().unwrap_or_default().to_owned();
        let functions = self
            .overloads
            .missing
            .chunk_by(|a, b| function(a) == function(b));
        let line = |overloads: &[String]| match overloads {
            [one] => format!("missing: {one}"),
            [first, ..] => format!("missing: {} overloads, from {first}", overloads.len()),
            [] => String::new(),
        };
        functions.map(line).collect()
    }

    /// The totals, and every form with something to say, in lines.
    pub fn summary(&self) -> String {
        let (overloads, mirrored) = (&self.overloads, &self.variants.compared);
        let beyond = &self.beyond;
        let mut lines = Vec::new();
        lines.extend(self.missing_functions());
        let remarks =
            |title, remarks: &[Remark]| remarks.iter().map(|it| it.line(title)).collect::<Vec<_>>();
        for compared in [mirrored, &beyond.compared] {
            lines.extend(remarks("explained", &compared.sass_explained));
            lines.extend(remarks("failed", &compared.failed));
        }
        if self.variants.upstream > 0 {
            lines.push(format!(
                "CCCL {}: {}/{} overloads, {}/{} variants with equal PTX, {}",
                self.cccl,
                overloads.mirrored,
                overloads.upstream,
                mirrored.ptx_equal,
                self.variants.upstream,
                mirrored.summary(),
            ));
        }
        if beyond.forms > 0 {
            lines.push(format!(
                "beyond: {}/{} forms with equal PTX, {} of them with a function of CUDA, {}",
                beyond.compared.ptx_equal,
                beyond.forms,
                beyond.with_function,
                beyond.compared.summary(),
            ));
        }
        lines.join("\n")
    }
}

impl Variants {
    fn new(upstream: usize) -> Self {
        Self {
            upstream,
            compared: Compared::default(),
        }
    }
}

impl Compared {
    fn summary(&self) -> String {
        format!(
            "{} assembled, SASS of {} equal ({} identical, {} equivalent, {} fewer), {} explained, {} failures",
            self.assembled,
            self.sass_equal,
            self.sass_identical,
            self.sass_equivalent,
            self.sass_fewer,
            self.sass_explained.len(),
            self.failed.len(),
        )
    }

    fn add(&mut self, form: &str, outcome: &Outcome) {
        self.ptx_equal += usize::from(outcome.ptx == Some(Ptx::Equal));
        self.assembled += usize::from(outcome.is_assembled());
        self.sass_equal += usize::from(outcome.class().is_some());
        match outcome.class() {
            Some(Class::Identical) => self.sass_identical += 1,
            Some(Class::Equivalent) => self.sass_equivalent += 1,
            Some(_) => self.sass_fewer += 1,
            None => {}
        }
        if let Some(Ptx::Differs(words)) = &outcome.ptx {
            self.failed
                .push(Remark::new(form, &[], &format!("the PTX differs: {words}")));
        }
        let remarks = |reasons: BTreeMap<&str, Vec<Arch>>| {
            reasons
                .into_iter()
                .map(|(reason, archs)| Remark::new(form, &archs, reason))
                .collect::<Vec<_>>()
        };
        self.sass_explained.extend(remarks(outcome.explained()));
        self.failed.extend(remarks(outcome.failed()));
        self.rejected.extend(remarks(outcome.rejected()));
    }

    /// The headers count PTX ISA versions in hundredths, the spec in tenths.
    fn check_isa(&mut self, form: &str, headers: u32, spec: u32) {
        if headers != spec * 10 {
            let reason = format!(
                "since PTX ISA {} in the headers, {} in the spec",
                headers / 10,
                spec
            );
            self.failed.push(Remark::new(form, &[], &reason));
        }
    }
}

impl FamilyCounts {
    fn add(&mut self, outcome: &Outcome) {
        self.ptx_equal += usize::from(outcome.ptx == Some(Ptx::Equal));
        self.assembled += usize::from(outcome.is_assembled());
        match outcome.class() {
            Some(Class::Identical) => self.identical += 1,
            Some(Class::Equivalent) => self.equivalent += 1,
            Some(_) => self.fewer += 1,
            None => {}
        }
        self.explained += usize::from(!outcome.explained().is_empty());
        self.failed += usize::from(
            matches!(outcome.ptx, Some(Ptx::Differs(_))) || !outcome.failed().is_empty(),
        );
    }
}

impl Remark {
    fn new(form: &str, archs: &[Arch], reason: &str) -> Self {
        let architectures = archs.iter().map(Arch::to_string).collect();
        Self {
            form: form.to_owned(),
            architectures,
            reason: reason.to_owned(),
        }
    }

    fn line(&self, title: &str) -> String {
        let archs = self.architectures.join(" ");
        let archs = if archs.is_empty() {
            archs
        } else {
            format!(" on {archs}")
        };
        format!("{title}: {}{archs}: {}", self.form, self.reason)
    }
}

fn by_name<S: Serializer>(
    architectures: &BTreeMap<Arch, Counts>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(
        architectures
            .iter()
            .map(|(arch, counts)| (arch.to_string(), counts)),
    )
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_BORDERS_ONLY)
        .set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Right);
    }
    table
}

fn row(name: &str, counts: &[usize]) -> Vec<String> {
    std::iter::once(name.to_owned())
        .chain(counts.iter().map(usize::to_string))
        .collect()
}
