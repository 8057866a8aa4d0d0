//! A training loop that the script writes itself.

use serde_json::Value as Json;

use super::{COMPUTED, Finder, dtype, is_optimizer};
use crate::left_out::{Aspect, Direction};
use crate::python::call::last;
use crate::python::heap::{Arguments, Id, Value, Why};
use crate::python::machine::{Deed, Event};
use crate::python::model::Model;
use crate::python::source::Place;
use crate::tool::Tool;

impl Finder<'_, '_> {
    /// A loop of the script's own; false if there is none.
    pub(super) fn of_loop(&mut self) -> bool {
        let Some((backward, _)) = self.machine.calls(&["backward"]).next() else {
            return false;
        };
        self.use_tool(Tool::Loop);
        let object = self.machine.heap.objects[backward].clone();
        let place = object.place;
        self.tell("loop", true, place);
        let loss = match (self.machine.owner(backward), object.arguments.places.first()) {
            // accelerate's, DeepSpeed's
            (_, Some(loss)) => Some(loss.clone()),
            (owner, None) => owner,
        };
        let model = loss.as_ref().and_then(|loss| self.model_of_loss(loss));
        let is_models_own = model.is_some();
        let model = self.traced(model.or_else(|| self.only_model()));
        if !is_models_own {
            let why = "the script computes the loss itself, or in a way that is not read";
            self.own_loss(why, place);
        }
        self.accelerator();
        self.autocast();
        self.of_model(&model, place);
        // DeepSpeed's engine has that of its settings, unless it is given one.
        let has_own = self
            .machine
            .events
            .iter()
            .any(|event| self.optimizer_of(event).is_some());
        if model.engine.is_none() || has_own {
            self.loop_optimizer(place);
        }
        let clipped = self.machine.calls(&["clip_grad_norm_", "clip_grad_value_"]).next();
        if let Some((call, _)) = clipped {
            let at = self.machine.heap.objects[call].place;
            self.tell("max_grad_norm", 1.0, at);
        }
        match model.engine {
            Some(engine) => self.engine(engine),
            None => self.loader(place),
        }
        self.lengths_of_loader();
        true
    }

    /// What is known of the model that is trained.
    pub(super) fn traced(&self, model: Option<Value>) -> Model {
        match model {
            Some(model) => self.machine.trace(&model),
            None => Model {
                unreadable: Some("which model is trained is not readable".to_owned()),
                ..Model::default()
            },
        }
    }

    /// Leaves the loss out, which the script computes.
    pub(super) fn own_loss(&mut self, why: &str, place: Place) {
        self.open(
            "loss",
            &Json::String("…".to_owned()),
            place,
            why,
            (Aspect::Loss, Direction::Unknown),
        );
    }

    /// The longest samples that the script's own loader gives; where nothing limits them, the model alone does.
    pub(super) fn lengths_of_loader(&mut self) {
        match self.limit_of_samples() {
            Some((limit, at)) => self.tell("samples.max_length", limit, at),
            None => self.facts.is_unlimited = true,
        }
    }

    /// The model whose output has this loss.
    pub(super) fn model_of_loss(&self, loss: &Value) -> Option<Value> {
        let mut at = loss.clone();
        for _ in 0..16 {
            at = match at {
                Value::Member(id) => {
                    let (owner, name) = &self.machine.heap.members[id];
                    match (owner, name.as_str()) {
                        (Value::Object(id), "loss" | "[\"loss\"]" | "[0]") => {
                            let object = &self.machine.heap.objects[*id];
                            let has_labels = object.arguments.is_open
                                || object.arguments.named("labels").is_some()
                                || object.arguments.places.len() > 1;
                            return has_labels.then(|| object.callee.clone());
                        }
                        _ => owner.clone(),
                    }
                }
                // `scaler.scale(loss)`, `loss.mean()`
                Value::Object(id) => {
                    let object = &self.machine.heap.objects[id];
                    let name = self.machine.last_name(&object.callee)?;
                    match (name.as_str(), object.arguments.places.first()) {
                        ("scale", Some(loss)) => loss.clone(),
                        ("mean" | "sum" | "to" | "float", _) => self.machine.owner(id)?,
                        _ => return None,
                    }
                }
                _ => return None,
            };
        }
        None
    }

