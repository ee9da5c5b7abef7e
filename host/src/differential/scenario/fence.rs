//! Fences: message passing and store buffering many times over, and hand-overs to the copy engine.

use super::{Case, Random, Scenario, Word, bulk, words};
use crate::differential::form::Form;
use crate::driver::Launch;

/// Messages in a launch.
const ROUNDS: usize = 512;

/// Bytes between two messages: lines of their own.
const LINE: usize = 256;

pub fn scenario(form: &Form) -> Option<Scenario> {
    let function = form.function.as_str();
    Some(match function {
        "fence" => litmus(form),
        "fence_proxy_tensormap_generic" => super::tensor_map::fence(form),
        "fence_mbarrier_init" => across_cluster(form, true),
        "fence_sync_restrict" | "fence_proxy_async_generic_sync_restrict" => {
            across_cluster(form, false)
        }
        "fence_proxy_async" if form.has("space_global") => out_of_global(form),
        "fence_proxy_async" => out_of_shared(form),
        "fence_proxy_alias" | "fence_alias_sync_restrict_read_release_sys" => same_memory(form),
        _ => return None,
    })
}

/// A writer publishes a word and then a flag; a reader that sees the flag must see the word. With a
/// sequentially consistent fence, of two threads that each store and then load, one sees the other's store.
fn litmus(form: &Form) -> Scenario {
    let call = "@ = ()\n";
    let other = "full_fence();\n";
    let (writer, reader) = if form.has("sem_acquire") {
        (other, call)
    } else if form.has("sem_release") {
        (call, other)
    } else {
        (call, call)
    };
    let sequential = form.has("sem_sc");
    let buffering = if sequential { call } else { "" };
    // Who is who: 0 the writer, 1 the reader; in one block, they are in different warps.
    let in_block = form.has("scope_cta");
    let who = if in_block { "thread() / 32" } else { "block()" };
    let body = format!(
        "var who = {who};\n\
         var round = 0;\n\
         if (thread() % 32 == 0) {{\n\
         while (round < {ROUNDS}) {{\n\
         ptr data = at(memory, {LINE} * round);\n\
         ptr flag = at(data, 128);\n\
         if (who == 0) {{\n\
         store(data, 8, get(input, round));\n\
         {writer}\
         publish(flag, 1);\n\
         }}\n\
         if (who == 1) {{\n\
         while (watch(flag) == 0) {{ }}\n\
         {reader}\
         put(output, round, load(data, 8));\n\
         }}\n\
         ptr mine = at(data, 16 + 16 * who);\n\
         ptr theirs = at(data, 32 - 16 * who);\n\
         publish(mine, 1);\n\
         {buffering}\
         put(output, {ROUNDS} + 2 * round + who, watch(theirs));\n\
         round = round + 1;\n\
         }}\n\
         }}\n"
    );
    let launch = if in_block {
        Launch::new(1, 64)
    } else if form.has("scope_cluster") {
        Launch::new(2, 32).cluster([2, 1, 1])
    } else {
        Launch::new(2, 32)
    };
    let name = form.instruction.clone();
    Scenario::new(body, move |seed| {
        let mut random = Random::new(seed, &name);
        let sent = Vec::from_iter((0..ROUNDS).map(|_| random.word()));
        let mut output = Vec::from_iter(sent.iter().copied().map(Word::Is));
        output.extend([Word::Within(0, 1); 2 * ROUNDS]);
        let mut after = vec![0; ROUNDS * LINE];
        for (line, word) in after.chunks_mut(LINE).zip(&sent) {
            line[..8].copy_from_slice(&word.to_le_bytes());
            [line[16], line[32], line[128]] = [1; 3];
        }
        let case = Case::new(format!("{ROUNDS} rounds"), launch, sent)
            .memory(vec![0; ROUNDS * LINE])
            .leaves(after)
            .gives(output);
        vec![if sequential {
            case.relation(one_sees_the_other)
        } else {
            case
        }]
    })
}

fn one_sees_the_other(output: &[u64]) -> Result<(), String> {
    match output[ROUNDS..].chunks(2).position(|seen| seen == [0, 0]) {
        None => Ok(()),
        Some(round) => Err(format!(
            "round {round}: expected one thread to see the other's store, found that neither did"
        )),
    }
}

