//! Which parameters of its model a script trains.

use serde_json::Value as Json;

use super::{Finder, is_part, part_of};
use crate::draft::PROJECTIONS;
use crate::left_out::{Aspect, Direction};
use crate::python::call::last;
use crate::python::heap::{Value, Why};
use crate::python::machine::Deed;
use crate::python::model::Model;
use crate::python::source::Place;

impl Finder<'_, '_> {
    /// Adapters that a `LoraConfig`, or unsloth's `get_peft_model`, asks for.
    pub(super) fn adapters(&mut self, config: &Value, place: Place) {
        let Some((_, path, arguments, at)) = self.object(config) else {
            self.unread("get_peft_model", config, place);
            return;
        };
        let is_unsloth = last(&path) == "get_peft_model";
        if !is_unsloth && last(&path) != "LoraConfig" {
            let why = "of peft's adapters LoRA is simulated";
            self.open(
                "get_peft_model",
                &last(&path).into(),
                at,
                why,
                (Aspect::Tuner, Direction::AnotherRun),
            );
            return;
        }
        self.tell("get_peft_model", true, at);
        let rank = if is_unsloth { 16 } else { 8 };
        let mut told: Vec<(String, Value)> = arguments.names.clone();
        // Places of its first arguments.
        let by_place: &[&str] = if is_unsloth {
            &["", "r", "target_modules", "lora_alpha", "lora_dropout"]
        } else {
            &[]
        };
        for (name, value) in std::iter::zip(by_place, &arguments.places).filter(|(name, _)| !name.is_empty()) {
            told.push(((*name).to_owned(), value.clone()));
        }
        let has = |name: &str| told.iter().any(|(own, _)| own == name);
        if !has("r") {
            self.tell("LoraConfig.r", rank, at);
        }
        if !has("lora_dropout") {
            self.tell("LoraConfig.lora_dropout", 0.0, at);
        }
        if is_unsloth {
            self.unsloth_targets(&told, at);
        }
        for (name, value) in &told {
            let is_part = is_unsloth && (name.starts_with("finetune_") || name == "target_modules" || name == "model");
            if !is_part {
                self.say(&format!("LoraConfig.{name}"), value, at);
            }
        }
        if arguments.is_open {
            self.partly_read("LoraConfig", at, (Aspect::Tuner, Direction::AnotherRun));
        }
    }

    /// Modules that unsloth adds adapters to: names, or all linear layers of the parts that it is told (`get_peft_regex`).
    pub(super) fn unsloth_targets(&mut self, told: &[(String, Value)], place: Place) {
        let get = |name: &str| told.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        let named = get("target_modules").filter(|value| !matches!(value, Value::None));
        let is_all = matches!(&named, Some(Value::Str(word)) if &**word == "all-linear");
        let parts = [
            "finetune_vision_layers",
            "finetune_language_layers",
            "finetune_attention_modules",
            "finetune_mlp_modules",
        ];
        let has_parts = parts.iter().any(|part| get(part).is_some());
        match named {
            Some(named) if !is_all => self.say("LoraConfig.target_modules", &named, place),
            _ if !has_parts && !is_all => {
                self.tell("LoraConfig.target_modules", PROJECTIONS.to_vec(), place);
            }
            _ => {
                let flags: Vec<Value> = parts
                    .iter()
                    .map(|part| get(part).unwrap_or(Value::Bool(true)))
                    .collect();
                match &flags[..] {
                    [
                        Value::Bool(true),
                        Value::Bool(true),
                        Value::Bool(true),
                        Value::Bool(true),
                    ] => {
                        self.tell("LoraConfig.target_modules", "all-linear", place);
                    }
                    [
                        Value::Bool(false),
                        Value::Bool(true),
                        Value::Bool(true),
                        Value::Bool(true),
                    ] => {
                        self.tell("LoraConfig.target_modules", "all-linear", place);
                        self.tell("freeze.vision_and_connector", true, place);
                    }
                    _ => {
                        let why = "adapters in a part of the model that is not simulated";
                        self.tell("LoraConfig.target_modules", "all-linear", place);
                        self.open(
                            "finetune_layers",
                            &Json::Null,
                            place,
                            why,
                            (Aspect::Tuner, Direction::AtMost),
                        );
                    }
                }
            }
        }
    }

