//! Tests of `estimate --data FILE`: lengths and images come from the run's own dataset.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Ran, run};

fn estimate(args: &[&str], data: &Path) -> Ran {
    let data = data.to_str().expect("UTF-8");
    run([&["estimate"], args, &["--data", data, "--format", "json"]].concat())
}

fn answer(args: &[&str], data: &Path) -> Value {
    let ran = estimate(args, data);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

fn said(args: &[&str]) -> Value {
    let ran = run([&["estimate"], args, &["--format", "json"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[test]
fn the_figures_are_those_of_the_longest_samples() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("train.jsonl");
    let lines: String = (1..=100).map(|n| format!("{{\"num_tokens\": {}}}\n", 8 * n)).collect();
    fs::write(&file, lines).expect("it is written");
    let of_data = answer(&["gpt2"], &file);
    let longest = said(&["gpt2", "--seq", "800"]);
    assert_eq!(of_data["peak_allocated"], longest["peak_allocated"]);
    let middle = said(&["gpt2", "--seq", "400"]);
    assert_eq!(of_data["data"]["typical"]["peak_allocated"], middle["peak_allocated"]);
    assert_eq!(
        of_data["data"]["positions"],
        json!({"p50": 400, "p95": 760, "p99": 792, "most": 800})
    );
    assert_eq!(of_data["data"]["tokens"], "file");
    assert_eq!(of_data["grade"], "exact");
    // Several of them side by side are at most as long as the longest.
    assert_eq!(answer(&["gpt2", "--batch", "2"], &file)["grade"], "at_most");
    // A length that is given is the one to which a tool cuts.
    let cut = answer(&["gpt2", "--seq", "640"], &file);
    assert_eq!(cut["data"]["limit"], 640);
    assert_eq!(cut["peak_allocated"], said(&["gpt2", "--seq", "640"])["peak_allocated"]);
}

#[test]
fn a_card_has_room_for_a_part_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("train.csv");
    let rows: String = (1..=10).map(|n| format!("{}\n", 100 * n)).collect();
    fs::write(&file, format!("num_tokens\n{rows}")).expect("it is written");
    let at_700 = said(&["gpt2", "--batch", "4", "--seq", "700"]);
    // What the allocator keeps beside it is given back before a step runs out.
    let room = at_700["peak_allocated"].as_u64().expect("a peak") as f64 / f64::from(1 << 30) + 1e-6;
    let room = room.to_string();
    let data = &answer(&["gpt2", "--batch", "4", "--limit-gib", &room], &file)["data"];
    assert_eq!(data["fits"], json!({"share": 0.7, "positions": 700}));
    let wide = &answer(&["gpt2", "--batch", "4", "--limit-gib", "80"], &file)["data"];
    assert_eq!(wide["fits"], Value::Null);
}

#[test]
fn check_judges_the_longest_of_them_and_says_which_fit() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("train.jsonl");
    let lines: String = (1..=10).map(|n| format!("{{\"num_tokens\": {}}}\n", 100 * n)).collect();
    fs::write(&file, lines).expect("it is written");
    let file = file.to_str().expect("UTF-8");
    let case = r#"{"model": "gpt2", "batch": 1, "ckpt": "full", "optim": "sgd"}"#;
    let same = ["gpt2", "--ckpt", "full", "--optim", "sgd"];
    let at_700 = said(&[&same[..], &["--seq", "700"]].concat());
    let room = at_700["peak_allocated"].as_u64().expect("a peak") as f64 / f64::from(1 << 30) + 1e-6;
    let check = |room: &str| {
        let ran = run(["check", case, "--data", file, "--limit-gib", room, "--format", "json"]);
        let document: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        (ran.code, document["runs"][0].clone())
    };
    let (code, narrow) = check(&room.to_string());
    assert_eq!((code, &narrow["outcome"]), (Some(3), &json!("oom")));
    let message = narrow["message"].as_str().expect("a message");
    assert!(
        message.contains("70.0% of the samples fit, those of at most 700 positions"),
        "{message}"
    );
    let longest = said(&[&same[..], &["--seq", "1000"]].concat());
    let (code, wide) = check("80");
    assert_eq!((code, &wide["outcome"]), (Some(0), &json!("fits")));
    assert_eq!(wide["peak_allocated"], longest["peak_allocated"]);
}

/// The first bytes of a PNG of 640 × 480, which say its size.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x02\0\0\0";

#[test]
fn a_launch_cuts_samples_and_shrinks_images() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.png"), PNG).expect("it is written");
    let file = folder.path().join("train.json");
    let sample = |words: usize| {
        json!({
            "messages": [
                {"role": "user", "content": "<image>What is this?"},
                {"role": "assistant", "content": "a ".repeat(words)},
            ],
            "images": ["a.png"],
        })
    };
    fs::write(&file, json!([sample(10), sample(100), sample(2000)]).to_string()).expect("it is written");
    let launch = folder.path().join("run.sh");
    fs::write(
        &launch,
        "MAX_PIXELS=100352 swift sft --model Qwen/Qwen2.5-VL-3B-Instruct --dataset x --tuner_type lora --max_length 2048",
    )
    .expect("it is written");
    let launch = launch.to_str().expect("UTF-8");
    let of_data = answer(&["--launch", launch], &file);
    assert_eq!(of_data["data"]["limit"], 2048);
    assert_eq!(of_data["data"]["tokens"], "bytes");
    assert_eq!(of_data["grade"], "at_most");
    assert_eq!(of_data["data"]["longest"]["positions"], 2048);
    assert_eq!(of_data["data"]["longest"]["images"], 1);
    // 10 answers of 2 bytes, 16 bytes of a question: with the image, shrunk to at most 128 of its tokens.
    let typical = of_data["data"]["typical"]["positions"].as_u64().expect("positions");
    assert!((30..=128 + 60).contains(&typical), "{typical}");
    let whole = said(&["--launch", launch, "--images", "0"]);
    assert!(of_data["peak_allocated"].as_u64() < whole["peak_allocated"].as_u64().map(|bytes| 3 * bytes));
}

#[test]
fn what_is_no_dataset_is_refused_with_what_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("notes.txt");
    fs::write(&file, "\u{1}\u{2}").expect("it is written");
    let refused = |path: &Path, words: &str| {
        let ran = estimate(&["gpt2"], path);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    };
    refused(&file, "is no dataset that can be read; JSON Lines, JSON, CSV");
    refused(&folder.path().join("missing.jsonl"), "there is no file");
    refused(folder.path(), "has no file of samples");
    let other = folder.path().join("scores.jsonl");
    fs::write(&other, "{\"id\": 1, \"score\": 2}\n").expect("it is written");
    refused(&other, "its records have: id, score");
    let of_generation = estimate(&["gpt2", "--phase", "generate"], &other);
    assert_eq!(of_generation.code, Some(2), "{}", of_generation.stderr);
}
