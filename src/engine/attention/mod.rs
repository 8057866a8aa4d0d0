//! Memory and time of a single attention call against length, by algorithm.
//!
//! Memory is not a fitted formula: each algorithm runs on the [`tape`](crate::tape) operation by operation and through
//! the allocator, and the formula is derived from the tensors live at the peak. Time is an estimate: operations and
//! bytes over the rates of the card's data sheet.
//!
//! The protocol is that of a benchmark: queries, keys and values are contiguous [batch, heads, length, head size]; the
//! libraries' workspaces are warm; bytes count from there on. Forward runs without a graph; training runs `f(q, k,
//! v).sum().backward()`.

mod algorithms;
mod call;
mod formula;
mod kernels;
mod memory;
mod of_model;
mod replay;
mod sparse;
mod time;
mod work;

pub use call::{Algorithm, Call, Pass, Refused};
pub use formula::{Factor, Product, Symbol};
pub use kernels::Kernel;
pub use memory::{Memory, Term, memory};
pub use time::{Bound, KernelTime, Time, time};
pub use work::work;
