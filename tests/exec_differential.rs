//! The differential scenarios on the CPU: what comes out must be what an H200 gave (`tests/golden`).
//!
//! While one works on some forms, `FORMS=cp_async` runs those of a family alone, `FORMS=mirror` those of `cuda::ptx`, and
//! `FORMS=b0003_redux_sync` those of a kernel; what the docs count is not compared then.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, OnceLock};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use cuda_ptx_host::build::Arch;
use cuda_ptx_host::differential::agreement::{self, Found};
use cuda_ptx_host::differential::form::Form;
use cuda_ptx_host::differential::golden::{Digest, Golden};
use cuda_ptx_host::differential::scenario::{self, Case, Word};
use cuda_ptx_host::differential::{Entry, Plan, images};
use cuda_ptx_host::exec::{Check, Grid, Memory, Options, OutOfBounds, Program, Tensor, Violation};
use cuda_ptx_host::toolchain;

/// What the functions of the rows of the table begin with; the first that fits counts.
const FAMILIES: [&str; 24] = [
    "mbarrier_",
    "cp_async_mbarrier_arrive",
    "cp_reduce_async_bulk_tensor",
    "cp_reduce_async_bulk",
    "cp_async_bulk_tensor",
    "cp_async_bulk_prefetch",
    "cp_async_bulk",
    "tensormap_",
    "st_async",
    "red_async",
    "barrier_cluster",
    "getctarank",
    "fence",
    "ldmatrix",
    "stmatrix",
    "ld",
    "st",
    "prefetch",
    "shfl_sync",
    "elect_sync",
    "get_sreg",
    "setmaxnreg",
    "prmt",
    "",
];

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let words = bytes.chunks_exact(8);
    words.map(|word| u64::from_le_bytes(word.try_into().unwrap()))
}

fn describe(tensor: &scenario::Tensor, memory: u64) -> Tensor {
    Tensor {
        data_type: tensor.data_type,
        address: memory + tensor.at,
        dims: tensor.dims.clone(),
        strides: tensor.strides.clone(),
        tile: tensor.tile.clone(),
        columns: tensor.columns.clone(),
        steps: tensor.steps.clone(),
        interleave: tensor.interleave,
        swizzle: tensor.swizzle,
        out_of_bounds: match tensor.nan {
            true => OutOfBounds::Nan,
            false => OutOfBounds::Zero,
        },
    }
}

/// Executes one launch; gives what came out, and the words that were to.
fn launch(program: &Program, kernel: &str, case: &Case) -> Result<(Found, Vec<Word>)> {
    let mut memory = Memory::new();
    let input = memory.upload(&bytes(&case.input));
    let output = memory.upload(&bytes(&case.blank_output()));
    let global = memory.upload(&case.memory);
    let buffers = [input, output, global].map(|it| it.address().to_le_bytes().to_vec());
    let map = |tensor| describe(tensor, global.address()).encode();
    let mut arguments = Vec::from(buffers);
    arguments.extend(case.tensor.as_ref().map(|tensor| map(tensor).to_vec()));
    let grid = Grid {
        grid: case.launch.grid,
        block: case.launch.block,
        shared_bytes: case.launch.shared_bytes,
        cluster: case.launch.cluster,
    };
    program.run(kernel, &grid, &arguments, &mut memory, &Options::default())?;
    let mut expected = case.expected.output.clone();
    if let (Some(before), Some(of_map)) = (&case.tensor, &case.expected.map) {
        // Fields that the replacement makes meaningless may be anything.
        let (before, after) = (map(before), map(&of_map.tensor));
        let words = words(&before).zip(words(&after));
        for (expected, (before, after)) in expected[of_map.at..].iter_mut().zip(words) {
            *expected = Word::Masked(after, !(before ^ after));
        }
    }
    let found = Found {
        output: words(memory.download(output)).collect(),
        memory: memory.download(global).to_vec(),
    };
    Ok((found, expected))
}

/// Runs every case of a form; gives the number of launches, and what came out.
fn run(program: &Program, entry: &Entry, seed: u64) -> Result<(u64, Digest)> {
    let scenario = scenario::of(&entry.form).map_err(anyhow::Error::msg)?;
    let mut digest = Digest::new(seed);
    let mut launches = 0;
    for case in (scenario.cases)(seed) {
        launches += 1;
        let run = launch(program, &entry.form.kernel, &case);
        if case.expected.fails {
            let violation = run.map(drop).unwrap_err().downcast::<Violation>()?;
            ensure!(violation.check == Check::Trap, "{}: {violation}", case.what);
            continue;
        }
        let (found, expected) = run.with_context(|| case.what.clone())?;
        if let Err(difference) = agreement::with_isa(&expected, &found, &case) {
            bail!("{}: {difference}", case.what);
        }
        digest.add(&case, &found);
    }
    Ok((launches, digest))
}

