//! Files that start a run: shell, Python, notebooks, YAML, JSON and TOML.

use std::path::Path;

use serde_json::Value;
use vramscope_launch::{ModelFacts, Source, named, read};

/// Readers, and the names of their files, whose endings say what they are.
const FILES: [(&str, &str); 6] = [
    ("launch-shell", "run.sh"),
    ("launch-python", "train.py"),
    ("launch-notebook", "tune.ipynb"),
    ("launch-yaml", "sft.yaml"),
    ("launch-json", "zero.json"),
    ("launch-toml", "conf.toml"),
];

/// Name of the files of a reader; `None` for other readers.
pub fn file_of(reader: &str) -> Option<&'static str> {
    FILES.iter().find(|(own, _)| *own == reader).map(|(_, name)| *name)
}

/// Reads an input beside a file that it may name; true if it is a launch.
pub fn feed(name: &str, input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let beside = r#"{"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}, "model": "a/b"}"#;
    let sources = [
        Source { name, text: &text },
        Source {
            name: "conf.json",
            text: beside,
        },
    ];
    assert!(named(&sources[..1]).iter().all(|path| !path.is_empty()));
    let [alone, _] = [read(&sources[..1]), read(&sources)];
    match alone {
        Ok(launch) => {
            let resolved = launch.resolve(ModelFacts::UNKNOWN);
            let shorter = launch.at_length(64).resolve(ModelFacts::UNKNOWN);
            assert!(
                resolved
                    .not_simulated
                    .iter()
                    .all(|remark| !remark.to_string().is_empty())
            );
            assert!(shorter.case.contains_key("batch"));
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

/// Files of `tests/data/launch` with the ending of a name.
pub fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/data/launch"));
    let ending = name.rsplit('.').next().unwrap_or_default();
    let has_ending = |path: &Path| path.extension().is_some_and(|own| own == ending);
    let mut out: Vec<Vec<u8>> = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if has_ending(&entry.path()) {
            out.extend(std::fs::read(entry.path()));
        }
    }
    let ways = std::fs::read_to_string(folder.join("ways.jsonl")).unwrap_or_default();
    for way in ways.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        for (name, text) in way["files"].as_object().into_iter().flatten() {
            if has_ending(Path::new(name)) {
                out.extend(text.as_str().map(|text| text.as_bytes().to_vec()));
            }
        }
    }
    if out.is_empty() {
        out.push(b"[model]\nname = \"a/b\"\nbatch_size = 4\n".to_vec());
    }
    out
}
