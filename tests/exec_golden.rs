//! The CPU's arithmetic against what an H200 gave for the same PTX (driver 580, `arithmetic.bin`).

use cuda_ptx_host::exec::{Grid, Memory, Options, Program};

const PTX: &str = include_str!("fixtures/exec/arithmetic.ptx");
/// Three inputs for each thread, then a result of each operation for each thread.
const GOLDEN: &[u8] = include_bytes!("fixtures/exec/arithmetic.bin");
const THREADS: usize = 128;
const INPUT_BYTES: usize = 3 * 8 * THREADS;

/// The operations in their order.
fn operations() -> Vec<&'static str> {
    let mut lines = PTX.lines();
    let mut operations = Vec::new();
    while let Some(line) = lines.next() {
        let number = line.trim().strip_prefix("// ");
        if number.is_some_and(|it| it.parse() == Ok(operations.len())) {
            operations.push(lines.next().unwrap().trim());
        }
    }
    operations
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(8);
    words
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect()
}

#[test]
fn every_result_is_that_of_the_h200() {
    let (input, expected) = GOLDEN.split_at(INPUT_BYTES);
    let mut memory = Memory::new();
    let buffers = [memory.upload(input), memory.uninitialised(expected.len())];
    let arguments = buffers.map(|it| it.address().to_le_bytes().to_vec());
    let program = Program::parse(PTX).unwrap();
    let grid = Grid::new([1; 3], [THREADS as u32, 1, 1]);
    program
        .run(
            "arithmetic",
            &grid,
            &arguments,
            &mut memory,
            &Options::default(),
        )
        .unwrap();
    let (inputs, expected) = (words(input), words(expected));
    let found = words(memory.download(buffers[1]));
    let operations = operations();
    assert_eq!(operations.len() * THREADS, expected.len());
    let mut wrong = Vec::new();
    for (number, operation) in operations.iter().enumerate() {
        let results = number * THREADS..(number + 1) * THREADS;
        let differ =
            |thread: &usize| expected[results.start + thread] != found[results.start + thread];
        let threads: Vec<usize> = (0..THREADS).filter(differ).collect();
        if let Some(thread) = threads.first() {
            let [a, b, c] = [0, 1, 2].map(|it| inputs[it * THREADS + thread]);
            wrong.push(format!(
                "{operation} on {a:#x}, {b:#x}, {c:#x}: expected {:#x}, found {:#x}; {} of {THREADS}",
                expected[results.start + thread],
                found[results.start + thread],
                threads.len()
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
