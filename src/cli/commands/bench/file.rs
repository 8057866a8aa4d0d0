//! Reads and writes records as files, replacing them atomically.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use vramscope_benchmark::{Record, unknown_fields};

use crate::failure::Failure;

/// Reads a record of this version or an older one.
///
/// # Errors
/// If the file cannot be read or is not a record.
pub fn read(path: &Path) -> Result<Record, Failure> {
    let text = fs::read_to_string(path).map_err(|e| Failure::Input(format!("cannot read {}: {e}", path.display())))?;
    let record = Record::read(&text).map_err(|e| Failure::Input(format!("{}: {e}", path.display())))?;
    let unknown = unknown_fields(&text, &record);
    // Unversioned records have different fields throughout: all of them would be named.
    if let Some(first) = unknown.first()
        && text.contains("schema_version")
    {
        let more = unknown.len() - 1;
        anstream::eprintln!(
            "note: {} holds fields that this version does not know: {first}{}",
            path.display(),
            if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            }
        );
    }
    Ok(record)
}

/// Replaces a file by a record atomically: an interruption or a full disk leaves the old file.
///
/// # Errors
/// The system's message, and what remains intact.
pub fn write(path: &Path, record: &Record) -> Result<(), Failure> {
    let text = lines(record).map_err(|e| Failure::Broken(e.to_string()))?;
    let beside = beside(path);
    let written = fs::File::create(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&beside, path)).map_err(|e| {
        // Remove the incomplete file; it contains nothing useful.
        drop(fs::remove_file(&beside));
        let kept = match path.exists() {
            true => format!(
                "; it still holds the results before this one: make room, then `--resume {}`",
                path.display()
            ),
            false => "; choose another place with --output".into(),
        };
        Failure::Broken(format!("cannot write {}: {e}{kept}", path.display()))
    })
}

/// Formats JSON with one line for each part and for each result: compact, but readable.
fn lines(record: &Record) -> serde_json::Result<String> {
    let Value::Object(parts) = serde_json::to_value(record)? else {
        return serde_json::to_string(record);
    };
    let line = |value: &Value| serde_json::to_string(value);
    let part = |(name, value): (&String, &Value)| match (name.as_str(), value) {
        ("results", Value::Array(results)) if !results.is_empty() => {
            let results: Vec<String> = results.iter().map(line).collect::<Result<_, _>>()?;
            Ok(format!("\"results\": [\n{}\n]", results.join(",\n")))
        }
        _ => Ok(format!("\"{name}\": {}", line(value)?)),
    };
    let parts: Vec<String> = parts.iter().map(part).collect::<serde_json::Result<_>>()?;
    Ok(format!("{{\n{}\n}}\n", parts.join(",\n")))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    path.with_file_name(name)
}

/// Current time in UTC, such as `2026-11-20T15:04:05Z`.
pub fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let [year, month, day] = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a number of days since 1970-01-01 (H. Hinnant, "chrono-compatible low-level date algorithms",
/// `civil_from_days`).
fn civil(days: u64) -> [u64; 3] {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    [year_of_era + era * 400 + u64::from(month <= 2), month, day]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_record_is_the_record() {
        let example = include_str!("../../../../tests/data/records/example.json");
        let record = Record::read(example).expect("the example is a record");
        let written = lines(&record).expect("it is JSON");
        assert_eq!(Record::read(&written).expect("what was written is a record"), record);
        assert!(written.lines().count() > record.results.len());
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), [1970, 1, 1]);
        assert_eq!(civil(11_016), [2000, 2, 29]);
        assert_eq!(civil(20_777), [2026, 11, 20]);
    }
}
