//! Warps, clusters, and threads themselves.

use super::{Case, POISON, Random, Scenario, Word};
use crate::differential::form::Form;
use crate::driver::Launch;

pub fn scenario(form: &Form) -> Option<Scenario> {
    Some(match form.function.as_str() {
        "elect_sync" => elect(),
        "exit" => exit(),
        "trap" => trap(),
        "setmaxnreg_dec" | "setmaxnreg_inc" => registers(form),
        "getctarank" => rank(),
        "barrier_cluster_arrive" | "barrier_cluster_wait" => barrier(form),
        _ => return None,
    })
}

/// One thread of the mask is elected, and the others are told so.
fn elect() -> Scenario {
    let body = "var i = grid_thread();\n\
        var warp = i / 32;\n\
        var mask = get(input, warp);\n\
        if ((mask >> (i % 32) & 1) == 1) {\n\
        @e = (mask)\n\
        put(output, i, e);\n\
        }\n";
    Scenario::new(body, |seed| {
        let mut random = Random::new(seed, "elect");
        let mut masks = vec![0xffff_ffff, 1, 1 << 31, 0xffff_0000, 0xaaaa_aaaa];
        masks.extend((0..27).map(|_| (random.word() & 0xffff_ffff).max(1)));
        let word = |i: usize| match masks[i / 32] >> (i % 32) & 1 {
            0 => Word::Is(POISON),
            _ => Word::Within(0, 1),
        };
        let output = (0..32 * masks.len()).map(word).collect();
        let of_masks = masks.clone();
        let one_each = move |output: &[u64]| {
            for (warp, (lanes, mask)) in output.chunks(32).zip(&of_masks).enumerate() {
                let elected = lanes.iter().filter(|lane| **lane == 1).count();
                if elected != 1 {
                    return Err(format!(
                        "warp {warp}, mask {mask:#x}: expected one elected thread, found {elected}"
                    ));
                }
            }
            Ok(())
        };
        let launch = Launch::new(4, 256);
        vec![
            Case::new("32 warps", launch, masks)
                .gives(output)
                .relation(one_each),
        ]
    })
}

/// Threads that exit store nothing more.
fn exit() -> Scenario {
    let body = "var i = thread();\n\
        put(output, 2 * i, i);\n\
        if (get(input, i) == 1) {\n\
        @ = ()\n\
        }\n\
        put(output, 2 * i + 1, i);\n";
    Scenario::new(body, |seed| {
        let mut random = Random::new(seed, "exit");
        let leaves = Vec::from_iter((0..256).map(|_| random.below(2)));
        let words = |i: u64| [i, if leaves[i as usize] == 1 { POISON } else { i }];
        let output = Vec::from_iter((0..256).flat_map(words));
        vec![Case::new("256 threads", Launch::new(1, 256), leaves.clone()).gives_words(output)]
    })
}

fn trap() -> Scenario {
    let body = "put(output, thread(), 1);\n\
        if (get(input, thread()) == 1) {\n\
        @ = ()\n\
        }\n";
    Scenario::new(body, |_| {
        let mut input = vec![0; 64];
        let quiet =
            Case::new("no thread traps", Launch::new(1, 64), input.clone()).gives_words([1; 64]);
        input[40] = 1;
        let mut loud =
            Case::new("one thread traps", Launch::new(1, 64), input).gives(vec![Word::Free; 64]);
        loud.expected.fails = true;
        vec![quiet, loud]
    })
}

/// Values in registers survive; without registers in the pool, `inc` would wait for ever.
fn registers(form: &Form) -> Scenario {
    let (before, count) = match form.function.as_str() {
        "setmaxnreg_inc" => ("registers_decrease();\n", 64),
        _ => ("", 40),
    };
    let body = format!(
        "var i = thread();\n\
         var a = get(input, i);\n\
         var b = get(input, i + 128);\n\
         {before}\
         @ #{count} = ()\n\
         put(output, i, a + 3 * b);\n"
    );
    let mut scenario = Scenario::new(body, |seed| {
        let mut random = Random::new(seed, "registers");
        let input = Vec::from_iter((0..256).map(|_| random.word()));
        let output =
            Vec::from_iter((0..128).map(|i| input[i].wrapping_add(input[i + 128].wrapping_mul(3))));
        let case = |blocks| {
            Case::new(
                format!("{blocks} blocks"),
                Launch::new(blocks, 128),
                input.clone(),
            )
            .gives_words(output.clone())
        };
        vec![case(1), case(64)]
    });
    scenario.registers = Some(64);
    scenario
}

/// The rank of the block whose shared memory an address is of.
fn rank() -> Scenario {
    let body = "var i = 0;\n\
        while (i < get(input, 0)) {\n\
        ptr other = remote(shared, i);\n\
        @r = (other)\n\
        put(output, i + get(input, 0) * block(), r);\n\
        i = i + 1;\n\
        }\n\
        cluster_sync();\n";
    Scenario::new(body, |_| {
        let case = |blocks: u32| {
            let output = (0..blocks * blocks).map(|i| u64::from(i % blocks));
            let launch = Launch::new(blocks, 1).cluster([blocks, 1, 1]);
            Case::new(format!("cluster of {blocks}"), launch, vec![blocks.into()])
                .gives_words(output)
        };
        [1, 2, 3, 5, 8, 16].map(case).into()
    })
    .shared(64)
}

/// All blocks see, behind the barrier, what their neighbours stored before it.
pub fn barrier(form: &Form) -> Scenario {
    // A relaxed arrival orders nothing, so a fence does.
    let fence = if form.has("sem_relaxed") {
        "full_fence();\n"
    } else {
        ""
    };
    let call = "@ = ()\n";
    let (arrive, wait) = if form.function.ends_with("arrive") {
        (call, "cluster_wait();\n")
    } else {
        ("cluster_arrive();\n", call)
    };
    let body = format!(
        "var blocks = get(input, 0);\n\
         var rank = cluster_rank();\n\
         var i = thread();\n\
         var round = 0;\n\
         while (round < 20) {{\n\
         store(at(shared, 8 * i), 8, get(input, 1 + i + threads() * (rank + 16 * round)));\n\
         {fence}{arrive}{wait}\
         ptr other = remote(at(shared, 8 * i), (rank + 1) % blocks);\n\
         put(output, i + threads() * (rank + blocks * round), load(other, 8));\n\
         {fence}{arrive}{wait}\
         round = round + 1;\n\
         }}\n"
    );
    let name = form.instruction.clone();
    Scenario::new(body, move |seed| {
        const THREADS: usize = 128;
        const ROUNDS: usize = 20;
        let case = |blocks: usize| {
            let mut random = Random::new(seed ^ blocks as u64, &name);
            let shown = Vec::from_iter((0..THREADS * 16 * ROUNDS).map(|_| random.word()));
            let read = |k: usize| {
                let (i, rank, round) = (k % THREADS, k / THREADS % blocks, k / THREADS / blocks);
                shown[i + THREADS * ((rank + 1) % blocks + 16 * round)]
            };
            let output = Vec::from_iter((0..THREADS * blocks * ROUNDS).map(read));
            let input = [blocks as u64]
                .into_iter()
                .chain(shown.iter().copied())
                .collect();
            let launch = Launch::new(blocks as u32, THREADS as u32).cluster([blocks as u32, 1, 1]);
            Case::new(format!("cluster of {blocks}"), launch, input).gives_words(output)
        };
        [1, 2, 4, 7, 8, 16].map(case).into()
    })
    .shared(1024)
}
