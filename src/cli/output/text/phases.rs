//! The peak of each phase, and which holds the step's.

use anstyle::{AnsiColor, Style};
use vramscope_engine::Report;
use vramscope_engine::report::Phase;

use super::paint::STRONG;
use super::row::Row;

const BAR: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Cyan)));

/// Three bars; the longest is marked.
pub fn render(report: &Report, width: usize) -> String {
    let steady = &report.steady;
    let peaks = [
        (Phase::Forward, steady.peak_forward),
        (Phase::Backward, steady.peak_backward),
        (Phase::Optimizer, steady.peak_optimizer),
    ];
    let mut out = format!("{STRONG}Peak of each phase{STRONG:#}\n");
    for (phase, bytes) in peaks {
        let highest = phase == report.peak_phase;
        let row = Row {
            label: &format!("  {}", phase.label()),
            bytes,
            of: Some(steady.peak()),
            note: if highest { "◀ peak" } else { "" },
            bar_style: BAR,
            text_style: if highest { STRONG } else { Style::new() },
        };
        out += &row.render(width);
    }
    out
}
