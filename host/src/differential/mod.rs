//! Every form of `cuda::ptx` on the GPU, and those beyond it: the Rust function, C++, and what the PTX ISA says.
//!
//! | step | module |
//! |---|---|
//! | a form by its declaration in the C++ headers, or in the spec | [`form`] |
//! | how it is run, and what must come out | [`scenario`] |
//! | its kernels in both languages | [`kernels`] |
//! | all of them, built | [`images`] |
//! | launches, in a child process | [`execute`] |
//! | what they gave against what they must give | [`agreement`] |
//! | all forms, in batches | [`run`](mod@run) |
//! | misuse on purpose | [`misuse`] |
//! | specs with one wrong line, which must be noticed | [`mutants`] |
//! | recorded outputs, for machines without a GPU | [`golden`] |
//! | the result | [`report`] |
//!
//! Other executors of PTX than a GPU run the same: [`images::ptx`] gives the forms and their kernels. A kernel takes
//! the input, the output, global memory and, where [`Scenario::takes_map`](scenario::Scenario::takes_map), a tensor
//! map; a [`Case`](scenario::Case) of [`scenario::of`] holds what is in them and the shape of the launch.
//! [`agreement::with_isa`] checks what came out, and a [`golden::Digest`] of it is to be the one that a GPU left.

pub mod agreement;
pub mod execute;
pub mod form;
pub mod golden;
pub mod images;
pub mod kernels;
pub mod misuse;
pub mod mutants;
pub mod report;
pub mod run;
pub mod scenario;

pub use images::{Entry, Extent, Images, Plan};
pub use mutants::{MUTANTS, Mutant};
pub use run::{Options, run};