    /// The one model that the script loads.
    pub(super) fn only_model(&self) -> Option<Value> {
        let not = ["Tokenizer", "Processor", "Config", "FeatureExtractor", "Scheduler"];
        let mut models = self.machine.calls(&["from_pretrained"]).filter_map(|(call, _)| {
            let path = self.machine.path(&self.machine.heap.objects[call].callee)?;
            (!not.iter().any(|word| path.contains(word))).then_some(Value::Object(call))
        });
        let first = models.next()?;
        models.next().is_none().then_some(first)
    }

    pub(super) fn accelerator(&mut self) {
        let found = self.machine.calls(&["Accelerator"]).next();
        let Some((call, _)) = found else { return };
        let object = self.machine.heap.objects[call].clone();
        for (name, value) in &object.arguments.names {
            match (name.as_str(), self.object(value)) {
                ("deepspeed_plugin", Some((_, _, arguments, at))) => {
                    for (name, value) in &arguments.names {
                        self.say(&format!("DeepSpeedPlugin.{name}"), value, at);
                    }
                }
                _ => self.say(&format!("Accelerator.{name}"), value, object.place),
            }
        }
    }

    pub(super) fn autocast(&mut self) {
        let found = self.machine.calls(&["autocast"]).next();
        let Some((call, may_be)) = found else { return };
        // accelerate's has the accelerator's own type.
        let object = self.machine.heap.objects[call].clone();
        if self.machine.owner(call).is_some() {
            return;
        }
        let is_on = object.arguments.named("enabled").cloned().unwrap_or(Value::Bool(true));
        let on = self.machine.truth(&is_on);
        if on == Some(false) {
            return;
        }
        let path = self.machine.path(&object.callee).unwrap_or_default();
        let by_place = object
            .arguments
            .places
            .iter()
            .find(|value| matches!(value, Value::Symbol(path) if dtype(path).is_some()));
        let of = object.arguments.named("dtype").or(by_place).cloned();
        let value = match of {
            Some(Value::Symbol(path)) => dtype(&path),
            None => Some("float16"),
            _ => None,
        };
        match value.filter(|_| !may_be && on == Some(true)) {
            Some("bfloat16") => self.tell("bf16", true, object.place),
            Some("float16") => self.tell("fp16", true, object.place),
            _ => self.open(
                "autocast",
                &path.into(),
                object.place,
                COMPUTED,
                (Aspect::Precision, Direction::Unknown),
            ),
        }
    }

    /// The call that makes an optimizer, if an event is one.
    fn optimizer_of(&self, event: &Event) -> Option<Id> {
        let Deed::Call(id) = event.deed else { return None };
        let path = self.machine.path(&self.machine.heap.objects[id].callee)?;
        is_optimizer(&path).then_some(id)
    }

    pub(super) fn loop_optimizer(&mut self, place: Place) {
        let events = self.machine.events.iter();
        let optimizers: Vec<Id> = events.filter_map(|event| self.optimizer_of(event)).collect();
        match optimizers[..] {
            [] => {
                let why = "which optimizer it takes is not readable";
                self.open(
                    "optimizer",
                    &Json::String("…".to_owned()),
                    place,
                    why,
                    (Aspect::Optimizer, Direction::Unknown),
                );
            }
            [one] => self.optimizer(&Value::Object(one), place),
            [one, ..] => {
                let at = self.machine.heap.objects[one].place;
                let why = "several optimizers are not simulated";
                self.open(
                    "optimizer",
                    &Json::String("…".to_owned()),
                    at,
                    why,
                    (Aspect::Optimizer, Direction::Unknown),
                );
            }
        }
        let has_accumulation = self
            .facts
            .entries
            .iter()
            .any(|entry| entry.key.ends_with("gradient_accumulation_steps"));
        let steps: Vec<bool> = self.machine.calls(&["step"]).map(|(_, may_be)| may_be).collect();
        if !has_accumulation && !steps.is_empty() && steps.iter().all(|may_be| *may_be) {
            // Gradients of earlier batches are kept, however many there are.
            self.tell("loop.accumulates", 2, place);
        }
    }

