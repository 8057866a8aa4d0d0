//! Reads the files and commands that start a run. Each line is accounted for: simulated, without effect on memory, not
//! simulated, or not known; and the setup that results is a case for the engine. Nothing is executed.

mod author;
mod autocast;
mod command;
mod deed;
mod deepspeed;
mod draft;
mod entry;
mod fsdp;
mod given;
mod images;
mod keys;
mod larger;
mod launcher;
mod left_out;
mod liger;
mod lines;
mod loss;
mod model_facts;
mod off;
mod parameter_names;
mod processes;
mod program;
mod python;
mod remark;
mod resolve;
mod resolved;
mod script;
mod shell;
mod tool;
mod values;
mod yaml;

use std::collections::BTreeSet;

use serde_json::Value;

use self::command::Command;
use self::draft::Draft;
use self::entry::flatten;
use self::launcher::Launcher;
use self::left_out::Effect;
use self::lines::Reading;
use self::python::OpenCard;

pub use self::entry::Entry;
pub use self::images::ImageRules;
pub use self::keys::{NoEffect, NotSimulated};
pub use self::left_out::{Aspect, Direction, Grade, Graded, Least, LeftOut, OfLengths};
pub use self::model_facts::{LigerKnowledge, ModelFacts};
pub use self::program::PROGRAMS;
pub use self::remark::{Note, Remark};
pub use self::resolved::Resolved;
pub use self::tool::Tool;

/// Largest file that is read, in bytes.
pub const MOST_BYTES: usize = 1 << 20;

/// One file or command that starts a run, or a file that it names.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Name that messages use.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// Outcome for an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    /// The setup takes it.
    Simulated,
    /// A later source says otherwise.
    Replaced,
    /// It changes nothing in the memory of a step.
    NoEffect(NoEffect),
    /// It would change memory, and is switched off.
    Off(NotSimulated),
    /// It changes memory and is not simulated.
    NotSimulated(String),
    /// The tool would not take this value; the text says what it takes.
    Wrong(&'static str),
    /// The tool has no such key that is known here; a similar one, if there is any.
    Unknown(Option<&'static str>),
}

/// An entry and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Index of its source.
    pub source: usize,
    /// Key, value and place.
    pub entry: Entry,
    /// Its outcome.
    pub fate: Fate,
    /// What an estimate is that leaves the line out, if that changes memory.
    effect: Effect,
}

/// A default of the tool that the setup takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Default {
    /// Key of the tool.
    pub key: &'static str,
    /// Its value.
    pub value: &'static str,
}

/// The lines of a run, read: [`Launch::resolve`] makes a setup of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// Tool that starts the run.
    pub tool: Tool,
    /// All entries, those of files first.
    pub lines: Vec<Line>,
    /// Defaults of the tool that decide what no line says.
    pub defaults: Vec<Default>,
    /// Settings of the lines, and of the defaults.
    draft: Draft,
    /// Files that sources name and nobody gave: without them the setup would be another one.
    absent: Vec<String>,
    /// What was passed over to read the sources, and what they lack.
    remarks: Vec<Remark>,
    /// Remark on the script of a command, if it is of no tool that is known.
    own_program: Option<Remark>,
    /// The same run on a card without bf16, where the card decides and nobody says which it is.
    on_older_card: Option<Box<Self>>,
}

impl Line {
    /// Why a line that changes memory is not simulated, or not known; `None` for others.
    fn why(&self) -> Option<String> {
        Some(match &self.fate {
            Fate::NotSimulated(why) => why.clone(),
            Fate::Wrong(takes) => format!("it takes {takes}"),
            Fate::Unknown(_) => "not known".to_owned(),
            _ => return None,
        })
    }

    fn given(&self) -> String {
        format!("{}: {}", self.entry.key, self.entry.text())
    }

    /// Remark on a line that changes memory and is not simulated, or not known; `None` for others.
    fn open(&self) -> Option<Remark> {
        Some(Note::OfLine.with([("given", self.given()), ("why", self.why()?)]))
    }

