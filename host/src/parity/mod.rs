//! `cargo xtask parity`: every form of `cuda::ptx` against its twin in Rust.
//!
//! | step | module |
//! |---|---|
//! | every overload and variant of the installed CCCL, independent of the spec | [`headers`] |
//! | its tags and types decided | [`form`] |
//! | its mirror in the spec | [`matching`] |
//! | a kernel on each side that calls it once | [`cxx`], [`rust`], [`twins`] |
//! | the C++ side of what the headers lack | [`beyond`] |
//! | machine code for each architecture that it allows | [`assemble`] |
//! | equal, explained or failed | [`outcome`], [`explained`] |
//! | the table and the JSON | [`report`] |
//!
//! [`sync`] compares another release of CCCL with the spec, without building anything.
//!
//! A kernel is compiled once on each side, for the architecture that has most of the forms; its PTX is then assembled
//! for every architecture. (The architecture matters to ptxas, not to the text that either compiler writes around one
//! instruction.) With `--arch` both compilers are asked for that very architecture.

pub mod assemble;
pub mod beyond;
pub mod cxx;
pub mod explained;
pub mod form;
pub mod headers;
pub mod matching;
pub mod outcome;
pub mod report;
pub mod rust;
pub mod sync;
pub mod twins;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::build::Arch;
use crate::spec::{self, Twin};
use crate::toolchain::{self, CudaTools};
use explained::Explained;
use headers::Headers;
use matching::Matching;
use outcome::{Outcome, Ptx};
use report::Report;
use twins::{Side, Subject};

/// What to compare.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// One family of the spec, not all.
    pub family: Option<String>,
    /// One architecture, not all.
    pub arch: Option<String>,
    /// The forms that `cuda::ptx` lacks, not those that it has. (One family: whatever it has.)
    pub beyond: bool,
    /// Where to write the result as JSON.
    pub json: Option<PathBuf>,
}

/// Compares, prints the result and writes it as JSON.
///
/// # Errors
///
/// Something cannot be built or is not understood, or a form is missing, fails, or differs without a known reason.
pub fn run(options: &Options) -> Result<()> {
    let tools = toolchain::cuda()?;
    let headers = Headers::read(&tools.cccl_include)?;
    let spec = spec::load()?;
    let matching = Matching::new(&headers, &spec)?;
    let archs = architectures(options.arch.as_deref())?;
    check_upstream(&headers.version, &matching)?;
    let (scope, subjects) = scope(&matching, options, &archs)?;
    let explained = Explained::load()?;
    let outcomes = outcomes(&subjects, &archs, &tools, &explained)?;
    let mut report = Report::new(
        &headers.version,
        versions(&tools)?,
        &matching,
        &scope,
        &outcomes,
    );
    report.count_beyond(&subjects, &outcomes);
    if let Some(path) = &options.json {
        let json = serde_json::to_string_pretty(&report)? + "\n";
        std::fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("{}\n{}", report.tables(), report.summary());
    if options.family.is_none() && options.arch.is_none() && !options.beyond {
        let used = outcomes
            .values()
            .flat_map(|outcome| outcome.explained().into_keys())
            .collect();
        if let Some(reason) = explained.unused(&used).first() {
            bail!("explained.toml has a reason that no difference needs: {reason}");
        }
    }
    if !report.holds() {
        bail!("the mirror does not hold: see the forms above");
    }
    Ok(())
}

/// What releases of CCCL have: version, overloads, variants. So a form that the parser of the headers overlooks is
/// noticed.
const UPSTREAM: [(&str, usize, usize); 1] = [("3.5.0", 1412, 2792)];

fn check_upstream(version: &str, matching: &Matching) -> Result<()> {
    let overloads = matching
        .pairs
        .chunk_by(|a, b| std::ptr::eq(a.form.overload, b.form.overload))
        .count();
    let variants = matching.pairs.len();
    match UPSTREAM.iter().find(|(known, ..)| *known == version) {
        Some(&(_, known_overloads, known_variants))
            if (overloads, variants) != (known_overloads, known_variants) =>
        {
            bail!(
                "CCCL {version} has {known_overloads} overloads and {known_variants} variants, \
                 but {overloads} and {variants} were found in its headers"
            )
        }
        _ => Ok(()),
    }
}

fn versions(tools: &CudaTools) -> Result<BTreeMap<&'static str, String>> {
    let device = toolchain::device()?;
    Ok(BTreeMap::from([
        ("cuda", tools.version.clone()),
        ("rustc", device.rustc_version),
        ("llvm", device.llvm_version),
    ]))
}

