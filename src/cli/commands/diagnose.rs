//! `vramscope diagnose`: finds the cause of a crash in the files it left.

use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use vramscope_diagnose::recorded::{Comparison, compare};
use vramscope_diagnose::{Action, Context, Evidence, Finding, Fixes, Piece, Snapshot, launched, words};
use vramscope_engine::device::Device;
use vramscope_engine::recording::{Opened, Played, RecordingError};
use vramscope_engine::setup::Parallel;
use vramscope_engine::simulate::simulate_parallel;
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Room;
use vramscope_engine::{Model, Report, Setup};
use vramscope_plan::{Now, WhatIf};

use crate::commands::examples;
use crate::failure::Failure;
use crate::input::crash::{Contents, Understood, read_all, understand};
use crate::input::hub::{HubFlags, Names};
use crate::input::launch::LaunchOfError;
use crate::input::recorded::{Sizes, failed, holds_one, open};
use crate::input::room::RoomFlags;
use crate::input::setup_flags::SetupFlags;
use crate::input::source::Source;
use crate::input::subject::Subject;
use crate::output::target::Target;
use crate::output::{self, Format, terminal, text};
use crate::predict::predict;

/// Find out why a run is out of memory, or slow
///
/// Reads whatever there is, several kinds at once and in any order, also gzipped: out-of-memory errors of
/// PyTorch 1.0 and later and what hides one, commands and configurations, what killed a process, memory_summary() and memory_stats(), nvidia-smi tables and CSV logs, training logs
/// with memory in them, profiler tables and Chrome traces, and memory snapshots
/// (torch.cuda.memory._dump_snapshot). Says what the numbers show, how sure that is, and what to do next;
/// with the model and its setup named, how many bytes each change saves; with a recording of the same script
/// (`vramscope record`), where what happened differs from it.
#[derive(Debug, Args)]
#[command(after_help = examples(EXAMPLES))]
pub struct Diagnose {
    /// Files, or - for standard input
    #[arg(value_name = "FILE|-", required = true, value_parser = Source::parse)]
    files: Vec<Source>,
    /// The model of the run: a name of `vramscope models`, an id of a hub, a folder, or a config.json
    #[arg(long, value_name = "NAME|ID|PATH", conflicts_with = "config")]
    model: Option<String>,
    /// Its Hugging Face config.json
    #[arg(long, value_name = "FILE", value_parser = Source::parse)]
    config: Option<Source>,
    /// The run as it was recorded without a GPU (see `vramscope record`), to hold memory snapshots against
    #[arg(long, value_name = "FILE", value_parser = Source::parse, conflicts_with_all = ["model", "config"])]
    recording: Option<Source>,
    /// Sizes of a recording that tells all of them, such as batch=4,seq=1024 [default: those of its first recording]
    #[arg(long, value_name = "NAME=N,..", requires = "recording", value_parser = Sizes::parse)]
    at: Option<Sizes>,
    #[command(flatten)]
    hub: HubFlags,
    #[command(flatten)]
    launch: LaunchOfError,
    #[command(flatten)]
    room: RoomFlags,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    setup: SetupFlags,
}

const EXAMPLES: &str = "  vramscope diagnose train.log
      the error at its end, and the memory over its steps
  vramscope diagnose snapshot.pickle nvidia-smi.csv trace.json.gz
      several files, one answer
  nvidia-smi | vramscope diagnose - --format json
      for scripts
  vramscope diagnose error.txt --model llava-1.5-7b --batch 4 --seq 2048
      with the bytes that each change of the setup saves
  vramscope diagnose error.txt --launch train.yaml
      the same, with the file that started the run
  vramscope diagnose snapshot.pickle --recording run.vram.gz
      the first allocation that differs from what was recorded without a GPU";

/// The whole answer as JSON.
#[derive(Serialize)]
struct DiagnosisDocument<'a> {
    findings: Vec<WordedFinding<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    recorded: &'a [Comparison],
    #[serde(skip_serializing_if = "Option::is_none")]
    fixes: Option<&'a Fixes>,
    evidence: &'a [Understood],
}

/// A finding with its English text.
#[derive(Serialize)]
struct WordedFinding<'a> {
    code: &'static str,
    row: &'static str,
    title: String,
    numbers: Vec<String>,
    /// What to do, ready to paste.
    steps: Vec<String>,
    #[serde(flatten)]
    finding: &'a Finding,
}

