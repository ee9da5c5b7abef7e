//! Bulk copies, their groups, and prefetches.

use super::{Case, POISON, Random, Scenario, Word, words};
use crate::differential::form::Form;
use crate::driver::Launch;

/// Bytes of shared memory that a launch shows.
pub(super) const REGION: u64 = 8192;

/// Size, place at the destination, place at the source: multiples of 16 bytes.
const COPIES: [[u64; 3]; 5] = [
    [16, 0, 0],
    [16, 4080, 32],
    [48, 16, 512],
    [4096, 128, 64],
    [8192, 0, 0],
];

/// The copies of a seed: those, and more of any size and place.
fn copies(seed: u64, name: &str) -> Vec<[u64; 3]> {
    let mut random = Random::new(seed, name);
    let mut any = || {
        let size = 16 * (1 + random.below(REGION / 16));
        let place = |bound: u64, random: &mut Random| 16 * random.below((bound - size) / 16 + 1);
        [
            size,
            place(REGION, &mut random),
            place(2 * REGION, &mut random),
        ]
    };
    let more = Vec::from_iter((0..8).map(|_| any()));
    COPIES.into_iter().chain(more).collect()
}

/// What every kernel begins with: a region of shared memory filled with a known word, and a barrier.
pub(super) const BEGIN: &str = "ptr bar = shared;\n\
    ptr data = at(shared, 1024);\n\
    var i = thread();\n\
    while (i < 1024) { store(at(data, 8 * i), 8, 16045690984503098046); i = i + threads(); }\n\
    if (thread() == 0) { bar_init(bar, 1); bar_fence(); }\n\
    proxy_fence();\n\
    cluster_sync();\n";

/// That word.
pub(super) const FILL: u64 = 16_045_690_984_503_098_046;

/// What every kernel ends with: the region, of every block.
pub(super) const SHOW: &str = "cluster_sync();\n\
    i = thread();\n\
    while (i < 1024) {\n\
    put(output, i + 1024 * cluster_rank(), load(at(data, 8 * i), 8));\n\
    i = i + threads();\n\
    }\n";

pub(super) const SHARED: usize = 1024 + REGION as usize;

pub fn scenario(form: &Form) -> Option<Scenario> {
    let function = form.function.as_str();
    Some(match function {
        "cp_async_bulk_commit_group"
        | "cp_async_bulk_wait_group"
        | "cp_async_bulk_wait_group_read"
        | "cp_async_bulk_wait_group_sync_restrict_proxy_async" => group(form),
        "cp_async_bulk_prefetch" => prefetch(form),
        "cp_async_bulk_ignore_oob" => ignoring(form),
        "cp_async_bulk" if form.operands.len() == 5 => multicast(form),
        "cp_async_bulk" if form.tags == ["space_global", "space_shared"] => out_of_shared(form),
        "cp_async_bulk" if form.tags == ["space_cluster", "space_shared"] => across(form),
        "cp_async_bulk" => into_shared(form),
        _ => return None,
    })
}

