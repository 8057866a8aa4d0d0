//! Finds a model by its name alone: those of the engine's catalogue, what has their shape, and tools' own names for them.

use std::borrow::Cow;

use serde_json::{Map, Value};
use vramscope_engine::model::ModelError;
use vramscope_engine::suggest::suggest;
use vramscope_engine::{Model, python_json};

use super::aliases;
use super::error::HubError;
use super::own_code::{in_transformers_form, larger_form};
use super::remark::Remark;
use super::repository::Repository;
use super::variants::{Shape, is_copier, is_same_owner, split};
use super::weights::Weights;

/// Checkpoints that were trained from others and have their shape: id, base, source.
const FINE_TUNED: &str = include_str!("fine_tuned.tsv");

/// Configurations of repositories that bring their own code, as published: id and text.
const OWN_CODE: [(&str, &str); 20] = [
    ("Qwen/Qwen-1_8B", include_str!("own_code/Qwen/Qwen-1_8B.json")),
    ("Qwen/Qwen-7B", include_str!("own_code/Qwen/Qwen-7B.json")),
    ("Qwen/Qwen-14B", include_str!("own_code/Qwen/Qwen-14B.json")),
    ("Qwen/Qwen-72B", include_str!("own_code/Qwen/Qwen-72B.json")),
    (
        "OpenGVLab/InternVL-Chat-V1-5",
        include_str!("own_code/OpenGVLab/InternVL-Chat-V1-5.json"),
    ),
    (
        "OpenGVLab/InternVL2-2B",
        include_str!("own_code/OpenGVLab/InternVL2-2B.json"),
    ),
    (
        "OpenGVLab/InternVL2-8B",
        include_str!("own_code/OpenGVLab/InternVL2-8B.json"),
    ),
    (
        "OpenGVLab/InternVL2-26B",
        include_str!("own_code/OpenGVLab/InternVL2-26B.json"),
    ),
    (
        "OpenGVLab/InternVL2-40B",
        include_str!("own_code/OpenGVLab/InternVL2-40B.json"),
    ),
    (
        "OpenGVLab/InternVL2_5-1B",
        include_str!("own_code/OpenGVLab/InternVL2_5-1B.json"),
    ),
    (
        "OpenGVLab/InternVL2_5-2B",
        include_str!("own_code/OpenGVLab/InternVL2_5-2B.json"),
    ),
    (
        "OpenGVLab/InternVL2_5-4B",
        include_str!("own_code/OpenGVLab/InternVL2_5-4B.json"),
    ),
    (
        "OpenGVLab/InternVL2_5-8B",
        include_str!("own_code/OpenGVLab/InternVL2_5-8B.json"),
    ),
    (
        "OpenGVLab/InternVL2_5-26B",
        include_str!("own_code/OpenGVLab/InternVL2_5-26B.json"),
    ),
    (
        "OpenGVLab/InternVL2_5-38B",
        include_str!("own_code/OpenGVLab/InternVL2_5-38B.json"),
    ),
    (
        "OpenGVLab/InternVL2_5-78B",
        include_str!("own_code/OpenGVLab/InternVL2_5-78B.json"),
    ),
    (
        "OpenGVLab/InternVL3-38B",
        include_str!("own_code/OpenGVLab/InternVL3-38B.json"),
    ),
    (
        "OpenGVLab/InternVL3-78B",
        include_str!("own_code/OpenGVLab/InternVL3-78B.json"),
    ),
    (
        "openbmb/MiniCPM-Llama3-V-2_5",
        include_str!("own_code/openbmb/MiniCPM-Llama3-V-2_5.json"),
    ),
    (
        "openbmb/MiniCPM-V-2_6",
        include_str!("own_code/openbmb/MiniCPM-V-2_6.json"),
    ),
];

/// Returns true for repositories of InternVL, which bring their own code but for those whose name ends in `-hf`.
fn brings_own_code(id: &str) -> bool {
    let lower = id.to_ascii_lowercase();
    let name = lower.strip_prefix("opengvlab/internvl");
    name.is_some_and(|name| !name.split('-').any(|part| part == "hf"))
}

/// Returns true for repositories with their own code whose model is bounded from above ([`larger_form`]).
fn is_bounded(name: &str) -> bool {
    name.starts_with("openbmb/")
}

/// A model that is known by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// Name whose configuration it is: of the catalogue, or the id of a repository with its own code.
    pub name: &'static str,
    /// Id that was meant, with its owner where it is known; for messages and exports.
    pub id: String,
    /// Why the model is taken for this one; empty if the name is its own.
    pub remarks: Vec<Remark>,
    /// Type of its stored weights.
    pub weights: Weights,
    /// False if the name alone is alike: its own files are better evidence where they can be had.
    pub is_certain: bool,
}

/// A configuration that is known by its id.
#[derive(Clone, Copy)]
struct Entry {
    name: &'static str,
    has_own_code: bool,
}

