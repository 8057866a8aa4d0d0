//! Results as text for people.
//!
//! Everything here is built with colours and Unicode; [`super::print`] takes away what the
//! terminal cannot show.

mod bar;
mod breakdown;
mod case_line;
mod heading;
mod ledger;
mod paint;
mod phases;
mod row;
mod setup_words;
#[cfg(test)]
mod tests;
mod verdict;
mod warnings;
mod wrap;

pub use case_line::case_line;

use vramscope_engine::{Report, Setup};

use super::target::Target;

/// The whole answer to `estimate`: what was asked, the verdict, the peaks, what is live at the
/// highest, what it adds up to, and what to do.
pub fn estimate(model: &str, setup: &Setup, report: &Report, target: Option<&Target>, width: usize) -> String {
    let sections = [
        heading::render(model, setup, report, width),
        verdict::render(report, target, width),
        phases::render(report, width),
        breakdown::render(report, width),
        ledger::render(report, target, width),
        warnings::render(&report.warnings, width),
    ];
    let sections: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    sections.join("\n")
}
