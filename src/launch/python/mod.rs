//! Reads Python: scripts and notebooks that start a run. Nothing is executed: constants are computed, functions of the file
//! followed, and what is called is written down ([`machine`]); from the calls follow the lines of a launch ([`facts`]).

mod assignment;
mod call;
mod elsewhere;
mod expression;
mod facts;
mod files;
mod function;
mod heap;
mod machine;
mod model;
mod notebook;
mod options;
mod source;

use std::collections::BTreeMap;

use serde_json::Value as Json;

use self::call::last;
use self::facts::Finder;
use self::heap::Value;
use self::machine::Machine;
use self::notebook::Notebook;
use self::source::Unit;
use crate::entry::Entry;

pub(crate) use self::facts::{Facts, Open, OpenCard};
pub(crate) use self::machine::Options;

/// Largest notebook that is read, in bytes: outputs with images are passed over.
pub(crate) const MOST_NOTEBOOK_BYTES: usize = 64 << 20;

/// A script or a notebook, parsed.
pub(crate) struct Program {
    name: String,
    units: Vec<Unit>,
    /// Cells that cannot be read, with the reason, and whether they may decide something.
    faults: Vec<(usize, String, bool)>,
    /// Commands of the shell that the notebook starts.
    commands: String,
    /// Files that it writes.
    pub files: Vec<(String, String)>,
    card: Option<String>,
    is_notebook: bool,
    /// Files of settings that it names where it reads them.
    mentioned: Vec<String>,
}

/// What a program starts.
pub(crate) enum Started {
    /// A run of its own.
    Run(Facts),
    /// A command, as a line of the shell, and files that the program writes before.
    Command(String, Vec<(String, String)>),
}

/// Returns true for the text of a notebook.
pub(crate) fn is_notebook(name: &str, text: &str) -> bool {
    name.ends_with(".ipynb") || text.trim_start().starts_with('{') && text.contains("\"cell_type\"")
}

impl Program {
    /// Parses a text.
    ///
    /// # Errors
    /// Says what cannot be read, and where.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut out = Self {
            name: name.to_owned(),
            units: Vec::new(),
            faults: Vec::new(),
            commands: String::new(),
            files: Vec::new(),
            card: None,
            is_notebook: is_notebook(name, text),
            mentioned: Vec::new(),
        };
        if !out.is_notebook {
            out.mentioned = files::mentioned(text);
            out.units.push(Unit::parse(text, None)?);
            return Ok(out);
        }
        let notebook = Notebook::read(text)?;
        for (number, code) in &notebook.cells {
            match Unit::parse(code, Some(*number)) {
                Ok(unit) => out.units.push(unit),
                Err(why) => {
                    let words = ["from_pretrained", "Trainer", "Config(", "train(", "DataLoader"];
                    out.faults
                        .push((*number, why, words.iter().any(|word| code.contains(word))));
                }
            }
        }
        out.commands = notebook.commands;
        out.files = notebook.files;
        out.card = notebook.card;
        Ok(out)
    }

    /// Name by which another file imports it.
    fn module(&self) -> &str {
        let name = self.name.rsplit('/').next().unwrap_or(&self.name);
        name.strip_suffix(".py").unwrap_or(name)
    }

    /// Files of settings that it names where it reads them.
    pub fn mentioned(&self) -> &[String] {
        &self.mentioned
    }

    /// True if a command of these words starts it.
    pub fn is_started_by(&self, program: &[String]) -> bool {
        let of = |word: &str| last(word.trim_end_matches(".py").rsplit('/').next().unwrap_or(word)).to_owned();
        program.iter().skip(1).any(|word| of(word) == self.module())
    }
}

/// Reads what one of several programs starts, with the options of the command that starts it; the others are its modules.
/// `has_bf16` is of the card, if one is told; else that of the notebook counts, or one that has bf16 is assumed.
///
/// # Errors
/// Says why nothing can be read: it starts nothing, or several runs.
pub(crate) fn read(
    programs: &[&Program],
    main: usize,
    options: &Options,
    has_bf16: Option<bool>,
) -> Result<Started, String> {
    let mut units: Vec<&Unit> = Vec::new();
    let mut names = Vec::new();
    let mut own = 0..0;
    let program = programs[main];
    for (at, program) in programs.iter().enumerate() {
        let first = units.len();
        if at == main {
            own = first..first + program.units.len();
        } else if !program.units.is_empty() {
            names.push((first, program.module().to_owned()));
        }
        units.extend(&program.units);
    }
    if let ([(cell, why, _), ..], true) = (&program.faults[..], program.units.is_empty()) {
        return Err(format!("cell {cell}: {why}"));
    }
    let told = has_bf16.or_else(|| program.card.as_deref().map(card_has_bf16));
    let mut machine = Machine::new(&units, &names, options);
    machine.has_bf16 = told.unwrap_or(true);
    let scope = machine.start(own);
    if !trains(&machine) {
        start_main(&mut machine, scope);
    }
    let command = started_command(&machine).or_else(|| elsewhere::started(&machine));
    if let Some(mut facts) = Finder::new(&mut machine).find()? {
        facts.card = (facts.asks_card && told.is_none()).then_some(match program.is_notebook {
            true => OpenCard::OfNotebook,
            false => OpenCard::Any,
        });
        let faults = program.faults.iter().filter(|(.., decides)| *decides);
        facts
            .open
            .extend(faults.map(|(cell, why, _)| Open::of_cell(*cell, why)));
        return Ok(Started::Run(facts));
    }
    if let Some(command) = command {
        return Ok(Started::Command(command, machine.written()));
    }
    if crate::command::looks_like("", &program.commands) {
        return Ok(Started::Command(program.commands.clone(), machine.written()));
    }
    Err(nothing(&machine, program.is_notebook))
}

