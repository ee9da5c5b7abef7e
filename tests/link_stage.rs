//! The link stage on IR fixtures, from bitcode to PTX, at every optimisation level.
//!
//! For what the stage prevents, a second test shows that LLVM does it without the stage: a fixture
//! that LLVM would leave alone proves nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use cuda_ptx_host::link::{self, Arguments, Header};
use cuda_ptx_host::toolchain;

const LEVELS: [char; 6] = ['0', '1', '2', '3', 's', 'z'];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/fixtures/link")
        .join(name)
}

/// What the link stage makes of a fixture.
fn ptx(name: &str, opt_level: char) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let output = folder.path().join("out.ptx");
    let arguments = Arguments {
        inputs: vec![fixture(name)],
        exported: vec!["kernel".into()],
        output: output.clone(),
        target_cpu: "sm_90a".into(),
        target_features: "+ptx86".into(),
        opt_level,
        header: Header::default(),
    };
    link::link(&arguments, &toolchain::llvm()?)?;
    Ok(std::fs::read_to_string(output)?)
}

/// What plain `opt -O3` makes of a fixture: LLVM IR.
fn plain_opt(name: &str) -> String {
    let output = Command::new(toolchain::llvm().unwrap().opt)
        .args(["-S", "-O3", "-mtriple=nvptx64-nvidia-cuda", "-mcpu=sm_90a"])
        .arg(fixture(name))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_barrier_between_divergent_branches_stays_single() {
    for name in ["barrier_between_branches.ll", "barrier_in_helper.ll"] {
        for level in LEVELS {
            let ptx = ptx(name, level).unwrap();
            assert_eq!(
                ptx.matches("bar.sync").count(),
                1,
                "{name} at -O{level}:\n{ptx}"
            );
            let calls = ptx.matches("call.uni").count() + ptx.matches("call ").count();
            assert!(
                calls <= 1,
                "{name} at -O{level} calls the helper {calls} times:\n{ptx}"
            );
        }
    }
}

#[test]
fn equal_barriers_in_two_arms_stay_two() {
    for level in LEVELS {
        let ptx = ptx("barrier_in_both_arms.ll", level).unwrap();
        assert_eq!(
            ptx.matches("bar.warp.sync").count(),
            2,
            "at -O{level}:\n{ptx}"
        );
    }
}

#[test]
fn llvm_alone_clones_and_merges_these_barriers() {
    assert_eq!(
        plain_opt("barrier_between_branches.ll")
            .matches("bar.sync")
            .count(),
        2
    );
    assert_eq!(
        plain_opt("barrier_in_both_arms.ll")
            .matches("bar.warp.sync")
            .count(),
        1
    );
}

#[test]
fn addresses_of_shared_objects_fold() {
    for level in ['1', '2', '3', 's', 'z'] {
        let ptx = ptx("shared_addresses.ll", level).unwrap();
        assert!(
            !ptx.contains("cvta.to.shared") && !ptx.contains("cvta.shared"),
            "at -O{level}:\n{ptx}"
        );
        assert!(ptx.contains("ld.shared.b64"), "at -O{level}:\n{ptx}");
        assert!(
            ptx.contains(".shared .align 8 .b8 BARRIERS[64]"),
            "at -O{level}:\n{ptx}"
        );
    }
}

#[test]
fn addresses_in_the_cluster_stay_addresses() {
    for level in ['1', '2', '3', 's', 'z'] {
        let ptx = ptx("remote_addresses.ll", level).unwrap();
        assert!(
            !ptx.contains("cvta") && ptx.contains("mbarrier.arrive.shared::cluster"),
            "at -O{level}:\n{ptx}"
        );
    }
}

#[test]
fn unoptimised_code_converts_addresses_at_run_time() {
    let ptx = ptx("shared_addresses.ll", '0').unwrap();
    assert!(
        ptx.contains(".shared .align 8 .b8 BARRIERS[64]") && !ptx.contains("__cuda_ptx"),
        "{ptx}"
    );
}

#[test]
fn a_choice_of_shared_objects_becomes_no_global_table() {
    for level in LEVELS {
        let ptx = ptx("choice_of_shared.ll", level).unwrap();
        assert!(!ptx.contains(".global "), "at -O{level}:\n{ptx}");
    }
    assert!(
        plain_opt("choice_of_shared.ll").contains("@switch.table"),
        "LLVM no longer builds the table"
    );
}

#[test]
fn an_undefined_function_is_named() {
    let error = ptx("unknown_function.ll", '3').unwrap_err().to_string();
    assert!(error.contains("somebody_else"), "{error}");
}
