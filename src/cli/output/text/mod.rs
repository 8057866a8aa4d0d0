//! Formats results as text for people.
//!
//! All text is built with colours and Unicode; [`super::print`] removes what the terminal does not support.

mod against;
mod around;
mod bar;
mod breakdown;
mod case_line;
mod comparison;
mod curve;
mod dataset;
mod diagnosis;
mod gantt;
mod heading;
mod inference;
mod launch;
mod ledger;
mod max_batch;
mod paint;
mod phases;
mod plan;
mod recorded;
mod row;
mod setup_words;
mod tensors;
#[cfg(test)]
mod tests;
mod time;
mod verdict;
mod warnings;
mod watch;
mod wrap;

pub use against::{name as part_name, recorded as recorded_against, render as against};
pub use case_line::case_line;
pub use comparison::comparison;
pub use dataset::render as dataset;
pub use diagnosis::diagnosis;
pub use inference::inference;
pub use launch::render as launch;
pub use max_batch::{MaxBatch, max_batch_line, stopped};
pub use paint::{QUIET, STRONG, verdict as verdict_style};
pub use plan::plan;
pub use recorded::{recorded, recorded_line};
pub use setup_words::setup_words_without;
pub use verdict::sentence as verdict_sentence;
pub use watch::render as watch;
pub use wrap::wrap;

use vramscope_engine::report::{Around, HostRoom, Reserved};
use vramscope_engine::setup::Parallel;
use vramscope_engine::verdict::Fit;
use vramscope_engine::{Report, Setup};
use vramscope_launch::{LeftOut, OfLengths};
use vramscope_time::{Milliseconds, TimeAnswer};

use super::target::Target;

/// Result of `estimate`.
pub struct Estimate<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// The asked setup.
    pub setup: &'a Setup,
    /// Parallelism, if there are several GPUs.
    pub parallel: Option<Parallel>,
    /// The engine's report.
    pub report: &'a Report,
    /// Target and fit, if a target was given.
    pub target: Option<(Target, Fit)>,
    /// Settings of the given run that the figures leave out.
    pub left_out: &'a [LeftOut],
    /// Bounds of a run whose files do not tell how long its samples are.
    pub lengths: OfLengths,
    /// Highest reserved memory after batches of many lengths.
    pub many_lengths: Option<&'a Reserved>,
    /// Memory before and beside the steps, and the host's, if it is told.
    pub around: Option<(&'a Around, HostRoom)>,
    /// Time of a step, if the card's rates are known.
    pub time: Option<(Milliseconds, TimeAnswer<'a>)>,
}

impl Estimate<'_> {
    /// Formats the whole answer: heading, verdict, peaks, live memory at the highest peak, the sum that leads to it,
    /// and recommendations.
    pub fn render(&self, width: usize) -> String {
        let sections = [
            heading::render(self, width),
            verdict::render(self.target.as_ref(), (self.left_out, self.lengths), width),
            self.around.map_or_else(String::new, |(around, host)| {
                let of = (self.target.as_ref(), host.processes);
                around::loading_over(around, of, self.report.peak_reserved)
            }),
            phases::render(self.report, width),
            self.time
                .as_ref()
                .map_or_else(String::new, |(ms, time)| time::render((ms, time), width)),
            breakdown::render(self.report, width),
            tensors::render(self.report, width),
            ledger::render(self.report, (self.target.as_ref(), self.many_lengths), width),
            self.around.map_or_else(String::new, |(around, host)| {
                around::render(around, (self.target.as_ref(), host), width)
            }),
            warnings::render(&self.report.warnings, width),
        ];
        let sections: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
        sections.join("\n")
    }
}
