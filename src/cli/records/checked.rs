//! Validates records and computes their IDs.

use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};
use vramscope_benchmark::{Entry, Record, unknown_fields};

/// A valid record.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// SHA-256 of the record's canonical JSON (RFC 8785), in hexadecimal: the same measurement has the same ID, however
    /// its text is formatted.
    pub id: String,
    /// The record as compact JSON, exactly as it is sent and stored.
    pub text: String,
    /// The record.
    pub record: Record,
}

/// Reason why a text is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub enum Refused {
    /// The text is not JSON, or nested more deeply than any record.
    NotJson(String),
    /// The JSON is not a record of a version that this program reads.
    NoRecord(String),
}

impl Checked {
    /// Parses a record and validates it against the published schema. Fields that this version does not know are
    /// refused rather than dropped: they may be measurements, or personal data.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn read(text: &[u8]) -> Result<Self, Refused> {
        let text = std::str::from_utf8(text).map_err(|error| Refused::NotJson(format!("not UTF-8: {error}")))?;
        let record = Record::read(text).map_err(|error| error.to_string());
        let record = record.and_then(|record| match record.results.is_empty() {
            true => Err("the record has no results".to_owned()),
            false => Ok(record),
        });
        let record = record.map_err(|error| match serde_json::from_str::<IgnoredAny>(text) {
            // Older records may be lines rather than one JSON document, and are accepted too.
            Err(syntax) => Refused::NotJson(format!("not JSON: {syntax}")),
            Ok(_) => Refused::NoRecord(error),
        })?;
        refuse_unknown(text, &record)?;
        refuse_ambiguous(&record)?;
        Self::of(record)
    }

    /// Validates a record that was created in this program.
    ///
    /// # Errors
    /// If it contains a number that JSON cannot represent.
    pub fn of(record: Record) -> Result<Self, Refused> {
        let no_form = |error: serde_json::Error| Refused::NoRecord(format!("the record has no JSON form: {error}"));
        let canonical = serde_json_canonicalizer::to_vec(&record).map_err(no_form)?;
        Ok(Self {
            id: hex(&Sha256::digest(&canonical)),
            text: serde_json::to_string(&record).map_err(no_form)?,
            record,
        })
    }

    /// Description of the record for lists.
    pub fn entry(&self) -> Entry {
        Entry::of(&self.id, &self.record, self.text.len())
    }
}

/// Largest number of unknown fields named in an error.
const NAMED: usize = 5;

fn refuse_unknown(text: &str, record: &Record) -> Result<(), Refused> {
    // Unversioned records have different field names throughout.
    if !text.contains("\"schema_version\"") {
        return Ok(());
    }
    let unknown = unknown_fields(text, record);
    if unknown.is_empty() {
        return Ok(());
    }
    let named = unknown[..unknown.len().min(NAMED)].join(", ");
    let more = match unknown.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    Err(Refused::NoRecord(format!(
        "the record has fields that this version of vramscope does not know: {named}{more}; \
         update it, or take them out"
    )))
}

/// Refuses values that readers may interpret differently: control characters, which can control the terminal that
/// displays a text, and integers beyond JSON's interoperable range (RFC 7493, section 2.2).
fn refuse_ambiguous(record: &Record) -> Result<(), Refused> {
    let value = serde_json::to_value(record).unwrap_or_default();
    match ambiguous(&value) {
        None => Ok(()),
        Some(why) => Err(Refused::NoRecord(format!("the record holds {why}"))),
    }
}

fn ambiguous(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::String(text) if text.chars().any(char::is_control) => {
            Some(format!("a control character: {text:?}"))
        }
        serde_json::Value::Number(number) => {
            let whole = number.as_u64()?;
            (whole as f64 as u64 != whole).then(|| format!("{whole}, which no 64-bit float is"))
        }
        serde_json::Value::Array(items) => items.iter().find_map(ambiguous),
        serde_json::Value::Object(fields) => fields.values().find_map(ambiguous),
        _ => None,
    }
}

/// Formats bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        use std::fmt::Write;
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../../../tests/data/records/example.json");

    fn read(text: &str) -> Result<Checked, Refused> {
        Checked::read(text.as_bytes())
    }

    #[test]
    fn the_id_is_of_the_content_and_not_of_its_layout() {
        let example = read(EXAMPLE).expect("a record");
        let value: serde_json::Value = serde_json::from_str(EXAMPLE).expect("JSON");
        let mut reversed = serde_json::Map::new();
        let fields: Vec<_> = value.as_object().expect("an object").iter().collect();
        reversed.extend(
            fields
                .into_iter()
                .rev()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        let again = read(&serde_json::to_string(&reversed).expect("JSON")).expect("a record");
        assert_eq!(example.id, again.id);
        assert_eq!(read(&example.text).expect("a record"), example);
        assert_ne!(
            example.id,
            read(&EXAMPLE.replace("1391000", "1391001")).expect("a record").id
        );
    }

    #[test]
    fn what_is_refused_says_why() {
        let hosted = EXAMPLE.replacen("\"tool\"", "\"hostname\": \"alice-laptop\", \"tool\"", 1);
        let cases = [
            ("{", "not JSON"),
            ("{}", "`variant` is missing"),
            ("", "not JSON"),
            ("{\"attention\": []}", "no results"),
            (&hosted, "does not know: hostname;"),
            (&EXAMPLE.replace("NVIDIA H200", "\\u001b[2J"), "control character"),
            (
                &EXAMPLE.replace("\"schema_version\": 1", "\"schema_version\": 9"),
                "schema_version 9",
            ),
            (&EXAMPLE.replace("566231040", "9007199254740993"), "no 64-bit float"),
            (&"[".repeat(100_000), "not JSON"),
        ];
        for (text, why) in cases {
            let error = read(text).expect_err(why).to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(matches!(Checked::read(b"\xff{}"), Err(Refused::NotJson(_))));
    }

    proptest::proptest! {
        #[test]
        fn a_damaged_record_is_read_or_refused(
            damages in proptest::collection::vec((0..EXAMPLE.len(), proptest::prelude::any::<u8>()), 0..8),
        ) {
            let mut bytes = EXAMPLE.as_bytes().to_vec();
            for (place, byte) in damages {
                bytes[place] = byte;
            }
            if let Ok(checked) = Checked::read(&bytes) {
                proptest::prop_assert_eq!(&read(&checked.text).expect("what was written is read").id, &checked.id);
            }
        }
    }
}
