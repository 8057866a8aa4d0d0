//! Pieces of evidence that the readers extract from a person's text or file.

use serde::{Deserialize, Serialize};

use super::counters::Counters;
use super::digest::Digest;
use super::log::TrainingLog;
use super::oom::OomMessage;
use super::profile::Profile;
use super::smi::Smi;
use super::snapshot::Summary;

/// One recognised piece of evidence, by kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// What a text says beside the numbers below: signs, settings, the command.
    Text(Box<Digest>),
    /// An out-of-memory error.
    Oom(OomMessage),
    /// The allocator's counters: `memory_summary()` or `memory_stats()`.
    Counters(Counters),
    /// Output of `nvidia-smi`, one table or samples over time.
    Smi(Smi),
    /// A training log that reports memory.
    Log(TrainingLog),
    /// A profiler's table or trace.
    Profile(Profile),
    /// A memory snapshot.
    Snapshot(Box<Summary>),
}

impl Evidence {
    /// Common English name of this kind of evidence.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Oom(_) => "out-of-memory error",
            Self::Counters(_) => "allocator counters",
            Self::Smi(_) => "nvidia-smi",
            Self::Log(_) => "training log",
            Self::Profile(_) => "profiler output",
            Self::Snapshot(_) => "memory snapshot",
        }
    }
}

/// A piece of evidence and the line where it begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// Number of the first line, from 1; 0 for a file without lines.
    pub line: usize,
    /// The evidence itself.
    pub evidence: Evidence,
}
