//! Tests of `vramscope diagnose` with the course's examples and a recorded snapshot.

use std::ffi::OsStr;
use std::fs;

use serde_json::Value;

use crate::program::{Ran, run, run_on};

const SNAPSHOT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/data/snapshots/gpt2-bf16.pickle.gz"
);

const FULL: &str = "RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.89 GiB free; 21.50 GiB reserved in total by PyTorch)\n";
const OTHERS: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 26.00 MiB. GPU 0 has a total capacity of 15.57 GiB of which 23.06 MiB is free. Process 1001 has 12.57 GiB memory in use. Process 1002 has 2.10 GiB memory in use. Including non-PyTorch memory, this process has 510.00 MiB memory in use. Of the allocated memory 413.55 MiB is allocated by PyTorch, and 12.45 MiB is reserved by PyTorch but unallocated.\n";
const LEAK: &str = "Step 100: GPU memory 18.2 GB\nStep 200: GPU memory 18.5 GB\nStep 300: GPU memory 18.9 GB\nStep 400: GPU memory 19.4 GB\nStep 500: GPU memory 20.1 GB\nStep 600: GPU memory 20.9 GB\nStep 700: GPU memory 21.8 GB\nStep 800: GPU memory 22.9 GB\nStep 900: GPU memory 24.2 GB\nStep 1000: CUDA out of memory\n";
const TABLE: &str = "Name  CPU %  CUDA %\naten::matmul  45.2%  52.1%\naten::softmax  12.3%  15.2%\nDataLoader  25.1%  0.0%\nnccl:all_reduce  8.5%  18.3%\n";

fn answer(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("one document")
}

/// Code and confidence of each finding, in order.
fn findings(text: &str) -> Vec<(String, String)> {
    let answer = answer(&run_on(["diagnose", "-", "--format", "json"], text));
    let findings = answer["findings"].as_array().expect("a list").iter();
    let word = |value: &Value| value.as_str().expect("a word").to_string();
    findings.map(|f| (word(&f["code"]), word(&f["standing"]))).collect()
}

#[test]
fn the_course_s_examples_give_their_causes() {
    for (text, code) in [(OTHERS, "other-processes"), (LEAK, "leak"), (TABLE, "data-loading")] {
        let found = findings(text);
        assert_eq!(found[0], (code.into(), "cause".into()), "{found:?}");
    }
    assert!(findings(FULL).contains(&("fragmentation".into(), "ruled-out".into())));
    // That the card is full is what the error says, and no cause: what filled it is asked for.
    assert_eq!(findings(FULL)[0], ("out-of-capacity".into(), "likely".into()));
    assert!(findings(FULL).contains(&("facts-missing".into(), "note".into())));
    assert_eq!(findings(TABLE)[1].0, "communication");
}

/// Row 9.4: the regression over the last ten readings predicts ten readings ahead, against a limit of 24 GiB.
#[test]
fn a_log_gives_its_risk() {
    let log: String = (1..=12)
        .map(|step| format!("step {step} mem {:.1} GB\n", 18.0 + 0.2 * f64::from(step)))
        .collect();
    let answer = answer(&run_on(
        ["diagnose", "-", "--limit-gib", "24", "--format", "json"],
        &log,
    ));
    let leak = &answer["findings"][0];
    assert_eq!(leak["code"], "leak");
    let growth = &leak["cause"]["leak"];
    // The last reading is 20.4 GiB; ten further ones lead to 22.4.
    let risk = growth["risk"].as_f64().expect("the card is known");
    assert!((risk - (22.4 / 24.0 - 0.85) / 0.15).abs() < 0.01, "{growth}");
    assert_eq!(leak["row"], "9.leak");
}

/// Every finding names the course row that explains it, and the course has that row.
#[test]
fn findings_lead_to_the_course() {
    let rows: Vec<&str> = include_str!("../../src/app/course/rows.txt")
        .lines()
        .map(str::trim)
        .collect();
    for text in [FULL, OTHERS, LEAK, TABLE] {
        for finding in answer(&run_on(["diagnose", "-", "--format", "json"], text))["findings"]
            .as_array()
            .expect("a list")
        {
            let row = finding["row"].as_str().expect("a row");
            assert!(rows.contains(&row), "{row}");
        }
    }
}

