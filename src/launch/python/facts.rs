//! What the calls of a script say of its run, as lines of a launch.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::call::last;
use super::heap::{Arguments, Id, Value, Why};
use super::machine::{Deed, Machine};
use super::model::Model;
use super::source::Place;
use crate::entry::{Entry, flatten};
use crate::keys::{Meaning, find, script_keys};
use crate::left_out::{Aspect, Direction, Effect, NOT_KNOWN, of_knob};
use crate::tool::Tool;

/// A line of a script that decides and cannot be read or simulated.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Open {
    pub entry: Entry,
    pub why: String,
    pub effect: Effect,
}

impl Open {
    /// A cell that cannot be read.
    pub fn of_cell(cell: usize, why: &str) -> Self {
        Self {
            entry: Entry {
                key: "cell".to_owned(),
                value: cell.into(),
                line: 1,
                cell: Some(cell),
            },
            why: format!("it cannot be read: {why}"),
            effect: (Aspect::Setting, Direction::AnotherRun),
        }
    }
}

/// What a script says of its run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Facts {
    /// What trains.
    pub tool: Tool,
    /// Settings, in the order in which they prevail.
    pub entries: Vec<Entry>,
    /// DeepSpeed's settings.
    pub deepspeed: Vec<Entry>,
    pub open: Vec<Open>,
    /// No line limits the length of samples, whatever the tool's default.
    pub is_unlimited: bool,
    /// Options of the command that the script takes, and which its own lines speak for.
    pub taken: BTreeSet<String>,
    /// The trainer has settings that the command's options set.
    pub reads_options: bool,
    /// It took defaults of its own options, since no command was given.
    pub took_defaults: bool,
}

/// Name of a type of PyTorch.
pub(super) fn dtype(path: &str) -> Option<&'static str> {
    Some(match last(path) {
        "bfloat16" => "bfloat16",
        "float16" | "half" => "float16",
        "float32" | "float" => "float32",
        _ => return None,
    })
}

/// Options of settings that the trainers of TRL had before 1.0, and what `SFTTrainer` itself took.
const OF_TRAINER: [&str; 5] = [
    "max_seq_length",
    "max_length",
    "packing",
    "neftune_noise_alpha",
    "max_prompt_length",
];

const COMPUTED: &str = "it is computed where the script runs, so it is not readable here";
const OF_THE_CARD: &str =
    "the card decides it: bf16 where the card has it, fp16 elsewhere; write True or False in its place";

pub(super) struct Finder<'m, 'a> {
    pub machine: &'m mut Machine<'a>,
    pub facts: Facts,
    known: BTreeMap<&'static str, Meaning>,
    /// Whether the card has bf16, where the file says which it is.
    pub has_bf16: Option<bool>,
    /// The longest sample that unsloth's model is loaded for.
    model_limit: Option<Value>,
    is_unsloth: bool,
    /// Where it names a class that transformers 5 has no more.
    older: Option<Place>,
}

/// A trainer that is made and trains.
struct Trainer {
    id: Id,
    /// Last part of the class's name.
    name: String,
    place: Place,
}

impl<'m, 'a> Finder<'m, 'a> {
    pub fn new(machine: &'m mut Machine<'a>, has_bf16: Option<bool>) -> Self {
        Self {
            machine,
            facts: Facts {
                tool: Tool::Loop,
                entries: Vec::new(),
                deepspeed: Vec::new(),
                open: Vec::new(),
                is_unlimited: false,
                taken: BTreeSet::new(),
                reads_options: false,
                took_defaults: false,
            },
            known: BTreeMap::new(),
            has_bf16,
            model_limit: None,
            is_unsloth: false,
            older: None,
        }
    }

    /// Finds what trains and what it is told; `None` if nothing does.
    ///
    /// # Errors
    /// If several runs are started.
    pub fn find(mut self) -> Result<Option<Facts>, String> {
        let trainers = self.trainers();
        let is_found = match &trainers[..] {
            [] => self.of_loop(),
            [trainer] => {
                self.of_trainer(trainer);
                true
            }
            many => {
                let named: Vec<String> = many
                    .iter()
                    .map(|of| format!("{} ({})", of.name, shown(of.place)))
                    .collect();
                return Err(format!(
                    "it starts several runs: {}; give the one that you mean alone",
                    named.join(", ")
                ));
            }
        };
        if !is_found {
            return Ok(None);
        }
        self.environment();
        self.of_older_trl();
        if self.machine.is_spent() {
            self.open(
                "script",
                &Json::Null,
                Place::default(),
                "it does more than is read",
                (Aspect::Setting, Direction::AnotherRun),
            );
        }
        self.facts.taken.extend(std::mem::take(&mut self.machine.taken));
        self.facts.took_defaults = self.machine.took_defaults;
        Ok(Some(self.facts))
    }

