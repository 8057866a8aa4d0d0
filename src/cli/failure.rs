//! Errors of commands and their exit codes.

use std::fmt;
use std::io;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

/// Error that ends a command, which determines its exit code.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The input is wrong; the text says what was given, what is allowed, and what to do. Exit code 2.
    #[error("{0}")]
    Input(String),
    /// The input is right, and nothing can be said of it here; the text says why, and the command that finds out. Exit
    /// code 4.
    #[error("{0}")]
    NotKnown(String),
    /// Something failed that is not the input's fault. Exit code 1.
    #[error("{0}")]
    Broken(String),
    /// A program that ran on behalf of this one failed and has printed why. Exit code: its own.
    #[error("a program ended with exit code {0}")]
    Told(u8),
    /// The answer was shown, and its verdict is an exit code (`vramscope dry-run --gpu`).
    #[error("exit code {0} is the verdict")]
    Verdict(u8),
    /// The reader of standard output closed it (`| head`), so there is nothing to report. Exit code 0.
    #[error("the reader of standard output went away")]
    ReaderGone,
}

impl Failure {
    /// Wrong input, described by an error of the engine.
    pub fn input(error: impl fmt::Display) -> Self {
        Self::Input(error.to_string())
    }

    /// A failure that is not the input's fault, described by an error.
    pub fn broken(error: impl fmt::Display) -> Self {
        Self::Broken(error.to_string())
    }

    /// Prints the error to standard error and returns the exit code.
    pub fn report(&self) -> ExitCode {
        let (text, code) = match self {
            Self::Input(text) => (text, 2),
            Self::NotKnown(text) => (text, 4),
            Self::Broken(text) => (text, 1),
            Self::Told(code) | Self::Verdict(code) => return ExitCode::from(*code),
            Self::ReaderGone => return ExitCode::SUCCESS,
        };
        let red = Style::new().fg_color(Some(AnsiColor::Red.into())).bold();
        anstream::eprintln!("{red}error:{red:#} {text}");
        ExitCode::from(code)
    }
}

impl From<io::Error> for Failure {
    /// Converts an error of writing to standard output; errors of reading are [`Failure::Input`] and name their file.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::Broken(format!("cannot write the result: {error}")),
        }
    }
}
