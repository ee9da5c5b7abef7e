//! `cuda::ptx` for Rust.
#![no_std]
