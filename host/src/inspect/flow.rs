//! Control flow of one kernel, in PTX or in SASS: which instruction is in which block, what comes
//! before it on every path, and what is executed again and again.
//!
//! Calls are followed: each call site has its own copy of the callee's blocks, so a duplicated call
//! shows as a duplicate of everything that the callee does. A call through a pointer is followed by
//! what comes behind it.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use anyhow::{Context, Result, bail};

use super::{ptx, sass};

/// The control-flow graph of a kernel. Block 0 is its entry.
#[derive(Debug, Clone)]
pub struct Flow {
    blocks: Vec<Block>,
}

/// Instructions that are executed one after the other.
#[derive(Debug, Clone)]
pub struct Block {
    /// The instructions in their order.
    pub instructions: Vec<Instruction>,
    /// The blocks that may come next.
    pub successors: Vec<usize>,
    /// How a thread ends here, if it does.
    pub end: Option<End>,
    /// The blocks that every path from the entry to this one goes through, itself included.
    dominators: BTreeSet<usize>,
    /// Whether the block can be reached from its own end.
    repeats: bool,
}

/// How a thread ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Regularly.
    Exit,
    /// By a trap, which ends the grid.
    Trap,
}

/// One instruction of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The opcode with its modifiers.
    pub opcode: String,
    /// The whole instruction.
    pub text: String,
    /// Whether a predicate decides about its execution.
    pub guarded: bool,
}

/// The place of one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The index of the block.
    pub block: usize,
    /// The index within the block.
    pub index: usize,
}

/// When the threads of a kernel execute an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Execution {
    /// Exactly once in every thread that ends regularly.
    Always,
    /// At most once, and not on every path.
    Sometimes,
    /// In a loop.
    Repeatedly,
}

impl Flow {
    /// The control flow of a PTX kernel and of the functions that it calls.
    ///
    /// # Errors
    /// If there is no such kernel, or it branches to places that are only known at run time.
    pub fn of_ptx(module: &ptx::Module, kernel: &str) -> Result<Self> {
        let kernel = module
            .kernel(kernel)
            .with_context(|| format!("there is no kernel `{kernel}` in the PTX"))?;
        let mut callees: HashMap<&str, Transfer> = HashMap::new();
        for function in &module.noreturns {
            callees.insert(function, Transfer::End(End::Trap));
        }
        let mut start = kernel.instructions.len();
        for function in &module.functions {
            callees.insert(&function.name, Transfer::Call(start));
            start += function.instructions.len();
        }
        let mut code = Code::default();
        for body in std::iter::once(kernel).chain(&module.functions) {
            let start = code.steps.len();
            for (index, instruction) in body.instructions.iter().enumerate() {
                let mut step = ptx_step(instruction, start, &callees);
                if let Some(targets) = body.branch_targets.get(&index) {
                    let targets = targets.iter().map(|target| start + target);
                    step.transfer = Transfer::Jump(targets.collect());
                }
                code.steps.push(step);
            }
            code.ends.insert(code.steps.len());
        }
        code.graph()
            .with_context(|| format!("in the PTX of `{}`", kernel.name))
    }

    /// The control flow of a machine function and of the device functions in its section.
    ///
    /// The path that ptxas adds behind `BRA.DIV`, where a diverged warp executes a warp-wide
    /// instruction together, is not followed: it does what the other path does.
    ///
    /// # Errors
    /// If it branches to places that are only known at run time.
    pub fn of_sass(function: &sass::Function) -> Result<Self> {
        let code = Code {
            steps: function.instructions.iter().map(sass_step).collect(),
            ends: BTreeSet::from([function.instructions.len()]),
        };
        code.graph()
            .with_context(|| format!("in the SASS of `{}`", function.name))
    }

    /// All blocks; what cannot be reached is not among them.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The instruction at a place.
    pub fn at(&self, position: Position) -> &Instruction {
        &self.blocks[position.block].instructions[position.index]
    }

    /// The places of all instructions that `is` accepts, block by block.
    pub fn find(&self, is: impl Fn(&Instruction) -> bool) -> Vec<Position> {
        let mut found = Vec::new();
        for (block, content) in self.blocks.iter().enumerate() {
            for (index, instruction) in content.instructions.iter().enumerate() {
                if is(instruction) {
                    found.push(Position { block, index });
                }
            }
        }
        found
    }

