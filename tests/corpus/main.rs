//! Kernels that invite the compiler to duplicate, merge, move or drop what must stay where it is:
//! `ptx/corpus` through the link stage, in PTX and in SASS, at every optimisation level; and what the
//! kernels compute, on the CPU.
//!
//! Two controls show that these kernels are hard: built without the marks of the link stage, or by
//! rustc alone, many of them come out wrong. `broken.md` lists what goes wrong today.

mod broken;
mod expectation;
mod images;
mod operations;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::LazyLock;

use cuda_ptx_host::build::Arch;
use cuda_ptx_host::corpus::Executable;
use cuda_ptx_host::inspect::flow::Flow;
use cuda_ptx_host::inspect::ptx;
use cuda_ptx_host::toolchain;

use broken::Facts;
use expectation::{Code, Fault, Kernel, sm_90a, sm_100a};

const RECORDED: &str = include_str!("broken.md");

/// The kernels whose PTX is not as expected.
fn faults(corpus: &[Kernel], module: &ptx::Module, level: char) -> Vec<(String, Fault)> {
    let code = match level {
        '0' => Code::UnoptimisedPtx,
        _ => Code::Ptx,
    };
    let check = |kernel: &Kernel| {
        let flow = Flow::of_ptx(module, &kernel.name).unwrap();
        kernel.check(&flow, code).err()
    };
    corpus
        .iter()
        .filter_map(|kernel| Some((kernel.name.clone(), check(kernel)?)))
        .collect()
}

/// An architecture that not every LLVM knows is looked at with its own kernels only.
const SM_100A: Arch = Arch {
    number: 100,
    suffix: Some('a'),
};

/// How many schedules the CPU executes each kernel under.
const SCHEDULES: u64 = 3;

fn hold_at(level: char) {
    let hopper = images::linked(Arch::SM_90A, level).unwrap();
    let blackwell = images::linked(SM_100A, level).unwrap();
    let mut message = places(Arch::SM_90A, &hopper, &sm_90a(), level);
    message += &places(SM_100A, &blackwell, &sm_100a(), level);
    // Debug code brings tables of functions, which the executor does not know.
    if level != '0' {
        message += &results(&hopper);
    }
    assert!(message.is_empty(), "at level {level}:\n{message}");
}

/// What the CPU computes that was not written.
fn results(ptx: &str) -> String {
    let executable = Executable::of_ptx(ptx).unwrap();
    assert!(executable.cases().len() >= 300);
    let mut message = String::new();
    for case in executable.cases() {
        for seed in 0..SCHEDULES {
            if let Err(error) = executable.run(case, seed) {
                let _ = writeln!(message, "{}: {error:#}\n", case.kernel);
            }
        }
    }
    message
}

/// Which operations are not in their places, with the blocks in question.
fn places(arch: Arch, text: &str, corpus: &[Kernel], level: char) -> String {
    let ptx = parse(text);
    let sass = images::assembled(arch, text).unwrap();
    let built: BTreeSet<_> = ptx.kernels.iter().map(|kernel| &kernel.name).collect();
    let named: BTreeSet<_> = corpus.iter().map(|kernel| &kernel.name).collect();
    assert_eq!(
        built, named,
        "each kernel needs its line `expect:` or `order:`"
    );

    let mut message = String::new();
    for (kernel, fault) in faults(corpus, &ptx, level) {
        let _ = writeln!(message, "{kernel}, PTX: {}\n{}", fault.what, fault.blocks);
    }
    // In debug builds ptxas optimises nothing (`-g`), and the PTX says what is executed. Their SASS cannot be read
    // the same way: `_syncthreads` and its like are functions that a kernel calls, and accesses to
    // shared memory are generic.
    for kernel in corpus.iter().filter(|_| level != '0') {
        let function = sass.iter().find(|function| function.name == kernel.name);
        let flow = Flow::of_sass(function.unwrap()).unwrap();
        if let Err(fault) = kernel.check(&flow, Code::Sass) {
            let _ = writeln!(
                message,
                "{}, SASS: {}\n{}",
                kernel.name, fault.what, fault.blocks
            );
        }
    }
    message
}

