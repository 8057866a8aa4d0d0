//! Replays recordings: training steps that PyTorch ran without a GPU, recorded operation by operation
//! (`docs/recording.md`).
//!
//! [`read`] takes a recording line by line and writes allocations and deallocations on a [`Tape`](crate::tape::Tape),
//! including kernels' internal memory, by the rules of simulated operations (`tape/ops`). [`report`] replays these
//! through PyTorch's allocator. [`Sizes`] holds the common structure of several recordings, and replays at any sizes
//! between theirs.

mod answer;
mod components;
mod edit;
mod error;
mod fault;
mod header;
mod input;
mod kernels;
mod keywords;
mod layout;
mod limits;
mod lines;
mod marks;
mod number;
mod opened;
mod optimizer;
mod reader;
mod replay;
mod report;
mod run;
mod scan;
mod settings;
mod sizes;
mod tables;
mod tape_builder;
#[cfg(test)]
mod tests;
mod timed;
mod value;
mod warnings;
mod work;

pub use answer::RecordedDocument;
pub use error::{Ranges, RecordingError};
pub use header::{Card, Header};
pub use limits::MOST_BYTES;
pub use opened::{Opened, open};
pub use optimizer::OptimizerForm;
pub use reader::read;
pub use replay::Asked;
pub use report::{Played, report};
pub use run::{About, Assumed, Batches, Overrides, Point, RecordedBatch, RecordedRun, StandIn};
pub use sizes::{Axis, Sizes};
