//! `vramscope models`: lists the known models, or prints a configuration.

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use vramscope_engine::Model;
use vramscope_hub::{CachedModel, Hub, Place};

use crate::commands::examples;
use crate::failure::Failure;
use crate::input::hub::HubFlags;
use crate::output::list::{self, Edge};
use crate::output::{self, Format};

/// List the models known by name, or print one's config.json
///
/// Any other model of these families is given as its id at a hub, its folder or its config.json. Of an id that is not known
/// here, the hub is asked for these files by name, and for the number of its parameters, and for nothing else: config.json,
/// preprocessor_config.json, processor_config.json, adapter_config.json. Nothing of your run is sent. What it answers is kept
/// for a day before it is asked again, and without a network for good.
#[derive(Debug, Args)]
#[command(after_help = examples(EXAMPLES))]
pub struct Models {
    /// Print the config.json of this model: a name, an id (owner/name), an address, a folder
    name: Option<String>,
    /// List the models whose config.json was read from a hub and kept
    #[arg(long, conflicts_with = "name")]
    cached: bool,
    /// Remove a model from those that were kept
    #[arg(long, value_name = "ID", conflicts_with_all = ["name", "cached"])]
    forget: Option<String>,
    /// Write the config.json of the model into a folder, and print its path: for programs that read folders
    #[arg(long, requires = "name")]
    folder: bool,
    /// The id is ModelScope's
    #[arg(long, requires = "name")]
    modelscope: bool,
    #[command(flatten)]
    hub: HubFlags,
    /// Output format
    #[arg(long, value_enum, default_value = "text", conflicts_with = "name")]
    format: Format,
}

const EXAMPLES: &str = "  vramscope models
  vramscope models llava-1.5-7b > config.json
      a start for a model of one's own: change it, then vramscope estimate --config config.json
  vramscope models Qwen/Qwen3-4B-Thinking-2507
      the same for any id of a hub
  vramscope models --cached
      what was read from a hub and is kept";

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    /// Name of the architecture in transformers.
    model_type: String,
}

impl Models {
    /// Writes the list, or one configuration.
    ///
    /// # Errors
    /// If no model has the name, or standard output cannot be written.
    pub fn run(self) -> Result<(), Failure> {
        let names = self.hub.names();
        if let Some(name) = self.name {
            let place = Place {
                hub: if self.modelscope {
                    Hub::ModelScope
                } else {
                    Hub::HuggingFace
                },
                ..Place::default()
            };
            return match self.folder {
                true => output::print(&format!("{}\n", names.model_folder(&name, &place)?.display())),
                false => output::print(&names.find(&name, &place)?.config),
            };
        }
        if let Some(id) = self.forget {
            return match names.forget(&id)? {
                0 => Err(Failure::Input(format!(
                    "{id} is not kept; `vramscope models --cached` lists what is"
                ))),
                _ => Ok(()),
            };
        }
        if self.cached {
            return print_cached(&names.cached(), self.format);
        }
        let entries: Vec<Entry> = Model::catalogue().into_iter().map(Entry::of).collect();
        match self.format {
            Format::Text => output::print(&text(&entries)),
            Format::Json => output::print_json(&entries),
            Format::Jsonl => entries.iter().try_for_each(output::print_json_line),
        }
    }
}

impl Entry {
    fn of(name: &'static str) -> Self {
        let config: Option<Value> = Model::catalogue_config(name)
            .ok()
            .and_then(|text| serde_json::from_str(text).ok());
        let model_type = config.and_then(|config| config.get("model_type")?.as_str().map(String::from));
        Self {
            name,
            model_type: model_type.unwrap_or_default(),
        }
    }
}

/// An entry of the cache as JSON.
#[derive(Serialize)]
struct CachedEntry<'a> {
    name: &'a str,
    model_type: &'a str,
    host: &'a str,
    age_days: u64,
}

fn print_cached(all: &[CachedModel], format: Format) -> Result<(), Failure> {
    let entries: Vec<CachedEntry<'_>> = all
        .iter()
        .map(|model| CachedEntry {
            name: &model.name,
            model_type: &model.model_type,
            host: &model.host,
            age_days: model.age_days,
        })
        .collect();
    match format {
        Format::Text if entries.is_empty() => output::print("nothing is kept yet\n"),
        Format::Text => {
            let rows: Vec<_> = entries
                .iter()
                .map(|entry| {
                    let age = match entry.age_days {
                        0 => "today".to_owned(),
                        1 => "a day ago".to_owned(),
                        days => format!("{days} days ago"),
                    };
                    [entry.name.into(), entry.model_type.into(), entry.host.into(), age]
                })
                .collect();
            let columns = ["model", "architecture", "from", "asked"].map(|title| (title, Edge::Left));
            output::print(&list::render(columns, &rows))
        }
        Format::Json => output::print_json(&entries),
        Format::Jsonl => entries.iter().try_for_each(output::print_json_line),
    }
}

fn text(entries: &[Entry]) -> String {
    let rows: Vec<_> = entries
        .iter()
        .map(|entry| [entry.name.into(), entry.model_type.clone()])
        .collect();
    list::render([("model", Edge::Left), ("architecture", Edge::Left)], &rows)
}
