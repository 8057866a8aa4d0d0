//! The measured host: what its processor takes to issue work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the host's processor takes for probes, small programs that are the same on every host.
///
/// An operation takes longer in a real model than in a probe, so a probe counts as a ratio to the same probe on a host
/// whose models were timed too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Host {
    /// As the operating system names the processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Software whose operations were timed, such as `PyTorch 2.11.0`; absent where there was none, and the processor
    /// alone was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub software: Option<String>,
    /// Reason for which no software was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Microseconds of each probe.
    pub us: BTreeMap<String, f64>,
}

impl Host {
    /// Name of the probe that this program runs by itself, where there is no PyTorch.
    pub const PROCESSOR: &'static str = "processor";
}
