//! Values of a program that is read, and the memory that holds them.
//!
//! Lists, dictionaries, objects and scopes lie in arenas, so that values are small, cycles cost nothing and dropping them
//! recurses nowhere. Writes are kept in a journal while both ways of a condition that cannot be decided are read.

use std::collections::BTreeMap;
use std::rc::Rc;

use ruff_python_ast::{Expr, StmtClassDef, StmtFunctionDef};
use serde_json::Value as Json;

use super::source::Place;

/// Place in an arena.
pub(super) type Id = usize;

/// Why a value is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It is computed where the script runs.
    Computed,
    /// The card decides it.
    Card,
}

/// A value as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Unknown(Why),
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Rc<str>),
    List(Id),
    Tuple(Id),
    Dict(Id),
    /// A sequence that is not known, of at most so many elements.
    Cut(i64),
    /// What an import or a built-in name stands for, with its path.
    Symbol(Rc<str>),
    Function(Id),
    /// A method and the object that it belongs to.
    Bound(Id, Id),
    Class(Id),
    /// What a call made: of something imported, or of a class of the script.
    Object(Id),
    /// An attribute of a value that has no known one of this name.
    Member(Id),
    /// Another file of the script, by the scope of its names.
    Module(Id),
}

impl Value {
    /// Nothing, a truth, a number or a text as JSON; `None` for all else.
    pub fn scalar(&self) -> Option<Json> {
        Some(match self {
            Self::None => Json::Null,
            Self::Bool(truth) => Json::Bool(*truth),
            Self::Int(number) => (*number).into(),
            Self::Float(number) => serde_json::Number::from_f64(*number).map(Json::Number)?,
            Self::Str(text) => Json::String(text.to_string()),
            _ => return None,
        })
    }
}

pub(super) const UNKNOWN: Value = Value::Unknown(Why::Computed);

impl Value {
    pub fn text(text: &str) -> Self {
        match text.len() <= MOST_TEXT {
            true => Self::Str(text.into()),
            false => UNKNOWN,
        }
    }

    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }
}

/// Bytes of a text, at most: longer ones are not known.
const MOST_TEXT: usize = 1 << 16;

/// Elements of a list, at most: of longer ones the rest is not known.
pub(super) const MOST_ELEMENTS: usize = 4096;

/// A list or a tuple.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Sequence {
    pub items: Vec<Value>,
    /// There may be other elements, or others in their place.
    pub is_open: bool,
}

/// A dictionary.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Dict {
    pub items: Vec<(Value, Value)>,
    /// There may be other keys.
    pub is_open: bool,
}

impl Dict {
    pub fn get(&self, key: &str) -> Option<&Value> {
        let is_key = |own: &Value| matches!(own, Value::Str(own) if &**own == key);
        self.items.iter().find(|(own, _)| is_key(own)).map(|(_, value)| value)
    }

    pub fn put(&mut self, key: Value, value: Value) {
        match self.items.iter().position(|(own, _)| *own == key) {
            Some(at) => self.items[at].1 = value,
            None if self.items.len() < MOST_ELEMENTS => self.items.push((key, value)),
            None => self.is_open = true,
        }
    }
}

/// Arguments of a call.
#[derive(Debug, Clone, Default)]
pub(super) struct Arguments {
    pub places: Vec<Value>,
    pub names: Vec<(String, Value)>,
    /// Some were passed with `*` or `**` and are not known.
    pub is_open: bool,
}

impl Arguments {
    pub fn named(&self, name: &str) -> Option<&Value> {
        self.names
            .iter()
            .rev()
            .find(|(own, _)| own == name)
            .map(|(_, value)| value)
    }

    /// An argument by its name, or by its place.
    pub fn get(&self, name: &str, place: usize) -> Option<&Value> {
        self.named(name).or_else(|| self.places.get(place))
    }
}

/// What a call made.
#[derive(Debug, Clone)]
pub(super) struct Object {
    /// What was called.
    pub callee: Value,
    pub arguments: Arguments,
    pub place: Place,
    /// Its arguments are those of the command, where the script does not set them: a parser made it.
    pub is_parsed: bool,
}

/// A function of the script.
pub(super) struct Function<'a> {
    pub body: Body<'a>,
    pub scope: Id,
    /// Values of parameters that have one.
    pub defaults: Vec<Option<Value>>,
    pub decorators: Vec<Value>,
    pub unit: usize,
}

