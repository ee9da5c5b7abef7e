//! `cargo xtask check` on PTX that was built before.

use std::process::{Command, Output};

/// Thread 0 fills a word of shared memory that all read; `BARRIER` stands between, or nothing.
const KERNEL: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n.shared .align 4 .u32 word;
.visible .entry broadcast(.param .u64 input, .param .u64 output, .param .u32 factor) {
    .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [input]; ld.param.u64 %rd2, [output]; ld.param.u32 %r3, [factor];
    mov.u32 %r1, %tid.x; setp.ne.u32 %p, %r1, 0; @%p bra $L1;
    ld.global.u32 %r2, [%rd1+4]; mul.lo.u32 %r2, %r2, %r3; st.shared.u32 [word], %r2;
$L1:
    BARRIER
    ld.shared.u32 %r4, [word]; mad.wide.u32 %rd3, %r1, 4, %rd2; st.global.u32 [%rd3], %r4;
    ret;
}";

fn check(barrier: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let ptx = folder.path().join("kernels.ptx");
    std::fs::write(&ptx, KERNEL.replace("BARRIER", barrier)).unwrap();
    std::fs::write(
        folder.path().join("job.toml"),
        "kernel = \"broadcast\"\nblock = [96]\narguments = [\"count:2\", \"new:384\", \"u32:5\"]\n",
    )
    .unwrap();
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("check")
        .arg("--ptx")
        .arg(&ptx)
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap()
}

const LAUNCH: [&str; 10] = [
    "--kernel",
    "broadcast",
    "--block",
    "96",
    "--arg",
    "count:2",
    "--arg",
    "new:384",
    "--arg",
    "u32:5",
];

#[test]
fn a_right_kernel_is_silent_under_every_schedule() {
    let output = check("bar.sync 0;", &LAUNCH);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(
        text.contains("100 of 100 schedules without a mistake"),
        "{text}"
    );
}

#[test]
fn a_missing_barrier_is_named_with_its_seed_also_from_a_file() {
    for arguments in [&LAUNCH[..], &["--job", "job.toml", "--schedules", "20"]] {
        let output = check("", arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success());
        assert!(text.contains("the first has the seed"), "{text}");
        assert!(text.contains("`broadcast`, PTX line"), "{text}");
    }
}

#[test]
fn all_schedules_are_counted_and_a_wrong_one_can_be_run_again() {
    let right = check(
        "bar.sync 0;",
        &[&LAUNCH[..], &["--schedules", "all"]].concat(),
    );
    let text = String::from_utf8_lossy(&right.stdout);
    assert!(right.status.success(), "{right:?}");
    assert!(text.contains("(all "), "{text}");
    let arguments = [&LAUNCH[..], &["--schedules", "all", "--limit", "50"]].concat();
    let wrong = check("", &arguments);
    let text = String::from_utf8_lossy(&wrong.stdout);
    assert!(!wrong.status.success());
    let named = text.split_once("--schedule ").unwrap().1;
    let schedule = named.split_once(')').unwrap().0;
    let again = check("", &[&LAUNCH[..], &["--schedule", schedule]].concat());
    let text = String::from_utf8_lossy(&again.stderr);
    assert!(text.contains("`broadcast`, PTX line"), "{text}");
}

#[test]
fn a_launch_that_does_not_fit_says_what_was_expected() {
    let output = check("", &["--kernel", "broadcast", "--arg", "u32:5"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        text.contains("takes parameters of [8, 8, 4] bytes, given are [4]"),
        "{text}"
    );
}
