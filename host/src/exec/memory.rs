//! Memory and its shadow: who touched each word last, and whether that is ordered before now.

use super::check::{Check, Fault, Step};

/// Shared addresses as generic ones.
pub const SHARED_WINDOW: u64 = 1 << 48;
/// Local addresses as generic ones.
pub const LOCAL_WINDOW: u64 = 1 << 49;
/// Addresses of kernel parameters as generic ones.
pub const PARAM_WINDOW: u64 = 1 << 50;
/// Where buffers of the host lie.
const BUFFERS: u64 = 0x7f00_0000_0000;
/// Bytes between two allocations that belong to neither.
const GAP: u64 = 4096;

/// The bytes of memory that nobody has written.
pub const NOTHING: u8 = 0xcd;

/// The bytes that one shadow cell stands for.
const WORD: usize = 4;
/// Shadow cells that are made together.
const PAGE: usize = 1024;

/// What a shadow cell knows of its word.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    /// 0 for nobody, else a number + 1.
    writer: u32,
    write_tick: u32,
    write_line: u32,
    /// 0 for nobody, [`MANY`], else a number + 1.
    reader: u32,
    read_tick: u32,
    read_line: u32,
    write_bytes: u8,
    read_bytes: u8,
    initialised: u8,
    flags: u8,
}

const MANY: u32 = u32::MAX;
const STRONG_WRITE: u8 = 1;
const STRONG_READ: u8 = 2;
const ASYNC_WRITE: u8 = 4;
const ASYNC_READ: u8 = 8;
/// A valid barrier lies here.
pub const BARRIER: u8 = 16;

/// Who accesses, how.
#[derive(Clone, Copy)]
pub struct Access {
    /// The number in the grid, of a thread or a copy.
    pub who: u32,
    pub tick: u32,
    pub line: u32,
    pub write: bool,
    pub strong: bool,
    /// By the copy engine.
    pub asynchronous: bool,
    /// The bytes that are written are those that were there.
    pub same: bool,
}

/// What orders an access behind earlier ones.
pub trait Order {
    /// Whether tick `tick` of `who` is known to have happened.
    fn happened(&self, who: u32, tick: u32) -> bool;
    /// Whether a proxy fence is known to have followed it.
    fn fenced(&self, who: u32, tick: u32) -> bool;
    /// Whether it is a multiplication of a warpgroup.
    fn multiplies(&self, who: u32) -> bool;
    /// What to call it in a message.
    fn name(&self, who: u32) -> String;
}

/// The shadow of some bytes.
#[derive(Clone, Debug, Default)]
pub struct Shadow {
    pages: Vec<Option<Box<[Cell; PAGE]>>>,
    /// Readers of words that several have read: who, tick, line.
    many: Vec<Vec<(u32, u32, u32)>>,
    free: Vec<u32>,
}

impl Shadow {
    pub fn new(bytes: usize) -> Self {
        let pages = bytes.div_ceil(WORD * PAGE);
        Self {
            pages: (0..pages).map(|_| None).collect(),
            many: Vec::new(),
            free: Vec::new(),
        }
    }

    fn cell(&mut self, word: usize) -> &mut Cell {
        let page = self.pages[word / PAGE].get_or_insert_with(|| Box::new([Cell::default(); PAGE]));
        &mut page[word % PAGE]
    }

    fn peek(&self, word: usize) -> Option<Cell> {
        let page = self.pages[word / PAGE].as_ref();
        page.map(|page| page[word % PAGE])
    }

    /// The words that were written since accesses were forgotten.
    fn written(&self) -> impl Iterator<Item = usize> {
        let pages = self.pages.iter().enumerate();
        let cells = pages.flat_map(|(number, page)| {
            let cells = page.iter().flat_map(|page| page.iter());
            cells
                .enumerate()
                .map(move |(at, cell)| (number * PAGE + at, cell))
        });
        cells
            .filter(|(_, cell)| cell.writer > 0)
            .map(|(word, _)| word)
    }