impl Diagnose {
    /// Reads all files and writes the diagnosis.
    ///
    /// # Errors
    /// If a file cannot be read, no file contains evidence, or standard output cannot be written.
    pub fn run(self) -> Result<(), Failure> {
        let read = read_all(&self.files)?;
        let recorded = self.recorded(&read)?;
        let understood = understand(&read)?;
        let pieces: Vec<Piece> = understood.iter().map(|one| one.piece.clone()).collect();
        let setup = match self.known_setup()? {
            Some(known) => Some(known),
            None if self.recording.is_none() => self.setup_of_paste(&pieces),
            None => None,
        };
        let target = self.room.target()?;
        let context = Context {
            capacity: target.map(|target| capacity(&target)),
            report: match (&setup, &recorded) {
                (Some(known), _) => Some(&known.report),
                (None, Some((_, played))) => Some(&played.report),
                (None, None) => None,
            },
        };
        let mut findings = vramscope_diagnose::diagnose(&pieces, &context);
        let fixes = setup.as_ref().map(|known| known.fixes(room(target, &pieces)));
        if context.report.is_some() {
            findings
                .iter_mut()
                .for_each(|finding| finding.steps.retain(|step| *step != Action::NameSetup));
        }
        let english = words::Phrases::english();
        let answer = DiagnosisDocument {
            findings: findings
                .iter()
                .map(|finding| WordedFinding::of(finding, &english))
                .collect(),
            recorded: recorded.as_ref().map_or(&[], |(comparisons, _)| comparisons),
            fixes: fixes.as_ref(),
            evidence: &understood,
        };
        match self.format {
            Format::Text => {
                let read: Vec<(&str, &Piece)> = understood.iter().map(|one| (one.file.as_str(), &one.piece)).collect();
                let known = (context.report, fixes.as_ref());
                output::print(&text::diagnosis(&read, &findings, known, terminal::width()))?;
                let width = terminal::width();
                answer
                    .recorded
                    .iter()
                    .try_for_each(|one| output::print(&text::comparison(one, width)))
            }
            Format::Json | Format::Jsonl => {
                let is_line = matches!(self.format, Format::Jsonl);
                match (&setup, is_line) {
                    (Some(known), true) => output::print_json_line(&known.names.remarked(&answer)),
                    (Some(known), false) => output::print_json(&known.names.remarked(&answer)),
                    (None, true) => output::print_json_line(&answer),
                    (None, false) => output::print_json(&answer),
                }
            }
        }
    }

    /// The recording against every snapshot among what was read, and its own report.
    fn recorded(&self, read: &[(&Source, Contents)]) -> Result<Option<(Vec<Comparison>, Played)>, Failure> {
        let Some(source) = &self.recording else {
            return Ok(None);
        };
        let gpu = self.room.names_card().then(|| self.room.gpu()).transpose()?;
        let wrong = |error: RecordingError| failed(source, &error);
        let run = match (open(source, gpu)?, &self.at) {
            (Opened::Run(run), None) => *run,
            (Opened::Run(_), Some(_)) => return Err(holds_one(source)),
            (Opened::Sizes(all), at) => {
                let named = at.as_ref().map_or(&[][..], |at| &at.0);
                let point = all.point(named).map_err(wrong)?;
                all.at(&point, gpu).map_err(wrong)?
            }
        };
        let snapshots = read.iter().filter_map(|(_, contents)| match contents {
            Contents::Whole(bytes) => Snapshot::from_pickle(bytes).ok(),
            Contents::Parts(_) => None,
        });
        let snapshots: Vec<Snapshot> = snapshots.collect();
        if snapshots.is_empty() {
            return Err(Failure::Input(format!(
                "{source} is compared with memory snapshots, and none was given; add one that \
                 torch.cuda.memory._dump_snapshot wrote"
            )));
        }
        compare(run, &snapshots).map(Some).map_err(wrong)
    }

    fn known_setup(&self) -> Result<Option<Known>, Failure> {
        let Some(subject) = self.subject()? else {
            if !self.launch.is_given() && self.setup != SetupFlags::default() {
                return Err(Failure::Input(
                    "the flags of the training setup need a model: add --model NAME, --config FILE or --launch FILE"
                        .into(),
                ));
            }
            return Ok(None);
        };
        let gpu = self.room.gpu()?;
        let parallel = subject.parallel()?;
        let names = subject.names();
        let (model, setup) = subject.read(&self.setup)?;
        let report = predict(&model, &setup, parallel.as_ref(), gpu)?;
        Ok(Some(Known {
            names,
            model,
            setup,
            parallel,
            gpu,
            report,
        }))
    }

