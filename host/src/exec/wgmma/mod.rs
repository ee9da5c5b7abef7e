//! `wgmma`: multiplications of a warpgroup, which are executed some time between their issue and the wait.
//!
//! Each warp issues, and multiplies its 16 rows of A by all of B. A multiplication is executed, for all four
//! warps, once all of them have issued it; it is one of the agents of the vector clocks.

mod descriptor;
mod flight;
mod product;

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use self::descriptor::{CHUNK, Descriptor};
pub use self::flight::Flight;
use self::product::{Issued, ROWS, Row};
pub use self::product::{Left, Multiplication};
use super::alu::Lanes;
use super::check::{AtLane, Check, Fault, Step};
use super::machine::Machine;
use super::memory::Access;
use super::op::*;
use super::state::*;
use super::step::{Flow, Knowledge, aligned_here};

/// Warps of a warpgroup.
const WARPS: u32 = 4;

/// What a warpgroup has issued and what of it is done.
#[derive(Debug, Default)]
pub struct Warpgroup {
    /// How many multiplications each warp has issued.
    issued: [u64; WARPS as usize],
    done: u64,
    /// The calls that not all warps have issued, from the first of them.
    ahead: VecDeque<Call>,
}

/// What must be the same in all warps.
#[derive(Debug)]
struct Call {
    what: Arc<Multiplication>,
    descriptors: [Option<u64>; 2],
    add: bool,
    line: u32,
}

impl Warpgroup {
    /// How many multiplications can be executed.
    fn ready(&self) -> u64 {
        self.issued.iter().min().copied().unwrap_or(0) - self.done
    }

    /// Notes that a warp issues a call; gives its number.
    fn issue(&mut self, warp: u32, call: Call) -> Step<u64> {
        let number = self.issued[warp as usize];
        let first = self.issued.iter().min().copied().unwrap_or(0);
        match self.ahead.get((number - first) as usize) {
            None => self.ahead.push_back(call),
            Some(other) => same_call(other, &call)?,
        }
        self.issued[warp as usize] += 1;
        if self.issued.iter().all(|issued| *issued > first) {
            self.ahead.pop_front();
        }
        Ok(number)
    }
}

fn same_call(other: &Call, call: &Call) -> Step<()> {
    let what = if !Arc::ptr_eq(&other.what, &call.what) {
        "another one"
    } else if other.descriptors != call.descriptors {
        "other descriptors"
    } else if other.add != call.add {
        "another `scale-d`"
    } else {
        return Ok(());
    };
    Err(Fault::new(
        Check::Divergence,
        format!(
            "expected all warps of the warpgroup to issue the same multiplication, found {what} than that of \
             another warp at PTX line {}",
            other.line
        ),
    ))
}