    /// Checks and notes an access to `len` bytes at `at`.
    pub fn access(
        &mut self,
        at: usize,
        len: usize,
        access: Access,
        order: &impl Order,
        check_initialised: bool,
    ) -> Step<()> {
        for word in at / WORD..(at + len).div_ceil(WORD) {
            let from = at.max(word * WORD) - word * WORD;
            let to = (at + len).min((word + 1) * WORD) - word * WORD;
            let bytes = ((1u32 << to) - (1 << from)) as u8;
            self.access_word(word, bytes, access, order, check_initialised)?;
        }
        Ok(())
    }

    fn access_word(
        &mut self,
        word: usize,
        bytes: u8,
        access: Access,
        order: &impl Order,
        check_initialised: bool,
    ) -> Step<()> {
        let cell = *self.cell(word);
        if cell.flags & BARRIER != 0 {
            return Err(Fault::new(
                Check::BarrierState,
                "expected data, found a valid mbarrier here: only mbarrier operations may access it \
                 until `mbarrier.inval`",
            ));
        }
        if cell.writer > 0 && cell.write_bytes & bytes != 0 {
            self.against_writer(cell, access, order)?;
        }
        if check_initialised && !access.write && cell.initialised & bytes != bytes {
            return Err(Fault::new(
                Check::Uninitialised,
                "expected memory that was written before, found bytes that nobody wrote",
            ));
        }
        if access.write {
            self.against_readers(cell, bytes, access, order)?;
            self.forget_readers(cell);
            let cell = self.cell(word);
            *cell = Cell {
                writer: access.who + 1,
                write_tick: access.tick,
                write_line: access.line,
                write_bytes: bytes,
                initialised: cell.initialised | bytes,
                flags: if access.strong { STRONG_WRITE } else { 0 }
                    | if access.asynchronous { ASYNC_WRITE } else { 0 },
                ..Cell::default()
            };
        } else {
            self.note_read(word, cell, bytes, access, order);
        }
        Ok(())
    }

    fn against_writer(&self, cell: Cell, access: Access, order: &impl Order) -> Step<()> {
        let writer = cell.writer - 1;
        let both_strong = access.strong && cell.flags & STRONG_WRITE != 0;
        if writer == access.who || both_strong || access.write && access.same {
            return Ok(());
        }
        let happened = order.happened(writer, cell.write_tick);
        if !happened {
            return Err(unordered(cell, true, access, order));
        }
        let generic_before = access.asynchronous && cell.flags & ASYNC_WRITE == 0;
        if generic_before && !order.fenced(writer, cell.write_tick) {
            let what = if access.write { "overwrites" } else { "reads" };
            return Err(Fault::new(
                Check::ProxyFence,
                format!(
                    "the {} {what} what {} wrote at PTX line {}: expected `fence.proxy.async` \
                     between, by the writer and before the barrier",
                    agent(access, order),
                    order.name(writer),
                    cell.write_line
                ),
            ));
        }
        Ok(())
    }

    fn against_readers(
        &self,
        cell: Cell,
        bytes: u8,
        access: Access,
        order: &impl Order,
    ) -> Step<()> {
        let both_strong = access.strong && cell.flags & STRONG_READ != 0;
        if cell.reader == 0 || cell.read_bytes & bytes == 0 || both_strong || access.same {
            return Ok(());
        }
        let one = [(cell.reader.wrapping_sub(1), cell.read_tick, cell.read_line)];
        let readers = if cell.reader == MANY {
            self.many[cell.read_tick as usize].as_slice()
        } else {
            &one
        };
        for &(reader, tick, line) in readers {
            if reader != access.who && !order.happened(reader, tick) {
                let cell = Cell {
                    reader: reader + 1,
                    read_line: line,
                    ..cell
                };
                return Err(unordered(cell, false, access, order));
            }
        }
        Ok(())
    }

    fn forget_readers(&mut self, cell: Cell) {
        if cell.reader == MANY {
            self.many[cell.read_tick as usize].clear();
            self.free.push(cell.read_tick);
        }
    }

