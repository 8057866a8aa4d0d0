//! Tests ways in which people start a run, beside plain commands and files of tools (`tests/data/launch/ways.jsonl`): jobs of
//! clusters and clouds, editors, build files, programs that start others. Each is read as the run that it starts.

use serde_json::Value;

use crate::tests::launch_named;
use crate::{Launch, ModelFacts};

fn ways() -> Vec<(String, Launch, Value)> {
    let text = include_str!("../../tests/data/launch/ways.jsonl");
    let read = |line: &str| {
        let way: Value = serde_json::from_str(line).expect("a line of JSON");
        let files = way["files"].as_object().expect("files by their names");
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str().expect("a text")))
            .collect();
        let name = way["name"].as_str().expect("a name").to_owned();
        (name, launch_named(&files), way["case"].clone())
    };
    text.lines().map(read).collect()
}

#[test]
fn each_way_is_read_as_the_run_that_it_starts() {
    let mut wrong = Vec::new();
    for (name, launch, wanted) in ways() {
        let resolved = launch.resolve(ModelFacts::UNKNOWN);
        for (key, value) in wanted.as_object().expect("settings") {
            if resolved.case.get(key) != Some(value) {
                wrong.push(format!("{name}: {key} of {:?}, not {value}", resolved.case));
            }
        }
        if resolved.another_run().next().is_some() {
            wrong.push(format!("{name}: {:?}", resolved.not_this_run));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
