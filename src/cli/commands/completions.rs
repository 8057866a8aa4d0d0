//! `vramscope completions`: writes a shell's completion script.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::commands::examples;
use crate::failure::Failure;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = examples(EXAMPLES))]
pub struct Completions {
    /// The shell that should complete `vramscope`
    shell: Shell,
}

const EXAMPLES: &str = "  vramscope completions bash > ~/.local/share/bash-completion/completions/vramscope
  vramscope completions zsh > ~/.zfunc/_vramscope
  vramscope completions fish > ~/.config/fish/completions/vramscope.fish";

impl Completions {
    /// Writes the script to standard output.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn run(self) -> Result<(), Failure> {
        // clap_complete panics if its writer fails, so it writes to memory first.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "vramscope", &mut script);
        let mut out = std::io::stdout().lock();
        out.write_all(&script)?;
        Ok(out.flush()?)
    }
}