    /// Whether every path from the entry to `second` goes through `first`, and executes it there.
    pub fn dominates(&self, first: Position, second: Position) -> bool {
        let reached = if first.block == second.block {
            first.index < second.index
        } else {
            self.blocks[second.block].dominators.contains(&first.block)
        };
        reached && !self.at(first).guarded
    }

    /// Whether a thread can get from the entry to `to`, or to a regular end, without executing any
    /// of `through`.
    pub fn can_avoid(&self, through: &[Position], to: Option<Position>) -> bool {
        let first_of = |block: usize| {
            let inside = through.iter().filter(|position| position.block == block);
            let executed = inside.filter(|position| !self.at(**position).guarded);
            executed.map(|position| position.index).min()
        };
        let mut seen = BTreeSet::from([0]);
        let mut open = vec![0];
        while let Some(block) = open.pop() {
            let first = first_of(block);
            let here = to.filter(|to| to.block == block);
            if here.is_some_and(|to| first.is_none_or(|first| to.index <= first)) {
                return true;
            }
            if first.is_some() {
                continue;
            }
            if to.is_none() && self.blocks[block].end == Some(End::Exit) {
                return true;
            }
            let next = self.blocks[block].successors.iter().copied();
            open.extend(next.filter(|&next| seen.insert(next)));
        }
        false
    }

    /// Whether a thread that has executed `from` may come to `to`.
    pub fn reaches(&self, from: Position, to: Position) -> bool {
        (from.block == to.block && from.index < to.index) || self.leads_to(from.block, to.block)
    }

    /// When the instruction at a place is executed.
    pub fn execution(&self, position: Position) -> Execution {
        let ends = |block: &&Block| block.end == Some(End::Exit);
        if self.blocks[position.block].repeats {
            Execution::Repeatedly
        } else if !self.at(position).guarded
            && self
                .blocks
                .iter()
                .filter(ends)
                .all(|block| block.dominators.contains(&position.block))
        {
            Execution::Always
        } else {
            Execution::Sometimes
        }
    }

    /// A block as text, for the message about something in it.
    pub fn show(&self, block: usize) -> String {
        let Block {
            instructions,
            successors,
            dominators,
            repeats,
            ..
        } = &self.blocks[block];
        let before: Vec<_> = dominators.iter().filter(|&&other| other != block).collect();
        let mut text = format!(
            "block {block}{}, dominated by {before:?}, before {successors:?}:\n",
            if *repeats { " in a loop" } else { "" }
        );
        for instruction in instructions {
            let _ = writeln!(text, "    {}", instruction.text);
        }
        text
    }
}

/// The instructions of a kernel and its functions, one after the other; the kernel comes first.
#[derive(Default)]
struct Code {
    steps: Vec<Step>,
    /// The indices behind the last instruction of a function.
    ends: BTreeSet<usize>,
}

struct Step {
    instruction: Instruction,
    transfer: Transfer,
}

/// Where an instruction leads; if it is guarded, then also to the next one.
#[derive(Clone)]
enum Transfer {
    Next,
    /// To one of these instructions.
    Jump(Vec<usize>),
    /// To a function that starts at this instruction, and back.
    Call(usize),
    Return,
    End(End),
    /// To a place that is not in the text.
    Unknown,
}

fn ptx_step(
    instruction: &ptx::Instruction,
    start: usize,
    callees: &HashMap<&str, Transfer>,
) -> Step {
    let base = instruction.opcode.split('.').next().unwrap_or_default();
    let transfer = match base {
        "bra" => match instruction.operands.first().and_then(ptx::Operand::target) {
            Some(target) => Transfer::Jump(vec![start + target]),
            None => Transfer::Unknown,
        },
        "brx" => Transfer::Unknown,
        "call" => {
            let operands = instruction.operands.iter();
            let mut known = operands.filter_map(|it| callees.get(it.to_string().as_str()));
            // A function behind a pointer or in another module comes back.
            known.next().cloned().unwrap_or(Transfer::Next)
        }
        "ret" => Transfer::Return,
        "exit" => Transfer::End(End::Exit),
        "trap" => Transfer::End(End::Trap),
        _ => Transfer::Next,
    };
    Step {
        instruction: Instruction {
            opcode: instruction.opcode.clone(),
            text: instruction.to_string(),
            guarded: instruction.guard.is_some(),
        },
        transfer,
    }
}

