//! Diagnoses a crash from what it left behind.
//!
//! [`read`] recognizes pasted text and dropped files, several kinds at once, as pieces of [`Evidence`]: numbers, and signs
//! of the kinds of evidence in `kinds/`. [`diagnose`] makes typed facts of them (phase, part, setup, versions), draws
//! hypotheses from the facts with what speaks for and against each, and returns ranked [`Finding`]s, each with its numbers,
//! quotations and recommended actions; [`words`] puts a finding into English. Readers accept untrusted bytes within documented limits, and return either what they recognised or what
//! they expected.

mod amount;
mod counters;
mod digest;
mod evidence;
mod excerpt;
mod facts;
mod finding;
mod kind;
mod launched;
mod log;
mod oom;
mod paste;
pub mod pickle;
mod profile;
mod read;
pub mod recorded;
mod sign;
mod smi;
pub mod snapshot;
#[cfg(test)]
mod tests;
mod text;

pub use amount::Amount;
pub use counters::{Counters, Gauge};
pub use digest::Digest;
pub use evidence::{Evidence, Piece};
pub use excerpt::{Excerpt, Part};
pub use facts::{Lost, OfCommand, Setting};
pub use finding::{
    Action, Cause, Check, Confidence, Context, Finding, Fix, Fixes, Quote, catalogue_name, checks, diagnose, words,
};
pub use launched::launched;
pub use log::{Point, Series, TrainingLog};
pub use oom::{Asker, Backend, OomMessage, Process, Site};
pub use profile::{HotSpot, Op, Profile, Work};
pub use read::{UNDERSTOOD, Unrecognised, read, read_parts, read_to_look_at};
pub use sign::Sign;
pub use smi::{Sample, Smi, SmiDevice, SmiProcess};
pub use snapshot::{Snapshot, SnapshotError};