    /// Methods that are called on the model, and attributes of its configuration.
    #[expect(clippy::too_many_lines, reason = "one step for each argument that decides")]
    pub(super) fn methods(&mut self, model: &Model) {
        let events = self.machine.events.clone();
        for event in &events {
            match &event.deed {
                Deed::Call(id) => {
                    let id = *id;
                    let name = self
                        .machine
                        .last_name(&self.machine.heap.objects[id].callee)
                        .unwrap_or_default();
                    if !matches!(
                        name.as_str(),
                        "gradient_checkpointing_enable"
                            | "gradient_checkpointing_disable"
                            | "resize_token_embeddings"
                            | "add_adapter"
                    ) {
                        continue;
                    }
                    let Some(path) = self
                        .machine
                        .owner(id)
                        .and_then(|owner| self.machine.within(&owner, model))
                    else {
                        continue;
                    };
                    let arguments = self.machine.heap.objects[id].arguments.clone();
                    if event.may_be {
                        self.unread(&name, &Value::Unknown(Why::Computed), event.place);
                        continue;
                    }
                    match name.as_str() {
                        "gradient_checkpointing_enable" if path.is_empty() || path == ["model"] => {
                            self.tell("gradient_checkpointing", true, event.place);
                            if let Some(kwargs) = arguments.get("gradient_checkpointing_kwargs", 0) {
                                let kwargs = kwargs.clone();
                                self.say("gradient_checkpointing_kwargs", &kwargs, event.place);
                            }
                        }
                        "gradient_checkpointing_disable" => self.tell("gradient_checkpointing", false, event.place),
                        "add_adapter" => {
                            let config = arguments
                                .get("adapter_config", 0)
                                .cloned()
                                .unwrap_or(Value::Unknown(Why::Computed));
                            self.adapters(&config, event.place);
                        }
                        "resize_token_embeddings" => {
                            let why = "new tokens make the embeddings larger";
                            self.open(
                                "resize_token_embeddings",
                                &true.into(),
                                event.place,
                                why,
                                (Aspect::Model, Direction::AtLeast),
                            );
                        }
                        _ => {
                            let why = "a part of the model is checkpointed";
                            self.open(
                                &name,
                                &path.join(".").into(),
                                event.place,
                                why,
                                (Aspect::Checkpointing, Direction::Unknown),
                            );
                        }
                    }
                }
                Deed::Set(owner, name, value) if name == "use_cache" => {
                    if self.machine.within(owner, model).is_some() {
                        self.say("use_cache", value, event.place);
                    }
                }
                Deed::Set(..) => {}
            }
        }
    }

    /// What of a model is frozen, where all of it would train.
    pub(super) fn frozen(&mut self, model: &Model) {
        // Vision tower, connector, language model.
        let mut parts: [bool; 3] = [false; 3];
        let mut place = None;
        let mut unread: Option<Place> = None;
        let events = self.machine.events.clone();
        for event in events.iter().filter(|event| !event.is_of_data) {
            let (owner, value) = match &event.deed {
                Deed::Call(id) => {
                    let object = &self.machine.heap.objects[*id];
                    let name = self.machine.last_name(&object.callee);
                    if name.as_deref() != Some("requires_grad_") {
                        continue;
                    }
                    let value = object
                        .arguments
                        .get("requires_grad", 0)
                        .cloned()
                        .unwrap_or(Value::Bool(true));
                    let Some(owner) = self.machine.owner(*id) else { continue };
                    (owner, value)
                }
                Deed::Set(owner, name, value) if name == "requires_grad" => (owner.clone(), value.clone()),
                Deed::Set(..) => continue,
            };
            let Some(path) = self.machine.within(&owner, model) else {
                continue;
            };
            let path: Vec<String> = path.into_iter().filter(|part| is_part(part)).collect();
            let (Value::Bool(is_trained), false) = (&value, event.may_be) else {
                unread = unread.or(Some(event.place));
                continue;
            };
            place = Some(event.place);
            match part_of(&path) {
                Some(which) => which.iter().for_each(|at| parts[*at] = !is_trained),
                None => unread = unread.or(Some(event.place)),
            }
        }
        let place = place.unwrap_or_default();
        if let Some(at) = unread {
            let why = "which parameters are trained is decided where the script runs: all are simulated as trained";
            self.open(
                "requires_grad",
                &Json::String("…".to_owned()),
                at,
                why,
                (Aspect::Tuner, Direction::AtMost),
            );
            return;
        }
        let names = ["freeze.vision", "freeze.connector", "freeze.language"];
        for (name, is_frozen) in std::iter::zip(names, parts) {
            if is_frozen {
                self.tell(name, true, place);
            }
        }
    }

    /// Parameters that train beside adapters.
    pub(super) fn thawed(&mut self, model: &Model) {
        let of_adapters = |value: &Value| self.machine.object(value).map(|object| object.place);
        let since = model.adapters.iter().filter_map(of_adapters).min().unwrap_or_default();
        let found = self.machine.events.iter().find_map(|event| {
            let Deed::Set(owner, name, value) = &event.deed else {
                return None;
            };
            let is_on = name == "requires_grad" && *value != Value::Bool(false);
            (is_on && event.place > since && self.machine.within(owner, model).is_some()).then_some(event.place)
        });
        if let Some(place) = found {
            let why = "parameters beside the adapters are trained, which is not simulated";
            self.open(
                "requires_grad",
                &true.into(),
                place,
                why,
                (Aspect::Tuner, Direction::AtLeast),
            );
        }
    }

    // Samples.
}