/// What became of the forms of a family.
#[derive(Default)]
struct Line {
    run: u64,
    /// Forms that are not run, by the reason.
    reasons: BTreeMap<String, u64>,
}

/// What became of all forms.
#[derive(Default)]
struct Outcome {
    lines: BTreeMap<usize, Line>,
    /// Those beyond `cuda::ptx`, by family.
    beyond: BTreeMap<String, Line>,
    launches: u64,
    /// Kernels of forms beyond `cuda::ptx` of which nothing is recorded yet.
    not_recorded: Vec<String>,
    /// Launches that did not give what the ISA says, and forms that did not give what was recorded.
    wrong: Vec<String>,
    unlike_gpu: Vec<String>,
}

impl Outcome {
    /// The line that counts the form.
    fn line(&mut self, form: &Form) -> &mut Line {
        if let Some(family) = &form.family {
            return self.beyond.entry(family.clone()).or_default();
        }
        let family = FAMILIES.iter().position(|it| form.function.starts_with(it));
        self.lines.entry(family.unwrap()).or_default()
    }

    fn add(&mut self, entry: &Entry, recorded: Option<&Digest>, run: Result<(u64, Digest)>) {
        let form = format!("{} ({})", entry.form.kernel, entry.form);
        match run {
            Err(error) => self.wrong.push(format!("{form}: {error:#}")),
            Ok((launches, digest)) => {
                self.launches += launches;
                if recorded.is_none() && entry.form.is_beyond() {
                    self.not_recorded.push(entry.form.kernel.clone());
                } else if recorded != Some(&digest) {
                    let what = format!("{form}: the GPU gave {recorded:?}, the CPU {digest:?}");
                    self.unlike_gpu.push(what);
                }
            }
        }
    }
}

/// The reason without the kernel and its line.
fn reason(error: &anyhow::Error) -> String {
    let text = error.to_string();
    let reason = text.rsplit_once(" is not executed: ");
    reason.map_or(text.clone(), |(_, reason)| reason.to_owned())
}

fn rows<'a>(what: &str, lines: impl Iterator<Item = (&'a str, &'a Line)>) -> String {
    let mut text = format!("| {what} | forms run | not run |\n|---|---|---|\n");
    for (name, line) in lines {
        let reasons = line.reasons.iter();
        let reasons = reasons.map(|(reason, count)| format!("{count}: {reason}"));
        let reasons = Vec::from_iter(reasons).join("; ");
        writeln!(text, "| {name} | {} | {reasons} |", line.run).unwrap();
    }
    text
}

fn table(lines: &BTreeMap<usize, Line>) -> String {
    let name = |family: &usize| match FAMILIES[*family] {
        "" => "others".to_owned(),
        name => format!("`{}…`", name.trim_end_matches('_')),
    };
    let named = Vec::from_iter(lines.iter().map(|(family, line)| (name(family), line)));
    let mut text = rows(
        "functions",
        named.iter().map(|(name, line)| (name.as_str(), *line)),
    );
    let sum = |f: fn(&Line) -> u64| lines.values().map(f).sum::<u64>();
    let not_run = sum(|line| line.reasons.values().sum());
    writeln!(text, "| all | {} | {not_run} |", sum(|line| line.run)).unwrap();
    text
}

fn table_beyond(lines: &BTreeMap<String, Line>) -> String {
    let named = Vec::from_iter(lines.iter().map(|(name, line)| (format!("`{name}`"), line)));
    rows(
        "family",
        named.iter().map(|(name, line)| (name.as_str(), *line)),
    )
}

/// The forms that are asked for, if not all are.
fn filter() -> Option<String> {
    std::env::var("FORMS").ok()
}

fn is_wanted(form: &Form) -> bool {
    let family = form.family.as_deref().unwrap_or("mirror");
    filter().is_none_or(|wanted| wanted == family || wanted == form.kernel)
}

/// The forms and their kernels, built once.
fn built() -> &'static images::Ptx {
    static BUILT: OnceLock<images::Ptx> = OnceLock::new();
    BUILT.get_or_init(|| {
        let plan = Plan {
            arch: Arch::SM_90A,
            mutants: &[],
            linker: Some(env!("CARGO_BIN_EXE_cuda-ptx-link").as_ref()),
        };
        images::ptx(plan).unwrap()
    })
}

