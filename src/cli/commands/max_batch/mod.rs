//! `vramscope max-batch`: finds the largest micro-batch that fits.

mod recorded;

use std::sync::Arc;

use clap::{ArgGroup, Args};
use serde::Serialize;
use vramscope_engine::simulate::Trial;
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_engine::{Case, Model, Setup};
use vramscope_plan::{Batches, MaxBatch as Found};

use crate::commands::examples;
use crate::failure::Failure;
use crate::input::cases::{Cases, Row};
use crate::input::count;
use crate::input::hub::Names;
use crate::input::recorded::{OverrideFlags, Sizes};
use crate::input::room::{self, RoomFlags};
use crate::input::setup_flags::SetupFlags;
use crate::input::source::Source;
use crate::input::subject::Subject;
use crate::output::target::Target;
use crate::output::{self, Format, JsonArray, terminal, text};
use crate::parallel::map_ordered;
use crate::predict::guarded;

/// Find the largest micro-batch that trains on a card or under a limit
///
/// Simulates training itself, batch after batch, through PyTorch's allocator under the limit: where its
/// cache has no room it gives segments back and tries again, and only then runs out of memory.
#[derive(Debug, Args)]
#[command(
    override_usage = "vramscope max-batch <MODEL | --config FILE | --case JSON | --cases FILE> [OPTIONS]\n       vramscope max-batch --recording FILE [OPTIONS]",
    after_help = examples(EXAMPLES),
    allow_negative_numbers = true,
    group = ArgGroup::new("what").required(true).args(["model", "config", "case", "cases", "recording"]),
)]
pub struct MaxBatch {
    #[command(flatten)]
    subject: Subject,
    /// A JSONL file of cases with a limit_gib, or - for standard input; prints one line per case
    #[arg(long, value_name = "FILE|-", value_parser = Source::parse)]
    cases: Option<Source>,
    /// A training script's own steps at all sizes, recorded without a GPU (`vramscope record --vary`), or - for standard
    /// input
    #[arg(long, value_name = "FILE|-", value_parser = Source::parse)]
    recording: Option<Source>,
    /// Its other sizes, such as seq=1024; --seq and --images do where sizes have these names [default: those of its first
    /// recording]
    #[arg(long, value_name = "NAME=N,..", requires = "recording", value_parser = Sizes::parse)]
    at: Option<Sizes>,
    #[command(flatten)]
    overrides: OverrideFlags,
    #[command(flatten)]
    room: RoomFlags,
    /// Steps that have to run. The first makes the optimizer's states, the second finds them there; a
    /// batch close to the limit can still stop at the third
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = count::up_to(MOST_STEPS))]
    steps: u64,
    /// Output format [default: text; jsonl with --cases]
    #[arg(long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    setup: SetupFlags,
}

/// Largest number of simulated steps; a block layout that still changes by then changes only slightly.
const MOST_STEPS: u64 = 100;

const EXAMPLES: &str = "  vramscope max-batch llava-1.5-7b --ckpt full --freeze lora --gpu 4090
  vramscope max-batch gpt2-medium --seq 512 --precision fp32 --limit-gib 23
  vramscope max-batch --config config.json --gpu H200 --steps 10
  vramscope max-batch --recording run.sizes.gz --at seq=512 --gpu H100
  vramscope max-batch --cases max_batch.jsonl > answers.jsonl";

impl MaxBatch {
    /// Finds the answer for one setup, or for each case of a file.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run(mut self) -> Result<(), Failure> {
        if let Some(source) = self.recording.take() {
            return self.run_recorded(&source);
        }
        match self.cases.take() {
            Some(_) if self.setup != SetupFlags::default() => Err(Failure::Input(
                "--cases takes each setup from its own line; leave the flags of the training setup out".into(),
            )),
            Some(source) => self.run_cases(source),
            None => self.run_single(),
        }
    }

    fn run_single(self) -> Result<(), Failure> {
        if self.setup.names_batch() {
            return Err(Failure::Input(
                "--batch is what max-batch looks for; leave it out".into(),
            ));
        }
        let (gpu, limit) = (self.room.gpu()?, self.room.for_allocator()?);
        let of_case = self
            .subject
            .limit_gib()?
            .map(|gib| room::limit(gib, "limit_gib"))
            .transpose()?;
        let target = self.room.target()?;
        let card = target
            .as_ref()
            .filter(|t| matches!(t, Target::Card(_)))
            .map(Target::name);
        let limit = limit.or(of_case).ok_or_else(no_limit)?;
        let names = self.subject.names();
        let (model, setup) = self.subject.read(&self.setup)?;
        let asked = Asked {
            model: &model,
            setup: &setup,
            gpu,
            limit,
        };
        let mut batches = asked.batches(self.steps)?;
        let found = guarded(|| batches.answer())?;
        match self.format.unwrap_or(Format::Text) {
            Format::Text => {
                let lasting = lasting(&mut batches, &found, self.steps)?;
                let answer = text::MaxBatch {
                    model: &model.name,
                    setup: text::setup_words_without("batch", &setup),
                    room: (card, limit),
                    steps: self.steps,
                    found: &found,
                    lasting,
                    beyond: None,
                };
                output::print(&answer.render(terminal::width()))
            }
            Format::Json => output::print_json(&names.remarked(MaxBatchDocument::new(&asked, &found, self.steps))),
            Format::Jsonl => output::print_json_line(&names.remarked(Line::new(0, &Ok(found.max_batch)))),
        }
    }

    fn run_cases(self, source: Source) -> Result<(), Failure> {
        let (gpu, limit) = (self.room.gpu()?, self.room.for_allocator()?);
        let format = self.format.unwrap_or(Format::Jsonl);
        let mut array = JsonArray::default();
        let names = self.subject.names();
        let answer = |row: &Row| answer_row(row, &names, (gpu, limit), self.steps);
        map_ordered(Cases::open(source, Arc::clone(&names))?, answer, |row, answer| {
            let model = row.case.as_ref().ok().map(|case| case.model.as_str());
            let line = names.remarked_on(model, Line::new(row.index, &answer));
            match format {
                Format::Text => output::print(&text::max_batch_line(row, &answer)),
                Format::Json => array.push(&line),
                Format::Jsonl => output::print_json_line(&line),
            }
        })?;
        if format == Format::Json { array.close() } else { Ok(()) }
    }
}

