//! `vramscope man`: manual pages of all commands.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory};

use crate::Cli;
use crate::commands::examples;
use crate::failure::Failure;

/// Write manual pages, one for each command
#[derive(Debug, Args)]
#[command(after_help = examples(EXAMPLES))]
pub struct Man {
    /// The folder to write them to, which is made if it is not there
    folder: PathBuf,
}

const EXAMPLES: &str = "  vramscope man ~/.local/share/man/man1
      then: man vramscope, man vramscope-estimate";

impl Man {
    /// Writes the pages.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn run(self) -> Result<(), Failure> {
        let failed = |error| Failure::Input(format!("{}: {error}", self.folder.display()));
        fs::create_dir_all(&self.folder).map_err(failed)?;
        // Pages are for any terminal, so nothing is wrapped to this one.
        clap_mangen::generate_to(Cli::command().disable_help_subcommand(true), &self.folder).map_err(failed)
    }
}
