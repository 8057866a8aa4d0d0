//! How a script loads its model.

use serde_json::Value as Json;

use super::{COMPUTED, Finder};
use crate::left_out::{Aspect, Direction};
use crate::python::call::last;
use crate::python::heap::{Arguments, Id, Value, Why};
use crate::python::model::Model;
use crate::python::source::Place;
use crate::tool::Tool;

impl Finder<'_, '_> {
    pub(super) fn of_model(&mut self, model: &Model, place: Place) {
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
    pub(super) fn loaded(&mut self, base: Id, model: &Model) {
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
            self.partly_read("from_pretrained", place, (Aspect::Model, Direction::Unknown));
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
    pub(super) fn unsloth(&mut self, class: &str, arguments: &Arguments, place: Place, model: &Model) {
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
        self.tell("BitsAndBytesConfig.bnb_4bit_use_double_quant", true, place);
        self.tell("unsloth.patches", true, place);
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
                let flag = |key: &str| {
                    self.facts
                        .entries
                        .iter()
                        .rev()
                        .find(|entry| entry.key == key)
                        .map(|entry| entry.value.clone())
                };
                let asked = [("bf16", true), ("fp16", false)];
                let told = asked.into_iter().find(|(key, _)| flag(key) == Some(Json::Bool(true)));
                self.facts.asks_card |= told.is_none();
                let is_bf16 = told.map_or(self.machine.has_bf16, |(_, is_bf16)| is_bf16);
                let word = if is_bf16 { "bfloat16" } else { "float16" };
                self.tell("from_pretrained.dtype", word, place);
                if told.is_none() {
                    self.tell("bf16", is_bf16, place);
                    self.tell("fp16", !is_bf16, place);
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
        // Norms, rotary embeddings, adapters and the loss keep a part of what the model's own operations keep. What is
        // compiled keeps inputs of fused operations, and computes what lies between them again.
        let why = match class {
            "FastLanguageModel" => {
                "unsloth's own operations for norms, rotary embeddings, MLPs, adapters and the loss keep less than those that \
                 are simulated"
            }
            _ => {
                "unsloth's loss makes no logits of all positions, and modules that it compiles keep less than those that are \
                 simulated"
            }
        };
        self.open(
            "unsloth",
            &class.into(),
            place,
            why,
            (Aspect::Kernels, Direction::AtMost),
        );
    }

    pub(super) fn unsloth_checkpoints(&mut self, asked: &Value, place: Place) {
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

    pub(super) fn quantization(&mut self, config: &Value, place: Place) {
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
            self.partly_read("BitsAndBytesConfig", at, (Aspect::Quantization, Direction::Unknown));
        }
    }

    /// peft's preparation of quantized weights, which checkpoints unless it is told not to.
    pub(super) fn prepared(&mut self, model: &Model) {
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
                self.tell("BitsAndBytesConfig.is_prepared", true, object.place);
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
                self.tell("BitsAndBytesConfig.is_prepared", false, place);
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
}
