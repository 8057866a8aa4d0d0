//! `vramscope plan`: recommends a setup for the available hardware.

mod search;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args};
use vramscope_plan::export::ExportFormat;
use vramscope_plan::search::{Entry, Samples, Space, inputs};
use vramscope_plan::{Judge, Plan as Answer, Target};
use vramscope_time::Clock;

use crate::clock::clock_of;
use crate::commands::examples;
use crate::failure::Failure;
use crate::input::count;
use crate::input::room::{self, RoomFlags};
use crate::input::setup_flags::SetupFlags;
use crate::input::source::Source;
use crate::input::subject::Subject;
use crate::output::{self, Format, terminal, text};
use crate::predict::guarded;

/// Recommend setups for a model, a card and a target
///
/// What the setup's flags give stays as it is; everything else may change: precision, optimizer, checkpointing,
/// attention, what is trained, the loss, and micro-batch with accumulation. The nearest to what was asked that trains
/// is recommended, then the fastest, with a reason, the bytes and the time of each change.
#[derive(Debug, Args)]
#[command(
    override_usage = "vramscope plan <MODEL | --config FILE | --case JSON> <--gpu NAME | --limit-gib X> [OPTIONS]",
    after_help = examples(EXAMPLES),
    allow_negative_numbers = true,
    group = ArgGroup::new("what").required(true).args(["model", "config", "case"]),
)]
pub struct Plan {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    room: RoomFlags,
    /// GPUs that train together, all of this card
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count::up_to(4096))]
    gpus: u64,
    /// Samples of an optimizer step on all GPUs; without it, one micro-batch of as many as fit
    #[arg(long, value_name = "N", value_parser = count::up_to(65_536))]
    effective: Option<u64>,
    /// Part of the allocator's memory that stays free, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    margin: f64,
    /// Settings to keep fixed, in addition to those given as flags
    #[arg(long, value_name = "ENTRY,..", value_delimiter = ',', value_parser = entry)]
    keep: Vec<Entry>,
    /// Entries that may change although a flag gives them
    #[arg(long, value_name = "ENTRY,..", value_delimiter = ',', value_parser = entry)]
    free: Vec<Entry>,
    /// What may change too: resolution, images, frames (smaller samples), offload (states in the host's memory)
    #[arg(long, value_name = "ENTRY,..", value_delimiter = ',', value_parser = entry)]
    allow: Vec<Entry>,
    /// Setups that are shown of those that no other one beats
    #[arg(long, value_name = "N", default_value_t = 8)]
    most: usize,
    /// Print the recommended setup as the configuration of a tool
    #[arg(long, value_name = "FORM", value_parser = export_formats(), conflicts_with = "format")]
    export: Option<ExportFormat>,
    /// Times of kernels: a record of `vramscope bench`, or a file of measured kernels
    #[arg(long, value_name = "FILE", value_parser = Source::parse)]
    kernels: Option<Source>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    setup: SetupFlags,
}

const EXAMPLES: &str = "  vramscope plan qwen2.5-vl-7b --gpu 4090 --effective 32 --image-sizes 720x1280
  vramscope plan llava-1.5-7b --gpu 4090 --freeze lora
  vramscope plan llava-1.5-7b --gpu H200 --gpus 8 --effective 64
  vramscope plan gpt2 --limit-gib 4 --seq 512 --keep optim,precision
  vramscope plan gpt2 --limit-gib 4 --seq 512 --export hf-yaml > args.yaml";

