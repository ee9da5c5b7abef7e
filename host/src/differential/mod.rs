//! Every form of `cuda::ptx` on the GPU: the Rust function, the C++ function, and what the PTX ISA says.
//!
//! | step | module |
//! |---|---|
//! | a form by its declaration in the C++ headers | [`form`] |
//! | how it is run, and what must come out | [`scenario`] |
//! | its kernels in both languages | [`kernels`] |
//! | all of them, built | [`images`] |
//! | launches and comparison, in a child process | [`execute`] |
//! | all forms, in batches | [`run`](mod@run) |
//! | misuse on purpose | [`misuse`] |
//! | specs with one wrong line, which must be noticed | [`mutants`] |
//! | recorded outputs, for machines without a GPU | [`golden`] |
//! | the result | [`report`] |

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

pub use images::{Entry, Images, Plan};
pub use mutants::{MUTANTS, Mutant};
pub use run::{Options, run};