impl<'a> Machine<'a> {
    /// Executes an instruction of `wgmma`.
    pub fn wgmma(
        &mut self,
        inst: &'a Inst,
        warp: &mut Warp,
        current: usize,
        active: u32,
    ) -> Step<Flow> {
        if !aligned_here(warp, current, active)? {
            return Ok(Flow::Wait);
        }
        self.check_warpgroup(warp)?;
        let registers = warp.registers.len();
        match &inst.op {
            Op::WgmmaFence => warp.flight().fence(registers),
            Op::Wgmma(what) => self.issue_multiplication(what, inst.line, warp, current)?,
            Op::WgmmaCommit => warp.flight().commit(),
            Op::WgmmaWait { pending } => {
                if !self.multiplications_done(warp, *pending) {
                    warp.splits[current].wait = Wait::Warpgroup { pending: *pending };
                    return Ok(Flow::Wait);
                }
                self.learn_multiplications(warp, *pending);
                warp.flight().complete(*pending);
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    fn check_warpgroup(&self, warp: &Warp) -> Step<()> {
        let end = (warp.number / WARPS + 1) * WARPS * 32;
        if end > self.threads_per_cta() || warp.live != u32::MAX {
            return Err(Fault::new(
                Check::Divergence,
                "expected a warpgroup of 128 threads, the first of them a multiple of 128, found fewer",
            ));
        }
        Ok(())
    }

    fn issue_multiplication(
        &mut self,
        what: &Arc<Multiplication>,
        line: u32,
        warp: &mut Warp,
        current: usize,
    ) -> Step<()> {
        let uniform = |values: Lanes, name: &str| {
            let other = values.iter().position(|value| *value != values[0]);
            match other {
                None => Ok(values[0]),
                Some(lane) => Err(Fault::new(
                    Check::Divergence,
                    format!(
                        "expected {name} that is the same in all threads of the warp, found others"
                    ),
                ))
                .at(lane as u32),
            }
        };
        let a = match &what.a {
            Left::Registers(_) => None,
            Left::Descriptor(a) => Some(uniform(
                self.operand(warp, current, *a),
                "a descriptor of A",
            )?),
        };
        let b = uniform(self.operand(warp, current, what.b), "a descriptor of B")?;
        let add = self.predicate(warp, current, what.add);
        let add = uniform(
            std::array::from_fn(|lane| u64::from(add >> lane & 1)),
            "`scale-d`",
        )? == 1;
        let issued = Issued {
            what: Arc::clone(what),
            registers: warp.first_register(current),
            descriptors: [a, Some(b)],
            metadata: match &what.sparsity {
                Some(sparsity) => self.operand(warp, current, sparsity.metadata),
                None => [0; 32],
            },
            add,
            line,
        };
        let call = Call {
            what: Arc::clone(what),
            descriptors: issued.descriptors,
            add,
            line,
        };
        let group = &mut self.clusters[self.at.0].ctas[self.at.1].warpgroups
            [(warp.number / WARPS) as usize];
        let number = group.issue(warp.number % WARPS, call)?;
        self.note_matrices(&issued, number, warp)?;
        warp.flight().issue(issued, number)?;
        self.progress += 1;
        Ok(())
    }

    /// The number in the clocks of a warpgroup's multiplications.
    fn multiplier(&self, cta: usize, group: u32) -> u32 {
        self.agents + AGENTS + cta as u32 * self.warpgroups_per_cta() + group
    }

    /// Notes that a warp's rows of A, and all of B, will be read.
    fn note_matrices(&mut self, issued: &Issued, number: u64, warp: &Warp) -> Step<()> {
        let clock = warp.knowledge(self.number(warp, 0));
        let cluster = self.clusters[self.at.0].number * self.domain();
        let multiplier = self.multiplier(self.at.1, warp.number / WARPS);
        let tick = number as u32 + 1;
        let order = Knowledge {
            me: cluster + multiplier,
            fenced: tick,
            first: cluster,
            domain: self.domain(),
            agents: self.agents,
            threads: self.threads_per_cta(),
            clock: &clock,
            across: self.strong_global,
        };
        let access = Access {
            who: cluster + multiplier,
            tick,
            line: issued.line,
            write: false,
            strong: false,
            asynchronous: true,
            same: false,
        };
        for address in chunks(issued, warp.number)?.into_iter().flatten() {
            let place = self.resolve(Space::Shared, u64::from(address), CHUNK, CHUNK)?;
            self.touch(place, CHUNK, access, &order)?;
        }
        Ok(())
    }

    /// Whether the multiplications of all groups but the last `pending` are done.
    pub fn multiplications_done(&self, warp: &Warp, pending: u32) -> bool {
        let group =
            &self.clusters[self.at.0].ctas[self.at.1].warpgroups[(warp.number / WARPS) as usize];
        let awaited = warp
            .flight
            .as_ref()
            .and_then(|flight| flight.awaited(pending));
        awaited.is_none_or(|number| group.done > number)
    }

    /// The threads of a warp learn of the multiplications that they have waited for.
    fn learn_multiplications(&self, warp: &mut Warp, pending: u32) {
        let Some(number) = warp.flight().awaited(pending) else {
            return;
        };
        let (agent, tick) = (
            self.multiplier(self.at.1, warp.number / WARPS),
            number as u32 + 1,
        );
        let mut last = None;
        for thread in &mut warp.threads {
            // Threads share clocks, and go on to.
            let learned = match &last {
                Some((before, after)) if Rc::ptr_eq(before, &thread.base) => Rc::clone(after),
                _ => thread.base.with(agent, tick),
            };
            last = Some((
                std::mem::replace(&mut thread.base, Rc::clone(&learned)),
                learned,
            ));
        }
    }

    /// The warpgroups of a cluster that have multiplications to execute, by CTA and number.
    pub fn ready_warpgroups(&self, cluster: usize) -> Vec<(usize, usize)> {
        let ctas = self.clusters[cluster].ctas.iter().enumerate();
        let groups = ctas.flat_map(|(cta, it)| {
            it.warpgroups
                .iter()
                .enumerate()
                .map(move |(number, it)| (cta, number, it))
        });
        groups
            .filter(|(.., it)| it.ready() > 0)
            .map(|(cta, number, _)| (cta, number))
            .collect()
    }

    /// Executes the next multiplication of a warpgroup.
    pub fn multiply(&mut self, cluster: usize, (cta, group): (usize, usize)) -> Step<()> {
        self.at = (cluster, cta);
        self.progress += 1;
        self.clusters[cluster].ctas[cta].warpgroups[group].done += 1;
        let mut b = None;
        for number in 0..WARPS as usize {
            let number = group * WARPS as usize + number;
            let warp = &mut self.clusters[cluster].ctas[cta].warps[number];
            let Some(issued) = warp.flight().queue.pop_front() else {
                continue;
            };
            self.copy_line = issued.line;
            let b = match &b {
                Some(b) => b,
                None => b.insert(self.matrix_b(&issued)?),
            };
            let mut warp = std::mem::take(&mut self.clusters[cluster].ctas[cta].warps[number]);
            let result = self.multiply_rows(&issued, &mut warp, b);
            self.clusters[cluster].ctas[cta].warps[number] = warp;
            result?;
        }
        Ok(())
    }

    /// A warp's part of a multiplication.
    fn multiply_rows(&mut self, issued: &Issued, warp: &mut Warp, b: &[f64]) -> Step<()> {
        let what = &issued.what;
        let a = self.rows_of_a(issued, warp)?;
        let columns = what.n as usize;
        let sums = product::multiply(&a, b, columns, what.negate);
        for (index, reg) in what.d.iter().enumerate() {
            let register = &mut warp.registers[issued.registers + *reg as usize];
            for (lane, bits) in register.iter_mut().enumerate() {
                let places = product::places(what.sum, lane as u32, index as u32);
                let mut products = [0.0; 2];
                let count = places
                    .zip(&mut products)
                    .map(|((row, column), product)| {
                        *product = sums[row as usize * columns + column as usize]
                    })
                    .count();
                let held = issued.add.then_some(*bits as u32);
                *bits = u64::from(product::register(
                    what.sum,
                    &products[..count],
                    held,
                    what.saturate,
                ));
            }
        }
        Ok(())
    }

    fn rows_of_a(&mut self, issued: &Issued, warp: &Warp) -> Step<Vec<Row>> {
        let what = &issued.what;
        let element = what.types[0];
        let elements = match &what.a {
            Left::Descriptor(_) => {
                let [a, _] = chunks(issued, warp.number)?;
                let bytes = self.gather(&a)?;
                let values = product::elements(element, &bytes);
                if what.transpose[0] {
                    transposed(&values, ROWS as usize)
                } else {
                    values
                }
            }
            Left::Registers(registers) => {
                let mut bytes = vec![0; (ROWS * 2 * CHUNK) as usize];
                for (index, reg) in registers.iter().enumerate() {
                    let values = &warp.registers[issued.registers + *reg as usize];
                    for (lane, value) in values.iter().enumerate() {
                        let (row, at) = product::fragment(lane as u32, index as u32);
                        let at = (row * 2 * CHUNK + at) as usize;
                        bytes[at..at + 4].copy_from_slice(&(*value as u32).to_le_bytes());
                    }
                }
                product::elements(element, &bytes)
            }
        };
        match &what.sparsity {
            None => Ok(product::dense(&elements)),
            Some(sparsity) => {
                product::sparse(&elements, element, sparsity.selector, &issued.metadata)
            }
        }
    }

    /// The elements of B, row by row along K.
    fn matrix_b(&mut self, issued: &Issued) -> Step<Vec<f64>> {
        let what = &issued.what;
        let [_, b] = chunks(issued, 0)?;
        let values = product::elements(what.types[1], &self.gather(&b)?);
        Ok(if what.transpose[1] {
            values
        } else {
            transposed(&values, what.depth() as usize)
        })
    }

    fn gather(&mut self, addresses: &[u32]) -> Step<Vec<u8>> {
        let mut bytes = Vec::with_capacity(addresses.len() * CHUNK as usize);
        for address in addresses {
            let place = self.resolve(Space::Shared, u64::from(*address), CHUNK, CHUNK)?;
            bytes.extend_from_slice(self.bytes(place, CHUNK));
        }
        Ok(bytes)
    }
}

/// A matrix of rows of `width` elements, column by column.
fn transposed(values: &[f64], width: usize) -> Vec<f64> {
    (0..width)
        .flat_map(|column| values[column..].iter().step_by(width).copied())
        .collect()
}

/// The addresses of the 16 bytes of a warp's rows of A, and of those of B, row by row as they lie.
fn chunks(issued: &Issued, warp: u32) -> Step<[Vec<u32>; 2]> {
    let what = &issued.what;
    let first = warp % WARPS * ROWS;
    let a = match issued.descriptors[0] {
        Some(bits) => matrix(bits, what.transpose[0], (first, ROWS), 2 * CHUNK)?,
        None => Vec::new(),
    };
    let b = match issued.descriptors[1] {
        Some(bits) => matrix(bits, what.transpose[1], (0, what.n), what.b_bytes())?,
        None => Vec::new(),
    };
    Ok([a, b])
}

/// The 16 bytes of `count` rows or columns from `first`, which have `bytes` along K.
fn matrix(bits: u64, transposed: bool, (first, count): (u32, u32), bytes: u32) -> Step<Vec<u32>> {
    let matrix = Descriptor::decode(bits)?;
    if transposed {
        // Of 16 bits each: so many are in 16 bytes.
        let (elements, depth) = (CHUNK / 2, bytes / 2);
        let chunks = first / elements..(first + count) / elements;
        return Ok((0..depth)
            .flat_map(|k| chunks.clone().map(move |chunk| matrix.mn_major(chunk, k)))
            .collect());
    }
    let rows = first..first + count;
    rows.flat_map(|row| (0..bytes / CHUNK).map(move |chunk| matrix.k_major(row, chunk)))
        .collect()
}
