//! Reads `nvidia-smi --query-gpu=… --format=csv[,noheader][,nounits]` with its columns in any order, and similar tables
//! that other programs write.

use super::{Sample, Smi};
use crate::amount::{amount, leading, number, unit};
use crate::evidence::{Evidence, Piece};
use vramscope_engine::units::Bytes;

/// Content of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Index,
    Name,
    /// Memory; the value is the unit in bytes for cells that have none.
    Used(u64),
    Total(u64),
    Free(u64),
    Utilization,
    Other,
}

/// Reads all rows of a text as one piece of evidence.
pub fn find(text: &str) -> Option<Piece> {
    let mut smi = Smi::default();
    let mut columns: Option<Vec<Column>> = None;
    let mut begin = None;
    for (i, line) in text.lines().enumerate() {
        if !line.contains(',') {
            continue;
        }
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if let Some(head) = head(&cells) {
            columns = Some(head);
            begin = begin.or(Some(i + 1));
        } else if let Some(columns) = &columns {
            row(&cells, columns, &mut smi);
        } else if let Some(found) = headless(&cells) {
            begin = begin.or(Some(i + 1));
            row(&cells, &found, &mut smi);
        }
    }
    let line = begin.filter(|_| smi.tells_anything())?;
    Some(Piece {
        line,
        evidence: Evidence::Smi(smi),
    })
}

/// The columns of a header line, which names memory columns and contains no numbers.
fn head(cells: &[&str]) -> Option<Vec<Column>> {
    let columns: Vec<Column> = cells.iter().map(|cell| column(cell)).collect();
    let of_memory = |c: &&Column| matches!(c, Column::Used(_) | Column::Free(_) | Column::Utilization);
    let is_head = columns.iter().any(|c| of_memory(&c)) && cells.iter().all(|cell| number(cell).is_none());
    is_head.then_some(columns)
}

fn column(cell: &str) -> Column {
    let lower = cell.to_ascii_lowercase();
    let (name, in_unit) = match lower.split_once(['[', '(']) {
        Some((name, rest)) => (name.trim(), rest.trim_end_matches([']', ')'])),
        None => (lower.as_str(), name_unit(&lower)),
    };
    let scale = unit(in_unit).map_or(1 << 20, |bytes| bytes as u64);
    let has = |word: &str| name.contains(word);
    match name {
        "index" | "gpu" | "gpu_id" | "gpu_index" => Column::Index,
        "name" | "gpu_name" => Column::Name,
        // `utilization.memory` is the fraction of the time in which memory was read or written, not an amount.
        _ if has("utilization") || has("util") => match has("mem") {
            true => Column::Other,
            false => Column::Utilization,
        },
        _ if !has("mem") => Column::Other,
        _ if has("used") || has("allocated") => Column::Used(scale),
        _ if has("total") => Column::Total(scale),
        _ if has("free") => Column::Free(scale),
        _ => Column::Other,
    }
}

/// The unit at the end of a column name such as `memory_used_mb`.
fn name_unit(name: &str) -> &str {
    name.rsplit(['_', '.', ' ']).next().unwrap_or_default()
}

/// Columns of a row without a header: two amounts in MiB are used and total memory, the larger one total.
fn headless(cells: &[&str]) -> Option<Vec<Column>> {
    let amounts: Vec<Option<u64>> = cells
        .iter()
        .map(|cell| Some(leading(cell)?.0?.bytes.get()).filter(|_| cell.ends_with("MiB")))
        .collect();
    let known: Vec<u64> = amounts.iter().copied().flatten().collect();
    let total = *known.iter().max()?;
    if known.len() < 2 {
        return None;
    }
    let mut used_seen = false;
    let columns = cells.iter().zip(amounts).map(|(cell, amount)| match amount {
        Some(bytes) if bytes == total => Column::Total(1 << 20),
        Some(_) if !used_seen => {
            used_seen = true;
            Column::Used(1 << 20)
        }
        None if cell.ends_with('%') => Column::Utilization,
        _ => Column::Other,
    });
    Some(columns.collect())
}

fn row(cells: &[&str], columns: &[Column], smi: &mut Smi) {
    if cells.len() != columns.len() {
        return;
    }
    let cell = |wanted: fn(&Column) -> bool| {
        let at = columns.iter().position(wanted)?;
        Some((cells[at], columns[at]))
    };
    let memory = |wanted: fn(&Column) -> bool| cell(wanted).and_then(|(cell, column)| bytes(cell, column));
    let used = memory(|c| matches!(c, Column::Used(_)));
    let total = memory(|c| matches!(c, Column::Total(_)));
    let free = memory(|c| matches!(c, Column::Free(_)));
    let total = total.or_else(|| Some(used? + free?));
    let sample = Sample {
        used: used.or_else(|| Some(total?.saturating_sub(free?))),
        utilization: cell(|c| *c == Column::Utilization)
            .and_then(|(cell, _)| number(cell))
            .map(|(percent, ..)| percent / 100.0)
            .filter(|share| *share <= 1.0),
    };
    if sample == Sample::default() {
        return;
    }
    let index = cell(|c| *c == Column::Index).and_then(|(cell, _)| cell.parse().ok());
    let Some(device) = smi.device(index.unwrap_or(0)) else {
        return;
    };
    if device.name.is_none() {
        device.name = cell(|c| *c == Column::Name).map(|(name, _)| name.to_string());
    }
    device.total = total.or(device.total);
    device.push(sample);
}

/// Bytes of a cell, in its own unit or else its column's.
fn bytes(cell: &str, column: Column) -> Option<Bytes> {
    if let Some((found, _)) = leading(cell) {
        return found.map(|amount| amount.bytes);
    }
    let (Column::Used(scale) | Column::Total(scale) | Column::Free(scale)) = column else {
        return None;
    };
    let (value, decimals, len) = number(cell)?;
    // Reject `[N/A]`, which is not a number, and `12:30`, which is not an amount.
    let whole = len == cell.len();
    Some(amount(value, decimals, scale as f64).filter(|_| whole)?.bytes)
}
