//! `mbarrier` forms, against an exact model of the object.
//!
//! The kernels interpret a program: each step names what is done, by which block of the cluster and
//! to whose barrier. One of the operations is the form; the others are plain PTX of the prelude.
//! All blocks of the cluster meet after each step, so the order of the steps is the only one.

use super::{Case, Random, Scenario, Word};
use crate::differential::form::Form;
use crate::driver::Launch;

/// The greatest arrival count, and the greatest transaction count.
const MAX_COUNT: u64 = (1 << 20) - 1;

/// The bits of a state that the H200 writes; the lower ones are what the register held before.
const STATE: u64 = 0xffff_ffff_0000_0000;

/// Phases of a barrier in a launch, or twice as many.
const ROUNDS: u64 = 16;

/// Words of output for a step.
const RESULTS: usize = 4;

// Operations of a program.
const FORM: u64 = 0;
const INIT: u64 = 1;
const ARRIVE: u64 = 2;
const DROP: u64 = 3;
const EXPECT: u64 = 4;
const COMPLETE: u64 = 5;
const TEST: u64 = 6;
const INVALIDATE: u64 = 7;

/// What the form does, and how a program uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Init,
    Invalidate,
    /// Arrivals: the operand is a count, a transaction count, or absent.
    Arrive {
        operand: Operand,
        drop: bool,
        no_complete: bool,
    },
    Expect,
    Complete,
    PendingCount,
    /// Whether the layout asked for is the one that objects have.
    CheckLayout {
        matches: bool,
    },
    Wait {
        by_state: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operand {
    None,
    Count,
    Bytes,
}

pub fn scenario(form: &Form) -> Option<Scenario> {
    let role = role(form)?;
    let remote = form.has("space_cluster");
    let name = form.instruction.clone();
    let reports = form.outputs;
    let cases = move |seed| {
        let case = |(cluster, count): (u64, u64)| {
            let mut random = Random::new(seed ^ cluster << 32 ^ count << 8, &name);
            let mut program = Program::new(cluster, count, remote, reports);
            program.write(role, &mut random);
            program.into_case()
        };
        // The clusters, and the counts of arrivals: one of them by chance.
        let any = 1 + Random::new(seed, &name).below(1024);
        let shapes: &[(u64, u64)] = if remote {
            &[
                (1, 1),
                (2, 3),
                (3, any),
                (4, 1024),
                (5, 2),
                (6, 100),
                (7, 512),
                (8, 64),
                (16, MAX_COUNT),
            ]
        } else {
            &[
                (1, 1),
                (1, 2),
                (1, 37),
                (1, any),
                (1, 1023),
                (2, 1024),
                (1, MAX_COUNT),
            ]
        };
        shapes.iter().copied().map(case).collect()
    };
    Some(Scenario::new(body(form, role, remote), cases).shared(1024))
}

fn role(form: &Form) -> Option<Role> {
    let function = form.function.trim_start_matches("mbarrier_");
    let count = form.operands.len() > 1;
    let operand = match count {
        true if form.says("expect_tx") => Operand::Bytes,
        true => Operand::Count,
        false => Operand::None,
    };
    Some(match function {
        "init" => Role::Init,
        "inval" => Role::Invalidate,
        "expect_tx" => Role::Expect,
        "complete_tx" => Role::Complete,
        "pending_count" => Role::PendingCount,
        "check_layout" => Role::CheckLayout {
            matches: form.has("layout_v0"),
        },
        "test_wait" | "try_wait" => Role::Wait { by_state: true },
        "test_wait_parity" | "try_wait_parity" => Role::Wait { by_state: false },
        _ if function.starts_with("arrive") => Role::Arrive {
            operand,
            drop: function.starts_with("arrive_drop"),
            no_complete: function.ends_with("no_complete"),
        },
        _ => return None,
    })
}

fn body(form: &Form, role: Role, remote: bool) -> String {
    let bar = if remote { "remote(bar, target)" } else { "bar" };
    let hint = |at: usize| {
        if form.operands.len() > at {
            "; 2000"
        } else {
            ""
        }
    };
    let call = match role {
        Role::Init => "@ = (bar; a)\nbar_fence();\n".to_owned(),
        Role::Invalidate => "@ = (bar)\n".to_owned(),
        Role::Arrive { operand, .. } => {
            let operand = if operand == Operand::None { "" } else { "; a" };
            match form.result {
                None => format!("@ = ({bar}{operand})\n"),
                Some(_) => format!(
                    "@s = ({bar}{operand})\nstate = s;\nr = bar_pending(s);\nput(output, at + 3, s);\n"
                ),
            }
        }
        Role::Expect | Role::Complete => format!("@ = ({bar}; a)\n"),
        Role::PendingCount => "@c = (state)\nr = c;\n".to_owned(),
        Role::CheckLayout { .. } => "@m = (bar)\nr = m;\n".to_owned(),
        Role::Wait { by_state } => {
            let which = if by_state { "state" } else { "a" };
            let mut call = format!("@w = (bar; {which}{})\nr = w;\n", hint(2));
            for output in 0..form.outputs {
                call += &format!("put(output, at + 1 + {output}, w_{output});\n");
            }
            call
        }
    };
    format!(
        "ptr bar = shared;\n\
         var n = get(input, 0);\n\
         var state = 0;\n\
         var i = 0;\n\
         while (i < n) {{\n\
         var code = get(input, 1 + 4 * i);\n\
         var actor = get(input, 2 + 4 * i);\n\
         var target = get(input, 3 + 4 * i);\n\
         var a = get(input, 4 + 4 * i);\n\
         var at = {RESULTS} * i;\n\
         var r = 0;\n\
         if (cluster_rank() == actor) {{\n\
         if (code == {FORM}) {{\n{call}}}\n\
         if (code == {INIT}) {{ bar_init(bar, a); bar_fence(); }}\n\
         if (code == {ARRIVE}) {{ state = bar_arrive(bar, a); r = bar_pending(state); }}\n\
         if (code == {DROP}) {{ state = bar_arrive_drop(bar, a); r = bar_pending(state); }}\n\
         if (code == {EXPECT}) {{ bar_expect(bar, a); }}\n\
         if (code == {COMPLETE}) {{ bar_complete(bar, a); }}\n\
         if (code == {TEST}) {{ r = bar_test(bar, a); }}\n\
         if (code == {INVALIDATE}) {{ bar_inval(bar); }}\n\
         put(output, at, r);\n\
         }}\n\
         cluster_sync();\n\
         i = i + 1;\n\
         }}\n"
    )
}

/// An mbarrier object as the PTX ISA describes it.
#[derive(Clone, Copy, Debug, Default)]
struct Object {
    phase: u64,
    expected: u64,
    pending: u64,
    /// Bytes expected and not yet complete; negative if they completed first.
    transactions: i64,
}

impl Object {
    fn init(count: u64) -> Self {
        Self {
            phase: 0,
            expected: count,
            pending: count,
            transactions: 0,
        }
    }

    /// Gives the pending count before.
    fn arrive(&mut self, count: u64) -> u64 {
        let before = self.pending;
        self.pending -= count;
        self.turn();
        before
    }

    fn arrive_drop(&mut self, count: u64) -> u64 {
        self.expected -= count;
        self.arrive(count)
    }

    fn transact(&mut self, bytes: i64) {
        self.transactions += bytes;
        self.turn();
    }

    fn turn(&mut self) {
        if self.pending == 0 && self.transactions == 0 {
            self.phase += 1;
            self.pending = self.expected;
        }
    }

    /// Whether the phase of this parity, the current one or the one before, is complete.
    fn is_complete(&self, parity: u64) -> bool {
        self.phase % 2 != parity
    }
}

/// The steps of a launch with what each must give.
struct Program {
    cluster: u64,
    count: u64,
    remote: bool,
    /// The outputs of the form besides its result.
    reports: usize,
    steps: Vec<[u64; 4]>,
    results: Vec<Word>,
    object: Object,
    /// The block that owns the barrier in use.
    owner: u64,
    /// The phase, and the pending count, of the owner's last state.
    state: (u64, u64),
}

impl Program {
    fn new(cluster: u64, count: u64, remote: bool, reports: usize) -> Self {
        Self {
            cluster,
            count,
            remote,
            reports,
            steps: Vec::new(),
            results: Vec::new(),
            object: Object::default(),
            owner: 0,
            state: (0, 0),
        }
    }

    fn into_case(self) -> Case {
        let what = format!(
            "cluster of {}, {} arrivals, {} steps",
            self.cluster,
            self.count,
            self.steps.len()
        );
        let blocks = self.cluster as u32;
        let input = [self.steps.len() as u64]
            .into_iter()
            .chain(self.steps.into_iter().flatten());
        let launch = Launch::new(blocks, 1).cluster([blocks, 1, 1]);
        Case::new(what, launch, input.collect()).gives(self.results)
    }

    fn step(&mut self, code: u64, actor: u64, operand: u64, result: u64) {
        self.steps.push([code, actor, self.owner, operand]);
        self.results.push(Word::Is(result));
        self.results.extend([Word::Is(super::POISON); RESULTS - 1]);
    }

    fn plain(&mut self, code: u64, operand: u64) {
        let result = match code {
            INIT => {
                self.object = Object::init(operand);
                0
            }
            ARRIVE | DROP => {
                let phase = self.object.phase;
                let before = match code {
                    ARRIVE => self.object.arrive(operand),
                    _ => self.object.arrive_drop(operand),
                };
                self.state = (phase, before);
                before
            }
            EXPECT => {
                self.object.transact(operand as i64);
                0
            }
            COMPLETE => {
                self.object.transact(-(operand as i64));
                0
            }
            _ => self.object.is_complete(operand).into(),
        };
        self.step(code, self.owner, operand, result);
    }

    /// Both parities: one of them is complete.
    fn test(&mut self) {
        self.plain(TEST, 0);
        self.plain(TEST, 1);
    }

    /// The form, by the owner or, where it reaches across the cluster, by any block.
    fn form(&mut self, random: &mut Random, operand: u64, result: u64) {
        let actor = if self.remote {
            random.below(self.cluster)
        } else {
            self.owner
        };
        self.step(FORM, actor, operand, result);
    }

    /// The rest of the phase with plain operations, in an order of chance.
    fn finish(&mut self, random: &mut Random) {
        let phase = self.object.phase;
        while self.object.phase == phase {
            if self.object.pending > 0 && random.below(2) == 0 {
                let whole = self.object.pending;
                let part = if whole > 4 && random.below(3) > 0 {
                    1 + random.below(whole - 1)
                } else {
                    whole
                };
                self.plain(ARRIVE, part);
            } else if self.object.transactions > 0 {
                self.plain(COMPLETE, self.object.transactions as u64);
            } else if self.object.transactions < 0 {
                self.plain(EXPECT, self.object.transactions.unsigned_abs());
            }
        }
        self.test();
    }

    fn write(&mut self, role: Role, random: &mut Random) {
        self.owner = random.below(self.cluster);
        if role != Role::Init {
            self.plain(INIT, self.count);
            self.test();
        }
        for round in 0..ROUNDS {
            self.round(role, round, random);
        }
    }

    fn round(&mut self, role: Role, round: u64, random: &mut Random) {
        // Bytes complete before they are expected, or after.
        if self.object.pending > 1 && role != Role::Init && random.below(2) == 0 {
            let bytes = 1 + random.below(1 << 16);
            self.plain(
                if random.below(2) == 0 {
                    EXPECT
                } else {
                    COMPLETE
                },
                bytes,
            );
        }
        match role {
            Role::Init => {
                if round > 0 {
                    self.step(INVALIDATE, self.owner, 0, 0);
                }
                self.object = Object::init(self.count);
                self.step(FORM, self.owner, self.count, 0);
                self.test();
                self.finish(random);
                self.finish(random);
            }
            Role::Invalidate => {
                self.finish(random);
                self.step(FORM, self.owner, 0, 0);
                self.plain(INIT, self.count);
                self.test();
                self.finish(random);
            }
            Role::Arrive {
                operand,
                drop,
                no_complete,
            } => {
                self.arrive(operand, drop, no_complete, random);
                self.test();
                if self.object.phase == round {
                    self.finish(random);
                }
            }
            Role::Complete if round % 2 == 1 && self.object.transactions == 0 => {
                // The last bytes complete the phase.
                let bytes = 1 + random.below(MAX_COUNT);
                self.plain(EXPECT, bytes);
                self.plain(ARRIVE, self.object.pending);
                self.test();
                self.object.transact(-(bytes as i64));
                self.form(random, bytes, 0);
                self.test();
            }
            Role::Expect | Role::Complete => {
                let bytes = if round == 0 && self.object.transactions == 0 {
                    MAX_COUNT
                } else {
                    random.below(1 << 16)
                };
                let sign = if role == Role::Expect { 1 } else { -1 };
                let phase = self.object.phase;
                self.object.transact(sign * bytes as i64);
                self.form(random, bytes, 0);
                self.test();
                if self.object.phase == phase {
                    self.finish(random);
                }
            }
            Role::PendingCount => {
                while self.object.phase == round {
                    let part = 1 + random.below(self.object.pending.max(1));
                    if self.object.pending > 0 {
                        self.plain(ARRIVE, part.min(self.object.pending));
                        self.step(FORM, self.owner, 0, self.state.1);
                    } else {
                        self.finish(random);
                    }
                }
            }
            Role::CheckLayout { matches } => {
                self.step(FORM, self.owner, 0, matches.into());
                self.finish(random);
            }
            Role::Wait { by_state } => self.wait(by_state, round, random),
        }
    }

    fn arrive(&mut self, operand: Operand, drop: bool, no_complete: bool, random: &mut Random) {
        let phase = self.object.phase;
        // A dropped arrival is missing for ever; one must stay.
        let limit = if drop {
            self.object.expected - 1
        } else {
            self.object.pending
        };
        let limit = limit.min(self.object.pending - u64::from(no_complete));
        let (count, operand, bytes) = match operand {
            Operand::Count => {
                let count = if drop {
                    1 + random.below(limit.max(1)).min(limit / 2)
                } else {
                    1 + random.below(limit.max(1))
                };
                (count, count, 0)
            }
            Operand::None => (1, 0, 0),
            Operand::Bytes => {
                let bytes = match self.object.transactions {
                    0 => MAX_COUNT,
                    _ => 1 + random.below(1 << 18),
                };
                (1, bytes, bytes)
            }
        };
        if count > limit {
            // Nothing may be dropped, or the phase would complete: a phase with plain arrivals instead.
            return;
        }
        self.object.transactions += bytes as i64;
        let before = if drop {
            self.object.arrive_drop(count)
        } else {
            self.object.arrive(count)
        };
        if self.remote {
            self.form(random, operand, 0);
        } else {
            self.form(random, operand, before);
            self.state = (phase, before);
            let last = self.results.len() - 1;
            self.results[last] = Word::Opaque(STATE);
        }
    }

    fn wait(&mut self, by_state: bool, round: u64, random: &mut Random) {
        if by_state {
            let part = 1 + random.below(self.object.pending);
            self.plain(ARRIVE, part);
            self.ask_state();
            if self.object.phase == round {
                self.finish(random);
            }
            self.ask_state();
        } else {
            self.ask(round % 2);
            self.ask(1 - round % 2);
            self.finish(random);
            self.ask(round % 2);
        }
    }

    fn ask_state(&mut self) {
        let complete = self.object.phase != self.state.0;
        self.step(FORM, self.owner, 0, complete.into());
        self.no_report();
    }

    fn ask(&mut self, parity: u64) {
        self.step(
            FORM,
            self.owner,
            parity,
            self.object.is_complete(parity).into(),
        );
        self.no_report();
    }

    /// No copy here reports anything.
    fn no_report(&mut self) {
        let first = self.results.len() - RESULTS + 1;
        for report in 0..self.reports {
            self.results[first + report] = if report == 0 {
                Word::Is(0)
            } else {
                Word::Opaque(0xff)
            };
        }
    }
}

/// `cp.async.mbarrier.arrive`: an arrival when the thread's earlier `cp.async` copies are complete.
///
/// Without `.noinc` the phase expects it in addition to its count.
pub fn tracked_copy(form: &Form) -> Option<Scenario> {
    let counted = form.says("noinc");
    // Every thread copies 16 bytes; with `.noinc` the count is theirs, otherwise that of plain arrivals.
    let plain = if counted { "" } else { "bar_arrive(bar, 1);\n" };
    let body = format!(
        "ptr bar = shared;\n\
         ptr data = at(shared, 1024);\n\
         var i = thread();\n\
         if (i == 0) {{ bar_init(bar, threads()); bar_fence(); }}\n\
         sync();\n\
         var round = 0;\n\
         while (round < 4) {{\n\
         ptr mine = at(data, 16 * i);\n\
         store(mine, 8, {POISON});\n\
         sync();\n\
         small_copy(mine, at(memory, 16 * (i + round * threads())));\n\
         @ = (bar)\n\
         {plain}\
         bar_wait(bar, round % 2);\n\
         ptr other = at(data, 16 * ((i + 7) % threads()));\n\
         put(output, 2 * (i + round * threads()), load(other, 8));\n\
         put(output, 2 * (i + round * threads()) + 1, load(at(other, 8), 8));\n\
         sync();\n\
         round = round + 1;\n\
         }}\n",
        POISON = super::POISON
    );
    let name = form.instruction.clone();
    let cases = move |seed| {
        let case = |threads: u64| {
            let memory = Random::new(seed ^ threads << 32, &name).bytes(4 * 16 * threads as usize);
            let pairs = Vec::from_iter(super::words(&memory));
            let read = |k: u64| {
                let (round, i) = (k / threads, k % threads);
                let from = 2 * (round * threads + (i + 7) % threads) as usize;
                [pairs[from], pairs[from + 1]]
            };
            let output = Vec::from_iter((0..4 * threads).flat_map(read));
            let launch = Launch::new(1, threads as u32);
            Case::new(format!("{threads} threads"), launch, vec![0])
                .memory(memory)
                .gives_words(output)
        };
        [1, 32, 200, 1024].map(case).into()
    };
    Some(Scenario::new(body, cases).shared(1024 + 16 * 1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_completes_when_arrivals_and_bytes_are_all_there() {
        let mut object = Object::init(2);
        assert_eq!(object.arrive(1), 2);
        object.transact(-8);
        assert_eq!(object.arrive(1), 1);
        assert_eq!((object.phase, object.is_complete(0)), (0, false));
        object.transact(8);
        assert_eq!((object.phase, object.pending), (1, 2));
        assert!(object.is_complete(0) && !object.is_complete(1));
    }

    #[test]
    fn a_dropped_arrival_is_missing_in_later_phases() {
        let mut object = Object::init(3);
        object.arrive_drop(1);
        object.arrive(2);
        assert_eq!((object.phase, object.pending), (1, 2));
    }
}
