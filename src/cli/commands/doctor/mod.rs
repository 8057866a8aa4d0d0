//! `vramscope doctor`: what was found here, what is missing, and what to do. For a person, and for reports of faults.

mod document;
mod found;
mod text;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub use self::document::DoctorDocument;
use crate::commands::examples;
use crate::failure::Failure;
use crate::output::{self, terminal};

/// Show versions, the card, Python and its libraries: what was found, what is missing and what to do
///
/// Everything that a report of a fault needs. Nothing is sent, no network is asked, and no token is shown.
#[derive(Debug, Args)]
#[command(after_help = examples(EXAMPLES))]
pub struct Doctor {
    /// The Python to look at, or the folder of its environment [default: the active environment, else python3 of PATH]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: DoctorFormat,
}

/// Format of the result of `doctor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DoctorFormat {
    /// For people, and to be pasted
    Text,
    /// One JSON document (`vramscope schema doctor`)
    Json,
}

const EXAMPLES: &str = "  vramscope doctor
  vramscope doctor --python ./venv --format json";

impl Doctor {
    /// Looks around and writes what was found.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn run(self) -> Result<(), Failure> {
        let document = found::look(self.python.as_deref());
        match self.format {
            DoctorFormat::Text => output::print(&text::render(&document, terminal::width())),
            DoctorFormat::Json => output::print_json(&document),
        }
    }
}
