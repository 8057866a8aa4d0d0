//! State of the card around a run.

use serde::{Deserialize, Serialize};

/// The state of the card around a run, and what may have disturbed it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Conditions {
    /// Just before the first kernel, with the card warm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Reading>,
    /// Just after the last kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Reading>,
    /// Processes of others that held the card, counted; nothing else of them is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_processes: Option<u32>,
    /// Bytes of the card's memory that were taken before the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_bytes: Option<u64>,
    /// What a reader should know before trusting the times: drifting clocks, a shared card.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What the driver reports at one moment; what it does not tell is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reading {
    /// Temperature of the card, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<u32>,
    /// Clock of the multiprocessors, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_clock_mhz: Option<u32>,
    /// Clock of the memory, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_clock_mhz: Option<u32>,
    /// Power drawn, in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
}