    fn note_read(
        &mut self,
        word: usize,
        cell: Cell,
        bytes: u8,
        access: Access,
        order: &impl Order,
    ) {
        let who = access.who + 1;
        let replaces = cell.reader == 0
            || cell.reader == who
            || cell.reader != MANY && order.happened(cell.reader - 1, cell.read_tick);
        let mut new = cell;
        new.read_bytes |= bytes;
        if access.strong {
            new.flags |= STRONG_READ;
        } else {
            new.flags &= !STRONG_READ;
        }
        if access.asynchronous {
            new.flags |= ASYNC_READ;
        } else if replaces {
            new.flags &= !ASYNC_READ;
        }
        if replaces {
            (new.reader, new.read_tick, new.read_line) = (who, access.tick, access.line);
        } else {
            if cell.reader != MANY {
                let list = self.free.pop().unwrap_or_else(|| {
                    self.many.push(Vec::new());
                    self.many.len() as u32 - 1
                });
                self.many[list as usize].push((cell.reader - 1, cell.read_tick, cell.read_line));
                (new.reader, new.read_tick) = (MANY, list);
            }
            let list = &mut self.many[new.read_tick as usize];
            let entry = (access.who, access.tick, access.line);
            match list.iter_mut().find(|(who, ..)| *who == access.who) {
                Some(known) => *known = entry,
                None => list.push(entry),
            }
        }
        *self.cell(word) = new;
    }

    /// Marks the 8 bytes at `at` as a barrier, or as plain memory that holds nothing.
    pub fn mark_barrier(&mut self, at: usize, valid: bool) {
        for word in [at / WORD, at / WORD + 1] {
            let cell = self.cell(word);
            if valid {
                cell.flags |= BARRIER;
            } else {
                cell.flags &= !BARRIER;
                cell.initialised = 0;
            }
        }
    }

    /// Forgets who accessed what, but not what was written.
    fn forget(&mut self) {
        for cell in self
            .pages
            .iter_mut()
            .flatten()
            .flat_map(|page| page.iter_mut())
        {
            *cell = Cell {
                initialised: cell.initialised,
                ..Cell::default()
            };
        }
        self.many.clear();
        self.free.clear();
    }

    /// Who wrote the word at `at` last, when, and in which line.
    pub fn last_write(&mut self, at: usize) -> Option<(u32, u32, u32)> {
        let cell = self.cell(at / WORD);
        (cell.writer > 0).then(|| (cell.writer - 1, cell.write_tick, cell.write_line))
    }
}

/// Whether no word that was written in one of the shadows was touched in another.
fn independent(shadows: &[&Shadow]) -> bool {
    shadows.iter().enumerate().all(|(number, shadow)| {
        shadow.written().all(|word| {
            let others = shadows
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != number);
            let mut cells = others.filter_map(|(_, other)| other.peek(word));
            cells.all(|cell| cell.writer == 0 && cell.reader == 0)
        })
    })
}

/// What accesses asynchronously.
fn agent(access: Access, order: &impl Order) -> &'static str {
    if order.multiplies(access.who) {
        "multiplication"
    } else {
        "copy"
    }
}

fn unordered(cell: Cell, with_writer: bool, access: Access, order: &impl Order) -> Box<Fault> {
    let (other, line, verb) = if with_writer {
        (cell.writer - 1, cell.write_line, "wrote")
    } else {
        (cell.reader - 1, cell.read_line, "read")
    };
    let asynchronous = if with_writer {
        cell.flags & ASYNC_WRITE != 0
    } else {
        cell.flags & ASYNC_READ != 0
    };
    let name = order.name(other);
    let this = if access.write { "write" } else { "read" };
    if order.multiplies(other) {
        return Fault::new(
            Check::MatrixBuffer,
            format!(
                "this write and the multiplication that was issued at PTX line {line}, which reads here: expected \
                 `wgmma.wait_group` for its group between"
            ),
        );
    }
    if asynchronous {
        let verb = if with_writer { "writing" } else { "reading" };
        return Fault::new(
            Check::BulkBuffer,
            format!(
                "this {this} and {name}, which is {verb} here: expected a wait for its completion \
                 between (the copy was issued at PTX line {line})"
            ),
        );
    }
    if access.asynchronous {
        let verb = if with_writer { "written" } else { "read" };
        let agent = agent(access, order);
        return Fault::new(
            Check::BulkBuffer,
            format!(
                "the {agent} may {this} here while {name} has not finished: expected a barrier between \
                 PTX line {line}, where it was {verb}, and the {agent}"
            ),
        );
    }
    Fault::new(
        Check::Race,
        format!(
            "this {this} and that of {name}, which {verb} here at PTX line {line}: expected a \
             barrier or another synchronisation between"
        ),
    )
}

