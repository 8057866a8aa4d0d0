//! Tells what a person has typed, pasted or dropped, so that one field takes everything: the id of a model, its
//! `config.json`, what starts a run, what a crash left behind, a recorded step, a dataset, a link to the page.
//!
//! Nothing is read here: [`Kind::of`] only decides who reads. A guess that is wrong costs more than a question, so what
//! has no sign of its own is [`Kind::Unknown`], and the person is asked.

mod crash;
mod launch;

use vramscope_hub::{Repository, known_ids};

pub use launch::is_launch_name;

/// Longest text that can be the name of a model.
const LONGEST_NAME: usize = 200;

/// Bytes from which a JSON file is a dataset: no configuration is as large.
const LARGE_JSON: u64 = 4 << 20;

/// Something that was given: a file, or a text without a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Given<'a> {
    /// Name of the file; empty for a text.
    pub name: &'a str,
    /// Bytes of the file; 0 for a text.
    pub bytes: u64,
    /// The text, or the beginning of the file's; empty if it is none.
    pub text: &'a str,
}

/// What was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The id of a model, or its address: the text without blanks around it.
    Model(String),
    /// A `config.json`.
    Config,
    /// A command, script, file of settings, program or notebook that starts a run.
    Launch,
    /// What a crash left behind: a message, a log, a snapshot of memory.
    Crash,
    /// A recorded step.
    Recording,
    /// Samples to train on.
    Dataset,
    /// A link to the page, by its fragment.
    Link(String),
    /// None that is known.
    Unknown,
}

impl Kind {
    /// Tells what a text is.
    pub fn of_text(text: &str) -> Self {
        Self::of(Given {
            text,
            ..Given::default()
        })
    }

    /// Tells what something is: by its name where that decides, else by its text.
    pub fn of(given: Given<'_>) -> Self {
        Self::of_name(given).unwrap_or_else(|| Self::by_text(given))
    }

    /// Tells what a file is by its name; `None` if its text decides.
    pub fn of_name(Given { name, bytes, .. }: Given<'_>) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let packed = name.strip_suffix(".gz").unwrap_or(&name);
        let ends = |endings: &[&str]| endings.iter().any(|ending| packed.ends_with(ending));
        let is_large = packed.ends_with(".json") && bytes >= LARGE_JSON;
        if ends(&[".vram", ".sizes"]) {
            Some(Self::Recording)
        } else if ends(&[".jsonl", ".ndjson", ".csv", ".tsv", ".parquet"]) || is_large {
            Some(Self::Dataset)
        } else if ends(&[".log", ".out", ".err", ".pickle", ".pkl"]) {
            Some(Self::Crash)
        } else {
            is_launch_name(&name).then_some(Self::Launch)
        }
    }

    fn by_text(Given { name, text, .. }: Given<'_>) -> Self {
        let text = text.trim();
        if let Some(fragment) = link(text) {
            return Self::Link(fragment);
        }
        if text.starts_with('{') {
            return json(text);
        }
        let is_launch = launch::is_launch(text);
        if crash::is_crash(text, is_launch) {
            Self::Crash
        } else if is_launch {
            Self::Launch
        } else if name.is_empty() && is_model(text) {
            Self::Model(text.to_owned())
        } else {
            Self::Unknown
        }
    }
}

/// Fragment of an address of the page, such as `#/?model=gpt2`.
fn link(text: &str) -> Option<String> {
    let is_address = ["http://", "https://", "file://"]
        .iter()
        .any(|scheme| text.starts_with(scheme));
    let (_, fragment) = text.split_once("#/").filter(|_| is_address && is_word(text))?;
    Some(format!("#/{fragment}"))
}

