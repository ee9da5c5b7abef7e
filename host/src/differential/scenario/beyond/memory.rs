//! Atomic and ordered accesses: `atom`, `red`, `ld`, `st`; and `isspacep`.

use std::collections::HashMap;

use super::{Scenario, missing};
use crate::differential::form::Form;
use crate::differential::scenario::reduce::{Element, Operation};
use crate::differential::scenario::{Case, Random, Word, memory::POLICIES, tensor};
use crate::driver::Launch;

/// Threads of a block.
const THREADS: usize = 128;

/// Bytes of the place that each object has, and of the first place, which all threads share.
const PLACE: usize = 16;
const FIRST: usize = 256;

/// Messages that a litmus test passes.
const ROUNDS: usize = 256;

/// Bytes of memory for the message of a round: the word, and the flag in a line of its own.
const MESSAGE: usize = 256;
const LINE: usize = 128;

pub fn scenario(form: &Form) -> Result<Scenario, String> {
    if form.function == "isspacep" {
        return Ok(spaces(form));
    }
    if form.is_wrong_remotely() {
        return Err(
            "ptxas 13.5 adds the bits of packed halves as integers in another CTA's shared memory"
                .to_owned(),
        );
    }
    let orders = ["sem_acquire", "sem_release", "sem_acq_rel"];
    let passes_messages = match form.function.as_str() {
        "atom_add" | "atom_cas" | "red_add" | "ld_sem_scope" | "st_sem_scope" => {
            matches!(form.last(), "u32" | "b32") && form.operands.iter().all(|it| !it.contains('['))
        }
        _ => false,
    };
    match passes_messages && orders.iter().any(|sem| form.has(sem)) && form.result_is_scalar() {
        true => Ok(messages(form)),
        false => accesses(form).ok_or_else(|| missing(form)),
    }
}

impl Form {
    fn result_is_scalar(&self) -> bool {
        self.result.as_ref().is_none_or(|ty| !ty.contains('['))
    }

    fn is_remote(&self) -> bool {
        self.has("space_cluster")
    }

    fn is_in_shared(&self) -> bool {
        self.is_remote() || self.has("space_shared")
    }

    /// Whether ptxas makes a load, an operation and a store of it in the memory of another block, which loses what
    /// others do in between: 64-bit logic and comparisons.
    fn is_torn_remotely(&self) -> bool {
        let wide = ["b64", "u64", "s64"].contains(&self.last());
        let compares = ["and", "or", "xor", "min", "max"];
        self.is_remote() && wide && compares.iter().any(|operation| self.says(operation))
    }

    /// Whether ptxas adds the bits of packed halves as integers in the memory of another block.
    fn is_wrong_remotely(&self) -> bool {
        self.is_remote() && self.says("add") && ["f16x2", "bf16x2"].contains(&self.last())
    }
}

/// What a form does to an object.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Reduce(Operation),
    Exchange,
    Compare,
    Load,
    Store,
}

/// An object: so many words of a register each, of which each has so many elements.
#[derive(Clone, Copy)]
struct Shape {
    element: Element,
    per_word: usize,
    words: usize,
}

impl Shape {
    fn of(form: &Form) -> Option<Self> {
        let words = match Vec::from_iter(form.instruction.split('.')).as_slice() {
            [.., "v2", _] => 2,
            [.., "v4", _] => 4,
            [.., "v8", _] => 8,
            [.., "b128"] => 2,
            _ => 1,
        };
        let (element, per_word) = match form.last() {
            "b128" => (Element::Unsigned(64), 1),
            "f16x2" => (Element::Float(16), 2),
            "bf16x2" => (Element::Bf16, 2),
            "b8" => (Element::Unsigned(8), 1),
            "b16" => (Element::Unsigned(16), 1),
            other => (Element::of(other)?, 1),
        };
        Some(Self {
            element,
            per_word,
            words,
        })
    }

    fn elements(self) -> usize {
        self.words * self.per_word
    }

    fn random(self, random: &mut Random) -> Vec<u64> {
        let element = |_| self.element.random(random);
        (0..self.elements()).map(element).collect()
    }