    pub(super) fn optimizer(&mut self, optimizer: &Value, place: Place) {
        let Some((_, path, arguments, at)) = self.object(optimizer) else {
            self.open(
                "optimizer",
                &Json::String("…".to_owned()),
                place,
                COMPUTED,
                (Aspect::Optimizer, Direction::Unknown),
            );
            return;
        };
        let is = |name: &str, value: bool| arguments.named(name) == Some(&Value::Bool(value));
        let is_bnb = path.starts_with("bitsandbytes") || path.starts_with("bnb");
        let name = match last(&path) {
            "AdamW" | "Adam" if is_bnb => "adamw_bnb",
            "AdamW" | "Adam" if is("fused", true) => "adamw_torch_fused",
            "AdamW" | "Adam" if is("foreach", false) || is("amsgrad", true) => "AdamW without foreach",
            "AdamW" | "Adam" => "adamw_torch",
            "AdamW8bit" | "Adam8bit" => "adamw_8bit",
            "PagedAdamW8bit" | "PagedAdam8bit" => "paged_adamw_8bit",
            "PagedAdamW" | "PagedAdamW32bit" | "PagedAdam32bit" | "PagedAdam" => "paged_adamw",
            "Lion" | "Lion32bit" if is_bnb => "lion_32bit",
            "Lion8bit" if is_bnb => "lion_8bit",
            "PagedLion" | "PagedLion32bit" => "paged_lion_32bit",
            "PagedLion8bit" => "paged_lion_8bit",
            "Adafactor" if path.starts_with("transformers") => "adafactor",
            "SGD" if arguments.get("momentum", 2).is_none() => "sgd",
            "Adagrad" if is("foreach", false) => "Adagrad without foreach",
            other => other,
        };
        let name = name.to_owned();
        self.tell("optim", name, at);
    }

    /// The batch of the loader that training reads.
    pub(super) fn loader(&mut self, place: Place) {
        let loaders: Vec<(Arguments, Place)> = self
            .machine
            .calls(&["DataLoader"])
            .map(|(call, _)| {
                let object = &self.machine.heap.objects[call];
                (object.arguments.clone(), object.place)
            })
            .collect();
        let shuffled: Vec<&(Arguments, Place)> = loaders
            .iter()
            .filter(|(of, _)| of.named("shuffle") == Some(&Value::Bool(true)) || of.named("sampler").is_some())
            .collect();
        let all: Vec<&(Arguments, Place)> = if shuffled.is_empty() {
            loaders.iter().collect()
        } else {
            shuffled
        };
        let batch = |of: &Arguments| of.get("batch_size", 1).cloned().unwrap_or(Value::Int(1));
        match &all[..] {
            [] => self.unread("per_device_train_batch_size", &Value::Unknown(Why::Computed), place),
            [(first, at), others @ ..] => {
                let value = batch(first);
                let is_one = others.iter().all(|(other, _)| batch(other) == value);
                let has_sampler = first.named("batch_sampler").is_some();
                let value = if is_one && !has_sampler {
                    value
                } else {
                    Value::Unknown(Why::Computed)
                };
                let at = *at;
                self.say("per_device_train_batch_size", &value, at);
            }
        }
    }

    pub(super) fn engine(&mut self, engine: Id) {
        let object = self.machine.heap.objects[engine].clone();
        let config = object
            .arguments
            .named("config")
            .or(object.arguments.named("config_params"))
            .cloned();
        match config {
            Some(config @ Value::Dict(_)) => self.deepspeed(&config, object.place),
            Some(Value::Str(path)) => self.tell("deepspeed", path.to_string(), object.place),
            // `--deepspeed_config` of the command.
            None | Some(Value::None) if self.machine.options.values.contains_key("deepspeed_config") => {
                let path = self.machine.options.values["deepspeed_config"].clone();
                self.tell("deepspeed", path, object.place);
            }
            _ => self.open(
                "deepspeed",
                &Json::String("…".to_owned()),
                object.place,
                "DeepSpeed's settings are not readable here",
                (Aspect::Zero, Direction::AnotherRun),
            ),
        }
    }
}
