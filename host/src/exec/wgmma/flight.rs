//! The registers of a warp that its multiplications have, and what else accesses them.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use super::super::check::{Check, Fault, Step};
use super::product::{Issued, Left, Multiplication};

/// Accessed by an ordinary instruction since the last `wgmma.fence`.
const TOUCHED: u8 = 1;
/// Part of D, or of A, of a multiplication that has not been waited for.
const SUMS: u8 = 2;
const LEFT: u8 = 4;

/// A multiplication that has not been waited for.
#[derive(Debug)]
struct Pending {
    what: Arc<Multiplication>,
    registers: usize,
    /// Its number among those of the warpgroup.
    number: u64,
    line: u32,
}

impl Pending {
    /// Its registers of D and A, and what they are.
    fn registers(&self) -> impl Iterator<Item = (usize, u8)> {
        let a = match &self.what.a {
            Left::Registers(a) => a.as_slice(),
            Left::Descriptor(_) => &[],
        };
        let d = self.what.d.iter().map(|reg| (*reg, SUMS));
        let all = d.chain(a.iter().map(|reg| (*reg, LEFT)));
        all.map(|(reg, part)| (self.registers + reg as usize, part))
    }

    fn overlaps(&self, other: &Self) -> bool {
        let mut registers = self.registers();
        registers.any(|(register, _)| other.registers().any(|(number, _)| number == register))
    }
}

/// What a warp has issued, and the state of its registers.
#[derive(Debug, Default)]
pub struct Flight {
    state: Vec<Cell<u8>>,
    /// The first register that was accessed in flight since this was last asked, and whether it was written.
    accessed: Cell<Option<(usize, bool)>>,
    /// What has not been executed.
    pub queue: VecDeque<Issued>,
    open: Vec<Pending>,
    committed: VecDeque<Vec<Pending>>,
}

impl Flight {
    /// Notes an access by an instruction other than multiplications.
    #[inline]
    pub fn access(&self, register: usize, write: bool) {
        let Some(state) = self.state.get(register) else {
            return;
        };
        if state.get() > TOUCHED && self.accessed.get().is_none() {
            self.accessed.set(Some((register, write)));
        }
        state.set(state.get() | TOUCHED);
    }

    /// Whether registers in flight have been accessed.
    pub fn check(&self) -> Step<()> {
        let Some((register, write)) = self.accessed.take() else {
            return Ok(());
        };
        let pending = self.pending().find_map(|pending| {
            let mut registers = pending.registers();
            let (_, part) = registers.find(|(number, _)| *number == register)?;
            Some((pending.line, part))
        });
        let (line, part) = pending.unwrap_or((0, SUMS));
        let part = if part == SUMS { "D" } else { "A" };
        let this = if write { "write" } else { "read" };
        Err(Fault::new(
            Check::MatrixRegisters,
            format!(
                "this {this} of a register with {part} of the multiplication that was issued at PTX line {line}: \
                 expected `wgmma.wait_group` for its group between"
            ),
        ))
    }

    fn pending(&self) -> impl Iterator<Item = &Pending> {
        self.committed.iter().flatten().chain(&self.open)
    }

    /// `wgmma.fence`, by a warp with so many registers.
    pub fn fence(&mut self, registers: usize) {
        self.state.resize(registers, Cell::new(TOUCHED));
        for state in &self.state {
            state.set(state.get() & !TOUCHED);
        }
    }

    /// Takes the registers of a multiplication, the `number`-th of the warpgroup.
    pub fn issue(&mut self, issued: Issued, number: u64) -> Step<()> {
        let pending = Pending {
            what: Arc::clone(&issued.what),
            registers: issued.registers,
            number,
            line: issued.line,
        };
        let mut adds = false;
        for (register, part) in pending.registers() {
            let state = self.state.get(register).map_or(TOUCHED, Cell::get);
            if state & TOUCHED != 0 {
                return Err(missing_fence(part));
            }
            adds |= part == SUMS && state & SUMS != 0;
            // Reading A twice is no conflict.
            if part == LEFT && state & SUMS != 0 || part == SUMS && state & LEFT != 0 {
                return Err(self.conflict(&pending));
            }
        }
        let differs = |other: &&Pending| !other.what.same_shape(&pending.what);
        if adds
            && self
                .pending()
                .filter(differs)
                .any(|other| other.overlaps(&pending))
        {
            return Err(self.conflict(&pending));
        }
        for (register, part) in pending.registers() {
            let state = &self.state[register];
            state.set(state.get() | part);
        }
        self.open.push(pending);
        self.queue.push_back(issued);
        Ok(())
    }

    fn conflict(&self, new: &Pending) -> Box<Fault> {
        let other = self.pending().find(|other| other.overlaps(new));
        Fault::new(
            Check::MatrixRegisters,
            format!(
                "expected `wgmma.wait_group` before another multiplication takes registers of the one that was \
                 issued at PTX line {}, unless both add to D with one shape",
                other.map_or(0, |other| other.line)
            ),
        )
    }

    pub fn commit(&mut self) {
        self.committed.push_back(std::mem::take(&mut self.open));
    }

    /// The number of the last multiplication of all groups but the last `pending`.
    pub fn awaited(&self, pending: u32) -> Option<u64> {
        let waited = self.committed.len().saturating_sub(pending as usize);
        let groups = self.committed.iter().take(waited);
        groups.flatten().map(|pending| pending.number).max()
    }

    /// Gives back the registers of all groups but the last `pending`.
    pub fn complete(&mut self, pending: u32) {
        let waited = self.committed.len().saturating_sub(pending as usize);
        if waited == 0 {
            return;
        }
        for state in &self.state {
            state.set(state.get() & TOUCHED);
        }
        self.committed.drain(..waited);
        for (register, part) in self.pending().flat_map(Pending::registers) {
            let state = &self.state[register];
            state.set(state.get() | part);
        }
    }

    /// The line of a multiplication that has not been waited for.
    pub fn unfinished(&self) -> Option<u32> {
        self.pending().map(|pending| pending.line).next()
    }
}

fn missing_fence(part: u8) -> Box<Fault> {
    let part = if part == SUMS { "D" } else { "A" };
    Fault::new(
        Check::MatrixFence,
        format!(
            "expected `wgmma.fence` between the last access to the registers of {part} and this multiplication, \
             and before the first one"
        ),
    )
}
