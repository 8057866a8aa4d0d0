//! Tests that bad input is refused with exit code 2, nothing on standard output, and a message on standard error that
//! says what was given, what is allowed, and what to do.

use crate::program::{run, run_on};

/// Asserts that the arguments are refused with a message that contains all of `words`.
fn refused(args: &[&str], words: &[&str]) {
    let ran = run(args);
    let message = ran.refused();
    for word in words {
        assert!(message.contains(word), "{args:?} should say {word:?}: {message}");
    }
}

#[test]
fn an_unknown_model_is_named_with_near_ones() {
    refused(&["estimate", "llvaa-1.5-7b"], &["llvaa-1.5-7b", "llava-1.5-7b"]);
}

#[test]
fn an_unknown_card_is_named_with_near_ones() {
    refused(&["estimate", "gpt2", "--gpu", "RTX 4091"], &["RTX 4091", "RTX 4090"]);
    refused(
        &["estimate", "gpt2", "--gpu", "RTX 50"],
        &["RTX 50", "RTX 5070", "RTX 5090"],
    );
}

#[test]
fn an_unknown_value_is_named_with_what_is_allowed() {
    refused(
        &["estimate", "gpt2", "--optim", "adamm"],
        &["adamm", "--optim", "adamw_fused", "sgdm"],
    );
    refused(&["estimate", "gpt2", "--precision", "fp8"], &["fp8", "amp-bf16"]);
    refused(&["estimate", "gpt2", "--grid", "24"], &["--grid", "24x32"]);
}

#[test]
fn numbers_that_are_none_are_named() {
    refused(&["estimate", "gpt2", "--batch", "-3"], &["-3", "--batch"]);
    refused(&["estimate", "gpt2", "--batch", "4x"], &["4x", "--batch"]);
    refused(&["estimate", "gpt2", "--seq", "99999999999999999999999"], &["--seq"]);
    for limit in ["0", "-1", "nan", "inf", "1e300"] {
        refused(&["estimate", "gpt2", "--limit-gib", limit], &["--limit-gib"]);
    }
}

#[test]
fn zero_and_absurd_sizes_are_refused_not_computed() {
    for (flag, value) in [
        ("--batch", "0"),
        ("--seq", "0"),
        ("--accum", "0"),
        ("--batch", "18446744073709551615"),
        ("--seq", "18446744073709551615"),
        ("--accum", "18446744073709551615"),
    ] {
        refused(&["estimate", "gpt2", flag, value], &[]);
    }
}

#[test]
fn malformed_json_says_where() {
    refused(&["estimate", "--case", "{\"model\": "], &["--case", "line 1"]);
    refused(&["estimate", "--case", "[]"], &["object"]);
    refused(&["estimate", "--case", "{}"], &["model"]);
    refused(
        &["estimate", "--case", "{\"model\": \"gpt2\", \"optim\": \"adamm\"}"],
        &["adamm", "adamw"],
    );
    let ran = run_on(["estimate", "--config", "-"], "{\"model_type\": \"gpt2\"");
    assert!(ran.refused().contains("standard input"));
}

#[test]
fn an_unsupported_config_is_refused_by_its_name() {
    let ran = run_on(["estimate", "--config", "-"], "{\"model_type\": \"not-a-model\"}");
    assert!(ran.refused().contains("not-a-model"), "{}", ran.stderr);
}

#[test]
fn a_key_that_no_case_has_is_refused_with_the_nearest() {
    refused(
        &["estimate", "--case", "{\"model\": \"gpt2\", \"bacth\": 4}"],
        &["`bacth`", "`batch`"],
    );
}

#[test]
fn a_text_longer_than_the_learned_positions_is_refused() {
    refused(&["estimate", "gpt2", "--seq", "100000"], &["100000", "1024"]);
    let run = run(["estimate", "gpt2", "--format", "jsonl"]);
    assert_eq!(run.code, Some(0), "a text without a length has room: {}", run.stderr);
}

#[test]
fn a_text_beyond_what_rotary_positions_were_made_for_is_warned_of() {
    let long = [
        "estimate",
        "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
        "--format",
        "jsonl",
        "--seq",
    ];
    let said = |seq| run(long.into_iter().chain([seq])).stdout;
    assert!(said("4096").contains("max_position_embeddings"));
    assert!(!said("2048").contains("max_position_embeddings"));
}

/// Python's `json.dumps` writes such values.
#[test]
fn a_config_may_hold_what_is_not_finite() {
    let config = r#"{"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 1, "vocab_size": 100, "limits": [0.0, Infinity, NaN]}"#;
    let ran = run_on(["estimate", "--config", "-", "--format", "jsonl"], config);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let wrong = config.replace("64", "-Infinity");
    assert!(
        run_on(["estimate", "--config", "-"], &wrong)
            .refused()
            .contains("n_embd")
    );
}

#[test]
fn a_missing_file_is_named() {
    refused(
        &["estimate", "--config", "no/such/config.json"],
        &["no/such/config.json"],
    );
    refused(
        &["estimate", "--cases", "no/such/cases.jsonl"],
        &["no/such/cases.jsonl"],
    );
}

#[test]
fn one_thing_is_asked_at_a_time() {
    refused(&["estimate"], &["MODEL", "--config"]);
    refused(&["estimate", "gpt2", "--case", "{\"model\": \"gpt2\"}"], &["--case"]);
    refused(&["estimate", "--cases", "-", "--batch", "2"], &["--cases"]);
}

#[test]
fn a_setup_that_trains_nothing_is_refused() {
    refused(
        &["estimate", "gpt2", "--freeze", "all-but-connector"],
        &["freeze", "gpt2", "connector"],
    );
    refused(
        &["estimate", "gpt2", "--freeze", "lora"],
        &["freeze", "gpt2", "linear layers", "none"],
    );
    refused(&["estimate", "smolvlm-256m", "--images", "0"], &["images", "between 1"]);
}

#[test]
fn a_flag_without_effect_is_noted_and_the_answer_given() {
    let ran = run(["estimate", "gpt2", "--grid", "24x24", "--format", "jsonl"]);
    assert_eq!((ran.code, ran.lines().len()), (Some(0), 1));
    assert!(
        ran.stderr.contains("--grid") && ran.stderr.contains("gpt2"),
        "{}",
        ran.stderr
    );
}
