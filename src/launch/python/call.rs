//! Attributes, and calls: of the program's own functions and classes, of Python's own, and of all else, which is written
//! down.

use super::heap::{Arguments, Dict, Id, MOST_ELEMENTS, Slot, UNKNOWN, Value, Why};
use super::machine::Machine;
use super::source::Place;

impl<'a> Machine<'a> {
    /// Path of what an import, or a class of the program that extends one, stands for.
    pub(super) fn path(&self, value: &Value) -> Option<String> {
        match value {
            Value::Symbol(path) => Some(path.to_string()),
            Value::Object(id) => self.path(&self.heap.objects[*id].callee),
            Value::Class(_) => self.foreign_base(value).map(|path| path.to_string()),
            _ => None,
        }
    }

    /// Last name of what is called: of `peft.get_peft_model` and of `Fast.get_peft_model` alike.
    pub(super) fn last_name(&self, callee: &Value) -> Option<String> {
        match callee {
            Value::Member(id) => Some(self.heap.members[*id].1.clone()),
            other => Some(last(&self.path(other)?).to_owned()),
        }
    }

    /// What a class of the program extends, if that is imported.
    pub(super) fn foreign_base(&self, class: &Value) -> Option<std::rc::Rc<str>> {
        let mut at = class.clone();
        for _ in 0..16 {
            match at {
                Value::Class(id) => {
                    let bases = &self.heap.classes[id].bases;
                    let plain = ["object", "ABC", "Generic"];
                    let is_real = |base: &&Value| !matches!(base, Value::Symbol(path) if plain.contains(&last(path)));
                    at = bases.iter().find(is_real)?.clone();
                }
                Value::Symbol(path) => return Some(path),
                _ => return None,
            }
        }
        None
    }

    /// A name of a class or of those that it extends.
    fn of_class(&self, class: Id, name: &str) -> Option<Value> {
        let mut open = vec![class];
        for _ in 0..32 {
            let class = &self.heap.classes[open.pop()?];
            if let Some(value) = self.heap.scopes[class.scope].names.get(name) {
                return Some(value.clone());
            }
            let bases = class.bases.iter().rev();
            open.extend(bases.filter_map(|base| if let Value::Class(id) = base { Some(*id) } else { None }));
        }
        None
    }

    /// A method of an object.
    pub(super) fn method(&self, object: &Value, name: &str) -> Option<Value> {
        let Value::Object(id) = object else { return None };
        let Value::Class(class) = self.heap.objects[*id].callee else {
            return None;
        };
        match self.of_class(class, name)? {
            Value::Function(function) => Some(Value::Bound(*id, function)),
            _ => None,
        }
    }

    pub(super) fn attribute(&mut self, owner: &Value, name: &str) -> Value {
        if let Value::Symbol(path) = owner
            && &**path == "os"
            && name == "environ"
        {
            return self.environ.clone();
        }
        if let Some(value) = self.heap.attribute(owner, name) {
            return value.clone();
        }
        match owner {
            Value::Module(scope) => self.heap.scopes[*scope].names.get(name).cloned().unwrap_or(UNKNOWN),
            Value::Class(id) => match self.of_class(*id, name) {
                Some(value) => self.default_of_field(&value),
                None => self.heap.member(owner, name),
            },
            Value::Object(id) => {
                if let Some(method) = self.method(owner, name) {
                    return method;
                }
                let object = self.heap.objects[*id].clone();
                if let Value::Class(class) = object.callee
                    && let Some(value) = self.of_class(class, name)
                {
                    return self.default_of_field(&value);
                }
                if let Some(value) = self.parsed_attribute(&object, name) {
                    return value;
                }
                // Settings have what they were made with.
                let is_class = self.path(&object.callee).is_some_and(|path| is_class_name(last(&path)));
                match object.arguments.named(name) {
                    Some(value) if is_class => value.clone(),
                    _ => self.heap.member(owner, name),
                }
            }
            // Members of texts, lists and so on are looked up when they are called.
            Value::Str(_) | Value::List(_) | Value::Tuple(_) | Value::Dict(_) => UNKNOWN,
            Value::Unknown(why) => Value::Unknown(*why),
            other => self.heap.member(other, name),
        }
    }

