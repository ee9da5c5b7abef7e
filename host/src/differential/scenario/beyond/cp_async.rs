//! Copies of 4 to 16 bytes: `cp.async`, and the groups that they are waited for by.

use super::{Scenario, missing};
use crate::differential::form::Form;
use crate::differential::scenario::{Case, POISON, Random, memory::POLICIES, words};
use crate::driver::Launch;

/// The most threads of a launch.
const THREADS: usize = 192;

/// Bytes of the place that each copy has, in both memories.
const PLACE: usize = 16;

pub fn scenario(form: &Form) -> Result<Scenario, String> {
    match form.function.as_str() {
        "cp_async_commit_group" => Ok(groups("@ = ()\n", |left| {
            format!("copies_wait_{left}();\n")
        })),
        "cp_async_wait_group" => Ok(groups("copies_commit();\n", |left| {
            format!("@ #{left} = ()\n")
        })),
        "cp_async_wait_all" => Ok(groups("", |left| match left {
            0 => "@ = ()\n".to_owned(),
            _ => String::new(),
        })),
        function if function.starts_with("cp_async_c") => copies(form),
        _ => Err(missing(form)),
    }
}

/// Each thread's copies in groups of their own; `wait` waits until so many groups are pending, if it can.
fn groups(commit: &str, wait: impl Fn(usize) -> String) -> Scenario {
    const GROUPS: usize = 4;
    let place = |group| format!("{PLACE} * (i + {THREADS} * {group})");
    let mut body = "var i = thread();\nvar n = threads();\n".to_owned();
    for group in 0..GROUPS {
        let (to, from) = (place(group), place(GROUPS - 1 - group));
        body += &format!("small_copy(at(shared, {to}), at(memory, {from}));\n{commit}");
    }
    // What has been waited for is read; what has not, later.
    let mut read = 0;
    for group in 0..GROUPS {
        let wait = wait(GROUPS - 1 - group);
        body += &wait;
        if wait.is_empty() {
            continue;
        }
        while read <= group {
            for half in 0..2 {
                let from = place(read);
                body += &format!(
                    "put(output, 2 * (i + n * {read}) + {half}, load(at(shared, {from} + {}), 8));\n",
                    8 * half
                );
            }
            read += 1;
        }
    }
    Scenario::new(body, |seed| {
        let case = |threads: usize| {
            let memory = Random::new(seed, "groups of copies").bytes(PLACE * THREADS * GROUPS);
            let mut output = Vec::new();
            for group in (0..GROUPS).rev() {
                let first = PLACE * THREADS * group;
                output.extend(words(&memory[first..first + PLACE * threads]));
            }
            let launch = Launch::new(1, threads as u32);
            Case::new(format!("{threads} threads"), launch, vec![])
                .memory(memory)
                .gives_words(output)
        };
        vec![case(32), case(THREADS), case(1)]
    })
    .shared(PLACE * THREADS * GROUPS)
}

/// What the operand behind the size says.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    Whole,
    /// How many bytes are read.
    Size,
    /// Whether none is read.
    Ignored,
}

/// Each thread copies with every size that the form has, and shows the places with what is behind the copies.
fn copies(form: &Form) -> Result<Scenario, String> {
    let sizes: &[usize] = match form.says("ca") {
        true => &[4, 8, 16],
        false => &[16],
    };
    let hinted = form.says("L2::cache_hint");
    let source = match &Vec::from_iter(form.operands[2..].iter().map(String::as_str))[..] {
        [] | ["uint64_t"] => Source::Whole,
        ["uint32_t", ..] => Source::Size,
        ["bool", ..] => Source::Ignored,
        _ => return Err(missing(form)),
    };
    let policy = if hinted { "; get(input, 0)" } else { "" };
    let count = sizes.len();
    let mut body = "var i = thread();\n".to_owned();
    let place = |number| format!("{PLACE} * (i + {THREADS} * {number})");
    for (number, size) in sizes.iter().enumerate() {
        let (place, operand) = (
            place(number),
            match source {
                Source::Whole => String::new(),
                _ => format!("; get(input, 1 + {count} * i + {number})"),
            },
        );
        body += &format!(
            "store(at(shared, {place}), 8, {POISON});\n\
             store(at(shared, {place} + 8), 8, {POISON});\n\
             @ #{size} = (at(shared, {place}); at(memory, {place}){operand}{policy})\n"
        );
    }
    body += "copies_wait_all();\n";
    for number in 0..count {
        for half in 0..2 {
            body += &format!(
                "put(output, 2 * ({count} * i + {number}) + {half}, load(at(shared, {} + {}), 8));\n",
                place(number),
                8 * half
            );
        }
    }
    let name = form.instruction.clone();
    let case = move |seed: u64, number: usize, threads: usize| {
        let mut random = Random::new(seed ^ threads as u64, &name);
        let memory = random.bytes(PLACE * THREADS * count);
        let mut input = vec![POLICIES[number]];
        let mut output = Vec::new();
        for i in 0..threads {
            for (number, &size) in sizes.iter().enumerate() {
                let (operand, read) = match source {
                    Source::Whole => (0, size),
                    Source::Size => {
                        let read = random.below(size as u64 + 1);
                        (read, read as usize)
                    }
                    Source::Ignored => {
                        let ignored = random.below(2);
                        (ignored, if ignored == 1 { 0 } else { size })
                    }
                };
                input.push(operand);
                let from = PLACE * (i + THREADS * number);
                let mut place = POISON.to_le_bytes().repeat(2);
                place[..size].fill(0);
                place[..read].copy_from_slice(&memory[from..from + read]);
                output.extend(words(&place));
            }
        }
        let launch = Launch::new(1, threads as u32);
        Case::new(format!("{threads} threads"), launch, input)
            .memory(memory)
            .gives_words(output)
    };
    let cases = move |seed| {
        let threads = [1, 32, THREADS].into_iter().enumerate();
        threads
            .map(|(number, threads)| case(seed, number, threads))
            .collect()
    };
    Ok(Scenario::new(body, cases).shared(PLACE * THREADS * count))
}