/// True if a card of a notebook's host has bf16.
fn card_has_bf16(card: &str) -> bool {
    !["T4", "P100", "V100", "K80", "P4"].contains(&card)
}

fn trains(machine: &Machine<'_>) -> bool {
    let names = [
        "train",
        "fit",
        "backward",
        "unsloth_train",
        "run",
        "Popen",
        "system",
        "check_call",
    ];
    machine.calls(&names).next().is_some()
}

/// Calls a function that others start: one that modal runs, or `main` or `train` of a file that is imported.
fn start_main<'a>(machine: &mut Machine<'a>, scope: heap::Id) {
    let functions: Vec<(String, Value)> = machine.heap.scopes[scope].names.clone().into_iter().collect();
    let is_of = |machine: &Machine<'a>, value: &Value, names: &[&str]| {
        let Value::Function(id) = value else { return false };
        let decorators = &machine.heap.functions[*id].decorators;
        decorators.iter().any(|of| match of {
            Value::Object(id) => machine
                .last_name(&machine.heap.objects[*id].callee)
                .is_some_and(|name| names.contains(&name.as_str())),
            Value::Symbol(path) => names.contains(&last(path)),
            Value::Member(id) => names.contains(&machine.heap.members[*id].1.as_str()),
            _ => false,
        })
    };
    let entry = functions
        .iter()
        .find(|(_, value)| is_of(machine, value, &["local_entrypoint"]));
    let entry = entry.or_else(|| {
        functions
            .iter()
            .find(|(_, value)| is_of(machine, value, &["function", "task", "command"]))
    });
    let entry = entry.or_else(|| {
        let names = ["main", "train", "run", "finetune", "fine_tune", "run_training"];
        names.iter().find_map(|name| {
            functions
                .iter()
                .find(|(own, value)| own == name && matches!(value, Value::Function(_)))
        })
    });
    if let Some((_, function)) = entry {
        let place = machine.place;
        machine.call(function.clone(), heap::Arguments::default(), place);
    }
}

/// A command that the program starts itself.
fn started_command(machine: &Machine<'_>) -> Option<String> {
    let names = ["run", "Popen", "system", "check_call", "check_output", "call", "execvp"];
    machine.calls(&names).find_map(|(call, _)| {
        let object = &machine.heap.objects[call];
        let path = machine.path(&object.callee)?;
        if !path.starts_with("subprocess") && !path.starts_with("os.") {
            return None;
        }
        let line = match object.arguments.places.first().or(object.arguments.named("args"))? {
            Value::Str(line) => line.to_string(),
            Value::List(id) | Value::Tuple(id) => {
                let words = machine.heap.sequences[*id].items.iter().map(|word| machine.shown(word));
                let words: Vec<String> = words.collect::<Option<_>>()?;
                shlex::try_join(words.iter().map(String::as_str)).ok()?
            }
            _ => return None,
        };
        let settings = settings_of(machine, object.arguments.named("env").unwrap_or(&machine.environ));
        let line = settings + &line;
        crate::command::looks_like("", &line).then_some(line)
    })
}

/// Variables of an environment that the program sets, as lines of a shell.
fn settings_of(machine: &Machine<'_>, environ: &Value) -> String {
    let Value::Dict(id) = environ else { return String::new() };
    let items = machine.heap.dicts[*id].items.iter();
    let lines = items.filter_map(|(name, value)| {
        let Value::Str(name) = name else { return None };
        let value = machine.shown(value)?;
        Some(format!("export {name}={}\n", shlex::try_quote(&value).ok()?))
    });
    lines.collect()
}

/// Why a program starts nothing, and what to do.
fn nothing(machine: &Machine<'_>, is_notebook: bool) -> String {
    let file = if is_notebook { "FILE.ipynb" } else { "FILE.py" };
    let way_on = format!("run it dry, without a GPU (vramscope dry-run {file}), or give the command that trains");
    let foreign = machine.events.iter().rev().find_map(|event| {
        let machine::Deed::Call(id) = event.deed else {
            return None;
        };
        let path = machine.path(&machine.heap.objects[id].callee)?;
        let name = last(&path).to_ascii_lowercase();
        let trains = [
            "train",
            "finetune",
            "fine_tune",
            "fit",
            "run_exp",
            "sft_main",
            "rlhf_main",
        ];
        let is_other = ["pretrained", "constrain", "trainer"]
            .iter()
            .any(|word| name.contains(word));
        (!is_other && trains.iter().any(|word| name.contains(word)) && !path.starts_with('?'))
            .then_some((path, event.place))
    });
    match foreign {
        Some((path, place)) => format!(
            "it hands the training to {path} ({}), whose code is not here; {way_on}",
            facts::shown(place)
        ),
        None => {
            format!("no line of it that is read trains: no trainer's train(), and no loop with backward(); {way_on}")
        }
    }
}

impl Options {
    /// Options of a command, and of the settings that it names.
    pub fn of(entries: &[Entry], is_given: bool, is_several: bool) -> Self {
        let mut values: BTreeMap<String, Json> = BTreeMap::new();
        for entry in entries {
            values.insert(entry.key.replace('-', "_"), entry.value.clone());
        }
        Self {
            values,
            is_given,
            is_several,
            files: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
