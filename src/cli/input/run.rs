//! A run as a person gives it: a model, a case, a launch file or a command, a recording. Which of them it is follows from
//! what it holds.

use std::path::Path;

use serde_json::Value;
use vramscope_engine::Case;
use vramscope_launch::{Source as LaunchSource, read};

use super::source::Source;
use crate::failure::Failure;

/// Ends of names that only files have: where there is none of that name, no model is looked for in its place.
const ENDS_OF_FILES: [&str; 8] = [".yaml", ".yml", ".json", ".sh", ".py", ".ipynb", ".gz", ".toml"];

/// The first bytes of a file that gzip has packed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What a run is given as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Run {
    /// A model's name, id, address or folder.
    Model(String),
    /// A config.json.
    Config(Source),
    /// Model and setup as one JSON object.
    Case(String),
    /// What starts the run: a file of a tool, a script, a command.
    Launch(Source),
    /// A training script's own steps, recorded without a GPU.
    Recording(Source),
}

impl Run {
    /// Takes a word of the command line: the JSON of a case, the name of a file, or else of a model; `-` is the text of a
    /// launch on standard input.
    ///
    /// # Errors
    /// If the word is the name of a file that is not there, or cannot be read.
    pub fn of(word: &str) -> Result<Self, Failure> {
        if word == "-" {
            return Ok(Self::Launch(Source::Stdin));
        }
        if word.trim_start().starts_with('{') {
            return Ok(Self::Case(word.to_owned()));
        }
        let path = Path::new(word);
        if !path.is_file() {
            return match ENDS_OF_FILES.iter().any(|end| word.ends_with(end)) {
                true => Err(Failure::Input(format!("{word}: there is no such file"))),
                false => Ok(Self::Model(word.to_owned())),
            };
        }
        let source = Source::File(path.to_owned());
        let bytes = std::fs::read(path).map_err(|error| source.unreadable(&error))?;
        Ok(Self::of_file(source, &bytes))
    }

    /// Takes a file by what it holds.
    fn of_file(source: Source, bytes: &[u8]) -> Self {
        if bytes.starts_with(&GZIP) {
            return Self::Recording(source);
        }
        let text = String::from_utf8_lossy(bytes);
        let first = text
            .lines()
            .next()
            .and_then(|line| serde_json::from_str::<Value>(line).ok());
        if first.is_some_and(|line| line.get("format").is_some_and(|format| format == "vramscope-recording")) {
            return Self::Recording(source);
        }
        match serde_json::from_str::<Value>(&text) {
            Ok(value) if value.get("model_type").is_some() => Self::Config(source),
            Ok(value) if value.get("case").is_some() || is_case(&source, &text) => Self::Case(text.into_owned()),
            _ => Self::Launch(source),
        }
    }
}

/// Returns true if this JSON with a `model` is a case, whose keys are known, or at least no file of a tool, which names its
/// model under the same key.
fn is_case(source: &Source, text: &str) -> bool {
    let name = source.to_string();
    match Case::from_json(text) {
        Ok(case) => case.is_some(),
        Err(_) => read(&[LaunchSource { name: &name, text }]).is_err(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_it_holds() {
        let of = |text: &[u8]| Run::of_file(Source::Stdin, text);
        assert_eq!(of(&[0x1f, 0x8b, 8]), Run::Recording(Source::Stdin));
        let header = b"{\"t\":\"header\",\"format\":\"vramscope-recording\",\"version\":1}\n{\"t\":\"end\"}\n";
        assert_eq!(of(header), Run::Recording(Source::Stdin));
        assert_eq!(of(b"{\"model_type\": \"gpt2\"}"), Run::Config(Source::Stdin));
        for case in [
            "{\"model\": \"gpt2\", \"batch\": 1}",
            "{\n \"case\": {\"model\": \"gpt2\"}\n}",
        ] {
            assert_eq!(of(case.as_bytes()), Run::Case(case.to_owned()));
        }
        let of_a_tool = "{\"model\": \"Qwen/Qwen2.5-VL-3B-Instruct\", \"tuner_type\": \"lora\", \"max_length\": 512}";
        for launch in ["stage: sft\n", "swift sft --model x\n", of_a_tool] {
            assert_eq!(of(launch.as_bytes()), Run::Launch(Source::Stdin), "{launch}");
        }
    }

    #[test]
    fn a_file_that_is_missing_is_no_model() {
        assert!(matches!(Run::of("configs/none.yaml"), Err(Failure::Input(text)) if text.contains("no such file")));
        assert_eq!(Run::of("gpt2").ok(), Some(Run::Model("gpt2".into())));
        assert_eq!(
            Run::of("Qwen/Qwen3-VL-2B").ok(),
            Some(Run::Model("Qwen/Qwen3-VL-2B".into()))
        );
    }
}