fn sass_step(instruction: &sass::Instruction) -> Step {
    let targets = instruction
        .operands
        .iter()
        .filter_map(|operand| operand.strip_prefix('#')?.parse().ok());
    let targets: Vec<usize> = targets.collect();
    let transfer = match instruction.base() {
        "BRA" if instruction.opcode == "BRA.DIV" => Transfer::Next,
        "BRA" if !targets.is_empty() => Transfer::Jump(targets),
        "CALL" => match instruction.operands[..] {
            [_] if !targets.is_empty() => Transfer::Call(targets[0]),
            // Through a register: nothing is known of the function.
            _ => Transfer::Next,
        },
        "BRA" | "BRX" | "BRXU" | "JMP" | "JMX" | "JMXU" => Transfer::Unknown,
        "RET" => Transfer::Return,
        "EXIT" => Transfer::End(End::Exit),
        "BPT" if instruction.opcode == "BPT.TRAP" => Transfer::End(End::Trap),
        _ => Transfer::Next,
    };
    // `BRA.U UP0, target` and `@P0 BRA target` are both conditional.
    let conditional = matches!(transfer, Transfer::Jump(_)) && instruction.operands.len() > 1;
    Step {
        instruction: Instruction {
            opcode: instruction.opcode.clone(),
            text: instruction.to_string(),
            guarded: instruction.guard.is_some() || conditional,
        },
        transfer,
    }
}

/// One instruction in one chain of calls.
struct Node {
    step: usize,
    successors: Vec<usize>,
    end: Option<End>,
}

/// The nodes of all chains of calls.
struct Expansion<'a> {
    code: &'a Code,
    nodes: Vec<Node>,
    /// The entries of the functions that are being entered.
    calls: Vec<usize>,
}

impl Code {
    fn graph(&self) -> Result<Flow> {
        let mut expansion = Expansion {
            code: self,
            nodes: Vec::new(),
            calls: Vec::new(),
        };
        expansion.enter(0, None)?;
        Ok(blocks(self, &expansion.nodes))
    }
}

impl Expansion<'_> {
    /// Adds the function that starts at `entry`; its returns lead to `back`, or end the thread.
    /// Gives the node of its entry.
    fn enter(&mut self, entry: usize, back: Option<usize>) -> Result<usize> {
        if self.calls.contains(&entry) {
            bail!("a function calls itself, which has no finite control flow");
        }
        self.calls.push(entry);
        let mut ids = HashMap::new();
        let first = self.node(entry, &mut ids);
        let mut next = first;
        while next < self.nodes.len() {
            // Nodes of callees are complete; those of this function come one by one.
            if ids.get(&self.nodes[next].step) == Some(&next) {
                self.connect(next, back, &mut ids)?;
            }
            next += 1;
        }
        self.calls.pop();
        Ok(first)
    }

    /// The node of an instruction of the function being entered.
    fn node(&mut self, step: usize, ids: &mut HashMap<usize, usize>) -> usize {
        *ids.entry(step).or_insert_with(|| {
            self.nodes.push(Node {
                step,
                successors: Vec::new(),
                end: None,
            });
            self.nodes.len() - 1
        })
    }

    /// The node behind an instruction, if the function goes on there.
    fn next(&mut self, at: usize, ids: &mut HashMap<usize, usize>) -> Option<usize> {
        let inside = !self.code.ends.contains(&(at + 1));
        inside.then(|| self.node(at + 1, ids))
    }

    fn connect(
        &mut self,
        node: usize,
        back: Option<usize>,
        ids: &mut HashMap<usize, usize>,
    ) -> Result<()> {
        let code = self.code;
        let at = self.nodes[node].step;
        let step = &code.steps[at];
        let mut successors = BTreeSet::new();
        let mut end = None;
        match &step.transfer {
            Transfer::Next => {
                let next = self.next(at, ids);
                successors.insert(next.context("the code runs on behind its last instruction")?);
            }
            Transfer::Jump(targets) => {
                successors.extend(targets.iter().map(|&target| self.node(target, ids)));
            }
            Transfer::Call(entry) => {
                // Only a function that never returns is called at the very end.
                let back = self.next(at, ids);
                successors.insert(self.enter(*entry, back)?);
            }
            Transfer::Return => match back {
                Some(back) => drop(successors.insert(back)),
                None => end = Some(End::Exit),
            },
            Transfer::End(how) => end = Some(*how),
            Transfer::Unknown => bail!(
                "`{}` leads to a place that is not known before it runs",
                step.instruction.text
            ),
        }
        if step.instruction.guarded {
            successors.extend(self.next(at, ids));
        }
        let node = &mut self.nodes[node];
        node.successors = successors.into_iter().collect();
        node.end = end;
        Ok(())
    }
}

