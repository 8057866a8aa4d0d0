//! `vramscope estimate` for one setup.

use std::sync::Arc;

use serde::Serialize;
use vramscope_engine::report::HostRoom;
use vramscope_engine::simulate::{Beside, around};
use vramscope_launch::Grade;
use vramscope_time::{Asked, Estimate as EstimateDocument, TimedRun};

use super::Estimate;
use super::batch::Line;
use super::dataset::Samples;
use super::lengths::{AtLength, OpenLengths};
use super::numbers::{self, OnGpus};
use crate::failure::Failure;
use crate::input::hub::Names;
use crate::input::launch::{Named, Standing};
use crate::input::room::limit;
use crate::judged::Judged;
use crate::output::dataset::OfData;
use crate::output::target::Target;
use crate::output::{self, Format, terminal, text};
use crate::predict::{guarded, predict, predict_timed};

impl Estimate {
    /// Predicts the setup that the flags describe.
    ///
    /// # Errors
    /// See [`Failure`].
    #[expect(clippy::too_many_lines, reason = "one step for each part of the answer")]
    pub fn run_single(mut self) -> Result<(), Failure> {
        let format = self.format.unwrap_or(Format::Text);
        let (target, outside) = (self.room.target()?, self.room.outside()?);
        let gpu = self.room.gpu()?;
        let (clock, expense) = (self.clock()?, self.time.expense()?);
        let samples = self.take_dataset()?;
        let Ready {
            mut standing,
            open,
            run: (model, setup, parallel),
            names,
        } = self.ready(format)?;
        standing.left_out.extend(samples.as_ref().and_then(Samples::left_out));
        let clock = clock.filter(|_| setup.is_timed());
        let (mut report, time) = match &clock {
            Some(clock) => {
                let sources = clock.sources();
                let ask = |run: &mut TimedRun<'_>| {
                    run.feed(self.time.data(setup.batch));
                    Some(run.answer(&clock.costs(), Asked { sources, expense }))
                };
                predict_timed(&model, (&setup, parallel.as_ref()), (clock, gpu), ask)
            }
            None => predict(&model, &setup, parallel.as_ref(), gpu).map(|report| (report, None)),
        }
        .map_err(|failure| self.launch.or_dry(failure))?;
        let gpus = parallel.map_or(1, |parallel| parallel.world);
        let target = target.map(|target| (target, standing.fit(&report, &target, gpus)));
        let mut many_lengths = None;
        if let Some(open) = &open {
            standing.lengths = self.lengths(open, &standing, target.as_ref());
            let room = target.as_ref().map(|(_, fit)| fit.for_allocator());
            many_lengths = self.after_many_lengths(open, &standing, (&report, setup.seq, room));
        }
        let data = match &samples {
            Some(samples) => {
                let judged = target.as_ref().map(|(target, fit)| (target, fit.verdict));
                let longest = [report.peak_allocated, report.peak_reserved];
                Some(self.of_data(samples, longest, (&standing, judged))?)
            }
            None => None,
        };
        let host = host_room(self.host_gib, gpus)?;
        let workers = self.time.data(setup.batch).map_or(0, |data| data.workers);
        let beside = Beside::of(&report, &model, parallel.as_ref(), workers);
        let around = guarded(|| around(&model, &setup, gpu, beside))?;
        let steps = report.peak_reserved;
        if let Some(many) = many_lengths.clone().filter(|_| format != Format::Text) {
            report.may_reserve(many);
        }
        match format {
            Format::Text => {
                let estimate = text::Estimate {
                    model: &model.name,
                    setup: &setup,
                    parallel,
                    report: &report,
                    target,
                    left_out: &standing.left_out,
                    lengths: standing.lengths,
                    many_lengths: many_lengths.as_ref(),
                    around: Some((&around, host)),
                    time,
                };
                if let Some(data) = &data {
                    output::print(&text::dataset(data))?;
                }
                output::print(&estimate.render(terminal::width()))
            }
            Format::Json => {
                let room = target.as_ref().map(|(target, _)| target.room());
                let target = target.as_ref().map(|(target, fit)| (target.name(), fit));
                let (ms, time) = time.unzip();
                let memory = report.answer((&model, &setup), target, outside);
                let estimate = EstimateDocument {
                    parallel,
                    memory,
                    around: Some(around.judged(steps, room, host)),
                    ms,
                    time,
                };
                output::print_json(&names.remarked(standing.grade(WithData { estimate, data })))
            }
            Format::Jsonl => {
                let (report, time) = (Ok(report), (outside, time.map(|(ms, _)| ms)));
                let line = Line::new(0, &report, time, standing.left_out());
                output::print_json_line(&names.remarked(line))
            }
        }
    }

    /// Predicts the memory of the setup that the flags describe, and judges it in the room that they name.
    ///
    /// # Errors
    /// If no room is named, something given cannot be read, or no figure bounds the run.
    pub fn judged(mut self) -> Result<Judged, Failure> {
        let target = self.room.target()?;
        let target =
            target.ok_or_else(|| Failure::Input("name what the run has to fit: --gpu or --limit-gib".into()))?;
        let samples = self.take_dataset()?;
        // Nothing that is read of a launch is shown in this form.
        let Ready {
            mut standing,
            open,
            run: (model, setup, parallel),
            ..
        } = self.ready(Format::Jsonl)?;
        let report = predict(&model, &setup, parallel.as_ref(), self.room.gpu()?)?;
        standing.left_out.extend(samples.as_ref().and_then(Samples::left_out));
        let gpus = parallel.map_or(1, |parallel| parallel.world);
        let judged = (target, standing.fit(&report, &target, gpus));
        if let Some(open) = &open {
            standing.lengths = self.lengths(open, &standing, Some(&judged));
        }
        let samples_that_fit = match &samples {
            Some(samples) => self.that_fit(samples, (&standing, (&judged.0, judged.1.verdict)))?,
            None => None,
        };
        Ok(Judged {
            model: Some(model.name.clone()),
            grade: Grade::of(&standing.left_out).with(standing.lengths),
            report,
            fit: judged.1,
            least: standing.lengths.least,
            length_that_fits: standing.lengths.length_that_fits,
            samples_that_fit,
            left_out: standing.left_out,
            gpus,
        })
    }

    /// Reads what is simulated: model, setup and how GPUs share it, with what the figures will rest on.
    ///
    /// # Errors
    /// If something given cannot be read, or no figure bounds the run.
    pub(super) fn ready(&mut self, format: Format) -> Result<Ready, Failure> {
        let (mut standing, open) = self.take_launch(format)?;
        let names = self.subject.names();
        let run = match open.as_ref().filter(|open| open.is_unlimited) {
            Some(open) => self.shortened(open, &mut standing)?,
            None => {
                let parallel = self.parallel.over(self.subject.parallel()?)?;
                let (model, setup) = self.subject.clone().read(&self.setup)?;
                (model, setup, parallel)
            }
        };
        // Known once the model was read.
        standing.left_out.extend(names.left_out());
        Ok(Ready {
            standing,
            open,
            run,
            names,
        })
    }

    /// Takes the setup of the files that start the run, if any are given, and shows what is read of them.
    fn take_launch(&mut self, format: Format) -> Result<(Standing, Option<OpenLengths>), Failure> {
        let Some(launch) = self.launch.read(self.room.has_bf16()?)? else {
            return Ok((Standing::default(), None));
        };
        self.subject.stand_at(self.launch.place(&launch));
        let packed = launch
            .model()
            .filter(|_| launch.trains_adapters() && !self.subject.names_model());
        let launch = match packed.and_then(|name| self.subject.in_16_bits(name)) {
            Some(base) => launch.in_16_bits(base),
            None => launch,
        };
        let mut facts = self.subject.facts(launch.model())?;
        // Without its size, what is beside is left out, which the answer says.
        let beside = launch.other_model().and_then(|name| self.subject.facts_beside(name));
        facts.beside = beside.and_then(|model| model.parameters);
        let launch = launch.of_model(facts);
        let mut resolved = launch.resolve(facts);
        if self.setup.names_seq() {
            resolved.forget_lengths();
        }
        if format == Format::Text {
            output::print(&text::launch(&launch, &resolved, terminal::width()))?;
        }
        let standing = Standing::of(&resolved, &self.setup, self.named()?);
        let names_model = launch.model().is_some() || self.subject.names_model();
        let mut case = self.launch.case(&resolved, &standing, names_model);
        if let Err(Failure::NotKnown(why)) = &mut case {
            let on_gpus = self.on_numbers_of_gpus(&standing);
            why.extend(numbers::said(&on_gpus));
            if format == Format::Json {
                let command = self.launch.dry_run();
                let model = launch.model();
                let no_figure = NoFigure {
                    model,
                    command,
                    on_gpus,
                };
                output::print_json(&standing.grade(no_figure))?;
            }
        }
        self.subject.launch(case?, &resolved);
        let open = OpenLengths::of(&launch, facts, &resolved, &standing);
        Ok((standing, open))
    }

    /// Facts of the run that flags give beside its setup.
    pub(super) fn named(&self) -> Result<Named, Failure> {
        Ok(Named {
            gpus: self.parallel.names_world(),
            card: matches!(self.room.target()?, Some(Target::Card(_))),
        })
    }
}

/// A run that is about to be simulated.
pub(super) struct Ready {
    /// What its figures rest on.
    pub standing: Standing,
    /// Its lengths, if its files leave them open.
    pub open: Option<OpenLengths>,
    /// Model, setup, and how GPUs share it.
    pub run: AtLength,
    /// What found its model.
    pub names: Arc<Names>,
}

/// Document of a run, with what its dataset says of it.
#[derive(Serialize)]
struct WithData<D> {
    #[serde(flatten)]
    estimate: D,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<OfData>,
}

/// Document of a run that no figure bounds.
#[derive(Debug, Serialize)]
struct NoFigure<'a> {
    model: Option<&'a str>,
    /// The command that finds out.
    command: String,
    /// Memory of each GPU on a few numbers of them, if their number alone is unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    on_gpus: Vec<OnGpus>,
}

/// Memory of the host, if it is told, and the processes that share it.
fn host_room(gib: Option<f64>, processes: u64) -> Result<HostRoom, Failure> {
    let memory = gib.map(|gib| limit(gib, "--host-gib")).transpose()?;
    Ok(HostRoom { processes, memory })
}