#[derive(Clone, Copy)]
pub(super) enum Body<'a> {
    Statements(&'a StmtFunctionDef),
    Expression(Option<&'a ruff_python_ast::Parameters>, &'a Expr),
}

/// A class of the script.
pub(super) struct Class<'a> {
    pub def: &'a StmtClassDef,
    pub bases: Vec<Value>,
    pub scope: Id,
    pub is_dataclass: bool,
    /// Its annotated names, in order.
    pub fields: Vec<&'a str>,
}

/// Names of a function, class or file.
#[derive(Default)]
pub(super) struct Scope {
    pub names: BTreeMap<String, Value>,
    pub parent: Option<Id>,
    /// Scope of the file.
    pub file: Id,
    /// Names that are the file's.
    pub globals: Vec<String>,
}

/// What has attributes: the kind, its place in an arena, or its path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    Object(Id),
    Member(Id),
    Class(Id),
    Function(Id),
    Symbol(Rc<str>),
}

impl Owner {
    pub fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Object(id) => Self::Object(*id),
            Value::Member(id) => Self::Member(*id),
            Value::Class(id) => Self::Class(*id),
            Value::Function(id) => Self::Function(*id),
            Value::Symbol(path) => Self::Symbol(path.clone()),
            _ => return None,
        })
    }
}

/// What can be written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    Name(Id, String),
    Attribute(Owner, String),
    Sequence(Id),
    Dict(Id),
}

/// What a slot holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Held {
    Nothing,
    Value(Value),
    Sequence(Sequence),
    Dict(Dict),
}

#[derive(Default)]
pub(super) struct Heap<'a> {
    pub sequences: Vec<Sequence>,
    pub dicts: Vec<Dict>,
    pub objects: Vec<Object>,
    pub functions: Vec<Function<'a>>,
    pub classes: Vec<Class<'a>>,
    pub scopes: Vec<Scope>,
    /// A value and the name of its attribute.
    pub members: Vec<(Value, String)>,
    by_name: BTreeMap<(Owner, String), Id>,
    attributes: BTreeMap<(Owner, String), Value>,
    /// Slots that were written, with what they held before; kept while `forks` are open.
    journal: Vec<(Slot, Held)>,
    forks: usize,
}

impl<'a> Heap<'a> {
    pub fn list(&mut self, items: Vec<Value>, is_open: bool) -> Value {
        Value::List(self.sequence(items, is_open))
    }

    pub fn tuple(&mut self, items: Vec<Value>) -> Value {
        Value::Tuple(self.sequence(items, false))
    }

    fn sequence(&mut self, mut items: Vec<Value>, is_open: bool) -> Id {
        let is_open = is_open || items.len() > MOST_ELEMENTS;
        items.truncate(MOST_ELEMENTS);
        self.sequences.push(Sequence { items, is_open });
        self.sequences.len() - 1
    }

    pub fn dict(&mut self, dict: Dict) -> Value {
        self.dicts.push(dict);
        Value::Dict(self.dicts.len() - 1)
    }

    pub fn object(&mut self, object: Object) -> Value {
        self.objects.push(object);
        Value::Object(self.objects.len() - 1)
    }

    pub fn function(&mut self, function: Function<'a>) -> Value {
        self.functions.push(function);
        Value::Function(self.functions.len() - 1)
    }

    /// A scope within another, or that of a file.
    pub fn scope(&mut self, parent: Option<Id>) -> Id {
        let id = self.scopes.len();
        let file = parent.map_or(id, |parent| self.scopes[parent].file);
        self.scopes.push(Scope {
            parent,
            file,
            ..Scope::default()
        });
        id
    }

    /// The attribute of a value that has no known one of this name; the same each time.
    pub fn member(&mut self, of: &Value, name: &str) -> Value {
        if let Value::Symbol(path) = of {
            return match path.len() < 1024 {
                true => Value::Symbol(format!("{path}.{name}").into()),
                false => UNKNOWN,
            };
        }
        let Some(owner) = Owner::of(of) else { return UNKNOWN };
        let next = self.members.len();
        let id = *self.by_name.entry((owner, name.to_owned())).or_insert(next);
        if id == next {
            self.members.push((of.clone(), name.to_owned()));
        }
        Value::Member(id)
    }

    pub fn attribute(&self, of: &Value, name: &str) -> Option<&Value> {
        self.attributes.get(&(Owner::of(of)?, name.to_owned()))
    }

