//! What each form needs around it to be timed: the table of set-ups.
//!
//! A form is timed as a chain of equal steps. [`setup_of`] says, by the function's name and its operands,
//! what a step is, what one step hands to the next, and who executes it.

use super::beyond;
use crate::spec::{Scalar, Type, Variant};

/// What makes a step of a chain wait for the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chain {
    /// The result is the next operand.
    Value,
    /// The result, masked to zero, is added to the address or another operand of the next step: the slope
    /// has these one to three integer instructions in it, which are timed by themselves.
    Link(Link),
    /// Nothing but program order: the slope is the interval at which one thread or warp issues it.
    Order,
    /// Each step waits until its operation is complete.
    Completion,
    /// The result is what the next multiplication adds to.
    Accumulate,
    /// Two CTAs of a cluster in turn: each step waits for the other's operation, then does its own. What the other
    /// has done is seen in steps of some 150 cycles: so CTA 0 pauses before each step, ever differently long, and the
    /// pauses are taken off. Otherwise the loop falls into step with them, and a cycle more or less makes a hundred.
    Exchange,
}

/// How the operand of a linked step is made from the result of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// `address += result & zero`, 32 bits, in shared memory.
    Shared,
    /// `address += result & zero`, 64 bits, in global memory.
    Global,
    /// `value | (result & zero)`, a 32-bit register.
    Register,
}

/// Who executes the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// Lane 0 of each warp, with a barrier and a buffer of its own.
    Lane,
    /// All lanes of each warp.
    Warp,
}

/// How a form is timed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// What links the steps.
    pub chain: Chain,
    /// Who executes them.
    pub actor: Actor,
    /// Whether the kernel runs in clusters of two CTAs.
    pub cluster: bool,
    /// Steps in the body of the loop.
    pub unroll: u32,
    /// Bytes that a step moves, for copies.
    pub bytes: u32,
    /// Whether a step costs more at some places of global memory than at others.
    pub places: bool,
    /// Threads of the smallest block, if not a warp.
    pub threads: u32,
    /// Threads of the largest block.
    pub max_threads: u32,
    /// Bytes of shared memory besides the barriers and buffers of the warps.
    pub shared: u32,
    /// Multiplications and additions of a step.
    pub flops: u32,
    /// What the barriers are initialised with.
    pub barrier: Barrier,
    /// Before each pass.
    pub first: &'static str,
    /// A step, with `$CALL` for the form itself, and `$LOAD` for giving the factors of a product other values.
    pub step: &'static str,
    /// At the end of the loop's body.
    pub after: &'static str,
    /// After each pass, when the clock has been read.
    pub last: &'static str,
    /// What else is in the step, for the reader of a table.
    pub with: &'static str,
}

/// How the mbarrier object of each warp is initialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// So many arrivals that no phase completes.
    Open,
    /// One arrival completes a phase.
    One,
    /// As `One`, and one phase is complete.
    Done,
    /// Of the layout of PTX ISA 9.4, and one phase is complete.
    NewLayout,
}

/// Bytes that each copy of the table of forms moves; the situations vary it.
pub const COPY_BYTES: u32 = 1024;

/// Why operations on a multicast address are not timed.
pub(super) const NO_MULTICAST: &str =
    "needs a multicast object over several GPUs, which the machine does not have";

/// Steps in the loop's body of a short operation, and of one that waits.
const MANY: u32 = 64;
const FEW: u32 = 4;

const WAIT_STEP: &str = "arm(bar, BYTES); $CALL; wait(bar, parity); parity = opaque(parity ^ 1);";
const STORE_STEP: &str = "$CALL; cp_async_bulk_commit_group(); drain();";
const EXCHANGE_STEP: &str = "arm(bar, BYTES); wait(bar, parity); parity = opaque(parity ^ 1); if (rank == 0) { t0 = pause(t0, STEP, pauses); } $CALL;";
const LINKED_STEP: &str = "cursor = advance(cursor, x & zero); x = opaque(fold($CALL));";
const GLOBAL_STEP: &str = "cursor = onward(cursor, x & zero); x = opaque(fold($CALL));";
const RESULT_STEP: &str = "x = opaque(fold($CALL));";
const CALL_STEP: &str = "$CALL;";

