//! Runs a grid: which warp goes on, which piece of which copy is moved, and what a standstill means.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use anyhow::{Result, bail, ensure};

use super::apart;
use super::check::{Check, Fault, Step, Violation};
use super::clock::{Clock, Joins, ThreadClock};
use super::memory::{Allocation, Memory, NOTHING, Shadow};
use super::op::{Inst, Op, Space};
use super::program::Program;
use super::schedule::{Chooser, Deviations};
use super::state::*;
use super::step::Flow;
use super::wgmma::Warpgroup;

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a CTA, in bytes.
    pub shared_bytes: u32,
    /// CTAs of a cluster; `None` leaves it to the kernel.
    pub cluster: Option<[u32; 3]>,
}

impl Grid {
    /// CTAs and threads, without dynamic shared memory.
    #[must_use]
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self {
            grid,
            block,
            shared_bytes: 0,
            cluster: None,
        }
    }
}

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// What picks the schedule; equal seeds give equal runs.
    pub seed: u64,
    /// The schedule that deviates so from the plainest one, instead of that of the seed.
    pub deviations: Option<Deviations>,
    /// The most warp instructions of a run.
    pub limit: u64,
    /// Whether data races and early accesses are looked for. Results are the same without, and faster.
    pub races: bool,
    /// Clusters that run at the same time, in steps of one core.
    pub resident: usize,
    /// The cores that clusters run on apart, if they turn out to be independent. The schedule is another
    /// than with 1, but the same for every other number.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 0,
            deviations: None,
            limit: 1 << 34,
            races: true,
            resident: 4,
            workers: 1,
        }
    }
}

/// What a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Instructions of warps.
    pub warp_instructions: u64,
    /// The same, counted once for each thread that took part.
    pub thread_instructions: u64,
    /// Bulk copies and other asynchronous ones.
    pub copies: u64,
}

impl Stats {
    pub(super) fn add(&mut self, other: Self) {
        self.warp_instructions += other.warp_instructions;
        self.thread_instructions += other.thread_instructions;
        self.copies += other.copies;
    }
}

/// Turns after which a warp that could go on lets another one, and instructions of one turn, where
/// choices are planned.
const FAIRNESS: usize = 256;
const LONGEST_STEP: usize = 4096;

/// Rounds of failing polls, with nothing else happening, that are taken for a deadlock.
const IDLE_ROUNDS: u32 = 64;

impl Program {
    /// Runs a kernel to its end. `arguments` has the bytes of each parameter.
    ///
    /// # Errors
    /// A [`Violation`], an instruction that is not executed, or a launch that the kernel does not take.
    pub fn run(
        &self,
        kernel: &str,
        grid: &Grid,
        arguments: &[Vec<u8>],
        memory: &mut Memory,
        options: &Options,
    ) -> Result<Stats> {
        let mut chooser = Chooser::of(options);
        self.run_as_chosen(kernel, grid, arguments, memory, options, &mut chooser)
    }

    /// Runs a kernel; the chooser then knows what choices there were.
    pub(super) fn run_as_chosen(
        &self,
        kernel: &str,
        grid: &Grid,
        arguments: &[Vec<u8>],
        memory: &mut Memory,
        options: &Options,
        chooser: &mut Chooser,
    ) -> Result<Stats> {
        let launch = self.prepare(kernel, grid, arguments)?;
        memory.forget_accesses();
        self.place_variables(memory);
        if options.workers > 1
            && options.races
            && !chooser.is_planned()
            && let Some(stats) = apart::run(self, &launch, memory, options)
        {
            return Ok(stats);
        }
        let mut machine = self.machine(&launch, memory, options, chooser);
        machine.run().map_err(anyhow::Error::new)?;
        Ok(machine.stats)
    }

