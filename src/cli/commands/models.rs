//! `vramscope models`: lists the known models, or prints a configuration.

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use vramscope_engine::Model;

use crate::commands::examples;
use crate::failure::Failure;
use crate::output::list::{self, Edge};
use crate::output::{self, Format};

/// List the models known by name, or print one's config.json
///
/// Any other model of these families is read from its own config.json: vramscope estimate --config.
#[derive(Debug, Args)]
#[command(after_help = examples(EXAMPLES))]
pub struct Models {
    /// Print the config.json of this model
    name: Option<String>,
    /// Form of the list
    #[arg(long, value_enum, default_value = "text", conflicts_with = "name")]
    format: Format,
}

const EXAMPLES: &str = "  vramscope models
  vramscope models llava-1.5-7b > config.json
      a start for a model of one's own: change it, then vramscope estimate --config config.json";

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
        if let Some(name) = self.name {
            return output::print(Model::catalogue_config(&name).map_err(Failure::input)?);
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

fn text(entries: &[Entry]) -> String {
    let rows: Vec<_> = entries
        .iter()
        .map(|entry| [entry.name.into(), entry.model_type.clone()])
        .collect();
    list::render([("model", Edge::Left), ("architecture", Edge::Left)], &rows)
}
