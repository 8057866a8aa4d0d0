//! Reads profiler tables: PyTorch's own, and others that list operations with their shares of host and device time.

use super::{HotSpot, Op, Profile, Work};
use crate::amount::{amount, number, unit};
use crate::evidence::{Evidence, Piece};
use crate::text::{cells, is_rule};

/// Content of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Name,
    HostShare,
    HostTime,
    DeviceShare,
    DeviceTime,
    DeviceMemory,
    Other,
}

/// State of a table that is being read.
struct Open {
    line: usize,
    columns: Vec<Column>,
    rows: Vec<Row>,
    host_total: Option<f64>,
    device_total: Option<f64>,
}

#[derive(Default)]
struct Row {
    name: String,
    host: Option<f64>,
    device: Option<f64>,
    host_seconds: f64,
    device_seconds: f64,
    memory: Option<u64>,
}

/// Largest number of rows read from one table.
const MOST_ROWS: usize = 20_000;

/// Finds every table in a text.
pub fn find(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut open: Option<Open> = None;
    for (i, line) in text.lines().enumerate() {
        if let Some(columns) = head(line) {
            close(&mut open, &mut pieces);
            open = Some(Open {
                line: i + 1,
                columns,
                rows: Vec::new(),
                host_total: None,
                device_total: None,
            });
        } else if let Some(table) = &mut open {
            table.take(line);
        }
    }
    close(&mut open, &mut pieces);
    pieces
}

fn close(open: &mut Option<Open>, pieces: &mut Vec<Piece>) {
    let Some(table) = open.take().filter(|table| !table.rows.is_empty()) else {
        return;
    };
    if pieces.len() < 16 {
        pieces.push(Piece {
            line: table.line,
            evidence: Evidence::Profile(table.profile()),
        });
    }
}

fn head(line: &str) -> Option<Vec<Column>> {
    let lower = line.to_ascii_lowercase();
    let names = ["name", "operator", "operation", "op", "kernel"];
    let known = lower.contains("cpu") || lower.contains("cuda") || lower.contains("gpu");
    if !known || !names.iter().any(|name| lower.contains(name)) || line.len() > 4000 {
        return None;
    }
    let titles = cells(&lower);
    let named = titles.first().is_some_and(|title| names.contains(title));
    let columns: Vec<Column> = titles.iter().map(|title| column(title)).collect();
    let shares = |c: &Column| !matches!(c, Column::Other | Column::Name);
    (named && columns.iter().any(shares)).then_some(columns)
}

fn column(title: &str) -> Column {
    let host = title.contains("cpu");
    let device = ["cuda", "gpu", "xpu", "device", "hip"]
        .iter()
        .any(|word| title.contains(word));
    let share = title.contains('%') || title.contains("percent");
    match title {
        "name" | "operator" | "operation" | "op" | "kernel" => Column::Name,
        _ if title.contains("mem") => match device && title.contains("self") {
            true => Column::DeviceMemory,
            false => Column::Other,
        },
        _ if title.contains("avg") => Column::Other,
        _ if host && share => Column::HostShare,
        _ if host => Column::HostTime,
        _ if device && share => Column::DeviceShare,
        _ if device => Column::DeviceTime,
        _ => Column::Other,
    }
}

impl Open {
    fn take(&mut self, line: &str) {
        if let Some((name, rest)) = line.split_once(" time total:") {
            let total = seconds(rest.trim());
            match name.contains("CPU") {
                true => self.host_total = total,
                false => self.device_total = total,
            }
        } else if !is_rule(line) && self.rows.len() < MOST_ROWS {
            self.rows.extend(self.row(line));
        }
    }

