//! The benchmark of every instruction form, in Rust and in C++.
//!
//! | step | module |
//! |---|---|
//! | every form | [`forms`] |
//! | what a form needs around it, and what its steps hand on | [`setup`] |
//! | the same of what `cuda::ptx` lacks | [`beyond`] |
//! | one kernel per form and language | [`source`], [`language`], [`twin`] |
//! | cubins, and their machine code compared | [`images`] |
//! | kernels written by hand, and where each is measured | [`situations`] |
//! | launches in pairs, and what stands for all of them | [`pairs`] |
//! | launches, in child processes | [`job`], [`situation_job`] |
//! | all jobs in turn | [`runner`] |
//! | tables | [`report`], [`published`] |
//! | charts | [`charts`], [`chart`] |
//! | whether another run finds the same | [`agreement`] |
//! | the page that says what to choose | [`costs`] |
//! | medians, intervals and lines | [`statistics`] |

pub mod agreement;
pub mod beyond;
pub mod chart;
pub mod charts;
pub mod costs;
pub mod forms;
pub mod images;
pub mod job;
pub mod language;
pub mod pairs;
pub mod published;
pub mod report;
pub mod runner;
pub mod setup;
pub mod situation_job;
pub mod situations;
pub mod source;
pub mod statistics;
pub mod twin;