/// The positions of the pairs that are asked for and that one of the architectures allows; and what is to be compared:
/// those that have a mirror, and then the forms that the headers lack.
fn scope<'a>(
    matching: &'a Matching,
    options: &Options,
    archs: &[Arch],
) -> Result<(BTreeSet<usize>, Vec<Subject<'a>>)> {
    // A family, or where none is asked for, whether the headers have it.
    let asked = |of: Option<&str>, beyond: bool| match options.family.as_deref() {
        Some(family) => of == Some(family),
        None => beyond == options.beyond,
    };
    let fits = |index: &usize| {
        let pair = &matching.pairs[*index];
        asked(matching.family_of(pair), false)
            && archs.iter().any(|arch| pair.form.overload.allows(*arch))
    };
    let scope: BTreeSet<_> = (0..matching.pairs.len()).filter(fits).collect();
    let mirrored = scope.iter().filter_map(|&index| {
        let pair = &matching.pairs[index];
        pair.mirror.map(|mirror| Subject {
            index,
            upstream: Some(&pair.form),
            mirror,
        })
    });
    let beyond = matching
        .beyond
        .iter()
        .enumerate()
        .map(|(at, &mirror)| Subject {
            index: matching.pairs.len() + at,
            upstream: None,
            mirror,
        });
    let beyond = beyond.filter(|subject| {
        asked(Some(&subject.mirror.family.name), true)
            && archs.iter().any(|&arch| subject.in_cxx(arch))
    });
    let subjects = Vec::from_iter(mirrored.chain(beyond));
    if scope.is_empty() && subjects.is_empty() {
        let families = matching.families().join(", ");
        bail!("no form fits; the families of spec/ are {families}");
    }
    Ok((scope, subjects))
}

fn outcomes(
    subjects: &[Subject],
    archs: &[Arch],
    tools: &CudaTools,
    explained: &Explained,
) -> Result<BTreeMap<usize, Outcome>> {
    let plan = plan(subjects, archs);
    let progress = ProgressBar::new((plan.len() + archs.len()) as u64);
    progress.set_style(
        ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}").expect("the template is valid"),
    );

    let mut sides = [Side::new(), Side::new()];
    for (arch, subjects) in &plan {
        progress.set_message(format!(
            "compiling {} kernels for {arch} on both sides",
            subjects.len()
        ));
        for (all, built) in sides.iter_mut().zip(twins::build(subjects, *arch)?) {
            all.extend(built);
        }
        progress.inc(1);
    }
    let mut outcomes: BTreeMap<usize, Outcome> = BTreeMap::new();
    for subject in subjects {
        let [rust, cxx] = sides.each_ref().map(|side| side.get(&subject.index));
        let variant = subject.mirror.variant;
        let ptx = rust.zip(cxx).map(|(rust, cxx)| match &variant.twin {
            Some(Twin::Expression(_)) => Ptx::compare_with_function(rust, cxx, variant.opcode()),
            _ => Ptx::compare(rust, cxx),
        });
        let verdicts = BTreeMap::new();
        outcomes.insert(subject.index, Outcome { ptx, verdicts });
    }
    for &arch in archs {
        progress.set_message(format!("assembling and comparing for {arch}"));
        let folder = toolchain::target_dir()
            .join("parity")
            .join(arch.to_string());
        for (index, verdict) in
            outcome::compare_on(arch, subjects, &sides, tools, &folder, explained)?
        {
            outcomes
                .entry(index)
                .or_default()
                .verdicts
                .insert(arch, verdict);
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(outcomes)
}

/// The architecture of this name, or every one of the spec that ptxas still assembles for.
fn architectures(name: Option<&str>) -> Result<Vec<Arch>> {
    let known = spec::all_architectures().filter_map(|name| {
        let digits = name.trim_start_matches("sm_");
        let number = digits.trim_end_matches(['a', 'f']).parse().ok()?;
        Some(Arch {
            number,
            suffix: digits.chars().last().filter(char::is_ascii_alphabetic),
        })
    });
    let known = Vec::from_iter(known.filter(|arch| arch.number >= 75));
    match name {
        None => Ok(known),
        Some(name) => match known.iter().find(|arch| arch.to_string() == name) {
            Some(&arch) => Ok(vec![arch]),
            None => {
                let known = Vec::from_iter(known.iter().map(Arch::to_string)).join(", ");
                bail!(
                    "expected an architecture that ptxas assembles for, found `{name}`; they are {known}"
                )
            }
        },
    }
}

/// Which forms to compile for which architecture, so that each is compiled once and few times anything is.
fn plan<'a>(subjects: &[Subject<'a>], archs: &[Arch]) -> Vec<(Arch, Vec<Subject<'a>>)> {
    let allows = |subject: &Subject, arch: &Arch| {
        subject.mirror.variant.targets.allow(&arch.to_string()) && subject.in_cxx(*arch)
    };
    let mut left = subjects.to_vec();
    let mut plan = Vec::new();
    loop {
        let count = |arch: &Arch| left.iter().filter(|subject| allows(subject, arch)).count();
        // Among equals one with its own instructions, so that all families are built for the same.
        let best = archs
            .iter()
            .max_by_key(|arch| (count(arch), arch.suffix == Some('a')));
        let Some(&arch) = best else { return plan };
        let (now, later): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|subject| allows(subject, &arch));
        if now.is_empty() {
            return plan;
        }
        plan.push((arch, now));
        left = later;
    }
}

#[cfg(test)]
mod tests;
