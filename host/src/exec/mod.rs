//! PTX executed on the CPU, with every barrier and copy checked.
//!
//! ```
//! use cuda_ptx_host::exec::{Grid, Memory, Options, Program};
//!
//! # fn main() -> anyhow::Result<()> {
//! let program = Program::parse(
//!     ".version 8.0\n.target sm_90a\n.address_size 64
//!     .visible .entry number(.param .u64 out) {
//!         .reg .b32 %r<2>; .reg .b64 %rd<4>;
//!         ld.param.u64 %rd1, [out];
//!         mov.u32 %r1, %tid.x;
//!         mad.wide.u32 %rd2, %r1, 4, %rd1;
//!         st.global.u32 [%rd2], %r1;
//!         ret;
//!     }",
//! )?;
//! let mut memory = Memory::new();
//! let out = memory.uninitialised(4 * 64);
//! let grid = Grid::new([1, 1, 1], [64, 1, 1]);
//! program.run("number", &grid, &[out.address().to_le_bytes().to_vec()], &mut memory, &Options::default())?;
//! assert_eq!(memory.download(out)[4 * 63..], 63u32.to_le_bytes());
//! # Ok(())
//! # }
//! ```
//!
//! The text is parsed (`parse`) and decoded once (`decode`, `op`); a kernel that reaches what is not executed
//! cannot be run. A warp runs as vectors of 32 lanes (`step`, `alu`, `float`); lanes that diverge become
//! splits, which join again where they meet, and exchange registers (`exchange`, `matrix`,
//! `mma`).
//!
//! Barriers keep their phases (`barrier`). Copies of bytes, of tiles (`tensor`) and of columns (`im2col`) are issued (`bulk`) and
//! moved in pieces, at times and in an order that the schedule picks (`transfer`, `groups`), as it picks
//! the warps (`machine`, `schedule`). Vector clocks (`clock`) and shadow memory (`memory`) tell which
//! accesses are ordered; [`Check`] lists what can be found wrong, `report` says where. Independent clusters
//! may run on several cores (`apart`).
//!
//! `docs/cpu-executor.md` has the instructions that are covered.

mod alu;
mod apart;
mod barrier;
mod bulk;
mod check;
mod clock;
mod convert;
mod decode;
mod exchange;
mod float;
mod groups;
mod im2col;
mod job;
mod machine;
mod matrix;
mod memory;
mod mma;
mod on;
mod op;
mod parse;
mod program;
mod report;
mod schedule;
mod state;
mod step;
mod tensor;
mod tensor_map;
mod transfer;
mod wgmma;

pub use check::{Check, Thread, Violation};
pub use job::{Argument, Coverage, Findings, Job};
pub use machine::{Grid, Options, Stats};
pub use memory::{Buffer, Memory};
pub use on::{On, Outputs};
pub use program::Program;
pub use schedule::Deviations;
pub use tensor::{Columns, DataType, Interleave, OutOfBounds, Swizzle, Tensor};