    fn left_out(&self) -> Option<LeftOut> {
        let (what, direction) = self.effect;
        Some(LeftOut {
            what,
            given: Some(self.given()),
            why: self.why()?,
            direction,
        })
    }
}

impl Launch {
    /// Name of the model, if a line gives one.
    pub fn model(&self) -> Option<&str> {
        self.draft.model.as_deref()
    }

    /// Returns true if adapters are trained.
    pub fn trains_adapters(&self) -> bool {
        self.draft.adapters == Some(true)
    }

    /// Returns the run with weights in 16 bits for those that its model stores in few: `base` is the same model in 16 bits.
    #[must_use]
    pub fn in_16_bits(mut self, base: &str) -> Self {
        self.draft.few_bits = self.draft.model.replace(base.to_owned());
        self
    }

    /// Name of another model that is on the GPU beside it, if a line gives one: a teacher, or a reference model.
    pub fn other_model(&self) -> Option<&str> {
        self.draft.teacher.as_deref().or(self.draft.other_model.as_deref())
    }

    /// Returns the run as it is of this model. Where nobody names the card of a notebook, it is a T4, which its hosts give
    /// where nothing is said, unless the weights have no room there.
    #[must_use]
    pub fn of_model(self, model: ModelFacts) -> Self {
        let has_room = model.parameters.is_some_and(|of| {
            let bytes = match self.draft.bits {
                Some(4) => of.packed / 2 + 2 * of.others,
                _ => 2 * (of.packed + of.others),
            };
            bytes < T4
        });
        match self.on_older_card {
            Some(older) if has_room => *older,
            on_older_card => Self { on_older_card, ..self },
        }
    }

    /// Returns the run with samples of so many positions.
    #[must_use]
    pub fn at_length(&self, seq: u64) -> Self {
        let mut out = self.clone();
        out.draft.seq = Some(seq);
        out
    }

    /// Returns the setup for a model.
    pub fn resolve(&self, model: ModelFacts) -> Resolved {
        let mut resolved = self.setup(model);
        let of_setup = std::mem::take(&mut resolved.not_simulated);
        let of_lines = self.lines.iter().filter_map(Line::open);
        resolved.not_simulated = of_lines.chain(of_setup).collect();
        resolved
    }

    /// Returns the same setup without remarks on single lines, for a frontend that shows all lines.
    pub fn setup(&self, model: ModelFacts) -> Resolved {
        let mut resolved = resolve::resolve(&self.draft, self.tool.trainer(), model);
        larger::hold_parts(&self.draft, self.tool, model, &mut resolved);
        resolved.not_simulated.extend(author::other_tower(&self.draft));
        // Where nothing in its options is unknown, its options are transformers' own.
        let is_unknown = |line: &Line| matches!(line.fate, Fate::Unknown(_));
        if self.lines.iter().any(is_unknown) {
            resolved.not_simulated.extend(self.own_program.clone());
        }
        resolved.assumed.splice(0..0, self.remarks.iter().cloned());
        let absent = self.absent.iter();
        let absent = absent.map(|path| Note::AbsentFile.with([("path", path.clone())]));
        resolved.not_simulated.extend(absent);
        let of_lines = self.lines.iter().filter_map(|line| self.left_out(line));
        let of_setup = resolved.not_simulated.iter().map(left_out::of_setup);
        let of_samples = resolved.missing.iter().chain(&resolved.assumed);
        let of_samples = of_samples.filter_map(left_out::of_samples);
        let of_run = of_setup.chain(of_samples);
        resolved.not_this_run = of_lines.chain(of_run).collect();
        // A bound holds only if everything that is not left out is known; an assumption is not.
        if !resolved.not_this_run.is_empty() {
            let remarks = resolved.missing.iter().chain(&resolved.assumed);
            let is_ddp = resolved.case.get("strategy").is_some_and(|strategy| strategy == "ddp");
            let assumed: Vec<LeftOut> = remarks
                .filter_map(|remark| left_out::of_assumption(remark, is_ddp))
                .collect();
            resolved.not_this_run.extend(assumed);
        }
        resolved
    }

