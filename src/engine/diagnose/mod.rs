//! Readers of what a person has after a run: every one takes foreign bytes, within stated caps, and
//! answers with what it understood or with what it expected.

pub mod pickle;
mod snapshot;

pub use snapshot::{Snapshot, SnapshotError};
