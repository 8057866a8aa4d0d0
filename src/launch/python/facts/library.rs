//! Libraries whose one function trains: what it is told, and what its own code decides (their repositories, 2025).

use serde_json::Value as Json;

use super::Finder;
use crate::left_out::{Aspect, Direction};
use crate::python::heap::{Dict, Value};
use crate::python::source::Place;
use crate::tool::Tool;

/// Start and end of the path of maestro's functions that train; between them is the family of the model.
const MAESTRO: [&str; 2] = ["maestro.trainer.models.", ".train"];

/// Settings of which nothing is known.
fn open_dict() -> Dict {
    Dict {
        items: Vec::new(),
        is_open: true,
    }
}

impl Finder<'_, '_> {
    /// A call of such a function; false if there is none.
    pub(super) fn of_library(&mut self) -> bool {
        if self.of_tool() {
            return true;
        }
        let found = self.machine.calls(&["train"]).find_map(|(call, _)| {
            let object = &self.machine.heap.objects[call];
            let path = self.machine.path(&object.callee)?;
            let family = path.strip_prefix(MAESTRO[0])?.strip_suffix(MAESTRO[1])?;
            let config = object.arguments.get("config", 0).cloned();
            Some((family.trim_end_matches(".core").to_owned(), config, object.place))
        });
        let Some((family, config, place)) = found else {
            return false;
        };
        self.use_tool(Tool::Loop);
        self.tell("loop", true, place);
        if family == "qwen_2_5_vl" {
            self.maestro(config.as_ref(), place);
        } else {
            let why = "of maestro's models qwen_2_5_vl is simulated";
            self.open(
                "maestro",
                &family.into(),
                place,
                why,
                (Aspect::Model, Direction::AnotherRun),
            );
        }
        true
    }

    /// A tool that is started as a function: ms-swift's `sft_main` and its kin with an object of settings, LLaMA-Factory's
    /// `run_exp` with a dictionary.
    fn of_tool(&mut self) -> bool {
        let names = ["sft_main", "pt_main", "rlhf_main", "run_exp"];
        let found = self.machine.calls(&names).find_map(|(call, _)| {
            let object = &self.machine.heap.objects[call];
            let path = self.machine.path(&object.callee)?;
            let tool = match path.split('.').next()? {
                "swift" => Tool::MsSwift,
                "llamafactory" | "llmtuner" => Tool::LlamaFactory,
                _ => return None,
            };
            Some((tool, path, object.arguments.places.first().cloned(), object.place))
        });
        let Some((tool, path, told, place)) = found else {
            return false;
        };
        self.use_tool(tool);
        // Its preferences are learnt with DPO where nothing is said (`RLHFArguments.rlhf_type`).
        if path.ends_with("rlhf_main") {
            self.tell("rlhf_type", "dpo", place);
        }
        let told = match told {
            Some(Value::Dict(id)) => self.machine.heap.dicts[id].clone(),
            Some(value @ Value::Object(_)) => self.object(&value).map_or_else(open_dict, |(_, _, arguments, _)| Dict {
                is_open: arguments.is_open || !arguments.places.is_empty(),
                items: arguments
                    .names
                    .iter()
                    .map(|(name, value)| (Value::text(name), value.clone()))
                    .collect(),
            }),
            _ => open_dict(),
        };
        if told.is_open {
            self.partly_read(&path, place, (Aspect::Setting, Direction::AnotherRun));
        }
        for (name, value) in &told.items {
            if let Value::Str(name) = name {
                self.say(name, value, place);
            }
        }
        true
    }

    /// maestro's Qwen2.5-VL (`maestro/trainer/models/qwen_2_5_vl`), which Lightning runs without autocast.
    fn maestro(&mut self, config: Option<&Value>, place: Place) {
        let told: Option<Vec<(String, Value)>> = match config {
            Some(Value::Dict(id)) if !self.machine.heap.dicts[*id].is_open => {
                let items = self.machine.heap.dicts[*id].items.clone();
                let named = items.into_iter().map(|(key, value)| match key {
                    Value::Str(key) => Some((key.to_string(), value)),
                    _ => None,
                });
                named.collect()
            }
            Some(value @ Value::Object(_)) => self.object(value).map(|(_, _, arguments, _)| arguments.names),
            _ => None,
        };
        let Some(told) = told else {
            let why = "what it is told is not readable here";
            self.open(
                "config",
                &Json::String("…".to_owned()),
                place,
                why,
                (Aspect::Setting, Direction::AnotherRun),
            );
            return;
        };
        let get = |name: &str| told.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        let model = get("model_id").unwrap_or_else(|| Value::text("Qwen/Qwen2.5-VL-3B-Instruct"));
        self.say("from_pretrained.model", &model, place);
        self.tell("from_pretrained.dtype", "bfloat16", place);
        for (name, key, default) in [
            ("batch_size", "per_device_train_batch_size", 4),
            ("accumulate_grad_batches", "gradient_accumulation_steps", 8),
            ("max_pixels", "processor.max_pixels", 1280 * 28 * 28),
        ] {
            let value = get(name).unwrap_or(Value::Int(default));
            self.say(key, &value, place);
        }
        self.tell("optim", "adamw_torch", place);
        let tuner = get("optimization_strategy").unwrap_or_else(|| Value::text("lora"));
        match &tuner {
            Value::Str(word) if matches!(&**word, "lora" | "qlora") => {
                self.tell("get_peft_model", true, place);
                self.tell("LoraConfig.r", 8, place);
                self.tell("LoraConfig.lora_dropout", 0.05, place);
                self.tell("LoraConfig.target_modules", vec!["q_proj", "v_proj"], place);
                if &**word == "qlora" {
                    self.tell("BitsAndBytesConfig.load_in_4bit", true, place);
                    self.tell("BitsAndBytesConfig.bnb_4bit_use_double_quant", true, place);
                    // It misspells the option, so that bitsandbytes' own default holds.
                    self.tell("BitsAndBytesConfig.bnb_4bit_compute_dtype", "float32", place);
                }
            }
            Value::Str(word) if &**word == "none" => {}
            other => self.unread("get_peft_model", &other.clone(), place),
        }
        self.facts.is_unlimited = true;
    }
}