/// Puts nodes that follow each other without a choice into one block.
fn blocks(code: &Code, nodes: &[Node]) -> Flow {
    let mut predecessors = vec![0usize; nodes.len()];
    for node in nodes {
        for &next in &node.successors {
            predecessors[next] += 1;
        }
    }
    predecessors[0] += 2; // The entry starts a block, whatever leads back to it.
    let continues = |node: usize| match nodes[node].successors[..] {
        [next] if predecessors[next] == 1 && nodes[node].end.is_none() => Some(next),
        _ => None,
    };
    let reached = reachable(nodes);
    let continued: BTreeSet<usize> = reached.iter().copied().filter_map(continues).collect();
    let leaders: Vec<usize> = reached
        .into_iter()
        .filter(|node| !continued.contains(node))
        .collect();
    let number: HashMap<usize, usize> = leaders
        .iter()
        .enumerate()
        .map(|(block, &leader)| (leader, block))
        .collect();
    let mut flow = Flow {
        blocks: Vec::with_capacity(leaders.len()),
    };
    for leader in leaders {
        let chain: Vec<usize> =
            std::iter::successors(Some(leader), |&node| continues(node)).collect();
        let last = &nodes[*chain.last().expect("a chain has its first node")];
        flow.blocks.push(Block {
            instructions: chain
                .iter()
                .map(|&node| code.steps[nodes[node].step].instruction.clone())
                .collect(),
            successors: last.successors.iter().map(|next| number[next]).collect(),
            end: last.end,
            dominators: BTreeSet::new(),
            repeats: false,
        });
    }
    flow.find_dominators();
    flow.find_loops();
    flow
}

