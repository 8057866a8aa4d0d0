//! What the page learns of files that start a run: plain data.

use serde::{Deserialize, Serialize};

use crate::state::Draft;

/// A file or command that was dropped, pasted or opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchText {
    /// Name of the file; empty for a text that was pasted.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Files that start a run, and what they stand beside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launched {
    /// The files, in their order.
    pub texts: Vec<LaunchText>,
    /// Entries of the page.
    pub entries: Draft,
    /// What was found for the name of their model.
    pub found: Option<FoundModel>,
}

/// A model that was found for a name that the catalogue does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundModel {
    /// The name, as the files write it.
    pub name: String,
    /// Its id, or a name of the catalogue.
    pub id: String,
    /// Its configuration; empty for a model of the catalogue.
    pub config: String,
    /// Why that is of a larger model than the run has, if it is.
    pub bound: Option<String>,
}

/// What became of the files, or why they can't be read.
pub type LaunchAnswer = Result<LaunchRead, LaunchFault>;

/// Files that were read together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchRead {
    /// Name and version of the tool.
    pub tool: String,
    /// All lines, those of files before those of commands.
    pub lines: Vec<ReadLine>,
    /// Defaults of the tool that decide what no line says: key and value.
    pub defaults: Vec<(String, String)>,
    /// Assumptions of the setup.
    pub assumed: Vec<Said>,
    /// Settings that the files do not tell.
    pub missing: Vec<Said>,
    /// What is not simulated, beside single lines.
    pub not_simulated: Vec<Said>,
    /// Name of the model, if a line gives one.
    pub model: Option<String>,
    /// Why that model can't be read.
    pub model_fault: Option<String>,
    /// What of it makes the setup another run, of which no figure is of use: what the files give, if they do, and why.
    pub another_run: Vec<(Option<String>, String)>,
    /// The page's entries with this setup, or why the engine does not take it.
    pub entries: Result<Draft, String>,
}

/// A line and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadLine {
    /// Index of its file.
    pub source: usize,
    /// Number of the line, from 1; in a notebook, of its cell.
    pub line: usize,
    /// Number of the cell of a notebook.
    pub cell: Option<usize>,
    /// Key; of nested objects the whole path with dots.
    pub key: String,
    /// Value as a person would write it.
    pub value: String,
    /// Outcome.
    pub fate: ReadFate,
}

/// Outcome for a line. Reasons are in English.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadFate {
    /// The setup takes it.
    Simulated,
    /// A later line says otherwise.
    Replaced,
    /// It changes nothing in the memory of a step, for this reason.
    NoEffect(String),
    /// It would change memory, and is switched off.
    Off,
    /// It changes memory and is not simulated, for this reason.
    NotSimulated(String),
    /// The tool would not take this value; the text says what it takes.
    Wrong(String),
    /// The tool has no such key that is known here; a similar one, if there is any.
    Unknown(Option<String>),
}

/// A remark by the word of its kind, with its values by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Word of its kind ([`Note::word`](vramscope_launch::Note::word)).
    pub word: String,
    /// Values by name.
    pub values: Vec<(String, String)>,
}

/// Why files can't be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaunchFault {
    /// A file is larger than any launch.
    TooLarge(String),
    /// A file can't be parsed: its name, and the mistake in English.
    Unreadable(String, String),
    /// No file is of a known tool: the first one's name, and the tools that are known.
    UnknownTool(String, String),
}
