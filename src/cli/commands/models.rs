use clap::Args;
use serde::Serialize;
use vramscope_engine::Model;

use crate::failure::Failure;
use crate::output::{self, Format};

/// List the models known by name
///
/// Any other model of a supported family is read from its config.json: vramscope estimate --config.
#[derive(Debug, Args)]
pub struct Models {
    /// Form of the list
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
}

impl Models {
    /// Writes the list.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn run(self) -> Result<(), Failure> {
        let entries: Vec<Entry> = Model::catalogue().into_iter().map(|name| Entry { name }).collect();
        match self.format {
            Format::Text => entries
                .iter()
                .try_for_each(|entry| output::print(&format!("{}\n", entry.name))),
            Format::Json => output::print_json(&entries),
            Format::Jsonl => entries.iter().try_for_each(output::print_line),
        }
    }
}