/// The nodes that can be reached from the entry, in their order.
fn reachable(nodes: &[Node]) -> BTreeSet<usize> {
    let mut reached = BTreeSet::from([0]);
    let mut open = vec![0];
    while let Some(node) = open.pop() {
        for &next in &nodes[node].successors {
            if reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}

impl Flow {
    /// A block's dominators are itself and what dominates all its predecessors.
    fn find_dominators(&mut self) {
        let count = self.blocks.len();
        let mut predecessors = vec![Vec::new(); count];
        for (block, content) in self.blocks.iter().enumerate() {
            for &next in &content.successors {
                predecessors[next].push(block);
            }
        }
        for (block, content) in self.blocks.iter_mut().enumerate() {
            content.dominators = match block {
                0 => BTreeSet::from([0]),
                _ => (0..count).collect(),
            };
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (block, before) in predecessors.iter().enumerate().skip(1) {
                let mut common = before
                    .iter()
                    .map(|&other| self.blocks[other].dominators.clone())
                    .reduce(|a, b| &a & &b)
                    .unwrap_or_default();
                common.insert(block);
                changed |= common != self.blocks[block].dominators;
                self.blocks[block].dominators = common;
            }
        }
    }

    fn find_loops(&mut self) {
        for block in 0..self.blocks.len() {
            self.blocks[block].repeats = self.leads_to(block, block);
        }
    }

    /// Whether there is a path from the end of one block to the start of another.
    fn leads_to(&self, from: usize, to: usize) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = self.blocks[from].successors.clone();
        while let Some(next) = open.pop() {
            if next == to {
                return true;
            }
            if seen.insert(next) {
                open.extend(&self.blocks[next].successors);
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ptx(body: &str) -> Flow {
        let text = format!(
            ".version 8.0\n.target sm_90a\n.address_size 64\n\
             .func helper ()\n{{\nbar.sync 0;\nret;\n}}\n\
             .visible .entry kernel ()\n{{\n.reg .pred %p<4>;\n{body}\n}}\n"
        );
        Flow::of_ptx(&ptx::Module::parse(&text).unwrap(), "kernel").unwrap()
    }

    fn sass(body: &str) -> Result<Flow> {
        let text = format!("\t.section\t.text.kernel,\"ax\",@progbits\nkernel:\n{body}");
        Flow::of_sass(&sass::parse(&text).unwrap()[0])
    }

    fn positions(flow: &Flow, opcode: &str) -> Vec<Position> {
        flow.find(|instruction| instruction.opcode.starts_with(opcode))
    }

    fn executions(flow: &Flow, opcode: &str) -> Vec<Execution> {
        positions(flow, opcode)
            .into_iter()
            .map(|position| flow.execution(position))
            .collect()
    }

    #[test]
    fn a_diamond_has_four_blocks() {
        let flow = ptx("@%p1 bra L1;\nst.global.b32 [a], 1;\nbra L2;\n\
             L1: bar.sync 1;\nL2: membar.cta;\nret;");
        assert_eq!(flow.blocks().len(), 4);
        assert_eq!(executions(&flow, "st"), [Execution::Sometimes]);
        assert_eq!(executions(&flow, "bar.sync"), [Execution::Sometimes]);
        assert_eq!(executions(&flow, "membar"), [Execution::Always]);
        let (arm, join) = (
            positions(&flow, "bar.sync")[0],
            positions(&flow, "membar")[0],
        );
        assert!(!flow.dominates(arm, join) && !flow.dominates(join, arm));
        assert!(
            flow.show(arm.block).contains("bar.sync 1"),
            "{}",
            flow.show(arm.block)
        );
    }

    #[test]
    fn a_loop_repeats_and_its_exit_does_not() {
        let flow = ptx("membar.cta;\nL1: bar.sync 0;\n@%p1 bra L1;\nst.global.b32 [a], 1;\nret;");
        assert_eq!(executions(&flow, "membar"), [Execution::Always]);
        assert_eq!(executions(&flow, "bar.sync"), [Execution::Repeatedly]);
        assert_eq!(executions(&flow, "st"), [Execution::Always]);
        let (barrier, store) = (positions(&flow, "bar")[0], positions(&flow, "st")[0]);
        assert!(flow.dominates(barrier, store));
    }

    #[test]
    fn an_entry_that_is_a_loop_repeats() {
        let flow = ptx("L1: bar.sync 0;\nbra L1;");
        assert_eq!(executions(&flow, "bar.sync"), [Execution::Repeatedly]);
    }

    #[test]
    fn each_call_site_counts() {
        let flow = ptx("call.uni helper, ();\nmembar.cta;\n@%p1 bra L1;\n\
             { call.uni helper, (); }\nL1: ret;");
        assert_eq!(
            executions(&flow, "bar.sync"),
            [Execution::Always, Execution::Sometimes]
        );
        let (first, fence) = (positions(&flow, "bar")[0], positions(&flow, "membar")[0]);
        assert!(flow.dominates(first, fence));
    }

    #[test]
    fn a_function_that_does_not_return_ends_the_thread() {
        let text = ".version 8.0\n.target sm_90a\n.address_size 64\n\
             .extern .func panic () .noreturn;\n\
             .visible .entry kernel ()\n{\n.reg .pred %p<4>;\n\
             @%p1 bra L1;\ncall.uni panic, ();\nL1: bar.sync 0;\nret;\n}\n";
        let flow = Flow::of_ptx(&ptx::Module::parse(text).unwrap(), "kernel").unwrap();
        let call = positions(&flow, "call")[0];
        assert_eq!(flow.blocks()[call.block].end, Some(End::Trap));
        assert!(flow.blocks()[call.block].successors.is_empty());
        assert_eq!(executions(&flow, "bar"), [Execution::Always]);
    }

    #[test]
    fn an_indexed_branch_leads_to_its_targets() {
        let flow = ptx("table: .branchtargets L1, L2;\nbrx.idx %r1, table;\n\
             L1: bar.sync 0;\nL2: membar.cta;\nret;");
        assert_eq!(executions(&flow, "bar"), [Execution::Sometimes]);
        assert_eq!(executions(&flow, "membar"), [Execution::Always]);
    }

    #[test]
    fn a_guarded_instruction_is_executed_sometimes() {
        let flow = ptx("@%p1 bar.sync 0;\n@!%p1 ret;\nmembar.cta;\nret;");
        assert_eq!(executions(&flow, "bar"), [Execution::Sometimes]);
        assert_eq!(executions(&flow, "membar"), [Execution::Sometimes]);
        let (barrier, fence) = (positions(&flow, "bar")[0], positions(&flow, "membar")[0]);
        assert!(!flow.dominates(barrier, fence));
    }

    #[test]
    fn two_arms_cannot_be_avoided_and_exclude_each_other() {
        let flow = ptx("@%p1 bra L1;\nbar.sync 0;\nbra L2;\n\
             L1: bar.sync 0;\nL2: membar.cta;\nret;");
        let arms = positions(&flow, "bar");
        let fence = positions(&flow, "membar")[0];
        assert!(!flow.can_avoid(&arms, None) && !flow.can_avoid(&arms, Some(fence)));
        assert!(flow.can_avoid(&arms[..1], None) && flow.can_avoid(&arms[..1], Some(fence)));
        assert!(!flow.reaches(arms[0], arms[1]) && !flow.reaches(arms[1], arms[0]));
        assert!(flow.reaches(arms[0], fence) && !flow.reaches(fence, fence));
    }

    #[test]
    fn a_trap_is_no_regular_end() {
        let flow = ptx("@%p1 bra L1;\nbar.sync 0;\nret;\nL1: trap;");
        assert_eq!(executions(&flow, "bar"), [Execution::Always]);
    }

    #[test]
    fn sass_calls_and_returns_are_followed() {
        let flow = sass(
            "/*0000*/ MOV R4, 0x20 ;\n/*0010*/ CALL.REL.NOINC `($k$helper) ;\n\
             /*0020*/ @P0 BRA `(.L_1) ;\n/*0030*/ CALL.REL.NOINC `($k$helper) ;\n\
             .L_1:\n/*0040*/ EXIT ;\n\
             $k$helper:\n/*0050*/ BAR.SYNC 0x0 ;\n/*0060*/ RET.REL.NODEC R4 `(kernel) ;\n",
        )
        .unwrap();
        assert_eq!(
            executions(&flow, "BAR"),
            [Execution::Always, Execution::Sometimes]
        );
    }

    #[test]
    fn the_slow_path_of_a_diverged_warp_is_left_out() {
        let flow = sass(
            "/*0000*/ BRA.DIV UR4, `(.L_1) ;\n/*0010*/ SHFL.IDX PT, R0, R0, R1, 0x1f ;\n\
             .L_2:\n/*0020*/ EXIT ;\n\
             .L_1:\n/*0030*/ SHFL.IDX PT, R0, R0, R1, 0x1f ;\n/*0040*/ BRA `(.L_2) ;\n",
        )
        .unwrap();
        assert_eq!(executions(&flow, "SHFL"), [Execution::Always]);
    }

    #[test]
    fn a_uniform_branch_is_conditional() {
        let flow = sass(
            "/*0000*/ BRA.U UP0, `(.L_1) ;\n/*0010*/ BAR.SYNC 0x0 ;\n.L_1:\n/*0020*/ EXIT ;\n",
        )
        .unwrap();
        assert_eq!(executions(&flow, "BAR"), [Execution::Sometimes]);
    }

    #[test]
    fn an_indirect_branch_is_an_error() {
        let error = sass("/*0000*/ BRX R2 -0x10 ;\n/*0010*/ EXIT ;\n").unwrap_err();
        assert!(format!("{error:#}").contains("BRX R2"), "{error:#}");
    }
}
