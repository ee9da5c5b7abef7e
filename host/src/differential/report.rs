//! What became of every form, as JSON and in a few lines.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::execute::Finding;
use super::images::{Entry, Images};
use super::misuse::Outcome;
use super::mutants::Mutant;

/// Where a report is from.
#[derive(Clone, Debug, Serialize)]
pub struct Provenance {
    /// The GPU.
    pub device: String,
    /// The CUDA version of its driver.
    pub driver: String,
    /// The day.
    pub date: String,
    /// The release of CCCL that lists the forms.
    pub cccl: String,
    /// The tool of compute-sanitizer that looked at it; misuse and mutants were left out then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sanitizer: Option<String>,
    /// How long everything took, in seconds.
    pub seconds: u64,
}

/// What became of every form.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Where it is from.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// The sum of the forms of `cuda::ptx`.
    pub totals: Totals,
    /// The sum of those that it lacks.
    pub beyond: Totals,
    /// Every form of `cuda::ptx`.
    pub forms: Vec<Line>,
    /// Every form that it lacks.
    pub forms_beyond: Vec<Line>,
    /// Misuse on purpose, and what the hardware and the driver did.
    pub misuse: Vec<Outcome>,
    /// Specs with one wrong line, and what noticed it.
    pub mutants: Vec<MutantLine>,
}

/// How many forms there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// All forms.
    pub forms: usize,
    /// Those that were run.
    pub run: usize,
    /// Those on which Rust, C++ and the PTX ISA agree.
    pub agree: usize,
    /// Those that were run and on which they do not.
    pub fail: usize,
    /// Those that cannot be run, each with its reason.
    pub not_run: usize,
    /// Launches.
    pub launches: u64,
}

/// One form.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The family, if `cuda::ptx` lacks the form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// The function.
    pub form: String,
    /// The instruction, and the tags that choose it.
    pub variant: String,
    /// The name of its kernels, if it has any.
    pub kernel: Option<String>,
    /// Whether both languages gave the same; nothing if it was not run.
    pub rust_vs_cpp: Option<bool>,
    /// Whether both gave what the PTX ISA says.
    pub vs_isa: Option<bool>,
    /// Launches.
    pub runs: u64,
    /// Seeds of the inputs.
    pub seeds: Vec<u64>,
    /// Why it was not run, or the first difference.
    pub reason: Option<String>,
    /// What was counted and is not decided by the ISA, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
}

/// One mutant.
#[derive(Clone, Debug, Serialize)]
pub struct MutantLine {
    name: &'static str,
    family: &'static str,
    right: &'static str,
    wrong: &'static str,
    noticed: bool,
    by: Option<String>,
}

impl MutantLine {
    pub(super) fn new(mutant: &Mutant, by: Option<String>) -> Self {
        Self {
            name: mutant.name,
            family: mutant.family,
            right: mutant.right.trim(),
            wrong: mutant.wrong.trim(),
            noticed: by.is_some(),
            by,
        }
    }
}

impl Totals {
    fn add(&mut self, finding: Option<&Finding>) {
        self.forms += 1;
        match finding {
            None => self.not_run += 1,
            Some(finding) => {
                self.run += 1;
                self.launches += finding.runs;
                *match finding.holds() {
                    true => &mut self.agree,
                    false => &mut self.fail,
                } += 1;
            }
        }
    }

    fn summary(self) -> String {
        let Self {
            forms,
            run,
            agree,
            fail,
            not_run,
            launches,
        } = self;
        format!(
            "{forms} forms: {run} run in {launches} launches, {agree} agree in Rust, in C++ and with the PTX ISA, \
             {fail} do not; {not_run} not run"
        )
    }
}

impl Line {
    fn new(entry: &Entry, seeds: &[u64], finding: Option<&Finding>) -> Self {
        let tags = match entry.form.tags.is_empty() {
            true => String::new(),
            false => format!(" ({})", entry.form.tags.join(", ")),
        };
        let not_run = || {
            entry
                .reason
                .clone()
                .or_else(|| Some("was not run".to_owned()))
        };
        Self {
            family: entry.form.family.clone(),
            form: entry.form.function.clone(),
            variant: format!("{}{tags}", entry.form.instruction),
            kernel: entry.reason.is_none().then(|| entry.form.kernel.clone()),
            rust_vs_cpp: finding.map(|finding| finding.rust_vs_cpp),
            vs_isa: finding.map(|finding| finding.vs_isa),
            runs: finding.map_or(0, |finding| finding.runs),
            seeds: finding.map_or(Vec::new(), |_| seeds.to_vec()),
            reason: finding.map_or_else(not_run, |finding| finding.difference.clone()),
            counts: finding.map_or_else(BTreeMap::new, |finding| finding.counts.clone()),
        }
    }
}

