//! Formats one case of a file on one line.

use vramscope_engine::Report;
use vramscope_engine::format::gib;

use super::paint::{QUIET, STRONG};
use super::setup_words::setup_words;
use crate::input::cases::Row;

/// Formats index, peak and its phase, and the case; or its error.
pub fn case_line(row: &Row, report: &Result<Report, String>) -> String {
    let index = row.index;
    let case = row
        .case
        .as_ref()
        .map(|case| format!("{} · {}", case.model, setup_words(&case.setup)));
    let case = case.unwrap_or_default();
    match report {
        Ok(report) => {
            let (peak, phase) = (gib(report.peak_allocated), report.peak_phase.label());
            format!("{index:>4}  {STRONG}{peak:>10}{STRONG:#} in {phase:9}  {QUIET}{case}{QUIET:#}\n")
        }
        Err(error) => format!("{index:>4}  error: {error}  {QUIET}{case}{QUIET:#}\n"),
    }
}