/// Parser of export formats, with a description of each.
fn export_formats() -> impl TypedValueParser<Value = ExportFormat> {
    let about = |form| match form {
        ExportFormat::HfPython => "transformers.TrainingArguments, as Python",
        ExportFormat::HfYaml => "The same as YAML for HfArgumentParser",
        ExportFormat::Accelerate => "accelerate's configuration file",
        ExportFormat::Deepspeed => "DeepSpeed's JSON",
        ExportFormat::Fsdp => "accelerate's configuration file for FSDP2",
        ExportFormat::Lightning => "PyTorch Lightning's Trainer, YAML for LightningCLI",
        ExportFormat::Trl => "trl's SFTConfig, YAML",
        ExportFormat::LlamaFactory => "LLaMA-Factory's YAML",
        ExportFormat::MsSwift => "ms-swift's YAML",
    };
    let values = ExportFormat::ALL.map(|form| PossibleValue::new(form.name()).help(about(form)));
    PossibleValuesParser::new(values).try_map(|name| {
        let found = ExportFormat::ALL.into_iter().find(|form| form.name() == name);
        found.ok_or("no such form")
    })
}

fn entry(name: &str) -> Result<Entry, String> {
    Entry::named(name.trim()).ok_or_else(|| {
        let names: Vec<&str> = Entry::ALL.into_iter().map(Entry::name).collect();
        format!("an entry is one of {}", names.join(", "))
    })
}

impl Plan {
    /// Searches for setups, replays them through the allocator, and writes the plan.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run(self) -> Result<(), Failure> {
        let target = self.room.target()?.ok_or_else(|| {
            Failure::Input("name what it has to fit: --gpu NAME (vramscope gpus lists them) or --limit-gib X".into())
        })?;
        let limit = self.room.for_allocator_of(self.gpus)?.unwrap_or_default();
        let planned = room::less_margin(limit, self.margin)?;
        let card = self.room.card_or_reference()?;
        let kept = self.kept();
        let clock = clock_of(card, self.kernels.as_ref())?;
        let costs = clock.as_ref().map(Clock::costs);
        let names = self.subject.names();
        let (models, setup) = self.subject.models(&self.setup)?;
        let allowed: Vec<Entry> = Entry::ALL.into_iter().filter(|entry| !kept.contains(entry)).collect();
        let inputs = inputs(|setup| models.of(setup), &setup, &allowed).map_err(Failure::input)?;
        let name = inputs[0].model.name.clone();
        let space = Space::around(inputs, Samples::of(self.effective), self.gpus, &kept);
        if let Some(why) = space.refusal() {
            return Err(Failure::Input(format!("{why} (--effective, --gpus, --batch)")));
        }
        let found = search::run(&space, Some(card), costs.as_ref(), planned)?;
        let judge = Judge {
            space: &space,
            device: Some(card),
            costs: costs.as_ref(),
            limit: planned,
        };
        let wanted = Target {
            model: &name,
            limit,
            most: self.most,
            card: matches!(target, output::target::Target::Card(_)).then_some(card),
        };
        let answer = guarded(|| Answer::new(&judge, found, &wanted))?;
        if let Some(form) = self.export {
            return export(&answer, form);
        }
        match self.format {
            Format::Text => {
                let sources = clock.as_ref().map(Clock::sources);
                output::print(&text::plan(&answer, sources, terminal::width()))
            }
            Format::Json => output::print_json(&names.remarked(&answer)),
            Format::Jsonl => output::print_json_line(&names.remarked(&answer)),
        }
    }

    /// Settings that keep their values.
    fn kept(&self) -> Vec<Entry> {
        let of_setup = self.setup.entries();
        let stays = |entry: &Entry| {
            let given = of_setup.contains(entry) || self.keep.contains(entry);
            let asked_for = entry.is_asked_for() && !self.allow.contains(entry);
            (given && !self.free.contains(entry)) || (asked_for && !self.free.contains(entry))
        };
        Entry::ALL.into_iter().filter(stays).collect()
    }
}

fn export(answer: &Answer, form: ExportFormat) -> Result<(), Failure> {
    let Some(best) = &answer.recommended else {
        return Err(Failure::Input(
            "nothing fits, so there is nothing to export; run without --export to see what stands in the way".into(),
        ));
    };
    let text = form.write(answer, best).map_err(Failure::Input)?;
    output::print(&text)
}