/// A buffer in global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    address: u64,
    bytes: u64,
}

impl Buffer {
    /// Its address on the device.
    #[must_use]
    pub fn address(self) -> u64 {
        self.address
    }

    /// Its size.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.bytes
    }
}

#[derive(Clone, Debug)]
pub(super) struct Allocation {
    pub address: u64,
    pub name: String,
    pub data: Vec<u8>,
    pub shadow: Shadow,
    pub constant: bool,
    /// Whether reads of bytes never written are mistakes.
    pub uninitialised: bool,
}

/// Global memory: the buffers of the host and the variables of modules.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    pub(super) allocations: Vec<Allocation>,
    next: u64,
}

impl Memory {
    /// No buffers yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            allocations: Vec::new(),
            next: BUFFERS,
        }
    }

    /// A buffer with a copy of `data`, aligned to 256 bytes.
    pub fn upload(&mut self, data: &[u8]) -> Buffer {
        self.allocate(data.to_vec(), false)
    }

    /// A buffer of `bytes` bytes that may not be read before they are written.
    pub fn uninitialised(&mut self, bytes: usize) -> Buffer {
        self.allocate(vec![NOTHING; bytes], true)
    }

    fn allocate(&mut self, data: Vec<u8>, uninitialised: bool) -> Buffer {
        let (address, bytes) = (self.next, data.len() as u64);
        self.next = (address + bytes + GAP).next_multiple_of(256);
        self.insert(Allocation {
            address,
            name: format!("buffer {}", self.allocations.len()),
            shadow: Shadow::new(data.len()),
            data,
            constant: false,
            uninitialised,
        });
        Buffer { address, bytes }
    }

    pub(super) fn insert(&mut self, allocation: Allocation) {
        let at = self
            .allocations
            .partition_point(|it| it.address < allocation.address);
        self.allocations.insert(at, allocation);
    }

    /// The bytes of a buffer.
    #[must_use]
    pub fn download(&self, buffer: Buffer) -> &[u8] {
        let found = self.find(buffer.address, 0);
        found.map_or(&[], |(number, _)| &self.allocations[number].data)
    }

    /// The allocation that holds `bytes` bytes at `address`, and the offset in it.
    pub(super) fn find(&self, address: u64, bytes: u64) -> Option<(usize, usize)> {
        let after = self.allocations.partition_point(|it| it.address <= address);
        let number = after.checked_sub(1)?;
        let allocation = &self.allocations[number];
        let offset = address - allocation.address;
        let end = offset.checked_add(bytes)?;
        (end <= allocation.data.len() as u64).then_some((number, offset as usize))
    }

    /// What lies near an address that belongs to no allocation.
    pub(super) fn nearest(&self, address: u64) -> String {
        let after = self.allocations.partition_point(|it| it.address <= address);
        match after.checked_sub(1).map(|number| &self.allocations[number]) {
            Some(before) => format!(
                "the address is {} bytes behind the start of {}, which has {}",
                address - before.address,
                before.name,
                before.data.len()
            ),
            None => format!("no buffer starts before {address:#x}"),
        }
    }

    /// Takes over what was written in copies of this memory, unless a word that was written in one was
    /// touched in another.
    pub(super) fn unite(&mut self, copies: &[Self]) -> bool {
        for number in 0..self.allocations.len() {
            let shadows = copies.iter().map(|copy| &copy.allocations[number].shadow);
            if !independent(&Vec::from_iter(shadows)) {
                return false;
            }
        }
        for (number, allocation) in self.allocations.iter_mut().enumerate() {
            for copy in copies {
                let copy = &copy.allocations[number];
                for word in copy.shadow.written() {
                    let bytes = word * WORD..((word + 1) * WORD).min(allocation.data.len());
                    allocation.data[bytes.clone()].copy_from_slice(&copy.data[bytes]);
                    let cell = copy.shadow.peek(word);
                    *allocation.shadow.cell(word) = cell.unwrap_or_default();
                }
            }
        }
        true
    }

    /// Every access of the next launch comes after all earlier ones.
    pub(super) fn forget_accesses(&mut self) {
        for allocation in &mut self.allocations {
            allocation.shadow.forget();
        }
    }
}
