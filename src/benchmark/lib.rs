//! The record of a benchmark run: a versioned JSON document that `vramscope bench` writes and every frontend reads.
//!
//! A [`Record`] states which card was measured in which state, and for each kernel what ran, the time of every sample,
//! and whether the result was correct, or why there is no time. It never contains names of hosts, users, files or
//! processes.
//!
//! The format is published as a JSON Schema, [`SCHEMA`]. [`Record::read`] accepts this version and older ones;
//! [`unknown_fields`] lists fields that a newer writer added.

mod attention;
mod change;
mod class;
mod conditions;
mod curves;
mod device;
mod entry;
mod host;
mod kernel;
mod label;
mod measurement;
mod older;
mod operations;
mod read;
mod roofline;
mod summary;
#[cfg(test)]
mod tests;
mod unknown;

use serde::{Deserialize, Serialize};

pub use attention::MeasuredPoint;
pub use change::{Change, Comparison, Differs, Part};
pub use class::Class;
pub use conditions::{Conditions, Reading};
pub use curves::{Family, Point, Topic, families};
pub use device::{BenchedDevice, Library};
pub use entry::{Entry, List};
pub use host::{Drift, Host};
pub use kernel::{Direction, Kernel, Layout, Pass, Precision, Shape};
pub use measurement::{Check, Implementation, Measured, Measurement, Outcome, Timer};
pub use read::ReadError;
pub use roofline::{Dot, Reach};
pub use summary::{Outliers, Summary};
pub use unknown::unknown_fields;

/// Version that is written; [`Record::read`] accepts this and every older one.
///
/// Version 1 was the first numbered one. Version 2 adds classes (collectives, elementwise kernels, reductions, lists of
/// tensors, backward passes) and the extents and fields that they state, and changes nothing else. Version 3 adds the
/// host. Version 4 adds classes that PyTorch alone has, and how the host's pace changed.
pub const SCHEMA_VERSION: u32 = 4;

/// Published JSON Schema of version [`SCHEMA_VERSION`].
pub const SCHEMA: &str = include_str!("schema.json");

/// One run of `vramscope bench` on one card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Record {
    /// The version of this form, [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What wrote it.
    pub tool: Tool,
    /// When the run began, in UTC, as `2026-11-20T15:04:05Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// How the run was asked for, and whether it came to its end.
    #[serde(default)]
    pub run: Run,
    /// The card.
    pub device: BenchedDevice,
    /// The state of the card, and what may have disturbed the run.
    #[serde(default)]
    pub conditions: Conditions,
    /// The host, if it was measured too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// One for each kernel at each shape, in the order in which they ran.
    pub results: Vec<Measurement>,
}

/// What wrote a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tool {
    /// `vramscope`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// How a run was asked for, and whether it came to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Run {
    /// A short run: fewer shapes and fewer samples.
    #[serde(default)]
    pub quick: bool,
    /// All that was asked for has a result; otherwise the run was interrupted and can be resumed.
    #[serde(default)]
    pub complete: bool,
}

impl Record {
    /// The result of exactly this kernel.
    pub fn result_of(&self, kernel: &Kernel) -> Option<&Measurement> {
        self.results.iter().find(|result| result.kernel == *kernel)
    }

    /// Replaces the result of the same kernel, or appends this one.
    pub fn put(&mut self, result: Measurement) {
        match self.results.iter_mut().find(|old| old.kernel == result.kernel) {
            Some(old) => *old = result,
            None => self.results.push(result),
        }
    }

    /// The record with summaries instead of samples: a tenth of the size, and sufficient for all figures.
    #[must_use]
    pub fn without_samples(mut self) -> Self {
        for result in &mut self.results {
            if let Outcome::Measured(measured) = &mut result.outcome {
                measured.samples_ns.clear();
            }
        }
        self
    }
}
