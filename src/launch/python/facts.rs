//! What the calls of a script say of its run, as lines of a launch.

mod lengths;
mod library;
mod loaded;
mod own_loop;
mod trained;
mod tuned;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::call::last;
use super::heap::{Arguments, Id, Value, Why};
use super::machine::Machine;
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
    /// The card decides between bf16 and fp16.
    pub asks_card: bool,
    /// The same, and nobody says which card it is.
    pub card: Option<OpenCard>,
}

/// A card that decides something and that nobody names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenCard {
    /// Hosts of notebooks give one where nothing is said.
    OfNotebook,
    /// It may be any.
    Any,
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
    pub fn new(machine: &'m mut Machine<'a>) -> Self {
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
                asks_card: false,
                card: None,
            },
            known: BTreeMap::new(),
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
            [] => self.of_loop() || self.of_library(),
            [trainer] => {
                self.of_trainer(trainer);
                true
            }
            many => {
                let mut named: Vec<String> = Vec::new();
                for of in many {
                    let run = format!("{} ({})", of.name, shown(of.place));
                    if !named.contains(&run) {
                        named.push(run);
                    }
                }
                if named.len() == 1 {
                    return Err(format!(
                        "it starts several runs at one place: {}; they may differ, so give one of them alone, without the loop",
                        named.join(", ")
                    ));
                }
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
        self.facts.asks_card |= self.machine.asks_card;
        Ok(Some(self.facts))
    }

    /// Says what the version decides of a script that names what transformers 5 has no more (`AutoModelForVision2Seq`):
    /// TRL before 0.20 made no checkpoints of activations unless it was told to.
    fn of_older_trl(&mut self) {
        let is_stated = self
            .facts
            .entries
            .iter()
            .any(|entry| entry.key.ends_with("gradient_checkpointing"));
        let Some(place) = self.older.filter(|_| self.facts.tool.is_trl() && !is_stated) else {
            return;
        };
        self.tell("gradient_checkpointing", false, place);
        self.open(
            "gradient_checkpointing",
            &Json::Null,
            place,
            "it is on by itself since TRL 0.20, and this script is of a transformers before 5, so it is taken as off",
            (Aspect::Checkpointing, Direction::AtMost),
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

    /// Says that a call has more arguments than those that are read.
    fn partly_read(&mut self, call: &str, place: Place, effect: Effect) {
        let value = Json::String("…".to_owned());
        self.open(
            call,
            &value,
            place,
            "more of its arguments are not readable here",
            effect,
        );
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
            other => return other.scalar(),
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