    fn row(&self, line: &str) -> Option<Row> {
        let mut cells = cells(line);
        if cells.len() != self.columns.len() {
            cells = by_words(line, self.columns.len())?;
        }
        let mut row = Row::default();
        for (cell, column) in cells.iter().zip(&self.columns) {
            let percent = || number(cell.trim_end_matches('%').trim()).map(|(value, ..)| value / 100.0);
            match column {
                Column::Name => row.name = cell.chars().take(200).collect(),
                // Of `Self CPU %` and `CPU total %` only the first counts, so that nested operations count once.
                Column::HostShare => row.host = row.host.or_else(percent),
                Column::DeviceShare => row.device = row.device.or_else(percent),
                Column::HostTime if row.host_seconds == 0.0 => row.host_seconds = seconds(cell).unwrap_or(0.0),
                Column::DeviceTime if row.device_seconds == 0.0 => row.device_seconds = seconds(cell).unwrap_or(0.0),
                // A column titled `CUDA` may also hold percentages.
                Column::DeviceMemory => row.memory = bytes(cell),
                _ => {}
            }
            if cell.ends_with('%') {
                match column {
                    Column::HostTime => row.host = row.host.or_else(percent),
                    Column::DeviceTime => row.device = row.device.or_else(percent),
                    _ => {}
                }
            }
        }
        let tells = row.host.is_some() || row.device.is_some() || row.host_seconds + row.device_seconds > 0.0;
        (tells && !row.name.is_empty()).then_some(row)
    }

    fn profile(mut self) -> Profile {
        let sum = |of: fn(&Row) -> f64| self.rows.iter().map(of).sum::<f64>();
        let host_total = self.host_total.unwrap_or_else(|| sum(|row| row.host_seconds));
        let device_total = self.device_total.unwrap_or_else(|| sum(|row| row.device_seconds));
        for row in &mut self.rows {
            let share = |seconds: f64, total: f64| (total > 0.0).then_some(seconds / total);
            row.host = row.host.or_else(|| share(row.host_seconds, host_total));
            row.device = row.device.or_else(|| share(row.device_seconds, device_total));
        }
        let hot_spots = self.rows.iter().filter_map(|row| {
            Some(HotSpot {
                name: row.name.clone(),
                bytes: vramscope_engine::units::Bytes::new(row.memory.filter(|&bytes| bytes > 0)?),
            })
        });
        let mut profile = Profile {
            hot_spots: hot_spots.collect(),
            busy: match (self.host_total, self.device_total) {
                (Some(host), Some(device)) if host > 0.0 => Some((device / host).min(1.0)),
                _ => None,
            },
            memory: Vec::new(),
            ops: Vec::new(),
        };
        profile.ops = self
            .rows
            .into_iter()
            .map(|row| Op {
                work: Work::of(&row.name),
                name: row.name,
                host: row.host.map(|share| share.min(1.0)),
                device: row.device.map(|share| share.min(1.0)),
            })
            .collect();
        profile.sort();
        profile
    }
}

/// Splits a line with single blanks between cells: the last words are columns, all words before them the name.
fn by_words(line: &str, columns: usize) -> Option<Vec<&str>> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let first = words
        .len()
        .checked_sub(columns.checked_sub(1)?)
        .filter(|&first| first > 0)?;
    let is_value = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    if !words[first..].iter().all(is_value) {
        return None;
    }
    let name_end = words[first - 1].as_ptr() as usize - line.as_ptr() as usize + words[first - 1].len();
    let mut cells = vec![line[..name_end].trim()];
    cells.extend(&words[first..]);
    Some(cells)
}

/// Parses times such as `1.234ms`, `12.000us`, `3.1s` into seconds.
fn seconds(cell: &str) -> Option<f64> {
    let (value, _, len) = number(cell)?;
    let scale = match cell[len..].trim() {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" | "μs" | "µs" => 1e-6,
        "ns" => 1e-9,
        _ => return None,
    };
    Some(value * scale)
}

/// Parses a memory cell. Older versions write `1.50 Gb` and mean bytes, not bits.
fn bytes(cell: &str) -> Option<u64> {
    let (value, decimals, len) = number(cell)?;
    let scale = unit(&cell[len..].trim().replace('b', "B"))?;
    Some(amount(value, decimals, scale)?.bytes.get())
}