    /// Calls a value with arguments.
    #[expect(clippy::too_many_lines, reason = "one arm for each function or kind of value")]
    pub(super) fn call(&mut self, callee: Value, arguments: Arguments, place: Place) -> Value {
        match &callee {
            Value::Function(id) => match self.clicked(*id, &arguments) {
                Some(arguments) => self.run(*id, arguments),
                None => self.run(*id, arguments),
            },
            Value::Bound(object, function) => {
                let mut arguments = arguments;
                let is_static = {
                    let decorators = &self.heap.functions[*function].decorators;
                    decorators
                        .iter()
                        .any(|of| matches!(of, Value::Symbol(path) if last(path) == "staticmethod"))
                };
                if !is_static {
                    arguments.places.insert(0, Value::Object(*object));
                }
                self.run(*function, arguments)
            }
            Value::Class(_) => self.make(&callee, arguments, place),
            Value::Symbol(path) => {
                let path = path.clone();
                let read = self.loaded(&path, &arguments, place);
                match read.or_else(|| self.builtin(&path, &arguments)) {
                    Some(value) => value,
                    None => self.called(callee, arguments, place),
                }
            }
            Value::Object(id) => {
                let object = self.heap.objects[*id].clone();
                let is_partial = matches!(&object.callee, Value::Symbol(path) if last(path) == "partial");
                if is_partial && let Some((function, places)) = object.arguments.places.split_first() {
                    let mut all = Arguments {
                        places: [places, &arguments.places].concat(),
                        names: object.arguments.names.clone(),
                        is_open: object.arguments.is_open || arguments.is_open,
                    };
                    all.names.extend(arguments.names);
                    return self.call(function.clone(), all, place);
                }
                match self
                    .method(&callee, "__call__")
                    .or_else(|| self.method(&callee, "forward"))
                {
                    Some(method) => self.call(method, arguments, place),
                    None => self.called(callee, arguments, place),
                }
            }
            Value::Member(id) => {
                let (owner, name) = self.heap.members[*id].clone();
                match (&owner, name.as_str()) {
                    // modal's functions run elsewhere, and run.
                    (Value::Function(function), "remote" | "local" | "spawn") => self.run(*function, arguments),
                    (Value::Object(_), "parse_args" | "parse_known_args") => {
                        self.parsed(&owner, &arguments, name == "parse_known_args", place)
                    }
                    (Value::Object(_), name) if name.starts_with("parse_args_") => self.parsed_classes(&owner, place),
                    _ => self.called(callee, arguments, place),
                }
            }
            Value::Unknown(why) => {
                let why = *why;
                self.called(callee, arguments, place);
                Value::Unknown(why)
            }
            _ => UNKNOWN,
        }
    }

    /// Makes an object of a class of the program.
    fn make(&mut self, class: &Value, arguments: Arguments, place: Place) -> Value {
        let Value::Class(id) = *class else { return UNKNOWN };
        let object = self.called(class.clone(), arguments.clone(), place);
        let Value::Object(own) = object else { return object };
        if let Some(Value::Function(init)) = self.of_class(id, "__init__") {
            self.call(Value::Bound(own, init), arguments, place);
            return object;
        }
        if self.heap.classes[id].is_dataclass {
            let fields = self.fields(id);
            for (at, (name, _)) in fields.iter().enumerate() {
                let value = match arguments.get(name, at) {
                    Some(value) => value.clone(),
                    None if arguments.is_open => UNKNOWN,
                    None => match self.of_class(id, name) {
                        Some(value) => self.default_of_field(&value),
                        None => UNKNOWN,
                    },
                };
                self.heap.set_attribute(&object, name, value);
            }
            if let Some(Value::Function(then)) = self.of_class(id, "__post_init__") {
                self.call(Value::Bound(own, then), Arguments::default(), place);
            }
        }
        object
    }

