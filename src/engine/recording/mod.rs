//! Plays recordings: training steps that PyTorch ran without a GPU, written down operation by operation
//! (`docs/recording.md`).
//!
//! [`read`] takes a recording line by line and writes births and deaths on a [`Tape`](crate::tape::Tape), with what
//! kernels take inside, by the rules that simulated operations have (`tape/ops`). [`report`] plays these through
//! PyTorch's allocator. [`Sizes`] holds what several recordings share, and is played at any sizes between theirs.

mod answer;
mod components;
mod error;
mod fault;
mod header;
mod input;
mod kernels;
mod layout;
mod limits;
mod lines;
mod marks;
mod number;
mod opened;
mod player;
mod reader;
mod replay;
mod report;
mod run;
mod settings;
mod sizes;
mod tables;
#[cfg(test)]
mod tests;
mod timed;
mod value;
mod warnings;
mod work;

pub use answer::Answer;
pub use error::RecordingError;
pub use header::{Card, Header};
pub use limits::MOST_BYTES;
pub use opened::{Opened, open};
pub use reader::read;
pub use replay::Asked;
pub use report::{Played, report};
pub use run::{About, Assumed, Point, Run};
pub use sizes::Sizes;
