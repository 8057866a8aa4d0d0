//! Reads the table that `torch.cuda.memory_summary()` prints (`torch/cuda/memory.py`).

use super::{Counters, Gauge};
use crate::amount::{Amount, leading, number};
use crate::evidence::{Evidence, Piece};
use crate::text::cells;

/// Finds every table in a text.
pub fn find(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut open: Option<(usize, Counters)> = None;
    for (i, line) in text.lines().enumerate() {
        if line.contains("memory summary") && line.contains("device") {
            close(&mut open, &mut pieces);
            let counters = Counters {
                device: device(line),
                ..Counters::default()
            };
            open = Some((i + 1, counters));
            continue;
        }
        // The top of the table is missing, as in many pastes.
        if open.is_none() && line.contains("Cur Usage") && line.contains("Peak Usage") {
            open = Some((i + 1, Counters::default()));
        }
        if let Some((_, counters)) = &mut open {
            row(line, counters);
        }
    }
    close(&mut open, &mut pieces);
    pieces
}

fn close(open: &mut Option<(usize, Counters)>, pieces: &mut Vec<Piece>) {
    if let Some((line, counters)) = open.take().filter(|(_, counters)| counters.tells_anything()) {
        pieces.push(Piece {
            line,
            evidence: Evidence::Counters(counters),
        });
    }
}

fn device(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once("device ID")?;
    let rest = rest.trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest[..digits].parse().ok()
}

fn row(line: &str, counters: &mut Counters) {
    let cells = cells(line);
    for cell in &cells {
        put(&mut counters.ooms, cell, "OOMs:");
        put(&mut counters.retries, cell, "retries:");
    }
    let gauge = match cells.first() {
        Some(&"Allocated memory") => &mut counters.allocated,
        Some(&"GPU reserved memory") => &mut counters.reserved,
        Some(&"Active memory") => &mut counters.active,
        Some(&"Requested memory") => &mut counters.requested,
        Some(&"Non-releasable memory") => &mut counters.unreleasable,
        _ => return,
    };
    let column = |i: usize| cells.get(i).and_then(|cell| bytes(cell));
    // Only the first device's rows count: a table of another device begins with its own header.
    if gauge.current.is_none() {
        *gauge = Gauge {
            current: column(1),
            peak: column(2),
        };
    }
}

fn put(count: &mut Option<u64>, cell: &str, name: &str) {
    if let Some((_, rest)) = cell.split_once(name) {
        let value = number(rest.trim_start()).map(|(value, ..)| value as u64);
        *count = count.or(value);
    }
}

/// Parses a cell. `_format_size` truncates to whole units, so the error is just under one unit, not half of one.
fn bytes(cell: &str) -> Option<Amount> {
    let (amount, _) = leading(cell)?;
    let amount = amount?;
    Some(Amount {
        error: amount.error + amount.error,
        ..amount
    })
}
