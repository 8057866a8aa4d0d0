//! Formats the peak of each phase, and marks the highest.

use anstyle::Style;
use vramscope_engine::Report;
use vramscope_engine::report::Phase;

use super::paint::{QUIET, STRONG};
use super::row::Row;

use crate::phrases::phrase;

/// Formats three bars and marks the longest.
pub fn render(report: &Report, width: usize) -> String {
    let steady = &report.steady;
    let peaks = [
        (Phase::Forward, steady.peak_forward),
        (Phase::Backward, steady.peak_backward),
        (Phase::Optimizer, steady.peak_optimizer),
    ];
    let mut out = format!("{STRONG}{}{STRONG:#}\n", phrase!(plan.phases));
    for (phase, bytes) in peaks {
        let highest = phase == report.peak_phase;
        let row = Row {
            label: &format!("  {}", phase.label()),
            bytes,
            of: Some(steady.peak()),
            note: if highest { "◀ peak" } else { "" },
            bar_style: if highest { Style::new() } else { QUIET },
            text_style: if highest { STRONG } else { Style::new() },
        };
        out += &row.render(width);
    }
    out
}
