//! The simulated caching allocator: its rules, its invariants, and PyTorch's own record of it.
#![allow(clippy::disallowed_methods, reason = "runs natively only")]

mod properties;
mod replay;
mod rules;
