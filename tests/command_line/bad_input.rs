//! Bad input is refused: exit code 2, nothing on standard output, and on standard error what was
//! given, what is allowed, what to do.

use crate::program::{run, run_on};

/// Asserts that the arguments are refused with a message that holds all of `words`.
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
        &["estimate", "gpt2", "--gpu", "A100"],
        &["A100", "A100 40GB", "A100 80GB"],
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
    refused(&["estimate", "gpt2", "--batch", "1e3"], &["1e3", "--batch"]);
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
    refused(&["estimate", "gpt2", "--freeze", "lora"], &["freeze", "gpt2", "q_proj"]);
    refused(&["estimate", "llava-1.5-7b", "--images", "0"], &["images", "between 1"]);
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
