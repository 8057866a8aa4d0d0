//! Draws a Gantt chart of the first batches: a row for each worker, the copy and the training loop.

use std::fmt::Write;

use vramscope_engine::units::Seconds;
use vramscope_time::DataAnswer;
use vramscope_time::pipeline::Bar;

use super::paint::QUIET;

/// Width in columns of a row's name.
const LABEL: usize = 12;
/// Largest number of rows for workers; further ones are left out.
const MOST_ROWS: u64 = 8;

/// Draws the chart. Each cell shows the first letter of the stage that fills most of it; `.` means waiting.
pub fn render(data: &DataAnswer, width: usize) -> String {
    let cells = width.saturating_sub(LABEL + 4).clamp(16, 100);
    let end = data.bars.iter().map(|bar| bar.end).fold(0.0, f64::max);
    if end <= 0.0 {
        return String::new();
    }
    let lanes = data.workers.max(1);
    let mut out = String::new();
    for row in 0..lanes + 2 {
        if row >= MOST_ROWS && row < lanes {
            continue;
        }
        let bars: Vec<&Bar> = data.bars.iter().filter(|bar| bar.row == row).collect();
        if bars.is_empty() {
            continue;
        }
        let name = match row {
            row if row == lanes => "copy".to_owned(),
            row if row > lanes => "loop".to_owned(),
            _ if data.workers == 0 => "loop, before".to_owned(),
            row => format!("worker {}", row + 1),
        };
        let line: String = (0..cells).map(|cell| letter(&bars, cell, end / cells as f64)).collect();
        let _ = writeln!(out, "  {name:LABEL$}{QUIET}{line}{QUIET:#}");
    }
    let names = legend(&data.bars);
    let _ = writeln!(out, "  {:LABEL$}0 … {}: {names}", "", Seconds::new(end));
    out
}

/// Letter of the stage that fills most of a cell.
fn letter(bars: &[&Bar], cell: usize, seconds: f64) -> char {
    let (begin, end) = (cell as f64 * seconds, (cell + 1) as f64 * seconds);
    let within = |bar: &&&Bar| (bar.end.min(end) - bar.begin.max(begin)).max(0.0);
    let longest = bars.iter().max_by(|a, b| within(a).total_cmp(&within(b)));
    match longest.filter(|bar| within(bar) > 0.0) {
        Some(bar) => short(bar.name),
        None => '.',
    }
}

/// Letter of a stage: its first one, unless another stage begins with it too.
fn short(name: &str) -> char {
    match name {
        "copy" => '>',
        "collate" => 'c',
        "step" => '#',
        "resize" => 'z',
        name => name.chars().next().unwrap_or('?'),
    }
}

fn legend(bars: &[Bar]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for bar in bars {
        if !names.contains(&bar.name) {
            names.push(bar.name);
        }
    }
    let names: Vec<String> = names
        .into_iter()
        .map(|name| format!("{} {name}", short(name)))
        .collect();
    names.join(", ")
}