impl Known {
    /// The `config.json`, with the type of its weights.
    ///
    /// # Errors
    /// If weights of its type are not simulated ([`Weights::is_refused`]), or the code of its family is not loaded.
    pub fn config(&self) -> Result<Cow<'static, str>, HubError> {
        let text = match OWN_CODE.iter().find(|(id, _)| *id == self.name) {
            Some((_, text)) => *text,
            None => Model::catalogue_config(self.name).map_err(unreadable)?,
        };
        if self.weights == Weights::Plain && !self.is_own_file() {
            return Ok(Cow::Borrowed(text));
        }
        let published = object(text).map_err(unreadable)?;
        let form = in_transformers_form(&published).or_else(|| larger_form(&published));
        let config = form.unwrap_or(published);
        let applied = self.weights.applied(&config).ok_or_else(|| HubError::Packed {
            id: self.id.clone(),
            of: self.name,
            weights: self.weights,
        })?;
        Ok(Cow::Owned(Value::Object(applied).to_string()))
    }

    /// Returns true if its repository brings its own code, of which the form in transformers is simulated.
    pub fn has_own_code(&self) -> bool {
        self.is_own_file() || brings_own_code(&self.id)
    }

    /// Returns true if its configuration is the file of a repository with its own code.
    fn is_own_file(&self) -> bool {
        OWN_CODE.iter().any(|(id, _)| *id == self.name)
    }
}

fn unreadable(error: ModelError) -> HubError {
    HubError::Refused(error.to_string())
}

fn object(text: &str) -> Result<Map<String, Value>, ModelError> {
    match python_json::read(text) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(ModelError("a config.json is a JSON object".into())),
    }
}

/// Ids and names that are known, those of the catalogue first.
pub fn known_ids() -> impl Iterator<Item = &'static str> {
    let own = OWN_CODE.iter().map(|(id, _)| *id);
    Model::catalogue().into_iter().chain(own)
}

/// Returns ids near to what was given, nearest first, of those whose configuration is known.
pub fn nearest_known(given: &str) -> Vec<&'static str> {
    let names: Vec<&'static str> = known_ids().chain(fine_tuned().map(|[id, _]| id)).collect();
    suggest(given, &names)
}

/// Returns ids near to what was given, nearest first: those that are known, and those that tools name.
pub fn nearest(given: &str) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = known_ids()
        .chain(fine_tuned().map(|[id, _]| id))
        .chain(aliases::ids())
        .collect();
    names.sort_unstable();
    names.dedup();
    suggest(given, &names)
}

/// Finds a model by a name, an id, an address, a tool's own name, or the last part of a path. Reads no file.
pub fn known(given: &str) -> Option<Known> {
    let given = given.trim();
    if let Some(entry) = entries().find(|entry| entry.name.eq_ignore_ascii_case(given)) {
        return Some(entry.known(entry.name.to_owned(), Weights::Plain));
    }
    if let Some((tool, id)) = aliases::find(given) {
        let mut found = of_repository(&Repository::parse(id)?)?;
        found.remark_first(Remark::Alias {
            given: given.to_owned(),
            id: id.to_owned(),
            tool: tool.name(),
        });
        return Some(found);
    }
    match Repository::parse(given) {
        Some(repository) => of_repository(&repository).or_else(|| of_path(given)),
        None => of_path(given),
    }
}

/// All configurations that are known by an id or a name.
fn entries() -> impl Iterator<Item = Entry> {
    let of = |has_own_code| move |name| Entry { name, has_own_code };
    let own = OWN_CODE.iter().map(|(id, _)| *id);
    Model::catalogue().into_iter().map(of(false)).chain(own.map(of(true)))
}

/// Rows of [`FINE_TUNED`]: id and base.
fn fine_tuned() -> impl Iterator<Item = [&'static str; 2]> {
    FINE_TUNED.lines().filter_map(|line| {
        let mut cells = line.split('\t');
        Some([cells.next()?, cells.next()?])
    })
}

impl Entry {
    fn known(self, id: String, weights: Weights) -> Known {
        let mut known = Known {
            name: self.name,
            id,
            remarks: Vec::new(),
            weights,
            is_certain: true,
        };
        if self.name.contains("-Omni-") {
            known.remarks.push(Remark::Thinker {
                id: self.name.to_owned(),
            });
        }
        if self.has_own_code {
            let id = self.name.to_owned();
            known.remarks.push(match is_bounded(self.name) {
                true => Remark::Larger { id },
                false => Remark::OwnCode { id, file: None },
            });
        }
        known
    }
}

impl Known {
    fn remark_first(&mut self, remark: Remark) {
        self.remarks.insert(0, remark);
    }
}

/// Finds a repository among those that are known, and those that have their shape.
fn of_repository(repository: &Repository) -> Option<Known> {
    let mut found = of_id(&repository.id)?;
    let is_main = matches!(repository.revision.as_deref(), None | Some("main" | "master"));
    if !is_main {
        found.is_certain = false;
        found.remarks.push(Remark::Revision {
            revision: repository.revision.clone().unwrap_or_default(),
        });
    }
    Some(found)
}

