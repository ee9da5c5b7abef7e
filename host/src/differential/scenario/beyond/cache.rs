//! What only the caches notice: policies, priorities, prefetches, and lines that are discarded.

use super::{Scenario, missing};
use crate::differential::form::Form;
use crate::differential::scenario::{Case, Random, Word, words};
use crate::driver::Launch;

/// Bytes of a line of the L2 cache.
const LINE: usize = 128;

pub fn scenario(form: &Form) -> Result<Scenario, String> {
    Ok(match form.instruction.split('.').next() {
        Some("createpolicy") => policy(form)?,
        Some("applypriority" | "prefetch" | "prefetchu") => hint(form),
        Some("discard") => discard(form),
        _ => return Err(missing(form)),
    })
}

/// The operands of each call: two words.
fn operands(form: &Form, random: &mut Random) -> Result<[u64; 2], String> {
    let bits = |number: f32| u64::from(number.to_bits());
    Ok(match form.instruction.split('.').nth(1) {
        Some("fractional") => match random.below(3) {
            0 => [bits(1.0), 0],
            1 => [bits(1.0 / (1 << random.below(5)) as f32), 0],
            _ => [bits((1 + random.below(1000)) as f32 / 1000.0), 0],
        },
        Some("range") => {
            let total = 1 << (12 + random.below(10));
            [total >> random.below(4), total]
        }
        // `cuda::access_property`: normal, streaming, persisting.
        Some("cvt") => [
            [
                0x10f0_0000_0000_0000,
                0x12f0_0000_0000_0000,
                0x14f0_0000_0000_0000,
            ][random.below(3) as usize],
            0,
        ],
        _ => return Err(missing(form)),
    })
}

/// What a policy looks like is not said: it must be the same in both languages, and for the same operands, and a load
/// that has it must find what is in memory.
fn policy(form: &Form) -> Result<Scenario, String> {
    operands(form, &mut Random::new(0, ""))?;
    let arguments = match form.operands.len() {
        1 => "get(input, 2 * i)",
        _ => "memory; get(input, 2 * i); get(input, 2 * i + 1)",
    };
    let body = format!(
        "var i = grid_thread();\n\
         @r = ({arguments})\n\
         put(output, 2 * i, r);\n\
         put(output, 2 * i + 1, load_hinted(at(memory, 8 * i), r));\n"
    );
    let form = form.clone();
    Ok(Scenario::new(body, move |seed| {
        let case = |threads: usize| {
            let mut random = Random::new(seed ^ threads as u64, &form.instruction);
            let memory = random.bytes(8 * threads);
            let input = (0..threads).flat_map(|_| operands(&form, &mut random).unwrap_or_default());
            let input = Vec::from_iter(input);
            let output = words(&memory).flat_map(|word| [Word::Opaque(u64::MAX), Word::Is(word)]);
            let output = Vec::from_iter(output);
            let of_operands = input.clone();
            let same = move |output: &[u64]| {
                let policies = Vec::from_iter(of_operands.chunks(2).zip(output.chunks(2)));
                for (operands, found) in &policies {
                    let other = policies
                        .iter()
                        .find(|(same, policy)| same == operands && policy[0] != found[0]);
                    if let Some((_, other)) = other {
                        return Err(format!(
                            "operands {operands:x?}: expected one policy, found {:#x} and {:#x}",
                            found[0], other[0]
                        ));
                    }
                }
                Ok(())
            };
            Case::new(
                format!("{threads} threads"),
                Launch::new(1, threads as u32),
                input,
            )
            .memory(memory)
            .gives(output)
            .relation(same)
        };
        vec![case(64), case(512)]
    }))
}

/// Memory stays as it is. Addresses are global ones, and if they are generic, also those of shared memory.
fn hint(form: &Form) -> Scenario {
    let line = if form.function.starts_with("applypriority") {
        LINE
    } else {
        8
    };
    let of_shared = match form.instruction.contains(".global") {
        true => "",
        false => "@ = (mine)\n",
    };
    let body = format!(
        "var i = grid_thread();\n\
         ptr mine = at(shared, 8 * thread());\n\
         store(mine, 8, get(input, i));\n\
         @ = (at(memory, {line} * i))\n\
         {of_shared}\
         put(output, 2 * i, load(at(memory, {line} * i), 8));\n\
         put(output, 2 * i + 1, load(mine, 8));\n"
    );
    let name = form.instruction.clone();
    Scenario::new(body, move |seed| {
        let case = |threads: usize| {
            let mut random = Random::new(seed ^ threads as u64, &name);
            let memory = random.bytes(line * threads);
            let input = Vec::from_iter((0..threads).map(|_| random.word()));
            let firsts = memory.chunks(line).flat_map(|line| words(&line[..8]));
            let output = firsts.zip(&input).flat_map(|(word, own)| [word, *own]);
            let output = Vec::from_iter(output);
            Case::new(
                format!("{threads} addresses"),
                Launch::new(1, threads as u32),
                input,
            )
            .memory(memory)
            .gives_words(output)
        };
        vec![case(32), case(256)]
    })
    .shared(8 * 256)
}

/// Every second line is discarded. It holds what is written after that, and its neighbours what they held before.
fn discard(form: &Form) -> Scenario {
    let body = format!(
        "var i = grid_thread();\n\
         ptr line = at(memory, {} * i);\n\
         @ = (line)\n\
         var k = 0;\n\
         while (k < 16) {{\n\
         store(at(line, 8 * k), 8, get(input, 16 * i + k));\n\
         k = k + 1;\n\
         }}\n\
         put(output, 2 * i, load(at(line, 120), 8));\n\
         put(output, 2 * i + 1, load(at(line, {LINE}), 8));\n",
        2 * LINE
    );
    let name = form.instruction.clone();
    Scenario::new(body, move |seed| {
        let case = |threads: usize| {
            let mut random = Random::new(seed ^ threads as u64, &name);
            let before = random.bytes(2 * LINE * threads);
            let input = Vec::from_iter((0..16 * threads).map(|_| random.word()));
            let mut after = before.clone();
            for (pair, line) in after.chunks_mut(2 * LINE).zip(input.chunks(16)) {
                for (place, word) in pair.chunks_mut(8).zip(line) {
                    place.copy_from_slice(&word.to_le_bytes());
                }
            }
            let of_pair = |pair: &[u8]| Vec::from_iter(words(&pair[LINE - 8..LINE + 8]));
            let output = Vec::from_iter(after.chunks(2 * LINE).flat_map(of_pair));
            Case::new(
                format!("{threads} lines"),
                Launch::new(1, threads as u32),
                input,
            )
            .memory(before)
            .leaves(after)
            .gives_words(output)
        };
        vec![case(32), case(1000)]
    })
}