    /// The run of the command in a paste, if all that changes its memory is known; what it lacks is asked for by the
    /// findings.
    fn setup_of_paste(&self, pieces: &[Piece]) -> Option<Known> {
        let (name, launch) = launched(pieces)?;
        let mut subject = Subject::of_launch(Some(name.to_owned()), None, self.hub.offline());
        let facts = subject.facts(None).ok()?;
        let resolved = launch.resolve(facts);
        // Another run than the one of the paste is not simulated: sizes of pictures are in none.
        if facts.takes_images || !resolved.not_simulated.is_empty() || !resolved.missing.is_empty() {
            return None;
        }
        subject.launch(LaunchOfError::case(&resolved).ok()??, &resolved);
        let gpu = self.room.gpu().ok()?;
        let parallel = subject.parallel().ok()?;
        let names = subject.names();
        let (model, setup) = subject.read(&self.setup).ok()?;
        let report = predict(&model, &setup, parallel.as_ref(), gpu).ok()?;
        Some(Known {
            names,
            model,
            setup,
            parallel,
            gpu,
            report,
        })
    }

    /// The model by name, by its config.json or by the file that started the run.
    fn subject(&self) -> Result<Option<Subject>, Failure> {
        let (model, config) = (self.model.clone(), self.config.clone());
        let Some(launch) = self.launch.read()? else {
            return Ok(Subject::of(model, config, self.hub.clone()));
        };
        let mut subject = Subject::of_launch(model, config, self.hub.clone());
        subject.stand_at(self.launch.place(&launch));
        let facts = match subject.facts(launch.model()) {
            Ok(facts) => facts,
            // Without a model nothing is simulated; the error is still read.
            Err(why) => {
                anstream::eprintln!(
                    "note: {why}\nnothing is simulated; add --model NAME or --config FILE (`vramscope models` lists names)"
                );
                return Ok(None);
            }
        };
        let resolved = launch.resolve(facts);
        let Some(case) = LaunchOfError::case(&resolved)? else {
            return Ok(None);
        };
        subject.launch(case, &resolved);
        Ok(Some(subject))
    }
}

/// The simulated run of the named model and setup.
struct Known {
    /// What found the model, with what was said of it.
    names: Arc<Names>,
    model: Model,
    setup: Setup,
    parallel: Option<Parallel>,
    gpu: Gpu,
    report: Report,
}

impl Known {
    fn fixes(&self, room: Option<Room<'static>>) -> Fixes {
        let now = Now::of(&self.report);
        let changes = WhatIf::new(self.model.clone(), self.setup.clone(), self.gpu, room, now);
        Fixes::of(match self.parallel {
            Some(parallel) => changes.on_several(parallel, simulate_parallel),
            None => changes,
        })
    }
}

impl<'a> WordedFinding<'a> {
    fn of(finding: &'a Finding, english: &words::Phrases) -> Self {
        let numbers = words::evidence(&finding.cause);
        let advice = finding.advice.iter().map(|(_, said)| english.text_of(said));
        let steps = finding.steps.iter().map(|step| english.text_of(&words::step(*step)));
        Self {
            code: finding.cause.code(),
            row: finding.row(),
            title: english.text_of(&words::title(&finding.cause, finding.confidence)),
            numbers: numbers.iter().map(|said| english.text_of(said)).collect(),
            steps: advice.chain(steps).collect(),
            finding,
        }
    }
}

fn capacity(target: &Target) -> Bytes {
    match *target {
        Target::Card(device) => Device::usable(device),
        Target::Limit(bytes) => bytes,
    }
}

/// Memory against which changes are judged: the named target, or else the memory available to PyTorch according to the
/// error, which is reserved plus free memory.
fn room(target: Option<Target>, pieces: &[Piece]) -> Option<Room<'static>> {
    let told = || {
        pieces.iter().find_map(|piece| match &piece.evidence {
            Evidence::Oom(message) => {
                let bytes = message.reserved_in_all()?.bytes + message.free?.bytes;
                Some(Room::Allocator(bytes))
            }
            _ => None,
        })
    };
    target.map(|target| target.room()).or_else(told)
}

#[cfg(test)]
mod tests {
    use vramscope_diagnose::Cause;

    use super::*;

    #[test]
    fn an_error_tells_what_pytorch_can_have() {
        let text = b"CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.89 GiB free; 21.50 GiB reserved in total by PyTorch)";
        let pieces = vramscope_diagnose::read(text).expect("an error");
        let Some(Room::Allocator(bytes)) = room(None, &pieces) else {
            panic!()
        };
        assert_eq!((bytes.as_gib() * 100.0).round(), 2339.0);
        let findings = vramscope_diagnose::diagnose(&pieces, &Context::default());
        assert!(
            findings
                .iter()
                .any(|finding| matches!(finding.cause, Cause::OutOfCapacity { .. }))
        );
    }
}
