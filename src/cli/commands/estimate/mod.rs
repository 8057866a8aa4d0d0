//! `vramscope estimate`: predicts memory and time of a training setup.

mod against;
mod batch;
mod dataset;
mod inference;
mod lengths;
mod numbers;
pub mod recorded;
mod single;

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use vramscope_time::Clock;

use self::inference::Phase;
use crate::clock::clock_of;
use crate::commands::examples;
use crate::failure::Failure;
use crate::input::count;
use crate::input::dataset::Data;
use crate::input::launch::LaunchFlags;
use crate::input::parallel_flags::ParallelFlags;
use crate::input::recorded::{OverrideFlags, Sizes};
use crate::input::room::RoomFlags;
use crate::input::setup_flags::SetupFlags;
use crate::input::source::Source;
use crate::input::subject::Subject;
use crate::input::time_flags::TimeFlags;
use crate::output::Format;

/// Show what one training step of a model holds in GPU memory
///
/// Simulates the step operation by operation, as eager PyTorch runs it, and tells the peak of each
/// phase, which phase holds the peak, what is live there, and whether a card has room for it.
#[derive(Debug, Args)]
#[command(
    override_usage = "vramscope estimate <MODEL | --config FILE | --case JSON | --cases FILE> [OPTIONS]\n       vramscope estimate --launch FILE.. [--against FILE..] [MODEL | --config FILE] [OPTIONS]\n       vramscope estimate --recording FILE [OPTIONS]",
    after_help = examples(EXAMPLES),
    allow_negative_numbers = true,
    group = ArgGroup::new("what").args(["model", "config", "case", "cases", "recording"]),
    group = ArgGroup::new("any").required(true).multiple(true).args(["model", "config", "case", "cases", "recording", "launch"]),
)]
pub struct Estimate {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    launch: LaunchFlags,
    /// A JSONL file of cases (see --case), or - for standard input; prints one prediction per line
    #[arg(long, value_name = "FILE|-", value_parser = Source::parse, conflicts_with = "limit_gib")]
    cases: Option<Source>,
    /// A training script's own steps, recorded without a GPU (see `vramscope record`), or those of all sizes
    /// (`.sizes.gz`), or - for standard input
    #[arg(long, value_name = "FILE|-", value_parser = Source::parse)]
    recording: Option<Source>,
    /// Sizes of a recording that tells all of them, such as batch=4,seq=1024; given several times, one line each. --batch,
    /// --seq and --images do where sizes have these names [default: those of its first recording]
    #[arg(long, value_name = "NAME=N,..", requires = "recording", value_parser = Sizes::parse)]
    at: Vec<Sizes>,
    #[command(flatten)]
    overrides: OverrideFlags,
    #[command(flatten)]
    room: RoomFlags,
    /// The host's memory, which the weights, offloaded states and checkpoints of all its GPUs share
    #[arg(long, value_name = "GIB", conflicts_with_all = ["cases", "recording"])]
    host_gib: Option<f64>,
    /// Output format [default: text; jsonl with --cases]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// What the model does
    #[arg(long, value_enum, default_value = "train", conflicts_with_all = ["cases", "recording"])]
    phase: Phase,
    /// Tokens to generate, with --phase generate
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = count::size, conflicts_with_all = ["cases", "recording"])]
    new_tokens: u64,
    #[command(flatten)]
    parallel: ParallelFlags,
    #[command(flatten)]
    time: TimeFlags,
    /// The run's dataset, a file or a folder (JSON Lines, JSON, CSV, Parquet), from which lengths and images of samples come;
    /// or how it comes: milliseconds a sample of read, decode, resize, normalise, augment and collate (by workers), copy
    /// (beside the step) and gpu (in the step), with the workers, batches ahead of each, and cores, such as
    /// read=4,decode=9,resize=3,workers=8,ahead=2,cores=16. Given twice, both
    #[arg(long, value_name = "FILE|STAGES", value_parser = Data::read)]
    data: Vec<Data>,
    /// The tokenizer.json that counts the tokens of --data, or its folder [default: the one beside the model's config.json, or
    /// in the hub's cache]
    #[arg(long, value_name = "FILE", requires = "data")]
    tokenizer: Option<PathBuf>,
    /// The file or folder of `data`.
    #[arg(skip)]
    dataset: Option<PathBuf>,
    #[command(flatten)]
    setup: SetupFlags,
}