fn bytes_at(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The region after a copy of `data` to `at`.
pub(super) fn region(data: &[u8], at: u64) -> Vec<u64> {
    let mut region = bytes_at(&[FILL; REGION as usize / 8]);
    region[at as usize..][..data.len()].copy_from_slice(data);
    words(&region).collect()
}

fn into_shared(form: &Form) -> Scenario {
    let act = "if (thread() == 0) {\n\
        bar_expect(bar, get(input, 0));\n\
        bar_arrive(bar, 1);\n\
        @ = (at(data, get(input, 1)); at(memory, get(input, 2)); get(input, 0); bar)\n\
        }\n\
        bar_wait(bar, 0);\n";
    let name = form.instruction.clone();
    let cases = move |seed| {
        let case = |copy: [u64; 3]| {
            let [size, to, from] = copy;
            let memory = Random::new(seed ^ size, &name).bytes(16384);
            let output = region(&memory[from as usize..][..size as usize], to);
            Case::new(
                format!("{size} bytes from {from} to {to}"),
                Launch::new(1, 96),
                copy.to_vec(),
            )
            .memory(memory)
            .gives_words(output)
        };
        copies(seed, &name).into_iter().map(case).collect()
    };
    Scenario::new([BEGIN, act, SHOW].concat(), cases).shared(SHARED)
}

/// Up to 15 bytes at either end are not read; what they become is open.
fn ignoring(form: &Form) -> Scenario {
    let act = "if (thread() == 0) {\n\
        bar_expect(bar, get(input, 0));\n\
        bar_arrive(bar, 1);\n\
        @ = (at(data, get(input, 1)); at(memory, get(input, 2)); get(input, 0); get(input, 3); get(input, 4); bar)\n\
        }\n\
        bar_wait(bar, 0);\n";
    let name = form.instruction.clone();
    let cases = move |seed| {
        let case = |[size, to, from, left, right]: [u64; 5]| {
            let memory = Random::new(seed ^ size, &name).bytes(16384);
            let data = region(&memory[from as usize..][..size as usize], to);
            let known = |byte: u64| {
                !(to..to + left).contains(&byte) && !(to + size - right..to + size).contains(&byte)
            };
            let word = |(at, word): (usize, u64)| {
                let mask = [0u64, 1, 2, 3, 4, 5, 6, 7]
                    .map(|k| if known(8 * at as u64 + k) { 0xff } else { 0 });
                Word::Masked(word, u64::from_le_bytes(mask))
            };
            let output = data.into_iter().enumerate().map(word).collect();
            Case::new(
                format!("{size} bytes from {from} to {to}, {left} and {right} ignored"),
                Launch::new(1, 96),
                vec![size, to, from, left, right],
            )
            .memory(memory)
            .gives(output)
        };
        [
            [32, 0, 0, 0, 0],
            [32, 16, 48, 3, 5],
            [4096, 0, 64, 15, 15],
            [512, 512, 16, 0, 1],
        ]
        .map(case)
        .into()
    };
    Scenario::new([BEGIN, act, SHOW].concat(), cases).shared(SHARED)
}

fn across(form: &Form) -> Scenario {
    // The first block fills its region from global memory and sends it to the last one.
    let act = "var last = get(input, 3);\n\
        if (cluster_rank() == 0) {\n\
        i = thread();\n\
        while (i < 1024) { store(at(source, 8 * i), 8, load(at(memory, 8 * i), 8)); i = i + threads(); }\n\
        proxy_fence();\n\
        }\n\
        sync();\n\
        if (thread() == 0) {\n\
        if (cluster_rank() == last) { bar_expect(bar, get(input, 0)); bar_arrive(bar, 1); }\n\
        if (cluster_rank() == 0) {\n\
        ptr to = remote(at(data, get(input, 1)), last);\n\
        ptr signal = remote(bar, last);\n\
        @ = (to; at(source, get(input, 2)); get(input, 0); signal)\n\
        }\n\
        }\n\
        if (cluster_rank() == last) { bar_wait(bar, 0); }\n";
    let name = form.instruction.clone();
    let cases = move |seed| {
        let case = |(number, [size, to, from]): (usize, [u64; 3])| {
            let blocks = [2, 1, 4, 8, 16, 3, 5, 6, 7][number % 9];
            let memory = Random::new(seed ^ size, &name).bytes(8192);
            let from = if from + size > REGION { 0 } else { from };
            let received = region(&memory[from as usize..][..size as usize], to);
            let block = |rank: u64| {
                if rank + 1 == blocks {
                    received.clone()
                } else {
                    vec![FILL; 1024]
                }
            };
            let output = Vec::from_iter((0..blocks).flat_map(block));
            let launch = Launch::new(blocks as u32, 96).cluster([blocks as u32, 1, 1]);
            let what = format!("{size} bytes from {from} to {to}, cluster of {blocks}");
            Case::new(what, launch, vec![size, to, from, blocks - 1])
                .memory(memory)
                .gives_words(output)
        };
        copies(seed, &name)
            .into_iter()
            .enumerate()
            .map(case)
            .collect()
    };
    let body = ["ptr source = at(shared, 9216);\n", BEGIN, act, SHOW].concat();
    Scenario::new(body, cases).shared(SHARED + REGION as usize)
}

fn out_of_shared(form: &Form) -> Scenario {
    let act = "i = thread();\n\
        while (i < 1024) { store(at(data, 8 * i), 8, get(input, 3 + i)); i = i + threads(); }\n\
        proxy_fence();\n\
        sync();\n\
        if (thread() == 0) {\n\
        @ = (at(memory, get(input, 1)); at(data, get(input, 2)); get(input, 0))\n\
        bulk_commit();\n\
        bulk_wait();\n\
        }\n";
    let name = form.instruction.clone();
    let cases = move |seed| {
        let case = |[size, to, from]: [u64; 3]| {
            let mut random = Random::new(seed ^ size, &name);
            let from = if from + size > REGION { 0 } else { from };
            let (memory, data) = (random.bytes(16384), random.bytes(REGION as usize));
            let mut after = memory.clone();
            after[to as usize..][..size as usize]
                .copy_from_slice(&data[from as usize..][..size as usize]);
            let input = [size, to, from].into_iter().chain(words(&data)).collect();
            Case::new(
                format!("{size} bytes from {from} to {to}"),
                Launch::new(1, 96),
                input,
            )
            .memory(memory)
            .leaves(after)
            .gives_words(words(&data))
        };
        copies(seed, &name).into_iter().map(case).collect()
    };
    Scenario::new([BEGIN, act, SHOW].concat(), cases).shared(SHARED)
}

fn multicast(form: &Form) -> Scenario {
    let act = "var chosen = get(input, 3) >> cluster_rank() & 1;\n\
        if (thread() == 0) {\n\
        if (chosen == 1) { bar_expect(bar, get(input, 0)); bar_arrive(bar, 1); }\n\
        }\n\
        cluster_sync();\n\
        if (thread() == 0) {\n\
        if (cluster_rank() == 0) {\n\
        @ = (at(data, get(input, 1)); at(memory, get(input, 2)); get(input, 0); bar; get(input, 3))\n\
        }\n\
        }\n\
        if (chosen == 1) { bar_wait(bar, 0); }\n";
    let name = form.instruction.clone();
    let cases = move |seed| {
        let case = |(blocks, mask, [size, to, from]): (u64, u64, [u64; 3])| {
            let memory = Random::new(seed ^ size, &name).bytes(16384);
            let received = region(&memory[from as usize..][..size as usize], to);
            let block = |rank: u64| {
                if mask >> rank & 1 == 1 {
                    received.clone()
                } else {
                    vec![FILL; 1024]
                }
            };
            let output = Vec::from_iter((0..blocks).flat_map(block));
            let launch = Launch::new(blocks as u32, 96).cluster([blocks as u32, 1, 1]);
            let what =
                format!("{size} bytes from {from} to {to}, cluster of {blocks}, mask {mask:#b}");
            Case::new(what, launch, vec![size, to, from, mask])
                .memory(memory)
                .gives_words(output)
        };
        // Every mask of a cluster of 4, and some of larger ones.
        let small = (1..16).map(|mask| (4, mask));
        let mut random = Random::new(seed, "masks");
        let mut any = |blocks: u64| (blocks, 1 + random.below((1 << blocks) - 1));
        let large = [any(8), any(8), any(16), any(16), (16, 0xffff)];
        let shapes = [(1, 1), (2, 0b10), (2, 0b11)]
            .into_iter()
            .chain(small)
            .chain(large);
        let copies = copies(seed, &name).into_iter().cycle();
        shapes
            .zip(copies)
            .map(|((blocks, mask), copy)| case((blocks, mask, copy)))
            .collect()
    };
    Scenario::new([BEGIN, act, SHOW].concat(), cases).shared(SHARED)
}

/// One of the instructions around a group is the form, the others are plain.
fn group(form: &Form) -> Scenario {
    let call = "@ = ()\n";
    let (commit, wait) = if form.function.ends_with("commit_group") {
        (call, "bulk_wait();\n")
    } else {
        ("bulk_commit();\n", call)
    };
    // The sources may be overwritten after each of the waits; the destination is complete after all but
    // `.read`, which the plain wait behind the loop makes up for.
    let body = format!(
        "ptr data = at(shared, 1024 * thread());\n\
         var to = 1024 * grid_thread();\n\
         var round = 0;\n\
         while (round < 4) {{\n\
         var i = 0;\n\
         while (i < 32) {{ store(at(data, 8 * i), 8, get(input, 128 * grid_thread() + 32 * round + i)); i = i + 1; }}\n\
         proxy_fence();\n\
         bulk_store(at(memory, to + 256 * round), data, 256);\n\
         {commit}{wait}\
         round = round + 1;\n\
         }}\n\
         bulk_wait();\n\
         full_fence();\n\
         var i = 0;\n\
         while (i < 128) {{ put(output, 128 * grid_thread() + i, load(at(memory, to + 8 * i), 8)); i = i + 1; }}\n"
    );
    let name = form.instruction.clone();
    let cases = move |seed| {
        let case = |blocks: u32| {
            let threads = 4 * blocks as usize;
            let mut random = Random::new(seed ^ u64::from(blocks), &name);
            let (before, data) = (random.bytes(1024 * threads), random.bytes(1024 * threads));
            let output = Vec::from_iter(words(&data));
            Case::new(
                format!("{threads} threads"),
                Launch::new(blocks, 4),
                output.clone(),
            )
            .memory(before)
            .leaves(data)
            .gives_words(output)
        };
        [1, 16, 100].map(case).into()
    };
    Scenario::new(body, cases).shared(4096)
}

fn prefetch(form: &Form) -> Scenario {
    let body = "var i = thread();\n\
        if (i == 0) {\n\
        @ = (at(memory, get(input, 1)); get(input, 0); get(input, 2))\n\
        }\n\
        while (i < 1024) { put(output, i, load(at(memory, 8 * i), 8)); i = i + threads(); }\n";
    let name = form.instruction.clone();
    let cases = move |seed| {
        let case = |[size, _, from]: [u64; 3]| {
            let memory = Random::new(seed ^ size, &name).bytes(16384);
            let output = Vec::from_iter(words(&memory[..8192]));
            Case::new(
                format!("{size} bytes at {from}"),
                Launch::new(1, 96),
                vec![size, from, 0x10f0_0000_0000_0000],
            )
            .memory(memory)
            .gives_words(output)
        };
        copies(seed, &name).into_iter().map(case).collect()
    };
    Scenario::new(body, cases)
}

const _: () = assert!(FILL != POISON);
