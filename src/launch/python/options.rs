//! Parsers of the command line: the program's options have the values of the command that starts it, or their defaults.

use serde_json::Value as Json;

use super::call::last;
use super::heap::{Arguments, Dict, Id, Object, UNKNOWN, Value};
use super::machine::{Deed, Machine};
use super::source::Place;

/// Fields of TRL's `ModelConfig` (1.16) with their defaults; `None` where that is none.
const MODEL_CONFIG: [(&str, Option<&str>); 21] = [
    ("model_name_or_path", None),
    ("model_revision", None),
    ("dtype", Some("float32")),
    ("torch_dtype", Some("float32")),
    ("trust_remote_code", Some("False")),
    ("attn_implementation", None),
    ("use_peft", Some("False")),
    ("lora_r", Some("16")),
    ("lora_alpha", Some("32")),
    ("lora_dropout", Some("0.05")),
    ("lora_target_modules", None),
    ("lora_target_parameters", None),
    ("lora_modules_to_save", None),
    ("lora_task_type", Some("CAUSAL_LM")),
    ("use_rslora", Some("False")),
    ("use_dora", Some("False")),
    ("load_in_8bit", Some("False")),
    ("load_in_4bit", Some("False")),
    ("bnb_4bit_quant_type", Some("nf4")),
    ("use_bnb_nested_quant", Some("False")),
    ("bnb_4bit_quant_storage", None),
];

