//! The simulated caching allocator: its rules, its invariants, and PyTorch's own record of it.

mod properties;
mod replay;
mod rules;