impl Setup {
    pub(super) fn order(actor: Actor) -> Self {
        Self {
            chain: Chain::Order,
            actor,
            cluster: false,
            unroll: MANY,
            bytes: 0,
            places: false,
            threads: 32,
            max_threads: 1024,
            shared: 0,
            flops: 0,
            barrier: Barrier::Open,
            first: "",
            step: CALL_STEP,
            after: "",
            last: "",
            with: "",
        }
    }

    pub(super) fn linked(link: Link, actor: Actor) -> Self {
        Self {
            chain: Chain::Link(link),
            step: match link {
                Link::Register => RESULT_STEP,
                Link::Shared => LINKED_STEP,
                Link::Global => GLOBAL_STEP,
            },
            ..Self::order(actor)
        }
    }

    fn waits(step: &'static str, with: &'static str, bytes: u32) -> Self {
        Self {
            chain: Chain::Completion,
            unroll: FEW,
            bytes,
            places: true,
            barrier: Barrier::One,
            step,
            with,
            ..Self::order(Actor::Lane)
        }
    }

    fn exchange(bytes: u32) -> Self {
        Self {
            chain: Chain::Exchange,
            cluster: true,
            places: false,
            ..Self::waits(
                EXCHANGE_STEP,
                "mbarrier.arrive.expect_tx, mbarrier.try_wait.parity",
                bytes,
            )
        }
    }

    pub(super) fn in_cluster(self) -> Self {
        Self {
            cluster: true,
            ..self
        }
    }
}

/// How to time a variant, or why that is not possible on one GPU.
pub fn setup_of(variant: &Variant) -> Result<Setup, &'static str> {
    match variant.is_beyond() {
        true => beyond::setup_of(variant),
        false => by_name(variant),
    }
}