    /// Checks a launch.
    fn prepare(&self, kernel: &str, grid: &Grid, arguments: &[Vec<u8>]) -> Result<Prepared> {
        self.executes(kernel)?;
        let number = self.kernel(kernel)?;
        let function = &self.functions[number as usize];
        let expected: Vec<u32> = function.params.iter().map(|param| param.1).collect();
        let found: Vec<u32> = arguments.iter().map(|it| it.len() as u32).collect();
        ensure!(
            expected == found,
            "`{kernel}` takes parameters of {expected:?} bytes, given are {found:?}"
        );
        let product = |dims: &[u32; 3]| dims.iter().fold(1u32, |a, b| a.saturating_mul(*b));
        let threads = product(&grid.block);
        let most = function.max_threads.unwrap_or(1024).min(1024);
        ensure!(
            (1..=most).contains(&threads),
            "`{kernel}` takes 1 to {most} threads in a CTA, given are {threads}"
        );
        if let Some(required) = &function.required_threads {
            let given = &grid.block[..required.len().min(3)];
            ensure!(
                given == required.as_slice(),
                "`{kernel}` takes CTAs of {required:?} threads, given are {given:?}"
            );
        }
        let cluster = grid.cluster.or(function.cluster);
        let shape = cluster.unwrap_or([1; 3]);
        for axis in 0..3 {
            ensure!(
                shape[axis] > 0 && grid.grid[axis].is_multiple_of(shape[axis]),
                "expected a grid of whole clusters of {shape:?}, found {:?}",
                grid.grid
            );
        }
        if product(&shape) > 16 {
            bail!("expected at most 16 CTAs in a cluster, found {shape:?}");
        }
        ensure!(
            product(&grid.grid)
                < u32::MAX / (product(&shape) * (threads + threads.div_ceil(128)) + AGENTS),
            "expected fewer threads than there are numbers for, found a grid of {:?}",
            grid.grid
        );
        let mut params = Vec::new();
        for ((offset, _), bytes) in function.params.iter().zip(arguments) {
            params.resize(*offset as usize, 0);
            params.extend(bytes);
        }
        Ok(Prepared {
            kernel: number,
            grid: *grid,
            cluster_shape: shape,
            explicit_cluster: cluster.is_some(),
            params,
        })
    }

    /// A grid that has not begun.
    pub(super) fn machine<'a>(
        &'a self,
        launch: &Prepared,
        memory: &'a mut Memory,
        options: &Options,
        chooser: &'a mut Chooser,
    ) -> Machine<'a> {
        let cluster_size: u32 = launch.cluster_shape.iter().product();
        Machine {
            program: self,
            kernel: launch.kernel,
            grid: launch.grid,
            cluster_shape: launch.cluster_shape,
            explicit_cluster: launch.explicit_cluster,
            params: launch.params.clone(),
            memory,
            clusters: Vec::new(),
            next_cluster: 0,
            chooser,
            last: 0,
            turns: 0,
            options: options.clone(),
            patience: 0,
            progress: 0,
            strong_global: false,
            stats: Stats::default(),
            at: (0, 0),
            agents: cluster_size * launch.grid.block.iter().product::<u32>(),
            copy_line: 0,
        }
    }

    /// Module variables keep their values from launch to launch, so only missing ones are placed.
    fn place_variables(&self, memory: &mut Memory) {
        for variable in &self.variables {
            let placed = memory.find(variable.address, 0);
            let known = placed.is_some_and(|(number, offset)| {
                offset == 0 && memory.allocations[number].name == variable.name
            });
            if !known {
                memory.insert(Allocation {
                    address: variable.address,
                    name: variable.name.clone(),
                    data: variable.bytes.clone(),
                    shadow: Shadow::new(variable.bytes.len()),
                    constant: variable.constant,
                    uninitialised: false,
                });
            }
        }
    }
}

/// A launch that the kernel takes.
pub struct Prepared {
    kernel: u32,
    grid: Grid,
    cluster_shape: [u32; 3],
    explicit_cluster: bool,
    params: Vec<u8>,
}

impl Prepared {
    /// How many clusters the grid has.
    pub fn clusters(&self) -> u32 {
        let axes = 0..3;
        axes.map(|axis| self.grid.grid[axis] / self.cluster_shape[axis])
            .product()
    }
}

/// A grid that runs.
pub struct Machine<'a> {
    pub program: &'a Program,
    pub kernel: u32,
    pub grid: Grid,
    pub cluster_shape: [u32; 3],
    pub explicit_cluster: bool,
    pub params: Vec<u8>,
    pub memory: &'a mut Memory,
    pub clusters: Vec<Cluster>,
    next_cluster: u32,
    pub chooser: &'a mut Chooser,
    /// The warp that ran last, by its place among those of the running clusters, and for how many turns.
    last: usize,
    turns: usize,
    pub options: Options,
    /// One in so many turns moves a piece of a copy.
    patience: usize,
    /// Counts what may let a waiting thread go on.
    pub progress: u64,
    /// A strong access to global memory may order clusters; then races between them are not claimed.
    pub strong_global: bool,
    pub stats: Stats,
    /// The cluster (its place in the list) and CTA that run now.
    pub at: (usize, usize),
    /// The first number of a copy in the clocks of a cluster.
    pub agents: u32,
    /// The line of the copy that was moved last.
    pub copy_line: u32,
}

