//! Reads measured cases.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::{Map, Value};
use vramscope_engine::Case;

/// Result of a measured case.
#[derive(Debug, Clone, PartialEq)]
pub enum Measured {
    /// The case trained; the row's keys and values.
    Trained(Map<String, Value>),
    /// The GPU had too little memory.
    OutOfMemory,
    /// transformers or PyTorch failed with this message.
    Failed(String),
}

/// One measured case.
#[derive(Debug, Clone)]
pub struct Row {
    /// Number of cases before it in its file.
    pub index: usize,
    /// Label of its use in the course (`course.jsonl`), such as `L.batch`.
    pub label: Option<String>,
    /// The case as the engine reads it.
    pub case: Case,
    /// Configuration of its model, if the catalogue does not have it (`configurations.jsonl.gz`).
    pub config: Option<String>,
    /// The case's keys as given, except its model and keys that only affect timing.
    pub options: String,
    /// The result of the measurement.
    pub measured: Measured,
}

impl Row {
    /// Reads the rows of a file in `data/truth`, in order, skipping lines without a case.
    ///
    /// # Panics
    /// If the file is missing or malformed, since it is part of the repository.
    pub fn read_all(file: &str) -> Vec<Self> {
        let text = text(file);
        let cases = text
            .lines()
            .filter_map(|line| Some((line, Case::from_json(line).expect(line)?)));
        cases
            .enumerate()
            .map(|(index, (line, case))| Self::new(index, case, line))
            .collect()
    }

    fn new(index: usize, case: Case, line: &str) -> Self {
        let fields: Map<String, Value> = serde_json::from_str(line).expect(line);
        let text = |key: &str| fields.get(key).and_then(Value::as_str).map(String::from);
        let label = text("row");
        let options = fields.get("case").map(options).unwrap_or_default();
        let config = fields.get("config").map(Value::to_string);
        let measured = match (text("error"), fields.contains_key("oom")) {
            (Some(error), _) => Measured::Failed(error),
            (None, true) => Measured::OutOfMemory,
            (None, false) => Measured::Trained(fields),
        };
        Self {
            index,
            label,
            case,
            config,
            options,
            measured,
        }
    }
}

/// Reads the text of a file in `data/truth`, compressed or not.
///
/// # Panics
/// If the file is missing or malformed, since it is part of the repository.
pub fn text(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/truth").join(file);
    let opened = File::open(&path).map(BufReader::new);
    let mut text = String::new();
    let read = opened.and_then(|mut opened| match path.extension() {
        Some(gz) if gz == "gz" => GzDecoder::new(opened).read_to_string(&mut text),
        _ => opened.read_to_string(&mut text),
    });
    read.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text
}

/// Values of fields that are omitted from labels.
const USUAL: [(&str, &str); 5] = [
    ("ckpt", "none"),
    ("attn", "sdpa"),
    ("accum", "1"),
    ("freeze", "none"),
    ("lora_dropout", "0.0"),
];

/// Formats a case as `batch=4 seq=1024 optim=sgd`, in the order of the file.
fn options(case: &Value) -> String {
    let mut words = Vec::new();
    for (key, value) in case.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), String::from);
        let usual = USUAL.contains(&(key.as_str(), value.as_str()));
        if !usual && !["model", "timed"].contains(&key.as_str()) {
            words.push(format!("{key}={value}"));
        }
    }
    words.join(" ")
}
