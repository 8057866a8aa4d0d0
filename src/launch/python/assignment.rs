//! Assignments: to names, attributes, items, and to several targets at once; and the elements of what is assigned or walked.

use ruff_python_ast::Expr;

use super::heap::{Id, MOST_ELEMENTS, Scope, Slot, UNKNOWN, Value};
use super::machine::{Deed, Machine};

impl<'a> Machine<'a> {
    /// Writes a name of a scope.
    pub(super) fn set(&mut self, name: &str, value: Value, scope: Id) {
        let of: &Scope = &self.heap.scopes[scope];
        let scope = if of.globals.iter().any(|own| own == name) {
            of.file
        } else {
            scope
        };
        self.heap.set_name(scope, name, value);
    }

    pub(super) fn assign(&mut self, target: &'a Expr, value: Value, scope: Id) {
        match target {
            Expr::Name(of) => self.set(of.id.as_str(), value, scope),
            Expr::Attribute(of) => {
                let owner = self.expression(&of.value, scope);
                self.set_attribute(&owner, of.attr.as_str(), value);
            }
            Expr::Subscript(of) => {
                let owner = self.expression(&of.value, scope);
                let key = self.expression(&of.slice, scope);
                self.set_item(&owner, &key, value);
            }
            Expr::Starred(of) => self.assign(&of.value, UNKNOWN, scope),
            Expr::Tuple(of) => self.unpack(&of.elts, &value, scope),
            Expr::List(of) => self.unpack(&of.elts, &value, scope),
            _ => {}
        }
    }

    pub(super) fn set_attribute(&mut self, owner: &Value, name: &str, value: Value) {
        if let Value::Module(scope) = owner {
            return self.heap.set_name(*scope, name, value);
        }
        let place = self.place;
        self.heap.set_attribute(owner, name, value.clone());
        if matches!(owner, Value::Object(_) | Value::Member(_)) {
            self.event(Deed::Set(owner.clone(), name.to_owned(), value), place);
        }
    }

    pub(super) fn set_item(&mut self, owner: &Value, key: &Value, value: Value) {
        match owner {
            Value::Dict(id) => {
                self.heap.note(Slot::Dict(*id));
                match key.is_unknown() {
                    true => {
                        let dict = &mut self.heap.dicts[*id];
                        dict.is_open = true;
                        dict.items.iter_mut().for_each(|(_, value)| *value = UNKNOWN);
                    }
                    false => self.heap.dicts[*id].put(key.clone(), value),
                }
                let length = self.heap.dicts[*id].items.len();
                self.step(length);
            }
            Value::List(id) => {
                self.heap.note(Slot::Sequence(*id));
                let list = &mut self.heap.sequences[*id];
                let place = match key {
                    Value::Int(at) => usize::try_from(*at).ok(),
                    _ => None,
                };
                match place.and_then(|place| list.items.get_mut(place)) {
                    Some(item) => *item = value,
                    None => list.is_open = true,
                }
            }
            _ => {}
        }
    }

    fn unpack(&mut self, targets: &'a [Expr], value: &Value, scope: Id) {
        let star = targets.iter().position(|target| matches!(target, Expr::Starred(_)));
        let known = self.elements(value);
        for (at, target) in targets.iter().enumerate() {
            if let (Some(star), Expr::Starred(of)) = (star, target) {
                let rest = known.as_ref().map(|items| {
                    let end = items.len().saturating_sub(targets.len() - star - 1);
                    items.get(star..end).unwrap_or_default().to_vec()
                });
                let is_open = rest.is_none();
                let list = self.heap.list(rest.unwrap_or_default(), is_open);
                self.assign(&of.value, list, scope);
                continue;
            }
            let behind = star.is_some_and(|star| at > star);
            let item = match &known {
                Some(items) if behind => {
                    let from_end = targets.len() - at;
                    items.len().checked_sub(from_end).and_then(|at| items.get(at)).cloned()
                }
                Some(items) => items.get(at).cloned(),
                None => Some(self.part(value, at)),
            };
            self.assign(target, item.unwrap_or(UNKNOWN), scope);
        }
    }

    /// The part of a value that several names take apart. What loads or wraps a model gives back the model first.
    fn part(&mut self, value: &Value, at: usize) -> Value {
        if let Value::Object(id) = value {
            let object = &self.heap.objects[*id];
            let name = self.last_name(&object.callee);
            match name.as_deref() {
                Some("prepare") => return object.arguments.places.get(at).cloned().unwrap_or(UNKNOWN),
                Some("from_pretrained" | "initialize" | "setup_chat_format") if at == 0 => return value.clone(),
                _ => {}
            }
        }
        self.heap.member(value, &format!("[{at}]"))
    }

    /// An element of a value whose elements are not known.
    pub(super) fn element(&mut self, value: &Value) -> Value {
        self.heap.member(value, "[]")
    }

    /// Elements of a value, if all are known.
    pub(super) fn elements(&mut self, value: &Value) -> Option<Vec<Value>> {
        let out: Vec<Value> = match value {
            Value::List(id) | Value::Tuple(id) => {
                let sequence = &self.heap.sequences[*id];
                (!sequence.is_open).then(|| sequence.items.clone())?
            }
            Value::Dict(id) => {
                let dict = &self.heap.dicts[*id];
                (!dict.is_open).then(|| dict.items.iter().map(|(key, _)| key.clone()).collect())?
            }
            Value::Str(text) if text.len() < MOST_ELEMENTS => {
                text.chars().map(|c| Value::Str(c.to_string().into())).collect()
            }
            _ => return None,
        };
        self.step(out.len());
        Some(out)
    }
}
