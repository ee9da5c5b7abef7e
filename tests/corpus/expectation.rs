//! What must be left of each kernel: read from the corpus, compared with what was built.

use std::fmt::Write;

use cuda_ptx_host::inspect::flow::{Execution, Flow, Instruction, Position};

use crate::operations::{self, Operation, Sass, sass_of};

const SHAPES: &str = include_str!("../../ptx/corpus/src/shapes.rs");
const ORDER_SM_90A: &str = include_str!("../../ptx/corpus/src/sm_90a/order.rs");
const ORDER_SM_100A: &str = include_str!("../../ptx/corpus/src/sm_100a/order.rs");

/// A kernel and what must be left of it.
pub struct Kernel {
    pub name: String,
    pub expected: Expected,
}

pub enum Expected {
    /// Of an `expect:` line: one place for each instance of the operation.
    Places(&'static Operation, Vec<Place>),
    /// Of an `order:` line: each step comes before the next.
    Order(Vec<Step>),
}

/// Where an instance of an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Always,
    Arm,
    Either,
    Loop,
    UniformLoop,
}

/// One step of an `order:` line.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// What the instruction starts with, or a special register.
    instruction: String,
    repeated: bool,
    optional: bool,
}

/// Which code is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    Ptx,
    /// PTX in which variables live on the stack, so that an access to memory may be one to a
    /// variable.
    UnoptimisedPtx,
    Sass,
}

/// What became of a kernel that is not as expected.
#[derive(Debug)]
pub struct Fault {
    /// In a few words.
    pub what: String,
    /// The blocks in question.
    pub blocks: String,
}

/// All kernels for sm_90a.
pub fn sm_90a() -> Vec<Kernel> {
    kernels(&operations::SM_90A, ORDER_SM_90A)
}

/// All kernels for sm_100a.
pub fn sm_100a() -> Vec<Kernel> {
    kernels(&operations::SM_100A, ORDER_SM_100A)
}

fn kernels(operations: &'static [Operation], order: &str) -> Vec<Kernel> {
    let shapes = |source| lines_before(source, "// expect: ", "${concat(", ", $op)}");
    let (hard, _) = SHAPES
        .split_once("macro_rules! shapes")
        .expect("two macros");
    let (hard, all) = (shapes(hard), shapes(SHAPES));
    let mut kernels = Vec::new();
    for operation in operations {
        for (shape, places) in if operation.hard { &hard } else { &all } {
            let places = places.split(", ").map(place).collect();
            kernels.push(Kernel {
                name: format!("{shape}{}", operation.name),
                expected: Expected::Places(operation, places),
            });
        }
    }
    for (name, steps) in lines_before(order, "// order: ", "pub fn ", "(") {
        kernels.push(Kernel {
            name: name.to_owned(),
            expected: Expected::Order(steps.split(" < ").map(step).collect()),
        });
    }
    kernels
}

/// The texts behind `marker`, each with the name of the function that follows it.
fn lines_before<'a>(
    source: &'a str,
    marker: &str,
    before: &str,
    after: &str,
) -> Vec<(&'a str, &'a str)> {
    let parts = source.split(marker).skip(1);
    parts
        .map(|part| {
            let (text, rest) = part.split_once('\n').expect("a marker is a line");
            let name = rest.split_once(before).expect("a kernel follows").1;
            (name.split_once(after).expect("a name ends").0, text)
        })
        .collect()
}

fn place(word: &str) -> Place {
    match word {
        "always" => Place::Always,
        "arm" => Place::Arm,
        "either" => Place::Either,
        "loop" => Place::Loop,
        "uniform loop" => Place::UniformLoop,
        _ => panic!("`{word}` is no place; see ptx/corpus/src/lib.rs"),
    }
}

fn step(text: &str) -> Step {
    let (text, repeated) = match text.strip_suffix(" in loop") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let (text, optional) = match text.strip_suffix('?') {
        Some(text) => (text, true),
        None => (text, false),
    };
    Step {
        instruction: text.to_owned(),
        repeated,
        optional,
    }
}

