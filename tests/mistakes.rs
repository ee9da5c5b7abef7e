//! Every mistake of `ptx/mistakes` is found by name, in its line, and every correction is silent.

use std::path::Path;
use std::thread;

use cuda_ptx_host::build::{self, Arch, KernelCrate};
use cuda_ptx_host::exec::{Check, Grid, Memory, Options, Program, Violation};
use cuda_ptx_host::toolchain;

/// Schedules under which a mistake is looked for.
const SCHEDULES: u64 = 20;
/// Schedules under which a correction must be silent.
const SILENT_SCHEDULES: u64 = 200;

/// A mistake: its kernel, the file with it, how it is launched (CTAs, CTAs of a cluster, threads),
/// what it may be called, and words of the message.
struct Row(
    &'static str,
    &'static str,
    (u32, u32, u32),
    &'static [Check],
    &'static str,
);

#[rustfmt::skip]
const ROWS: [Row; 31] = [
    Row("early_return", "arrivals.rs", (1, 1, 64), &[Check::Deadlock], "1 of 64 arrivals"),
    Row("count_high", "arrivals.rs", (1, 1, 64), &[Check::Deadlock], "1 of 65 arrivals"),
    Row("lanes_arrive", "arrivals.rs", (1, 1, 32), &[Check::StalePhase], "of phase"),
    Row("over_arrival", "arrivals.rs", (1, 1, 32), &[Check::ArrivalCount], "found 33"),
    Row("count_zero", "arrivals.rs", (1, 1, 32), &[Check::ArrivalCount], "found 0"),
    Row("drop_once", "arrivals.rs", (1, 1, 64), &[Check::Drop], "dropped out"),
    Row("unsynced_init", "arrivals.rs", (1, 1, 96), &[Check::Unpublished, Check::BarrierState], "initialis"),
    Row("reinit", "arrivals.rs", (1, 1, 64), &[Check::Reinitialised], "mbarrier.inval"),
    Row("use_after_inval", "arrivals.rs", (1, 1, 64), &[Check::BarrierState], "invalidated"),
    Row("barrier_as_data", "arrivals.rs", (1, 1, 64), &[Check::BarrierState], "valid mbarrier"),
    Row("divergent_sync", "arrivals.rs", (1, 1, 32), &[Check::Divergence], "same instruction"),
    Row("remote_unsynced", "arrivals.rs", (2, 2, 32), &[Check::Unpublished, Check::BarrierState], "initialis"),
    Row("remote_unfenced", "arrivals.rs", (2, 2, 32), &[Check::Unpublished], "fence.mbarrier_init"),
    Row("first_parity", "phases.rs", (1, 1, 64), &[Check::BulkBuffer, Check::Uninitialised], "copy|written"),
    Row("empty_parity", "phases.rs", (1, 1, 96), &[Check::Deadlock], "missing"),
    Row("parity_lag", "phases.rs", (1, 1, 64), &[Check::Deadlock], "more than one phase behind"),
    Row("stale_state", "phases.rs", (1, 1, 64), &[Check::StalePhase], "phase 0"),
    Row("foreign_state", "phases.rs", (1, 1, 64), &[Check::StalePhase], "returned"),
    Row("endless_poll", "phases.rs", (1, 1, 64), &[Check::Deadlock], "1 of 64 arrivals"),
    Row("early_read", "copies.rs", (1, 1, 64), &[Check::BulkBuffer, Check::Uninitialised], "copy|written"),
    Row("early_refill", "copies.rs", (1, 1, 64), &[Check::BulkBuffer], "copy"),
    Row("bytes_missing", "copies.rs", (1, 1, 64), &[Check::Deadlock], "256 bytes"),
    Row("too_many_bytes", "copies.rs", (1, 1, 64), &[Check::TransactionCount], "1048576"),
    Row("misaligned", "copies.rs", (1, 1, 64), &[Check::Alignment], "16 bytes"),
    Row("bad_size", "copies.rs", (1, 1, 64), &[Check::Size], "found 100"),
    Row("past_end", "copies.rs", (1, 1, 64), &[Check::OutOfBounds], "16384"),
    Row("no_proxy_fence", "copies.rs", (1, 1, 64), &[Check::ProxyFence], "fence.proxy.async"),
    Row("early_fence", "copies.rs", (1, 1, 64), &[Check::ProxyFence], "fence.proxy.async"),
    Row("source_reused", "copies.rs", (1, 1, 64), &[Check::BulkBuffer], "copy"),
    Row("early_exit_of_copy", "copies.rs", (1, 1, 64), &[Check::ExitedCta], "before the threads"),
    Row("multicast", "copies.rs", (2, 2, 64), &[Check::Deadlock], "missing"),
];