    /// Fields of a dataclass with the text of their types, those of the classes that it extends first.
    pub(super) fn fields(&self, class: Id) -> Vec<(String, String)> {
        let mut chain = vec![class];
        while chain.len() < 16
            && let Some(Value::Class(base)) = self.heap.classes[chain[chain.len() - 1]].bases.first()
        {
            chain.push(*base);
        }
        let mut out: Vec<(String, String)> = Vec::new();
        for id in chain.into_iter().rev() {
            let class = &self.heap.classes[id];
            for name in &class.fields {
                if out.iter().all(|(own, _)| own != name) {
                    let annotation = class.def.body.iter().find_map(|statement| match statement {
                        ruff_python_ast::Stmt::AnnAssign(of) if of.target.as_name_expr()?.id.as_str() == *name => {
                            of.annotation.as_name_expr().map(|name| name.id.to_string())
                        }
                        _ => None,
                    });
                    out.push(((*name).to_owned(), annotation.unwrap_or_default()));
                }
            }
        }
        out
    }

    /// The value of a field of a dataclass, of what its class says.
    pub(super) fn default_of_field(&mut self, value: &Value) -> Value {
        let Value::Object(id) = value else { return value.clone() };
        let object = &self.heap.objects[*id];
        let path = self.path(&object.callee).unwrap_or_default();
        if !matches!(last(&path), "field" | "Field") {
            return value.clone();
        }
        let arguments = object.arguments.clone();
        match (
            arguments.named("default").or(arguments.places.first()),
            arguments.named("default_factory"),
        ) {
            (Some(default), _) => default.clone(),
            (None, Some(factory)) => {
                let place = self.place;
                self.call(factory.clone(), Arguments::default(), place)
            }
            (None, None) => UNKNOWN,
        }
    }