    /// All attributes of a value that were set.
    pub fn attributes(&self, of: &Value) -> Vec<(String, Value)> {
        let Some(owner) = Owner::of(of) else { return Vec::new() };
        let of_owner = self.attributes.range((owner.clone(), String::new())..);
        let own = of_owner.take_while(|((own, _), _)| *own == owner);
        own.map(|((_, name), value)| (name.clone(), value.clone())).collect()
    }

    pub fn held(&self, slot: &Slot) -> Held {
        match slot {
            Slot::Name(scope, name) => self.scopes[*scope]
                .names
                .get(name)
                .cloned()
                .map_or(Held::Nothing, Held::Value),
            Slot::Attribute(owner, name) => {
                let value = self.attributes.get(&(owner.clone(), name.clone()));
                value.cloned().map_or(Held::Nothing, Held::Value)
            }
            Slot::Sequence(id) => Held::Sequence(self.sequences[*id].clone()),
            Slot::Dict(id) => Held::Dict(self.dicts[*id].clone()),
        }
    }

    /// Notes what a slot holds before it is written.
    pub fn note(&mut self, slot: Slot) {
        if self.forks > 0 {
            let held = self.held(&slot);
            self.journal.push((slot, held));
        }
    }

    pub fn set_name(&mut self, scope: Id, name: &str, value: Value) {
        self.note(Slot::Name(scope, name.to_owned()));
        self.scopes[scope].names.insert(name.to_owned(), value);
    }

    pub fn set_attribute(&mut self, of: &Value, name: &str, value: Value) {
        if let Some(owner) = Owner::of(of) {
            self.note(Slot::Attribute(owner.clone(), name.to_owned()));
            self.attributes.insert((owner, name.to_owned()), value);
        }
    }

    pub fn hold(&mut self, slot: &Slot, held: Held) {
        match (slot, held) {
            (Slot::Name(scope, name), Held::Value(value)) => {
                self.scopes[*scope].names.insert(name.clone(), value);
            }
            (Slot::Name(scope, name), _) => {
                self.scopes[*scope].names.remove(name);
            }
            (Slot::Attribute(owner, name), Held::Value(value)) => {
                self.attributes.insert((owner.clone(), name.clone()), value);
            }
            (Slot::Attribute(owner, name), _) => {
                self.attributes.remove(&(owner.clone(), name.clone()));
            }
            (Slot::Sequence(id), Held::Sequence(sequence)) => self.sequences[*id] = sequence,
            (Slot::Dict(id), Held::Dict(dict)) => self.dicts[*id] = dict,
            (Slot::Sequence(_) | Slot::Dict(_), _) => {}
        }
    }

    /// Begins a way whose writes can be taken back.
    pub fn fork(&mut self) -> usize {
        self.forks += 1;
        self.journal.len()
    }

    /// Ends it; what is written stays.
    pub fn join(&mut self) {
        self.forks -= 1;
        if self.forks == 0 {
            self.journal.clear();
        }
    }

    /// What was written since, as it is now.
    pub fn written(&self, since: usize) -> BTreeMap<Slot, Held> {
        let slots = self.journal[since..].iter().map(|(slot, _)| slot.clone());
        slots.map(|slot| (slot.clone(), self.held(&slot))).collect()
    }

    /// Takes back what was written since.
    pub fn take_back(&mut self, since: usize) {
        for (slot, held) in self.journal.split_off(since).into_iter().rev() {
            self.hold(&slot, held);
        }
    }

    /// Writes what is true of either of two contents.
    pub fn merge(&mut self, slot: &Slot, one: Held, other: Held) {
        let merged = match (one, other) {
            (one, other) if one == other => one,
            (Held::Sequence(one), Held::Sequence(other)) => {
                let length = one.items.len().min(other.items.len());
                let items = std::iter::zip(one.items, other.items).map(|(a, b)| if a == b { a } else { UNKNOWN });
                Held::Sequence(Sequence {
                    items: items.take(length).collect(),
                    is_open: true,
                })
            }
            (Held::Dict(one), Held::Dict(other)) => {
                let mut merged = Dict {
                    items: Vec::new(),
                    is_open: one.is_open || other.is_open,
                };
                for (key, value) in one.items.iter().chain(&other.items) {
                    let in_both = one.items.contains(&(key.clone(), value.clone()))
                        && other.items.contains(&(key.clone(), value.clone()));
                    merged.put(key.clone(), if in_both { value.clone() } else { UNKNOWN });
                }
                Held::Dict(merged)
            }
            _ => Held::Value(UNKNOWN),
        };
        self.note(slot.clone());
        self.hold(slot, merged);
    }
}
