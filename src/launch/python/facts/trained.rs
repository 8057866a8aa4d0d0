//! What the trainer of a script is told.

use serde_json::Value as Json;

use super::{Finder, OF_THE_CARD, OF_TRAINER, Trainer};
use crate::entry::Entry;
use crate::left_out::{Aspect, Direction};
use crate::python::call::last;
use crate::python::heap::{Arguments, Id, Value, Why};
use crate::python::machine::Deed;
use crate::python::model::Model;
use crate::python::source::Place;
use crate::tool::Tool;

impl Finder<'_, '_> {
    #[expect(clippy::too_many_lines, reason = "one step for each argument that decides")]
    pub(super) fn of_trainer(&mut self, trainer: &Trainer) {
        let object = self.machine.heap.objects[trainer.id].clone();
        let path = self.machine.path(&object.callee).unwrap_or_default();
        if path.contains("lightning") {
            self.use_tool(Tool::Loop);
            return self.of_lightning(trainer);
        }
        let arguments = object.arguments.clone();
        let is_dpo = trainer.name == "DPOTrainer";
        let args = arguments.get("args", 1 + usize::from(is_dpo)).cloned();
        let args = args
            .filter(|args| *args != Value::None)
            .or_else(|| arguments.places.get(1).cloned().filter(|_| is_dpo));
        let config = args.as_ref().and_then(|args| self.object(args));
        let config_name = config.as_ref().map(|(_, path, ..)| last(path).to_owned());
        let other_loss = match trainer.name.as_str() {
            "KTOTrainer" => Some("kto"),
            "ORPOTrainer" => Some("orpo"),
            "CPOTrainer" => Some("cpo"),
            "RewardTrainer" => Some("reward"),
            _ => None,
        };
        let tool = match trainer.name.as_str() {
            _ if other_loss.is_some() => Some(Tool::TrlDpo),
            "SFTTrainer" | "UnslothTrainer" => Some(Tool::TrlSft),
            "DPOTrainer" => Some(Tool::TrlDpo),
            "GRPOTrainer" => Some(Tool::TrlGrpo),
            "Trainer" | "Seq2SeqTrainer" => Some(Tool::Transformers),
            _ => None,
        };
        self.use_tool(tool.unwrap_or(Tool::Transformers));
        if tool.is_none() {
            let why = "this trainer is not simulated yet; Trainer, Seq2SeqTrainer and TRL's SFT, DPO and GRPO are";
            self.open(
                "trainer",
                &trainer.name.clone().into(),
                trainer.place,
                why,
                (Aspect::Loss, Direction::AnotherRun),
            );
        }
        if let Some(loss) = other_loss {
            self.tell("trainer.loss", loss, trainer.place);
        }
        self.own_trainer(&object.callee, trainer.place);
        // TRL makes its own settings of transformers', whose defaults stay.
        if tool.is_some_and(Tool::is_trl)
            && matches!(
                config_name.as_deref(),
                Some("TrainingArguments" | "Seq2SeqTrainingArguments")
            )
        {
            self.tell("gradient_checkpointing", false, trainer.place);
            self.tell("bf16", false, trainer.place);
        }
        match (&args, &config) {
            (Some(args), Some((id, ..))) => self.settings(args, *id),
            (Some(args), None) => {
                let args = args.clone();
                self.unread_settings(&args, trainer.place);
            }
            (None, _) => {}
        }
        for name in OF_TRAINER {
            if let Some(value) = arguments.named(name) {
                let value = value.clone();
                self.say(name, &value, trainer.place);
            }
        }
        if arguments.is_open {
            self.unread_settings(&Value::Unknown(Why::Computed), trainer.place);
        }
        let model = arguments.named("model").or(arguments.places.first()).cloned();
        let model = match model {
            Some(Value::Function(_)) | None => {
                let init = arguments.named("model_init").is_some();
                let why = if init {
                    "the model is made by a function, which is not read"
                } else {
                    "no model is passed"
                };
                self.open(
                    "model",
                    &Json::Null,
                    trainer.place,
                    why,
                    (Aspect::Model, Direction::AnotherRun),
                );
                Model::default()
            }
            Some(model) => self.machine.trace(&model),
        };
        self.of_model(&model, trainer.place);
        if let Some(config) = arguments.named("peft_config").filter(|config| **config != Value::None) {
            let config = config.clone();
            self.adapters(&config, trainer.place);
        }
        if let Some(config) = arguments.named("quantization_config") {
            let config = config.clone();
            self.quantization(&config, trainer.place);
        }
        if let Some(optimizers) = arguments.named("optimizers")
            && let Value::Tuple(id) | Value::List(id) = optimizers
            && let Some(optimizer) = self.machine.heap.sequences[*id].items.first().cloned()
            && optimizer != Value::None
        {
            self.optimizer(&optimizer, trainer.place);
        }
        self.lengths(&arguments, config.as_ref().map(|(id, ..)| *id), tool);
    }

