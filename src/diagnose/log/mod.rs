//! Reads memory from training logs: plain lines, Hugging Face's dictionaries, Lightning, tqdm, and any other `key:
//! value` lines.

mod line;
mod merge;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::evidence::{Evidence, Piece};
use vramscope_engine::units::Bytes;

/// Memory over the steps of a run, as a log reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TrainingLog {
    /// One series for each key, the one with the most readings first.
    pub series: Vec<Series>,
    /// Memory of the device in bytes, if the log writes it, as in `18.2/24.0 GB`.
    pub total: Option<Bytes>,
}

/// Readings under one key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Series {
    /// The key in lower case; empty if amounts have no key.
    pub key: String,
    /// True if the log has no unit, so that it was guessed from the magnitude.
    pub is_unit_guessed: bool,
    /// Readings in the order of the log.
    pub points: Vec<Point>,
}

/// One reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Number of the step, or of the reading if the log names no steps.
    pub step: u64,
    /// Memory in bytes.
    pub bytes: Bytes,
    /// Length of the sample, if the line reports it.
    pub length: Option<u64>,
}

/// Largest number of keys; no log reports memory under more.
const MOST_SERIES: usize = 32;
/// Largest number of readings. A longer series is halved by dropping every second reading, repeatedly.
const MOST_POINTS: usize = 100_000;

/// Reads the log in a text as one piece of evidence.
pub(super) fn find(text: &str) -> Option<Piece> {
    let mut log = TrainingLog::default();
    let mut wordings = merge::Wordings::default();
    let mut begin = None;
    for (i, line) in text.lines().enumerate() {
        let Some(read) = line::read(line) else { continue };
        begin = begin.or(Some(i + 1));
        log.total = log.total.or(read.total);
        let keys: Vec<usize> = read
            .memory
            .into_iter()
            .filter_map(|reading| log.put(reading, read.step, read.length))
            .collect();
        wordings.record(i + 1, &keys, read.step);
    }
    log.series = wordings.merge(log.series);
    log.series
        .retain(|series| series.points.len() > 1 || series.key.contains("mem"));
    log.series
        .sort_by_key(|series| (std::cmp::Reverse(series.points.len()), series.rank()));
    (!log.series.is_empty()).then_some(Piece {
        line: begin?,
        evidence: Evidence::Log(log),
    })
}

impl TrainingLog {
    /// Adds a reading to its series and returns the index of the series; `None` if there are too many series.
    fn put(&mut self, reading: line::Reading, step: Option<u64>, length: Option<u64>) -> Option<usize> {
        let known = self.series.iter().position(|series| series.key == reading.key);
        let at = match known {
            Some(at) => at,
            None if self.series.len() == MOST_SERIES => return None,
            None => {
                self.series.push(Series {
                    key: reading.key,
                    is_unit_guessed: reading.is_unit_guessed,
                    points: Vec::new(),
                });
                self.series.len() - 1
            }
        };
        let points = &mut self.series[at].points;
        if points.len() == MOST_POINTS {
            let mut i = 0;
            points.retain(|_| {
                i += 1;
                i % 2 == 1
            });
        }
        let next = points.last().map_or(1, |last| last.step.saturating_add(1));
        points.push(Point {
            step: step.unwrap_or(next),
            bytes: reading.bytes,
            length,
        });
        Some(at)
    }
}

impl Series {
    /// Ranks a key by how much it says: allocated memory says most (0), a peak that only rises says least (2).
    fn rank(&self) -> u8 {
        match self.key.as_str() {
            key if key.contains("max") || key.contains("peak") => 2,
            key if key.contains("reserved") || key.contains("cached") => 1,
            _ => 0,
        }
    }
}