/// A barrier that one block initialises and another arrives at.
fn across_cluster(form: &Form, of_init: bool) -> Scenario {
    let plain = if of_init { "" } else { "bar_fence();\n" };
    let body = format!(
        "ptr bar = shared;\n\
         ptr data = at(shared, 1024);\n\
         var blocks = get(input, 0);\n\
         var rank = cluster_rank();\n\
         if (thread() == 0) {{ bar_init(bar, threads()); {plain}\n\
         @ = ()\n\
         }}\n\
         cluster_sync();\n\
         var round = 0;\n\
         while (round < 8) {{\n\
         ptr to = remote(at(data, 8 * thread()), (rank + 1) % blocks);\n\
         store(to, 8, get(input, 1 + thread() + threads() * (rank + 8 * round)));\n\
         @ = ()\n\
         bar_arrive_remote(remote(bar, (rank + 1) % blocks));\n\
         bar_wait(bar, round % 2);\n\
         @ = ()\n\
         put(output, thread() + threads() * (rank + blocks * round), load(at(data, 8 * thread()), 8));\n\
         cluster_sync();\n\
         round = round + 1;\n\
         }}\n"
    );
    let name = form.instruction.clone();
    Scenario::new(body, move |seed| {
        const THREADS: usize = 64;
        let case = |blocks: usize| {
            let mut random = Random::new(seed ^ blocks as u64, &name);
            let sent = Vec::from_iter((0..THREADS * 64).map(|_| random.word()));
            let read = |k: usize| {
                let (i, rank, round) = (k % THREADS, k / THREADS % blocks, k / THREADS / blocks);
                sent[i + THREADS * ((rank + blocks - 1) % blocks + 8 * round)]
            };
            let output = Vec::from_iter((0..THREADS * blocks * 8).map(read));
            let input = [blocks as u64]
                .into_iter()
                .chain(sent.iter().copied())
                .collect();
            let launch = Launch::new(blocks as u32, THREADS as u32).cluster([blocks as u32, 1, 1]);
            Case::new(format!("cluster of {blocks}"), launch, input).gives_words(output)
        };
        [2, 8].map(case).into()
    })
    .shared(2048)
}

/// What normal stores wrote to shared memory, the copy engine reads.
fn out_of_shared(form: &Form) -> Scenario {
    let body = "ptr data = at(shared, 1024);\n\
        var round = 0;\n\
        while (round < 16) {\n\
        store(at(data, 8 * thread()), 8, get(input, thread() + threads() * round));\n\
        @ = ()\n\
        sync();\n\
        if (thread() == 0) {\n\
        bulk_store(at(memory, 8 * threads() * round), data, 8 * threads());\n\
        bulk_commit();\n\
        bulk_wait();\n\
        }\n\
        sync();\n\
        round = round + 1;\n\
        }\n";
    let name = form.instruction.clone();
    Scenario::new(body, move |seed| {
        let case = |threads: usize| {
            let mut random = Random::new(seed ^ threads as u64, &name);
            let (before, data) = (random.bytes(128 * threads), random.bytes(128 * threads));
            let launch = Launch::new(1, threads as u32);
            Case::new(format!("{threads} threads"), launch, words(&data).collect())
                .memory(before)
                .leaves(data)
        };
        [32, 512].map(case).into()
    })
    .shared(1024 + 4096)
}

/// What normal stores wrote to global memory, the copy engine reads.
fn out_of_global(form: &Form) -> Scenario {
    let act = "store(at(memory, 8 * thread()), 8, get(input, thread()));\n\
        @ = ()\n\
        sync();\n\
        if (thread() == 0) {\n\
        bar_expect(bar, 8 * threads());\n\
        bar_arrive(bar, 1);\n\
        bulk_load(data, memory, 8 * threads(), bar);\n\
        }\n\
        bar_wait(bar, 0);\n";
    let name = form.instruction.clone();
    Scenario::new([bulk::BEGIN, act, bulk::SHOW].concat(), move |seed| {
        let case = |threads: usize| {
            let mut random = Random::new(seed ^ threads as u64, &name);
            let (before, data) = (random.bytes(8 * threads), random.bytes(8 * threads));
            let launch = Launch::new(1, threads as u32);
            let output = bulk::region(&data, 0);
            Case::new(format!("{threads} threads"), launch, words(&data).collect())
                .memory(before)
                .leaves(data)
                .gives_words(output)
        };
        [32, 1024].map(case).into()
    })
    .shared(bulk::SHARED)
}

/// There is no alias here: a store and a load of the same memory.
fn same_memory(form: &Form) -> Scenario {
    let body = "var i = grid_thread();\n\
        store(at(memory, 8 * i), 8, get(input, i));\n\
        @ = ()\n\
        put(output, i, load(at(memory, 8 * i), 8));\n";
    let name = form.instruction.clone();
    Scenario::new(body, move |seed| {
        let mut random = Random::new(seed, &name);
        let (before, data) = (random.bytes(8192), random.bytes(8192));
        let sent = Vec::from_iter(words(&data));
        vec![
            Case::new("1024 threads", Launch::new(8, 128), sent.clone())
                .memory(before)
                .leaves(data)
                .gives_words(sent),
        ]
    })
}
