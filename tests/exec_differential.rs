//! The differential scenarios on the CPU: what comes out must be what an H200 gave (`tests/golden`).
//!
//! While one works on some forms, `FORMS=cp_async` runs those of a family alone, `FORMS=mirror` those of `cuda::ptx`, and
//! `FORMS=b0003_redux_sync` those of a kernel; what the docs count is not compared then.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use cuda_ptx_host::build::Arch;
use cuda_ptx_host::differential::agreement::{self, Found};
use cuda_ptx_host::differential::form::Form;
use cuda_ptx_host::differential::golden::{Digest, Golden};
use cuda_ptx_host::differential::scenario::{self, Case, Word};
use cuda_ptx_host::differential::{Entry, Extent, MUTANTS, Plan, images};
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
                if recorded != Some(&digest) {
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

fn plan(arch: Arch) -> Plan<'static> {
    Plan {
        arch,
        extent: Extent::Sample,
        mutants: &[],
        linker: Some(env!("CARGO_BIN_EXE_cuda-ptx-link").as_ref()),
    }
}

fn parse(ptx: &Path) -> Program {
    Program::parse(&std::fs::read_to_string(ptx).unwrap()).unwrap()
}

/// The forms and their kernels, built once.
fn built() -> &'static images::Ptx {
    static BUILT: OnceLock<images::Ptx> = OnceLock::new();
    BUILT.get_or_init(|| {
        let beyond = MUTANTS.into_iter().filter(|mutant| mutant.beyond);
        let plan = Plan {
            mutants: &Vec::from_iter(beyond),
            ..plan(Arch::SM_90A)
        };
        images::ptx(plan, None).unwrap()
    })
}

/// What the H200 gave.
fn golden() -> &'static Golden {
    static GOLDEN: OnceLock<Golden> = OnceLock::new();
    GOLDEN.get_or_init(|| {
        let path = toolchain::workspace_root().join("tests/golden/h200.json");
        Golden::read(&path).unwrap()
    })
}