/// All forms that an H200 runs, executed once for both tests.
fn outcome() -> &'static Outcome {
    static OUTCOME: OnceLock<Outcome> = OnceLock::new();
    OUTCOME.get_or_init(|| {
        let images::Ptx { entries, kernels } = built();
        let parse = |ptx| Program::parse(&std::fs::read_to_string(ptx).unwrap()).unwrap();
        let programs = kernels.iter().map(|(family, ptx)| (family, parse(ptx)));
        let programs: BTreeMap<_, _> = programs.collect();
        let path = toolchain::workspace_root().join("tests/golden/h200.json");
        let golden = Golden::read(&path).unwrap();
        let outcome = Mutex::new(Outcome::default());
        let mut jobs = Vec::new();
        for entry in entries {
            if entry.reason.is_some() || !is_wanted(&entry.form) {
                continue;
            }
            let recorded = golden.forms.get(&entry.form.kernel);
            let program = &programs[&entry.form.family];
            let mut outcome = outcome.lock().unwrap();
            let line = outcome.line(&entry.form);
            match program.executes(&entry.form.kernel) {
                Ok(()) => {
                    line.run += 1;
                    jobs.push((program, entry, recorded));
                }
                Err(error) => *line.reasons.entry(reason(&error)).or_default() += 1,
            }
        }
        let jobs = Mutex::new(jobs);
        let take = || jobs.lock().unwrap().pop();
        let work = || {
            while let Some((program, entry, recorded)) = take() {
                let seed = recorded.map_or(1, |recorded| recorded.seed);
                let run = run(program, entry, seed);
                outcome.lock().unwrap().add(entry, recorded, run);
            }
        };
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(work);
            }
        });
        outcome.into_inner().unwrap()
    })
}

#[test]
fn every_launch_gives_what_the_isa_says_and_the_docs_count_the_forms() {
    let outcome = outcome();
    assert!(outcome.wrong.is_empty(), "{}", outcome.wrong.join("\n"));
    println!("{} launches on the CPU", outcome.launches);
    if filter().is_some() {
        return;
    }
    let path = toolchain::workspace_root().join("docs/cpu-executor.md");
    let docs = std::fs::read_to_string(path).unwrap();
    for table in [table(&outcome.lines), table_beyond(&outcome.beyond)] {
        assert!(
            docs.contains(&table),
            "docs/cpu-executor.md counts otherwise than what was run:\n{table}"
        );
    }
}

#[test]
fn every_form_gives_what_the_h200_gave() {
    let Outcome {
        unlike_gpu,
        not_recorded,
        ..
    } = outcome();
    println!(
        "{} forms are not yet recorded: {}",
        not_recorded.len(),
        not_recorded.join(", ")
    );
    assert!(
        unlike_gpu.is_empty(),
        "{} forms are not as recorded; if their launches were changed, record again on a GPU:\n{}",
        unlike_gpu.len(),
        unlike_gpu.join("\n")
    );
}

/// A family, a kernel of it, and what stands in an instruction instead of what; without anything, the instruction is
/// left out.
const WRONG: [[&str; 4]; 10] = [
    ["barrier_cta", "b0000_barrier_cta_sync", "barrier.sync", ""],
    [
        "barrier_cta",
        "b0000_barrier_cta_arrive",
        "barrier.arrive",
        "",
    ],
    [
        "barrier_cta",
        "b0000_barrier_cta_red_or",
        ".red.or",
        ".red.and",
    ],
    [
        "warp_collective",
        "b0000_bar_warp_sync",
        "bar.warp.sync",
        "",
    ],
    ["warp_collective", "b0000_vote_sync_all", ".all", ".any"],
    [
        "warp_collective",
        "b0002_redux_sync",
        ".max.u32",
        ".min.u32",
    ],
    ["cp_async", "b0000_cp_async_ca", "], 4;", "], 8;"],
    [
        "cp_async",
        "b0000_cp_async_commit_group",
        ".commit_group",
        "",
    ],
    [
        "cp_async",
        "b0000_cp_async_wait_group",
        "_group 2",
        "_group 3",
    ],
    ["cp_async", "b0000_cp_async_wait_all", ".wait_all", ""],
];

#[test]
fn a_wrong_instruction_is_noticed() {
    let built = built();
    for [family, kernel, right, wrong] in WRONG {
        let entry = built.entries.iter().find(|it| it.form.kernel == kernel);
        let entry = entry.unwrap_or_else(|| panic!("there is no {kernel}"));
        let text = std::fs::read_to_string(&built.kernels[&Some(family.to_owned())]).unwrap();
        let change = |line: &str| match (line.contains(right), wrong) {
            (true, "") => String::new(),
            _ => line.replace(right, wrong),
        };
        let changed = Vec::from_iter(text.lines().map(change)).join("\n");
        let program = Program::parse(&changed).unwrap();
        program.executes(kernel).unwrap();
        match run(&program, entry, 1) {
            Ok(_) => panic!("{kernel} with `{wrong}` instead of `{right}` passes for right"),
            Err(error) => println!("{kernel}: {error:#}"),
        }
    }
}