#[rustfmt::skip]
const MEMORY_ROWS: [Row; 6] = [
    Row("unsynced_read", "memory.rs", (1, 1, 64), &[Check::Race, Check::Uninitialised], "barrier|written"),
    Row("shared_element", "memory.rs", (3, 1, 32), &[Check::Race], "cluster"),
    Row("unwritten", "memory.rs", (1, 1, 64), &[Check::Uninitialised], "nobody wrote"),
    Row("store_past_end", "memory.rs", (1, 1, 64), &[Check::OutOfBounds], "16384"),
    Row("odd_vector", "memory.rs", (1, 1, 32), &[Check::Alignment], "8 bytes"),
    Row("left_alone", "memory.rs", (2, 2, 64), &[Check::ExitedCta], "rank 1"),
];

#[rustfmt::skip]
const PRODUCT_ROWS: [Row; 5] = [
    Row("early_sums", "products.rs", (1, 1, 128), &[Check::MatrixRegisters], "wgmma.wait_group"),
    Row("unfenced_sums", "products.rs", (1, 1, 128), &[Check::MatrixFence], "wgmma.fence"),
    Row("matrix_overwritten", "products.rs", (1, 1, 128), &[Check::MatrixBuffer], "this write"),
    Row("unfenced_matrix", "products.rs", (1, 1, 128), &[Check::ProxyFence], "fence.proxy.async"),
    Row("warps_apart", "products.rs", (1, 1, 128), &[Check::Divergence], "descriptors"),
];

impl Row {
    fn run(&self, program: &Program, suffix: &str, seed: u64) -> Result<(), Violation> {
        let (ctas, cluster, threads) = self.2;
        let mut grid = Grid::new([ctas, 1, 1], [threads, 1, 1]);
        grid.cluster = (cluster > 1).then_some([cluster, 1, 1]);
        let mut memory = Memory::new();
        let input: Vec<u8> = (0..4096u32).flat_map(u32::to_le_bytes).collect();
        let buffers = [memory.upload(&input), memory.upload(&vec![0xee; 4 * 4096])];
        let arguments = buffers.map(|it| it.address().to_le_bytes().to_vec());
        let options = Options {
            seed,
            ..Options::default()
        };
        let kernel = format!("{}{suffix}", self.0);
        match program.run(&kernel, &grid, &arguments, &mut memory, &options) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.downcast().unwrap()),
        }
    }

    /// Finds the mistake, and nothing else, under one schedule at least.
    fn find(&self, program: &Program) -> String {
        let Row(name, file, _, checks, words) = self;
        let found = (0..SCHEDULES).filter_map(|seed| self.run(program, "", seed).err());
        let found: Vec<Violation> = found.collect();
        assert!(!found.is_empty(), "{name}: not found");
        for violation in &found {
            assert!(checks.contains(&violation.check), "{name}: {violation}");
            let says = words.split('|').any(|it| violation.message.contains(it));
            assert!(says, "{name}: expected `{words}` in: {violation}");
            let of_row = |(source, _): &(String, u32)| Path::new(source).ends_with(file);
            let named = violation.source.iter().any(of_row);
            assert!(named, "{name}: expected a line of {file}: {violation}");
        }
        format!("{}/{SCHEDULES} {}", found.len(), found[0])
    }

    fn is_silent(&self, program: &Program) {
        for seed in 0..SILENT_SCHEDULES {
            if let Err(violation) = self.run(program, "_right", seed) {
                panic!("{} under schedule {seed}: {violation}", self.0);
            }
        }
    }
}

#[test]
fn every_mistake_is_found_by_name_and_every_correction_is_silent() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("mistakes.ptx");
    let manifest = toolchain::workspace_root().join("ptx/mistakes/Cargo.toml");
    let kernels =
        KernelCrate::new(manifest, Arch::SM_90A).linker(env!("CARGO_BIN_EXE_cuda-ptx-link"));
    build::build(&kernels, &out).unwrap();
    let program = Program::parse(&std::fs::read_to_string(&out).unwrap()).unwrap();
    let rows: Vec<&Row> = ROWS
        .iter()
        .chain(&MEMORY_ROWS)
        .chain(&PRODUCT_ROWS)
        .collect();
    assert_eq!(program.kernels().count(), 2 * rows.len());
    thread::scope(|scope| {
        for rows in rows.chunks(rows.len().div_ceil(2)) {
            let program = &program;
            scope.spawn(move || {
                for row in rows {
                    println!("{}: {}", row.0, row.find(program));
                    row.is_silent(program);
                }
            });
        }
    });
}
