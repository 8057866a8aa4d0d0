//! Tests of what `estimate` says of memory before and beside the steps.

use serde_json::Value;

use crate::program::run;

fn around(more: &[&str]) -> Value {
    let ran = run(["estimate"].iter().chain(more).chain(&["--format", "json"]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let answer: Value = serde_json::from_str(&ran.stdout).expect("a document");
    answer["around"].clone()
}

fn occasions(around: &Value) -> Vec<&str> {
    let lines = around["card"].as_array().expect("lines");
    lines.iter().filter_map(|line| line["occasion"].as_str()).collect()
}

fn host<'a>(around: &'a Value, what: &str) -> Option<&'a Value> {
    let lines = around["host"]["uses"].as_array().expect("lines");
    lines.iter().find(|line| line["what"] == what)
}

#[test]
fn ways_to_load_are_those_of_the_setup() {
    let plain = around(&["gpt2", "--gpu", "RTX 4090"]);
    assert_eq!(occasions(&plain), ["load_moved", "load_mapped", "load_cast"]);
    assert!(
        plain["card"]
            .as_array()
            .expect("lines")
            .iter()
            .all(|line| line["verdict"] == "fits")
    );
    let wide = around(&["gpt2", "--precision", "fp32"]);
    assert_eq!(occasions(&wide), ["load_moved", "load_mapped"]);
    let four_bits = around(&["qwen2.5-0.5b", "--freeze", "qlora"]);
    assert_eq!(occasions(&four_bits), ["load_quantised", "merge"]);
    let parts = around(&["gpt2", "--strategy", "deepspeed3", "--world", "4"]);
    assert_eq!(occasions(&parts), ["load_partitioned", "gather"]);
}

/// A weight is whole until it is quantised, and the steps are short.
#[test]
fn loading_that_takes_more_than_a_step_is_said_at_the_top() {
    let shared = "qwen2.5-1.5b --freeze qlora --precision bf16-amp --trainer trl_sft --seq 64 --ckpt full";
    let words: Vec<&str> = shared.split(' ').collect();
    let more = around(&words);
    let over = &more["loading_over_steps"];
    assert_eq!(over["occasion"], "load_quantised", "{more}");
    assert_eq!(over["reserved"], more["card"][0]["reserved"]);
    let text = run(["estimate"].iter().chain(&words)).stdout;
    let places = ["Loading the model takes more than a step", "Peak per phase"].map(|part| text.find(part));
    assert!(
        matches!(places, [Some(headline), Some(peaks)] if headline < peaks),
        "{text}"
    );
    assert!(around(&["gpt2"])["loading_over_steps"].is_null());
}

#[test]
fn the_host_has_what_is_offloaded_and_a_verdict() {
    let kept = around(&["gpt2", "--strategy", "deepspeed2", "--world", "2"]);
    assert!(host(&kept, "offloaded").is_none());
    assert!(kept["host"]["verdict"].is_null());
    let given = [
        "gpt2",
        "--strategy",
        "deepspeed2",
        "--world",
        "2",
        "--offload=optimizer",
        "--host-gib",
        "2",
    ];
    let offloaded = around(&given);
    // Half of the weights: 4 bytes each of weight, gradient and two moments, and 2 of a copy.
    let bytes = host(&offloaded, "offloaded").expect("it is there")["own"].as_u64();
    assert_eq!(bytes, Some(124_439_808 / 2 * 18));
    assert_eq!(offloaded["host"]["verdict"], "oom");
}

#[test]
fn text_tells_the_lines_with_their_ranges() {
    let ran = run([
        "estimate",
        "gpt2",
        "--data",
        "read=1,workers=2",
        "--gpu",
        "RTX 4090",
        "--host-gib",
        "64",
    ]);
    for words in [
        "Before and beside the steps",
        "device_map: fits",
        "DataLoader workers",
        " to ",
        "64.00 GiB",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
}