    /// The words of registers.
    fn words(self, elements: &[u64]) -> Vec<u64> {
        let bits = 8 * self.element.bytes();
        let join = |elements: &[u64]| {
            let shifted = elements
                .iter()
                .enumerate()
                .map(|(at, it)| it << (at * bits));
            shifted.fold(0, |word, element| word | element)
        };
        elements.chunks(self.per_word).map(join).collect()
    }

    fn elements_of(self, words: &[u64]) -> Vec<u64> {
        let bits = 8 * self.element.bytes();
        let mask = u64::MAX >> (64 - bits);
        let split = |word: &u64| {
            let word = *word;
            (0..self.per_word).map(move |at| word >> (at * bits) & mask)
        };
        words.iter().flat_map(split).collect()
    }

    /// Puts elements at the beginning of a place.
    fn write(self, place: &mut [u8], elements: &[u64]) {
        let bytes = self.element.bytes();
        for (chunk, element) in place.chunks_mut(bytes).zip(elements) {
            chunk.copy_from_slice(&element.to_le_bytes()[..bytes]);
        }
    }

    fn read(self, place: &[u8]) -> Vec<u64> {
        let element = |chunk: &[u8]| {
            chunk
                .iter()
                .rev()
                .fold(0, |all, byte| all << 8 | u64::from(*byte))
        };
        let chunks = place.chunks(self.element.bytes());
        chunks.map(element).take(self.elements()).collect()
    }
}

/// What one call is given.
#[derive(Clone)]
struct Given {
    compare: Vec<u64>,
    value: Vec<u64>,
}

impl Kind {
    fn of(form: &Form) -> Option<Self> {
        let part = |name| form.says(name);
        Some(match form.instruction.split('.').next()? {
            "ld" => Self::Load,
            "st" => Self::Store,
            _ if part("exch") => Self::Exchange,
            _ if part("cas") => Self::Compare,
            _ => Self::Reduce(Operation::of(&form.instruction)?),
        })
    }

    fn is_atomic(self) -> bool {
        !matches!(self, Self::Load | Self::Store)
    }

    /// What is in memory afterwards.
    fn apply(self, shape: Shape, memory: &[u64], given: &Given) -> Vec<u64> {
        match self {
            Self::Load => memory.to_vec(),
            Self::Store | Self::Exchange => given.value.clone(),
            Self::Compare if memory == given.compare => given.value.clone(),
            Self::Compare => memory.to_vec(),
            Self::Reduce(operation) => {
                let pairs = memory.iter().zip(&given.value);
                pairs
                    .map(|(memory, value)| shape.element.apply(operation, *memory, *value))
                    .collect()
            }
        }
    }

    /// What a thread does to the object that all share: in any order, the same comes out in the end, unless the last
    /// one decides.
    fn shared_operand(self, shape: Shape, thread: usize, random: &mut Random) -> Given {
        let one = match shape.element {
            Element::Float(64) => 1f64.to_bits(),
            Element::Float(32) => 1f32.to_bits().into(),
            Element::Float(_) => 0x3c00,
            Element::Bf16 => 0x3f80,
            _ => 1,
        };
        let floats = matches!(shape.element, Element::Float(_) | Element::Bf16);
        let all = |element: u64| vec![element; shape.elements()];
        let value = match self {
            Self::Reduce(Operation::Add) if floats => all(one),
            Self::Reduce(Operation::Inc | Operation::Dec) => all(100),
            Self::Exchange | Self::Compare => all(thread as u64 + 1),
            _ => shape.random(random),
        };
        let compare = all(0);
        Given { compare, value }
    }

    /// Whether the last thread decides what is left of the object that all share.
    fn is_open(self) -> bool {
        matches!(self, Self::Exchange | Self::Compare)
    }
}

