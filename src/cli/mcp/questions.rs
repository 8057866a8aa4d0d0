//! What the tools are asked, and the arguments of the command that answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::input::run::Run;
use crate::input::source::Source;

/// Arguments of a command, and what goes to its standard input.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Arguments.
    pub args: Vec<String>,
    /// Standard input.
    pub stdin: String,
}

impl Asked {
    fn of(command: &str) -> Self {
        Self {
            args: [command, "--format", "json"].map(str::to_owned).to_vec(),
            stdin: String::new(),
        }
    }

    /// Adds a flag with a value. One word, so that a value that begins with a dash is no flag.
    fn flag(&mut self, name: &str, value: impl std::fmt::Display) {
        self.args.push(format!("--{name}={value}"));
    }

    /// Adds a flag if it has a value.
    fn flag_if_given(&mut self, name: &str, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            self.flag(name, value);
        }
    }
}

/// The memory that a run has to fit.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Room {
    /// The card, such as `RTX 4090`, `h100`, `a100-80g`.
    #[serde(default)]
    pub gpu: Option<String>,
    /// What PyTorch's allocator may reserve, in GiB, instead of a whole card.
    #[serde(default)]
    pub limit_gib: Option<f64>,
}

impl Room {
    fn put(&self, asked: &mut Asked) {
        asked.flag_if_given("gpu", self.gpu.as_ref());
        asked.flag_if_given("limit-gib", self.limit_gib);
    }
}

/// A run that is to be simulated.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Subject {
    /// A model (`qwen2.5-vl-7b`, `Qwen/Qwen2.5-VL-7B-Instruct`), or the path of a config.json, of a file that starts the run
    /// (of LLaMA-Factory, ms-swift, axolotl, TRL or transformers, a script, a notebook), of a case or of a recording.
    #[serde(default)]
    pub run: Option<String>,
    /// Instead of it, the command that starts the run, or the text of the file that does.
    #[serde(default)]
    pub launch: Option<String>,
    /// Settings by their keys: `batch`, `seq`, `images`, `image_sizes` ([[480, 640]]), `precision` (bf16, bf16-amp, …),
    /// `optim`, `freeze` (none, vision, lora, qlora, …), `rank`, `ckpt` (none, full, …), `accum`, `trainer`, and for several
    /// GPUs `strategy` and `world`. A wrong key or value is refused with those that are allowed.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
}

impl Subject {
    fn put(&self, asked: &mut Asked, takes_launches: bool) -> Result<(), String> {
        match (&self.run, &self.launch) {
            (Some(_), Some(_)) => return Err("give `run` or `launch`, not both".into()),
            (None, None) => return Err("give `run`: a model or a file; or `launch`: a command".into()),
            (None, Some(_)) if !takes_launches => return Err(NO_LAUNCH.into()),
            (None, Some(text)) => {
                asked.flag("launch", "-");
                asked.stdin.clone_from(text);
            }
            (Some(run), None) => match Run::of(run).map_err(|failure| failure.to_string())? {
                Run::Model(name) => {
                    let name = name.trim();
                    if name.starts_with('-') {
                        return Err(format!("{name} is no name of a model"));
                    }
                    asked.args.push(name.to_owned());
                }
                Run::Config(source) => asked.flag("config", source),
                Run::Case(text) => asked.flag("case", text),
                Run::Recording(source) => asked.flag("recording", source),
                Run::Launch(_) if !takes_launches => return Err(NO_LAUNCH.into()),
                Run::Launch(Source::Stdin) => return Err("`-` is no file; give the text as `launch`".into()),
                Run::Launch(source) => asked.flag("launch", source),
            },
        }
        settings(&self.settings, asked)
    }
}

const NO_LAUNCH: &str = "the largest size of a run that a file or a command starts is found by dry runs: call `dry_run` with \
                         `max`; or give its model and settings here";

/// Adds settings as flags.
fn settings(all: &BTreeMap<String, Value>, asked: &mut Asked) -> Result<(), String> {
    for (key, value) in all {
        let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if !is_key {
            return Err(format!("{key} is no key of a setting"));
        }
        asked.flag(
            &key.replace('_', "-"),
            words(value).ok_or_else(|| format!("{key}: {value} is no value of a setting"))?,
        );
    }
    Ok(())
}