impl<'a> Machine<'a> {
    pub fn threads_per_cta(&self) -> u32 {
        self.grid.block.iter().product()
    }

    pub fn cluster_size(&self) -> u32 {
        self.cluster_shape.iter().product()
    }

    /// How many clusters the grid has in x, y, z.
    pub fn clusters_of_grid(&self) -> [u32; 3] {
        [0, 1, 2].map(|axis| self.grid.grid[axis] / self.cluster_shape[axis])
    }

    /// Numbers in the clocks of a cluster: its threads, then copies, then multiplications of warpgroups.
    pub fn domain(&self) -> u32 {
        self.agents + AGENTS + self.warpgroups_per_cta() * self.cluster_size()
    }

    pub fn warpgroups_per_cta(&self) -> u32 {
        self.threads_per_cta().div_ceil(128)
    }

    /// Runs one cluster to its end. `false` if something is wrong, or if it uses what may order it among
    /// other clusters.
    pub fn run_alone(&mut self, cluster: u32) -> bool {
        self.choose_patience();
        self.next_cluster = cluster;
        self.start_cluster();
        while !self.clusters.is_empty() {
            let turn = match self.turn() {
                Ok(false) => self.break_standstill(),
                turn => turn.map(drop),
            };
            if turn.is_err() || self.strong_global {
                return false;
            }
        }
        true
    }

    fn choose_patience(&mut self) {
        if !self.chooser.is_planned() {
            self.patience = [1, 4, 64, 4096][self.chooser.below(4)];
        }
    }

    fn run(&mut self) -> std::result::Result<(), Violation> {
        self.choose_patience();
        let total: u32 = self.clusters_of_grid().iter().product();
        loop {
            while self.next_cluster < total && self.clusters.len() < self.options.resident {
                self.start_cluster();
            }
            if self.clusters.is_empty() {
                return Ok(());
            }
            if self.turn()? {
                continue;
            }
            // Nobody is ready: the rest of the grid may be what they wait for.
            if self.next_cluster < total {
                self.start_cluster();
            } else {
                self.break_standstill()?;
            }
        }
    }

    fn start_cluster(&mut self) {
        let number = self.next_cluster;
        self.next_cluster += 1;
        let [nx, ny, _] = self.clusters_of_grid();
        let place = [number % nx, number / nx % ny, number / nx / ny];
        let clock = Rc::new(Clock::new(self.domain() as usize));
        let [cx, cy, _] = self.cluster_shape;
        let ctas = (0..self.cluster_size()).map(|rank| {
            let inside = [rank % cx, rank / cx % cy, rank / cx / cy];
            let ctaid = [0, 1, 2].map(|axis| place[axis] * self.cluster_shape[axis] + inside[axis]);
            self.new_cta(ctaid, &clock)
        });
        let cluster = Cluster {
            number,
            ctas: ctas.collect(),
            joins: Joins::default(),
            copies: Vec::new(),
            issued: 0,
            barrier: ClusterBarrier::default(),
            locations: HashMap::new(),
        };
        self.clusters.push(cluster);
    }