fn of_id(id: &str) -> Option<Known> {
    if let Some(entry) = entries().find(|entry| entry.name.eq_ignore_ascii_case(id)) {
        return Some(entry.known(entry.name.to_owned(), Weights::Plain));
    }
    let (owner, name) = id.split_once('/')?;
    let (rest, shape, weights) = split(owner, name);
    let of_base = || {
        let plain = format!("{owner}/{rest}");
        let [base_id, base] = fine_tuned().find(|[id, _]| {
            let (of, named) = id.split_once('/').unwrap_or(("", id));
            id.eq_ignore_ascii_case(&plain) || (is_copier(owner) && named.eq_ignore_ascii_case(&rest) && !of.is_empty())
        })?;
        let mut found = of_id(base)?;
        found.id = base_id.to_owned();
        found.remark_first(Remark::Shape {
            id: base_id.to_owned(),
            of: base.to_owned(),
        });
        Some(found)
    };
    let candidate = best(owner, &rest, &shape).map(|entry| {
        let mut found = entry.known(entry.name.to_owned(), Weights::Plain);
        let theirs = entry.name.split_once('/').map_or("", |(owner, _)| owner);
        found.is_certain = is_same_owner(owner, theirs) || is_copier(owner);
        found
    });
    let mut found = of_base().or(candidate)?;
    let base = std::mem::replace(&mut found.id, id.to_owned());
    found.weights = weights;
    let (id, of) = (id.to_owned(), base);
    if weights != Weights::Plain {
        found.remark_first(Remark::Stored {
            id: id.clone(),
            of,
            weights,
        });
    } else if found.remarks.is_empty() || found.is_own_file() {
        found.remark_first(Remark::Shape { id: id.clone(), of });
    }
    if brings_own_code(&id) && !found.is_own_file() {
        found.remarks.push(Remark::OwnCode { id, file: None });
    }
    Some(found)
}

/// The known checkpoint of this shape: of the same owner if there is one, and of the same training.
fn best(owner: &str, rest: &str, shape: &Shape) -> Option<Entry> {
    let alike = entries().filter_map(|entry| {
        let (theirs, name) = entry.name.split_once('/')?;
        (split(theirs, name).1 == *shape).then(|| {
            let is_same_name = name.eq_ignore_ascii_case(rest);
            ((is_same_owner(owner, theirs), is_same_name, !entry.has_own_code), entry)
        })
    });
    // The first of the best, in the order of the catalogue.
    alike
        .fold(None, |best: Option<((bool, bool, bool), Entry)>, one| match best {
            Some(best) if best.0 >= one.0 => Some(best),
            _ => Some(one),
        })
        .map(|(_, entry)| entry)
}

/// Folders that a path ends in below a model's own.
fn is_inside_a_model(part: &str) -> bool {
    let is_commit = part.len() == 40 && part.chars().all(|c| c.is_ascii_hexdigit());
    let is_named = [
        "snapshots",
        "main",
        "master",
        "config.json",
        "final",
        "hub",
        "models",
        ".",
        "..",
    ]
    .contains(&part);
    is_commit || is_named || part.starts_with("checkpoint-") || part.is_empty()
}

/// Takes a path for the model that its last part names.
fn of_path(path: &str) -> Option<Known> {
    let mut parts = path.split(['/', '\\']).rev().skip_while(|part| is_inside_a_model(part));
    let last = parts.next()?;
    if let Some(repository) = Repository::parse(last) {
        let mut found = of_repository(&repository)?;
        found.remark_first(Remark::Folder {
            path: path.to_owned(),
            id: repository.to_string(),
        });
        return Some(found);
    }
    // ModelScope's cache writes a dot so.
    let name = last.replace("___", ".");
    let with_owner = parts.next().map(|owner| format!("{owner}/{name}"));
    let of_owner = with_owner
        .as_deref()
        .and_then(Repository::parse)
        .and_then(|id| of_id(&id.id));
    let mut found = match of_owner.filter(|found| found.is_certain) {
        Some(found) => found,
        None => of_name(&name)?,
    };
    if path != found.id {
        found.remark_first(Remark::Path {
            path: path.to_owned(),
            id: found.id.clone(),
        });
    }
    Some(found)
}

/// Finds a checkpoint by its name without an owner.
fn of_name(name: &str) -> Option<Known> {
    let (rest, ..) = split("", name);
    let same = |id: &'static str| {
        let (owner, of) = id.split_once('/')?;
        of.eq_ignore_ascii_case(&rest).then_some(owner)
    };
    let owner = known_ids()
        .find_map(same)
        .or_else(|| fine_tuned().find_map(|[id, _]| same(id)));
    let owner = owner.or_else(|| aliases::ids().find_map(same));
    let owner = owner.or_else(|| {
        // A variant whose owner no table names: the checkpoint of its shape.
        let shape = Shape::of(&rest);
        let entry = best("", &rest, &shape)?;
        entry.name.split_once('/').map(|(owner, _)| owner)
    })?;
    of_id(&format!("{owner}/{name}"))
}

#[cfg(test)]
mod tests;
