//! Brings together a script, the command that starts it, and what else was given.

use serde_json::Value;

use crate::entry::Entry;
use crate::keys::is_of_launcher;
use crate::launcher::Launcher;
use crate::python::{self, Facts, Options, Program, Started};
use crate::{LaunchError, Parsed, Source, parse};

/// Sources that were parsed, with the number of each.
pub(crate) type Numbered = Vec<(usize, Parsed)>;

/// What the script among the sources says, and which of them it is; what it starts or writes is added to them. `None` if
/// no script starts the run. `has_bf16` is of the card, if one is told.
///
/// # Errors
/// If the script cannot be read.
pub(crate) fn facts(
    sources: &[Source<'_>],
    parsed: &mut Numbered,
    has_bf16: Option<bool>,
) -> Result<Option<(usize, Facts)>, LaunchError> {
    take_files(parsed)?;
    // A script may start the command of another.
    for _ in 0..2 {
        let Some((at, started)) = started(sources, parsed, has_bf16)? else {
            return Ok(None);
        };
        let number = parsed[at].0;
        match started {
            Started::Run(facts) => {
                leave_out_unread(sources, parsed, &facts);
                return Ok(Some((at, facts)));
            }
            Started::Command(line, written) => {
                let command = parse(
                    Source {
                        name: "command.sh",
                        text: &line,
                    },
                    sources,
                )
                .map_err(|error| match error {
                    LaunchError::Unreadable { reason, .. } => unreadable(sources, number, reason),
                    other => other,
                })?;
                parsed[at].1.script = None;
                for (name, text) in &written {
                    parsed.extend(parse(Source { name, text }, &[]).ok().map(|file| (number, file)));
                }
                parsed.push((number, command));
            }
        }
    }
    Ok(None)
}

fn unreadable(sources: &[Source<'_>], number: usize, reason: String) -> LaunchError {
    let name = sources.get(number).map_or("script", |source| source.name);
    LaunchError::Unreadable {
        name: name.to_owned(),
        reason,
    }
}

/// Adds the files that notebooks write.
fn take_files(parsed: &mut Numbered) -> Result<(), LaunchError> {
    let mut added = Vec::new();
    for (number, of) in parsed.iter_mut() {
        let files = of.script.as_mut().map(|script| std::mem::take(&mut script.files));
        for (name, text) in files.into_iter().flatten() {
            let is_read = [".py", ".sh", ".yaml", ".yml", ".json"]
                .iter()
                .any(|ending| name.ends_with(ending));
            if is_read {
                let source = Source {
                    name: &name,
                    text: &text,
                };
                // What a cell writes may be data.
                added.extend(parse(source, &[]).ok().map(|parsed| (*number, parsed)));
            }
        }
    }
    parsed.extend(added);
    Ok(())
}

/// What the script that starts the run starts, and its place; `None` if the command starts no script that is here.
fn started(
    sources: &[Source<'_>],
    parsed: &Numbered,
    has_bf16: Option<bool>,
) -> Result<Option<(usize, Started)>, LaunchError> {
    let scripts: Vec<(usize, &Program)> = parsed
        .iter()
        .enumerate()
        .filter_map(|(at, (_, of))| Some((at, of.script.as_deref()?)))
        .collect();
    let command = parsed.iter().map(|(_, of)| of).find(|of| of.is_command);
    let main = match command {
        Some(command) => scripts
            .iter()
            .position(|(_, script)| script.is_started_by(&command.words)),
        None => (!scripts.is_empty()).then_some(0),
    };
    let Some(main) = main else { return Ok(None) };
    let settings = parsed.iter().map(|(_, of)| of).filter(|of| of.is_settings());
    let entries: Vec<Entry> = settings
        .chain(command)
        .flat_map(|of| of.entries.iter().cloned())
        .collect();
    let is_several = command.is_some_and(|of| of.launcher != Some(Launcher::One));
    let mut options = Options::of(&entries, command.is_some(), is_several);
    options.files = settings_among(sources);
    let programs: Vec<&Program> = scripts.iter().map(|(_, script)| *script).collect();
    let at = scripts[main].0;
    python::read(&programs, main, &options, has_bf16)
        .map(|started| Some((at, started)))
        .map_err(|reason| unreadable(sources, parsed[at].0, reason))
}

/// Leaves out what files hold that a script mentions, if they are of no tool and no line that is read loads them: a model's
/// configuration, or settings of another program.
fn leave_out_unread(sources: &[Source<'_>], parsed: &mut Numbered, facts: &Facts) {
    let scripts = parsed.iter().filter_map(|(_, of)| of.script.as_ref());
    let mentioned: Vec<String> = scripts.flat_map(|script| script.mentioned().to_vec()).collect();
    for (number, of) in parsed.iter_mut() {
        let name = sources.get(*number).map_or("", |source| source.name);
        let is_mentioned = || crate::shell::fitting(mentioned.iter().map(String::as_str), name).is_some();
        if !of.is_command && of.script.is_none() && of.tool.is_none() && is_mentioned() {
            of.entries
                .retain(|entry| facts.taken.contains(&entry.key.replace('-', "_")));
        }
    }
}

/// Files of settings among the sources, as a script may read them.
fn settings_among(sources: &[Source<'_>]) -> Vec<(String, Value)> {
    let value = |source: &Source<'_>| {
        let is = |endings: &[&str]| endings.iter().any(|ending| source.name.ends_with(ending));
        match (is(&[".json"]), is(&[".yaml", ".yml"])) {
            (true, _) => serde_json::from_str(source.text).ok(),
            (_, true) => crate::yaml::value(source.text),
            _ => None,
        }
    };
    let all = sources.iter().filter(|source| source.text.len() <= crate::MOST_BYTES);
    all.filter_map(|source| Some((source.name.to_owned(), value(source)?)))
        .collect()
}

/// True for an option that the script takes, or that nothing reads: its own lines say what it does.
pub(crate) fn is_of_script(facts: &Facts, key: &str) -> bool {
    facts.taken.contains(key) || !facts.reads_options && !is_of_launcher(key)
}
