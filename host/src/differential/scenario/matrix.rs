//! `ldmatrix` and `stmatrix` of matrices of 8 by 8 elements of 16 bits.

use super::{Case, Random, Scenario};
use crate::differential::form::Form;
use crate::driver::Launch;

const LANES: usize = 32;

/// Bytes of shared memory: rows lie anywhere in it.
const REGION: usize = 2048;

pub fn scenario(form: &Form) -> Option<Scenario> {
    let count = ["x1", "x2", "x4"]
        .into_iter()
        .find(|count| form.says(count))?[1..]
        .parse()
        .ok()?;
    let load = form.function.starts_with("ldmatrix");
    let row = "at(data, get(input, thread()))";
    let call: String = if load {
        let puts = (0..count).map(|k| format!("put(output, {count} * thread() + {k}, r_{k});\n"));
        [format!("@r = ({row})\n")]
            .into_iter()
            .chain(puts)
            .collect()
    } else {
        let fragments = Vec::from_iter(
            (0..count).map(|k| format!("get(input, 32 + {count} * thread() + {k})")),
        );
        format!("@ = ({row}; {})\n", fragments.join(" | "))
    };
    let show = if load {
        ""
    } else {
        "sync();\n\
         i = thread();\n\
         while (i < 256) { put(output, i, load(at(data, 8 * i), 8)); i = i + threads(); }\n"
    };
    let body = format!(
        "ptr data = shared;\n\
         var i = thread();\n\
         while (i < 256) {{ store(at(data, 8 * i), 8, load(at(memory, 8 * i), 8)); i = i + threads(); }}\n\
         sync();\n\
         {call}{show}"
    );
    let (name, transposed) = (form.instruction.clone(), form.says("trans"));
    let cases = move |seed| {
        let case = |part: u64| {
            let mut random = Random::new(seed ^ part << 32, &name);
            let memory = random.bytes(REGION);
            let rows = rows(&mut random);
            let element = |matrix: usize, lane: usize, half: usize| {
                let (row, column) = place(lane, half, transposed);
                rows[8 * matrix + row] as usize + 2 * column
            };
            let mut input = rows.clone();
            let case = |input, output: Vec<u64>| {
                Case::new("one warp", Launch::new(1, LANES as u32), input)
                    .memory(memory.clone())
                    .gives_words(output)
            };
            if load {
                let half = |at: usize| u64::from(u16::from_le_bytes([memory[at], memory[at + 1]]));
                let fragment = |k: usize| {
                    let (lane, matrix) = (k / count, k % count);
                    half(element(matrix, lane, 0)) | half(element(matrix, lane, 1)) << 16
                };
                return case(input, (0..LANES * count).map(fragment).collect());
            }
            let mut stored = memory.clone();
            for k in 0..LANES * count {
                let fragment = random.word() & 0xffff_ffff;
                input.push(fragment);
                for half in 0..2 {
                    let at = element(k % count, k / count, half);
                    stored[at..at + 2]
                        .copy_from_slice(&((fragment >> (16 * half)) as u16).to_le_bytes());
                }
            }
            case(input, super::words(&stored).collect())
        };
        (0..4).map(case).collect()
    };
    Some(Scenario::new(body, cases).shared(REGION))
}

/// A place for each of 32 rows of 16 bytes, no two the same.
fn rows(random: &mut Random) -> Vec<u64> {
    let mut places = Vec::from_iter((0..REGION as u64 / 16).map(|place| 16 * place));
    for i in 0..LANES {
        let other = i as u64 + random.below((places.len() - i) as u64);
        places.swap(i, other as usize);
    }
    places.truncate(LANES);
    places
}

/// The row and column of a half of a lane's register.
fn place(lane: usize, half: usize, transposed: bool) -> (usize, usize) {
    let (row, column) = (lane / 4, 2 * (lane % 4) + half);
    if transposed {
        (column, row)
    } else {
        (row, column)
    }
}
