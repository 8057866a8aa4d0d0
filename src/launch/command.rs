//! Reads a command line or a shell script that starts a run.

use serde_json::Value;

use crate::entry::{Entry, flatten};

/// A command, taken apart.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Command {
    /// Words before the options of the training script: `accelerate launch`, `swift sft`, `torchrun` and so on.
    pub program: Vec<String>,
    /// Options, and `key=value` words.
    pub entries: Vec<Entry>,
    /// Files that the command names as its settings.
    pub files: Vec<String>,
}

/// Programs that start a run.
const PROGRAMS: [&str; 9] = [
    "swift",
    "llamafactory-cli",
    "axolotl",
    "trl",
    "accelerate",
    "torchrun",
    "deepspeed",
    "python",
    "python3",
];

/// Returns true if a text looks like a command or a shell script.
pub(crate) fn looks_like(text: &str) -> bool {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    text.starts_with("#!")
        || lines.filter(|line| !line.starts_with('#')).any(|line| {
            let words = line.split_ascii_whitespace().skip_while(|word| is_assignment(word));
            words.take(1).any(|word| PROGRAMS.contains(&word))
        })
}

/// Returns true for `NAME=value` before a command.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    })
}

/// Reads the first command of a text that starts a run.
///
/// # Errors
/// Says what can't be read: quotes that do not end, or no program that is known.
pub(crate) fn read(text: &str) -> Result<Command, String> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let mut out = Command::default();
    for line in joined.lines() {
        let words = shlex::split(line).ok_or_else(|| format!("quotes do not end in `{}`", line.trim()))?;
        let (settings, words): (Vec<&String>, Vec<&String>) = {
            let count = words
                .iter()
                .take_while(|word| is_assignment(word) || *word == "export")
                .count();
            (words[..count].iter().collect(), words[count..].iter().collect())
        };
        for setting in settings.iter().filter(|word| is_assignment(word)) {
            if let Some((name, value)) = setting.split_once('=') {
                out.entries.push(entry(name, scalar(value), text));
            }
        }
        if words.first().is_some_and(|word| PROGRAMS.contains(&word.as_str())) {
            out.options(&words, text);
            return Ok(out);
        }
    }
    Err(format!("it starts none of: {}", PROGRAMS.join(", ")))
}

impl Command {
    fn options(&mut self, words: &[&String], text: &str) {
        let mut at = 0;
        while at < words.len() {
            let word = words[at].as_str();
            at += 1;
            if let Some(option) = word.strip_prefix("--") {
                let (key, given) = match option.split_once('=') {
                    Some((key, value)) => (key, Some(value.to_owned())),
                    None => (option, None),
                };
                let mut values: Vec<&str> = given.as_deref().into_iter().collect();
                while given.is_none() && at < words.len() && !words[at].starts_with("--") && !is_override(words[at]) {
                    values.push(words[at]);
                    at += 1;
                }
                self.option(key, &values, text);
            } else if let Some((key, value)) = word.split_once('=').filter(|_| is_override(word)) {
                flatten(key, scalar(value), line_of(text, key), &mut self.entries);
            } else if [".yaml", ".yml", ".json"].iter().any(|ending| word.ends_with(ending)) {
                self.files.push(word.to_owned());
            } else {
                self.program.push(word.to_owned());
            }
        }
    }

    fn option(&mut self, key: &str, values: &[&str], text: &str) {
        let key = key.replace('-', "_");
        // `accelerate launch --config_file X train.py --flag`: the script is no value of the option before it.
        let script = values.iter().skip(1).find(|word| word.ends_with(".py"));
        let value = match (script, values) {
            (Some(script), _) => {
                self.program.push((*script).to_owned());
                scalar(values[0])
            }
            (None, []) => Value::Bool(true),
            (None, [one]) => scalar(one),
            (None, many) => Value::Array(many.iter().map(|word| scalar(word)).collect()),
        };
        if key == "config"
            && let Value::String(path) = &value
        {
            self.files.push(path.clone());
        }
        flatten(&key, value, line_of(text, &key), &mut self.entries);
    }
}

/// Returns true for `key=value` as Hydra and LLaMA-Factory take it.
fn is_override(word: &str) -> bool {
    word.split_once('=').is_some_and(|(key, _)| {
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
    })
}

fn entry(key: &str, value: Value, text: &str) -> Entry {
    Entry {
        key: key.to_owned(),
        value,
        line: line_of(text, key),
    }
}

/// Line of a text in which a key stands.
fn line_of(text: &str, key: &str) -> usize {
    let dashed = key.replace('_', "-");
    let holds = |line: &str| line.contains(key) || line.contains(&dashed);
    text.lines().position(holds).map_or(1, |place| place + 1)
}

/// Reads a word as JSON where it is, else as text. Python's `True`, `False` and `None` count too.
fn scalar(word: &str) -> Value {
    match word {
        "True" | "true" => Value::Bool(true),
        "False" | "false" => Value::Bool(false),
        "None" | "null" => Value::Null,
        _ => serde_json::from_str(word).unwrap_or_else(|_| Value::String(word.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pairs(command: &Command) -> Vec<(&str, Value)> {
        command
            .entries
            .iter()
            .map(|e| (e.key.as_str(), e.value.clone()))
            .collect()
    }

    #[test]
    fn a_script_with_continued_lines_is_one_command() {
        let text = "#!/bin/bash\n# train\nexport MAX_PIXELS=1003520\nCUDA_VISIBLE_DEVICES=0,1 \\\nNPROC_PER_NODE=2 \\\n\
                    swift sft \\\n    --model Qwen/Qwen2.5-VL-7B-Instruct \\\n    --target-modules q_proj v_proj \\\n    --bf16\n";
        assert!(looks_like(text));
        let command = read(text).unwrap();
        assert_eq!(command.program, ["swift", "sft"]);
        assert_eq!(
            pairs(&command),
            [
                ("MAX_PIXELS", json!(1_003_520)),
                ("CUDA_VISIBLE_DEVICES", json!("0,1")),
                ("NPROC_PER_NODE", json!(2)),
                ("model", json!("Qwen/Qwen2.5-VL-7B-Instruct")),
                ("target_modules", json!(["q_proj", "v_proj"])),
                ("bf16", json!(true)),
            ]
        );
    }

    #[test]
    fn overrides_files_and_the_script_are_told_apart() {
        let command = read("llamafactory-cli train a.yaml cutoff_len=4096 lora_rank=64").unwrap();
        assert_eq!(
            (command.files.as_slice(), command.program.len()),
            (&["a.yaml".to_owned()][..], 2)
        );
        assert_eq!(pairs(&command), [("cutoff_len", json!(4096)), ("lora_rank", json!(64))]);
        let command = read("accelerate launch --config_file fsdp.yaml train.py --bf16 True").unwrap();
        assert_eq!(command.program, ["accelerate", "launch", "train.py"]);
        assert_eq!(
            pairs(&command),
            [("config_file", json!("fsdp.yaml")), ("bf16", json!(true))]
        );
    }

    #[test]
    fn what_is_no_command_is_refused() {
        assert!(!looks_like("batch: 4\nseq: 2\n"));
        assert!(read("echo hello").is_err());
        assert!(read("swift sft --model 'x").is_err());
    }
}
