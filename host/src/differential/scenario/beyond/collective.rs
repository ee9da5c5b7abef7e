//! What the lanes of a warp do together: `redux`, `vote`, `match`, `elect`, `activemask`, `bar.warp.sync`.

use super::{Scenario, missing};
use crate::differential::form::Form;
use crate::differential::scenario::{Case, Random, Word};
use crate::driver::Launch;

const LANES: usize = 32;

/// Rounds of a launch. In the first ones whole warps act, then up to three groups of each.
const ROUNDS: usize = 24;

/// Lanes that act together, and what each of them puts in.
struct Group {
    mask: u64,
    values: Vec<u64>,
}

impl Group {
    fn lanes(&self) -> impl Iterator<Item = usize> + '_ {
        (0..LANES).filter(|lane| self.mask >> lane & 1 == 1)
    }

    fn members(&self) -> impl Iterator<Item = u64> + '_ {
        self.lanes().map(|lane| self.values[lane])
    }

    /// The lanes of the group whose value is so.
    fn lanes_with(&self, is_so: impl Fn(u64) -> bool) -> u64 {
        let lanes = self.lanes().filter(|lane| is_so(self.values[*lane]));
        lanes.fold(0, |lanes, lane| lanes | 1 << lane)
    }
}

pub fn scenario(form: &Form) -> Result<Scenario, String> {
    let parts = Vec::from_iter(form.instruction.split('.'));
    Ok(match parts[..] {
        ["redux", "sync", op, ty] => redux(op, ty)?,
        ["vote", "sync", mode, _] => vote(mode)?,
        ["match", which @ ("any" | "all"), "sync", ty] => matching(ty, which == "all"),
        ["elect", "sync"] => elect(),
        ["activemask", _] => active(),
        ["bar", "warp", "sync"] => barrier(),
        _ => return Err(missing(form)),
    })
}

/// The call among the threads of each group, behind one another.
fn body(call: &str) -> String {
    format!(
        "var n = get(input, 0);\n\
         var i = grid_thread();\n\
         var round = 0;\n\
         while (round < {ROUNDS}) {{\n\
         var k = i + n * round;\n\
         var mask = get(input, 1 + 3 * k);\n\
         var group = get(input, 2 + 3 * k);\n\
         var data = get(input, 3 + 3 * k);\n\
         var now = 0;\n\
         while (now < 3) {{\n\
         if (now == group) {{\n\
         {call}\
         }}\n\
         now = now + 1;\n\
         }}\n\
         round = round + 1;\n\
         }}\n"
    )
}

/// A launch of so many warps: `value` draws what threads put in, `expected` says what a thread of a group gets.
fn case(
    warps: usize,
    mut random: Random,
    value: impl Fn(&mut Random, usize) -> u64,
    expected: impl Fn(&Group, u64) -> Vec<Word>,
) -> Case {
    let threads = warps * LANES;
    let mut input = vec![threads as u64];
    let mut output = Vec::new();
    for round in 0..ROUNDS {
        for _ in 0..warps {
            let groups = if round < 8 { 1 } else { 1 + random.below(3) };
            let of_lane = Vec::from_iter((0..LANES).map(|_| random.below(groups)));
            let values = Vec::from_iter((0..LANES).map(|_| value(&mut random, round)));
            for lane in 0..LANES {
                let same = (0..LANES).filter(|other| of_lane[*other] == of_lane[lane]);
                let group = Group {
                    mask: same.fold(0, |mask, lane| mask | 1 << lane),
                    values: values.clone(),
                };
                input.extend([group.mask, of_lane[lane], values[lane]]);
                output.extend(expected(&group, values[lane]));
            }
        }
    }
    let launch = match warps {
        1..32 => Launch::new(1, threads as u32),
        _ => Launch::new(4, threads as u32 / 4),
    };
    Case::new(format!("{warps} warps"), launch, input).gives(output)
}

const WARPS: [usize; 3] = [1, 5, 32];

