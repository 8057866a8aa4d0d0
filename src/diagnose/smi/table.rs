//! Reads the table of `nvidia-smi`, printed once or repeatedly (`nvidia-smi -l`).

use super::{Sample, Smi, SmiProcess};
use crate::amount::{amounts, number};
use crate::evidence::{Evidence, Piece};
use vramscope_engine::units::Bytes;

/// Reads all tables of a text as one piece of evidence.
pub fn find(text: &str) -> Option<Piece> {
    let (mut smi, mut begin) = (Smi::default(), None);
    let mut naming: Option<(u32, Option<String>)> = None;
    for (i, line) in text.lines().enumerate() {
        if line.contains("NVIDIA-SMI") {
            begin = begin.or(Some(i + 1));
            // Of repeated tables, only the last one's processes count.
            smi.processes.clear();
        }
        let bars: Vec<&str> = line.trim().trim_matches('|').split('|').collect();
        if let Some(named) = name(&bars) {
            naming = Some(named);
        } else if let Some((used, total)) = used_of_total(line).filter(|_| line.contains('|')) {
            begin = begin.or(Some(i + 1));
            let (index, name) = naming.take().unwrap_or((smi.devices.len() as u32, None));
            if let Some(device) = smi.device(index) {
                device.name = device.name.take().or(name);
                device.total = Some(total);
                device.push(Sample {
                    used: Some(used),
                    utilization: bars.get(2).and_then(|cell| percent(cell)),
                });
            }
        } else if let Some(process) = process(line)
            && smi.processes.len() < 1024
        {
            smi.processes.push(process);
        }
    }
    let line = begin.filter(|_| smi.tells_anything())?;
    Some(Piece {
        line,
        evidence: Evidence::Smi(smi),
    })
}

/// Index and name of a device from the line above its memory: `|   0  NVIDIA H100 80GB HBM3   On  | 00000000:18:00.0
/// Off |   0 |`.
fn name(bars: &[&str]) -> Option<(u32, Option<String>)> {
    let &[first, second, ..] = bars else { return None };
    // The second cell must contain a bus address.
    if second.matches(':').count() != 2 || !second.contains('.') {
        return None;
    }
    let mut words = first.split_ascii_whitespace();
    let index = words.next()?.parse().ok()?;
    let words: Vec<&str> = words
        .filter(|word| !matches!(*word, "On" | "Off" | "WDDM" | "TCC"))
        .collect();
    let name = words.join(" ").trim_end_matches('.').to_string();
    Some((index, Some(name).filter(|name| !name.is_empty())))
}

/// Used and total memory from `12345MiB / 32510MiB`.
fn used_of_total(line: &str) -> Option<(Bytes, Bytes)> {
    let found = amounts(line);
    found.windows(2).find_map(|pair| {
        let between = line.get(pair[0].end..pair[1].begin)?;
        (between.trim() == "/").then_some((pair[0].amount.bytes, pair[1].amount.bytes))
    })
}

fn percent(cell: &str) -> Option<f64> {
    let (before, _) = cell.split_once('%')?;
    let word = before.split_ascii_whitespace().next_back()?;
    let (value, ..) = number(word)?;
    (value <= 100.0).then_some(value / 100.0)
}

/// A process from `|    0   N/A  N/A     12345      C   python            12345MiB |`, with or without the two N/A.
fn process(line: &str) -> Option<SmiProcess> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let words: Vec<&str> = inner.split_ascii_whitespace().collect();
    let kind = words
        .iter()
        .position(|word| matches!(*word, "C" | "G" | "C+G" | "M+C"))?;
    let pid = words.get(kind.checked_sub(1)?)?.parse().ok()?;
    let device = words.first()?.parse().ok()?;
    let last = *words.last()?;
    let holds = amounts(last).first().map(|found| found.amount.bytes);
    let name = words.get(kind + 1..words.len() - 1)?.join(" ");
    Some(SmiProcess {
        device,
        pid,
        name,
        holds,
    })
}