/// All forms that an H200 runs, executed once for both tests.
fn outcome() -> &'static Outcome {
    static OUTCOME: OnceLock<Outcome> = OnceLock::new();
    OUTCOME.get_or_init(|| {
        let images::Ptx {
            entries, kernels, ..
        } = built();
        let programs = kernels.iter().map(|(image, ptx)| (image, parse(ptx)));
        let programs: BTreeMap<_, _> = programs.collect();
        let golden = golden();
        let outcome = Mutex::new(Outcome::default());
        let mut jobs = Vec::new();
        for entry in entries {
            let Some(image) = entry.image.as_ref().filter(|_| is_wanted(&entry.form)) else {
                continue;
            };
            let recorded = golden.forms.get(&entry.form.kernel);
            let program = &programs[image];
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
    for table in [table(&outcome.lines), table_beyond(&outcome.beyond)] {
        check_docs(&table);
    }
}

/// The docs must have this table.
fn check_docs(table: &str) {
    let path = toolchain::workspace_root().join("docs/cpu-executor.md");
    let docs = std::fs::read_to_string(path).unwrap();
    assert!(
        docs.contains(table),
        "docs/cpu-executor.md counts otherwise than what was run:\n{table}"
    );
}

/// What an H200 lacks of `cvt`, with the same checks but for a GPU's outputs.
#[test]
fn conversions_of_later_gpus_give_what_the_isa_says_and_the_docs_count_them() {
    let arch: Arch = "sm_100a".parse().unwrap();
    let images::Ptx {
        entries, kernels, ..
    } = images::ptx(plan(arch), Some("convert")).unwrap();
    let program = parse(&kernels["convert"]);
    let (mut lines, mut wrong) = (BTreeMap::<String, Line>::new(), Vec::new());
    for entry in &entries {
        let reason = match &entry.reason {
            Some(reason) if reason.starts_with("needs ") => continue,
            Some(reason) => Some(reason.split(':').next().unwrap().to_owned()),
            None => program
                .executes(&entry.form.kernel)
                .err()
                .as_ref()
                .map(reason),
        };
        let line = lines.entry(arch.to_string()).or_default();
        if let Some(reason) = reason {
            *line.reasons.entry(reason).or_default() += 1;
            continue;
        }
        line.run += 1;
        if let Err(error) = run(&program, entry, 1) {
            wrong.push(format!("{}: {error:#}", entry.form));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let table = rows(
        "conversions of",
        lines.iter().map(|(name, line)| (name.as_str(), line)),
    );
    check_docs(&table);
}

#[test]
fn every_form_gives_what_the_h200_gave() {
    let Outcome { unlike_gpu, .. } = outcome();
    assert!(
        unlike_gpu.is_empty(),
        "{} forms are not as recorded; if their launches were changed, record again on a GPU:\n{}",
        unlike_gpu.len(),
        unlike_gpu.join("\n")
    );
}

/// A family, a kernel of it, and what stands in its instructions instead of what; without anything, the instruction is
/// left out. No kernel comes twice. There is none of `cache` and `pacing`, whose instructions change no result.
#[rustfmt::skip]
const WRONG: [[&str; 4]; 63] = [
    // What is left out, or done otherwise for several threads.
    ["barrier_cta", "b0000_barrier_cta_sync", "barrier.sync", ""],
    ["barrier_cta", "b0000_barrier_cta_arrive", "barrier.arrive", ""],
    ["barrier_cta", "b0000_barrier_cta_red_or", ".red.or", ".red.and"],
    ["warp_collective", "b0000_bar_warp_sync", "bar.warp.sync", ""],
    ["warp_collective", "b0000_vote_sync_all", ".all", ".any"],
    ["warp_collective", "b0000_vote_sync_any", ".any", ".all"],
    ["warp_collective", "b0000_vote_sync_uni", ".uni.pred", ".all.pred"],
    ["warp_collective", "b0000_vote_sync_ballot", "vote.sync.ballot.b32", ""],
    ["warp_collective", "b0000_match_any_sync", "match.any.sync.b32", ""],
    ["warp_collective", "b0002_redux_sync", ".max.u32", ".min.u32"],
    ["warp_collective", "b0003_redux_sync", ".max.s32", ".max.u32"],
    ["warp_collective", "b0008_redux_sync", ".xor.b32", ".or.b32"],
    ["cp_async", "b0000_cp_async_ca", "], 4;", "], 8;"],
    ["cp_async", "b0000_cp_async_ca_L2_128B_src_size", ", 4, %r2;", ", 4;"],
    ["cp_async", "b0000_cp_async_commit_group", ".commit_group", ""],
    ["cp_async", "b0000_cp_async_wait_group", "_group 2", "_group 3"],
    ["cp_async", "b0000_cp_async_wait_all", ".wait_all", ""],
    // Roundings, types, signs, operands in another order.
    ["convert", "b0000_cvt_rn_f16x2_f32", ".rn.", ".rz."],
    ["convert", "b0000_cvt_rz_bf16x2_f32", "%r4, %r5", "%r5, %r4"],
    ["convert", "b0000_cvt_rna_tf32_f32", ".rna.", ".rn."],
    ["convert", "b0000_cvt_rm_f16_f32", ".rm.", ".rp."],
    ["convert", "b0000_cvt_rp_bf16_f32", ".rp.", ".rm."],
    ["convert", "b0000_cvt_rn_relu_f16_f32", ".relu.", "."],
    ["convert", "b0000_cvt_rn_satfinite_bf16_f32", ".satfinite.", "."],
    ["convert", "b0000_cvt_rn_satfinite_e4m3x2_f32", ".e4m3x2.", ".e5m2x2."],
    ["convert", "b0000_cvt_rn_f16x2_e5m2x2", ".e5m2x2", ".e4m3x2"],
    ["convert", "b0000_cvt_pack_sat_s4_s32_b32", ".s4.", ".u4."],
    ["atom", "b0000_atom_cas", "%r3, %r4", "%r4, %r3"],
    ["atom", "b0000_atom_inc", ".inc.u32", ".add.u32"],
    ["atom", "b0000_atom_max", ".max.s32", ".max.u32"],
    ["atom", "b0000_atom_xor", ".xor.b32", ".or.b32"],
    ["atom", "b0000_red_add", "red.relaxed", ""],
    ["atom", "b0000_red_dec", ".dec.u32", ".inc.u32"],
    ["atom", "b0000_isspacep", "isspacep.global", "isspacep.shared"],
    // Layouts, types and signs of matrices, what is kept of a sum, what a sparse matrix has.
    ["mma", "b0000_movmatrix_m8n8_trans", "movmatrix.sync.aligned.m8n8.trans.b16", "mov.b32"],
    ["mma", "b0000_mma_sync_m8n8k4_row_col", ".row.col.", ".col.row."],
    ["mma", "b0000_mma_sync_m8n8k4_row_row", ".row.row.", ".row.col."],
    ["mma", "b0000_mma_sync_m16n8k16", ".f16.f16.", ".bf16.bf16."],
    ["mma", "b0000_mma_sync_m16n8k16_f64", "{%rd5, %rd6, %rd7,", "{%rd6, %rd5, %rd7,"],
    ["mma", "b0000_mma_sync_m16n8k32", ".e4m3.e4m3.", ".e5m2.e4m3."],
    ["mma", "b0000_mma_sync_m16n8k32_satfinite", ".satfinite.", "."],
    ["mma", "b0000_mma_sync_m16n8k64", ".s4.s4.", ".s4.u4."],
    ["mma", "b0000_mma_sync_m16n8k256_xor_popc", ".xor.popc", ".and.popc"],
    ["mma", "b0000_mma_sp_sync_m16n8k32", ", 1;", ", 0;"],
    ["mma", "b0000_mma_sp_sync_m16n8k8", ", 3;", ", 2;"],
    ["mma", "b0000_mma_sp_sync_m16n8k64", ".e4m3.e4m3.", ".e4m3.e5m2."],
    ["mma", "b0000_mma_sp_ordered_metadata_sync_m16n8k64_satfinite", ".satfinite.", "."],
    ["wgmma", "b0000_wgmma_mma_async", ".f16.f16 ", ".bf16.bf16 "],
    ["wgmma", "b0000_wgmma_mma_async_scaled", ", -1, 1, 0, 0;", ", 1, 1, 0, 0;"],
    ["wgmma", "b0000_wgmma_mma_async_transposed", ", -1, 1, 1, 0;", ", -1, 1, 0, 0;"],
    ["wgmma", "b0000_wgmma_mma_async_transposed_b", ", 1, -1, 1;", ", 1, -1, 0;"],
    ["wgmma", "b0000_wgmma_mma_async_satfinite", ".satfinite {", " {"],
    ["wgmma", "b0000_wgmma_mma_async_sp", ", 1, PRED", ", 0, PRED"],
    ["wgmma", "b0000_wgmma_mma_async_sp_scaled", ", 1, -1, 0, 0;", ", 1, 1, 0, 0;"],
    ["wgmma", "b0000_wgmma_mma_async_sp_transposed", ", 1, -1, 0, 1;", ", 1, -1, 0, 0;"],
    ["wgmma", "b0000_wgmma_mma_async_sp_transposed_b", ", -1, 1, 1;", ", 1, 1, 1;"],
    ["wgmma", "b0000_wgmma_mma_async_sp_satfinite", ".s8.s8.", ".s8.u8."],
    // Copies.
    ["cp_async_bulk", "b0000_cp_async_bulk_sem_scope", "cp.async.bulk.relaxed", ""],
    ["cp_async_bulk", "b0000_cp_async_bulk_ignore_oob_sem_scope", "%r13, %r14", "%r14, %r13"],
    ["cp_async_bulk_tensor", "b0000_cp_async_bulk_tensor_im2col", "{%r15, %r16, %r17}", "{%r15, %r17, %r16}"],
    ["cp_async_bulk_tensor", "b0000_cp_async_bulk_tensor_L2_cache_hint", "cp.async.bulk.tensor", ""],
    ["cp_reduce_async_bulk", "b0000_cp_reduce_async_bulk_sem_scope", ".add.u32", ".max.u32"],
    ["cp_reduce_async_bulk", "b0000_cp_reduce_async_bulk_L2_cache_hint", ".and.b32", ".or.b32"],
];

/// The text of an image's kernels with the wrong instructions of some.
fn with_mistakes(text: &str, rows: &[[&str; 4]]) -> String {
    let mut row = None;
    let line = |line: &str| {
        if let Some((_, entry)) = line.split_once(".entry ") {
            let kernel = entry.trim_end_matches('(');
            row = rows.iter().find(|[_, it, ..]| *it == kernel);
        }
        match row {
            Some([_, _, right, ""]) if line.contains(right) => String::new(),
            Some([_, _, right, wrong]) => line.replace(right, wrong),
            None => line.to_owned(),
        }
    };
    Vec::from_iter(text.lines().map(line)).join("\n")
}

#[test]
fn a_wrong_instruction_is_noticed() {
    let built = built();
    let entry = |kernel: &str| {
        let entry = built.entries.iter().find(|it| it.form.kernel == kernel);
        entry.unwrap_or_else(|| panic!("there is no {kernel}"))
    };
    let mut images = BTreeMap::<_, Vec<[&str; 4]>>::new();
    for row in WRONG.into_iter().filter(|[family, kernel, ..]| {
        filter().is_none_or(|wanted| wanted == *family || wanted == *kernel)
    }) {
        let image = entry(row[1]).image().unwrap();
        images.entry(image).or_default().push(row);
    }
    let mut passed = Vec::new();
    for (image, rows) in images {
        let text = std::fs::read_to_string(&built.kernels[image]).unwrap();
        let program = Program::parse(&with_mistakes(&text, &rows)).unwrap();
        for [_, kernel, right, wrong] in rows {
            if let Err(error) = program.executes(kernel) {
                panic!("{kernel} with `{wrong}` instead of `{right}`: {error:#}");
            }
            match run(&program, entry(kernel), 1) {
                Ok(_) => passed.push(format!("{kernel} with `{wrong}` instead of `{right}`")),
                Err(error) => println!("{kernel}: {error:#}"),
            }
        }
    }
    assert!(
        passed.is_empty(),
        "these pass for right:\n{}",
        passed.join("\n")
    );
}

/// Beyond `cuda::ptx`; of its mirror, `tests/differential.rs` compares the spec with the headers.
#[test]
fn a_wrong_line_of_the_spec_is_noticed() {
    let built = built();
    for mutant in MUTANTS.iter().filter(|mutant| mutant.beyond) {
        let program = parse(&built.mutants[mutant.name]);
        let entries = built.entries.iter().filter(|it| it.reason.is_none());
        let mut runs = entries
            .filter(|entry| mutant.functions.contains(&entry.form.function.as_str()))
            .map(|entry| run(&program, entry, 1).map_err(|error| (entry, error)));
        let noticed = runs.find_map(Result::err);
        let (entry, error) =
            noticed.unwrap_or_else(|| panic!("the mutant {} passes for right", mutant.name));
        println!("{}: {}: {error:#}", mutant.name, entry.form);
    }
}
