//! What the typed barriers do, on the CPU under many schedules, where every access and every arrival
//! is checked.

use std::sync::LazyLock;

use cuda_ptx_host::build::{self, Arch, KernelCrate};
use cuda_ptx_host::exec::{Buffer, Grid, Memory, Options, Program};
use cuda_ptx_host::toolchain;

const SCHEDULES: u64 = 30;

static PROGRAM: LazyLock<Program> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("barriers.ptx");
    let manifest = toolchain::workspace_root().join("ptx/barriers/Cargo.toml");
    let kernels =
        KernelCrate::new(manifest, Arch::SM_90A).linker(env!("CARGO_BIN_EXE_cuda-ptx-link"));
    build::build(&kernels, &out).unwrap();
    Program::parse(&std::fs::read_to_string(&out).unwrap()).unwrap()
});

/// Blocks, blocks of a cluster, threads of a block.
type Shape = (u32, u32, u32);

/// A kernel's parameter.
#[derive(Clone, Copy)]
enum Argument {
    Number(u32),
    Pointer(Buffer),
}
use Argument::{Number, Pointer};

fn launch(
    kernel: &str,
    (blocks, cluster, threads): Shape,
    arguments: &[Argument],
    memory: &mut Memory,
    seed: u64,
) {
    let mut grid = Grid::new([blocks, 1, 1], [threads, 1, 1]);
    grid.cluster = (cluster > 1).then_some([cluster, 1, 1]);
    let bytes = |argument: &Argument| match argument {
        Number(number) => number.to_le_bytes().to_vec(),
        Pointer(buffer) => buffer.address().to_le_bytes().to_vec(),
    };
    let arguments: Vec<Vec<u8>> = arguments.iter().map(bytes).collect();
    let options = Options {
        seed,
        ..Options::default()
    };
    if let Err(error) = PROGRAM.run(kernel, &grid, &arguments, memory, &options) {
        panic!("{kernel} under schedule {seed}: {error}");
    }
}

fn numbers(memory: &Memory, buffer: Buffer) -> Vec<u32> {
    let bytes = memory.download(buffer).chunks_exact(4);
    bytes
        .map(|it| u32::from_le_bytes(it.try_into().unwrap()))
        .collect()
}

fn upload(memory: &mut Memory, numbers: impl IntoIterator<Item = u32>) -> Buffer {
    let bytes: Vec<u8> = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
    memory.upload(&bytes)
}

/// In each phase, three times the own number and that of a neighbour, which is so many places on.
fn exchanged(size: usize, phases: u32, neighbour: usize) -> Vec<u32> {
    let mut values: Vec<u32> = (0..size as u32).collect();
    for _ in 0..phases {
        let shown = values.clone();
        for (k, value) in values.iter_mut().enumerate() {
            *value = value
                .wrapping_mul(3)
                .wrapping_add(shown[(k + neighbour) % size]);
        }
    }
    values
}

/// The barriers of a grid, and what else `grid_init` takes.
struct GridBarriers {
    device: Argument,
    system: Argument,
    total: Argument,
    shown: Argument,
    sum: Argument,
}

impl GridBarriers {
    fn new(memory: &mut Memory, expected: u32) -> Self {
        let mut pointer = |bytes| Pointer(memory.uninitialised(bytes));
        let barriers = Self {
            device: pointer(8),
            system: pointer(8),
            total: pointer(64),
            shown: pointer(8 * expected as usize),
            sum: Pointer(memory.upload(&[0; 4])),
        };
        let arguments = [
            barriers.device,
            barriers.system,
            barriers.total,
            Number(expected),
            barriers.shown,
            barriers.sum,
        ];
        launch("grid_init", (1, 1, 1), &arguments, memory, 0);
        barriers
    }
}