    /// What a class of the script changes of the trainer that it extends.
    pub(super) fn own_trainer(&mut self, callee: &Value, place: Place) {
        const CHANGING: [(&str, Aspect); 8] = [
            ("compute_loss", Aspect::Loss),
            ("training_step", Aspect::Loss),
            ("_inner_training_loop", Aspect::Loss),
            ("create_optimizer", Aspect::Optimizer),
            ("create_optimizer_and_scheduler", Aspect::Optimizer),
            ("get_train_dataloader", Aspect::Length),
            ("_prepare_inputs", Aspect::Length),
            ("_wrap_model", Aspect::Strategy),
        ];
        let Value::Class(id) = callee else { return };
        let class = &self.machine.heap.classes[*id];
        let name = class.def.name.as_str().to_owned();
        let own: Vec<(&str, Aspect)> = CHANGING
            .into_iter()
            .filter(|(method, _)| self.machine.heap.scopes[class.scope].names.contains_key(*method))
            .collect();
        for (method, aspect) in own {
            let why = format!("the script's own {method}, which is not read");
            self.open(
                "trainer",
                &name.clone().into(),
                place,
                &why,
                (aspect, Direction::Unknown),
            );
        }
    }

    pub(super) fn unread_settings(&mut self, value: &Value, place: Place) {
        let why = match value {
            Value::Unknown(Why::Card) => OF_THE_CARD,
            _ => "the trainer's settings are not readable here",
        };
        self.open(
            "args",
            &Json::String("…".to_owned()),
            place,
            why,
            (Aspect::Setting, Direction::AnotherRun),
        );
    }

    /// Settings that an object of `TrainingArguments` or a kin of it has.
    pub(super) fn settings(&mut self, config: &Value, id: Id) {
        let object = self.machine.heap.objects[id].clone();
        let place = object.place;
        if object.arguments.is_open {
            self.unread_settings(&Value::Unknown(Why::Computed), place);
        }
        if let Some(folder) = object.arguments.places.first() {
            let folder = folder.clone();
            self.say("output_dir", &folder, place);
        }
        self.facts.reads_options |= object.is_parsed;
        let set = self.machine.heap.attributes(config);
        for (name, value) in &object.arguments.names {
            if set.iter().all(|(own, _)| own != name) {
                self.setting(name, value, place);
            }
        }
        let is_own_class = matches!(object.callee, Value::Class(_));
        for (name, value) in set {
            let at = self.place_of_set(config, &name).unwrap_or(place);
            // Fields of the script's own class are its own, unless the trainer has them too.
            if is_own_class && !self.known.contains_key(name.as_str()) {
                continue;
            }
            let is_of_command = object.is_parsed && self.machine.options.values.contains_key(&name);
            if is_of_command && self.place_of_set(config, &name).is_none() {
                // The command's own line says it.
                self.machine.taken.remove(&name);
                continue;
            }
            if object.is_parsed && self.place_of_set(config, &name).is_some() {
                self.facts.taken.insert(name.clone());
            }
            self.setting(&name, &value, at);
        }
    }