const EXAMPLES: &str = "  vramscope estimate gpt2 --batch 8 --seq 1024
  vramscope estimate llava-1.5-7b --batch 4 --gpu 4090 --ckpt full --freeze lora
  vramscope estimate tinyllava-1.5b --images 2 --freeze vision --format json
  vramscope estimate Qwen/Qwen3-VL-8B-Thinking --freeze lora --gpu 4090
  vramscope estimate --config config.json --freeze lora --rank 64
  vramscope estimate --case '{\"model\": \"gpt2\", \"batch\": 8, \"optim\": \"sgd\"}'
  vramscope estimate llava-1.5-7b --strategy fsdp --world 8 --gpu H200
  vramscope estimate gpt2 --data read=1,decode=8,workers=8 --samples 1000000
  vramscope estimate qwen2-vl-2b --phase generate --new-tokens 512
  vramscope estimate llama3.1-8b --freeze qlora --gpu 4090 --host-gib 32
  vramscope estimate --launch train.yaml --gpu H200
  vramscope estimate --launch train.yaml --data train.jsonl --gpu 4090
  vramscope estimate --launch of_a.yaml --against of_b.sh --gpu 4090
  vramscope estimate --recording run.vram.gz --gpu H200
  vramscope estimate --recording run.sizes.gz --at batch=4,seq=512
  vramscope estimate --cases training_steps.jsonl > predictions.jsonl";

impl Estimate {
    /// The estimate of a run that another command was given, on what it has to fit.
    pub fn of(
        subject: Subject,
        launch: LaunchFlags,
        (room, parallel, setup): (RoomFlags, ParallelFlags, SetupFlags),
    ) -> Self {
        Self {
            subject,
            launch,
            cases: None,
            recording: None,
            at: Vec::new(),
            overrides: OverrideFlags::default(),
            room,
            host_gib: None,
            format: None,
            phase: Phase::Train,
            new_tokens: 0,
            parallel,
            time: TimeFlags::default(),
            data: Vec::new(),
            tokenizer: None,
            dataset: None,
            setup,
        }
    }

    /// Takes lengths and images from a dataset, if one is given; `tokenizer` counts its tokens, or else the model's own.
    pub fn with_dataset(self, dataset: Option<PathBuf>, tokenizer: Option<PathBuf>) -> Self {
        Self {
            dataset,
            tokenizer,
            ..self
        }
    }

    /// Source of times for the named card, or for the reference card.
    fn clock(&self) -> Result<Option<Clock>, Failure> {
        let clock = clock_of(self.room.card_or_reference()?, self.time.kernels.as_ref())?;
        let network = self.time.link()?;
        Ok(clock.map(|clock| clock.over(network)))
    }

    /// Tells apart the two that `--data` may be.
    fn take_data(&mut self) -> Result<(), Failure> {
        for data in std::mem::take(&mut self.data) {
            match data {
                Data::Feed(feed) => self.time.data = Some(feed),
                Data::File(path) => self.dataset = Some(path),
            }
        }
        let has_other_samples = self.cases.is_some() || self.recording.is_some() || self.phase != Phase::Train;
        match self.dataset.is_some() && has_other_samples {
            true => Err(Failure::Input(
                "--data FILE gives the samples of a training step; --cases, --recording and --phase have their own"
                    .into(),
            )),
            false => Ok(()),
        }
    }

    /// Predicts one setup or a file of cases.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run(mut self) -> Result<(), Failure> {
        self.take_data()?;
        if let Some(source) = self.recording.take() {
            return self.run_recorded(&source);
        }
        match self.cases.take() {
            Some(_) if self.setup != SetupFlags::default() || self.parallel != ParallelFlags::default() => {
                Err(Failure::Input(
                    "--cases takes each setup from its own line; leave the flags of the training setup out".into(),
                ))
            }
            Some(source) => {
                let card = batch::Card {
                    gpu: self.room.gpu()?,
                    outside: self.room.outside()?,
                    clock: self.clock()?,
                };
                batch::run(
                    source,
                    &self.subject.names(),
                    &card,
                    self.format.unwrap_or(Format::Jsonl),
                )
            }
            None if self.phase == Phase::Train => match self.launch.read_against(self.room.has_bf16()?)? {
                Some(other) => self.run_against(&other),
                None => self.run_single(),
            },
            None => {
                let phase = self.phase;
                self.run_inference(phase)
            }
        }
    }
}