/// Each thread accesses an object of its own, of the other block if the space is that of the cluster. Then all change
/// one object, if the form is atomic there: what they find must be explained by some order of theirs.
fn accesses(form: &Form) -> Option<Scenario> {
    let (kind, shape) = (Kind::of(form)?, Shape::of(form)?);
    let (remote, in_shared) = (form.is_remote(), form.is_in_shared());
    let contended = kind.is_atomic() && !form.is_torn_remotely();
    let blocks = if remote { 2 } else { 1 };
    let threads = THREADS * blocks;
    let words = shape.words;
    let results = if form.result.is_some() { words } else { 0 };
    let operand = |second: usize| {
        let word = |k| {
            format!(
                "get(input, 1 + {} * g + {second} * {words} + {k})",
                4 * words
            )
        };
        Vec::from_iter((0..words).map(word)).join(" | ")
    };
    let call = |result: &str, object: &str, first: usize| {
        let (compare, value) = (operand(first), operand(first + 1));
        let operands = match kind {
            Kind::Load => String::new(),
            Kind::Compare => format!("; {compare}; {value}"),
            _ => format!("; {value}"),
        };
        let policy = if form.says("L2::cache_hint") {
            "; get(input, 0)"
        } else {
            ""
        };
        let mut call = format!("@{result} = ({object}{operands}{policy})\n");
        for k in 0..results {
            let word = if words == 1 {
                result.to_owned()
            } else {
                format!("{result}_{k}")
            };
            call += &format!(
                "put(output, {} + {results} * g + {k}, {word});\n",
                first / 2 * results * threads
            );
        }
        call
    };
    let sync = if remote {
        "cluster_sync();\n"
    } else {
        "sync();\n"
    };
    let copy = |to: &str, from: &str| {
        format!(
            "store({to}, 8, load({from}, 8));\nstore(at({to}, 8), 8, load(at({from}, 8), 8));\n"
        )
    };
    let mut body = format!(
        "var i = thread();\n\
         var g = grid_thread();\n\
         ptr object = at(memory, {FIRST} + {PLACE} * g);\n"
    );
    let (home, kept) = if in_shared {
        body += &format!("ptr own = at(shared, {FIRST} + {PLACE} * i);\n");
        body += &copy("own", "object");
        body += &format!("if (i == 0) {{\n{}}}\n{sync}", copy("shared", "memory"));
        (
            if remote {
                "remote(shared, 1 - cluster_rank())"
            } else {
                "shared"
            },
            "shared",
        )
    } else {
        ("memory", "memory")
    };
    body += &format!("ptr home = {home};\nptr mine = at(home, {FIRST} + {PLACE} * i);\n");
    body += &call("r", "mine", 0);
    if contended {
        body += &call("s", "home", 2);
    }
    body += sync;
    if in_shared {
        body += &copy("object", "own");
    }
    let last = 2 * results * threads;
    if contended {
        body += &format!(
            "if (i == 0) {{\n\
             put(output, {last} + 2 * block(), load({kept}, 8));\n\
             put(output, {last} + 2 * block() + 1, load(at({kept}, 8), 8));\n"
        );
        if kind.is_open() && !in_shared {
            body += "store(memory, 8, 0);\nstore(at(memory, 8), 8, 0);\n";
        }
        body += "}\n";
    }
    let name = form.instruction.clone();
    let case = move |seed: u64| {
        let mut random = Random::new(seed, &name);
        let mut memory = random.bytes(FIRST + PLACE * threads);
        memory[..FIRST].fill(0);
        let start = match kind {
            Kind::Reduce(
                Operation::And | Operation::Or | Operation::Xor | Operation::Min | Operation::Max,
            ) => shape.random(&mut random),
            Kind::Reduce(Operation::Inc | Operation::Dec) => vec![3; shape.elements()],
            _ => vec![0; shape.elements()],
        };
        shape.write(&mut memory[..PLACE], &start);
        let mut input = vec![POLICIES[0]];
        let (mut given, mut common) = (Vec::new(), Vec::new());
        for thread in 0..threads {
            // The object of the same thread of the other block, if that is where it goes.
            let object = if remote {
                (thread + THREADS) % threads
            } else {
                thread
            };
            let at = FIRST + PLACE * object;
            shape.write(&mut memory[at..at + PLACE], &shape.random(&mut random));
            let found = shape.read(&memory[at..at + PLACE]);
            let compare = if random.below(2) == 0 {
                found
            } else {
                shape.random(&mut random)
            };
            let own = Given {
                compare,
                value: shape.random(&mut random),
            };
            let shared = kind.shared_operand(shape, thread, &mut random);
            for part in [&own.compare, &own.value, &shared.compare, &shared.value] {
                input.extend(shape.words(part));
            }
            given.push((object, own));
            common.push(shared);
        }
        let mut after = memory.clone();
        let mut output = Vec::new();
        for (object, own) in &given {
            let place = &mut after[FIRST + PLACE * object..][..PLACE];
            let found = shape.read(place);
            if results > 0 {
                output.extend(shape.words(&found).into_iter().map(Word::Is));
            }
            shape.write(place, &kind.apply(shape, &found, own));
        }
        if !contended {
            return (input, memory, after, output, common, start);
        }
        output.extend(vec![Word::Free; results * threads]);
        // The block that a thread is in changes the object of the other, if any.
        for block in 0..blocks {
            let group = (block + blocks - 1) % blocks * THREADS;
            let end = common[group..group + THREADS]
                .iter()
                .fold(start.clone(), |end, given| kind.apply(shape, &end, given));
            let mut place = [0; PLACE];
            shape.write(&mut place, &end);
            let end = place
                .chunks(8)
                .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
            output.extend(end.map(|word| {
                if kind.is_open() {
                    Word::Free
                } else {
                    Word::Is(word)
                }
            }));
            if !in_shared {
                after[..PLACE].copy_from_slice(if kind.is_open() { &[0; PLACE] } else { &place });
            }
        }
        (input, memory, after, output, common, start)
    };
    let scenario = Scenario::new(body, move |seed| {
        let (input, memory, after, output, common, start) = case(seed);
        let launch = Launch::new(blocks as u32, THREADS as u32);
        let launch = if remote {
            launch.cluster([2, 1, 1])
        } else {
            launch
        };
        let explained = move |output: &[u64]| {
            if !contended || results == 0 {
                return Ok(());
            }
            for block in 0..blocks {
                let group = (block + blocks - 1) % blocks * THREADS;
                let found = |thread: usize| {
                    let at = results * (threads + group + thread);
                    shape.elements_of(&output[at..at + results])
                };
                let place = &output[last + 2 * block..][..2];
                let place = Vec::from_iter(place.iter().flat_map(|word| word.to_le_bytes()));
                let steps = Vec::from_iter((0..THREADS).map(|thread| {
                    let found = found(thread);
                    let left = kind.apply(shape, &found, &common[group + thread]);
                    (found, left)
                }));
                in_some_order(kind, &start, &shape.read(&place), &steps)?;
            }
            Ok(())
        };
        vec![
            Case::new(format!("{threads} threads"), launch, input)
                .memory(memory)
                .leaves(after)
                .gives(output)
                .relation(explained),
        ]
    });
    Some(match in_shared {
        true => scenario.shared(FIRST + PLACE * THREADS),
        false => scenario,
    })
}

