//! Fences: message passing and store buffering many times over, and hand-overs to the copy engine.

use super::{Case, Random, Scenario, Word, bulk, words};
use crate::differential::form::Form;
use crate::driver::Launch;

/// Rounds of a litmus test in a launch.
const ROUNDS: usize = 2048;

/// Bytes of memory for the message of a round: the word, and the flag in a line of its own.
const MESSAGE: usize = 256;

/// Bytes of memory for a word that must lie in another line than others.
const LINE: usize = 128;

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

/// Two litmus tests, of two threads that meet before each.
///
/// Message passing: a writer publishes a word and then a flag; a reader that has read the word before and then sees
/// the flag must see the new word. Store buffering: of two threads that each store and then load, a sequentially
/// consistent fence lets one see the other's store. Without the fence the launch is the same, and it is counted how
/// often that goes wrong.
pub fn litmus(form: &Form) -> Scenario {
    let call = "if (fenced == 1) {\n@ = ()\n}\n";
    let other = "full_fence();\n";
    let (writer, reader) = if form.has("sem_acquire") {
        (other, call)
    } else if form.has("sem_release") {
        (call, other)
    } else {
        (call, call)
    };
    // Who is who: 0 the writer, 1 the reader; in one block, they are in different warps.
    let in_block = form.has("scope_cta");
    let who = if in_block { "thread() / 32" } else { "block()" };
    let meet = |stage: usize| {
        format!(
            "publish(at(meeting, {LINE} * who), 2 * round + {stage});\n\
             while (watch(at(meeting, {LINE} * (1 - who))) < 2 * round + {stage}) {{ }}\n"
        )
    };
    let body = format!(
        "var who = {who};\n\
         var fenced = get(input, {ROUNDS});\n\
         ptr buffers = at(memory, {MESSAGE} * {ROUNDS});\n\
         ptr meeting = at(buffers, 2 * {LINE} * {ROUNDS});\n\
         var round = 0;\n\
         if (thread() % 32 == 0) {{\n\
         while (round < {ROUNDS}) {{\n\
         ptr data = at(memory, {MESSAGE} * round);\n\
         ptr flag = at(data, {LINE});\n\
         if (who == 1) {{ put(output, round, load(data, 8)); }}\n\
         {}\
         if (who == 0) {{\n\
         store(data, 8, get(input, round));\n\
         {writer}\
         publish(flag, 1);\n\
         }}\n\
         if (who == 1) {{\n\
         while (watch(flag) == 0) {{ }}\n\
         {reader}\
         put(output, {ROUNDS} + round, load(data, 8));\n\
         }}\n\
         ptr mine = at(buffers, {LINE} * (2 * round + who));\n\
         ptr theirs = at(buffers, {LINE} * (2 * round + 1 - who));\n\
         {}\
         publish(mine, 1);\n\
         {call}\
         put(output, 2 * {ROUNDS} + 2 * round + who, watch(theirs));\n\
         round = round + 1;\n\
         }}\n\
         }}\n",
        meet(1),
        meet(2)
    );
    let launch = if in_block {
        Launch::new(1, 64)
    } else if form.has("scope_cluster") {
        Launch::new(2, 32).cluster([2, 1, 1])
    } else {
        Launch::new(2, 32)
    };
    let sequential = form.has("sem_sc");
    let name = form.instruction.clone();
    Scenario::new(body, move |seed| {
        let mut random = Random::new(seed, &name);
        let sent = Vec::from_iter((0..ROUNDS).map(|_| random.word()));
        let after = memory_after(&sent);
        let case = |fenced: bool| {
            let mut input = sent.clone();
            input.push(fenced.into());
            let mut output = vec![Word::Is(0); ROUNDS];
            output.extend(sent.iter().map(|word| match fenced {
                true => Word::Is(*word),
                false => Word::Free,
            }));
            output.extend([Word::Within(0, 1); 2 * ROUNDS]);
            let what = if fenced {
                "fenced"
            } else {
                "without the fence"
            };
            Case::new(format!("{ROUNDS} rounds, {what}"), launch, input)
                .memory(vec![0; after.len()])
                .leaves(after.clone())
                .gives(output)
                .counts(counts(what, sent.clone()))
        };
        let fenced = match sequential {
            true => case(true).relation(one_sees_the_other),
            false => case(true),
        };
        vec![fenced, case(false)]
    })
}

/// Global memory behind both litmus tests.
fn memory_after(sent: &[u64]) -> Vec<u8> {
    let mut after = vec![0; ROUNDS * MESSAGE];
    for (message, word) in after.chunks_mut(MESSAGE).zip(sent) {
        message[..8].copy_from_slice(&word.to_le_bytes());
        message[LINE] = 1;
    }
    let mut line = [0; LINE];
    line[0] = 1;
    after.extend(line.repeat(2 * ROUNDS));
    line[..8].copy_from_slice(&(2 * ROUNDS as u64).to_le_bytes());
    after.extend(line.repeat(2));
    after
}

/// How often a litmus test had the weak outcome.
fn counts(what: &str, sent: Vec<u64>) -> impl Fn(&[u64]) -> Vec<(String, u64)> + 'static {
    let names = ["message passing", "store buffering"].map(|test| format!("{test}, {what}"));
    move |output| {
        let received = output[ROUNDS..2 * ROUNDS].iter().zip(&sent);
        let lost = received.filter(|(found, sent)| found != sent).count();
        let neither = output[2 * ROUNDS..4 * ROUNDS].chunks(2);
        let neither = neither.filter(|seen| *seen == [0, 0]).count();
        names
            .iter()
            .cloned()
            .zip([lost as u64, neither as u64])
            .collect()
    }
}

fn one_sees_the_other(output: &[u64]) -> Result<(), String> {
    match output[2 * ROUNDS..]
        .chunks(2)
        .position(|seen| seen == [0, 0])
    {
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
         store(to, 8, get(input, 1 + thread() + threads() * (rank + 16 * round)));\n\
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
            let sent = Vec::from_iter((0..THREADS * 16 * 8).map(|_| random.word()));
            let read = |k: usize| {
                let (i, rank, round) = (k % THREADS, k / THREADS % blocks, k / THREADS / blocks);
                sent[i + THREADS * ((rank + blocks - 1) % blocks + 16 * round)]
            };
            let output = Vec::from_iter((0..THREADS * blocks * 8).map(read));
            let input = [blocks as u64]
                .into_iter()
                .chain(sent.iter().copied())
                .collect();
            let launch = Launch::new(blocks as u32, THREADS as u32).cluster([blocks as u32, 1, 1]);
            Case::new(format!("cluster of {blocks}"), launch, input).gives_words(output)
        };
        [2, 5, 8, 16].map(case).into()
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
