//! The first line: what was recorded, where, and for which card.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::RecordingError;
use super::limits::MOST_SMS;
use crate::device::ComputeCapability;
use crate::tape::Gpu;

/// Content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// The steps of one run.
    Recording,
    /// Those of all sizes.
    Sizes,
}

impl Format {
    fn named(name: &str) -> Option<Self> {
        match name {
            "vramscope-recording" => Some(Self::Recording),
            "vramscope-sizes" => Some(Self::Sizes),
            _ => None,
        }
    }
}

/// The version that is read.
const VERSION: u64 = 1;

/// Facts that a recording states about itself.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct Header {
    /// Version of the recorder.
    #[serde(default)]
    pub recorder: String,
    /// Versions of Python and of libraries.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// The card that was emulated.
    pub gpu: Card,
    /// PyTorch's settings.
    #[serde(default, skip_serializing)]
    pub(super) settings: Settings,
    /// Number of this process among all.
    #[serde(default)]
    pub rank: u64,
    /// Processes that train together.
    #[serde(default = "one")]
    pub world: u64,
    /// The script and its arguments, where one was run.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// Names of what varies, where all sizes are told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// Words that name them to `--vary`, such as `batch=--batch-size:1,2,4`, where the recorder tells.
    #[serde(default, skip_serializing)]
    pub(super) vary: Vec<String>,
    #[serde(skip_serializing)]
    format: String,
}

/// The card that was emulated.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct Card {
    /// The driver's name for it.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: [u32; 2],
    /// Bytes of memory.
    pub memory: u64,
    /// Streaming multiprocessors.
    pub sms: u64,
}

/// Settings that decide what the allocator or libraries take.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Settings {
    pub alloc_conf: String,
    pub cublas_workspace: String,
    pub cublaslt_workspace: String,
}

const fn one() -> u64 {
    1
}

/// Fields that identify a header and its version.
#[derive(Deserialize)]
struct Kind {
    t: String,
    format: String,
    version: Value,
}

impl Header {
    /// Reads the first line.
    pub(super) fn read(line: &str) -> Result<Self, RecordingError> {
        let kind: Kind = serde_json::from_str(line).map_err(|_| RecordingError::NotARecording)?;
        if kind.t != "header" || Format::named(&kind.format).is_none() {
            return Err(RecordingError::NotARecording);
        }
        if kind.version.as_u64() != Some(VERSION) {
            return Err(RecordingError::Version(
                kind.version.to_string().chars().take(20).collect(),
            ));
        }
        let header: Self = serde_json::from_str(line).map_err(|error| RecordingError::Line {
            number: 1,
            why: format!("is not as the format says: {error}"),
        })?;
        let [major, minor] = header.gpu.capability;
        let possible = (1..=MOST_SMS).contains(&header.gpu.sms) && (5..100).contains(&major) && minor < 10;
        if !possible || header.world == 0 {
            return Err(RecordingError::Line {
                number: 1,
                why: "describes a card that cannot be".into(),
            });
        }
        Ok(header)
    }

    /// Returns the content of the file.
    pub(super) fn format(&self) -> Result<Format, RecordingError> {
        Format::named(&self.format).ok_or(RecordingError::NotARecording)
    }

    /// The shape of the card.
    pub fn gpu(&self) -> Gpu {
        let [major, minor] = self.gpu.capability;
        let capability = ComputeCapability {
            major: major as u8,
            minor: minor as u8,
        };
        Gpu {
            sms: self.gpu.sms,
            threads_per_sm: capability.max_threads_per_multiprocessor(),
            capability: (major, minor),
        }
    }
}
