//! Diagnoses a crash from what it left behind.
//!
//! [`read`] recognizes pasted text and dropped files, several kinds at once, as pieces of [`Evidence`]. [`diagnose`]
//! draws ranked [`Finding`]s from them, each with its numbers and recommended actions; [`words`] puts a finding into
//! English. Readers accept untrusted bytes within documented limits, and return either what they recognised or what
//! they expected.

mod amount;
mod counters;
mod evidence;
mod finding;
mod log;
mod oom;
pub mod pickle;
mod profile;
mod read;
pub mod recorded;
mod smi;
pub mod snapshot;
#[cfg(test)]
mod tests;
mod text;

pub use amount::Amount;
pub use counters::{Counters, Gauge};
pub use evidence::{Evidence, Piece};
pub use finding::{Action, Cause, Check, Confidence, Context, Finding, Fix, Fixes, checks, diagnose, words};
pub use log::{Point, Series, TrainingLog};
pub use oom::{Asker, Backend, OomMessage, Process, Site};
pub use profile::{HotSpot, Op, Profile, Work};
pub use read::{UNDERSTOOD, Unrecognised, read, read_to_look_at};
pub use smi::{Sample, Smi, SmiDevice, SmiProcess};
pub use snapshot::{Snapshot, SnapshotError};