fn redux(op: &str, ty: &str) -> Result<Scenario, String> {
    let signed = ty == "s32";
    let combine: fn(u32, u32) -> u32 = match op {
        "add" => u32::wrapping_add,
        "min" if signed => |a, b| (a as i32).min(b as i32) as u32,
        "max" if signed => |a, b| (a as i32).max(b as i32) as u32,
        "min" => u32::min,
        "max" => u32::max,
        "and" => |a, b| a & b,
        "or" => |a, b| a | b,
        "xor" => |a, b| a ^ b,
        _ => {
            return Err(format!(
                "no scenario for the operation {op} of `redux.sync`"
            ));
        }
    };
    let body = body("@r = (data; mask)\nput(output, k, r);\n");
    let purpose = format!("redux {op} {ty}");
    Ok(Scenario::new(body, move |seed| {
        // Few bits, or few zeros, so that `and` and `or` leave something.
        let value = |random: &mut Random, round: usize| {
            let word = random.word() & 0xffff_ffff;
            match round % 4 {
                0 => word,
                1 => word | 0xffff_0000 | random.word() & 0xffff,
                2 => word & random.word() & random.word() & random.word(),
                _ => word >> (random.below(33) as u32),
            }
        };
        let expected = |group: &Group, _| {
            let all = group.members().map(|value| value as u32);
            vec![Word::Is(all.reduce(combine).unwrap_or_default().into())]
        };
        WARPS
            .map(|warps| case(warps, Random::new(seed, &purpose), value, expected))
            .into()
    }))
}

/// Predicates that are mostly alike, so that each vote goes either way.
fn ballots(random: &mut Random, round: usize) -> u64 {
    match round % 4 {
        0 => random.below(2),
        1 => u64::from(random.below(40) == 0),
        2 => u64::from(random.below(40) > 0),
        _ => (round as u64 / 4) % 2,
    }
}

fn vote(mode: &str) -> Result<Scenario, String> {
    let decide: fn(&Group) -> u64 = match mode {
        "all" => |group| group.members().all(|vote| vote == 1).into(),
        "any" => |group| group.members().any(|vote| vote == 1).into(),
        "uni" => |group| {
            let lanes = group.lanes_with(|vote| vote == 1);
            (lanes == 0 || lanes == group.mask).into()
        },
        "ballot" => |group| group.lanes_with(|vote| vote == 1),
        _ => return Err(format!("no scenario for the mode {mode} of `vote.sync`")),
    };
    let body = body("@r = (data; mask)\nput(output, k, r);\n");
    let purpose = format!("vote {mode}");
    Ok(Scenario::new(body, move |seed| {
        let expected = |group: &Group, _| vec![Word::Is(decide(group))];
        WARPS
            .map(|warps| case(warps, Random::new(seed, &purpose), ballots, expected))
            .into()
    }))
}

/// Words that differ in few bits: in the upper half too, if they have one.
fn matching(ty: &str, all: bool) -> Scenario {
    let wide = ty == "b64";
    let body = body(match all {
        false => "@r = (data; mask)\nput(output, k, r);\n",
        true => "@r = (data; mask)\nput(output, 2 * k, r);\nput(output, 2 * k + 1, r_0);\n",
    });
    let purpose = format!("match {ty} {all}");
    Scenario::new(body, move |seed| {
        let value = |random: &mut Random, round: usize| {
            let base = 0x8000_0001_7fff_fffe >> (32 * u64::from(!wide));
            let bits = if wide { 64 } else { 32 };
            match round % 4 {
                0 => base ^ random.below(3),
                1 => base ^ u64::from(random.below(20) == 0) << (bits - 1),
                2 => base,
                _ => base ^ random.below(2) << (bits / 2),
            }
        };
        let expected = |group: &Group, value| match all {
            false => vec![Word::Is(group.lanes_with(|it| it == value))],
            true => {
                let same = group.members().all(|it| it == value);
                vec![
                    Word::Is(if same { group.mask } else { 0 }),
                    Word::Is(same.into()),
                ]
            }
        };
        WARPS
            .map(|warps| case(warps, Random::new(seed, &purpose), value, expected))
            .into()
    })
}