impl Machine<'_> {
    /// The value of an option in the command, which the program takes.
    fn take(&mut self, name: &str) -> Option<Json> {
        let name = name.trim_start_matches('-').replace('-', "_");
        let value = self.options.values.get(&name)?.clone();
        self.taken.insert(name);
        Some(value)
    }

    /// A JSON value as one of the program.
    pub(super) fn of_json(&mut self, value: &Json, depth: usize) -> Value {
        if depth > 8 || !self.step(1) {
            return UNKNOWN;
        }
        match value {
            Json::Null => Value::None,
            Json::Bool(truth) => Value::Bool(*truth),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(number), _) => Value::Int(number),
                (None, Some(number)) => Value::Float(number),
                _ => UNKNOWN,
            },
            Json::String(text) => Value::text(text),
            Json::Array(items) => {
                let items = items.iter().map(|item| self.of_json(item, depth + 1)).collect();
                self.heap.list(items, false)
            }
            Json::Object(map) => {
                let items = map
                    .iter()
                    .map(|(key, value)| (Value::text(key), self.of_json(value, depth + 1)));
                let items = items.collect();
                self.heap.dict(Dict { items, is_open: false })
            }
        }
    }

    /// The namespace that a parser of argparse makes.
    pub(super) fn parsed(&mut self, parser: &Value, arguments: &Arguments, is_known: bool, place: Place) -> Value {
        let is_of_list = !arguments.places.is_empty();
        let calls: Vec<Arguments> = self
            .events
            .iter()
            .filter_map(|event| {
                if let Deed::Call(id) = event.deed {
                    Some(id)
                } else {
                    None
                }
            })
            .filter(|id| self.is_argument_of(*id, parser))
            .map(|id| self.heap.objects[id].arguments.clone())
            .collect();
        let namespace = self.heap.object(Object {
            callee: Value::Symbol("argparse.Namespace".into()),
            arguments: Arguments::default(),
            place,
            is_parsed: false,
        });
        for call in calls {
            let names: Vec<String> = call
                .places
                .iter()
                .filter_map(|name| {
                    if let Value::Str(name) = name {
                        Some(name.to_string())
                    } else {
                        None
                    }
                })
                .collect();
            let long = names.iter().find(|name| name.starts_with("--")).or(names.first());
            let Some(long) = long.cloned() else { continue };
            let destination = match call.named("dest") {
                Some(Value::Str(name)) => name.to_string(),
                _ => long.trim_start_matches('-').replace('-', "_"),
            };
            let given = (!is_of_list)
                .then(|| names.iter().find_map(|name| self.take(name)))
                .flatten();
            let value = self.option(&call, given, is_of_list || !self.options.is_given);
            self.heap.set_attribute(&namespace, &destination, value);
        }
        match is_known {
            true => self.heap.tuple(vec![namespace, UNKNOWN]),
            false => namespace,
        }
    }

    /// True for a call that adds an argument to a parser, or to a group of it.
    fn is_argument_of(&self, call: Id, parser: &Value) -> bool {
        let Value::Member(member) = self.heap.objects[call].callee else {
            return false;
        };
        let (owner, name) = &self.heap.members[member];
        if name != "add_argument" {
            return false;
        }
        let is_group = |owner: &Value| {
            let Value::Object(id) = owner else { return false };
            let Value::Member(member) = self.heap.objects[*id].callee else {
                return false;
            };
            let (of, name) = &self.heap.members[member];
            of == parser && name.starts_with("add_")
        };
        owner == parser || is_group(owner)
    }

    /// Value of an option of argparse.
    fn option(&mut self, call: &Arguments, given: Option<Json>, is_unsure: bool) -> Value {
        let action = match call.named("action") {
            Some(Value::Str(action)) => action.to_string(),
            Some(other) => self.path(other).unwrap_or_default(),
            None => String::new(),
        };
        let default = call.named("default").cloned();
        let is_required = matches!(call.named("required"), Some(Value::Bool(true)));
        let Some(given) = given else {
            self.took_defaults |= !self.options.is_given;
            return match (default, action.as_str()) {
                _ if is_required && is_unsure => UNKNOWN,
                (Some(Value::Str(text)), _) => self.of_type(call, &Value::Str(text)),
                (Some(default), _) => default,
                (None, "store_true") => Value::Bool(false),
                (None, "store_false") => Value::Bool(true),
                (None, _) => Value::None,
            };
        };
        match action.as_str() {
            "store_true" => return Value::Bool(true),
            "store_false" => return Value::Bool(false),
            "store_const" => return call.named("const").cloned().unwrap_or(UNKNOWN),
            _ => {}
        }
        // An option that takes a value at will, and was given none.
        if given == Json::Bool(true)
            && let Some(constant) = call.named("const")
        {
            return constant.clone();
        }
        let is_list = matches!(call.named("nargs"), Some(Value::Int(_)))
            || matches!(call.named("nargs"), Some(Value::Str(word)) if matches!(&**word, "*" | "+"));
        let items: Vec<Json> = match given {
            Json::Array(items) => items,
            other => vec![other],
        };
        let mut values = Vec::new();
        for item in &items {
            let text = match item {
                Json::String(text) => text.clone(),
                Json::Bool(true) => "True".to_owned(),
                Json::Bool(false) => "False".to_owned(),
                other => other.to_string(),
            };
            values.push(self.of_type(call, &Value::text(&text)));
        }
        match (is_list, values.len()) {
            (false, 1) => values.remove(0),
            _ => self.heap.list(values, false),
        }
    }

    /// A text as the type of an option makes it.
    fn of_type(&mut self, call: &Arguments, text: &Value) -> Value {
        let place = self.place;
        match call.named("type") {
            None => text.clone(),
            // Any text is true.
            Some(Value::Symbol(path)) if &**path == "bool" => match text {
                Value::Str(text) => Value::Bool(!text.is_empty()),
                other => other.clone(),
            },
            Some(of) => {
                let of = of.clone();
                let arguments = Arguments {
                    places: vec![text.clone()],
                    ..Arguments::default()
                };
                match self.call(of, arguments, place) {
                    Value::Object(_) => UNKNOWN,
                    value => value,
                }
            }
        }
    }

    /// What a parser of dataclasses makes: an object for each of its classes.
    pub(super) fn parsed_classes(&mut self, parser: &Value, place: Place) -> Value {
        let Value::Object(id) = parser else { return UNKNOWN };
        let arguments = self.heap.objects[*id].arguments.clone();
        let Some(classes) = arguments.get("dataclass_types", 0).cloned() else {
            return UNKNOWN;
        };
        let classes = match self.elements(&classes) {
            Some(classes) => classes,
            None => vec![classes],
        };
        let made = classes.iter().map(|class| self.of_options(class, place)).collect();
        self.heap.tuple(made)
    }

    /// An object of a dataclass whose fields are options.
    pub(super) fn of_options(&mut self, class: &Value, place: Place) -> Value {
        let object = self.heap.object(Object {
            callee: class.clone(),
            arguments: Arguments::default(),
            place,
            is_parsed: true,
        });
        self.log(&object, place);
        let path = self.path(class).unwrap_or_default();
        match class {
            Value::Class(id) => {
                for (name, annotation) in self.fields(*id) {
                    let value = match self.take(&name) {
                        Some(given) => self.of_field(&annotation, &given),
                        None => {
                            self.took_defaults |= !self.options.is_given;
                            let class = class.clone();
                            self.attribute(&class, &name)
                        }
                    };
                    let value = if matches!(value, Value::Member(_)) {
                        UNKNOWN
                    } else {
                        value
                    };
                    self.heap.set_attribute(&object, &name, value);
                }
            }
            _ if last(&path) == "ModelConfig" => {
                for (name, default) in MODEL_CONFIG {
                    let other = match name {
                        "dtype" => "torch_dtype",
                        "torch_dtype" => "dtype",
                        name => name,
                    };
                    let given = self.take(name).or_else(|| self.take(other));
                    let value = match (given, default) {
                        (Some(given), _) => self.of_json(&given, 0),
                        (None, Some(default)) => of_word(default),
                        (None, None) => Value::None,
                    };
                    self.heap.set_attribute(&object, name, value);
                }
            }
            _ => {}
        }
        object
    }

    /// A value of the command as a field of this type takes it.
    fn of_field(&mut self, annotation: &str, given: &Json) -> Value {
        match (annotation, given) {
            ("str", Json::Number(number)) => Value::text(&number.to_string()),
            ("bool", Json::String(text)) => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "1" => Value::Bool(true),
                "false" | "no" | "0" => Value::Bool(false),
                _ => UNKNOWN,
            },
            _ => self.of_json(given, 0),
        }
    }

    /// An attribute that an object has of the command.
    pub(super) fn parsed_attribute(&mut self, object: &Object, name: &str) -> Option<Value> {
        if !object.is_parsed {
            return None;
        }
        let value = self.options.values.get(name)?.clone();
        Some(self.of_json(&value, 0))
    }

    /// Calls a function whose parameters are options.
    pub(super) fn fired(&mut self, id: Id) -> Value {
        let names: Vec<String> = match self.heap.functions[id].body {
            super::heap::Body::Statements(def) => {
                let parameters = &def.parameters;
                let all = parameters
                    .posonlyargs
                    .iter()
                    .chain(&parameters.args)
                    .chain(&parameters.kwonlyargs);
                all.map(|of| of.parameter.name.as_str().to_owned()).collect()
            }
            super::heap::Body::Expression(..) => Vec::new(),
        };
        let mut arguments = Arguments::default();
        self.took_defaults |= !self.options.is_given && !names.is_empty();
        for name in names {
            if let Some(given) = self.take(&name) {
                let value = self.of_json(&given, 0);
                arguments.names.push((name, value));
            }
        }
        self.run(id, arguments)
    }

    /// Arguments of a function that click calls with its options; `None` for other functions.
    pub(super) fn clicked(&mut self, id: Id, arguments: &Arguments) -> Option<Arguments> {
        let decorators = self.heap.functions[id].decorators.clone();
        let options: Vec<Arguments> = decorators
            .iter()
            .filter_map(|decorator| match decorator {
                Value::Object(of) if self.path(decorator).is_some_and(|path| path == "click.option") => {
                    Some(self.heap.objects[*of].arguments.clone())
                }
                _ => None,
            })
            .collect();
        if options.is_empty() || !arguments.places.is_empty() || !arguments.names.is_empty() {
            return None;
        }
        let mut out = Arguments::default();
        for call in options {
            let names = call
                .places
                .iter()
                .filter_map(|name| if let Value::Str(name) = name { Some(name) } else { None });
            let names: Vec<String> = names.map(ToString::to_string).collect();
            let Some(long) = names.iter().find(|name| name.starts_with("--")) else {
                continue;
            };
            let given = self.take(long);
            let is_flag = matches!(call.named("is_flag"), Some(Value::Bool(true)));
            let value = match given {
                Some(given) => self.of_json(&given, 0),
                None => {
                    self.took_defaults |= !self.options.is_given;
                    let default = if is_flag { Value::Bool(false) } else { Value::None };
                    call.named("default").cloned().unwrap_or(default)
                }
            };
            out.names.push((long.trim_start_matches('-').replace('-', "_"), value));
        }
        Some(out)
    }

    /// What TRL makes of the options of a `ModelConfig`: a `LoraConfig`, or nothing.
    pub(super) fn peft_config(&mut self, arguments: &Arguments) -> Option<Value> {
        let config = self.model_config(arguments)?;
        let of = |machine: &Self, name: &str| machine.heap.attribute(&config, name).cloned().unwrap_or(UNKNOWN);
        match of(self, "use_peft") {
            Value::Bool(true) => {}
            Value::Unknown(why) => return Some(Value::Unknown(why)),
            _ => return Some(Value::None),
        }
        let names = [
            ("r", "lora_r"),
            ("lora_alpha", "lora_alpha"),
            ("lora_dropout", "lora_dropout"),
            ("target_modules", "lora_target_modules"),
            ("target_parameters", "lora_target_parameters"),
            ("modules_to_save", "lora_modules_to_save"),
            ("use_rslora", "use_rslora"),
            ("use_dora", "use_dora"),
        ];
        let names = names.map(|(name, own)| (name.to_owned(), of(self, own)));
        Some(self.heap.object(Object {
            callee: Value::Symbol("peft.LoraConfig".into()),
            arguments: Arguments {
                names: names.into(),
                ..Arguments::default()
            },
            place: self.place,
            is_parsed: false,
        }))
    }

    /// What TRL makes of the options of a `ModelConfig`: a `BitsAndBytesConfig`, or nothing.
    pub(super) fn quantization_config(&mut self, arguments: &Arguments) -> Option<Value> {
        let config = self.model_config(arguments)?;
        let of = |machine: &Self, name: &str| machine.heap.attribute(&config, name).cloned().unwrap_or(UNKNOWN);
        let [four, eight] = ["load_in_4bit", "load_in_8bit"].map(|name| of(self, name));
        if four == Value::Bool(false) && eight == Value::Bool(false) {
            return Some(Value::None);
        }
        let names = [
            ("load_in_4bit", four),
            ("load_in_8bit", eight),
            ("bnb_4bit_compute_dtype", of(self, "dtype")),
            ("bnb_4bit_quant_type", of(self, "bnb_4bit_quant_type")),
            ("bnb_4bit_use_double_quant", of(self, "use_bnb_nested_quant")),
        ];
        Some(self.heap.object(Object {
            callee: Value::Symbol("transformers.BitsAndBytesConfig".into()),
            arguments: Arguments {
                names: names.map(|(name, value)| (name.to_owned(), value)).into(),
                ..Arguments::default()
            },
            place: self.place,
            is_parsed: false,
        }))
    }

    fn model_config(&self, arguments: &Arguments) -> Option<Value> {
        let config = arguments.get("model_args", 0)?;
        let path = self.path(config)?;
        (last(&path) == "ModelConfig").then(|| config.clone())
    }
}

fn of_word(word: &str) -> Value {
    match word {
        "False" => Value::Bool(false),
        "True" => Value::Bool(true),
        word => match (word.parse(), word.parse()) {
            (Ok(number), _) => Value::Int(number),
            (Err(_), Ok(number)) => Value::Float(number),
            _ => Value::text(word),
        },
    }
}
