//! Damaged PTX: parsing, decoding and running it end in a result or an error, never in a panic.

use std::panic;

use cuda_ptx_host::exec::{Grid, Memory, Options, Program};

/// Barriers, copies, tensors, calls, tables and variables; the arithmetic comes from the golden file.
const SYNCHRONISATION: &str = include_str!("fixtures/exec/synchronisation.ptx");
const ARITHMETIC: &str = include_str!("fixtures/exec/arithmetic.ptx");

/// Damaged modules of each text.
const ROUNDS: u64 = 1000;

/// What numbers, and words of any kind, are replaced by.
const NUMBERS: [&str; 10] = [
    "0",
    "-1",
    "1",
    "255",
    "4294967295",
    "9223372036854775808",
    "0xffffffffffffffff",
    "1024",
    "3",
    "0f7fc00000",
];
const WORDS: [&str; 24] = [
    "{", "}", "[", "]", ";", ",", "@%p", "%r<9>", ".b64", ".b8", ".v4", ".f16x2", ".reg",
    ".shared", ".param", "_", "|", ".cluster", ".wide", "bar.sync", "(", ")", "$L1", "ret",
];

struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound.max(1)
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

/// The text in words and what is between them.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let word = |c: char| c.is_ascii_alphanumeric() || "_%$".contains(c);
    for c in text.chars() {
        match pieces.last_mut() {
            Some(last) if word(c) && last.ends_with(word) => last.push(c),
            _ => pieces.push(c.to_string()),
        }
    }
    pieces
}

fn damage(text: &str, rng: &mut Rng) -> String {
    let mut pieces = pieces(text);
    for _ in 0..1 + rng.below(3) {
        let at = rng.below(pieces.len());
        match rng.below(7) {
            0 => drop(pieces.remove(at)),
            1 => pieces.insert(at, rng.pick(&WORDS).to_owned()),
            2 => {
                let other = rng.below(pieces.len());
                pieces.swap(at, other);
            }
            3 => pieces[at] = pieces[rng.below(pieces.len())].clone(),
            4 if rng.below(20) == 0 => pieces.truncate(at),
            _ => {
                let is_number = |it: &String| it.starts_with(|c: char| c.is_ascii_digit());
                let numbers: Vec<usize> = (0..pieces.len())
                    .filter(|at| is_number(&pieces[*at]))
                    .collect();
                if !numbers.is_empty() {
                    let number = numbers[rng.below(numbers.len())];
                    pieces[number] = rng.pick(&NUMBERS).to_owned();
                }
            }
        }
        if pieces.is_empty() {
            break;
        }
    }
    pieces.concat()
}

/// Runs every kernel of a program.
fn run(program: &Program, seed: u64) -> anyhow::Result<()> {
    let mut result = Ok(());
    let kernels: Vec<String> = program.kernels().map(str::to_owned).collect();
    for kernel in kernels {
        let mut memory = Memory::new();
        let buffers = [memory.upload(&[7; 4096]), memory.upload(&[0; 1 << 19])];
        let arguments = buffers.map(|it| it.address().to_le_bytes().to_vec());
        let mut grid = Grid::new([2, 1, 1], [48, 1, 1]);
        grid.shared_bytes = 256;
        grid.cluster = Some([2, 1, 1]);
        let options = Options {
            seed,
            limit: 3_000,
            ..Options::default()
        };
        let stats = program.run(&kernel, &grid, &arguments, &mut memory, &options);
        result = result.and(stats.map(drop));
    }
    result
}

/// Whether the text is a program, run if it is.
fn survives(text: &str, seed: u64) -> bool {
    let Ok(program) = Program::parse(text) else {
        return false;
    };
    // Most damaged programs are found wrong; how does not matter here.
    let _ = run(&program, seed);
    true
}

fn fuzz(text: impl Fn(&mut Rng) -> String) {
    let mut programs = 0;
    for seed in 0..ROUNDS {
        let mut rng = Rng(seed);
        let text = text(&mut rng);
        let damaged = damage(&text, &mut rng);
        let result = panic::catch_unwind(|| survives(&damaged, seed));
        match result {
            Ok(program) => programs += u32::from(program),
            Err(_) => panic!("seed {seed}:\n{damaged}"),
        }
    }
    // Damage that always ends in the parser would test nothing behind it.
    assert!(programs > ROUNDS as u32 / 20, "{programs}");
}

#[test]
fn damaged_synchronisation_does_not_panic() {
    let program = Program::parse(SYNCHRONISATION).unwrap();
    for seed in 0..20 {
        run(&program, seed).unwrap();
    }
    fuzz(|_| SYNCHRONISATION.to_owned());
}

#[test]
fn damaged_arithmetic_does_not_panic() {
    let (head, rest) = ARITHMETIC.split_once("\t// 0\n").unwrap();
    let lines: Vec<&str> = rest.lines().filter(|line| line.contains(';')).collect();
    fuzz(|rng| {
        let some: Vec<&str> = (0..12).map(|_| rng.pick(&lines)).collect();
        format!("{head}{}\nret;\n}}\n", some.join("\n"))
    });
}
