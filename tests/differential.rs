//! The differential tests as far as a machine without a GPU can check them.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;

use cuda_ptx_host::build::Arch;
use cuda_ptx_host::differential::agreement::Found;
use cuda_ptx_host::differential::execute::Job;
use cuda_ptx_host::differential::golden::{Digest, Golden};
use cuda_ptx_host::differential::scenario::{self, Case, Expected, Word};
use cuda_ptx_host::differential::{Entry, Extent, Images, MUTANTS, Plan, images};
use cuda_ptx_host::driver::Driver;
use cuda_ptx_host::parity::headers::{Headers, Parameter};
use cuda_ptx_host::parity::matching::{Matching, Pair, spec_text, upstream_text};
use cuda_ptx_host::spec::{self, Effects, OperandValue, Spec, Variant};
use cuda_ptx_host::toolchain;

/// The images, built once.
fn images() -> &'static Images {
    static IMAGES: OnceLock<Images> = OnceLock::new();
    IMAGES.get_or_init(|| {
        let plan = Plan {
            arch: Arch::SM_90A,
            extent: Extent::Sample,
            mutants: &MUTANTS,
            linker: Some(env!("CARGO_BIN_EXE_cuda-ptx-link").as_ref()),
        };
        Images::build(plan, &folder()).unwrap_or_else(|error| panic!("{error:#}"))
    })
}

fn folder() -> PathBuf {
    toolchain::target_dir().join("differential/images")
}

fn root(path: &str) -> PathBuf {
    toolchain::workspace_root().join(path)
}

/// Says it also if the test passes, when the test runner keeps what `println!` writes.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[test]
fn every_form_of_the_headers_is_run_or_has_a_reason_and_every_kernel_assembles() {
    let images = images();
    let headers = Headers::read(&toolchain::cuda().unwrap().cccl_include).unwrap();
    let (beyond, mirrored): (Vec<_>, Vec<_>) = images
        .entries
        .iter()
        .partition(|entry| entry.form.is_beyond());
    assert_eq!(mirrored.len(), headers.variant_count());
    say_what_runs("of cuda::ptx", &mirrored);
    say_what_runs("beyond it", &beyond);
    for entry in mirrored {
        let reason = entry.reason.as_deref().unwrap_or_default();
        assert!(
            !reason.starts_with("no scenario"),
            "{}: {reason}",
            entry.form
        );
    }
}

fn say_what_runs(which: &str, entries: &[&Entry]) {
    let (not_run, run): (Vec<&Entry>, Vec<&Entry>) =
        entries.iter().partition(|entry| entry.reason.is_some());
    let gpu = match Driver::open() {
        Ok(_) => "every_form_agrees_on_the_gpu runs them".to_owned(),
        Err(error) => format!("none is run here: {error}"),
    };
    say(&format!(
        "{} forms {which}; {} have kernels and expectations, {gpu}",
        entries.len(),
        run.len(),
    ));
    let mut reasons = BTreeMap::new();
    for entry in &not_run {
        *reasons.entry(entry.reason.as_deref()).or_insert(0) += 1;
    }
    for (reason, count) in reasons {
        say(&format!(
            "  {count} skipped: {}",
            reason.unwrap_or_default()
        ));
    }
}

#[test]
fn every_launch_is_expected_to_give_something_in_particular() {
    for entry in images()
        .entries
        .iter()
        .filter(|entry| entry.reason.is_none())
    {
        let Ok(scenario) = scenario::of(&entry.form) else {
            panic!("{} has kernels and no scenario", entry.form);
        };
        for case in (scenario.cases)(1) {
            let Expected {
                output,
                memory,
                relation,
                fails,
                map,
            } = &case.expected;
            let decided = output
                .iter()
                .any(|word| !matches!(word, Word::Opaque(_) | Word::Free));
            assert!(
                decided || !memory.is_empty() || relation.is_some() || *fails || map.is_some(),
                "{}, {}: nothing is expected",
                entry.form,
                case.what
            );
        }
    }
}