/// The forms of `cuda::ptx`, and those that are copies or barriers of a cluster as they are.
pub(super) fn by_name(variant: &Variant) -> Result<Setup, &'static str> {
    use Actor::{Lane, Warp};
    let name = variant.function.as_str();
    let has = |arg: &str| variant.args.iter().any(|a| a.name == arg);
    let tagged = |tag: &str| tagged(variant, tag);
    let starts = |prefix: &str| name.starts_with(prefix);
    let load = Setup::waits(
        WAIT_STEP,
        "mbarrier.arrive.expect_tx, mbarrier.try_wait.parity",
        COPY_BYTES,
    );
    let store = Setup::waits(
        STORE_STEP,
        "cp.async.bulk.commit_group, cp.async.bulk.wait_group",
        COPY_BYTES,
    );
    Ok(match name {
        _ if starts("multimem") => return Err(NO_MULTICAST),
        "exit" | "trap" => return Err("ends the thread or the kernel, so it cannot be repeated"),
        "setmaxnreg_inc" | "setmaxnreg_dec" => Setup {
            step: "grow_and_shrink();",
            with: "setmaxnreg.inc and setmaxnreg.dec in turn",
            threads: 128,
            max_threads: 128,
            unroll: 16,
            ..Setup::order(Warp)
        },
        _ if starts("bfind") || starts("bmsk") || starts("prmt") || starts("sh") => Setup {
            chain: Chain::Value,
            step: "x = $CALL;",
            ..Setup::order(Warp)
        },
        _ if starts("get_sreg") => Setup {
            step: "x = opaque(x ^ fold($CALL));",
            with: "an exclusive or",
            ..Setup::order(Warp)
        },
        "elect_sync" | "mbarrier_pending_count" => Setup::linked(Link::Register, Warp),
        "getctarank" => Setup::linked(Link::Shared, Warp),
        "mbarrier_inval" => Setup {
            step: "$CALL; mbarrier_init(as_barrier(bar), one);",
            with: "mbarrier.init",
            ..Setup::order(Lane)
        },
        // The assembler adds up announcements that follow each other at one barrier.
        "mbarrier_expect_tx" if tagged("space_cluster") => Setup {
            step: "$CALL; mbarrier_complete_tx(sem_relaxed, scope_cluster, space_cluster, as_barrier(peer_bar), one);",
            with: "mbarrier.complete_tx",
            ..Setup::order(Lane).in_cluster()
        },
        "mbarrier_expect_tx" => Setup {
            step: "$CALL; mbarrier_complete_tx(sem_relaxed, scope_cta, space_shared, as_barrier(bar), one);",
            with: "mbarrier.complete_tx",
            ..Setup::order(Lane)
        },
        _ if starts("mbarrier_") && has("phase") => Setup {
            barrier: Barrier::NewLayout,
            ..Setup::linked(Link::Shared, Lane)
        },
        _ if starts("mbarrier_t") => Setup {
            barrier: Barrier::Done,
            ..Setup::linked(Link::Shared, Lane)
        },
        _ if starts("mbarrier_") && variant.result.is_some() => Setup::linked(Link::Shared, Lane),
        _ if starts("mbarrier_") && tagged("space_cluster") => Setup::order(Lane).in_cluster(),
        _ if starts("mbarrier_") || starts("cp_async_mbarrier") => Setup::order(Lane),
        _ if starts("barrier_cluster_arrive") => Setup {
            step: "$CALL; barrier_cluster_wait();",
            with: "barrier.cluster.wait",
            unroll: 16,
            ..Setup::order(Warp).in_cluster()
        },
        _ if starts("barrier_cluster_wait") => Setup {
            step: "barrier_cluster_arrive(); $CALL;",
            with: "barrier.cluster.arrive",
            unroll: 16,
            ..Setup::order(Warp).in_cluster()
        },
        "cp_async_bulk_commit_group" => Setup::order(Lane),
        _ if starts("cp_async_bulk_wait_group") => Setup::order(Lane),
        _ if starts("cp_async_bulk_prefetch") => Setup {
            places: true,
            ..Setup::order(Lane)
        },
        _ if starts("cp_") && has("bar") && from_shared(variant) => Setup::exchange(COPY_BYTES),
        _ if starts("cp_") && has("bar") && has("cta_mask") => load.in_cluster(),
        _ if starts("cp_") && has("bar") => load,
        _ if starts("cp_") => store,
        "st_async" | "red_async" => Setup::exchange(value_bytes(variant)),
        _ if starts("ld_") || name == "ld" => Setup::linked(Link::Global, Warp),
        _ if starts("ldmatrix") => Setup {
            step: "cursor = advance(cursor, x & zero); $CALL; x = opaque(fold(out_var));",
            ..Setup::linked(Link::Shared, Warp)
        },
        _ if starts("tensormap_replace") => Setup::order(Lane),
        _ if starts("fence") || starts("st") || starts("prefetch") || starts("tensormap_cp") => {
            Setup::order(Warp)
        }
        _ => return Err("no set-up is known for it: see host/src/bench/setup.rs"),
    })
}

/// Whether an operand is this tag.
pub(super) fn tagged(variant: &Variant, tag: &str) -> bool {
    let mut args = variant.args.iter();
    args.any(|arg| matches!(&arg.ty, Type::Tag(found) if found.name == tag))
}

/// Whether a copy reads shared memory.
fn from_shared(variant: &Variant) -> bool {
    variant.args.iter().any(|arg| {
        arg.name == "src_mem"
            && matches!(
                arg.ty,
                Type::Pointer {
                    space: crate::spec::Space::Shared,
                    ..
                }
            )
    })
}

fn value_bytes(variant: &Variant) -> u32 {
    let value = variant.args.iter().find(|arg| arg.name == "value");
    let (of, len) = match value.map(|arg| &arg.ty) {
        Some(Type::Array { of, len }) => (*of, *len),
        Some(Type::Scalar(of)) => (*of, 1),
        _ => (Scalar::U32, 1),
    };
    u32::from(of.bits()) / 8 * len as u32
}