#[test]
fn all_threads_of_a_grid_meet_at_barriers_of_the_device_and_the_system() {
    let (shape, size, phases) = ((3, 1, 33), 99, 4);
    for seed in 0..SCHEDULES {
        for kernel in ["grid_exchange", "system_exchange"] {
            let mut memory = Memory::new();
            let barriers = GridBarriers::new(&mut memory, size);
            let bar = match kernel {
                "grid_exchange" => barriers.device,
                _ => barriers.system,
            };
            let out = memory.uninitialised(4 * size as usize);
            let arguments = [bar, Number(phases), barriers.shown, Pointer(out)];
            launch(kernel, shape, &arguments, &mut memory, seed);
            assert_eq!(
                numbers(&memory, out),
                exchanged(size as usize, phases, 1),
                "{kernel} under schedule {seed}"
            );
        }
    }
}

#[test]
fn threads_of_a_grid_drop_out_one_after_another() {
    let (shape, size, phases) = ((2, 1, 5), 10, 12);
    for seed in 0..SCHEDULES {
        let mut memory = Memory::new();
        let barriers = GridBarriers::new(&mut memory, size);
        let out = memory.uninitialised(4 * size as usize);
        let arguments = [barriers.device, Number(phases), Pointer(out)];
        launch("grid_drop", shape, &arguments, &mut memory, seed);
        let mut expected: Vec<u32> = (0..size).collect();
        expected[size as usize - 1] = phases;
        assert_eq!(numbers(&memory, out), expected, "schedule {seed}");
    }
}

#[test]
fn a_completion_function_runs_once_in_a_phase_of_a_grid() {
    let (shape, size, phases) = ((2, 1, 20), 40, 3);
    for seed in 0..SCHEDULES {
        let mut memory = Memory::new();
        let barriers = GridBarriers::new(&mut memory, size);
        let out = memory.uninitialised(4 * size as usize);
        let arguments = [
            barriers.total,
            Number(phases),
            barriers.shown,
            barriers.sum,
            Pointer(out),
        ];
        launch("grid_total", shape, &arguments, &mut memory, seed);
        let (mut seen, mut sum) = (0u32, 0);
        for phase in 0..phases {
            sum += size * (size - 1) / 2 + size * phase;
            seen = seen.wrapping_mul(7).wrapping_add(sum);
        }
        let expected = vec![seen; size as usize];
        assert_eq!(numbers(&memory, out), expected, "schedule {seed}");
    }
}

#[test]
fn blocks_of_a_cluster_wait_for_arrivals_from_one_another() {
    for (blocks, threads) in [(2, 32), (4, 40), (1, 33)] {
        for seed in 0..SCHEDULES {
            let (size, phases) = (blocks * threads, 5);
            let mut memory = Memory::new();
            let shown = memory.uninitialised((4 * size * phases) as usize);
            let out = memory.uninitialised(4 * size as usize);
            let arguments = [Number(phases), Pointer(shown), Pointer(out)];
            let shape = (blocks, blocks, threads);
            let kernel = match blocks {
                2 => "cluster_exchange_of_two",
                _ => "cluster_exchange",
            };
            launch(kernel, shape, &arguments, &mut memory, seed);
            let before = (size - threads) as usize;
            assert_eq!(
                numbers(&memory, out),
                exchanged(size as usize, phases, before),
                "{blocks} blocks under schedule {seed}"
            );
        }
    }
}

#[test]
fn tests_and_limited_waits_say_whether_the_phase_is_complete() {
    for seed in 0..SCHEDULES {
        let mut memory = Memory::new();
        let out = memory.uninitialised(4);
        launch("answers", (1, 1, 1), &[Pointer(out)], &mut memory, seed);
        let results = numbers(&memory, out)[0];
        assert_eq!(results, 0b001_1110_1111, "schedule {seed}: {results:#b}");
    }
}

#[test]
fn one_thread_arrives_for_all() {
    for seed in 0..SCHEDULES {
        let mut memory = Memory::new();
        let out = memory.uninitialised(4 * 97);
        launch(
            "one_arrives_for_all",
            (1, 1, 96),
            &[Pointer(out)],
            &mut memory,
            seed,
        );
        assert_eq!(numbers(&memory, out), [42; 97], "schedule {seed}");
    }
}

