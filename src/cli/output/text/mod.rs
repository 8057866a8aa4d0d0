//! Results as text for people.
//!
//! Everything here is built with colours and Unicode; [`super::print`] takes away what the
//! terminal cannot show.

mod bar;
mod breakdown;
mod case_line;
mod comparison;
mod curve;
mod diagnosis;
mod gantt;
mod heading;
mod inference;
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
mod wrap;

pub use case_line::case_line;
pub use comparison::comparison;
pub use diagnosis::diagnosis;
pub use inference::inference;
pub use max_batch::{MaxBatch, max_batch_line, stopped};
pub use plan::plan;
pub use recorded::{recorded, recorded_line};
pub use setup_words::setup_words_without;

use vramscope_engine::setup::Parallel;
use vramscope_engine::time::{Milliseconds, TimeAnswer};
use vramscope_engine::verdict::Fit;
use vramscope_engine::{Report, Setup};

use super::target::Target;

/// One answer of `estimate`.
pub struct Estimate<'a> {
    /// What the model is called.
    pub model: &'a str,
    /// What was asked.
    pub setup: &'a Setup,
    /// The several GPUs that share it, if any.
    pub parallel: Option<Parallel>,
    /// What the engine says.
    pub report: &'a Report,
    /// What the run is held against, where something was named, and how it stands.
    pub target: Option<(Target, Fit)>,
    /// How long a step takes, where the card's rates are known.
    pub time: Option<(Milliseconds, TimeAnswer<'a>)>,
}

impl Estimate<'_> {
    /// The whole answer: what was asked, the verdict, the peaks, what is live at the highest, what
    /// it adds up to, and what to do.
    pub fn render(&self, width: usize) -> String {
        let sections = [
            heading::render(self, width),
            verdict::render(self.target.as_ref(), width),
            phases::render(self.report, width),
            self.time
                .as_ref()
                .map_or_else(String::new, |(ms, time)| time::render((ms, time), width)),
            breakdown::render(self.report, width),
            tensors::render(self.report, width),
            ledger::render(self.report, self.target.as_ref(), width),
            warnings::render(&self.report.warnings, width),
        ];
        let sections: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
        sections.join("\n")
    }
}
