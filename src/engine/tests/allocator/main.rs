//! Tests of the simulated caching allocator: rules, invariants, and traces recorded by PyTorch.
#![allow(clippy::disallowed_methods, reason = "runs natively only")]

mod long_bins;
mod properties;
mod replay;
mod rules;
