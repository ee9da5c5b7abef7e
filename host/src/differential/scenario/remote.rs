//! `st.async` and `red.async`: to the shared memory of another block, which a barrier there reports.

use super::reduce::{Element, Operation};
use super::{Case, Random, Scenario};
use crate::differential::form::Form;
use crate::driver::Launch;

/// Operations that each thread starts.
const ROUNDS: u64 = 5;

/// Threads of a block.
const THREADS: u64 = 64;

pub fn scenario(form: &Form) -> Option<Scenario> {
    let element = Element::of(form.last())?;
    let size = element.bytes() as u64;
    let reduces = form.function.starts_with("red_async");
    let count = match form.operands[1].split_once('[') {
        Some((_, length)) => length.trim_end_matches(']').parse().ok()?,
        None => 1,
    };
    let bytes = size * count;
    let value = |part: u64| {
        format!("get(input, {count} * (thread() + threads() * (round + {ROUNDS} * rank)) + {part})")
    };
    let values = Vec::from_iter((0..count).map(value)).join(" | ");
    // Rank r sends to rank r + 1; a reduction meets what is there, a store replaces it.
    let body = format!(
        "ptr bar = shared;\n\
         ptr data = at(shared, 1024);\n\
         var rank = cluster_rank();\n\
         var blocks = get(input, {count} * threads() * {ROUNDS} * 16);\n\
         var next = (rank + 1) % blocks;\n\
         var i = thread() * {count};\n\
         var end = i + {count};\n\
         while (i < end) {{ store(at(data, {size} * i), {size}, load(at(memory, {size} * i), {size})); i = i + 1; }}\n\
         if (thread() == 0) {{ bar_init(bar, 1); bar_fence(); }}\n\
         cluster_sync();\n\
         var round = 0;\n\
         while (round < {ROUNDS}) {{\n\
         if (thread() == 0) {{ bar_expect(bar, {bytes} * threads()); bar_arrive(bar, 1); }}\n\
         ptr to = remote(at(data, {bytes} * thread()), next);\n\
         ptr signal = remote(bar, next);\n\
         @ = (to; {values}; signal)\n\
         bar_wait(bar, round % 2);\n\
         i = end - {count};\n\
         while (i < end) {{\n\
         put(output, i + {count} * threads() * (round + {ROUNDS} * rank), load(at(data, {size} * i), {size}));\n\
         i = i + 1;\n\
         }}\n\
         cluster_sync();\n\
         round = round + 1;\n\
         }}\n"
    );
    let operation = if reduces {
        Operation::of(&form.instruction)
    } else {
        None
    };
    let name = form.instruction.clone();
    let cases = move |seed: u64| {
        let case = |blocks: u64| case(&name, element, operation, count, blocks, seed);
        [2, 3, 4, 5, 6, 7, 8, 16].map(case).into()
    };
    (operation.is_some() == reduces).then(|| Scenario::new(body, cases).shared(1024 + 4096))
}

fn case(
    name: &str,
    element: Element,
    operation: Option<Operation>,
    count: u64,
    blocks: u64,
    seed: u64,
) -> Case {
    let mut random = Random::new(seed ^ blocks << 32, name);
    let of_round = (count * THREADS) as usize;
    let start = Vec::from_iter((0..of_round).map(|_| element.random(&mut random)));
    let mut input =
        Vec::from_iter((0..of_round as u64 * ROUNDS * 16).map(|_| element.random(&mut random)));
    let mut output = vec![0; of_round * (ROUNDS * blocks) as usize];
    for rank in 0..blocks as usize {
        let from = (rank + blocks as usize - 1) % blocks as usize;
        let mut held = start.clone();
        for round in 0..ROUNDS as usize {
            for (i, held) in held.iter_mut().enumerate() {
                let sent = input[i + of_round * (round + ROUNDS as usize * from)];
                *held = operation.map_or(sent, |operation| element.apply(operation, *held, sent));
                output[i + of_round * (round + ROUNDS as usize * rank)] = *held;
            }
        }
    }
    input.push(blocks);
    let launch = Launch::new(blocks as u32, THREADS as u32).cluster([blocks as u32, 1, 1]);
    let memory = element.to_bytes(&start);
    Case::new(format!("cluster of {blocks}"), launch, input)
        .memory(memory)
        .gives_words(output)
}
