//! `vramscope watch`: shows a run beside its prediction, while it goes on.

mod differs;
mod predicted;
mod share;

use std::io::{IsTerminal, stdout};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::json;
use vramscope_engine::device::Device;
use vramscope_engine::tape::Gpu;

use crate::clock::clock_of;
use crate::commands::examples;
use crate::failure::Failure;
use crate::input::source::Source;
use crate::input::watched::{Header, Step, Watched};
use crate::output::{self, Format, terminal, text};
use predicted::{Predicted, Predictions};
pub use share::SharedRun;

/// Interval at which the file is read again.
const POLL: Duration = Duration::from_millis(500);

/// Show a run's memory and time beside the prediction, step by step, while it goes on
///
/// The run writes the file: give transformers' Trainer the callback vramscope.watching("run.jsonl"), or put
/// the steps of a loop into vramscope.Watch (pip install vramscope). What differs is said with its likely
/// cause: memory that grows, tensors that are held, fragments, another host.
#[derive(Debug, Args)]
#[command(after_help = examples(EXAMPLES))]
pub struct Watch {
    /// The file that the run writes
    file: PathBuf,
    /// Show what is there, and do not wait for more
    #[arg(long)]
    once: bool,
    /// The card, where the run does not name one that is known [default: the run's]
    #[arg(long, value_name = "NAME")]
    gpu: Option<String>,
    /// Kernels measured on the card: a record of `vramscope bench`
    #[arg(long, value_name = "FILE", value_parser = Source::parse)]
    kernels: Option<Source>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write what others may have of the run to a new file, and show all of it: sizes, setup, bytes and times. Nothing is
    /// sent
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    share: Option<PathBuf>,
}

const EXAMPLES: &str = "  vramscope watch run.jsonl
      beside a run that goes on, until it ends or Ctrl-C
  vramscope watch run.jsonl --once --kernels card.json
      what it took so far, with times from this card's record
  vramscope watch run.jsonl --once --format json
      for scripts
  vramscope watch run.jsonl --share qwen.json
      what others may have of it, for the ledger";

/// A step beside its prediction.
#[derive(Debug, Clone)]
pub struct Compared {
    /// The step.
    pub step: Step,
    /// Its prediction; `None` for the first step, in which optimizer states appear, and where there is none.
    pub predicted: Option<Predicted>,
}

/// A run beside its prediction.
pub struct Comparison {
    /// The run.
    pub header: Header,
    /// Its steps.
    pub compared: Vec<Compared>,
    /// Reason for which steps have no prediction.
    pub reason: Option<String>,
    /// Sentences on what differs.
    pub differs: Vec<String>,
    /// True if the run has ended.
    pub is_ended: bool,
    /// Sources of the times.
    pub sources: Option<[String; 2]>,
}

impl Watch {
    /// Shows the run, again and again while it goes on if a person looks.
    ///
    /// # Errors
    /// If the file cannot be read or is of no run, or the card is not known.
    pub fn run(self) -> Result<(), Failure> {
        let follows = !self.once && self.share.is_none() && self.format == Format::Text && stdout().is_terminal();
        let mut predictions = None;
        let mut drawn = 0;
        loop {
            let watched = self.read()?;
            let is_ended = watched.is_ended;
            if let Some(comparison) = self.compare(watched, &mut predictions)? {
                if let Some(path) = &self.share {
                    return SharedRun::of(&comparison).write(path);
                }
                if !follows {
                    return self.print(&comparison);
                }
                let shown = text::watch(&comparison, terminal::width());
                output::print(&format!("{}{shown}", above(drawn)))?;
                drawn = shown.lines().count();
                if is_ended {
                    return Ok(());
                }
            } else if !follows {
                return Err(Failure::Input(format!(
                    "{} has no completed step yet; try again after the run's first step",
                    self.file.display()
                )));
            }
            thread::sleep(POLL);
        }
    }

    fn read(&self) -> Result<Watched, Failure> {
        let text = Source::File(self.file.clone()).read_text()?;
        Watched::read(&text).map_err(|failure| Failure::Input(format!("{}: {failure}", self.file.display())))
    }

    /// Compares what is there; `None` before the first step.
    fn compare(&self, watched: Watched, kept: &mut Option<Predictions>) -> Result<Option<Comparison>, Failure> {
        let Watched {
            header: Some(header),
            steps,
            is_ended,
        } = watched
        else {
            return Ok(None);
        };
        let predictions = match kept {
            Some(predictions) => predictions,
            None => kept.insert(self.predictions(&header)?),
        };
        let mut reason = None;
        let compared: Vec<Compared> = steps
            .into_iter()
            .map(|step| {
                let predicted = (step.step > 1).then(|| predictions.of(&step.shape));
                let predicted = predicted.and_then(|predicted| predicted.map_err(|why| reason = Some(why)).ok());
                Compared { step, predicted }
            })
            .collect();
        Ok(Some(Comparison {
            differs: differs::differs(&header, &compared, self.kernels.is_some()),
            sources: predictions.sources().map(|sources| sources.map(str::to_owned)),
            header,
            compared,
            reason,
            is_ended,
        }))
    }

    /// Prepares predictions for the run's card.
    fn predictions(&self, header: &Header) -> Result<Predictions, Failure> {
        let named = self
            .gpu
            .as_deref()
            .map(|name| Device::by_name(name).map_err(Failure::input));
        let of_run = || header.gpu.as_deref().and_then(|name| Device::by_name(name).ok());
        let card = named.transpose()?.or_else(of_run);
        let clock = card
            .map(|card| clock_of(card, self.kernels.as_ref()))
            .transpose()?
            .flatten();
        let gpu = card.and_then(Device::gpu).unwrap_or(Gpu::H200);
        Ok(Predictions::new(header, gpu, clock))
    }

    fn print(&self, comparison: &Comparison) -> Result<(), Failure> {
        match self.format {
            Format::Text => output::print(&text::watch(comparison, terminal::width())),
            Format::Json => output::print_json(&answer(comparison)),
            Format::Jsonl => output::print_json_line(&answer(comparison)),
        }
    }
}

/// Moves the cursor up over what was drawn before, and clears it.
fn above(lines: usize) -> String {
    match lines {
        0 => String::new(),
        lines => format!("\x1b[{lines}F\x1b[J"),
    }
}

/// The comparison as an object; bytes are integers.
fn answer(comparison: &Comparison) -> impl Serialize + use<> {
    let steps: Vec<_> = comparison
        .compared
        .iter()
        .map(|Compared { step, predicted }| {
            json!({
                "step": step.step,
                "batch": step.shape.batch,
                "seq": step.shape.seq,
                "measured": {"peak": step.peak, "reserved": step.reserved, "end": step.end, "ms": step.ms},
                "predicted": predicted.map(|p| json!({
                    "peak": p.peak, "reserved": p.reserved, "end": p.end, "ms": p.time.map(|time| time.ms),
                })),
            })
        })
        .collect();
    json!({
        "gpu": comparison.header.gpu,
        "case": comparison.header.case,
        "steps": steps,
        "reason": comparison.reason,
        "differs": comparison.differs,
        "ended": comparison.is_ended,
    })
}
