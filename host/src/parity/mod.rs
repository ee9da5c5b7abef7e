//! Every form of `cuda::ptx` against its twin in Rust.

pub mod headers;
