//! What a list of records says of each.

use serde::Serialize;
use vramscope_engine::record::{Outcome, Record};

use super::Checked;

/// A record in short: a line of `GET /api/records` and of a static index.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry<'a> {
    /// The record's id.
    pub id: &'a str,
    /// When the run began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<&'a str>,
    /// The card, as its driver names it.
    pub device: &'a str,
    /// How it was reached.
    pub backend: &'a str,
    /// CUDA's compute capability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<&'a str>,
    /// Memory, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The driver's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<&'a str>,
    /// The version of vramscope that measured.
    pub tool_version: &'a str,
    /// A short run.
    pub quick: bool,
    /// Every kernel has a result.
    pub complete: bool,
    /// Kernels with a result of any kind.
    pub results: usize,
    /// Kernels with times.
    pub measured: usize,
    /// Size of the record, in bytes.
    pub bytes: usize,
}

impl<'a> Entry<'a> {
    /// Of a record.
    pub fn of(checked: &'a Checked) -> Self {
        let Record {
            tool,
            date,
            run,
            device,
            results,
            ..
        } = &checked.record;
        let has_times = |outcome: &Outcome| matches!(outcome, Outcome::Measured(_));
        Self {
            id: &checked.id,
            date: date.as_deref(),
            device: &device.name,
            backend: &device.backend,
            compute_capability: device.compute_capability.as_deref(),
            memory_bytes: device.memory_bytes,
            driver: device.driver.as_deref(),
            tool_version: &tool.version,
            quick: run.quick,
            complete: run.complete,
            results: results.len(),
            measured: results.iter().filter(|result| has_times(&result.outcome)).count(),
            bytes: checked.text.len(),
        }
    }
}