#[test]
fn expectations_agree_with_what_an_h200_gave() {
    let golden = Golden::read(&root("tests/golden/h200.json")).unwrap();
    // Also those without kernels here.
    let compared = images::entries(Arch::SM_90A).and_then(|entries| golden.check(&entries));
    let compared = compared.unwrap_or_else(|error| panic!("{error:#}"));
    say(&format!(
        "{compared} forms compared with outputs of {}, CUDA {}, {}",
        golden.device, golden.driver, golden.date
    ));
    assert_eq!(compared, golden.forms.len());
}

/// What a launch may give; all bits that its expectation leaves open are those of `open`.
fn outcome(case: &Case, open: u64) -> Found {
    let word = |word: &Word| match *word {
        Word::Is(word) => word,
        Word::Masked(word, mask) => word & mask | open & !mask,
        Word::Within(low, _) if open == 0 => low,
        Word::Within(_, high) => high,
        Word::Opaque(_) | Word::Free => open,
    };
    let behind_end = open.to_le_bytes();
    Found {
        output: case.expected.output.iter().map(word).collect(),
        memory: [&case.expected.memory[..], &behind_end].concat(),
    }
}

fn digest(case: &Case, found: &Found) -> Digest {
    let mut digest = Digest::new(1);
    digest.add(case, found);
    digest
}

#[test]
fn all_that_is_expected_is_recorded_and_nothing_else() {
    let entries = images().entries.iter();
    for entry in entries.filter(|entry| entry.reason.is_none()) {
        let scenario = scenario::of(&entry.form).unwrap();
        for case in (scenario.cases)(1) {
            let (found, other) = (outcome(&case, 0), outcome(&case, u64::MAX));
            let recorded = digest(&case, &found);
            assert_eq!(
                recorded,
                digest(&case, &other),
                "{}, {}",
                entry.form,
                case.what
            );
            let words = case.expected.output.iter().enumerate();
            let mut decided = words.filter_map(|(at, word)| match *word {
                Word::Is(_) => Some((at, 1)),
                Word::Masked(_, mask) if mask != 0 => Some((at, 1 << mask.trailing_zeros())),
                _ => None,
            });
            let mut wrong = Vec::new();
            if let Some((at, bit)) = decided.next_back() {
                wrong.push(outcome(&case, 0));
                wrong[0].output[at] ^= bit;
            }
            if let Some(last) = case.expected.memory.len().checked_sub(1) {
                wrong.push(outcome(&case, 0));
                wrong.last_mut().unwrap().memory[last] ^= 1;
            }
            for wrong in wrong {
                assert_ne!(
                    recorded,
                    digest(&case, &wrong),
                    "{}, {}",
                    entry.form,
                    case.what
                );
            }
        }
    }
}

/// The recording of a GPU that gives what is expected, and where that is open, something else than other tests have.
fn recording() -> Golden {
    let recorded = Golden::read(&root("tests/golden/h200.json")).unwrap();
    let entries = images().entries.iter();
    let forms = entries.filter(|entry| entry.reason.is_none()).map(|entry| {
        let scenario = scenario::of(&entry.form).unwrap();
        let mut digest = Digest::new(1);
        for case in (scenario.cases)(1).iter().filter(|it| !it.expected.fails) {
            digest.add(case, &outcome(case, 0x0123_4567_89ab_cdef));
        }
        (entry.form.kernel.clone(), digest)
    });
    Golden {
        forms: forms.collect(),
        ..recorded
    }
}

#[test]
fn a_recording_of_what_is_expected_passes_and_may_miss_no_form() {
    let mut golden = recording();
    let entries = &images().entries;
    assert_eq!(golden.check(entries).unwrap(), golden.forms.len());
    let (missing, _) = golden.forms.pop_first().unwrap();
    assert!(golden.check(entries).is_err(), "{missing} may be missing");
}

