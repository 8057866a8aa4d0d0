//! Tests of `max-batch`: the largest micro-batch on a card or under a limit.

use crate::program::{run, run_on};

const GPT2: [&str; 8] = [
    "max-batch",
    "gpt2",
    "--seq",
    "256",
    "--precision",
    "fp32",
    "--limit-gib",
    "6",
];

/// The answer for a single setup.
fn answer(more: &[&str]) -> serde_json::Value {
    let ran = run(GPT2.iter().chain(more).chain(&["--format", "json"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[test]
fn the_answer_trains_and_one_more_does_not() {
    let answer = answer(&[]);
    let batch = answer["max_batch"].as_u64().expect("a batch");
    assert!(batch > 1);
    let tries = answer["tries"].as_array().expect("tries");
    let of = |batch: u64| tries.iter().find(|one| one["batch"] == batch).expect("it was tried");
    assert_eq!(of(batch)["trains"], true);
    let more = of(batch + 1);
    assert_eq!(more["trains"], false);
    assert!(
        more["stopped"].as_str().is_some_and(|why| why.contains("GiB")),
        "{more}"
    );
    assert!(tries.iter().all(|one| one["peak_reserved"].as_u64() <= Some(6 << 30)));
}

#[test]
fn more_memory_takes_no_smaller_batch_and_checkpointing_a_larger_one() {
    let batch = |more: &[&str]| answer(more)["max_batch"].as_u64().expect("a batch");
    let plain = batch(&[]);
    assert!(batch(&["--ckpt", "full"]) > plain);
    assert!(batch(&["--steps", "8"]) <= plain);
    assert!(batch(&["--images", "1", "--clip"]) <= plain);
}

#[test]
fn text_names_the_batch_and_why_the_next_stops() {
    let ran = run(GPT2);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let batch = answer(&[])["max_batch"].as_u64().expect("a batch");
    assert!(ran.stdout.contains(&format!("BATCH {batch}")), "{}", ran.stdout);
    assert!(
        ran.stdout.contains(&format!("Batch {} stops in", batch + 1)),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_card_leaves_room_for_what_lies_outside_the_allocator() {
    let ran = run([
        "max-batch",
        "gpt2",
        "--seq",
        "128",
        "--gpu",
        "RTX 3070",
        "--format",
        "json",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert!(
        answer["limit"]
            .as_u64()
            .is_some_and(|limit| (6 << 30..8 << 30).contains(&limit)),
        "{answer}"
    );
}

#[test]
fn cases_are_answered_in_order() {
    let input = r#"{"env": {}}
{"case": {"model": "gpt2", "seq": 256, "precision": "fp32", "limit_gib": 6}, "max_batch": 1000}
{"model": "gpt2", "seq": 256}
{"model": "gpt2", "seq": 256, "limit_gib": -3}
{"model": "gpt2", "seq": 256, "limit_gib": 0.1}
"#;
    let ran = run_on(["max-batch", "--cases", "-"], input);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines = ran.lines();
    assert_eq!(
        lines[0],
        serde_json::json!({"i": 0, "max_batch": answer(&[])["max_batch"]})
    );
    for line in &lines[1..3] {
        assert!(
            line["error"].as_str().is_some_and(|why| why.contains("limit_gib")),
            "{line}"
        );
    }
    assert_eq!(lines[3], serde_json::json!({"i": 3, "max_batch": 0}));
    let text = run_on(["max-batch", "--cases", "-", "--format", "text"], input);
    assert_eq!(text.stdout.lines().count(), 4, "{}", text.stdout);
}

#[test]
fn what_makes_no_sense_is_refused() {
    assert!(run(["max-batch", "gpt2"]).refused().contains("--gpu"));
    assert!(run(GPT2.iter().chain(&["--batch", "4"])).refused().contains("--batch"));
    assert!(
        run(["max-batch", "gpt2", "--limit-gib", "0"])
            .refused()
            .contains("--limit-gib 0")
    );
}
