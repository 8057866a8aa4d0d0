//! How a command ends when it cannot do what was asked.

use std::fmt;
use std::io;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

/// Why a command stopped, and with which exit code.
#[derive(Debug)]
pub enum Failure {
    /// The input is wrong: the text says what was given, what is allowed, what to do. Exit code 2.
    Input(String),
    /// Something broke that the input is not to blame for. Exit code 1.
    Broken(String),
    /// A program that ran for this one failed and has told why. Exit code: its own.
    Told(u8),
    /// The reader of standard output went away (`| head`): nothing is left to say. Exit code 0.
    ReaderGone,
}

impl Failure {
    /// Bad input, described by an error of the engine.
    pub fn input(error: impl fmt::Display) -> Self {
        Self::Input(error.to_string())
    }

    /// A failure that the input is not to blame for, described by an error.
    pub fn broken(error: impl fmt::Display) -> Self {
        Self::Broken(error.to_string())
    }

    /// Tells the person on standard error and gives the exit code.
    pub fn report(&self) -> ExitCode {
        let (text, code) = match self {
            Self::Input(text) => (text, 2),
            Self::Broken(text) => (text, 1),
            Self::Told(code) => return ExitCode::from(*code),
            Self::ReaderGone => return ExitCode::SUCCESS,
        };
        let red = Style::new().fg_color(Some(AnsiColor::Red.into())).bold();
        anstream::eprintln!("{red}error:{red:#} {text}");
        ExitCode::from(code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(text) | Self::Broken(text) => f.write_str(text),
            Self::Told(code) => write!(f, "a program ended with exit code {code}"),
            Self::ReaderGone => f.write_str("the reader of standard output went away"),
        }
    }
}

impl From<io::Error> for Failure {
    /// An error of writing to standard output; errors of reading are [`Failure::Input`] and name
    /// their file.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::Broken(format!("cannot write the result: {error}")),
        }
    }
}