impl Kernel {
    /// The name of the shape and of the operation in it; a kernel of an `order.rs` is all shape.
    pub fn parts(&self) -> (&str, &str) {
        match &self.expected {
            Expected::Places(operation, _) => {
                let shape = self.name.strip_suffix(operation.name).unwrap_or_default();
                (shape.trim_end_matches('_'), operation.name)
            }
            Expected::Order(_) => (&self.name, ""),
        }
    }

    /// Compares the kernel with what was built.
    pub fn check(&self, flow: &Flow, code: Code) -> Result<(), Fault> {
        match &self.expected {
            Expected::Places(operation, places) => check_places(flow, code, operation, places),
            Expected::Order(steps) => check_order(flow, code, steps),
        }
    }
}

fn check_places(
    flow: &Flow,
    code: Code,
    operation: &Operation,
    places: &[Place],
) -> Result<(), Fault> {
    let (instruction, computed) = match (code, operation.sass) {
        (Code::Sass, Sass::Hidden) => return Ok(()),
        (Code::Sass, Sass::Exact(instruction)) => (instruction, false),
        (Code::Sass, Sass::Computed(instruction)) => (instruction, true),
        _ => (operation.ptx, false),
    };
    let all = flow.find(|found| found.opcode.starts_with(instruction));
    let found = without_peeled(flow, &all);
    let fault = |what: String| Err(Fault::new(what, flow, &all));

    let unrolled = code == Code::Sass && places.contains(&Place::UniformLoop);
    let count_fits = match (unrolled, computed) {
        // ptxas knows that all threads agree on the number of iterations, and unrolls.
        (true, _) => true,
        (false, true) => found.len() <= places.len(),
        (false, false) => found.len() == places.len(),
    };
    if !count_fits {
        return fault(format!("{} instead of {}", found.len(), places.len()));
    }
    let fits = |position: &Position, place: &Place| {
        let execution = flow.execution(*position);
        match place {
            Place::Always => execution == Execution::Always,
            Place::Arm | Place::Either => execution == Execution::Sometimes,
            Place::Loop => execution == Execution::Repeatedly,
            Place::UniformLoop => unrolled || execution == Execution::Repeatedly,
        }
    };
    // All instances of a kernel are at places of one kind.
    if !found.iter().all(|position| fits(position, &places[0])) {
        return fault("moved".to_owned());
    }
    let in_some_loop = |position: &Position| flow.execution(*position) == Execution::Repeatedly;
    if unrolled && !computed && !found.iter().any(in_some_loop) {
        return fault("left its loop".to_owned());
    }
    // ptxas may put predicates in front of the instructions of short arms, instead of branches.
    let predicated = found.iter().any(|&position| flow.at(position).guarded);
    if places[0] == Place::Either && !computed && !predicated {
        let both = found
            .iter()
            .any(|&one| found.iter().any(|&other| flow.reaches(one, other)));
        if both || flow.can_avoid(&found, None) {
            return fault("not in exactly one of the arms".to_owned());
        }
    }
    Ok(())
}

/// Without the copies that every thread executes before it gets to another one in a loop: peeling
/// the first iterations keeps the threads together.
fn without_peeled(flow: &Flow, all: &[Position]) -> Vec<Position> {
    let repeated = |position: &Position| flow.execution(*position) == Execution::Repeatedly;
    let peeled = |position: &Position| {
        let in_loops = || all.iter().filter(|other| repeated(other));
        !repeated(position)
            && in_loops().count() > 0
            && in_loops().all(|&other| flow.dominates(*position, other))
    };
    all.iter().copied().filter(|it| !peeled(it)).collect()
}

