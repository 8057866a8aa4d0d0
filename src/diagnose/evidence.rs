//! What was understood of what a person gave.

use serde::{Deserialize, Serialize};

use super::counters::Counters;
use super::log::TrainingLog;
use super::oom::OomMessage;
use super::profile::Profile;
use super::smi::Smi;
use super::snapshot::Summary;

/// One thing that was understood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// An out-of-memory error.
    Oom(OomMessage),
    /// The allocator's counters: `memory_summary()` or `memory_stats()`.
    Counters(Counters),
    /// What `nvidia-smi` shows, once or over time.
    Smi(Smi),
    /// A training log with memory in it.
    Log(TrainingLog),
    /// A profiler's table or trace.
    Profile(Profile),
    /// A memory snapshot.
    Snapshot(Box<Summary>),
}

impl Evidence {
    /// What it is, in the words of those who know it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Oom(_) => "out-of-memory error",
            Self::Counters(_) => "allocator counters",
            Self::Smi(_) => "nvidia-smi",
            Self::Log(_) => "training log",
            Self::Profile(_) => "profiler output",
            Self::Snapshot(_) => "memory snapshot",
        }
    }
}

/// A piece of evidence and where it began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// Number of its first line, from 1; 0 for a file that has no lines.
    pub line: usize,
    /// What it says.
    pub evidence: Evidence,
}