    /// Says what the version decides of a script that names what transformers 5 has no more (`AutoModelForVision2Seq`):
    /// TRL before 0.20 made no checkpoints of activations unless it was told to.
    fn of_older_trl(&mut self) {
        let is_told = self
            .facts
            .entries
            .iter()
            .any(|entry| entry.key.ends_with("gradient_checkpointing"));
        let Some(place) = self.older.filter(|_| self.facts.tool.is_trl() && !is_told) else {
            return;
        };
        self.open(
            "gradient_checkpointing",
            &Json::Null,
            place,
            "it is on by itself since TRL 0.20, and this script is of a transformers before 5",
            (Aspect::Checkpointing, Direction::Unknown),
        );
    }

    fn use_tool(&mut self, tool: Tool) {
        self.facts.tool = tool;
        self.known = crate::keys::keys(tool);
        for (key, meaning) in script_keys() {
            self.known.entry(key).or_insert(meaning);
        }
    }

    // What a line says.

    /// Adds a setting of a value of the script.
    fn say(&mut self, key: &str, value: &Value, place: Place) {
        self.say_within(key, value, place, 0);
    }

    fn say_within(&mut self, key: &str, value: &Value, place: Place, depth: usize) {
        if let Value::Dict(id) = value
            && depth < 4
        {
            let dict = self.machine.heap.dicts[*id].clone();
            if dict.is_open {
                self.unread(key, &Value::Unknown(Why::Computed), place);
            }
            for (inner, value) in &dict.items {
                if let Value::Str(inner) = inner {
                    self.say_within(&format!("{key}.{inner}"), value, place, depth + 1);
                }
            }
            return;
        }
        match self.json(value, 0) {
            Some(json) => self.tell(key, json, place),
            None => self.unread(key, value, place),
        }
    }

    /// Adds a setting.
    fn tell(&mut self, key: &str, value: impl Into<Json>, place: Place) {
        let value = hidden(key, value.into());
        let before = self.facts.entries.len();
        flatten(key, value, place.line.max(1), &mut self.facts.entries);
        for entry in &mut self.facts.entries[before..] {
            entry.cell = place.cell;
        }
    }

    /// Adds a setting whose value cannot be read.
    fn unread(&mut self, key: &str, value: &Value, place: Place) {
        let meaning = find(&self.known, key);
        let effect = match meaning {
            Some(Meaning::NoEffect(_)) => {
                self.tell(key, "…", place);
                return;
            }
            // Of another batch or model any figure would be of another run.
            Some(Meaning::Simulated("batch" | "model" | "gpus" | "use_peft" | "rank", _)) => {
                (Aspect::Setting, Direction::AnotherRun)
            }
            Some(Meaning::Simulated(knob, _)) => of_knob(knob, &Json::Null),
            Some(Meaning::NotSimulated(why, _)) => crate::left_out::of_key(key, &Json::Null, why),
            None => NOT_KNOWN,
        };
        let why = match value {
            Value::Unknown(Why::Card) => OF_THE_CARD,
            _ => COMPUTED,
        };
        self.open(key, &Json::String("…".to_owned()), place, why, effect);
    }

    fn open(&mut self, key: &str, value: &Json, place: Place, why: &str, effect: Effect) {
        self.facts.open.push(Open {
            entry: Entry {
                key: key.to_owned(),
                value: hidden(key, value.clone()),
                line: place.line.max(1),
                cell: place.cell,
            },
            why: why.to_owned(),
            effect,
        });
    }

