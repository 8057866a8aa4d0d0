//! Tests of `watch` on runs that a GPU wrote.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Ran, finish, vramscope};

fn watch(args: &[&str]) -> Ran {
    finish(vramscope().arg("watch").args(args), b"")
}

fn run(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/watch");
    folder.join(name).display().to_string()
}

fn answer(file: &str) -> Value {
    let ran = watch(&[file, "--once", "--format", "json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&ran.stdout).expect("JSON")
}

/// Highest relative difference between the measured and the predicted peak, over all steps that have both.
fn worst(answer: &Value) -> f64 {
    let steps = answer["steps"].as_array().expect("steps").iter();
    let pairs =
        steps.filter_map(|step| Some((step["measured"]["peak"].as_f64()?, step["predicted"]["peak"].as_f64()?)));
    let errors: Vec<f64> = pairs
        .map(|(measured, predicted)| (predicted / measured - 1.0).abs())
        .collect();
    assert!(errors.len() > 10, "{} steps", errors.len());
    errors.into_iter().fold(0.0, f64::max)
}

/// Under transformers' Trainer on an H100, the peak of each step is the predicted one.
#[test]
fn the_peak_of_a_trainer_is_as_predicted() {
    let answer = answer(&run("trainer_h100.jsonl"));
    assert!(worst(&answer) <= 0.001, "{}", worst(&answer));
    assert_eq!(answer["case"]["precision"], "amp-bf16");
    let sentences = answer["differs"].to_string();
    assert!(
        !sentences.contains("peak") && !sentences.contains("grows"),
        "{sentences}"
    );
}

/// A loop that keeps its logits: the growth is named, and its size is that of what was kept.
#[test]
fn memory_that_grows_is_named() {
    let answer = answer(&run("loop_h100.jsonl"));
    let first = answer["differs"][0].as_str().expect("a sentence");
    // Half of the positions of two samples, in bf16: 2 · 256 · 151,936 · 2 bytes are 148.4 MiB, less what lengths vary.
    assert!(first.contains("grows by 14") && first.contains("each step"), "{first}");
    assert_eq!(answer["ended"], true);
}

#[test]
fn the_text_shows_both_and_the_newest_steps() {
    let ran = watch(&[&run("trainer_h100.jsonl"), "--once"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for told in [
        "peak, predicted",
        "peak, measured",
        "NVIDIA H100",
        "24 steps, ended",
        "step",
    ] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
}

/// A run that has just begun, is being written, or was killed.
#[test]
fn a_run_is_shown_as_far_as_it_is_written() {
    let whole = std::fs::read_to_string(run("loop_h100.jsonl")).expect("a file");
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("half.jsonl");
    let end = whole.match_indices('\n').nth(4).expect("five lines").0;
    std::fs::write(&path, &whole[..end + 30]).expect("a folder for tests");
    let answer = answer(path.to_str().expect("UTF-8"));
    assert_eq!(answer["steps"].as_array().map(Vec::len), Some(4));
    assert_eq!(answer["ended"], false);
}

#[test]
fn what_is_no_run_is_refused_with_the_way_out() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("no_run.jsonl");
    for (text, told) in [
        ("", "has no completed step yet"),
        (
            "loss,step\n",
            "line 1 is not of a file that vramscope.Watch or vramscope.watching writes",
        ),
    ] {
        std::fs::write(&path, text).expect("a folder for tests");
        let ran = watch(&[path.to_str().expect("UTF-8"), "--once"]);
        assert_eq!(ran.code, Some(2), "{text}");
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
    let ran = watch(&["nowhere.jsonl", "--once"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("cannot read nowhere.jsonl"), "{}", ran.stderr);
}

/// What is shared is shown whole, is of its schema, and names no path; a file that exists stays as it is.
#[test]
fn a_run_is_shared_as_a_file_that_names_nothing() {
    let folder = tempfile::tempdir().expect("a folder of the test's own");
    let file = folder.path().join("run.json");
    let of = |name: &str| watch(&[&run(name), "--share", &file.display().to_string()]);
    let ran = of("trainer_h100.jsonl");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("nothing was sent"), "{}", ran.stderr);
    let written = std::fs::read_to_string(&file).expect("it is written");
    let shown: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), shown);
    let schema: Value = serde_json::from_str(&finish(vramscope().args(["schema", "run"]), b"").stdout).expect("JSON");
    assert!(jsonschema::is_valid(&schema, &shown), "{shown}");
    assert!(
        !written.contains('/') && !written.contains("_name_or_path"),
        "{written}"
    );
    let again = of("loop_h100.jsonl");
    assert!(again.refused().contains("exists"), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), written);
}