/// A setting's value as its flag takes it: lists with commas, sizes as height x width.
fn words(value: &Value) -> Option<String> {
    let joined = |all: &[Value], by: &str| {
        let all: Option<Vec<String>> = all.iter().map(words).collect();
        all.map(|all| all.join(by))
    };
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(all) if all.iter().all(Value::is_array) => {
            let sizes: Option<Vec<String>> = all.iter().map(|size| joined(size.as_array()?, "x")).collect();
            sizes.map(|sizes| sizes.join(","))
        }
        Value::Array(all) => joined(all, ","),
        Value::Object(_) | Value::Null => None,
    }
}

/// Arguments of the tool `estimate`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct EstimateQuestion {
    /// What is simulated.
    #[serde(flatten)]
    pub subject: Subject,
    /// What it has to fit.
    #[serde(flatten)]
    pub room: Room,
    /// Estimate the rest of a launch though some of what changes memory in it is not simulated.
    #[serde(default)]
    pub ignore_not_simulated: bool,
    /// Answer with every part of the memory and every kernel too.
    #[serde(default)]
    pub detail: bool,
}

impl EstimateQuestion {
    /// The command's arguments.
    ///
    /// # Errors
    /// What is wrong, and what to give.
    pub fn asked(&self) -> Result<Asked, String> {
        let mut asked = Asked::of("estimate");
        self.room.put(&mut asked);
        self.subject.put(&mut asked, true)?;
        if self.ignore_not_simulated {
            asked.args.push("--ignore-not-simulated".into());
        }
        Ok(asked)
    }
}

/// Arguments of the tool `max`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct MaxQuestion {
    /// What is simulated; without a `batch`.
    #[serde(flatten)]
    pub subject: Subject,
    /// What it has to fit.
    #[serde(flatten)]
    pub room: Room,
}

impl MaxQuestion {
    /// The command's arguments.
    ///
    /// # Errors
    /// What is wrong, and what to give.
    pub fn asked(&self) -> Result<Asked, String> {
        let mut asked = Asked::of("max-batch");
        self.room.put(&mut asked);
        self.subject.put(&mut asked, false)?;
        Ok(asked)
    }
}

/// Arguments of the tool `diagnose`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct DiagnoseQuestion {
    /// The text of the error, the log, or of whatever else there is.
    #[serde(default)]
    pub text: Option<String>,
    /// Paths of logs, memory snapshots, profiles, tables of nvidia-smi.
    #[serde(default)]
    pub files: Vec<String>,
    /// The model of the run, for what each change would save.
    #[serde(default)]
    pub model: Option<String>,
    /// The file that started the run, for the same.
    #[serde(default)]
    pub launch: Option<String>,
    /// The card that the run was on.
    #[serde(flatten)]
    pub room: Room,
    /// Settings of the run, as for `estimate`.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
}

impl DiagnoseQuestion {
    /// The command's arguments.
    ///
    /// # Errors
    /// What is wrong, and what to give.
    pub fn asked(&self) -> Result<Asked, String> {
        if self.text.is_none() && self.files.is_empty() {
            return Err("give `text` or `files`".into());
        }
        let mut asked = Asked::of("diagnose");
        self.room.put(&mut asked);
        asked.flag_if_given("model", self.model.as_ref());
        asked.flag_if_given("launch", self.launch.as_ref());
        settings(&self.settings, &mut asked)?;
        asked.args.push("--".into());
        if let Some(text) = &self.text {
            asked.args.push("-".into());
            asked.stdin.clone_from(text);
        }
        asked.args.extend(self.files.iter().cloned());
        Ok(asked)
    }
}

/// Arguments of the tool `dry_run`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct DryRunQuestion {
    /// The command that trains, word by word, or one word: the file that starts it.
    pub command: Vec<String>,
    /// What it has to fit; the card is emulated.
    #[serde(flatten)]
    pub room: Room,
    /// The Python to run, or the folder of its environment.
    #[serde(default)]
    pub python: Option<String>,
    /// Packages of an environment that is made for it, such as `ms-swift==4.6`.
    #[serde(default)]
    pub with: Vec<String>,
    /// Samples in place of the command's data, such as `made-up:tokens=2048,images=1x1280x720`.
    #[serde(default)]
    pub data: Option<String>,
    /// Find the largest value with which the run still fits: `batch`, `length`, or a flag of the command.
    #[serde(default)]
    pub max: Option<String>,
    /// Other flags of `vramscope dry-run` by name: `world`, `rank`, `cards`, `steps`, `batches`, `run`, `packages`.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// Answer with every part of the memory and every kernel too.
    #[serde(default)]
    pub detail: bool,
}

