//! What a text says beside the numbers that have readers of their own: signs of every kind of evidence, settings, the
//! command.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::{OfCommand, Setting, command, settings};
use crate::paste::Paste;
use crate::sign::{Sign, signs};

/// Contents of a text.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Digest {
    /// Number of lines.
    pub lines: usize,
    /// Signs of every kind of evidence.
    pub signs: Vec<Sign>,
    /// Settings.
    pub settings: Vec<Setting>,
    /// The command that starts the run.
    pub command: Option<OfCommand>,
    /// Lines of out-of-memory errors and of readings.
    pub errors: Vec<usize>,
    /// Lines that findings may quote, as they were written; secrets are masked.
    #[serde(skip)]
    pub quotes: BTreeMap<usize, String>,
}

impl Digest {
    /// Returns true if nothing in the text is of a run.
    pub fn is_bare(&self) -> bool {
        self.signs.is_empty() && self.settings.is_empty() && self.command.is_none() && self.errors.is_empty()
    }

    /// Reads a text; `errors` are the lines at which other readers found something.
    pub fn of(paste: &Paste<'_>, errors: Vec<usize>) -> Self {
        let mut digest = Self {
            lines: paste.line_count(),
            signs: signs(paste),
            settings: settings(paste),
            command: command(paste),
            errors,
            quotes: BTreeMap::new(),
        };
        let mut wanted: Vec<usize> = digest.errors.clone();
        wanted.extend(digest.signs.iter().map(|sign| sign.line));
        wanted.extend(digest.settings.iter().map(|setting| setting.line));
        if let Some(command) = &digest.command {
            wanted.push(command.line);
            wanted.extend(command.lost.iter().map(|lost| lost.line));
            wanted.extend(command.unexported.iter().map(|(_, line)| *line));
        }
        wanted.sort_unstable();
        wanted.dedup();
        let mut wanted = wanted.into_iter().peekable();
        for index in 0..paste.len() {
            let number = paste.number(index);
            while wanted.next_if(|line| *line < number).is_some() {}
            if wanted.peek() == Some(&number) {
                // Of a progress bar's states the one with an error is kept, else the last.
                let quote = paste.quote(index);
                if !quote.is_empty() {
                    digest.quotes.insert(number, quote);
                }
            }
        }
        digest
    }
}
