use serde::{Deserialize, Serialize};

use super::{Outcome, Record};

/// A record in short: a line of `GET /api/records`, and of the list that `vramscope export` writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The record's id: the SHA-256 of its canonical JSON (RFC 8785), in hexadecimal.
    pub id: String,
    /// When the run began, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The card, as its driver names it.
    pub device: String,
    /// How it was reached.
    pub backend: String,
    /// CUDA's compute capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
    /// Memory, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The driver's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The version of vramscope that measured.
    pub tool_version: String,
    /// A short run.
    pub quick: bool,
    /// Every kernel has a result.
    pub complete: bool,
    /// Kernels with a result of any kind.
    pub results: u64,
    /// Kernels with times.
    pub measured: u64,
    /// Size of the record, in bytes.
    pub bytes: u64,
}

/// A list of records, newest first: the answer to `GET /api/records`, and the file `records.json` of a
/// folder that `vramscope export` wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// The records.
    pub records: Vec<Entry>,
    /// To be given as `before` for those that follow; `None` where none do.
    pub next: Option<i64>,
}

impl Entry {
    /// Of a record with this id, whose text has so many bytes.
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