/// Flags of `dry-run` that an agent may give: none that opens a window or writes a file.
const OPTIONS: [&str; 8] = [
    "world",
    "rank",
    "cards",
    "steps",
    "batches",
    "run",
    "packages",
    "keep-going",
];

impl DryRunQuestion {
    /// The command's arguments.
    ///
    /// # Errors
    /// What is wrong, and what to give.
    pub fn asked(&self, network: bool) -> Result<Asked, String> {
        if self.command.is_empty() {
            return Err("give `command`, word by word".into());
        }
        if !self.with.is_empty() && !network {
            return Err("`with` makes an environment of packages from the network, which this server may not ask: it has to be \
                        started with --allow-network"
                .into());
        }
        let mut asked = Asked::of("dry-run");
        self.room.put(&mut asked);
        if !network {
            asked.args.push("--offline".into());
        }
        asked.flag_if_given("python", self.python.as_ref());
        asked.flag_if_given("data", self.data.as_ref());
        asked.flag_if_given("max", self.max.as_ref());
        if !self.with.is_empty() {
            asked.flag("with", self.with.join(","));
        }
        for (key, value) in &self.options {
            let name = key.replace('_', "-");
            if !OPTIONS.contains(&name.as_str()) {
                return Err(format!("{key} is no option; give one of {}", OPTIONS.join(", ")));
            }
            match value {
                Value::Bool(true) => asked.args.push(format!("--{name}")),
                Value::Bool(false) => {}
                value => asked.flag(
                    &name,
                    words(value).ok_or_else(|| format!("{key}: {value} is no value"))?,
                ),
            }
        }
        asked.args.push("--".into());
        asked.args.extend(self.command.iter().cloned());
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn estimate(question: Value) -> Result<Asked, String> {
        serde_json::from_value::<EstimateQuestion>(question)
            .map_err(|error| error.to_string())?
            .asked()
    }

    #[test]
    fn settings_become_flags() {
        let asked = estimate(json!({"run": "gpt2", "gpu": "4090", "settings": {
            "batch": 4, "clip": true, "image_sizes": [[480, 640], [10, 20]], "lengths": [5, 6], "freeze": "lora"}}));
        let expected = [
            "estimate",
            "--format",
            "json",
            "--gpu=4090",
            "gpt2",
            "--batch=4",
            "--clip=true",
            "--freeze=lora",
            "--image-sizes=480x640,10x20",
            "--lengths=5,6",
        ];
        assert_eq!(asked.map(|asked| asked.args), Ok(expected.map(String::from).to_vec()));
    }

    #[test]
    fn a_value_is_no_flag_and_a_key_no_path() {
        let asked = estimate(json!({"run": "gpt2", "gpu": "--case"})).expect("it is asked");
        assert!(asked.args.contains(&"--gpu=--case".to_owned()));
        for wrong in [
            json!({"run": "--cases=/etc/passwd"}),
            json!({"run": "gpt2", "settings": {"batch =": 1}}),
            json!({"run": "gpt2", "settings": {"batch": {"a": 1}}}),
            json!({"run": "gpt2", "launch": "swift sft"}),
            json!({}),
        ] {
            assert!(estimate(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_dry_run_asks_the_network_only_if_it_may() {
        let question = |value| serde_json::from_value::<DryRunQuestion>(value).expect("a question");
        let plain = question(json!({"command": ["trl", "sft", "--max_steps", "1"], "options": {"keep_going": true}}));
        let expected = [
            "dry-run",
            "--format",
            "json",
            "--offline",
            "--keep-going",
            "--",
            "trl",
            "sft",
            "--max_steps",
            "1",
        ];
        assert_eq!(
            plain.asked(false).map(|asked| asked.args),
            Ok(expected.map(String::from).to_vec())
        );
        let with = question(json!({"command": ["trl"], "with": ["trl"]}));
        assert!(with.asked(false).is_err());
        assert!(
            with.asked(true)
                .expect("it is asked")
                .args
                .contains(&"--with=trl".to_owned())
        );
        let out = question(json!({"command": ["trl"], "options": {"out": "/etc/x"}}));
        assert!(out.asked(true).is_err());
    }
}
