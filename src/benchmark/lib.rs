//! The record of a benchmark run: one versioned JSON, written by `vramscope bench`, read by every face.
//!
//! A [`Record`] says which card was measured, in which state, and of each kernel what ran, how long it
//! took in every sample, whether its result was right, or why there is no time. It never holds names of
//! hosts, users, files or processes.
//!
//! The form is published as a JSON Schema, [`SCHEMA`]. [`Record::read`] takes this version and older
//! ones; [`unknown_fields`] names what a newer writer added.

mod attention;
mod change;
mod class;
mod conditions;
mod curves;
mod device;
mod entry;
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
pub use kernel::{Direction, Kernel, Layout, Pass, Precision, Shape};
pub use measurement::{Check, Implementation, Measured, Measurement, Outcome, Timer};
pub use read::ReadError;
pub use roofline::{Dot, Reach};
pub use summary::{Outliers, Summary};
pub use unknown::unknown_fields;

/// The version that is written; [`Record::read`] takes this and every older one.
///
/// 1 was the first to be counted; 2 adds classes (work between cards, elementwise kernels, reductions, lists
/// of tensors, backward passes) and the extents and fields that they state, and changes nothing else.
pub const SCHEMA_VERSION: u32 = 2;

/// The published JSON Schema of version [`SCHEMA_VERSION`].
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

    /// Puts a result in the place of the one of the same kernel, or at the end.
    pub fn put(&mut self, result: Measurement) {
        match self.results.iter_mut().find(|old| old.kernel == result.kernel) {
            Some(old) => *old = result,
            None => self.results.push(result),
        }
    }

    /// The record with the summaries of its samples and without the samples: a tenth of its size, and all
    /// that figures are drawn from.
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