    fn new_cta(&self, ctaid: [u32; 3], clock: &Rc<Clock>) -> Cta {
        let threads = self.threads_per_cta();
        let bytes = (self.program.dynamic_start + self.grid.shared_bytes) as usize;
        let function = &self.program.functions[self.kernel as usize];
        let multiplies = self.program.functions.iter().any(|it| it.multiplies);
        let warps = (0..threads.div_ceil(32)).map(|number| {
            let count = (threads - number * 32).min(32);
            let live = (u64::from(u32::MAX) >> (32 - count)) as u32;
            Warp {
                number,
                live,
                registers: vec![[0; 32]; function.registers as usize],
                predicates: vec![0; function.predicates as usize],
                slots: vec![Slot {
                    function: self.kernel,
                    registers: 0,
                    predicates: 0,
                    local: 16,
                    lanes: live,
                }],
                local: vec![[0; 32]; 16 + function.frame_bytes as usize],
                splits: vec![Split {
                    mask: live,
                    pc: 0,
                    frames: vec![Frame { slot: 0, back: 0 }],
                    wait: Wait::Nothing,
                    give_up: false,
                }],
                threads: vec![ThreadClock::new(clock); 32],
                flight: multiplies.then(Box::default),
                ..Warp::default()
            }
        });
        Cta {
            ctaid,
            data: vec![NOTHING; bytes],
            shadow: Shadow::new(bytes),
            barriers: BTreeMap::new(),
            invalidated: HashMap::new(),
            named: (0..16).map(|_| NamedBarrier::default()).collect(),
            warps: warps.collect(),
            warpgroups: match multiplies {
                true => (0..self.warpgroups_per_cta())
                    .map(|_| Warpgroup::default())
                    .collect(),
                false => Vec::new(),
            },
            live_threads: threads,
        }
    }

    /// Lets one warp run for a while. `false` if none can.
    fn turn(&mut self) -> std::result::Result<bool, Violation> {
        if self.chooser.is_planned() {
            return self.planned_turn();
        }
        if self.chooser.one_in(self.patience) {
            self.move_a_piece()
                .map_err(|fault| self.blame_copy(*fault))?;
        }
        let per_cta = self.threads_per_cta().div_ceil(32) as usize;
        let per_cluster = per_cta * self.cluster_size() as usize;
        let total = per_cluster * self.clusters.len();
        let mut start = self.chooser.below(total);
        for _ in 0..total {
            let (cluster, rest) = (start / per_cluster, start % per_cluster);
            let (cta, warp) = (rest / per_cta, rest % per_cta);
            if self.clusters[cluster].ctas[cta].warps[warp].live != 0
                && self.run_warp(cluster, cta, warp)?
            {
                return Ok(true);
            }
            start = (start + 1) % total;
        }
        Ok(false)
    }