fn no_limit() -> Failure {
    Failure::Input("name what it has to fit: --gpu NAME (vramscope gpus lists them) or --limit-gib X".into())
}

/// Answers one case; a named card or limit takes precedence over the case's own.
fn answer_row(row: &Row, names: &Names, room: (Gpu, Option<Bytes>), steps: u64) -> Result<u64, String> {
    let case = row.case.as_ref().map_err(String::clone)?;
    answer_case(case, names, room, steps).map_err(|failure| failure.to_string())
}

fn answer_case(case: &Case, names: &Names, (gpu, limit): (Gpu, Option<Bytes>), steps: u64) -> Result<u64, Failure> {
    let own = case.limit_gib.map(|gib| room::limit(gib, "limit_gib")).transpose()?;
    let limit = limit.or(own).ok_or_else(|| {
        Failure::Input("the case has no `limit_gib`; give what the allocator may reserve, such as 23.5".into())
    })?;
    let model = names.model(case)?;
    let asked = Asked {
        model: &model,
        setup: &case.setup,
        gpu,
        limit,
    };
    let mut batches = asked.batches(steps)?;
    Ok(guarded(|| batches.answer())?.max_batch)
}

/// Arguments of one question.
struct Asked<'a> {
    model: &'a Model,
    setup: &'a Setup,
    gpu: Gpu,
    limit: Bytes,
}

impl Asked<'_> {
    fn batches(&self, steps: u64) -> Result<Batches, Failure> {
        guarded(|| Batches::new(self.model.clone(), self.setup.clone(), self.gpu, (self.limit, steps)))
    }
}

/// The largest batch that keeps running after the requested steps, and for how many steps, if it differs.
fn lasting(batches: &mut Batches, found: &Found, steps: u64) -> Result<Option<(u64, u64)>, Failure> {
    let more = LASTING.min(MOST_STEPS - steps);
    batches.go_on(more);
    let lasting = guarded(|| batches.answer())?.max_batch;
    Ok((lasting < found.max_batch).then_some((lasting, steps + more)))
}

/// Number of further steps that are simulated.
const LASTING: u64 = 4;

/// A line of answer: the number of the case, and its batch or the reason why there is none.
#[derive(Serialize)]
struct Line<'a> {
    i: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_batch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl<'a> Line<'a> {
    fn new(i: usize, answer: &'a Result<u64, String>) -> Self {
        Self {
            i,
            max_batch: answer.as_ref().ok().copied(),
            error: answer.as_ref().err().map(String::as_str),
        }
    }
}

/// The whole answer for one setup.
#[derive(Serialize)]
struct MaxBatchDocument<'a> {
    model: &'a str,
    setup: &'a Setup,
    limit: Bytes,
    steps: u64,
    max_batch: u64,
    tries: Vec<Try>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
}

#[derive(Serialize)]
struct Try {
    batch: u64,
    trains: bool,
    peak_allocated: Bytes,
    peak_reserved: Bytes,
    retries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<String>,
}

impl<'a> MaxBatchDocument<'a> {
    fn new(asked: &'a Asked<'_>, found: &'a Found, steps: u64) -> Self {
        Self {
            model: &asked.model.name,
            setup: asked.setup,
            limit: asked.limit,
            steps,
            max_batch: found.max_batch,
            tries: found.tries.iter().map(Try::new).collect(),
            end: found.end.as_ref().map(ToString::to_string),
        }
    }
}

impl Try {
    fn new((batch, trial): &(u64, Trial)) -> Self {
        Self {
            batch: *batch,
            trains: trial.trains(),
            peak_allocated: trial.peak_allocated,
            peak_reserved: trial.peak_reserved,
            retries: trial.retries,
            stopped: trial.stopped.as_ref().map(text::stopped),
        }
    }
}
