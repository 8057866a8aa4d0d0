//! What a shell knows at a place of a script.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::arithmetic::Names;
use super::path::file_name;
use super::syntax::List;
use super::{is_open, open};
use crate::MOST_BYTES;

/// Value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(Rc<str>),
    /// An array; of one that is open, a text.
    List(Rc<Vec<String>>),
    /// An array with keys.
    Map(Rc<BTreeMap<String, String>>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    pub value: Value,
    pub is_exported: bool,
}

/// What stops the commands that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Flow {
    #[default]
    Go,
    Break,
    Continue,
    Return,
    Exit,
}

#[derive(Debug, Clone, Default)]
pub(super) struct State {
    variables: BTreeMap<Rc<str>, Variable>,
    pub functions: BTreeMap<String, Rc<List>>,
    /// Arguments of the script or function; `None` for those of the script that is given, which nobody knows.
    pub arguments: Option<Rc<Vec<String>>>,
    /// Files that were written, by path.
    pub files: Rc<BTreeMap<String, String>>,
    /// Folder, from the one in which the script is started.
    pub folder: String,
    /// Name of the script as it was called, and of the source in which it stands.
    pub script: Rc<str>,
    pub source: Rc<str>,
    pub flow: Flow,
    /// Conditions around this place that are not known.
    pub conditions: usize,
    /// Calls and scripts around this place.
    pub calls: usize,
}

impl State {
    /// The state at the beginning of the script that is given.
    pub fn of_script(name: &str) -> Self {
        Self {
            script: file_name(name).into(),
            source: name.into(),
            ..Self::default()
        }
    }

    /// The folder as a path.
    pub fn place(&self) -> String {
        match self.folder.as_str() {
            "" => ".".to_owned(),
            folder => format!("./{folder}"),
        }
    }

    pub fn len(&self) -> usize {
        self.variables.len()
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.variables.get(name).map(|variable| &variable.value)
    }

    /// Gives a variable a value. A text longer than any file that is read is open: it may have doubled line by line.
    pub fn set(&mut self, name: &str, value: Value) {
        let is_too_long = match &value {
            Value::Text(text) => text.len() > MOST_BYTES,
            Value::List(items) => items.iter().map(String::len).sum::<usize>() > MOST_BYTES,
            Value::Map(items) => items.values().map(String::len).sum::<usize>() > MOST_BYTES,
        };
        let value = if is_too_long {
            Value::Text(open(&format!("${name}")).into())
        } else {
            value
        };
        let is_exported = self.variables.get(name).is_some_and(|variable| variable.is_exported);
        self.variables.insert(name.into(), Variable { value, is_exported });
    }

    pub fn set_text(&mut self, name: &str, text: &str) {
        self.set(name, Value::Text(text.into()));
    }

    pub fn export(&mut self, name: &str) {
        if let Some(variable) = self.variables.get_mut(name) {
            variable.is_exported = true;
        }
    }

    pub fn unset(&mut self, name: &str) {
        self.variables.remove(name);
    }

    /// Variables of the environment that programs see.
    pub fn exported(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables
            .iter()
            .filter_map(|(name, variable)| match &variable.value {
                Value::Text(text) if variable.is_exported => Some((&**name, &**text)),
                _ => None,
            })
    }

    /// The state of a script that is started from here: it has the environment alone.
    pub fn of_child(&self) -> Self {
        let variables = self.variables.iter().filter(|(_, variable)| variable.is_exported);
        Self {
            variables: variables
                .map(|(name, variable)| (name.clone(), variable.clone()))
                .collect(),
            functions: BTreeMap::new(),
            flow: Flow::Go,
            calls: self.calls + 1,
            ..self.clone()
        }
    }

    /// Joins two ways of which one is gone: what differs is open. A way that ends the script is none of those that go on.
    pub fn join(&mut self, other: Self) {
        let ends = |state: &Self| matches!(state.flow, Flow::Exit | Flow::Return);
        if ends(self) || ends(&other) {
            if ends(self) && !ends(&other) {
                *self = other;
            }
            return;
        }
        let names: Vec<Rc<str>> = self.variables.keys().chain(other.variables.keys()).cloned().collect();
        for name in names {
            let (own, others) = (self.variables.get(&name), other.variables.get(&name));
            if own.map(|own| &own.value) == others.map(|others| &others.value) {
                continue;
            }
            let is_exported = [own, others].into_iter().flatten().any(|variable| variable.is_exported);
            let value = Value::Text(open(&format!("${name}")).into());
            self.variables.insert(name, Variable { value, is_exported });
        }
        self.functions.extend(other.functions);
        if self.files != other.files {
            let files = Rc::make_mut(&mut self.files);
            for (path, text) in other.files.iter() {
                if files.insert(path.clone(), text.clone()).is_some_and(|own| own != *text) {
                    files.remove(path);
                }
            }
        }
        self.flow = Flow::Go;
    }

    /// Number of GPUs that programs see, if a line says.
    pub fn visible(&self) -> Option<usize> {
        match self.get("CUDA_VISIBLE_DEVICES")? {
            Value::Text(list) if !list.is_empty() && !is_open(list) => {
                Some(list.split(',').filter(|part| !part.trim().is_empty()).count())
            }
            _ => None,
        }
    }
}

impl Names for State {
    fn number(&self, name: &str) -> Option<i64> {
        let text = match self.get(name)? {
            Value::Text(text) => &**text,
            Value::List(items) => items.first()?.as_str(),
            Value::Map(_) => return None,
        };
        match text.trim() {
            "" => Some(0),
            text => text.parse().ok(),
        }
    }

    fn assign(&mut self, name: &str, value: Option<i64>) {
        match value {
            Some(value) => self.set_text(name, &value.to_string()),
            None => self.set_text(name, &open(&format!("${name}"))),
        }
    }
}