    /// Lets a copy go on, or a warp run to its next step that others can see, whichever is chosen; the
    /// plainest choice is the warp that ran last.
    fn planned_turn(&mut self) -> std::result::Result<bool, Violation> {
        let copies = self.clusters.iter().flat_map(|it| &it.copies);
        let pieces: usize = copies.map(|copy| copy.pieces.len()).sum();
        let groups = (0..self.clusters.len()).map(|cluster| self.ready_warpgroups(cluster).len());
        let pieces = pieces + groups.sum::<usize>();
        if self.chooser.below(1 + pieces) > 0 {
            self.move_a_piece()
                .map_err(|fault| self.blame_copy(*fault))?;
            return Ok(true);
        }
        let per_cta = self.threads_per_cta().div_ceil(32) as usize;
        let per_cluster = per_cta * self.cluster_size() as usize;
        let total = per_cluster * self.clusters.len();
        // Who spins lets others go on after a while.
        let first = self.last + usize::from(self.turns >= FAIRNESS);
        let order = (0..total).map(|step| (first + step) % total);
        let places = order.map(|place| (place / per_cluster, place % per_cluster));
        let places = places.map(|(cluster, rest)| (cluster, rest / per_cta, rest % per_cta));
        let ready: Vec<_> = places
            .filter(|(cluster, cta, warp)| self.may_run(*cluster, *cta, *warp))
            .collect();
        let chosen = self.chooser.below(ready.len());
        for (number, (cluster, cta, warp)) in ready.iter().skip(chosen).enumerate() {
            if self.run_warp(*cluster, *cta, *warp)? {
                let place = cluster * per_cluster + cta * per_cta + warp;
                self.turns = if place == self.last {
                    self.turns + 1
                } else {
                    0
                };
                self.last = place;
                if number > 0 && chosen > 0 {
                    self.chooser.note_redundant();
                }
                return Ok(true);
            }
        }
        if chosen > 0 {
            self.chooser.note_redundant();
        }
        for (cluster, cta, warp) in ready.into_iter().take(chosen) {
            if self.run_warp(cluster, cta, warp)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a warp is alive, and one of its splits may have what it waits for.
    fn may_run(&self, cluster: usize, cta: usize, warp: usize) -> bool {
        let cluster = &self.clusters[cluster];
        let cta = &cluster.ctas[cta];
        let warp = &cta.warps[warp];
        let ready = |split: &Split| match &split.wait {
            Wait::Named { id, generation, .. } => cta.named[*id as usize].generation != *generation,
            Wait::Phase {
                rank,
                offset,
                phase,
                ..
            } => {
                let barrier = cluster.ctas[*rank as usize].barriers.get(offset);
                barrier.is_none_or(|it| it.phase != *phase)
            }
            Wait::Poll { progress, .. } => self.progress != *progress,
            Wait::Cluster { generation } => cluster.barrier.generation != *generation,
            _ => true,
        };
        warp.live != 0 && warp.splits.iter().any(ready)
    }

    /// Runs a warp until its turn is over or it waits. `false` if it was waiting.
    fn run_warp(
        &mut self,
        cluster: usize,
        cta: usize,
        number: usize,
    ) -> std::result::Result<bool, Violation> {
        self.at = (cluster, cta);
        let mut warp = std::mem::take(&mut self.clusters[cluster].ctas[cta].warps[number]);
        let result = self.run_splits(&mut warp);
        let over = warp.live == 0;
        self.clusters[cluster].ctas[cta].warps[number] = warp;
        let ran = result?;
        if over
            && self.clusters[cluster]
                .ctas
                .iter()
                .all(|it| it.live_threads == 0)
        {
            self.end_cluster(cluster)?;
        }
        Ok(ran)
    }

    /// All threads of a cluster have exited; its copies must not need its memory any more.
    fn end_cluster(&mut self, cluster: usize) -> std::result::Result<(), Violation> {
        while !self.clusters[cluster].copies.is_empty() {
            let copy = &self.clusters[cluster].copies[0];
            if copy.route.ranks().next().is_some() {
                let line = copy.line;
                let fault = Fault::new(
                    Check::ExitedCta,
                    "expected a wait for this copy before the threads exit, since it still uses the \
                     shared memory of its CTA",
                );
                return Err(self.violation(*fault, line, None));
            }
            self.move_piece_of(cluster, 0)
                .map_err(|fault| self.blame_copy(*fault))?;
        }
        let warps = self.clusters[cluster].ctas.iter().flat_map(|it| &it.warps);
        let mut flights = warps.filter_map(|warp| warp.flight.as_ref());
        if let Some(line) = flights.find_map(|flight| flight.unfinished()) {
            let fault = Fault::new(
                Check::ExitedCta,
                "expected `wgmma.wait_group` for this multiplication before the threads exit, since it still uses \
                 the shared memory of their CTA",
            );
            return Err(self.violation(*fault, line, None));
        }
        self.clusters.remove(cluster);
        Ok(())
    }

    fn run_splits(&mut self, warp: &mut Warp) -> std::result::Result<bool, Violation> {
        let Some(mut current) = self.pick_split(warp)? else {
            return Ok(false);
        };
        merge(warp, &mut current);
        let planned = self.chooser.is_planned();
        let quantum = match planned {
            true => LONGEST_STEP,
            false => 1 + self.chooser.below(64),
        };
        for _ in 0..quantum {
            let ran = self.step(warp, current)?;
            match ran {
                Flow::Next => warp.splits[current].pc += 1,
                Flow::Jump(target) => warp.splits[current].pc = target,
                // A wait is noted in the split.
                Flow::Wait => {}
                Flow::WaitNext => warp.splits[current].pc += 1,
                Flow::Ended => {
                    warp.splits.swap_remove(current);
                    return Ok(true);
                }
            }
            if warp.splits[current].wait != Wait::Nothing {
                return Ok(true);
            }
            let next = self.inst_of(warp, &warp.splits[current]);
            if planned && next.is_none_or(|it| is_visible(&it.op)) {
                return Ok(true);
            }
            if warp.splits.len() > 1 {
                merge(warp, &mut current);
                // At a branch, those that are behind may catch up.
                if matches!(ran, Flow::Jump(_)) {
                    return Ok(true);
                }
            }
        }
        Ok(true)
    }

    /// A split that can run: mostly the one that is furthest behind, so that others meet it.
    fn pick_split(&mut self, warp: &mut Warp) -> std::result::Result<Option<usize>, Violation> {
        if warp.splits.len() == 1 && warp.splits[0].wait == Wait::Nothing {
            return Ok(Some(0));
        }
        let mut ready = Vec::new();
        let mut number = 0;
        while number < warp.splits.len() {
            if let Wait::Converge(members) = warp.splits[number].wait {
                if let Some(joined) = converge(warp, number, members) {
                    return Ok(Some(joined));
                }
                if !self.exchange_apart(warp, number, members) {
                    number += 1;
                    continue;
                }
            }
            if let Wait::Warp(mask) = warp.splits[number].wait
                && !self.complete_bar_warp(warp, mask)
            {
                number += 1;
                continue;
            }
            if warp.splits[number].wait != Wait::Nothing {
                let done = self.wake(warp, number);
                if !done.map_err(|fault| self.blame(*fault, warp, number))? {
                    number += 1;
                    continue;
                }
                warp.splits[number].wait = Wait::Nothing;
            }
            ready.push(number);
            number += 1;
        }
        if ready.is_empty() {
            return Ok(None);
        }
        if self.chooser.is_planned() {
            ready.sort_by_key(|number| warp.splits[*number].pc);
            return Ok(Some(ready[self.chooser.below(ready.len())]));
        }
        if self.chooser.one_in(4) {
            return Ok(Some(ready[self.chooser.below(ready.len())]));
        }
        Ok(ready
            .into_iter()
            .min_by_key(|number| warp.splits[*number].pc))
    }

    fn step(&mut self, warp: &mut Warp, current: usize) -> std::result::Result<Flow, Violation> {
        let split = &warp.splits[current];
        let slot = split.frames.last().map_or(0, |frame| frame.slot);
        let function = &self.program.functions[warp.slots[slot as usize].function as usize];
        let inst: &'a Inst = &function.insts[split.pc as usize];
        self.stats.warp_instructions += 1;
        if self.stats.warp_instructions > self.options.limit {
            let fault = Fault::new(
                Check::Limit,
                format!(
                    "expected the grid to end within {} warp instructions",
                    self.options.limit
                ),
            );
            return Err(self.blame(*fault, warp, current));
        }
        let step = self.execute(inst, warp, current);
        let step = step.and_then(|flow| match &warp.flight {
            Some(flight) => flight.check().map(|()| flow),
            None => Ok(flow),
        });
        step.map_err(|fault| self.blame(*fault, warp, current))
    }

    pub fn inst_of(&self, warp: &Warp, split: &Split) -> Option<&'a Inst> {
        let slot = split.frames.last()?.slot;
        let function = &self.program.functions[warp.slots[slot as usize].function as usize];
        function.insts.get(split.pc as usize)
    }

    /// The place of a thread in its CTA.
    pub fn thread_of(&self, number: u32) -> [u32; 3] {
        let [x, y, _] = self.grid.block;
        [number % x, number / x % y, number / x / y]
    }

    /// Nobody is ready: a copy goes on, or polls give up, or it is a deadlock.
    fn break_standstill(&mut self) -> std::result::Result<(), Violation> {
        if (0..self.clusters.len()).any(|cluster| self.is_busy(cluster)) {
            return self.move_a_piece().map_err(|fault| self.blame_copy(*fault));
        }
        for _ in 0..IDLE_ROUNDS {
            let before = self.progress;
            if !self.give_up_polls() {
                break;
            }
            while self.turn()? {
                if self.progress != before || self.clusters.is_empty() {
                    return Ok(());
                }
            }
            if self.progress != before {
                return Ok(());
            }
        }
        Err(self.deadlock())
    }

    /// Every `try_wait` and `test_wait` that waits returns false once.
    fn give_up_polls(&mut self) -> bool {
        let mut any = false;
        let warps = self.clusters.iter_mut().flat_map(|it| &mut it.ctas);
        for split in warps
            .flat_map(|it| &mut it.warps)
            .flat_map(|it| &mut it.splits)
        {
            if matches!(split.wait, Wait::Phase { .. } | Wait::Poll { .. }) {
                split.give_up = matches!(split.wait, Wait::Phase { .. });
                split.wait = Wait::Nothing;
                any = true;
            }
        }
        any
    }

    /// Whether what a split waits for has come; if so, what it learns by it is noted.
    fn wake(&mut self, warp: &mut Warp, number: usize) -> Step<bool> {
        let mask = warp.splits[number].mask;
        let (cluster, cta) = self.at;
        match warp.splits[number].wait.clone() {
            Wait::Nothing => Ok(true),
            Wait::Converge(_) | Wait::Warp(_) => Ok(false),
            Wait::Named {
                id,
                generation,
                red,
            } => {
                let barrier = &self.clusters[cluster].ctas[cta].named[id as usize];
                if barrier.generation == generation {
                    return Ok(false);
                }
                let done = barrier.done.clone();
                if let Some((dst, result)) = red {
                    self.put_reduction(warp, number, dst, result.get());
                }
                if let Some(done) = done {
                    for lane in lanes(mask) {
                        let thread = &mut warp.threads[lane as usize];
                        self.clusters[cluster].joins.acquire(thread, &done);
                    }
                }
                Ok(true)
            }
            Wait::Phase {
                rank,
                offset,
                phase,
                ..
            } => {
                let barriers = &self.clusters[cluster].ctas[rank as usize].barriers;
                Ok(barriers.get(&offset).is_none_or(|it| it.phase != phase))
            }
            Wait::Poll { progress, .. } => Ok(self.progress != progress),
            Wait::Cluster { generation } => {
                Ok(self.clusters[cluster].barrier.generation != generation)
            }
            Wait::Bulk { pending } => Ok(self.groups_done(warp, mask, pending, true)),
            Wait::Async { pending } => Ok(self.groups_done(warp, mask, pending, false)),
            Wait::Warpgroup { pending } => Ok(self.multiplications_done(warp, pending)),
        }
    }
}

/// Whether other warps or copies may notice when it is executed.
fn is_visible(op: &Op) -> bool {
    match op {
        Op::Ld { space, .. } | Op::St { space, .. } => {
            matches!(space, Space::Generic | Space::Global | Space::Shared)
        }
        Op::Atom { .. }
        | Op::Bar { .. }
        | Op::ClusterArrive { .. }
        | Op::ClusterWait { .. }
        | Op::MbarInit { .. }
        | Op::MbarInval { .. }
        | Op::MbarArrive { .. }
        | Op::MbarExpectTx { .. }
        | Op::MbarWait { .. }
        | Op::BulkCopy { .. }
        | Op::TensorCopy { .. }
        | Op::TensormapReplace { .. }
        | Op::TensormapCopy { .. }
        | Op::LdMatrix { .. }
        | Op::StMatrix { .. }
        | Op::CpAsync { .. }
        | Op::StAsync { .. }
        | Op::BulkWait { .. }
        | Op::CpAsyncWait { .. }
        | Op::Wgmma(_)
        | Op::WgmmaWait { .. }
        | Op::Exit => true,
        _ => false,
    }
}

/// Joins the lanes of `members` at one instruction, if all that are alive are there, and gives the
/// split that they form.
fn converge(warp: &mut Warp, number: usize, members: u32) -> Option<usize> {
    let Split { pc, frames, .. } = warp.splits[number].clone();
    let same = |split: &Split| {
        split.pc == pc
            && split.frames == frames
            && matches!(split.wait, Wait::Converge(_) | Wait::Nothing)
    };
    let there = warp.splits.iter().filter(|split| same(split));
    let there = there.fold(0, |mask, split| mask | split.mask);
    let needed = members & warp.live;
    if there & needed != needed {
        return None;
    }
    let mut joined = warp.splits[number].clone();
    warp.splits.retain(|split| !same(split));
    (joined.mask, joined.wait) = (there, Wait::Nothing);
    warp.splits.push(joined);
    Some(warp.splits.len() - 1)
}

/// Joins the current split with those at the same place.
fn merge(warp: &mut Warp, current: &mut usize) {
    let mut other = 0;
    while other < warp.splits.len() {
        let (a, b) = (&warp.splits[*current], &warp.splits[other]);
        let meets = other != *current
            && a.pc == b.pc
            && b.wait == Wait::Nothing
            && a.frames == b.frames
            && a.give_up == b.give_up;
        if meets {
            let mask = b.mask;
            warp.splits[*current].mask |= mask;
            let last = warp.splits.len() - 1;
            warp.splits.swap_remove(other);
            if *current == last {
                *current = other;
            }
        } else {
            other += 1;
        }
    }
}
