//! Sixty configurations of transformers' families, drawn with a seed, under ids that no table knows.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;
use vramscope_engine::python_json;

use super::stand_in::{Repo, StandIn};
use crate::program::{Ran, finish};

const COUNT: usize = 60;
const SEED: u64 = 47;

/// Rows of `tests/data/coverage`: a family, its default configuration, and its true number of parameters.
fn rows() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/coverage/configs.jsonl.gz");
    let packed = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    GzDecoder::new(packed.as_slice())
        .read_to_string(&mut text)
        .expect("it is text");
    let rows = text
        .lines()
        .map(|line| python_json::read(line).expect("a line is JSON"));
    rows.filter(|row: &Value| row["params"].is_u64()).collect()
}

/// Draws rows without repetition (xorshift).
fn drawn() -> Vec<Value> {
    let mut rows = rows();
    let mut state = SEED;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).expect("it is small")
    };
    (0..COUNT).map(|_| rows.swap_remove(next(rows.len()))).collect()
}

fn id(number: usize) -> String {
    format!("someone/drawn-{number}")
}

fn answers(ran: &Ran) -> Vec<Value> {
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}

#[test]
fn every_known_family_is_answered_first_and_from_the_cache() {
    let rows = drawn();
    let repo = |row: &Value| {
        let info = serde_json::json!({"safetensors": {"parameters": {"BF16": row["params"]}}});
        Repo::of_files([("config.json", row["config"].clone())], info)
    };
    let repos: BTreeMap<String, Repo> = rows.iter().enumerate().map(|(i, row)| (id(i), repo(row))).collect();
    let hub = StandIn::serve(repos);
    let home = tempfile::tempdir().expect("a folder");
    let cases: String = (0..COUNT)
        .map(|i| format!("{{\"model\": \"{}\", \"batch\": 1}}\n", id(i)))
        .collect();
    let ask =
        |command: &mut std::process::Command| finish(command.args(["estimate", "--cases", "-"]), cases.as_bytes());

    let first = ask(&mut hub.command(home.path()));
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let known = answers(&first);
    assert_eq!(known.len(), COUNT);
    let mut answered = 0;
    for (row, answer) in rows.iter().zip(&known) {
        match answer["error"].as_str() {
            None => {
                assert_eq!(answer["params"], row["params"], "{}", row["type"]);
                answered += 1;
            }
            // What the engine refuses names the family or the key, and what answers; a few defaults do not run at all.
            Some(error) => {
                let is_refused = error.starts_with("someone/drawn-") && error.contains("vramscope record");
                assert!(is_refused || error.contains("does not run"), "{error}");
            }
        }
    }
    assert!(answered >= COUNT / 2, "{answered} of {COUNT}");
    assert!(!first.stderr.contains("parameters; the simulated"), "{}", first.stderr);

    // From the cache, without a question.
    hub.take_requests();
    let again = ask(&mut hub.command(home.path()));
    assert_eq!(answers(&again), known);
    assert!(hub.take_requests().is_empty());
    let offline = ask(hub.command(home.path()).env("HF_HUB_OFFLINE", "1"));
    assert_eq!(answers(&offline), known);
}

#[test]
fn a_launch_file_names_any_id() {
    let row = rows()
        .into_iter()
        .find(|row| row["type"] == "qwen2")
        .expect("it is there");
    let hub = StandIn::start([("someone/drawn", Repo::of_config(&row["config"]))]);
    let home = tempfile::tempdir().expect("a folder");
    let file = "model_name_or_path: someone/drawn\nstage: sft\nfinetuning_type: lora\ntemplate: qwen\ncutoff_len: 64\nbf16: true\n";
    let ran = finish(
        hub.command(home.path())
            .args(["estimate", "--launch", "-", "--format", "json"]),
        file.as_bytes(),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    assert!(
        answer["params"].as_u64() > row["params"].as_u64(),
        "with adapters: {}",
        ran.stdout
    );
}
