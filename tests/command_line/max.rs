//! Tests of `max`: the largest value of a setting, and what limits it.

use serde_json::Value;

use crate::program::run;

fn answer(args: &[&str]) -> Value {
    let ran = run(["max"].iter().chain(args).chain(&["--format", "json"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

/// What an estimate needs of a card.
fn needed(args: &[&str]) -> u64 {
    let ran = run(["estimate"].iter().chain(args).chain(&["--format", "json"]));
    let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    answer["target"]["needed"]
        .as_u64()
        .unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn the_largest_length_needs_what_an_estimate_needs_and_the_next_does_not_fit() {
    let setup = ["gpt2", "--batch", "32", "--gpu", "RTX 4060"];
    let answer = answer(&[&["length"], &setup[..]].concat());
    assert_eq!(answer["limited_by"], "memory", "{answer}");
    let (length, room) = (
        answer["max"].as_u64().expect("a length"),
        answer["room"].as_u64().expect("bytes"),
    );
    let at = |seq: u64| needed(&[&setup[..], &["--seq", &seq.to_string()]].concat());
    assert_eq!(Some(at(length)), answer["needed"].as_u64());
    assert!(at(length) <= room && at(length + 32) > room);
}

#[test]
fn positions_limit_a_length_that_memory_does_not() {
    let answer = answer(&["length", "gpt2", "--gpu", "H200"]);
    assert_eq!(
        (&answer["max"], &answer["limited_by"]),
        (&1024.into(), &"setup".into()),
        "{answer}"
    );
    assert!(
        answer["reason"].as_str().is_some_and(|why| why.contains("1024")),
        "{answer}"
    );
    let text = run(["max", "length", "gpt2", "--gpu", "H200"]).stdout;
    assert!(
        text.contains("length 1,024 fits H200") && text.contains("Not limited by memory"),
        "{text}"
    );
}

#[test]
fn a_rank_needs_adapters() {
    let ran = run(["max", "rank", "gpt2", "--gpu", "4090"]);
    let refused = ran.refused();
    assert!(refused.contains("--freeze lora"), "{refused}");
    let answer = answer(&[
        "rank",
        "qwen2.5-0.5b",
        "--seq",
        "256",
        "--freeze",
        "lora",
        "--gpu",
        "4090",
    ]);
    assert!(answer["max"].as_u64().is_some_and(|rank| rank >= 64), "{answer}");
    let ran = run(["max", "width", "gpt2", "--gpu", "4090"]);
    let refused = ran.refused();
    assert!(refused.contains("batch, length"), "{refused}");
}
