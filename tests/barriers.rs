//! What the typed barriers do, on the CPU under many schedules, where every access and every arrival
//! is checked.

use std::sync::LazyLock;

use cuda_ptx_host::barriers::{self, Case};
use cuda_ptx_host::build::{self, Arch, KernelCrate};
use cuda_ptx_host::exec::Program;

const SCHEDULES: u64 = 30;

static PROGRAM: LazyLock<Program> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("barriers.ptx");
    let kernels = KernelCrate::new(barriers::manifest(), Arch::SM_90A)
        .linker(env!("CARGO_BIN_EXE_cuda-ptx-link"));
    build::build(&kernels, &out).unwrap();
    Program::parse(&std::fs::read_to_string(&out).unwrap()).unwrap()
});

fn run(case: Case, schedules: u64) {
    for seed in 0..schedules {
        let launches = barriers::run_on_cpu(&PROGRAM, case, 1000 * seed)
            .unwrap_or_else(|error| panic!("{case:?}: {error:#}"));
        assert!(launches > 0, "{case:?}");
    }
}

#[test]
fn all_threads_of_a_grid_meet_at_barriers_of_the_device_and_the_system() {
    run(Case::Grid, SCHEDULES);
}

#[test]
fn threads_of_a_grid_drop_out_one_after_another() {
    run(Case::GridDrop, SCHEDULES);
}

#[test]
fn a_completion_function_runs_once_in_a_phase_of_a_grid() {
    run(Case::GridTotal, SCHEDULES);
}

#[test]
fn blocks_of_a_cluster_wait_for_arrivals_from_one_another() {
    run(Case::Cluster, SCHEDULES);
}

#[test]
fn tests_and_limited_waits_say_whether_the_phase_is_complete() {
    run(Case::Answers, SCHEDULES);
}

#[test]
fn one_thread_arrives_for_all() {
    run(Case::OneForAll, SCHEDULES);
}

#[test]
fn memcpy_async_copies_any_size_at_any_alignment_and_nothing_else() {
    // One case is 185 launches.
    run(Case::Copies, 1);
}

#[test]
fn memcpy_async_does_not_overtake_stores() {
    run(Case::CopyOverStores, SCHEDULES);
}

#[test]
fn threads_fill_and_use_a_ring() {
    run(Case::RingOfThreads, SCHEDULES);
}

#[test]
fn the_copy_engine_fills_a_ring() {
    run(Case::RingOfCopies, SCHEDULES);
}