/// What each group's threads found, in the order of lanes.
fn by_group<'o>(
    masks: &'o [u64],
    output: &'o [u64],
    words: usize,
) -> impl Iterator<Item = (u64, Vec<(usize, &'o [u64])>)> + 'o {
    masks
        .chunks(LANES)
        .enumerate()
        .flat_map(move |(warp, masks)| {
            let firsts = (0..LANES).filter(|lane| masks[*lane].trailing_zeros() as usize == *lane);
            firsts.map(move |first| {
                let lanes = (0..LANES).filter(|lane| masks[first] >> lane & 1 == 1);
                let found = lanes.map(|lane| {
                    let at = words * (warp * LANES + lane);
                    (lane, &output[at..at + words])
                });
                (masks[first], found.collect())
            })
        })
}

fn masks(input: &[u64]) -> Vec<u64> {
    input[1..].chunks(3).map(|thread| thread[0]).collect()
}

/// One of each group is elected, and all know which.
fn elect() -> Scenario {
    let body = body("@e = (mask)\nput(output, 2 * k, e);\nput(output, 2 * k + 1, e_0);\n");
    Scenario::new(body, |seed| {
        let elected = |warps| {
            let random = Random::new(seed, "elect with leader");
            let either = |_: &Group, _| vec![Word::Within(0, 1), Word::Within(0, 31)];
            let case = case(warps, random, |_, _| 0, either);
            let masks = masks(&case.input);
            case.relation(move |output| {
                for (mask, lanes) in by_group(&masks, output, 2) {
                    let leader = lanes[0].1[1];
                    let agree = lanes.iter().all(|(lane, found)| {
                        found[1] == leader && found[0] == u64::from(*lane as u64 == leader)
                    });
                    if !agree || mask >> leader & 1 == 0 {
                        return Err(format!(
                            "mask {mask:#x}: expected one elected lane of it, known to all, found (lane, [elected, \
                             leader]) {lanes:?}"
                        ));
                    }
                }
                Ok(())
            })
        };
        WARPS.map(elected).into()
    })
}

/// A thread is among those that are active with it; nothing promises more.
fn active() -> Scenario {
    let body = body("@r = ()\nput(output, k, r);\n");
    Scenario::new(body, |seed| {
        let active = |warps| {
            let random = Random::new(seed, "active");
            let case = case(
                warps,
                random,
                |_, _| 0,
                |_, _| vec![Word::Within(1, u32::MAX.into())],
            );
            case.relation(|output| {
                let alone = |(k, lanes): (usize, &u64)| lanes >> (k % LANES) & 1 == 0;
                match output.iter().enumerate().find(|found| alone(*found)) {
                    None => Ok(()),
                    Some((k, lanes)) => Err(format!(
                        "word {k}: expected lane {} to be active, found {lanes:#x}",
                        k % LANES
                    )),
                }
            })
        };
        WARPS.map(active).into()
    })
}

/// The next lane of the group has stored before the barrier what is read behind it.
fn barrier() -> Scenario {
    let call = format!(
        "store(at(shared, 8 * thread()), 8, data);\n\
         @ = (mask)\n\
         var next = get(input, 1 + 3 * n * {ROUNDS} + k);\n\
         put(output, k, load(at(shared, 8 * (thread() - thread() % 32 + next)), 8));\n\
         @ = (mask)\n"
    );
    Scenario::new(body(&call), |seed| {
        let exchange = |warps| {
            let random = Random::new(seed, "warp barrier");
            let mut case = case(warps, random, |random, _| random.word(), |_, _| Vec::new());
            let threads = Vec::from_iter(case.input[1..].chunks(3).map(<[u64]>::to_vec));
            for (k, thread) in threads.iter().enumerate() {
                let lane = k % LANES;
                let next = (1..=LANES).map(|step| (lane + step) % LANES);
                let next = next.clone().find(|lane| thread[0] >> lane & 1 == 1);
                let next = next.unwrap_or(lane);
                case.input.push(next as u64);
                case.expected
                    .output
                    .push(Word::Is(threads[k - lane + next][2]));
            }
            case
        };
        WARPS.map(exchange).into()
    })
    .shared(8 * 256)
}