fn check_order(flow: &Flow, code: Code, steps: &[Step]) -> Result<(), Fault> {
    let mut previous: Option<(&Step, Vec<Position>)> = None;
    for (number, step) in steps.iter().enumerate() {
        if code == Code::UnoptimisedPtx && step.is_access() {
            continue;
        }
        let Some(name) = step.name(code) else {
            continue;
        };
        // The same machine instruction may stand for several steps.
        let namesakes = |steps: &[Step]| {
            let same = steps.iter().filter(|other| other.name(code) == Some(name));
            same.count()
        };
        let all = flow.find(|found| is(found, name));
        let (mentions, before) = (namesakes(steps), namesakes(&steps[..number]));
        let here = match (all.len() == mentions, mentions) {
            (_, 1) if code == Code::Sass && !all.is_empty() => all,
            (true, _) => vec![in_order(flow, &all)[before]],
            // Unrolled, or a wait that was peeled.
            (false, _) if code == Code::Sass && all.len() > mentions => continue,
            _ => {
                let what = format!("{name}: {} instead of {mentions}", all.len());
                return Err(Fault::new(what, flow, &all));
            }
        };
        let repeats = |position: &Position| flow.execution(*position) == Execution::Repeatedly;
        if code != Code::Sass && here.iter().any(|it| repeats(it) != step.repeated)
            || step.repeated && !here.iter().any(repeats)
        {
            let what = format!(
                "{name} is {} loop",
                if step.repeated { "in no" } else { "in a" }
            );
            return Err(Fault::new(what, flow, &here));
        }
        if let Some((earlier, there)) = &previous {
            check_pair(flow, earlier, there, &here).map_err(|what| {
                Fault::new(
                    format!("{what} {name}"),
                    flow,
                    &[&there[..], &here].concat(),
                )
            })?;
        }
        previous = Some((step, here));
    }
    Ok(())
}

/// Whether all of `here` comes behind all of `there`.
fn check_pair(
    flow: &Flow,
    earlier: &Step,
    there: &[Position],
    here: &[Position],
) -> Result<(), String> {
    let name = &earlier.instruction;
    let skippable = earlier.optional || there.iter().any(|&it| flow.at(it).guarded);
    for &second in here {
        if !skippable && flow.can_avoid(there, Some(second)) {
            return Err(format!("{name} does not come before every"));
        }
        for &first in there {
            // Of two instructions of one loop each comes behind the other.
            if flow.reaches(second, first) && !flow.reaches(first, second) {
                return Err(format!("{name} comes behind"));
            }
        }
    }
    Ok(())
}

fn is(found: &Instruction, name: &str) -> bool {
    match name {
        "%clock64" | "SR_CLOCKLO" => found.text.contains(name),
        // A call of an unknown function says what it takes and returns.
        "call" => found.opcode.starts_with(name) && found.text.contains("prototype_"),
        // `LDG.E ` is the whole opcode; `STS` is not the start of `STSM`.
        _ => match format!("{} ", found.opcode).strip_prefix(name) {
            Some(rest) => name.ends_with(' ') || !rest.starts_with(|c: char| c.is_alphanumeric()),
            None => false,
        },
    }
}

/// Sorted so that none comes behind its successor.
fn in_order(flow: &Flow, all: &[Position]) -> Vec<Position> {
    let before = |a, b| flow.dominates(a, b) || flow.reaches(a, b) && !flow.reaches(b, a);
    let mut sorted = all.to_vec();
    sorted.sort_by(|&a, &b| before(b, a).cmp(&before(a, b)));
    sorted
}

impl Step {
    fn name(&self, code: Code) -> Option<&str> {
        match code {
            Code::Sass => sass_of(&self.instruction),
            _ => Some(&self.instruction),
        }
    }

    fn is_access(&self) -> bool {
        self.instruction.starts_with("ld.") || self.instruction.starts_with("st.")
    }
}

impl Fault {
    fn new(what: String, flow: &Flow, positions: &[Position]) -> Self {
        let mut blocks: Vec<usize> = positions.iter().map(|position| position.block).collect();
        blocks.dedup();
        let mut text = String::new();
        for block in blocks {
            let _ = write!(text, "  {}", flow.show(block).replace('\n', "\n  "));
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        Self { what, blocks: text }
    }
}