#[test]
fn kernels_are_as_written_in_debug_builds() {
    hold_at('0');
}

#[test]
fn kernels_are_as_written_at_level_1() {
    hold_at('1');
}

#[test]
fn kernels_are_as_written_at_level_2() {
    hold_at('2');
}

#[test]
fn kernels_are_as_written_at_level_3() {
    hold_at('3');
}

#[test]
fn kernels_are_as_written_at_level_s() {
    hold_at('s');
}

#[test]
fn kernels_are_as_written_at_level_z() {
    hold_at('z');
}

#[test]
fn without_the_marks_barriers_are_cloned_and_merged() {
    let faults = faults(&sm_90a(), &parse(unmarked()), '3');
    let what_became_of = |name: &str| {
        let fault = faults.iter().find(|(kernel, _)| kernel == name);
        fault.map(|(_, fault)| fault.what.as_str())
    };
    assert_eq!(
        what_became_of("between_ifs_bar_sync"),
        Some("2 instead of 1")
    );
    assert_eq!(
        what_became_of("arms_begin_alike_bar_sync"),
        Some("1 instead of 2")
    );
    // LLVM's own intrinsic needs no mark.
    assert_eq!(what_became_of("between_ifs_syncthreads"), None);
}

#[test]
fn without_the_marks_cloned_barriers_do_not_meet() {
    let executable = Executable::of_ptx(unmarked()).unwrap();
    let run = |name: &str| {
        let mut cases = executable.cases().iter();
        let case = cases.find(|case| case.kernel == name).unwrap();
        executable.run(case, 0)
    };
    let error = format!("{:#}", run("between_ifs_bar_sync").unwrap_err());
    assert!(error.contains("barrier divergence"), "{error}");
    run("between_ifs_syncthreads").unwrap();
    // Since sm_70, lanes meet at a warp barrier wherever in the code each of them is.
    run("between_ifs_bar_warp_sync").unwrap();
}

/// What goes wrong with the kernels for one architecture.
fn facts(arch: Arch, corpus: &[Kernel]) -> Facts {
    let mut facts = Facts::new();
    let unmarked = images::unmarked(arch, '3').unwrap();
    broken::add(&mut facts, 0, &faults(corpus, &parse(&unmarked), '3'));
    for (column, level) in (1..).zip(['1', '2', '3', 's', 'z']) {
        let module = parse(&images::plain(arch, level).unwrap());
        broken::add(&mut facts, column, &faults(corpus, &module, level));
    }
    let debug = parse(&images::plain(arch, '0').unwrap());
    let debug = faults(corpus, &debug, '0');
    assert!(
        debug.is_empty(),
        "{arch}: debug builds go wrong too: {debug:?}"
    );
    facts
}

#[test]
fn what_goes_wrong_without_the_link_stage_is_as_recorded() {
    let tools = toolchain::device().unwrap();
    let versions = format!(
        "rustc {}, LLVM {}.",
        tools.rustc_version, tools.llvm_version
    );
    let mut report = broken::introduction(&versions);
    for (arch, corpus) in [(Arch::SM_90A, sm_90a()), (SM_100A, sm_100a())] {
        report += &broken::table(&arch.to_string(), &corpus, &facts(arch, &corpus));
    }
    if report == RECORDED {
        return;
    }
    let fresh = toolchain::target_dir().join("broken.md");
    std::fs::write(&fresh, &report).unwrap();
    let changes = format!(
        "tests/corpus/broken.md is no longer what happens; {} is. If upstream has changed, copy it.",
        fresh.display()
    );
    // The tables are those of one toolchain; another may be better or worse.
    if RECORDED.contains(&versions) {
        panic!("{changes}");
    }
    eprintln!("{versions} {changes}");
}

/// The corpus built without marks: PTX.
fn unmarked() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| images::unmarked(Arch::SM_90A, '3').unwrap());
    &TEXT
}

fn parse(text: &str) -> ptx::Module {
    ptx::Module::parse(text).unwrap()
}
