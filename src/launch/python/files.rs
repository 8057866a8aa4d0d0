//! Files of settings that a program reads or writes: JSON and YAML.

use serde_json::Value as Json;

use super::heap::{Arguments, UNKNOWN, Value};
use super::machine::Machine;
use super::source::Place;

/// Functions that read a file of settings, from an open file or by its path.
const LOADERS: [&str; 7] = [
    "json.load",
    "json.loads",
    "yaml.safe_load",
    "yaml.load",
    "yaml.full_load",
    "OmegaConf.load",
    "omegaconf.OmegaConf.load",
];

/// Functions that write one.
const DUMPERS: [&str; 3] = ["dump", "safe_dump", "save"];

/// Endings of such files.
const ENDINGS: [&str; 3] = [".json", ".yaml", ".yml"];

impl Machine<'_> {
    /// What a call reads from a file of settings; `None` for other calls. A file that is not here is not known.
    pub(super) fn loaded(&mut self, callee: &str, arguments: &Arguments, place: Place) -> Option<Value> {
        if !LOADERS.contains(&callee) {
            return None;
        }
        let from = arguments
            .places
            .first()
            .or(arguments.names.first().map(|(_, value)| value))?;
        let path = self.path_of_file(from)?;
        let names = self.options.files.iter().map(|(name, _)| name.as_str());
        let Some(at) = crate::shell::fitting(names, &path) else {
            let object = self.called(Value::Symbol(callee.into()), arguments.clone(), place);
            return Some(if matches!(object, Value::Object(_)) {
                UNKNOWN
            } else {
                object
            });
        };
        let json = self.options.files[at].1.clone();
        // The program speaks for its keys.
        if let Json::Object(map) = &json {
            self.taken.extend(map.keys().map(|key| key.replace('-', "_")));
        }
        Some(self.of_json(&json, 0))
    }

    /// Path of a file of settings that a value stands for: a path, an open file, or what was read of one.
    fn path_of_file(&self, value: &Value) -> Option<String> {
        let is_file = |path: &str| ENDINGS.iter().any(|ending| path.ends_with(ending));
        match value {
            Value::Str(path) => Some(path.to_string()).filter(|path| is_file(path)),
            Value::Object(id) => {
                let object = &self.heap.objects[*id];
                match &object.callee {
                    Value::Symbol(path) if &**path == "open" => self.path_of_file(object.arguments.get("file", 0)?),
                    Value::Member(id) => {
                        let (owner, name) = &self.heap.members[*id];
                        ["open", "read", "read_text"]
                            .contains(&name.as_str())
                            .then(|| self.path_of_file(owner))
                            .flatten()
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Files of settings that the program writes, with their texts, as far as all of a file is known.
    pub(super) fn written(&self) -> Vec<(String, String)> {
        let mut out: Vec<(String, String)> = Vec::new();
        for (call, _) in self.calls(&DUMPERS) {
            let object = &self.heap.objects[call];
            let Some(path) = self.path(&object.callee) else {
                continue;
            };
            if !["json.", "yaml.", "OmegaConf.", "omegaconf."]
                .iter()
                .any(|begin| path.starts_with(begin))
            {
                continue;
            }
            let [Some(content), Some(file)] = [0, 1].map(|at| object.arguments.places.get(at)) else {
                continue;
            };
            if let (Some(json), Some(path)) = (self.whole(content, 0), self.path_of_file(file)) {
                out.retain(|(own, _)| *own != path);
                out.push((path, json.to_string()));
            }
        }
        out
    }

    /// A value as JSON, if all of it is known.
    pub(super) fn whole(&self, value: &Value, depth: usize) -> Option<Json> {
        if depth > 6 {
            return None;
        }
        Some(match value {
            Value::List(id) | Value::Tuple(id) => {
                let of = &self.heap.sequences[*id];
                let items = of.items.iter().map(|item| self.whole(item, depth + 1));
                Json::Array(items.collect::<Option<_>>().filter(|_| !of.is_open)?)
            }
            Value::Dict(id) => {
                let of = &self.heap.dicts[*id];
                let items = of.items.iter().map(|(key, value)| match key {
                    Value::Str(key) => Some((key.to_string(), self.whole(value, depth + 1)?)),
                    _ => None,
                });
                Json::Object(items.collect::<Option<_>>().filter(|_| !of.is_open)?)
            }
            other => return other.scalar(),
        })
    }
}

/// Paths of files of settings that a program's text names where it reads them: data is read elsewhere.
pub(super) fn mentioned(text: &str) -> Vec<String> {
    let reads = |line: &&str| {
        let line = line.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
        has(&["config", "cfg", "open(", "args"]) && !has(&["data", "\"w\"", "'w'", "dump"])
    };
    let texts = text
        .lines()
        .filter(reads)
        .flat_map(|line| line.split(['"', '\'']).skip(1).step_by(2));
    let is_path = |text: &&str| {
        ENDINGS.iter().any(|ending| text.ends_with(ending)) && !text.contains(['{', ' ', '*']) && text.len() < 200
    };
    texts.filter(is_path).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tests::launch_named;

    #[test]
    fn settings_that_a_script_reads_are_its_own() {
        let script = "import json\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\nwith open('conf.json') as f:\n    cfg = json.load(f)\n\
            m = AutoModelForCausalLM.from_pretrained(cfg['model'])\n\
            Trainer(m, TrainingArguments(per_device_train_batch_size=cfg['bs'])).train()\n";
        let conf = r#"{"model": "a/b", "bs": 3, "lora": 8}"#;
        let launch = launch_named(&[("train.py", script), ("conf.json", conf)]);
        assert_eq!((launch.model(), launch.draft.batch), (Some("a/b"), Some(3)));
        let is_own = |line: &&crate::Line| line.source == 1;
        assert!(
            launch.lines.iter().filter(is_own).all(|line| line.why().is_none()),
            "{:?}",
            launch.lines
        );
        // What is mentioned and not loaded, as a model's own file, says nothing.
        let other = script.replace("json.load(f)", "{'model': 'a/b', 'bs': 3}");
        let launch = launch_named(&[("train.py", &other), ("conf.json", conf)]);
        assert!(!launch.lines.iter().any(|line| line.source == 1), "{:?}", launch.lines);
        let sources = [crate::Source {
            name: "train.py",
            text: script,
        }];
        assert_eq!(crate::named(&sources), ["conf.json"]);
    }

    #[test]
    fn settings_that_a_notebook_writes_are_those_of_its_command() {
        let code = "import json\nargs = dict(stage='sft', model_name_or_path='a/b', finetuning_type='lora')\n\
            json.dump(args, open('x.json', 'w'), indent=2)\n!llamafactory-cli train x.json\n";
        let notebook = json!({"cells": [{"cell_type": "code", "source": code}]}).to_string();
        let launch = launch_named(&[("n.ipynb", &notebook)]);
        assert_eq!((launch.tool, launch.model()), (crate::Tool::LlamaFactory, Some("a/b")));
    }

    #[test]
    fn a_command_that_python_starts_has_its_environment() {
        let script = "import os, subprocess\nenv = os.environ.copy()\nenv['NPROC_PER_NODE'] = str(4)\n\
            subprocess.run(['swift', 'sft', '--model', 'a/b', '--max_length', '512'], env=env)\n";
        assert_eq!(launch_named(&[("run.py", script)]).draft.gpus, Some(4));
        let script = "from swift.llm import sft_main, TrainArguments\n\
            sft_main(TrainArguments(model='a/b', train_type='lora', lora_rank=16, max_length=512))\n";
        let launch = launch_named(&[("run.py", script)]);
        assert_eq!((launch.tool, launch.draft.rank), (crate::Tool::MsSwift, Some(16)));
    }
}
