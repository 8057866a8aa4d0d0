//! `vramscope estimate --launch A --against B`: where the memory of two runs differs.

use std::sync::Arc;

use serde::Serialize;
use vramscope_engine::report::{Difference, EstimateDocument};
use vramscope_engine::setup::Parallel;
use vramscope_engine::verdict::Fit;
use vramscope_engine::{Model, Report, Setup};
use vramscope_hub::Place;
use vramscope_launch::{Graded, Launch};

use super::Estimate;
use crate::failure::Failure;
use crate::input::hub::{Names, Remarked};
use crate::input::launch::Standing;
use crate::output::target::Target;
use crate::output::{self, Format, terminal, text};
use crate::predict::predict;

/// One of the two runs, simulated.
struct Run {
    model: Model,
    setup: Setup,
    parallel: Option<Parallel>,
    report: Report,
    target: Option<(Target, Fit)>,
    standing: Standing,
    /// What found its model.
    names: Arc<Names>,
}

/// The whole answer as JSON.
#[derive(Serialize)]
struct DifferenceDocument<'a> {
    a: Remarked<Graded<'a, EstimateDocument<'a>>>,
    b: Remarked<Graded<'a, EstimateDocument<'a>>>,
    difference: &'a Difference,
}

impl Estimate {
    /// Predicts two runs and prints where their memory differs.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run_against(self, other: &Launch) -> Result<(), Failure> {
        let format = self.format.unwrap_or(Format::Text);
        let Some(launch) = self.launch.read(self.room.has_bf16()?)? else {
            return Err(Failure::Input("--against needs a --launch to stand beside".into()));
        };
        let (a, b) = (self.launch.place(&launch), self.launch.place_against(other));
        let runs = [self.run_of(&launch, a, format)?, self.run_of(other, b, format)?];
        let difference = Difference::between(runs.each_ref().map(|run| {
            let outside = run.target.as_ref().map_or(&[][..], |(_, fit)| &fit.outside);
            (&run.report, outside)
        }));
        if format == Format::Text {
            let shown = runs.each_ref().map(|run| text::Estimate {
                model: &run.model.name,
                setup: &run.setup,
                parallel: run.parallel,
                report: &run.report,
                target: run.target.clone(),
                left_out: &run.standing.left_out,
                lengths: run.standing.lengths,
                many_lengths: None,
                time: None,
                around: None,
            });
            let files = self.launch.names();
            return output::print(&text::against(&files, &shown, &difference, terminal::width()));
        }
        let outside = self.room.outside()?;
        let [a, b] = runs.each_ref().map(|run| {
            let target = run.target.as_ref().map(|(target, fit)| (target.name(), fit));
            let answer = run.report.answer((&run.model, &run.setup), target, outside);
            run.names.remarked(run.standing.grade(answer))
        });
        let answer = DifferenceDocument {
            a,
            b,
            difference: &difference,
        };
        match format {
            Format::Jsonl => output::print_json_line(&answer),
            _ => output::print_json(&answer),
        }
    }

    /// Simulates a launch with the flags applied.
    fn run_of(&self, launch: &Launch, place: Place, format: Format) -> Result<Run, Failure> {
        // With names of its own, whose remarks are on this run's model alone.
        let mut subject = self.subject.clone().with_own_names();
        subject.stand_at(place);
        let facts = subject.facts(launch.model())?;
        let launch = launch.clone().of_model(facts);
        let resolved = launch.resolve(facts);
        if format == Format::Text {
            output::print(&text::launch(&launch, &resolved, terminal::width()))?;
        }
        let mut standing = Standing::of(&resolved, &self.setup, self.named()?);
        subject.launch(self.launch.case(&resolved, &standing, true)?, &resolved);
        let parallel = self.parallel.over(subject.parallel()?)?;
        let names = subject.names();
        let (model, setup) = subject.read(&self.setup)?;
        let report = predict(&model, &setup, parallel.as_ref(), self.room.gpu()?)?;
        let gpus = parallel.map_or(1, |parallel| parallel.world);
        let target = self.room.target()?;
        standing.left_out.extend(names.left_out());
        Ok(Run {
            target: target.map(|target| (target, standing.fit(&report, &target, gpus))),
            standing,
            names,
            model,
            setup,
            parallel,
            report,
        })
    }
}