    /// One setting; DeepSpeed's may be a dictionary.
    pub(super) fn setting(&mut self, name: &str, value: &Value, place: Place) {
        match (name, value) {
            ("deepspeed", Value::Dict(_)) => self.deepspeed(value, place),
            ("model_init_kwargs", Value::Dict(id)) => {
                // What quantizes is an object.
                let dict = self.machine.heap.dicts[*id].clone();
                for (key, value) in &dict.items {
                    match key {
                        Value::Str(key) if &**key == "quantization_config" => self.quantization(value, place),
                        Value::Str(key) if &**key == "device_map" => {}
                        Value::Str(key) => self.say(&format!("model_init_kwargs.{key}"), value, place),
                        _ => {}
                    }
                }
                if dict.is_open {
                    self.unread("model_init_kwargs", value, place);
                }
            }
            _ => self.say(name, value, place),
        }
    }

    pub(super) fn place_of_set(&self, owner: &Value, name: &str) -> Option<Place> {
        self.machine.events.iter().rev().find_map(|event| match &event.deed {
            Deed::Set(of, own, _) if of == owner && own == name => Some(event.place),
            _ => None,
        })
    }

    pub(super) fn deepspeed(&mut self, value: &Value, place: Place) {
        let before = self.facts.entries.len();
        self.say("", value, place);
        let own = self.facts.entries.split_off(before);
        self.facts.deepspeed.extend(own.into_iter().map(|entry| Entry {
            key: entry.key.trim_start_matches('.').to_owned(),
            ..entry
        }));
    }

    // Models.

    pub(super) fn of_lightning(&mut self, trainer: &Trainer) {
        let object = self.machine.heap.objects[trainer.id].clone();
        let place = trainer.place;
        let fitted = self.machine.calls(&["fit"]).find_map(|(call, _)| {
            let arguments = &self.machine.heap.objects[call].arguments;
            arguments.get("model", 0).cloned()
        });
        if let Some(module) = &fitted {
            for name in ["configure_optimizers", "train_dataloader"] {
                if let Some(method) = self.machine.method(module, name) {
                    self.machine.call(method, Arguments::default(), place);
                }
            }
        }
        self.tell("loop", true, place);
        for (name, value) in &object.arguments.names {
            match (name.as_str(), value) {
                ("precision", value) => {
                    let word = match value {
                        Value::Int(number) => number.to_string(),
                        Value::Str(word) => word.to_string(),
                        _ => String::new(),
                    };
                    match word.as_str() {
                        "bf16" | "bf16-mixed" => self.tell("bf16", true, place),
                        "16" | "16-mixed" => self.tell("fp16", true, place),
                        "bf16-true" => self.tell("from_pretrained.dtype", "bfloat16", place),
                        "32" | "32-true" => {}
                        _ => self.unread("bf16", value, place),
                    }
                }
                ("accumulate_grad_batches", value) => self.say("gradient_accumulation_steps", value, place),
                ("gradient_clip_val", value) => self.say("max_grad_norm", value, place),
                ("devices", Value::Int(number)) if *number > 0 => self.tell("lightning.devices", *number, place),
                ("devices" | "strategy", Value::Str(word)) if matches!(&**word, "auto" | "ddp" | "1") => {}
                (name, value) => self.say(&format!("lightning.{name}"), value, place),
            }
        }
        let why = "the script's own LightningModule computes the step, which is not read";
        self.own_loss(why, place);
        let model = self.traced(self.only_model());
        self.of_model(&model, place);
        self.loop_optimizer(place);
        self.loader(place);
        self.lengths_of_loader();
    }

    // Around the run.
}