    /// What leaving a line out does. Samples that are packed or not padded are no more than a batch of the longest: where a
    /// length is given, and where attention needs no mask to tell them apart.
    fn left_out(&self, line: &Line) -> Option<LeftOut> {
        let left = line.left_out()?;
        let has_no_mask = self.draft.attention == Some("flash_attention_2") || self.draft.flex_attention == Some(true);
        let is_bound = self.draft.seq.is_some() && has_no_mask;
        Some(match (left.what, left.direction) {
            (Aspect::Length, Direction::AtMost) if !is_bound => LeftOut {
                direction: Direction::Unknown,
                ..left
            },
            _ => left,
        })
    }
}

/// Bytes of a T4 that PyTorch can have, of 16 GB.
const T4: u64 = 15_000_000_000;

/// Why no launch can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// Nothing was given.
    #[error("no launch file is given")]
    Nothing,
    /// A source is too large.
    #[error("{name} has {bytes} bytes; a launch file has at most {MOST_BYTES}")]
    TooLarge {
        /// Name of the source.
        name: String,
        /// Its size.
        bytes: usize,
    },
    /// A source can't be parsed.
    #[error("{name} can't be read: {reason}")]
    Unreadable {
        /// Name of the source.
        name: String,
        /// Mistake, and its place.
        reason: String,
    },
    /// No source is of a known tool.
    #[error(
        "{name} is of no known tool; the command that reads it can be run without a GPU: \
         `vramscope dry-run python YOUR_PROGRAM.py {name}`. Supported tools are {}",
        Tool::ALL.iter().map(|tool| tool.name()).collect::<Vec<_>>().join(", ")
    )]
    UnknownTool {
        /// Name of the source.
        name: String,
    },
}

/// A source, parsed.
pub(crate) struct Parsed {
    tool: Option<Tool>,
    entries: Vec<Entry>,
    /// True for a command; false for a file of settings.
    is_command: bool,
    /// Files of settings that a command names.
    files: Vec<String>,
    /// What starts the processes, of a command.
    launcher: Option<Launcher>,
    /// Words of a command before its options.
    words: Vec<String>,
    /// A script or a notebook.
    script: Option<Box<python::Program>>,
    /// What was passed over to read it, and what it lacks.
    remarks: Vec<Remark>,
    /// How a script comes to its command.
    way: Way,
}

/// How a script comes to the command that it starts.
#[derive(Debug, Clone, Default, PartialEq)]
struct Way {
    /// Name of the source in which the command stands.
    source: String,
    /// Folder in which it runs, from that in which the script is started.
    folder: String,
    /// Names of the sources that were started on the way.
    started: BTreeSet<String>,
    /// Files that were written on the way, with their paths.
    written: Vec<(String, String)>,
    /// Script or module that the command starts, if it is of Python.
    script: Option<String>,
}

impl Parsed {
    fn of_settings(entries: Vec<Entry>) -> Self {
        Self {
            tool: Tool::of_file(&entries),
            entries,
            is_command: false,
            files: Vec::new(),
            launcher: None,
            words: Vec::new(),
            script: None,
            remarks: Vec::new(),
            way: Way::default(),
        }
    }

    /// Script or module of a command whose code decides what its options mean: no tool that is known brings it along.
    fn own_program(&self) -> Option<&str> {
        let is_open = self
            .tool
            .is_some_and(|tool| tool == Tool::Transformers || tool.is_trl());
        self.way
            .script
            .as_deref()
            .filter(|script| is_open && !tool::is_of_trl(script))
    }

    /// Paths of the files that it names, from the folder in which its script is started.
    fn names(&self) -> Vec<String> {
        let of_entries = self.entries.iter().filter_map(named_file);
        let program = self.own_program().filter(|path| path.ends_with(".py"));
        let mentioned = self.script.iter().flat_map(|script| script.mentioned());
        let files = self.files.iter().chain(mentioned).map(String::as_str);
        let all = of_entries.chain(files).chain(program);
        all.map(|path| shell::within(&self.way.folder, path)).collect()
    }

