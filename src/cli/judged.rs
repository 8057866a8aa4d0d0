//! A run and the verdict on it, for the commands that end with one.

use vramscope_engine::Report;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::{Fit, Verdict};
use vramscope_launch::{Grade, Least, LeftOut};

use crate::outcome::Outcome;
use crate::output::dataset::Fitting;

/// A run that was simulated, and how it fits.
pub struct Judged {
    /// Name of its model; of a recording none.
    pub model: Option<String>,
    /// The engine's report.
    pub report: Report,
    /// How its figure fits.
    pub fit: Fit,
    /// What its figure is of the run.
    pub grade: Grade,
    /// What the figure leaves out.
    pub left_out: Vec<LeftOut>,
    /// The least that it needs, where that is known.
    pub least: Option<Least>,
    /// GPUs that share it.
    pub gpus: u64,
    /// Positions of the longest samples with which it fits, if it does not with the longest that it may have.
    pub length_that_fits: Option<u64>,
    /// The part of its dataset with which it fits, if one is given and it does not with the longest of its samples.
    pub samples_that_fit: Option<Fitting>,
}

impl Judged {
    /// What is known of the run in its room.
    pub fn outcome(&self) -> Outcome {
        let settled = self.grade.settles(self.fit.verdict);
        Outcome::of(settled.or_else(|| self.least_is_too_much().then_some(Verdict::Oom)))
    }

    /// True if even the least that the run needs has no room.
    fn least_is_too_much(&self) -> bool {
        let needs = self
            .least
            .map(|least| Bytes::new(least.peak_allocated) + self.fit.outside_torch());
        needs.is_some_and(|needs| needs > self.fit.room)
    }
}
