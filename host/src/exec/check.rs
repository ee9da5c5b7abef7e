//! What a run can find wrong, by name.

use std::fmt;

/// A kind of mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// Nothing can go on any more.
    Deadlock,
    /// A wait for a phase that is neither the current one nor the one before it.
    StalePhase,
    /// An arrival count out of range, or more arrivals than the phase expects.
    ArrivalCount,
    /// A transaction count out of range.
    TransactionCount,
    /// An operation on a barrier that is not initialised, was invalidated, or is used as data.
    BarrierState,
    /// `mbarrier.init` of a barrier that is still valid.
    Reinitialised,
    /// An arrival by a thread that has dropped out.
    Drop,
    /// The buffer of a bulk copy is touched before the copy is complete.
    BulkBuffer,
    /// The copy engine reads or overwrites what ordinary stores wrote, without a proxy fence.
    ProxyFence,
    /// A barrier is used whose initialisation has not been published to the user.
    Unpublished,
    /// The shared memory of a CTA that has exited is accessed.
    ExitedCta,
    /// Two accesses, one of them a write, that nothing orders.
    Race,
    /// An address that the access needs aligned.
    Alignment,
    /// A size that the instruction does not take.
    Size,
    /// A tensor map that the copy cannot use.
    TensorMap,
    /// An address outside every allocation.
    OutOfBounds,
    /// A read of memory that was never written.
    Uninitialised,
    /// Threads of a warp, or warps of a warpgroup, that must execute an instruction together do not.
    Divergence,
    /// Registers of a multiplication of a warpgroup are accessed before `wgmma.wait_group`.
    MatrixRegisters,
    /// `wgmma.fence` is missing between an access to registers and a multiplication that takes them.
    MatrixFence,
    /// Shared memory is written while a multiplication reads it.
    MatrixBuffer,
    /// A matrix descriptor, or metadata of a sparse matrix, without meaning.
    Matrix,
    /// `trap`.
    Trap,
    /// The run took more instructions than it may.
    Limit,
}

impl Check {
    /// Its name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Deadlock => "deadlock",
            Self::StalePhase => "stale phase",
            Self::ArrivalCount => "arrival count",
            Self::TransactionCount => "transaction count",
            Self::BarrierState => "barrier state",
            Self::Reinitialised => "re-initialisation",
            Self::Drop => "drop",
            Self::BulkBuffer => "bulk-copy buffer",
            Self::ProxyFence => "proxy fence",
            Self::Unpublished => "unpublished barrier",
            Self::ExitedCta => "exited CTA",
            Self::Race => "data race",
            Self::Alignment => "misalignment",
            Self::Size => "size",
            Self::TensorMap => "tensor map",
            Self::OutOfBounds => "out of bounds",
            Self::Uninitialised => "uninitialised read",
            Self::Divergence => "barrier divergence",
            Self::MatrixRegisters => "matrix registers",
            Self::MatrixFence => "matrix fence",
            Self::MatrixBuffer => "matrix buffer",
            Self::Matrix => "matrix description",
            Self::Trap => "trap",
            Self::Limit => "instruction limit",
        }
    }
}

/// A thread of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its CTA.
    pub cta: [u32; 3],
    /// Its place in the CTA, in x, y, z.
    pub thread: [u32; 3],
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let triple = |[x, y, z]: [u32; 3]| match (y, z) {
            (0, 0) => format!("{x}"),
            (_, 0) => format!("({x}, {y})"),
            _ => format!("({x}, {y}, {z})"),
        };
        let (thread, cta) = (triple(self.thread), triple(self.cta));
        write!(f, "thread {thread} of CTA {cta}")
    }
}

/// What went wrong in a run, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The kind.
    pub check: Check,
    /// The kernel.
    pub kernel: String,
    /// The line of the PTX text, from 1; 0 if it is no one line's.
    pub line: u32,
    /// The lines of the source, where the PTX has line information: the innermost inlined call first,
    /// then where it was called, up to the kernel.
    pub source: Vec<(String, u32)>,
    /// Who did it.
    pub thread: Option<Thread>,
    /// What was expected and what was found.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} in `{}`", self.check.name(), self.kernel)?;
        if self.line > 0 {
            write!(f, ", PTX line {}", self.line)?;
        }
        if !self.source.is_empty() {
            let lines = self
                .source
                .iter()
                .map(|(file, line)| format!("{file}:{line}"));
            write!(f, " ({})", Vec::from_iter(lines).join(", in "))?;
        }
        if let Some(thread) = self.thread {
            write!(f, ", {thread}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for Violation {}

/// A violation before it is known where it happened.
#[derive(Debug)]
pub(super) struct Fault {
    pub check: Check,
    /// The lane that did it.
    pub lane: Option<u32>,
    pub message: String,
}

impl Fault {
    pub fn new(check: Check, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            check,
            lane: None,
            message: message.into(),
        })
    }
}

pub(super) type Step<T> = std::result::Result<T, Box<Fault>>;

/// Adds the lane to a fault.
pub(super) trait AtLane<T> {
    fn at(self, lane: u32) -> Step<T>;
}

impl<T> AtLane<T> for Step<T> {
    fn at(self, lane: u32) -> Step<T> {
        self.map_err(|mut fault| {
            fault.lane.get_or_insert(lane);
            fault
        })
    }
}