    /// Calls a method of a text, a list or a dictionary; `None` for other values.
    #[expect(clippy::too_many_lines, reason = "one arm for each function or kind of value")]
    pub(super) fn method_of_plain(&mut self, owner: &Value, name: &str, arguments: &Arguments) -> Option<Value> {
        let first = arguments.places.first();
        Some(match owner {
            Value::Str(text) => self.method_of_text(&text.clone(), name, arguments),
            Value::Dict(id) => {
                let id = *id;
                let key = match first {
                    Some(Value::Str(key)) => Some(key.clone()),
                    _ => None,
                };
                match name {
                    "get" | "pop" | "setdefault" => {
                        let Some(key) = key else { return Some(UNKNOWN) };
                        let default = arguments.get("default", 1).cloned().unwrap_or(Value::None);
                        let dict = &self.heap.dicts[id];
                        let is_environ = *owner == self.environ;
                        let is_of_processes =
                            matches!(&*key, "WORLD_SIZE" | "RANK" | "LOCAL_RANK" | "LOCAL_WORLD_SIZE");
                        let value = match dict.get(&key) {
                            Some(value) => value.clone(),
                            None if is_environ && is_of_processes && self.options.is_several => UNKNOWN,
                            None if is_environ || !dict.is_open => default.clone(),
                            None => UNKNOWN,
                        };
                        match name {
                            "pop" => {
                                self.heap.note(Slot::Dict(id));
                                let is_key = |own: &Value| matches!(own, Value::Str(own) if *own == key);
                                self.heap.dicts[id].items.retain(|(own, _)| !is_key(own));
                            }
                            "setdefault" => self.set_item(owner, &Value::Str(key), value.clone()),
                            _ => {}
                        }
                        value
                    }
                    "update" => {
                        self.heap.note(Slot::Dict(id));
                        let mut dict = self.heap.dicts[id].clone();
                        if let Some(first) = first {
                            self.take_in(&mut dict, first);
                        }
                        for (name, value) in &arguments.names {
                            dict.put(Value::text(name), value.clone());
                        }
                        self.heap.dicts[id] = dict;
                        Value::None
                    }
                    "copy" => {
                        let dict = self.heap.dicts[id].clone();
                        self.heap.dict(dict)
                    }
                    "keys" | "values" | "items" => {
                        let dict = self.heap.dicts[id].clone();
                        self.step(dict.items.len());
                        let mut items = Vec::new();
                        for (key, value) in dict.items {
                            items.push(match name {
                                "keys" => key,
                                "values" => value,
                                _ => self.heap.tuple(vec![key, value]),
                            });
                        }
                        self.heap.list(items, dict.is_open)
                    }
                    _ => UNKNOWN,
                }
            }
            Value::List(id) => {
                let id = *id;
                match name {
                    "append" | "extend" | "insert" | "remove" | "pop" | "clear" | "sort" | "reverse" | "add" => {
                        self.heap.note(Slot::Sequence(id));
                        let added = match (name, first) {
                            ("append" | "add", Some(value)) => Some(vec![value.clone()]),
                            ("extend", Some(value)) => self.elements(value),
                            _ => None,
                        };
                        let list = &mut self.heap.sequences[id];
                        match added {
                            Some(added) if list.items.len() + added.len() <= MOST_ELEMENTS => list.items.extend(added),
                            _ => list.is_open = true,
                        }
                        let length = self.heap.sequences[id].items.len();
                        self.step(length / 16);
                        match name {
                            "pop" => UNKNOWN,
                            _ => Value::None,
                        }
                    }
                    "copy" => {
                        let list = self.heap.sequences[id].clone();
                        self.heap.list(list.items, list.is_open)
                    }
                    _ => UNKNOWN,
                }
            }
            Value::Tuple(_) => UNKNOWN,
            _ => return None,
        })
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each function or kind of value")]
    fn method_of_text(&mut self, text: &str, name: &str, arguments: &Arguments) -> Value {
        let first = match arguments.places.first() {
            Some(Value::Str(first)) => Some(first.to_string()),
            _ => None,
        };
        let second = match arguments.places.get(1) {
            Some(Value::Str(second)) => Some(second.to_string()),
            _ => None,
        };
        match (name, first) {
            // Of paths, which are texts here.
            ("with_name", Some(name)) => Value::text(&name),
            ("resolve" | "absolute" | "expanduser" | "as_posix", None) => Value::text(text),
            ("lower", _) => Value::text(&text.to_lowercase()),
            ("upper", _) => Value::text(&text.to_uppercase()),
            ("strip", None) if arguments.places.is_empty() => Value::text(text.trim()),
            ("strip", Some(chars)) => Value::text(text.trim_matches(|c| chars.contains(c))),
            ("rstrip", Some(chars)) => Value::text(text.trim_end_matches(|c| chars.contains(c))),
            ("lstrip", Some(chars)) => Value::text(text.trim_start_matches(|c| chars.contains(c))),
            ("startswith", Some(part)) => Value::Bool(text.starts_with(&part)),
            ("endswith", Some(part)) => Value::Bool(text.ends_with(&part)),
            ("removeprefix", Some(part)) => Value::text(text.strip_prefix(&*part).unwrap_or(text)),
            ("replace", Some(part)) => match second {
                Some(with) if !part.is_empty() => {
                    self.step(text.len() / 64);
                    let count = text.matches(&part).count();
                    match count.saturating_mul(with.len()) < 1 << 16 {
                        true => Value::text(&text.replace(&part, &with)),
                        false => UNKNOWN,
                    }
                }
                _ => UNKNOWN,
            },
            ("split", part) => {
                if !arguments.names.is_empty() || arguments.places.len() > 1 {
                    return UNKNOWN;
                }
                let parts: Vec<Value> = match part {
                    Some(part) if !part.is_empty() => text.split(&*part).map(Value::text).collect(),
                    _ => text.split_whitespace().map(Value::text).collect(),
                };
                self.step(parts.len());
                self.heap.list(parts, false)
            }
            ("join", _) => {
                let Some(items) = arguments.places.first().and_then(|list| self.elements(list)) else {
                    return UNKNOWN;
                };
                let mut parts = Vec::new();
                let mut length = 0;
                for item in &items {
                    let Value::Str(part) = item else { return UNKNOWN };
                    length += part.len() + text.len();
                    if length > 1 << 16 {
                        return UNKNOWN;
                    }
                    parts.push(part.to_string());
                }
                Value::text(&parts.join(text))
            }
            ("format", _) => {
                let mut out = text.to_owned();
                for value in &arguments.places {
                    let Some(shown) = self.shown(value) else { return UNKNOWN };
                    if out.len() + shown.len() > 1 << 16 {
                        return UNKNOWN;
                    }
                    out = out.replacen("{}", &shown, 1);
                }
                for (name, value) in &arguments.names {
                    let Some(shown) = self.shown(value) else { return UNKNOWN };
                    let gap = format!("{{{name}}}");
                    if out.matches(&gap).count().saturating_mul(shown.len()) > 1 << 16 {
                        return UNKNOWN;
                    }
                    out = out.replace(&gap, &shown);
                }
                Value::text(&out)
            }
            _ => UNKNOWN,
        }
    }

    /// Calls what Python itself brings, or what says something of the machine; `None` for all else.
    #[expect(clippy::too_many_lines, reason = "one arm for each function or kind of value")]
    fn builtin(&mut self, path: &str, arguments: &Arguments) -> Option<Value> {
        let first = arguments.places.first().cloned();
        let second = arguments.places.get(1).cloned();
        Some(match (path, first) {
            ("print", _) => Value::None,
            ("len", Some(value)) => match self.elements(&value) {
                Some(items) => Value::Int(i64::try_from(items.len()).ok()?),
                None => UNKNOWN,
            },
            ("range", Some(_)) => self.range(arguments),
            ("int", Some(value)) => match &value {
                Value::Int(_) => value,
                Value::Bool(truth) => Value::Int(i64::from(*truth)),
                Value::Float(number) if number.abs() < 1e15 => Value::Int(*number as i64),
                Value::Str(text) => text.trim().replace('_', "").parse().map_or(UNKNOWN, Value::Int),
                Value::Unknown(_) => value,
                _ => UNKNOWN,
            },
            ("float", Some(value)) => match &value {
                Value::Str(text) => text.trim().parse().map_or(UNKNOWN, Value::Float),
                other => super::expression::number(other).map_or(UNKNOWN, Value::Float),
            },
            (
                "str" | "repr" | "pathlib.Path" | "Path" | "os.path.expanduser" | "os.path.abspath" | "os.fspath",
                Some(value),
            ) => self.shown(&value).map_or(UNKNOWN, |text| Value::text(&text)),
            ("bool", Some(Value::Unknown(why))) => Value::Unknown(why),
            ("bool", Some(value)) => self.truth(&value).map_or(UNKNOWN, Value::Bool),
            ("list" | "tuple" | "set" | "sorted" | "reversed" | "iter" | "frozenset", Some(value)) => {
                match self.elements(&value) {
                    Some(mut items) => {
                        if path == "reversed" {
                            items.reverse();
                        }
                        let is_ordered = path != "sorted" && path != "set" && path != "frozenset";
                        match (path, is_ordered) {
                            ("tuple", _) => self.heap.tuple(items),
                            (_, true) => self.heap.list(items, false),
                            _ => self.heap.list(items, false),
                        }
                    }
                    None => value,
                }
            }
            ("list" | "tuple" | "set", None) => self.heap.list(Vec::new(), false),
            ("dict" | "collections.OrderedDict", first) => {
                let mut dict = Dict {
                    items: Vec::new(),
                    is_open: arguments.is_open,
                };
                if let Some(first) = first {
                    self.take_in(&mut dict, &first);
                }
                for (name, value) in &arguments.names {
                    dict.put(Value::text(name), value.clone());
                }
                self.heap.dict(dict)
            }
            ("min" | "max", Some(_)) => {
                let all = match (&arguments.places[..], second) {
                    ([list], None) => self.elements(list)?,
                    (all, _) => all.to_vec(),
                };
                let mut best: Option<(f64, Value)> = None;
                for value in all {
                    let Some(number) = super::expression::number(&value) else {
                        return Some(UNKNOWN);
                    };
                    let is_better = best.as_ref().is_none_or(|(own, _)| (path == "min") == (number < *own));
                    if is_better {
                        best = Some((number, value));
                    }
                }
                best.map_or(UNKNOWN, |(_, value)| value)
            }
            ("sum", Some(value)) => {
                let Some(items) = self.elements(&value) else {
                    return Some(UNKNOWN);
                };
                items.iter().fold(Value::Int(0), |sum, item| {
                    self.binary(ruff_python_ast::Operator::Add, &sum, item)
                })
            }
            ("abs", Some(Value::Int(number))) => number.checked_abs().map_or(UNKNOWN, Value::Int),
            ("round", Some(Value::Int(number))) => Value::Int(number),
            ("round" | "math.floor" | "math.ceil", Some(value)) => {
                let rounded = super::expression::number(&value).map(|number| match path {
                    "math.floor" => number.floor(),
                    "math.ceil" => number.ceil(),
                    _ => number.round_ties_even(),
                });
                let whole = rounded.filter(|number| number.abs() < 1e15 && arguments.places.len() == 1);
                whole.map_or(UNKNOWN, |number| Value::Int(number as i64))
            }
            ("math.sqrt" | "math.isqrt", Some(value)) => match super::expression::number(&value) {
                Some(number) if path == "math.sqrt" && number >= 0.0 => Value::Float(number.sqrt()),
                Some(number) if number >= 0.0 => Value::Int(number.sqrt() as i64),
                _ => UNKNOWN,
            },
            ("enumerate", Some(value)) => match self.elements(&value) {
                Some(items) => {
                    let pairs = items.into_iter().enumerate().map(|(at, item)| {
                        let at = i64::try_from(at).map_or(UNKNOWN, Value::Int);
                        self.heap.tuple(vec![at, item])
                    });
                    let pairs = pairs.collect();
                    self.heap.list(pairs, false)
                }
                None => {
                    let element = self.heap.member(&value, "[]");
                    let pair = self.heap.tuple(vec![UNKNOWN, element]);
                    self.heap.list(vec![pair], true)
                }
            },
            ("zip", Some(_)) => {
                let mut rows: Vec<Vec<Value>> = Vec::new();
                for value in &arguments.places {
                    let Some(items) = self.elements(value) else {
                        return Some(UNKNOWN);
                    };
                    if rows.is_empty() {
                        rows = items.into_iter().map(|item| vec![item]).collect();
                    } else {
                        rows.truncate(items.len());
                        std::iter::zip(&mut rows, items).for_each(|(row, item)| row.push(item));
                    }
                }
                let pairs = rows.into_iter().map(|row| self.heap.tuple(row)).collect();
                self.heap.list(pairs, false)
            }
            ("any" | "all", Some(value)) => {
                let Some(items) = self.elements(&value) else {
                    return Some(UNKNOWN);
                };
                let truths: Vec<Option<bool>> = items.iter().map(|item| self.truth(item)).collect();
                let decides = path == "any";
                match (truths.contains(&Some(decides)), truths.contains(&None)) {
                    (true, _) => Value::Bool(decides),
                    (false, true) => UNKNOWN,
                    (false, false) => Value::Bool(!decides),
                }
            }
            ("getattr", Some(owner)) => match (second, arguments.places.get(2)) {
                (Some(Value::Str(name)), default) => {
                    let default = default.cloned();
                    match self.attribute(&owner, &name) {
                        // Nothing tells that it has none.
                        Value::Member(_) if default.is_some() => UNKNOWN,
                        value => value,
                    }
                }
                _ => UNKNOWN,
            },
            ("setattr", Some(owner)) => {
                if let (Some(Value::Str(name)), Some(value)) = (second, arguments.places.get(2)) {
                    let value = value.clone();
                    self.set_attribute(&owner, &name, value);
                }
                Value::None
            }
            ("vars", Some(Value::Object(id))) => {
                let attributes = self.heap.attributes(&Value::Object(id));
                let items = attributes
                    .into_iter()
                    .map(|(name, value)| (Value::text(&name), value))
                    .collect();
                self.heap.dict(Dict { items, is_open: false })
            }
            ("isinstance" | "hasattr" | "callable" | "type" | "next" | "map" | "filter", Some(_)) => UNKNOWN,
            ("copy.deepcopy" | "copy.copy" | "typing.cast", Some(value)) => match value {
                Value::Dict(id) => {
                    let dict = self.heap.dicts[id].clone();
                    self.heap.dict(dict)
                }
                value => value,
            },
            ("dataclasses.asdict" | "asdict", Some(Value::Object(id))) => {
                let attributes = self.heap.attributes(&Value::Object(id));
                let items = attributes
                    .into_iter()
                    .map(|(name, value)| (Value::text(&name), value))
                    .collect();
                self.heap.dict(Dict { items, is_open: false })
            }
            ("os.path.join", Some(_)) => {
                let mut out = String::new();
                for value in &arguments.places {
                    let Value::Str(part) = value else { return Some(UNKNOWN) };
                    if !out.is_empty() && !out.ends_with('/') {
                        out.push('/');
                    }
                    if part.starts_with('/') {
                        out.clear();
                    }
                    out.push_str(part);
                }
                Value::text(&out)
            }
            ("os.path.basename", Some(Value::Str(text))) => Value::text(text.rsplit('/').next().unwrap_or_default()),
            ("os.getenv", Some(_)) => {
                let environ = self.environ.clone();
                self.method_of_plain(&environ, "get", arguments)?
            }
            ("torch.cuda.is_available", _) => Value::Bool(true),
            ("torch.mps.is_available" | "torch.backends.mps.is_available", _) => Value::Bool(false),
            ("torch.device", Some(value)) => value,
            _ if path.contains("bf") && is_asked_of_the_card(path) => {
                self.asks_card = true;
                Value::Bool(self.has_bf16)
            }
            // Ampere's is the first of those with bf16; of those without Turing's is the last.
            _ if last(path) == "get_device_capability" => {
                self.asks_card = true;
                let numbers = if self.has_bf16 { [8, 0] } else { [7, 5] };
                self.heap.tuple(numbers.map(Value::Int).into())
            }
            _ if is_asked_of_the_card(path) => Value::Unknown(Why::Card),
            ("fire.Fire" | "typer.run" | "Fire", Some(Value::Function(id))) => self.fired(id),
            ("tyro.cli" | "draccus.parse" | "simple_parsing.parse", Some(class @ Value::Class(_))) => {
                let place = self.place;
                self.of_options(&class, place)
            }
            _ if last(path) == "get_peft_config" => self.peft_config(arguments)?,
            _ if last(path) == "get_quantization_config" => self.quantization_config(arguments)?,
            _ if last(path) == "notebook_launcher" => {
                let Some(function) = arguments.get("function", 0).cloned() else {
                    return Some(UNKNOWN);
                };
                let passed = arguments.get("args", 1).cloned();
                let places = passed.and_then(|passed| self.elements(&passed)).unwrap_or_default();
                let place = self.place;
                // How many processes it starts is written down.
                self.called(Value::Symbol(path.into()), arguments.clone(), place);
                let arguments = Arguments {
                    places,
                    ..Arguments::default()
                };
                self.call(function, arguments, place)
            }
            _ => return None,
        })
    }

    fn range(&mut self, arguments: &Arguments) -> Value {
        let numbers: Option<Vec<i64>> = arguments
            .places
            .iter()
            .map(|value| {
                if let Value::Int(number) = value {
                    Some(*number)
                } else {
                    None
                }
            })
            .collect();
        let (from, to, by) = match numbers.as_deref() {
            Some([to]) => (0, *to, 1),
            Some([from, to]) => (*from, *to, 1),
            Some([from, to, by]) if *by > 0 => (*from, *to, *by),
            _ => return self.heap.list(Vec::new(), true),
        };
        let length = usize::try_from(to.saturating_sub(from) / by).unwrap_or_default();
        if length >= MOST_ELEMENTS {
            return self.heap.list(vec![Value::Int(from)], true);
        }
        let mut items = Vec::new();
        let mut at = from;
        while at < to {
            items.push(Value::Int(at));
            at = at.saturating_add(by);
        }
        self.step(items.len());
        self.heap.list(items, false)
    }
}

/// True for functions that answer by the card.
fn is_asked_of_the_card(path: &str) -> bool {
    const NAMES: [&str; 7] = [
        "is_bf16_supported",
        "is_bfloat16_supported",
        "is_torch_bf16_gpu_available",
        "is_torch_bf16_available",
        "is_bf16_available",
        "get_device_properties",
        "get_device_name",
    ];
    NAMES.contains(&last(path))
}

/// Last part of a path.
pub(super) fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// True for names that classes have.
pub(super) fn is_class_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
}
