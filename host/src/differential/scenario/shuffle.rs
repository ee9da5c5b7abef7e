//! `shfl.sync`: each thread reads a value of another one of its warp.

use super::{Case, Random, Scenario};
use crate::differential::form::Form;
use crate::driver::Launch;

const LANES: u64 = 32;

/// Rounds of a launch, each with another offset and segment size.
const ROUNDS: u64 = 48;

#[derive(Clone, Copy)]
enum Mode {
    Idx,
    Up,
    Down,
    Bfly,
}

pub fn scenario(form: &Form) -> Option<Scenario> {
    let mode = match form.function.strip_prefix("shfl_sync_")? {
        "idx" => Mode::Idx,
        "up" => Mode::Up,
        "down" => Mode::Down,
        "bfly" => Mode::Bfly,
        _ => return None,
    };
    let predicate = form.outputs > 0;
    let in_range = if predicate { "r_0" } else { "0" };
    let body = format!(
        "var i = thread();\n\
         var round = 0;\n\
         while (round < {ROUNDS}) {{\n\
         var k = i + threads() * round;\n\
         @r = (get(input, 2 * {ROUNDS} + k); get(input, 2 * round); get(input, 2 * round + 1); 4294967295)\n\
         put(output, 2 * k, r);\n\
         put(output, 2 * k + 1, {in_range});\n\
         round = round + 1;\n\
         }}\n"
    );
    let name = form.instruction.clone();
    Some(Scenario::new(body, move |seed| {
        let case = |warps: u64| {
            let mut random = Random::new(seed ^ warps << 32, &name);
            let threads = warps * LANES;
            let mut input = Vec::new();
            for _ in 0..ROUNDS {
                let segment = 1 << random.below(6);
                // Segments as `__shfl_sync` makes them: the clamp is the last lane of one, or the first for `up`.
                let clamp = if matches!(mode, Mode::Up) {
                    0
                } else {
                    segment - 1
                };
                let clamp = if random.below(4) == 0 && !matches!(mode, Mode::Up) {
                    random.below(segment)
                } else {
                    clamp
                };
                input.extend([random.below(LANES), (LANES - segment) << 8 | clamp]);
            }
            input.extend((0..threads * ROUNDS).map(|_| random.word() & 0xffff_ffff));
            let data = &input[2 * ROUNDS as usize..];
            let pair = |k: u64| {
                let (lane, round) = (k % LANES, k / threads);
                let [offset, control] = [input[2 * round as usize], input[2 * round as usize + 1]];
                let (source, in_range) = source(mode, lane, offset, control);
                [
                    data[(k - lane + source) as usize],
                    u64::from(in_range && predicate),
                ]
            };
            let output = Vec::from_iter((0..threads * ROUNDS).flat_map(pair));
            Case::new(
                format!("{warps} warps"),
                Launch::new(1, threads as u32),
                input.clone(),
            )
            .gives_words(output)
        };
        [1, 5].map(case).into()
    }))
}

/// The lane that `lane` reads, and whether the one asked for was in range.
fn source(mode: Mode, lane: u64, offset: u64, control: u64) -> (u64, bool) {
    let (clamp, segments) = (control & 31, control >> 8 & 31);
    let first = lane & segments;
    let limit = first | (clamp & !segments);
    let asked = match mode {
        Mode::Idx => (first | (offset & !segments)) as i64,
        Mode::Up => lane as i64 - offset as i64,
        Mode::Down => (lane + offset) as i64,
        Mode::Bfly => (lane ^ offset) as i64,
    };
    let in_range = match mode {
        Mode::Up => asked >= limit as i64,
        _ => asked <= limit as i64,
    };
    (if in_range { asked as u64 } else { lane }, in_range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_end_what_can_be_read() {
        // Segments of 8 lanes.
        let (down, up) = (0x1807, 0x1800);
        assert_eq!(source(Mode::Down, 5, 2, down), (7, true));
        assert_eq!(source(Mode::Down, 6, 2, down), (6, false));
        assert_eq!(source(Mode::Up, 9, 2, up), (9, false));
        assert_eq!(source(Mode::Idx, 13, 3, down), (11, true));
        assert_eq!(source(Mode::Bfly, 3, 8, down), (3, false));
        assert_eq!(source(Mode::Bfly, 11, 8, down), (3, true));
    }
}
