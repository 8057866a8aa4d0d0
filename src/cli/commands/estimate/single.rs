//! `estimate` of one setup.

use serde::Serialize;
use vramscope_engine::report::Answer;
use vramscope_engine::time::{Milliseconds, TimeAnswer};
use vramscope_engine::verdict::Fit;

use super::Estimate;
use super::batch::Line;
use crate::failure::Failure;
use crate::output::{self, Format, terminal, text};
use crate::predict::predict;

/// Memory and time of a setup.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    memory: Answer<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<Milliseconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<TimeAnswer<'a>>,
}

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
        let (clock, expense) = (self.clock()?, self.time.expense()?);
        let (model, setup) = self.subject.read(&self.setup)?;
        let report = predict(&model, &setup, parallel.as_ref(), gpu)?;
        let data = self.time.data(setup.batch);
        let time = clock
            .as_ref()
            .and_then(|clock| clock.answer(&model, (&setup, parallel.as_ref()), data, expense).ok());
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
                    time,
                };
                output::print(&estimate.render(terminal::width()))
            }
            Format::Json => {
                let target = target.as_ref().map(|(target, fit)| (target.name(), fit));
                let (ms, time) = time.unzip();
                let memory = report.answer((&model, &setup), target, outside);
                output::print_json(&Whole { memory, ms, time })
            }
            Format::Jsonl => output::print_line(&Line::new(0, &Ok(report), outside, time.map(|(ms, _)| ms))),
        }
    }
}