/// Whether the steps, each from what a thread found to what it left, make a path from `start` to `end`. The elements of
/// a vector have paths of their own; what is compared or exchanged is one value.
fn in_some_order(
    kind: Kind,
    start: &[u64],
    end: &[u64],
    steps: &[(Vec<u64>, Vec<u64>)],
) -> Result<(), String> {
    let width = if kind.is_open() { start.len() } else { 1 };
    for at in (0..start.len()).step_by(width) {
        let part = |value: &[u64]| value[at..at + width].to_vec();
        let steps = steps.iter().map(|(from, to)| (part(from), part(to)));
        is_path(&part(start), &part(end), &Vec::from_iter(steps))
            .map_err(|why| format!("element {at}: {why}"))?;
    }
    Ok(())
}

/// Euler: all edges of a graph are a path if every node is left as often as it is entered, but for the ends, and all
/// can be reached.
fn is_path(start: &[u64], end: &[u64], steps: &[(Vec<u64>, Vec<u64>)]) -> Result<(), String> {
    let mut balance: HashMap<&[u64], i64> = HashMap::from([(start, -1)]);
    *balance.entry(end).or_default() += 1;
    let mut next: HashMap<&[u64], Vec<&[u64]>> = HashMap::new();
    for (from, to) in steps {
        *balance.entry(from).or_default() += 1;
        *balance.entry(to).or_default() -= 1;
        next.entry(from).or_default().push(to);
    }
    if let Some((value, _)) = balance.iter().find(|(_, balance)| **balance != 0) {
        return Err(format!(
            "no order of the threads explains how often {value:#x?} was found, from {start:#x?} to {end:#x?}"
        ));
    }
    let mut reached = vec![start];
    while let Some(value) = reached.pop() {
        reached.extend(next.remove(value).unwrap_or_default());
    }
    match next.keys().next() {
        Some(value) => Err(format!(
            "{value:#x?} was found, which nothing leads to from {start:#x?}"
        )),
        None => Ok(()),
    }
}

