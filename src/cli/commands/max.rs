//! `vramscope max`: finds the largest value of one setting that fits, and what limits it.

use clap::{ArgGroup, Args};
use serde::Serialize;
use vramscope_engine::Setup;
use vramscope_engine::device::Device;
use vramscope_engine::format::{gib, grouped};
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Room;
use vramscope_plan::{Axis, LargestValue, Limit, Sweep};

use crate::commands::examples;
use crate::failure::Failure;
use crate::input::room::RoomFlags;
use crate::input::setup_flags::SetupFlags;
use crate::input::subject::Subject;
use crate::output::{self, Format};
use crate::predict::guarded;

/// Find the largest batch, length, image, number of images, frames or rank that fits, and what limits it
///
/// Each value is simulated whole, as `estimate` does. What limits it is memory; or, at any memory, the model's positions
/// or its processor. `max-batch` looks for the largest batch by training step after step under the limit.
#[derive(Debug, Args)]
#[command(
    override_usage = "vramscope max <WHAT> <MODEL | --config FILE | --case JSON> --gpu NAME [OPTIONS]",
    after_help = examples(EXAMPLES),
    allow_negative_numbers = true,
    group = ArgGroup::new("model-of").required(true).args(["model", "config", "case"]),
)]
pub struct Max {
    /// What to look for: batch, length, image (side in pixels), images, frames, rank
    #[arg(value_parser = what)]
    what: Axis,
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    room: RoomFlags,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    setup: SetupFlags,
}

const EXAMPLES: &str = "  vramscope max length qwen2.5-vl-7b --freeze lora --ckpt full --gpu 4090
  vramscope max image qwen2.5-vl-3b --seq 4096 --gpu h100
  vramscope max rank llama3.1-8b --freeze lora --limit-gib 23.5";

/// Name of a setting for people beside its key.
const LENGTH: &str = "length";

fn what(text: &str) -> Result<Axis, String> {
    let key = if text == LENGTH { "seq" } else { text };
    Axis::all().find(|axis| axis.name() == key).ok_or_else(|| {
        let names = Axis::all().map(word);
        format!("give one of {}", names.collect::<Vec<_>>().join(", "))
    })
}

fn word(axis: Axis) -> &'static str {
    match axis {
        Axis::SEQ => LENGTH,
        axis => axis.name(),
    }
}

/// The answer for scripts.
#[derive(Debug, Serialize)]
struct Document<'a> {
    what: &'a str,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    needed: Option<Bytes>,
    room: Bytes,
    /// `memory`, `setup` or `untried`.
    limited_by: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Max {
    /// Finds the value.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run(self) -> Result<(), Failure> {
        let Some(target) = self.room.target()? else {
            return Err(Failure::Input(
                "name what it has to fit: --gpu NAME (vramscope gpus lists them) or --limit-gib X".into(),
            ));
        };
        let axis = self.what;
        let card: (&'static Device, Room<'static>) = (self.room.card_or_reference()?, target.room());
        let parallel = self.subject.parallel()?;
        let (models, setup) = self.subject.models(&self.setup)?;
        let model = models.of(&setup).map_err(Failure::input)?;
        if !axis.applies(&model, &setup) {
            let what = word(axis);
            return Err(Failure::Input(format!(
                "{what}: {} has none with this setup; `rank` needs --freeze lora or qlora",
                model.name
            )));
        }
        let values = axis.values(&model, axis.value(&model, &setup), axis.most());
        let bounds = (axis.unit(&model), axis.most());
        let sweep = Sweep::new(
            |setup: &Setup| models.of(setup),
            setup,
            axis,
            card,
            card.1.bytes(),
            values,
        );
        let mut sweep = sweep.on_several(parallel);
        let found = guarded(|| Ok(sweep.largest(bounds, card)))?.map_err(Failure::input)?;
        match self.format {
            Format::Text => output::print(&render(axis, &model.name, card, bounds.0, &found)),
            Format::Json => output::print_json(&document(axis, &model.name, card, &found)),
            Format::Jsonl => output::print_json_line(&document(axis, &model.name, card, &found)),
        }
    }
}

fn document<'a>(axis: Axis, model: &'a str, card: (&Device, Room<'_>), found: &LargestValue) -> Document<'a> {
    let (limited_by, reason) = match &found.limit {
        Limit::Memory => ("memory", None),
        Limit::Refused(why) => ("setup", Some(why.to_string())),
        Limit::Untried => ("untried", None),
    };
    Document {
        what: axis.name(),
        model,
        max: found.found.map(|(value, _)| value),
        needed: found.found.map(|(_, needed)| needed.needed),
        room: card.1.bytes(),
        limited_by,
        reason,
    }
}

fn render(axis: Axis, model: &str, (_, room): (&Device, Room<'_>), unit: u64, found: &LargestValue) -> String {
    let (what, name, has) = (word(axis), room.name(), gib(room.bytes()));
    let answer = match found.found {
        Some((value, needed)) => format!(
            "{model}: {what} {} fits {name}: needs {} of {has}",
            grouped(value),
            gib(needed.needed)
        ),
        None => format!("{model}: no {what} fits {name}, which has {has}"),
    };
    let next = found.found.map_or(unit, |(value, _)| value + unit);
    let limit = match &found.limit {
        Limit::Memory => format!("Limited by memory: {} does not fit.", grouped(next)),
        Limit::Refused(why) => format!("Not limited by memory: at {}, {why}.", grouped(next)),
        Limit::Untried => format!("Larger values than {} are not tried.", grouped(axis.most())),
    };
    format!("{answer}\n{limit}\n")
}