    /// Returns true for a file of a tool's own settings.
    fn is_settings(&self) -> bool {
        let is_empty = self.tool.is_none() && self.entries.is_empty();
        !self.is_command && !is_empty && self.script.is_none() && !self.tool.is_some_and(Tool::is_addition)
    }
}

/// Returns true for the text of a script or a notebook.
fn is_program(name: &str, text: &str) -> bool {
    let is_statement = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            ["import", module, ..] => !module.ends_with(':'),
            ["from", _, "import", ..] => true,
            ["def" | "class", ..] => line.trim_end().ends_with(':') && line.contains(['(', ' ']),
            _ => false,
        }
    };
    let is_command = || command::looks_like(name, text) && !name.ends_with(".py");
    python::is_notebook(name, text) || name.ends_with(".py") || text.lines().any(is_statement) && !is_command()
}

/// Reads a source of settings.
///
/// `all` are the sources that a script may start or name.
fn parse(source: Source<'_>, all: &[Source<'_>]) -> Result<Parsed, LaunchError> {
    let (name, text) = (source.name, source.text.trim_start_matches('\u{feff}'));
    let unreadable = |reason: String| LaunchError::Unreadable {
        name: name.to_owned(),
        reason,
    };
    let most = match python::is_notebook(name, text) {
        true => python::MOST_NOTEBOOK_BYTES,
        false => MOST_BYTES,
    };
    if text.len() > most {
        return Err(LaunchError::TooLarge {
            name: name.to_owned(),
            bytes: text.len(),
        });
    }
    if is_program(name, text) {
        let program = python::Program::parse(name, text).map_err(unreadable)?;
        return Ok(Parsed {
            tool: None,
            script: Some(Box::new(program)),
            ..Parsed::of_settings(Vec::new())
        });
    }
    // No tool that is known reads TOML: what stands in it is for a program of its own.
    if name.ends_with(".toml") {
        return Ok(Parsed::of_settings(Vec::new()));
    }
    if text.trim_start().starts_with('{') && !shell::is_translated(name, text) {
        let value: Value = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        let mut entries = Vec::new();
        for (key, value) in value.as_object().cloned().unwrap_or_default() {
            flatten(&key, value, 1, &mut entries);
        }
        for entry in &mut entries {
            let last = entry.key.rsplit('.').next().unwrap_or_default();
            let place = text.lines().position(|line| line.contains(&format!("\"{last}\"")));
            entry.line = place.map_or(1, |place| place + 1);
        }
        return Ok(Parsed::of_settings(entries));
    }
    if command::looks_like(name, text) {
        let source = Source { name, text };
        let command = command::read(source, all).map(Command::parsed);
        return match shell::settings(name, text).filter(|_| command.is_err()) {
            Some(settings) => match yaml::read(&settings) {
                Ok(entries) if Tool::of_file(&entries).is_some() => Ok(Parsed::of_settings(entries)),
                _ => command.map_err(unreadable),
            },
            None => command.map_err(unreadable),
        };
    }
    let entries = yaml::read(text).map_err(unreadable)?;
    let other = program::foreign_settings(&entries);
    match other.or_else(|| program::foreign_keys(&entries).map(str::to_owned)) {
        Some(other) => Err(unreadable(program::not_simulated("it configures", &other, name))),
        None => Ok(Parsed::of_settings(entries)),
    }
}

/// Path of the file that an entry names.
fn named_file(entry: &Entry) -> Option<&str> {
    let path = entry.value.as_str()?;
    let is_json = path.ends_with(".json");
    let is_named = match entry.key.rsplit('.').next()? {
        "deepspeed" | "deepspeed_config" | "deepspeed_config_file" | "fsdp_config" => is_json,
        "config_file" | "hostfile" => true,
        _ => false,
    };
    is_named.then_some(path)
}

