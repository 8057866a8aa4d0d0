//! From what a person has after a crash to its cause.
//!
//! [`read`] understands what was pasted or dropped, several kinds at once, each recognised by itself; the
//! pieces are [`Evidence`]. [`diagnose`] draws [`Finding`]s from them, ranked, each with its numbers and with
//! what to do next; [`words`] puts a finding into English. Readers take foreign bytes within stated caps and
//! answer with what they understood or with what they expected.

mod amount;
mod counters;
mod evidence;
mod finding;
mod log;
mod oom;
pub mod pickle;
mod profile;
mod read;
mod smi;
pub mod snapshot;
#[cfg(test)]
mod tests;
mod text;

pub use amount::Amount;
pub use counters::{Counters, Gauge};
pub use evidence::{Evidence, Piece};
pub use finding::{Cause, Check, Context, Finding, Fix, Fixes, Standing, Step, checks, diagnose, words};
pub use log::{Point, Series, TrainingLog};
pub use oom::{Asker, Backend, OomMessage, Process, Site};
pub use profile::{HotSpot, Op, Profile, Work};
pub use read::{UNDERSTOOD, Unrecognised, read, read_to_look_at};
pub use smi::{Sample, Smi, SmiDevice, SmiProcess};
pub use snapshot::{Snapshot, SnapshotError};
