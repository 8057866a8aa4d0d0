//! `vramscope watch --share`: a run that was watched, as a file that others may have: sizes, setup, bytes and times, and
//! nothing that names a person, a machine, a path or data.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use vramscope_engine::setup::Setting;

use super::Comparison;
use crate::failure::Failure;
use crate::output;

/// Format that a shared run names.
const FORMAT: &str = "vramscope-run";
/// Version of the format.
const VERSION: u32 = 1;

/// A measured run to share: what was run, and what each step took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedRun {
    /// `vramscope-run`.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// Version of the program that wrote it.
    pub program: String,
    /// Name of the card according to its driver.
    pub gpu: Option<String>,
    /// GPUs of the run.
    pub gpus: u64,
    /// The model's configuration: its numbers, switches and short words.
    pub config: Value,
    /// The setup, by the names of a case.
    pub case: Map<String, Value>,
    /// What of the setup could not be told.
    pub notes: Vec<String>,
    /// The steps.
    pub steps: Vec<SharedStep>,
}

/// What one step took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedStep {
    /// Number of the step, from 1.
    pub step: u64,
    /// Milliseconds on the host's clock.
    pub ms: f64,
    /// Highest allocated bytes.
    pub peak: u64,
    /// Highest reserved bytes of the run so far.
    pub reserved: u64,
    /// Allocated bytes at its end.
    pub end: u64,
    /// Samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// Positions of a sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Images of a sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<u64>,
    /// Patches of each image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grid: Option<[u64; 2]>,
}

/// Keys of a configuration that say where the model came from or what its answers are called.
const NAMES: [&str; 7] = [
    "_name_or_path",
    "name_or_path",
    "_commit_hash",
    "auto_map",
    "id2label",
    "label2id",
    "task_specific_params",
];

/// Longest word of a configuration that is shared.
const LONGEST: usize = 48;

impl SharedRun {
    /// What of a watched run is shared.
    pub fn of(comparison: &Comparison) -> Self {
        let header = &comparison.header;
        let steps = comparison.compared.iter().map(|compared| {
            let step = &compared.step;
            SharedStep {
                step: step.step,
                ms: step.ms,
                peak: step.peak,
                reserved: step.reserved,
                end: step.end,
                batch: step.shape.batch,
                seq: step.shape.seq,
                images: step.shape.images,
                grid: step.shape.grid,
            }
        });
        let is_setting = |key: &String| Setting::ALL.iter().any(|setting| setting.key() == *key);
        let case = header.case.iter().filter(|(key, _)| is_setting(key));
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            gpu: header.gpu.clone(),
            gpus: header.gpus,
            config: header.config.as_ref().and_then(without_names).unwrap_or(Value::Null),
            case: case.map(|(key, value)| (key.clone(), value.clone())).collect(),
            notes: header.notes.clone(),
            steps: steps.collect(),
        }
    }

    /// Shows all of it, writes it to a file, and reads that back.
    ///
    /// # Errors
    /// If the file exists or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let at = path.display();
        if path.exists() {
            return Err(Failure::Input(format!("{at} exists; --share takes a new file")));
        }
        output::print_json(self)?;
        let text = serde_json::to_string_pretty(self).map_err(|error| Failure::Broken(error.to_string()))?;
        std::fs::write(path, text + "\n").map_err(|error| Failure::Input(format!("{at}: {error}")))?;
        anstream::eprintln!(
            "note: {at} holds what stands above, and nothing was sent. To add it to the ledger, put it into \
             tests/data/shared_runs and open a pull request (docs/ledger.md)"
        );
        Ok(())
    }
}

/// A part of a configuration without names of people's things: no path, no address, no text. `None` for what is left out.
fn without_names(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => {
            let is_word = |c: char| c.is_ascii_alphanumeric() || "_-. +,()".contains(c);
            (text.len() <= LONGEST && text.chars().all(is_word)).then(|| value.clone())
        }
        Value::Array(all) => Some(all.iter().filter_map(without_names).collect()),
        Value::Object(all) => {
            let kept = all.iter().filter(|(key, _)| !NAMES.contains(&key.as_str()));
            let kept = kept.filter_map(|(key, value)| Some((key.clone(), without_names(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_names_something_is_left_out() {
        let config = json!({
            "_name_or_path": "qwen", "model_type": "qwen2", "hidden_size": 64, "tie_word_embeddings": true,
            "architectures": ["Qwen2ForCausalLM"], "path": "/home/me/model", "note": "mail me at a@b.c",
            "text_config": {"name_or_path": "x", "dtype": "torch.bfloat16"}, "layer_types": ["full_attention"],
        });
        let kept = without_names(&config).expect("an object");
        let wanted = json!({
            "model_type": "qwen2", "hidden_size": 64, "tie_word_embeddings": true, "architectures": ["Qwen2ForCausalLM"],
            "text_config": {"dtype": "torch.bfloat16"}, "layer_types": ["full_attention"],
        });
        assert_eq!(kept, wanted);
    }
}