    /// A value as JSON, if all of it is known.
    fn json(&self, value: &Value, depth: usize) -> Option<Json> {
        if depth > 6 {
            return None;
        }
        Some(match value {
            Value::None => Json::Null,
            Value::Bool(truth) => Json::Bool(*truth),
            Value::Int(number) => (*number).into(),
            Value::Float(number) => serde_json::Number::from_f64(*number).map(Json::Number)?,
            Value::Str(text) => Json::String(text.to_string()),
            Value::Symbol(path) => match dtype(path).filter(|_| path.starts_with("torch.")) {
                Some(name) => Json::String(name.to_owned()),
                // Members of enumerations: `TaskType.CAUSAL_LM`, `IntervalStrategy.STEPS`.
                None if last(path)
                    .chars()
                    .all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit()) =>
                {
                    Json::String(last(path).to_ascii_lowercase())
                }
                None => return None,
            },
            Value::List(id) | Value::Tuple(id) => {
                let sequence = &self.machine.heap.sequences[*id];
                if sequence.is_open || sequence.items.len() > 256 {
                    return None;
                }
                Json::Array(
                    sequence
                        .items
                        .iter()
                        .map(|item| self.json(item, depth + 1))
                        .collect::<Option<_>>()?,
                )
            }
            _ => return None,
        })
    }

    fn object(&self, value: &Value) -> Option<(Id, String, Arguments, Place)> {
        let Value::Object(id) = value else { return None };
        let object = &self.machine.heap.objects[*id];
        let path = self
            .machine
            .path(&object.callee)
            .or_else(|| self.machine.last_name(&object.callee))?;
        Some((*id, path, object.arguments.clone(), object.place))
    }

    // Trainers.

    /// Trainers that are made and train, each once.
    fn trainers(&self) -> Vec<Trainer> {
        let mut out: Vec<Trainer> = Vec::new();
        for (call, _) in self.machine.calls(&["train", "fit", "unsloth_train"]) {
            let object = &self.machine.heap.objects[call];
            let of = match self.machine.owner(call) {
                Some(owner) => owner,
                None => match object.arguments.places.first() {
                    Some(first) => first.clone(),
                    None => continue,
                },
            };
            let Some(trainer) = self.trainer(&of) else { continue };
            if out.iter().all(|known| known.id != trainer.id) {
                out.push(trainer);
            }
        }
        out
    }

    /// The trainer that a value is, or that it wraps.
    fn trainer(&self, value: &Value) -> Option<Trainer> {
        let mut at = value.clone();
        for _ in 0..8 {
            let (id, path, arguments, place) = self.object(&at)?;
            let name = last(&path);
            if name.ends_with("Trainer") && !name.starts_with("get") {
                let name = name.to_owned();
                return Some(Trainer { id, name, place });
            }
            // `train_on_responses_only(trainer, …)`, `accelerator.prepare(trainer)`.
            at = arguments.get("trainer", 0)?.clone();
        }
        None
    }

    #[expect(clippy::too_many_lines, reason = "one step for each argument that decides")]
    fn of_trainer(&mut self, trainer: &Trainer) {
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
        let tool = match trainer.name.as_str() {
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
    fn own_trainer(&mut self, callee: &Value, place: Place) {
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

    fn unread_settings(&mut self, value: &Value, place: Place) {
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
    fn settings(&mut self, config: &Value, id: Id) {
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
    fn setting(&mut self, name: &str, value: &Value, place: Place) {
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

    fn place_of_set(&self, owner: &Value, name: &str) -> Option<Place> {
        self.machine.events.iter().rev().find_map(|event| match &event.deed {
            Deed::Set(of, own, _) if of == owner && own == name => Some(event.place),
            _ => None,
        })
    }

    fn deepspeed(&mut self, value: &Value, place: Place) {
        let before = self.facts.entries.len();
        self.say("", value, place);
        let own = self.facts.entries.split_off(before);
        self.facts.deepspeed.extend(own.into_iter().map(|entry| Entry {
            key: entry.key.trim_start_matches('.').to_owned(),
            ..entry
        }));
    }

    // Models.

    fn of_model(&mut self, model: &Model, place: Place) {
        if let Some(why) = &model.unreadable {
            self.open(
                "model",
                &Json::String("…".to_owned()),
                place,
                why,
                (Aspect::Model, Direction::AnotherRun),
            );
        }
        if let Some(name) = &model.name {
            self.say("from_pretrained.model", name, place);
        }
        if let Some(base) = model.base {
            self.loaded(base, model);
        }
        if model.is_compiled {
            self.tell("torch_compile", true, place);
        }
        for cast in model.casts.iter().take(1) {
            self.say("from_pretrained.dtype", cast, place);
        }
        self.prepared(model);
        for adapters in &model.adapters {
            self.adapters(adapters, place);
        }
        if model.adapters.len() > 1 {
            let why = "several sets of adapters are not simulated";
            self.open(
                "get_peft_model",
                &Json::Null,
                place,
                why,
                (Aspect::Tuner, Direction::Unknown),
            );
        }
        self.methods(model);
        if model.adapters.is_empty() {
            self.frozen(model);
        } else {
            self.thawed(model);
        }
    }

    /// What the call that loads a model says.
    #[expect(clippy::too_many_lines, reason = "one step for each argument that decides")]
    fn loaded(&mut self, base: Id, model: &Model) {
        let object = self.machine.heap.objects[base].clone();
        let (path, place) = (self.machine.path(&object.callee).unwrap_or_default(), object.place);
        let fast = ["FastLanguageModel", "FastVisionModel", "FastModel", "FastTextModel"];
        let is_unsloth = fast.iter().find(|name| path.contains(*name));
        let names = ["pretrained_model_name_or_path", "model_name", "model_name_or_path"];
        let named = names.iter().find_map(|name| object.arguments.named(name));
        match named.or(object.arguments.places.first()) {
            Some(name) => {
                let name = name.clone();
                self.say("from_pretrained.model", &name, place);
            }
            None => self.unread("from_pretrained.model", &Value::Unknown(Why::Computed), place),
        }
        if object.arguments.is_open {
            let why = "more of its arguments are not readable here";
            self.open(
                "from_pretrained",
                &Json::String("…".to_owned()),
                place,
                why,
                (Aspect::Model, Direction::Unknown),
            );
        }
        if path.contains("AutoModelForVision2Seq") {
            self.older = Some(place);
        }
        if let Some(name) = is_unsloth {
            return self.unsloth(name, &object.arguments, place, model);
        }
        if !path.starts_with("transformers") && !path.contains("AutoModel") && !path.contains("AutoPeft") {
            let why = "a class of another library loads the model, which may not be transformers' own";
            let class = path.trim_end_matches(".from_pretrained").to_owned();
            self.open(
                "from_pretrained",
                &class.into(),
                place,
                why,
                (Aspect::Model, Direction::Unknown),
            );
        }
        let types = ["dtype", "torch_dtype"];
        if types.iter().all(|name| object.arguments.named(name).is_none()) && model.casts.is_empty() {
            self.tell("from_pretrained.dtype", "auto", place);
        }
        for (name, value) in &object.arguments.names {
            match name.as_str() {
                name if names.contains(&name) => {}
                "quantization_config" => self.quantization(value, place),
                "config" if *value != Value::None => {
                    let why = "a configuration that the script makes, which is not read";
                    self.open(
                        "from_pretrained.config",
                        &Json::String("…".to_owned()),
                        place,
                        why,
                        (Aspect::Model, Direction::Unknown),
                    );
                }
                _ => self.say(&format!("from_pretrained.{name}"), value, place),
            }
        }
        if object.arguments.named("load_in_4bit") == Some(&Value::Bool(true)) {
            self.tell("BitsAndBytesConfig.bnb_4bit_use_double_quant", false, place);
        }
    }

    /// What unsloth makes of a model, and leaves to no line (`unsloth/models`, 2025 and 2026).
    #[expect(clippy::too_many_lines, reason = "one step for each argument that decides")]
    fn unsloth(&mut self, class: &str, arguments: &Arguments, place: Place, model: &Model) {
        let get = |name: &str| arguments.named(name).cloned();
        self.model_limit = get("max_seq_length");
        self.is_unsloth = true;
        // Its own defaults for the settings of TRL's trainers (`unsloth/models/rl.py`).
        for (key, value) in [
            ("per_device_train_batch_size", Json::from(4)),
            ("gradient_accumulation_steps", 2.into()),
            ("optim", "adamw_8bit".into()),
        ] {
            if self.facts.entries.iter().all(|entry| entry.key != key) {
                self.tell(key, value, place);
            }
        }
        let is_full = get("full_finetuning") == Some(Value::Bool(true));
        let four = get("load_in_4bit").unwrap_or(Value::Bool(!is_full));
        self.say("from_pretrained.load_in_4bit", &four, place);
        for name in [
            "load_in_8bit",
            "load_in_fp8",
            "full_finetuning",
            "fast_inference",
            "attn_implementation",
            "max_lora_rank",
        ] {
            if let Some(value) = get(name) {
                self.say(&format!("from_pretrained.{name}"), &value, place);
            }
        }
        match get("dtype").filter(|value| *value != Value::None) {
            Some(value) => self.say("from_pretrained.dtype", &value, place),
            None => {
                let flag = |machine: &Machine<'_>, key: &str| {
                    let _ = machine;
                    self.facts
                        .entries
                        .iter()
                        .rev()
                        .find(|entry| entry.key == key)
                        .map(|entry| entry.value.clone())
                };
                let asked = [("bf16", true), ("fp16", false)];
                let told = asked
                    .into_iter()
                    .find(|(key, _)| flag(self.machine, key) == Some(Json::Bool(true)));
                match told.map(|(_, is_bf16)| is_bf16).or(self.has_bf16) {
                    Some(is_bf16) => {
                        self.tell(
                            "from_pretrained.dtype",
                            if is_bf16 { "bfloat16" } else { "float16" },
                            place,
                        );
                        if told.is_none() {
                            self.tell(if is_bf16 { "bf16" } else { "fp16" }, true, place);
                        }
                    }
                    None => self.unread("from_pretrained.dtype", &Value::Unknown(Why::Card), place),
                }
            }
        }
        // The checkpoints in their own step: `get_peft_model` decides where it is called.
        let of_adapters = model.adapters.iter().find_map(|config| self.object(config));
        let asked = of_adapters
            .as_ref()
            .and_then(|(_, _, arguments, _)| arguments.named("use_gradient_checkpointing").cloned())
            .or_else(|| get("use_gradient_checkpointing"));
        self.unsloth_checkpoints(&asked.unwrap_or(Value::text("unsloth")), place);
        // Norms, rotary embeddings, adapters and the loss keep a part of what the model's own operations keep; modules that
        // are compiled may keep others.
        let (why, direction) = match class {
            "FastLanguageModel" => (
                "unsloth's own operations for norms, rotary embeddings, MLPs, adapters and the loss keep less than those that \
                 are simulated",
                Direction::AtMost,
            ),
            _ => (
                "unsloth compiles the model's modules, whose memory is not known",
                Direction::Unknown,
            ),
        };
        self.open("unsloth", &class.into(), place, why, (Aspect::Kernels, direction));
    }

    fn unsloth_checkpoints(&mut self, asked: &Value, place: Place) {
        match asked {
            Value::Str(word) if &**word == "unsloth" => {
                self.tell("gradient_checkpointing", true, place);
                let why = "inputs of blocks lie in the memory of the host";
                let effect = (Aspect::Checkpointing, Direction::AtMost);
                self.open("use_gradient_checkpointing", &"unsloth".into(), place, why, effect);
            }
            other => self.say("gradient_checkpointing", &other.clone(), place),
        }
    }

    fn quantization(&mut self, config: &Value, place: Place) {
        let Some((_, path, arguments, at)) = self.object(config) else {
            match config {
                Value::None => {}
                _ => self.open(
                    "quantization_config",
                    &Json::String("…".to_owned()),
                    place,
                    COMPUTED,
                    (Aspect::Quantization, Direction::AnotherRun),
                ),
            }
            return;
        };
        if last(&path) != "BitsAndBytesConfig" {
            let why = "only bitsandbytes' 4 bits are simulated";
            self.open(
                "quantization_config",
                &last(&path).into(),
                at,
                why,
                (Aspect::Quantization, Direction::AnotherRun),
            );
            return;
        }
        for (name, value) in &arguments.names {
            self.say(&format!("BitsAndBytesConfig.{name}"), value, at);
        }
        if arguments.named("bnb_4bit_use_double_quant").is_none() {
            self.tell("BitsAndBytesConfig.bnb_4bit_use_double_quant", false, at);
        }
        // Its own default.
        if arguments.named("bnb_4bit_compute_dtype").is_none()
            && arguments.named("load_in_4bit") == Some(&Value::Bool(true))
        {
            self.tell("BitsAndBytesConfig.bnb_4bit_compute_dtype", "float32", at);
        }
        if arguments.is_open {
            let why = "more of its arguments are not readable here";
            self.open(
                "BitsAndBytesConfig",
                &Json::String("…".to_owned()),
                at,
                why,
                (Aspect::Quantization, Direction::Unknown),
            );
        }
    }

    /// peft's preparation of quantized weights, which checkpoints unless it is told not to.
    fn prepared(&mut self, model: &Model) {
        let in_place = self
            .machine
            .calls(&["prepare_model_for_kbit_training"])
            .find(|(call, _)| {
                let arguments = &self.machine.heap.objects[*call].arguments;
                arguments.get("model", 0).is_some_and(|of| model.chain.contains(of))
            });
        let in_place = in_place.map(|(call, _)| call);
        let is_four_bit = self
            .facts
            .entries
            .iter()
            .any(|entry| entry.key.ends_with("load_in_4bit") && entry.value == true);
        match model.prepared.or(in_place) {
            Some(call) => {
                let object = self.machine.heap.objects[call].clone();
                let is_on = object
                    .arguments
                    .get("use_gradient_checkpointing", 1)
                    .cloned()
                    .unwrap_or(Value::Bool(true));
                self.say(
                    "prepare_model_for_kbit_training.use_gradient_checkpointing",
                    &is_on,
                    object.place,
                );
                // It casts to fp32 whatever is not quantized; nothing else of it is not simulated.
                if !is_four_bit {
                    let why = "it casts all weights to fp32";
                    let place = object.place;
                    self.open(
                        "prepare_model_for_kbit_training",
                        &true.into(),
                        place,
                        why,
                        (Aspect::Precision, Direction::Unknown),
                    );
                }
            }
            None if is_four_bit && matches!(self.facts.tool, Tool::Transformers | Tool::Loop) => {
                let why = "weights that are not in 4 bits stay as they are: they are simulated in fp32";
                let place = model
                    .base
                    .map_or(Place::default(), |base| self.machine.heap.objects[base].place);
                self.open(
                    "load_in_4bit",
                    &true.into(),
                    place,
                    why,
                    (Aspect::Quantization, Direction::AtMost),
                );
            }
            None => {}
        }
    }

    /// Adapters that a `LoraConfig`, or unsloth's `get_peft_model`, asks for.
    fn adapters(&mut self, config: &Value, place: Place) {
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
            let why = "more of its arguments are not readable here";
            self.open(
                "LoraConfig",
                &Json::String("…".to_owned()),
                at,
                why,
                (Aspect::Tuner, Direction::AnotherRun),
            );
        }
    }

    /// Modules that unsloth adds adapters to: names, or all linear maps of the parts that it is told (`get_peft_regex`).
    #[expect(clippy::too_many_lines, reason = "one step for each argument that decides")]
    fn unsloth_targets(&mut self, told: &[(String, Value)], place: Place) {
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
                let names = [
                    "q_proj",
                    "k_proj",
                    "v_proj",
                    "o_proj",
                    "gate_proj",
                    "up_proj",
                    "down_proj",
                ];
                self.tell("LoraConfig.target_modules", names.to_vec(), place);
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
    fn methods(&mut self, model: &Model) {
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
    fn frozen(&mut self, model: &Model) {
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
    fn thawed(&mut self, model: &Model) {
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

    /// The longest sample, by what cuts it: the trainer's own limit holds for what it prepares itself.
    fn lengths(&mut self, arguments: &Arguments, config: Option<Id>, tool: Option<Tool>) {
        let collator = arguments
            .named("data_collator")
            .filter(|value| **value != Value::None)
            .cloned();
        let kwargs = config.and_then(|id| {
            let value = Value::Object(id);
            let named = self.machine.heap.objects[id].arguments.named("dataset_kwargs").cloned();
            self.machine.heap.attribute(&value, "dataset_kwargs").cloned().or(named)
        });
        let skips = match kwargs {
            Some(Value::Dict(id)) => {
                self.machine.heap.dicts[id].get("skip_prepare_dataset") == Some(&Value::Bool(true))
            }
            Some(Value::None) | None => false,
            Some(_) => true,
        };
        let library = collator
            .as_ref()
            .map(|value| self.object(value).map(|(_, path, ..)| path).unwrap_or_default());
        // unsloth's collator cuts at its own limit or at the model's (`UnslothVisionDataCollator`, 2026).
        let is_unsloth = library.as_ref().is_some_and(|path| path.starts_with("unsloth"));
        let is_library = library
            .as_ref()
            .is_none_or(|path| ["transformers.", "trl."].iter().any(|of| path.starts_with(of)));
        if is_unsloth {
            let own = collator.as_ref().and_then(|value| self.object(value));
            let own = own.and_then(|(_, _, arguments, _)| arguments.get("max_seq_length", 2).cloned());
            let limit = own.or(self.model_limit.clone()).unwrap_or(Value::Int(2048));
            let place = collator
                .as_ref()
                .and_then(|value| self.object(value))
                .map_or(Place::default(), |of| of.3);
            self.say("samples.max_length", &limit, place);
            return;
        }
        if self.is_unsloth && tool == Some(Tool::TrlSft) && !skips {
            // A longer limit of the settings is that of the model.
            let told = self
                .facts
                .entries
                .iter()
                .rev()
                .find(|entry| matches!(entry.key.as_str(), "max_length" | "max_seq_length"));
            let told = told.and_then(|entry| entry.value.as_u64());
            let model = match self.model_limit {
                Some(Value::Int(limit)) => u64::try_from(limit).ok(),
                None => Some(2048),
                Some(_) => None,
            };
            if let Some(limit) = model.filter(|model| told.is_none_or(|told| told > *model)) {
                self.tell("samples.max_length", limit, Place { line: 1, cell: None });
            }
        }
        let prepares = tool.is_some_and(Tool::is_trl) && !skips && is_library;
        if prepares {
            return;
        }
        let told = collator.as_ref().and_then(|value| self.limit_of_collator(value));
        match told.or_else(|| self.limit_of_samples()) {
            Some((limit, place)) => self.tell("samples.max_length", limit, place),
            None => self.facts.is_unlimited = true,
        }
    }

    /// The limit that a collator is told, with truncation.
    fn limit_of_collator(&self, collator: &Value) -> Option<(i64, Place)> {
        let (_, _, arguments, place) = self.object(collator)?;
        let is_cut = arguments.named("truncation") == Some(&Value::Bool(true));
        match arguments.named("max_length") {
            Some(Value::Int(limit)) if is_cut && *limit > 0 => Some((*limit, place)),
            _ => None,
        }
    }

    /// The limit at which functions that the script hands over cut samples.
    fn limit_of_samples(&self) -> Option<(i64, Place)> {
        let heap = &self.machine.heap;
        let mut best: Option<i64> = None;
        for value in &self.machine.handed {
            let ids = match value {
                Value::Dict(id) => heap.dicts[*id].get("input_ids").cloned(),
                other => Some(other.clone()),
            };
            let limit = ids.and_then(|ids| self.limit_of(&ids));
            best = best.max(limit);
        }
        let place = self
            .machine
            .events
            .iter()
            .find(|event| event.is_of_data)
            .map(|event| event.place);
        Some((best?, place.unwrap_or_default()))
    }

    /// The most elements of a value.
    fn limit_of(&self, value: &Value) -> Option<i64> {
        let mut at = value.clone();
        for _ in 0..8 {
            match at {
                Value::Cut(limit) => return Some(limit),
                Value::Member(id) => at = self.machine.heap.members[id].0.clone(),
                Value::Object(id) => {
                    let object = &self.machine.heap.objects[id];
                    let truncates = match object.arguments.named("truncation") {
                        Some(Value::Bool(true)) => true,
                        Some(Value::Str(word)) => &**word != "do_not_truncate",
                        _ => false,
                    };
                    match object.arguments.named("max_length") {
                        Some(Value::Int(limit)) if truncates && *limit > 0 => return Some(*limit),
                        // What turns lists into tensors.
                        _ if self.machine.last_name(&object.callee).is_some_and(|name| {
                            matches!(
                                name.as_str(),
                                "tensor" | "LongTensor" | "as_tensor" | "squeeze" | "clone" | "to" | "pad"
                            )
                        }) =>
                        {
                            at = match self.machine.owner(id) {
                                Some(owner @ (Value::Object(_) | Value::Member(_))) => owner,
                                _ => object.arguments.places.first()?.clone(),
                            };
                        }
                        _ => return None,
                    }
                }
                _ => return None,
            }
        }
        None
    }

    // Loops.

    /// A loop of the script's own; false if there is none.
    fn of_loop(&mut self) -> bool {
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
        let model = match model.or_else(|| self.only_model()) {
            Some(model) => self.machine.trace(&model),
            None => Model {
                unreadable: Some("which model is trained is not readable".to_owned()),
                ..Model::default()
            },
        };
        if !is_models_own {
            let why = "the script computes the loss itself, or in a way that is not read";
            self.open(
                "loss",
                &Json::String("…".to_owned()),
                place,
                why,
                (Aspect::Loss, Direction::Unknown),
            );
        }
        self.accelerator();
        self.autocast();
        self.of_model(&model, place);
        // DeepSpeed's engine has that of its settings, unless it is given one.
        let has_own = self.machine.events.iter().any(|event| self.is_optimizer(event));
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
        match self.limit_of_samples() {
            Some((limit, at)) => self.tell("samples.max_length", limit, at),
            None => self.facts.is_unlimited = true,
        }
        true
    }

    /// The model whose output has this loss.
    fn model_of_loss(&self, loss: &Value) -> Option<Value> {
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
    fn only_model(&self) -> Option<Value> {
        let not = ["Tokenizer", "Processor", "Config", "FeatureExtractor", "Scheduler"];
        let mut models = self.machine.calls(&["from_pretrained"]).filter_map(|(call, _)| {
            let path = self.machine.path(&self.machine.heap.objects[call].callee)?;
            (!not.iter().any(|word| path.contains(word))).then_some(Value::Object(call))
        });
        let first = models.next()?;
        models.next().is_none().then_some(first)
    }

    fn accelerator(&mut self) {
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

    fn autocast(&mut self) {
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

    fn is_optimizer(&self, event: &super::machine::Event) -> bool {
        let Deed::Call(id) = event.deed else { return false };
        let path = self.machine.path(&self.machine.heap.objects[id].callee);
        path.is_some_and(|path| is_optimizer(&path))
    }

    fn loop_optimizer(&mut self, place: Place) {
        let optimizers: Vec<Id> = self
            .machine
            .events
            .iter()
            .filter_map(|event| {
                if let Deed::Call(id) = event.deed {
                    Some(id)
                } else {
                    None
                }
            })
            .filter(|id| {
                let path = self
                    .machine
                    .path(&self.machine.heap.objects[*id].callee)
                    .unwrap_or_default();
                is_optimizer(&path)
            })
            .collect();
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

    fn optimizer(&mut self, optimizer: &Value, place: Place) {
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
            "Adafactor" if path.starts_with("transformers") => "adafactor",
            "SGD" if arguments.get("momentum", 2).is_none() => "sgd",
            other => other,
        };
        let name = name.to_owned();
        self.tell("optim", name, at);
    }

    /// The batch of the loader that training reads.
    fn loader(&mut self, place: Place) {
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

    fn engine(&mut self, engine: Id) {
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

    fn of_lightning(&mut self, trainer: &Trainer) {
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
        self.open(
            "loss",
            &Json::String("…".to_owned()),
            place,
            why,
            (Aspect::Loss, Direction::Unknown),
        );
        let model = match self.only_model() {
            Some(model) => self.machine.trace(&model),
            None => Model {
                unreadable: Some("which model is trained is not readable".to_owned()),
                ..Model::default()
            },
        };
        self.of_model(&model, place);
        self.loop_optimizer(place);
        self.loader(place);
        match self.limit_of_samples() {
            Some((limit, at)) => self.tell("samples.max_length", limit, at),
            None => self.facts.is_unlimited = true,
        }
    }

    // Around the run.

    /// Variables that the script sets, processes that a notebook starts, and limits of processors.
    fn environment(&mut self) {
        if let Value::Dict(id) = self.machine.environ {
            let items = self.machine.heap.dicts[id].items.clone();
            for (key, value) in items {
                if let Value::Str(key) = key
                    && self.known.contains_key(&*key)
                {
                    let place = Place { line: 1, cell: None };
                    self.say(&key, &value, place);
                }
            }
        }
        let launched = self.machine.calls(&["notebook_launcher"]).next();
        if let Some((call, _)) = launched {
            let object = self.machine.heap.objects[call].clone();
            if let Some(value) = object.arguments.get("num_processes", 2) {
                let value = value.clone();
                self.say("lightning.devices", &value, object.place);
            }
        }
        let loads: Vec<Id> = self.machine.calls(&["from_pretrained"]).map(|(call, _)| call).collect();
        for call in loads {
            let object = self.machine.heap.objects[call].clone();
            let path = self.machine.path(&object.callee).unwrap_or_default();
            if !path.contains("Processor") {
                continue;
            }
            for name in [
                "max_pixels",
                "min_pixels",
                "size",
                "crop_to_patches",
                "do_image_splitting",
                "max_num_tiles",
            ] {
                if let Some(value) = object.arguments.named(name) {
                    let value = value.clone();
                    self.say(&format!("processor.{name}"), &value, object.place);
                }
            }
        }
    }
}

impl Machine<'_> {
    fn object(&self, value: &Value) -> Option<&super::heap::Object> {
        match value {
            Value::Object(id) => Some(&self.heap.objects[*id]),
            _ => None,
        }
    }
}

/// True for what makes a part of a model of its path, and not a walk over its parameters.
fn is_part(name: &str) -> bool {
    !name.starts_with('[') && !name.ends_with("()") && !matches!(name, "model" | "base_model" | "module")
}

/// Parts of a vision-language model that a path within it stands for: vision tower 0, connector 1, language model 2.
fn part_of(path: &[String]) -> Option<&'static [usize]> {
    const VISION: [&str; 6] = [
        "vision_tower",
        "vision_model",
        "vision_encoder",
        "vit",
        "vpm",
        "vision_embed_tokens",
    ];
    const CONNECTOR: [&str; 7] = [
        "multi_modal_projector",
        "mm_projector",
        "merger",
        "aligner",
        "connector",
        "mlp1",
        "resampler",
    ];
    let has = |names: &[&str]| path.iter().any(|part| names.contains(&part.as_str()));
    match path {
        [] => Some(&[0, 1, 2]),
        _ if has(&CONNECTOR) => Some(&[1]),
        // The tower of Qwen's models holds the connector.
        [.., last] if last == "visual" => Some(&[0, 1]),
        [_] | [_, _] if has(&VISION) => Some(&[0]),
        [name] if matches!(name.as_str(), "language_model" | "llm" | "text_model") => Some(&[2]),
        _ => None,
    }
}

fn is_optimizer(path: &str) -> bool {
    const NAMES: [&str; 16] = [
        "AdamW",
        "Adam",
        "SGD",
        "Adafactor",
        "AdamW8bit",
        "Adam8bit",
        "PagedAdamW8bit",
        "PagedAdamW",
        "PagedAdamW32bit",
        "PagedAdam8bit",
        "Lion",
        "Lion8bit",
        "Adagrad",
        "RMSprop",
        "DeepSpeedCPUAdam",
        "FusedAdam",
    ];
    NAMES.contains(&last(path))
}

/// A value without what a person keeps to themselves.
fn hidden(key: &str, value: Json) -> Json {
    let name = key.rsplit('.').next().unwrap_or(key).to_ascii_lowercase();
    let is_secret_key = ["token", "api_key", "secret", "password"]
        .iter()
        .any(|word| name == *word || name.ends_with(&format!("_{word}")));
    let is_secret = |text: &str| {
        let beginnings = ["hf_", "sk-", "ghp_", "github_pat_", "wandb_v1_", "AKIA"];
        beginnings.iter().any(|beginning| text.starts_with(beginning)) && text.len() >= 16
    };
    match value {
        Json::String(text) if is_secret_key || is_secret(&text) => "***".into(),
        other => other,
    }
}

/// A place as a person would say it.
pub(super) fn shown(place: Place) -> String {
    match place.cell {
        Some(cell) => format!("cell {cell}, line {}", place.line),
        None => format!("line {}", place.line),
    }
}