/// Tells JSON apart by its keys: the text may be the beginning of a file, which no parser takes.
fn json(text: &str) -> Kind {
    let has = |key: &str| text.contains(&format!("\"{key}\""));
    let is_recording = has("vramscope-recording") || has("vramscope-sizes");
    let is_config = has("model_type") || has("architectures");
    if is_recording {
        Kind::Recording
    } else if has("cell_type") || has("nbformat") || !is_config && launch::is_launch(text) {
        Kind::Launch
    } else if is_config {
        Kind::Config
    } else if crash::is_crash(text, false) {
        Kind::Crash
    } else {
        Kind::Unknown
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

/// Returns true for what can only be a model: an id or address of a hub, a known name, or one word with a digit or a hyphen in it, as
/// names of models have and words of a sentence have not.
fn is_model(text: &str) -> bool {
    let is_address = text.contains("://");
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._/:@".contains(c);
    text.len() <= LONGEST_NAME
        && is_word(text)
        && (Repository::parse(text).is_some()
            || known_ids().any(|id| id.eq_ignore_ascii_case(text))
            || !is_address
                && text.chars().all(is_name)
                && text.starts_with(|c: char| c.is_ascii_alphanumeric())
                && text.contains(|c: char| c.is_ascii_alphabetic())
                && text.contains(|c: char| c.is_ascii_digit() || c == '-'))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests run natively only")]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::path::{Path, PathBuf};

    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// Kind of a file as the page sees it: its name, and its text if it is one.
    fn of_file(path: &Path) -> Kind {
        let bytes = fs::read(path).expect("the file is there");
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        Kind::of(Given {
            name,
            bytes: bytes.len() as u64,
            text: &String::from_utf8_lossy(&bytes),
        })
    }

    /// Files below a folder, in order.
    fn files(folder: &str) -> Vec<PathBuf> {
        let mut all = Vec::new();
        let mut open = vec![root().join(folder)];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).expect("the folder is there") {
                let path = entry.expect("an entry").path();
                match path.is_dir() {
                    true => open.push(path),
                    false => all.push(path),
                }
            }
        }
        all.sort();
        all
    }

    fn has_ending(path: &Path, endings: &[&str]) -> bool {
        let name = path.to_string_lossy();
        endings.iter().any(|ending| name.ends_with(ending))
    }

    #[test]
    fn launch_files_are_told_by_their_name_and_by_their_text_alone() {
        let all = files("tests/data/launch");
        let all: Vec<_> = all
            .iter()
            .filter(|path| has_ending(path, &[".yaml", ".sh", ".json"]) && !path.ends_with("parsed.json"))
            .collect();
        assert!(all.len() > 20, "{}", all.len());
        for path in all {
            assert_eq!(of_file(path), Kind::Launch, "{}", path.display());
            let text = fs::read_to_string(path).expect("a text");
            assert_eq!(Kind::of_text(&text), Kind::Launch, "pasted: {}", path.display());
        }
    }

    #[test]
    fn programs_and_notebooks_start_a_run() {
        let program = "from trl import SFTConfig, SFTTrainer\n\nargs = SFTConfig(per_device_train_batch_size=4)\n\
                       trainer = SFTTrainer(model=\"x\", args=args)\ntrainer.train()\n";
        let notebook = r#"{"cells": [{"cell_type": "code", "source": ["trainer.train()"]}], "nbformat": 4}"#;
        let of = |name, text| Kind::of(Given { name, bytes: 9, text });
        assert_eq!(of("train.py", program), Kind::Launch);
        assert_eq!(Kind::of_text(program), Kind::Launch);
        assert_eq!(of("sft.ipynb", notebook), Kind::Launch);
        assert_eq!(Kind::of_text(notebook), Kind::Launch);
        // What a program says of memory is no crash.
        let careful = format!("{program}\nexcept torch.OutOfMemoryError:\n    print('CUDA out of memory')\n");
        assert_eq!(Kind::of_text(&careful), Kind::Launch);
    }

    #[test]
    fn every_configuration_of_the_catalogue_is_one() {
        let all = files("src/engine/model/families");
        let all: Vec<_> = all.iter().filter(|path| has_ending(path, &[".json"])).collect();
        assert!(all.len() > 50, "{}", all.len());
        for path in all {
            assert_eq!(of_file(path), Kind::Config, "{}", path.display());
        }
    }

    #[test]
    fn configurations_of_all_families_are_told_from_launch_files() {
        let packed = fs::File::open(root().join("tests/data/coverage/configs.jsonl.gz")).expect("it is there");
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed)
            .read_to_string(&mut text)
            .expect("gzip of a text");
        let mut count = 0;
        // Python writes infinities, which JSON has not: the lines are cut, not parsed.
        for line in text.lines().filter(|line| line.contains("\"model_type\"")) {
            let (_, config) = line.split_once("\"config\": ").expect("a configuration");
            count += 1;
            assert_eq!(Kind::of_text(config), Kind::Config, "{config}");
        }
        assert!(count > 50, "{count}");
    }

    #[test]
    fn recordings_and_snapshots_are_told_by_their_names() {
        let recordings = files("tests/data/recordings");
        let recordings = recordings
            .iter()
            .filter(|path| has_ending(path, &[".vram.gz", ".sizes.gz"]));
        let mut count = 0;
        for path in recordings {
            count += 1;
            assert_eq!(of_file(path), Kind::Recording, "{}", path.display());
            let packed = fs::File::open(path).expect("it is there");
            let mut text = String::new();
            let head = flate2::read::GzDecoder::new(packed).take(4096);
            head.take(4096).read_to_string(&mut text).expect("a text");
            assert_eq!(Kind::of_text(&text), Kind::Recording, "unpacked: {}", path.display());
        }
        assert!(count > 5, "{count}");
        let snapshot = root().join("tests/data/snapshots/gpt2-bf16.pickle.gz");
        assert_eq!(of_file(&snapshot), Kind::Crash);
    }

    #[test]
    fn datasets_are_told_by_their_names_and_a_large_json_by_its_size() {
        let of = |name, bytes| Kind::of(Given { name, bytes, text: "" });
        for name in ["train.jsonl", "Data.CSV", "data.parquet"] {
            assert_eq!(of(name, 10), Kind::Dataset, "{name}");
        }
        assert_eq!(of("train.json", 1 << 30), Kind::Dataset);
        assert_eq!(of("config.json", 3000), Kind::Unknown);
    }

    /// Evidence of every kind that the diagnosis knows, in the words of its own examples.
    #[test]
    fn what_a_crash_leaves_behind_goes_to_the_diagnosis() {
        let mut missed = Vec::new();
        let mut count = 0;
        for path in files("src/diagnose/kinds") {
            let text = fs::read_to_string(&path).expect("a text");
            let kind: toml::Table = toml::from_str(&text).expect("TOML");
            let examples = kind.get("example").and_then(|all| all.as_array()).cloned();
            for example in examples.unwrap_or_default() {
                let Some(text) = example.get("text").and_then(|text| text.as_str()) else {
                    continue;
                };
                count += 1;
                match Kind::of_text(text) {
                    Kind::Crash => {}
                    other => missed.push(format!("{}: {other:?}: {text}", path.display())),
                }
            }
        }
        assert!(count > 100, "{count}");
        // Examples may be a sentence, counters or a command alone: people are asked what those are.
        assert!(missed.len() * 10 < count, "{} of {count}: {missed:#?}", missed.len());
        for name in ["growth", "host", "step"] {
            let path = root().join(format!("src/app/pages/diagnose/examples/{name}.txt"));
            assert_eq!(of_file(&path), Kind::Crash, "{name}");
        }
    }

    #[test]
    fn ids_and_addresses_of_models_are_models() {
        for id in known_ids() {
            assert_eq!(Kind::of_text(id), Kind::Model(id.to_owned()));
        }
        for given in [
            "  Qwen/Qwen2.5-VL-7B-Instruct\n",
            "https://huggingface.co/Qwen/Qwen2.5-VL-7B-Instruct",
            "https://huggingface.co/meta-llama/Llama-3.1-8B/blob/main/config.json",
            "https://modelscope.cn/models/Qwen/Qwen3-8B",
            "hf.co/unsloth/Qwen3-4B-bnb-4bit",
            "unsloth/Qwen3-4B@main",
            "qwen2.5-vl-7b",
            "internvl3-8b",
        ] {
            assert_eq!(Kind::of_text(given), Kind::Model(given.trim().to_owned()), "{given}");
        }
    }

    #[test]
    fn links_to_the_page_are_opened() {
        let link = "https://example.org/vram/#/?model=gpt2&batch=4";
        assert_eq!(Kind::of_text(link), Kind::Link("#/?model=gpt2&batch=4".to_owned()));
    }

    #[test]
    fn what_has_no_sign_is_asked_about() {
        for text in [
            "",
            "hello",
            "out of memory",
            "will it fit?",
            "https://example.org/paper.pdf",
            "{\"a\": 1}",
            "The quick brown fox jumps over the lazy dog, twice.",
            "1234567",
        ] {
            assert_eq!(Kind::of_text(text), Kind::Unknown, "{text}");
        }
    }
}
