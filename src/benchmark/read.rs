//! Parses and checks the text of a record.

use serde::Deserialize;

use super::{Outcome, Record, SCHEMA_VERSION, older};

/// Error for a text that is not a record; it says what was found, where, and what is expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(pub String);

/// The field of a record that states its version.
#[derive(Deserialize)]
struct Versioned {
    schema_version: Option<u32>,
}

impl Record {
    /// Parses a record of this version or an older one.
    ///
    /// Unversioned records are `{"attention": [{"variant": "flash", "length": 2048, "ms": 0.33, "peak_extra_bytes":
    /// 33818624}, …]}`, or one such entry per line.
    ///
    /// # Errors
    /// If the text is none of these, has a newer version, or a result lacks a required field; the message names the
    /// result.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        match serde_json::from_str::<Versioned>(text) {
            Ok(Versioned {
                schema_version: Some(version),
            }) => current(text, version),
            _ => older::read(text),
        }
    }
}

fn current(text: &str, version: u32) -> Result<Record, ReadError> {
    if version == 0 || version > SCHEMA_VERSION {
        return Err(ReadError(format!(
            "the record has schema_version {version}; this program reads up to {SCHEMA_VERSION}: update it"
        )));
    }
    let record: Record =
        serde_json::from_str(text).map_err(|e| ReadError(format!("the record is not as it should be: {e}")))?;
    let probes = record.host.iter().flat_map(|host| &host.us);
    if let Some((name, us)) = probes.into_iter().find(|(_, us)| !us.is_finite() || **us < 0.0) {
        return Err(ReadError(format!(
            "the host's probe `{name}` is {us}, which is no time"
        )));
    }
    for (i, result) in record.results.iter().enumerate() {
        if let Some(name) = result.kernel.missing() {
            let class = result.kernel.class.name();
            return Err(ReadError(format!(
                "result {} is a {class} and does not state its `{name}`",
                i + 1
            )));
        }
        if let Outcome::Measured(measured) = &result.outcome
            && measured.check.as_ref().is_some_and(|check| !check.passed)
        {
            return Err(ReadError(format!(
                "result {} has times although its check failed",
                i + 1
            )));
        }
    }
    Ok(record)
}