/// Returns the files that sources name and nobody gave.
fn absent(parsed: &[Numbered]) -> Vec<String> {
    let parsed = || parsed.iter().map(|(_, parsed)| parsed);
    let is_given = |tool| parsed().any(|parsed| parsed.tool == Some(tool));
    let mut out = Vec::new();
    for entry in parsed().flat_map(|parsed| &parsed.entries) {
        let Value::String(path) = &entry.value else { continue };
        let of = match entry.key.rsplit('.').next() {
            Some("deepspeed" | "deepspeed_config_file") if path.ends_with(".json") => Tool::DeepSpeed,
            Some("config_file") => Tool::Accelerate,
            _ => continue,
        };
        if !is_given(of) {
            out.push(path.clone());
        }
    }
    if !parsed().any(Parsed::is_settings) {
        out.extend(parsed().flat_map(|parsed| parsed.files.iter().cloned()));
    }
    out
}

/// What a source says, with the number of the source in which it stands.
type Numbered = (usize, Parsed);

/// Reads all sources, but for scripts that others of them start, and with files that a script writes and names.
fn parse_all(sources: &[Source<'_>]) -> Result<Vec<Numbered>, LaunchError> {
    let read: Vec<_> = sources.iter().map(|source| parse(*source, sources)).collect();
    let started: BTreeSet<String> = read
        .iter()
        .flatten()
        .flat_map(|parsed| parsed.way.started.iter().cloned())
        .collect();
    let mut out = Vec::new();
    for (at, parsed) in read
        .into_iter()
        .enumerate()
        .filter(|(at, _)| !started.contains(sources[*at].name))
    {
        let parsed = parsed?;
        let names = parsed.names();
        let written = &parsed.way.written;
        for (path, text) in written {
            if shell::fitting(names.iter().map(String::as_str), path).is_some() {
                out.push((at, parse(Source { name: path, text }, &[])?));
            }
        }
        let own = sources.iter().position(|source| source.name == parsed.way.source);
        out.push((own.unwrap_or(at), parsed));
    }
    Ok(without_others(out, sources))
}

/// Leaves out files of a kind of which the run names another one.
fn without_others(parsed: Vec<Numbered>, sources: &[Source<'_>]) -> Vec<Numbered> {
    let names: Vec<String> = parsed.iter().flat_map(|(_, parsed)| parsed.names()).collect();
    let is_named = |at: usize| shell::fitting(names.iter().map(String::as_str), sources[at].name).is_some();
    let kind = |parsed: &Parsed| {
        let is_file = !parsed.is_command && parsed.script.is_none();
        is_file.then(|| parsed.tool.filter(|tool| tool.is_addition()))
    };
    let named: Vec<_> = parsed
        .iter()
        .filter(|(at, parsed)| !parsed.is_command && is_named(*at))
        .filter_map(|(_, parsed)| kind(parsed))
        .collect();
    let is_other = |(at, parsed): &Numbered| kind(parsed).is_some_and(|kind| named.contains(&kind)) && !is_named(*at);
    parsed.into_iter().filter(|one| !is_other(one)).collect()
}

/// Returns the files that sources name, or start, and that are not among them: paths as they are written there, from the
/// folder in which the run is started. Whoever reads sources from files looks for them beside, and reads again.
pub fn named(sources: &[Source<'_>]) -> Vec<String> {
    let mut out = Vec::new();
    for source in sources {
        match parse(*source, sources) {
            Ok(parsed) => {
                let written =
                    |path: &str| shell::fitting(parsed.way.written.iter().map(|(path, _)| path.as_str()), path);
                out.extend(parsed.names().into_iter().filter(|path| written(path).is_none()));
            }
            Err(LaunchError::TooLarge { .. }) => continue,
            Err(_) => {}
        }
        if command::looks_like(source.name, source.text) {
            out.extend(shell::evaluate(*source, sources).absent);
        }
    }
    let is_given = |path: &String| shell::fitting(sources.iter().map(|source| source.name), path).is_some();
    out.retain(|path| !path.is_empty() && !is_given(path));
    out.sort();
    out.dedup();
    out
}

/// Reads the sources of one run. Later ones prevail over earlier ones, and commands over files.
///
/// # Errors
/// See [`LaunchError`].
pub fn read(sources: &[Source<'_>]) -> Result<Launch, LaunchError> {
    read_on(sources, None)
}

/// The same for a run on a card that has bf16 or not, on which programs may decide; `None` where none is told.
///
/// # Errors
/// See [`LaunchError`].
pub fn read_on(sources: &[Source<'_>], has_bf16: Option<bool>) -> Result<Launch, LaunchError> {
    let (mut launch, card) = read_with(sources, has_bf16)?;
    match card {
        Some(OpenCard::Any) => launch.remarks.push(Note::CardWithBf16.into()),
        Some(OpenCard::OfNotebook) => {
            let (mut older, _) = read_with(sources, Some(false))?;
            older.remarks.push(Note::CardOfNotebooks.into());
            launch.remarks.push(Note::CardWithBf16.into());
            launch.on_older_card = Some(Box::new(older));
        }
        None => {}
    }
    Ok(launch)
}

/// Reads the sources, and says whether a card decides something that nobody names.
fn read_with(sources: &[Source<'_>], has_bf16: Option<bool>) -> Result<(Launch, Option<OpenCard>), LaunchError> {
    let first = sources.first().ok_or(LaunchError::Nothing)?;
    let mut parsed = parse_all(sources)?;
    let mut facts = script::facts(sources, &mut parsed, has_bf16)?;
    if let Some((at, facts)) = &mut facts {
        let of = &mut parsed[*at].1;
        (of.entries, of.tool) = (std::mem::take(&mut facts.entries), Some(facts.tool));
    }
    // A command without options of its own may name a file of any tool: the more special one is meant.
    let found = parsed
        .iter()
        .filter_map(|(_, parsed)| Some((parsed.tool?, parsed.is_command)));
    let best = found.max_by_key(|(tool, is_command)| match tool {
        tool if tool.is_addition() => 0,
        Tool::Transformers => 1,
        _ => 2 + u8::from(*is_command),
    });
    let of_script = facts.as_ref().map(|(_, facts)| facts.tool);
    let tool = of_script.or(best.map(|(tool, _)| tool));
    let tool = tool.ok_or_else(|| LaunchError::UnknownTool {
        name: first.name.to_owned(),
    })?;
    if tool == Tool::Glm4 {
        parsed.iter_mut().for_each(|(_, parsed)| author::adopt_glm(parsed));
    }
    let absent = absent(&parsed);
    let mut reading = Reading::new(tool);
    let (commands, files): (Vec<_>, Vec<_>) = parsed.into_iter().partition(|(_, parsed)| parsed.is_command);
    let mut remarks = Vec::new();
    let mut own_program = None;
    let facts = facts.map(|(_, facts)| facts);
    if facts.is_some() {
        // Python starts a script that no command starts.
        reading.launched_by(Some(Launcher::One));
    }
    let (scripts, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|(_, parsed)| parsed.script.is_some());
    for (number, parsed) in scripts.into_iter().chain(files).chain(commands) {
        reading.launched_by(parsed.launcher);
        remarks.extend(parsed.remarks.iter().cloned());
        // What the program of a command's own does with its options is not known, unless the program is here.
        if let Some(script) = parsed.own_program().filter(|_| facts.is_none()) {
            own_program = Some(Note::OwnProgram.with([("script", script.to_owned())]));
        }
        reading.take_source(number, parsed, facts.as_ref());
    }
    if let Some(facts) = &facts {
        remarks.extend(reading.take_rest(facts));
    }
    let launch = Launch {
        absent,
        remarks,
        own_program,
        ..reading.finish()
    };
    Ok((launch, facts.and_then(|facts| facts.card)))
}

#[cfg(test)]
mod beside_tests;
#[cfg(test)]
mod found;
#[cfg(test)]
mod part_tests;
#[cfg(test)]
mod refusal_tests;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod ways;
