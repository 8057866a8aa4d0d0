//! `vramscope schema`: the JSON schema of a result, for programs that read it.

use clap::{Args, ValueEnum};
use schemars::{Schema, schema_for};

use crate::commands::doctor::DoctorDocument;
use crate::commands::examples;
use crate::commands::watch::SharedRun;
use crate::failure::Failure;
use crate::output;
use crate::output::reports::CheckDocument;

/// Print the JSON schema of what a command writes
#[derive(Debug, Args)]
#[command(after_help = examples(EXAMPLES))]
pub struct SchemaOf {
    /// The command
    of: Of,
}

/// What has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Of {
    /// `check --format json`
    Check,
    /// `doctor --format json`
    Doctor,
    /// The record of a card that `bench` writes
    Bench,
    /// The run that `watch --share` writes
    Run,
}

const EXAMPLES: &str = "  vramscope schema check > check.schema.json
  vramscope schema bench";

impl SchemaOf {
    /// Writes the schema to standard output.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn run(self) -> Result<(), Failure> {
        let schema: Schema = match self.of {
            Of::Check => schema_for!(CheckDocument),
            Of::Doctor => schema_for!(DoctorDocument),
            Of::Run => schema_for!(SharedRun),
            Of::Bench => return output::print_exactly(vramscope_benchmark::SCHEMA),
        };
        output::print_json(&schema)
    }
}