/// In this process: a bundle's program runs the same in child processes, and misuse and traps too.
#[test]
#[ignore = "needs a GPU"]
fn every_form_agrees_on_the_gpu() {
    let images = images();
    let forms = images.entries.iter().enumerate();
    let job = Job {
        folder: folder(),
        forms: forms
            .filter(|(_, entry)| entry.reason.is_none())
            .map(|(form, _)| form)
            .collect(),
        seeds: vec![1],
        mutant: None,
        outputs: None,
        sanitized: false,
    };
    for finding in job.run().unwrap_or_else(|error| panic!("{error:#}")) {
        let form = &images.entries[finding.form].form;
        assert!(finding.holds(), "{form}: {:?}", finding.difference);
    }
}

/// What of a spec is not as the headers have it: instructions, operand orders, clobbers.
fn deviations(spec: &Spec, functions: &[&str]) -> Vec<String> {
    let headers = Headers::read(&toolchain::cuda().unwrap().cccl_include).unwrap();
    let matching = Matching::new(&headers, spec).unwrap();
    let deviation = |pair: &Pair| {
        let function = &pair.form.overload.function;
        let Some(mirror) = pair.mirror else {
            return Some(format!("{function}: no mirror"));
        };
        let [upstream, ours] =
            [upstream_text(&pair.form), spec_text(mirror.variant)].map(Result::unwrap);
        if upstream != ours {
            return Some(format!(
                "{function}: {upstream:?} upstream, {ours:?} in the spec"
            ));
        }
        let [upstream, ours] = [upstream_order(pair), our_order(mirror.variant)];
        if upstream != ours {
            return Some(format!(
                "{function}: parameters {upstream:?} upstream, {ours:?} in the spec"
            ));
        }
        let clobbers = !pair.form.variant.clobbers.is_empty();
        (clobbers != (mirror.variant.effects == Effects::Memory))
            .then(|| format!("{function}: {} in the spec", mirror.variant.effects))
    };
    let pairs = matching.pairs.iter();
    pairs
        .filter(|pair| functions.contains(&pair.form.overload.function.as_str()))
        .filter_map(deviation)
        .collect()
}

/// The parameters in the order in which the instruction names them.
fn upstream_order(pair: &Pair) -> Vec<usize> {
    let (form, variant) = (&pair.form, pair.form.variant);
    let position = |expression: &str| {
        let is_it = |parameter: &Parameter| {
            let immediate = parameter.ty.starts_with("n32_t");
            !immediate
                && !parameter.name.is_empty()
                && words(expression).any(|word| word.trim_start_matches('_') == parameter.name)
        };
        form.overload.parameters.iter().position(is_it)
    };
    let asm = variant.asm.replace("%%", "");
    let numbers = asm.split('%').skip(1).filter_map(|rest| {
        let digits = rest
            .split(|character: char| !character.is_ascii_digit())
            .next()?;
        digits
            .parse::<usize>()
            .ok()?
            .checked_sub(variant.outputs.len())
    });
    numbers
        .filter_map(|input| position(&variant.inputs.get(input)?.expression))
        .collect()
}

fn our_order(variant: &Variant) -> Vec<usize> {
    let operands = variant.asm_operands();
    let asm = variant
        .asm_lines()
        .join(" ")
        .replace("{{", "")
        .replace("}}", "");
    let names = asm
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split('}').next());
    let argument = |name| {
        let operand = operands.iter().find(|operand| operand.name == name)?;
        let OperandValue::In { arg, .. } = &operand.value else {
            return None;
        };
        variant.args.iter().position(|it| it.name == *arg)
    };
    names.filter_map(argument).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
}

#[test]
fn a_wrong_line_of_the_spec_is_noticed_also_without_a_gpu() {
    let right = spec::load().unwrap();
    // Beyond `cuda::ptx` no header says what is right; there `exec_differential` executes the mutants.
    for mutant in MUTANTS.iter().filter(|mutant| !mutant.beyond) {
        assert_eq!(
            deviations(&right, mutant.functions),
            [""; 0],
            "{}",
            mutant.name
        );
        let noticed = deviations(&mutant.spec().unwrap(), mutant.functions);
        assert!(
            !noticed.is_empty(),
            "the mutant {} passes for right",
            mutant.name
        );
        println!("{}: {}", mutant.name, noticed[0]);
    }
}
