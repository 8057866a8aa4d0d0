//! Header of a recording, its first line: the run, the machine and the card.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::RecordingError;
use super::limits::MOST_SMS;
use super::settings;
use crate::device::ComputeCapability;
use crate::tape::Gpu;

/// Content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// The steps of one run.
    Recording,
    /// Steps at all sizes.
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

/// Supported version of the format.
const VERSION: u64 = 1;

/// Header of a recording.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct Header {
    /// Version of the recorder.
    #[serde(default)]
    pub recorder: String,
    /// Versions of Python and of libraries.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// Emulated card.
    pub gpu: Card,
    /// PyTorch's settings.
    #[serde(default, skip_serializing)]
    pub(super) settings: Settings,
    /// Rank of this process.
    #[serde(default)]
    pub rank: u64,
    /// Number of processes that train together.
    #[serde(default = "one")]
    pub world: u64,
    /// Script and its arguments, if one was run.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// Names of the sizes that vary, if the recording covers all sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// Arguments of `--vary` that name the sizes, such as `batch=--batch-size:1,2,4`, if the recorder provides them.
    #[serde(default, skip_serializing)]
    pub(super) vary: Vec<String>,
    #[serde(skip_serializing)]
    format: String,
}

/// Emulated card.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct Card {
    /// Name that the driver gives the card.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: [u32; 2],
    /// Memory in bytes.
    pub memory: u64,
    /// Number of streaming multiprocessors.
    pub sms: u64,
}

/// Settings that determine the memory that the allocator and libraries take.
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

/// Type, format and version of a line, which identify a header.
#[derive(Deserialize)]
struct Kind {
    t: String,
    format: String,
    version: Value,
}

impl Header {
    /// Parses the first line.
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

    /// Returns true if the allocator's segments could grow (`expandable_segments`) when the recording began.
    pub fn expandable_segments(&self) -> bool {
        settings::options(&self.settings.alloc_conf).is_ok_and(|options| options.expandable_segments)
    }

    /// Returns the properties of the card.
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