/// What a copy kernel leaves in its tile of 4096 bytes.
fn copied(kernel: &str, threads: u32, stride: u32, size: u32, seed: u64) -> Vec<u8> {
    let input: Vec<u8> = (0..4096u32)
        .map(|k| (k * 7 + k / 256) as u8 & 0x7f)
        .collect();
    let mut memory = Memory::new();
    let source = memory.upload(&input);
    let out = memory.uninitialised(4096);
    let arguments = [Number(stride), Number(size), Pointer(source), Pointer(out)];
    launch(kernel, (1, 1, threads), &arguments, &mut memory, seed);
    memory.download(out).to_vec()
}

#[test]
fn memcpy_async_copies_any_size_at_any_alignment_and_nothing_else() {
    let input: Vec<u8> = (0..4096u32)
        .map(|k| (k * 7 + k / 256) as u8 & 0x7f)
        .collect();
    let mut seed = 0;
    for alignment in [1, 2, 4, 8, 16] {
        for (group, groups, threads) in [("thread", 40, 40), ("warp", 3, 96), ("block", 1, 50)] {
            for size in [0, 1, 3, 4, 8, 15, 16, 17, 24, 33, 64, 95] {
                let stride = 96;
                let kernel = format!("copy_{alignment}_{group}");
                let found = copied(&kernel, threads, stride, size, seed);
                seed += 1;
                let mut expected = vec![0xee; 4096];
                for at in (0..groups).map(|number| (number * stride) as usize) {
                    let part = at..at + size as usize;
                    expected[part.clone()].copy_from_slice(&input[part]);
                }
                assert!(
                    found == expected,
                    "{kernel}: {size} bytes, {threads} threads"
                );
            }
        }
    }
}

#[test]
fn memcpy_async_takes_a_promise_of_alignment() {
    for size in [0, 16, 100, 4000, 4096] {
        let found = copied("copy_aligned_block", 64, 0, size, size.into());
        let expected = copied("copy_16_block", 64, 0, size, size.into());
        assert!(found == expected, "{size} bytes");
    }
}

#[test]
fn memcpy_async_does_not_overtake_stores() {
    for seed in 0..SCHEDULES {
        let mut memory = Memory::new();
        let source = memory.upload(&[7; 64]);
        let out = memory.uninitialised(64);
        let arguments = [Pointer(source), Pointer(out)];
        launch("copy_over_stores", (1, 1, 1), &arguments, &mut memory, seed);
        assert_eq!(memory.download(out), [7; 64], "schedule {seed}");
    }
}

/// The sums of a ring kernel: thread `k` of the result reads element `of(k)` of each buffer.
fn ring(kernel: &str, threads: u32, results: usize, of: impl Fn(usize) -> usize) {
    for n in [0, 1, 2, 3, 4, 11] {
        for seed in 0..SCHEDULES {
            let input: Vec<u32> = (0..64 * n).map(|k| k * 31 + 5).collect();
            let mut memory = Memory::new();
            let source = upload(&mut memory, input.iter().copied());
            let out = memory.uninitialised(4 * results);
            let arguments = [Number(n), Pointer(source), Pointer(out)];
            launch(kernel, (1, 1, threads), &arguments, &mut memory, seed);
            let sum = |k: usize| {
                input.chunks(64).fold(0u32, |sum, tile| {
                    sum.wrapping_mul(3).wrapping_add(tile[of(k)])
                })
            };
            let expected: Vec<u32> = (0..results).map(sum).collect();
            assert_eq!(
                numbers(&memory, out),
                expected,
                "{kernel}, {n} buffers, schedule {seed}"
            );
        }
    }
}

#[test]
fn threads_fill_and_use_a_ring() {
    ring("ring_of_threads", 64, 64, |k| (k + 63) % 64);
    ring("ring_of_cp_async", 64, 64, |k| (k + 63) % 64);
}

#[test]
fn the_copy_engine_fills_a_ring() {
    ring("ring_of_copies", 96, 64, |k| k);
    ring("ring_of_single_copies", 96, 64, |k| k);
}
