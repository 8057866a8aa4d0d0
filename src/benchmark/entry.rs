//! Short descriptions of records, for lists.

use serde::{Deserialize, Serialize};

use super::{Outcome, Record};

/// Short description of a record, as in `GET /api/records` and in the list that `vramscope export` writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// ID of the record: the SHA-256 of its canonical JSON (RFC 8785), in hexadecimal.
    pub id: String,
    /// Start of the run, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Name of the card according to its driver.
    pub device: String,
    /// Backend that ran the kernels.
    pub backend: String,
    /// CUDA compute capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
    /// Memory of the card, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Version of the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Version of vramscope that measured.
    pub tool_version: String,
    /// True for a short run.
    pub quick: bool,
    /// True if every kernel has a result.
    pub complete: bool,
    /// Number of kernels with a result of any kind.
    pub results: u64,
    /// Number of kernels with times.
    pub measured: u64,
    /// Size of the record, in bytes.
    pub bytes: u64,
}

/// A list of records, newest first: the answer to `GET /api/records`, and the file `records.json` in a folder that
/// `vramscope export` wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// The records.
    pub records: Vec<Entry>,
    /// Value of `before` to request the records that follow; `None` if there are no more.
    pub next: Option<i64>,
}

impl Entry {
    /// Describes a record with this ID whose text has `bytes` bytes.
    pub fn of(id: &str, record: &Record, bytes: usize) -> Self {
        let Record {
            tool,
            date,
            run,
            device,
            results,
            ..
        } = record;
        let has_times = |outcome: &Outcome| matches!(outcome, Outcome::Measured(_));
        let measured = results.iter().filter(|result| has_times(&result.outcome));
        Self {
            id: id.to_owned(),
            date: date.clone(),
            device: device.name.clone(),
            backend: device.backend.clone(),
            compute_capability: device.compute_capability.clone(),
            memory_bytes: device.memory_bytes,
            driver: device.driver.clone(),
            tool_version: tool.version.clone(),
            quick: run.quick,
            complete: run.complete,
            results: results.len() as u64,
            measured: measured.count() as u64,
            bytes: bytes as u64,
        }
    }
}
