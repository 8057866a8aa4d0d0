//! Answers for drawn configurations, first and from the cache.

use serde_json::Value;

use super::draw::{COUNT, drawn, id, repos, rows};
use super::stand_in::{Repo, StandIn};
use crate::program::{Ran, finish};

fn answers(ran: &Ran) -> Vec<Value> {
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}

#[test]
fn every_known_family_is_answered_first_and_from_the_cache() {
    let rows = drawn();
    let hub = StandIn::serve(repos(&rows));
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
