//! One training step as eager PyTorch runs it, with the lifetime of every tensor.
//!
//! A small eager runtime without data. Model code calls operations on a [`Tape`]; each makes its tensors, records its
//! backward, and frees the tensors that nobody holds. The result is a [`log::Log`] of allocations and frees that the
//! allocator replays.

mod allocations;
mod autocast;
mod autograd;
mod checkpoint;
mod core;
pub mod dims;
mod failure;
mod follow;
mod gpu;
mod hooks;
mod kept;
mod kind;
pub mod log;
mod misfit;
mod module;
mod ops;
mod recorded;
mod repeat;
mod rewind;
mod script;
mod stack;
mod stage;
mod storage;
mod tensor;
mod unroll;
mod why;
pub mod work;
mod workspace;

pub use self::core::Tape;
pub use allocations::Allocations;
pub use autograd::{Backward, Grads, Recording};
pub use failure::Failure;
pub use follow::{Mark, Rest, RestMarks, Then, Written};
pub use gpu::Gpu;
pub use hooks::ModuleWatcher;
pub use kept::{Kept, Replaced};
pub use kind::{Component, Kind};
pub use module::Module;
pub use ops::{BatchNormTensors, Cuts, LogProbs, Mask, SdpaBackend, SdpaInputs, TokenFigures};
pub(crate) use ops::{FlashCaller, MOST_IN_PLACE, promote};
pub use repeat::{Alike, Point};
pub use rewind::Ready;
pub use stack::{Deduplication, Piece, Position, where_graph_begins};
pub use stage::Stage;
pub use storage::Storage;
pub use tensor::Tensor;
pub(crate) use unroll::Unroller;
pub use unroll::{Rolled, Unrolled};
pub use why::Why;
pub(crate) use workspace::WorkspaceSizes;
