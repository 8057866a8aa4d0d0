//! `estimate` of one setup.

use vramscope_engine::verdict::Fit;

use super::Estimate;
use super::batch::Line;
use crate::failure::Failure;
use crate::output::{self, Format, terminal, text};
use crate::predict::predict;

impl Estimate {
    /// Predicts the one setup that the flags describe.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run_single(self) -> Result<(), Failure> {
        let format = self.format.unwrap_or(Format::Text);
        let (target, outside) = (self.room.target()?, self.room.outside()?);
        let gpu = self.room.gpu()?;
        let parallel = self.parallel.over(self.subject.parallel()?)?;
        let (model, setup) = self.subject.read(&self.setup)?;
        let report = predict(&model, &setup, parallel.as_ref(), gpu)?;
        let gpus = parallel.map_or(1, |parallel| parallel.world);
        let target = target.map(|target| (target, Fit::of_each(&report, target.room(), gpus)));
        match format {
            Format::Text => {
                let estimate = text::Estimate {
                    model: &model.name,
                    setup: &setup,
                    parallel,
                    report: &report,
                    target,
                };
                output::print(&estimate.render(terminal::width()))
            }
            Format::Json => {
                let target = target.as_ref().map(|(target, fit)| (target.name(), fit));
                output::print_json(&report.answer((&model, &setup), target, outside))
            }
            Format::Jsonl => output::print_line(&Line::new(0, &Ok(report), outside)),
        }
    }
}