#[test]
fn a_snapshot_shows_its_peak() {
    // The output fits the terminal, however long the path of the file is.
    let folder = tempfile::tempdir().expect("a folder");
    let deep = folder
        .path()
        .join("a long folder name with spaces")
        .join("and-another-".repeat(8));
    fs::create_dir_all(&deep).expect("folders");
    let snapshot = deep.join("snapshot.pickle.gz");
    fs::copy(SNAPSHOT, &snapshot).expect("it is copied");
    let ran = run([OsStr::new("diagnose"), snapshot.as_os_str()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("…/snapshot.pickle.gz"), "{}", ran.stdout);
    for words in [
        "device 0, 5994 events",
        "At the highest instant most memory is in activations",
        "adam.py:178 _init_group",
        "modeling_gpt2.py:",
        "with expandable segments",
    ] {
        assert!(ran.stdout.contains(words), "{words}\n{}", ran.stdout);
    }
    assert!(
        ran.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        ran.stdout
    );
}

/// With a named setup, changes show the bytes that they save, compared with the memory available according to the
/// error.
#[test]
fn a_named_setup_shows_what_each_change_saves() {
    let flags = [
        "diagnose", "-", "--model", "gpt2", "--batch", "4", "--seq", "512", "--format", "json",
    ];
    let answer = answer(&run_on(flags, FULL));
    let fixes = answer["fixes"].as_array().expect("changes");
    let saved: Vec<i64> = fixes
        .iter()
        .map(|fix| fix["effect"]["difference"].as_i64().expect("bytes"))
        .collect();
    assert!(
        saved.len() > 2 && saved.is_sorted() && saved.iter().all(|bytes| *bytes < 0),
        "{saved:?}"
    );
    assert_eq!(fixes[0]["effect"]["verdict"], "fits");
    let estimate = |batch: &str| -> i64 {
        let ran = run([
            "estimate", "gpt2", "--batch", batch, "--seq", "512", "--format", "jsonl",
        ]);
        ran.lines()[0]["peak_reserved"].as_i64().expect("bytes")
    };
    let halved = fixes
        .iter()
        .find(|fix| fix["change"]["Batch"] == 2)
        .expect("half the batch");
    assert_eq!(
        halved["effect"]["difference"].as_i64(),
        Some(estimate("2") - estimate("4"))
    );
}

#[test]
fn files_that_say_nothing_are_told_and_others_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let notes = folder.path().join("notes.txt");
    fs::write(&notes, "a shopping list\n").expect("it is written");
    let ran = run([OsStr::new("diagnose"), OsStr::new(SNAPSHOT), notes.as_os_str()]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("notes.txt: unrecognized input"), "{}", ran.stderr);
}

/// Where nothing is understood, the answer says what was read, what to paste next, and how to find out without a GPU.
#[test]
fn what_is_not_understood_is_answered_with_the_next_step() {
    let ran = run_on(["diagnose", "-", "--format", "json"], "my model does not train");
    let answer = answer(&ran);
    assert_eq!(answer["findings"][0]["code"], "nothing-failed-here");
    let steps = answer["findings"][0]["steps"].to_string();
    assert!(
        steps.contains("nvidia-smi") && steps.contains("vramscope dry-run"),
        "{steps}"
    );
    assert!(run_on(["diagnose", "-"], " ").refused().contains("memory snapshots"));
}

#[test]
fn what_is_no_text_and_no_snapshot_is_refused() {
    let hostile = run_on(["diagnose", "-"], b"\x80\x04\x8c\x05posix\x8c\x06system\x93.");
    assert!(hostile.refused().contains("STACK_GLOBAL"), "{}", hostile.stderr);
    let flags = run_on(["diagnose", "-", "--batch", "4"], FULL);
    assert!(flags.refused().contains("--model"), "{}", flags.stderr);
    assert!(run(["diagnose", "no-such-file"]).refused().contains("no-such-file"));
}
