//! Loads, stores and prefetches of global memory.

use super::{Case, POISON, Random, Scenario};
use crate::differential::form::Form;
use crate::driver::Launch;

/// Elements in a launch.
const SIZES: [usize; 3] = [1, 61, 700];

/// What `createpolicy.fractional` makes for a fraction of 1: evict normally, first, last.
pub const POLICIES: [u64; 3] = [
    0x1000_0000_0000_0000,
    0x12f0_0000_0000_0000,
    0x14f0_0000_0000_0000,
];

pub fn scenario(form: &Form) -> Option<Scenario> {
    if form.function.starts_with("prefetch") {
        return Some(prefetch(form));
    }
    let size = size(&form.operands[0])?;
    let words = size.div_ceil(8);
    let policy = if form.says("L2::cache_hint") || form.instruction.contains("cache_hint") {
        "; get(input, 1)"
    } else {
        ""
    };
    let load = form.function.starts_with("ld");
    let body = if load {
        let results = match words {
            1 => "put(output, i, r);\n".to_owned(),
            _ => (0..words)
                .map(|part| format!("put(output, {words} * i + {part}, r_{part});\n"))
                .collect(),
        };
        format!("@r = (at(memory, i * {size}){policy})\n{results}")
    } else {
        let value = |part: usize| format!("get(input, 2 + {words} * i + {part})");
        let values = Vec::from_iter((0..words).map(value)).join(" | ");
        let each = size.min(8);
        let poison: String = (0..words)
            .map(|part| {
                format!(
                    "store(at(memory, i * {size} + {}), {each}, {POISON});\n",
                    part * 8
                )
            })
            .collect();
        let read: String = (0..words)
            .map(|part| {
                format!("put(output, {words} * i + {part}, load(at(memory, i * {size} + {}), {each}));\n", part * 8)
            })
            .collect();
        format!("{poison}@ = (at(memory, i * {size}); {values}{policy})\n{read}")
    };
    let body = format!(
        "var n = get(input, 0);\nvar i = thread();\nwhile (i < n) {{\n{body}i = i + threads();\n}}\n"
    );
    let name = form.instruction.clone();
    Some(Scenario::new(body, move |seed| {
        let case =
            |(number, &n): (usize, &usize)| case(&name, load, size, n, POLICIES[number], seed);
        SIZES.iter().enumerate().map(case).collect()
    }))
}

fn case(name: &str, load: bool, size: usize, n: usize, policy: u64, seed: u64) -> Case {
    let mut random = Random::new(seed ^ (n as u64) << 32, name);
    // Behind the elements lies what must not change.
    let memory = random.bytes(n * size + 256);
    let what = format!("{n} elements");
    let launch = Launch::new(1, 256);
    let parts = |bytes: &[u8]| {
        let part = |part: &[u8]| {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            u64::from_le_bytes(word)
        };
        Vec::from_iter(bytes[..n * size].chunks(size.min(8)).map(part))
    };
    if load {
        let output = parts(&memory);
        return Case::new(what, launch, vec![n as u64, policy])
            .memory(memory)
            .gives_words(output);
    }
    let mut written = random.bytes(n * size);
    written.extend(&memory[n * size..]);
    let output = parts(&written);
    let input = [n as u64, policy]
        .into_iter()
        .chain(output.iter().copied())
        .collect();
    Case::new(what, launch, input)
        .memory(memory)
        .leaves(written)
        .gives_words(output)
}

/// The size of what a pointer points to, in bytes.
fn size(pointer: &str) -> Option<usize> {
    let bits: String = pointer.chars().filter(char::is_ascii_digit).collect();
    Some(bits.parse::<usize>().ok()? / 8)
}

/// A prefetch leaves memory as it is, and the next load finds what was there.
fn prefetch(form: &Form) -> Scenario {
    let of_map = form.function == "prefetch_tensormap";
    let address = if of_map {
        "tensor_map"
    } else {
        "at(memory, 8 * i)"
    };
    let body = format!(
        "var i = grid_thread();\n@ = ({address})\nput(output, i, load(at(memory, 8 * i), 8));\n"
    );
    let name = form.instruction.clone();
    let scenario = Scenario::new(body, move |seed| {
        let case = |n: usize| {
            let memory = Random::new(seed, &name).bytes(8 * n);
            let output = Vec::from_iter(super::words(&memory));
            let case = Case::new(format!("{n} addresses"), Launch::new(1, n as u32), vec![0]);
            let case = case.memory(memory).gives_words(output);
            if of_map {
                case.tensor(super::tensor::plain(n as u64 * 2))
            } else {
                case
            }
        };
        vec![case(32), case(1024)]
    });
    if of_map {
        scenario.with_map()
    } else {
        scenario
    }
}