/// Message passing: a writer stores a word and raises a flag; a reader that sees the flag must see the word. The form
/// is the writer's if it releases, the reader's if it acquires, and a fence does the other part.
fn messages(form: &Form) -> Scenario {
    let acquires = form.has("sem_acquire") || form.has("sem_acq_rel");
    let releases = form.has("sem_release") || form.has("sem_acq_rel");
    let operands = |polls: bool| match form.function.as_str() {
        "ld_sem_scope" => "",
        "atom_cas" if polls => "; 0; 0",
        "atom_cas" => "; 0; 1",
        _ if polls => "; 0",
        _ => "; 1",
    };
    let raise = match releases {
        true => format!("@ = (flag{})\n", operands(false)),
        false => "full_fence();\nraise(flag);\n".to_owned(),
    };
    let wait = match acquires {
        true => format!("@r = (flag{})\nseen = r;\n", operands(true)),
        false => "seen = is_raised(flag);\n".to_owned(),
    };
    let fence = if acquires { "" } else { "full_fence();\n" };
    let in_block = form.has("scope_cta") || form.has("space_shared");
    let remote = form.is_remote() && !in_block;
    let flag = if remote {
        // Whoever calls the form does so from the other block.
        format!("remote(at(shared, 8 * round), {})", u8::from(releases))
    } else if form.is_in_shared() {
        "at(shared, 8 * round)".to_owned()
    } else {
        format!("at(data, {LINE})")
    };
    let in_cluster = remote || form.has("scope_cluster") && !in_block;
    let sync = if in_cluster {
        "cluster_sync();\n"
    } else {
        "sync();\n"
    };
    let clear = match form.is_in_shared() {
        true => format!(
            "var k = thread();\n\
             while (k < {ROUNDS}) {{\n\
             store(at(shared, 8 * k), 8, 0);\n\
             k = k + threads();\n\
             }}\n"
        ),
        false => String::new(),
    };
    let who = if in_block { "thread() / 32" } else { "block()" };
    let body = format!(
        "var who = {who};\n\
         {clear}{sync}\
         ptr meeting = at(memory, {MESSAGE} * {ROUNDS});\n\
         var round = 0;\n\
         if (thread() % 32 == 0) {{\n\
         while (round < {ROUNDS}) {{\n\
         ptr data = at(memory, {MESSAGE} * round);\n\
         ptr flag = {flag};\n\
         if (who == 1) {{ put(output, round, load(data, 8)); }}\n\
         full_fence();\n\
         publish(at(meeting, {LINE} * who), round + 1);\n\
         while (watch(at(meeting, {LINE} * (1 - who))) < round + 1) {{ }}\n\
         full_fence();\n\
         if (who == 0) {{\n\
         store(data, 8, get(input, round));\n\
         {raise}\
         }}\n\
         if (who == 1) {{\n\
         var seen = 0;\n\
         while (seen == 0) {{\n\
         {wait}\
         }}\n\
         {fence}\
         put(output, {ROUNDS} + round, load(data, 8));\n\
         }}\n\
         round = round + 1;\n\
         }}\n\
         }}\n\
         {sync}"
    );
    let launch = if in_block {
        Launch::new(1, 64)
    } else if in_cluster {
        Launch::new(2, 32).cluster([2, 1, 1])
    } else {
        Launch::new(2, 32)
    };
    let in_memory = !form.is_in_shared();
    let name = form.instruction.clone();
    let scenario = Scenario::new(body, move |seed| {
        let mut random = Random::new(seed, &name);
        let input = Vec::from_iter((0..ROUNDS).map(|_| random.word()));
        let mut after = vec![0; MESSAGE * ROUNDS + 2 * LINE];
        for (message, word) in after.chunks_mut(MESSAGE).zip(&input) {
            message[..8].copy_from_slice(&word.to_le_bytes());
            message[LINE] = in_memory.into();
        }
        for met in after[MESSAGE * ROUNDS..].chunks_mut(LINE) {
            met[..8].copy_from_slice(&(ROUNDS as u64).to_le_bytes());
        }
        let output = [0; ROUNDS].into_iter().chain(input.clone());
        let output = Vec::from_iter(output);
        vec![
            Case::new(format!("{ROUNDS} messages"), launch, input)
                .memory(vec![0; after.len()])
                .leaves(after)
                .gives_words(output),
        ]
    });
    match form.is_in_shared() {
        true => scenario.shared(8 * ROUNDS),
        false => scenario,
    }
}