/// How many forms were not run for each reason.
fn reasons(forms: &[Line]) -> Vec<String> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for form in forms.iter().filter(|form| form.runs == 0) {
        *reasons
            .entry(form.reason.as_deref().unwrap_or("no reason"))
            .or_default() += 1;
    }
    let line = |(reason, count): (&str, usize)| format!("  {count} not run: {reason}");
    reasons.into_iter().map(line).collect()
}

impl Report {
    pub(super) fn new(
        provenance: Provenance,
        images: &Images,
        whole: bool,
        seeds: &[u64],
        findings: &BTreeMap<usize, Finding>,
        mut misuse: Vec<Outcome>,
        mut mutants: Vec<MutantLine>,
    ) -> Self {
        let (mut forms, mut forms_beyond) = (Vec::new(), Vec::new());
        let (mut totals, mut beyond) = (Totals::default(), Totals::default());
        for (number, entry) in images.entries.iter().enumerate() {
            let finding = findings.get(&number);
            if finding.is_none() && !whole {
                continue;
            }
            let (totals, lines) = match entry.form.is_beyond() {
                false => (&mut totals, &mut forms),
                true => (&mut beyond, &mut forms_beyond),
            };
            totals.add(finding);
            lines.push(Line::new(entry, seeds, finding));
        }
        misuse.sort_by(|a, b| a.name.cmp(&b.name));
        mutants.sort_by_key(|mutant| mutant.name);
        Self {
            provenance,
            totals,
            beyond,
            forms,
            forms_beyond,
            misuse,
            mutants,
        }
    }

    /// Whether all forms that were run agree, every mutant was noticed, and every misuse ended as expected.
    pub fn holds(&self) -> bool {
        let mut forms = self.forms.iter().chain(&self.forms_beyond);
        let reasons = forms.all(|form| form.runs > 0 || form.reason.is_some());
        self.totals.fail + self.beyond.fail == 0
            && reasons
            && self.mutants.iter().all(|mutant| mutant.noticed)
            && self.misuse.iter().all(Outcome::holds)
    }

    /// As JSON, with a line for each form, case of misuse and mutant.
    ///
    /// # Errors
    ///
    /// None that a report can cause.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let serde_json::Value::Object(fields) = serde_json::to_value(self)? else {
            unreachable!("a report is an object");
        };
        let field = |(name, value): (String, serde_json::Value)| {
            let value = match value {
                serde_json::Value::Array(lines) => {
                    let lines = Vec::from_iter(lines.iter().map(|line| format!("    {line}")));
                    format!("[\n{}\n  ]", lines.join(",\n"))
                }
                other => other.to_string(),
            };
            format!("  \"{name}\": {value}")
        };
        let fields = Vec::from_iter(fields.into_iter().map(field));
        Ok(format!("{{\n{}\n}}\n", fields.join(",\n")))
    }

    /// The sum of it, in a few lines.
    pub fn summary(&self) -> String {
        let mut lines = vec![format!(
            "{}; {} s in all",
            self.totals.summary(),
            self.provenance.seconds
        )];
        lines.extend(reasons(&self.forms));
        if self.beyond.forms > 0 {
            lines.push(format!("beyond cuda::ptx: {}", self.beyond.summary()));
            lines.extend(reasons(&self.forms_beyond));
        }
        if !self.misuse.is_empty() {
            let recovered = self.misuse.iter().filter(|misuse| misuse.recovered).count();
            lines.push(format!(
                "{} cases of misuse, recovered from {recovered}",
                self.misuse.len()
            ));
        }
        for misuse in self.misuse.iter().filter(|misuse| !misuse.holds()) {
            lines.push(format!(
                "{}: expected {}, found {}",
                misuse.name, misuse.expected, misuse.observed
            ));
        }
        for mutant in self.mutants.iter().filter(|mutant| !mutant.noticed) {
            lines.push(format!("the mutant {} was not noticed", mutant.name));
        }
        lines.join("\n")
    }
}

/// Today, as in `2026-11-30`, in UTC.
pub fn today() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let [year, month, day] = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The date so many days after 1 January 1970.
fn civil(mut days: u64) -> [u64; 3] {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [
        31,
        28 + u64::from(leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    [year, month, days + 1]
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_are_counted_with_leap_years() {
        assert_eq!(civil(0), [1970, 1, 1]);
        assert_eq!(civil(19_782), [2024, 2, 29]);
        assert_eq!(civil(20_787), [2026, 11, 30]);
    }
}
