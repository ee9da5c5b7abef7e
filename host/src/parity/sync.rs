//! `cargo xtask sync`: what another release of CCCL has that the spec has not, and the other way round.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::headers::{Headers, Overload};
use super::matching::Matching;
use crate::spec::{self, Spec};

/// Where CCCL's headers lie under the folder of a toolkit or of an unpacked wheel.
const PLACES: [&str; 4] = ["", "include", "include/cccl", "nvidia/cu13/include/cccl"];

/// Compares the CCCL under `folder` with the spec and prints the difference.
///
/// # Errors
///
/// The folder holds no CCCL, or a header or the spec is not understood.
pub fn run(folder: &Path) -> Result<()> {
    let headers = Headers::read(&include_folder(folder)?)?;
    print!("{}", report(&headers, &spec::load()?)?);
    Ok(())
}

fn include_folder(folder: &Path) -> Result<PathBuf> {
    let places = PLACES.iter().map(|place| folder.join(place));
    places.into_iter().find(|place| place.join("cuda/ptx").is_file()).with_context(|| {
        format!("expected CCCL's headers (cuda/ptx) in {}, or in its include/cccl as the toolkit and the wheel \
                 nvidia-cuda-cccl have them", folder.display())
    })
}

/// The difference in words: counts, then one line per overload, sorted.
fn report(headers: &Headers, spec: &Spec) -> Result<String> {
    let matching = Matching::new(headers, spec)?;
    let mut missing: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let mut changed = Vec::new();
    for pair in &matching.pairs {
        let overload = pair.form.overload;
        match pair.mirror {
            None => missing.entry(line(overload)).or_default()[0] += 1,
            Some(mirror) => {
                let isa = u32::from(mirror.variant.isas.first.0) * 10;
                if overload.isa.since != isa {
                    changed.push(format!(
                        "{} since PTX ISA {}, spec: {}\n",
                        line(overload),
                        version(overload.isa.since),
                        version(isa)
                    ));
                }
            }
        }
    }
    for pair in &matching.pairs {
        if let Some([_, all]) = missing.get_mut(&line(pair.form.overload)) {
            *all += 1;
        }
    }
    changed.dedup();
    let mut dropped: BTreeMap<String, usize> = BTreeMap::new();
    for mirror in &matching.extra {
        *dropped
            .entry(format!(
                "{} ({})",
                mirror.overload.rust_name, mirror.overload.function
            ))
            .or_default() += 1;
    }

    let mut out = format!(
        "CCCL {}: {} functions, {} overloads, {} variants\n",
        headers.version,
        headers.names().len(),
        headers.overloads.len(),
        headers.variant_count()
    );
    let variants: usize = missing.values().map(|[missing, _]| missing).sum();
    let _ = writeln!(
        out,
        "\nnot in spec/: {} overloads, {variants} variants",
        missing.len()
    );
    for (overload, [missing, all]) in &missing {
        let part = if missing == all {
            String::new()
        } else {
            format!(" ({missing} of {all} variants)")
        };
        let _ = writeln!(out, "  {overload}{part}");
    }
    let _ = writeln!(out, "\nwith another PTX ISA version: {}", changed.len());
    for change in &changed {
        let _ = write!(out, "  {change}");
    }
    let _ = writeln!(
        out,
        "\nin spec/ alone: {} functions, {} variants",
        dropped.len(),
        matching.extra.len()
    );
    for (function, count) in &dropped {
        let _ = writeln!(out, "  {function}: {count}");
    }
    Ok(out)
}

/// The overload and where it is.
fn line(overload: &Overload) -> String {
    format!(
        "{overload} [{}:{}]",
        overload.file.trim_start_matches("instructions/"),
        overload.line
    )
}

/// 860 → 8.6.
fn version(isa: u32) -> String {
    format!("{}.{}", isa / 100, isa / 10 % 10)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FAMILY, HEADER, spec};
    use super::*;

    fn differences(header: &str, family: &str) -> String {
        report(&Headers::of_text(header), &spec(family)).unwrap()
    }

    #[test]
    fn a_release_that_the_spec_mirrors_has_no_differences() {
        let report = differences(HEADER, FAMILY);
        for none in [
            "not in spec/: 0 ",
            "another PTX ISA version: 0",
            "in spec/ alone: 0 ",
        ] {
            assert!(report.contains(none), "{report}");
        }
        assert!(
            report.starts_with("CCCL 0.0.0: 2 functions, 2 overloads, 3 variants\n"),
            "{report}"
        );
    }

    #[test]
    fn new_dropped_and_changed_forms_are_listed() {
        let report = differences(
            HEADER,
            &FAMILY
                .replace("cta | cluster", "cta")
                .replace("twist", "turn"),
        );
        assert!(
            report.contains("not in spec/: 2 overloads, 2 variants"),
            "{report}"
        );
        assert!(
            report.contains("const uint32_t& count) [test.h:5] (1 of 2 variants)\n"),
            "{report}"
        );
        assert!(report.contains("  turn (turn): 1\n"), "{report}");
        let report = differences(HEADER, &FAMILY.replace("PTX 8.6", "PTX 8.7"));
        assert!(
            report.contains("since PTX ISA 8.6, spec: 8.7\n"),
            "{report}"
        );
    }

    #[test]
    fn one_mirror_serves_an_instruction_that_older_releases_write_twice() {
        let asm = "asm(\"twist.b32 {%0, %1}, {%2, %3}, %4;\"\n      : \"=r\"(__out[0]), \"=r\"(__out[1]) : \"r\"(__in[0]), \"r\"(__in[1]), \"n\"(__imm.value) :);";
        let twice = HEADER.replace(asm, &format!("#if A\n{asm}\n#elif B\n{asm}\n#endif"));
        assert_ne!(twice, HEADER);
        assert!(differences(&twice, FAMILY).contains("not in spec/: 0 "));
    }

    #[test]
    fn the_headers_are_found_in_a_toolkit_and_in_a_wheel() {
        for place in PLACES {
            let folder = tempfile::tempdir().unwrap();
            let cuda = folder.path().join(place).join("cuda");
            std::fs::create_dir_all(&cuda).unwrap();
            std::fs::write(cuda.join("ptx"), "").unwrap();
            assert_eq!(
                include_folder(folder.path()).unwrap(),
                folder.path().join(place)
            );
        }
        let error = include_folder(Path::new("/nowhere"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("/nowhere") && error.contains("nvidia-cuda-cccl"),
            "{error}"
        );
    }
}