/// An object in each space, and whether it is in the space of the form.
fn spaces(form: &Form) -> Scenario {
    let body = "@global = (at(memory, 8 * thread()))\n\
         @own = (at(shared, 8 * thread()))\n\
         @other = (remote(at(shared, 8 * thread()), 1 - cluster_rank()))\n\
         @local = (local_place())\n\
         @parameter = (tensor_map)\n\
         var k = 5 * grid_thread();\n\
         put(output, k, global);\n\
         put(output, k + 1, own);\n\
         put(output, k + 2, other);\n\
         put(output, k + 3, local);\n\
         put(output, k + 4, parameter);\n\
         cluster_sync();\n";
    let asked = form.tags.first().cloned().unwrap_or_default();
    Scenario::new(body, move |_| {
        let is = |spaces: &[&str]| Word::Is(spaces.contains(&asked.as_str()).into());
        // The window of the parameters is in that of global memory. That parameters are constants too is not said.
        let parameter = match asked.as_str() {
            "space_const" => Word::Opaque(u64::MAX),
            _ => is(&["space_param", "space_global"]),
        };
        let of_thread = [
            is(&["space_global"]),
            is(&["space_shared", "space_cluster"]),
            is(&["space_cluster"]),
            is(&["space_local"]),
            parameter,
        ];
        let launch = Launch::new(2, 64).cluster([2, 1, 1]);
        vec![
            Case::new("2 blocks of 64", launch, vec![])
                .memory(vec![0; 8 * 64])
                .gives(of_thread.repeat(128))
                .tensor(tensor::plain(128)),
        ]
    })
    .shared(8 * 64)
    .with_map()
}

#[cfg(test)]
mod tests {
    use super::is_path;

    #[test]
    fn steps_are_a_path_if_some_order_of_them_is() {
        let step = |from: u64, to: u64| (vec![from], vec![to]);
        let steps = [step(2, 3), step(0, 1), step(1, 2), step(1, 1), step(3, 1)];
        assert!(is_path(&[0], &[2], &[step(1, 2), step(0, 1), step(1, 1)]).is_ok());
        assert!(is_path(&[0], &[1], &steps).is_ok());
        for wrong in [
            // A value found twice, one that was never there, and a circle apart.
            vec![step(0, 1), step(0, 1)],
            vec![step(0, 1), step(5, 1)],
            vec![step(0, 1), step(7, 8), step(8, 7)],
        ] {
            assert!(is_path(&[0], &[1], &wrong).is_err(), "{wrong:?}");
        }
    }
}
