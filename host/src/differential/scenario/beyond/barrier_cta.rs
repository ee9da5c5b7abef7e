//! Barriers of a CTA: `barrier.cta.sync`, `.arrive`, `.red`; and the aligned ones of a cluster.

use super::{Scenario, missing};
use crate::differential::form::Form;
use crate::differential::scenario::{Case, Random, control};
use crate::driver::Launch;

const ROUNDS: usize = 12;

pub fn scenario(form: &Form) -> Result<Scenario, String> {
    let parts = Vec::from_iter(form.instruction.split('.'));
    Ok(match parts[..] {
        ["barrier", "cluster", which, ..] => cluster(form, which),
        ["barrier", "arrive", ..] => arrive(form),
        ["barrier", "sync", ..] => meet(form, None),
        ["barrier", "red", op @ ("popc" | "and" | "or"), ..] => meet(form, Some(op)),
        _ => return Err(missing(form)),
    })
}

/// As without `.aligned`, by whole warps.
fn cluster(form: &Form, which: &str) -> Scenario {
    let relaxed = form.says("relaxed").then(|| "sem_relaxed".to_owned());
    control::barrier(&Form {
        function: format!("barrier_cluster_{which}"),
        tags: relaxed.into_iter().collect(),
        ..form.clone()
    })
}

/// The call by all threads that come; unless it is aligned, by the lanes of a warp in two branches. An H200 then counts
/// wrongly (`popc`): ptxas has all lanes execute one `BAR.RED` with the predicates of some.
fn by_lanes(form: &Form, call: &str) -> String {
    if form.says("aligned") || form.says("popc") {
        return call.to_owned();
    }
    format!(
        "if ((i + round) % 3 == 0) {{\n\
         {call}\
         }} else {{\n\
         {call}\
         }}\n"
    )
}

/// In each round every thread stores a word, meets the others of its group, reads another thread's word, and meets
/// them again. A form with a number of threads has groups of whole warps, each with barriers of its own.
fn meet(form: &Form, op: Option<&str>) -> Scenario {
    let counted = form.operands.iter().filter(|ty| *ty == "uint32_t").count() == 2;
    let size = if counted { "; size" } else { "" };
    let call = |second: usize| {
        let call = match op {
            None => format!("@ = (number{size})\n"),
            Some(_) => format!(
                "@r{second} = (number{size}; get(input, 2 + 3 * k + {second}))\n\
                 put(output, 3 * k + {second}, r{second});\n"
            ),
        };
        by_lanes(form, &call)
    };
    let words = if op.is_some() { 3 } else { 1 };
    let op = op.map(str::to_owned);
    let body = format!(
        "var n = get(input, 0);\n\
         var size = get(input, 1);\n\
         var i = thread();\n\
         var group = i / size;\n\
         var groups = n / size;\n\
         var round = 0;\n\
         while (round < {ROUNDS}) {{\n\
         var k = i + n * round;\n\
         var number = group + groups * (round % (16 / groups));\n\
         store(at(shared, 8 * i), 8, get(input, 4 + 3 * k));\n\
         {}\
         var other = group * size + (i + 1 + 5 * round) % size;\n\
         put(output, {words} * k + {words} - 1, load(at(shared, 8 * other), 8));\n\
         {}\
         round = round + 1;\n\
         }}\n",
        call(0),
        call(1)
    );
    let name = form.instruction.clone();
    Scenario::new(body, move |seed| {
        let case = |threads: usize, size: usize| {
            let mut random = Random::new(seed ^ (threads + size) as u64, &name);
            let mut input = vec![threads as u64, size as u64];
            for round in 0..ROUNDS {
                for _ in 0..threads {
                    // Mostly alike, so that `and` and `or` go either way.
                    let pred = |random: &mut Random| match round % 4 {
                        0 => random.below(2),
                        1 => u64::from(random.below(2 * size as u64) == 0),
                        2 => u64::from(random.below(2 * size as u64) > 0),
                        _ => (round as u64 / 4) % 2,
                    };
                    input.extend([pred(&mut random), pred(&mut random), random.word()]);
                }
            }
            let of =
                |round: usize, thread: usize| &input[2 + 3 * (thread + threads * round)..][..3];
            let mut output = Vec::new();
            for (round, thread) in
                (0..ROUNDS).flat_map(|round| (0..threads).map(move |i| (round, i)))
            {
                let group = thread / size * size;
                if let Some(op) = op.as_deref() {
                    for second in 0..2 {
                        let came = (group..group + size).filter(|it| of(round, *it)[second] == 1);
                        let came = came.count();
                        output.push(match op {
                            "and" => u64::from(came == size),
                            "or" => u64::from(came > 0),
                            _ => came as u64,
                        });
                    }
                }
                output.push(of(round, group + (thread + 1 + 5 * round) % size)[2]);
            }
            let launch = Launch::new(1, threads as u32);
            Case::new(
                format!("{threads} threads in groups of {size}"),
                launch,
                input,
            )
            .gives_words(output)
        };
        match counted {
            true => vec![case(256, 32), case(192, 96), case(256, 256), case(1024, 64)],
            false => vec![case(32, 32), case(160, 160), case(1024, 1024)],
        }
    })
    .shared(8 * 1024)
}

/// One half of the threads stores words and arrives at a barrier; the other half waits there, reads them, and arrives
/// at another barrier, where the first waits before it stores again.
fn arrive(form: &Form) -> Scenario {
    let full = by_lanes(form, "@ = (round % 8; threads())\n");
    let empty = by_lanes(form, "@ = (8 + round % 8; threads())\n");
    let body = format!(
        "var i = thread();\n\
         var half = threads() / 2;\n\
         var round = 0;\n\
         while (round < {ROUNDS}) {{\n\
         if (i < half) {{\n\
         store(at(shared, 8 * i), 8, get(input, i + half * round));\n\
         {full}\
         named_sync(8 + round % 8, threads());\n\
         }} else {{\n\
         named_sync(round % 8, threads());\n\
         put(output, i - half + half * round, load(at(shared, 8 * ((i + 1 + round) % half)), 8));\n\
         {empty}\
         }}\n\
         round = round + 1;\n\
         }}\n"
    );
    let name = form.instruction.clone();
    Scenario::new(body, move |seed| {
        let case = |threads: usize| {
            let mut random = Random::new(seed ^ threads as u64, &name);
            let half = threads / 2;
            let input = Vec::from_iter((0..half * ROUNDS).map(|_| random.word()));
            let read = |k: usize| {
                let (i, round) = (k % half + half, k / half);
                input[(i + 1 + round) % half + half * round]
            };
            let output = Vec::from_iter((0..half * ROUNDS).map(read));
            let launch = Launch::new(1, threads as u32);
            Case::new(format!("{threads} threads"), launch, input).gives_words(output)
        };
        [64, 320, 1024].map(case).into()
    })
    .shared(8 * 512)
}
