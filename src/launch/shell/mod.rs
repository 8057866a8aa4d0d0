//! Reads a shell script as bash would run it, and says which training runs it starts. Nothing is executed: what programs
//! print is known for a few (`dirname`, `expr`, `wc` and so on), and the rest stays open, as the text that stands for it.
//!
//! What decides nothing is passed over, so that a script is read that bash would stop at. A condition that is not known is
//! followed both ways; what a variable holds behind it is open if the two ways differ. Loops, calls and texts are bounded.

mod arithmetic;
mod condition;
mod expand;
mod interpret;
mod job;
mod lexer;
mod output;
mod parameter;
mod path;
mod pattern;
mod starting;
mod state;
mod syntax;
mod task;
mod translate;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::Source;

pub(crate) use self::path::{fitting, within};

/// What ends a command on several lines early, though it looks as if it went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EarlyEnd {
    /// A comment among the lines.
    Comment,
    /// A blank behind the backslash.
    Blank,
}

/// A program that a script starts, of those that start training.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// Its words; see [`open`] for those that are not known.
    pub words: Vec<String>,
    /// Variables of its environment that the script sets.
    pub settings: Vec<(String, String)>,
    /// Line that starts it, in the script that does.
    pub line: usize,
    /// Name of the source in which it stands.
    pub source: String,
    /// True if a condition that is not known decides whether it runs.
    pub is_conditional: bool,
    /// Options behind it that the shell does not pass to it, and why.
    pub cut_off: Option<(Option<EarlyEnd>, Vec<String>)>,
    /// Why its number of processes is not known.
    pub fault: Option<String>,
    /// Files that the script has written by then, by path.
    pub written: Rc<BTreeMap<String, String>>,
    /// Folder in which it runs, from that in which the script is started.
    pub folder: String,
}

/// What a script does.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub runs: Vec<Run>,
    /// Scripts that it starts and that are not given.
    pub absent: Vec<String>,
    /// Names of sources that it starts.
    pub started: BTreeSet<String>,
    /// Variables that it reads itself.
    pub read: BTreeSet<String>,
    /// Why it cannot be read to its end.
    pub fault: Option<String>,
}

/// Evaluates a script; `beside` are the files that it may start or name.
pub(crate) fn evaluate(main: Source<'_>, beside: &[Source<'_>]) -> Reading {
    interpret::evaluate(main, beside)
}

/// Begin and end of a part of a text that is not known; the text between stands for it.
const OPEN: char = '\u{e000}';
const CLOSE: char = '\u{e001}';
/// Begin of what stands for a variable that nobody sets.
const UNSET: char = '\u{e002}';

/// A part of a text that is not known, for which its source stands.
fn open(source: &str) -> String {
    marked(OPEN, source)
}

fn marked(begin: char, source: &str) -> String {
    let short: String = plain(source).chars().take(80).collect();
    format!("{begin}{short}{CLOSE}")
}

/// What a word is of which nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    /// A variable that nobody sets.
    Unset,
    /// Something else, which may stand for several words.
    Unknown,
}

/// What a word is if nothing of it is known.
pub(crate) fn open_word(word: &str) -> Option<Open> {
    let inner = word.strip_suffix(CLOSE)?;
    let what = match inner.chars().next()? {
        OPEN => Open::Unknown,
        UNSET => Open::Unset,
        _ => return None,
    };
    (!inner.contains(CLOSE)).then_some(what)
}

fn is_open(text: &str) -> bool {
    text.contains(CLOSE)
}

/// A text in which what is not known stands as its source.
pub(crate) fn plain(text: &str) -> String {
    text.replace([OPEN, CLOSE, UNSET], "")
}

/// Returns true for the name of a variable.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns true for `NAME=value` before a command.
pub(crate) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// Returns true if the first line is of a file that [`translate`] knows by its words.
pub(crate) fn is_translated(name: &str, text: &str) -> bool {
    translate::kind(name, text).is_some()
}

/// Settings that stand in notes, such as an issue's; `None` for other files.
pub(crate) fn settings(name: &str, text: &str) -> Option<String> {
    translate::settings(name, text)
}

#[cfg(test)]
mod tests;
