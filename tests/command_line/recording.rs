//! Tests of `estimate --recording`: a recorded step in each output format, and invalid files.

use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::program::{Ran, run, run_on};

const HEADER: &str = r#"{"t":"header","format":"vramscope-recording","version":1,"recorder":"0.1.0","versions":{"torch":"2.11.0+cu130"},"gpu":{"name":"NVIDIA H200","capability":[9,0],"memory":150109880320,"sms":132},"settings":{},"rank":0,"world":1,"command":["train.py","--batch","2"],"steps":2}"#;

/// Returns two steps of a linear layer of 1,024 × 1,024 in fp32 with SGD.
pub fn recording() -> String {
    let mut text = format!(
        "{HEADER}\n{}\n",
        r##"{"t":"fn","id":0,"name":"aten.randn.default"}
{"t":"fn","id":1,"name":"aten.mm.default"}
{"t":"meta","id":0,"dtype":"f32","shape":[1024,1024]}
{"t":"module","id":0,"name":"","class":"Linear"}
{"t":"node","id":0,"name":"MmBackward0"}
{"t":"op","f":0,"a":[1024,1024],"o":["#0:0"],"n":[[0,4194304]]}
{"t":"param","id":0,"name":"weight","module":0,"s":0,"m":0,"trainable":true}"##
    );
    for step in 0..2 {
        let [x, out, grad] = [1, 2, 3].map(|i| 3 * step + i);
        text += &format!(
            r##"{{"t":"mark","at":"step","step":{number}}}
{{"t":"op","f":0,"a":[1024,1024],"o":["#{x}:0"],"n":[[{x},4194304]]}}
{{"t":"why","s":{x},"is":"batch","name":"input"}}
{{"t":"mark","at":"forward"}}
{{"t":"op","f":1,"a":["#{x}:0","#0:0"],"o":["#{out}:0"],"n":[[{out},4194304]],"mod":0}}
{{"t":"mark","at":"forward_end"}}
{{"t":"mark","at":"backward"}}
{{"t":"op","f":1,"a":["#{x}:0","#{out}:0"],"o":["#{grad}:0"],"n":[[{grad},4194304]],"b":1,"v":0,"mod":0}}
{{"t":"why","s":{grad},"is":"gradient","p":0}}
{{"t":"mark","at":"backward_end"}}
{{"t":"mark","at":"optimizer","name":"SGD"}}
{{"t":"mark","at":"optimizer_end"}}
{{"t":"free","s":[{grad},{out},{x}]}}
{{"t":"mark","at":"step_end","step":{number}}}
"##,
            number = step + 1
        );
    }
    text + "{\"t\":\"end\",\"steps\":2,\"ops\":7,\"storages\":7,\"seconds\":0.1}\n"
}

fn packed(text: &str) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

/// Writes a file to its own temporary folder.
fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.vram.gz");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn estimate(bytes: &[u8], further: &[&str]) -> Ran {
    let (_folder, path) = file(bytes);
    let path = path.to_str().unwrap();
    run(["estimate", "--recording", path]
        .iter()
        .copied()
        .chain(further.iter().copied()))
}

/// Peak bytes: four matrices, and the workspaces of both threads.
const PEAK: u64 = 4 * (4 << 20) + 2 * (32 << 20);

#[test]
fn a_recording_is_played_packed_or_not() {
    for bytes in [packed(&recording()), recording().into_bytes()] {
        let ran = estimate(&bytes, &["--format", "json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(answer["peak_allocated"], PEAK);
        assert_eq!(answer["params"], 1 << 20);
        assert_eq!(answer["recording"]["model"], "Linear");
        assert_eq!(answer["recording"]["gpu"]["name"], "NVIDIA H200");
        assert_eq!(answer["target"]["verdict"], "fits");
        // Two products of 1,024 × 1,024 × 1,024, which no H200 computes in less than 10 µs each.
        assert!(answer["ms"]["forward"].as_f64().unwrap() > 0.01, "{}", answer["ms"]);
        assert_eq!(answer["time"]["by_kernel"][0]["launches"], 2, "{}", answer["time"]);
        let warnings = answer["warnings"].as_array().unwrap();
        let codes: Vec<&str> = warnings
            .iter()
            .map(|warning| warning["code"].as_str().unwrap())
            .collect();
        assert_eq!(codes, ["fragmentation"]);
    }
    let piped = run_on(
        ["estimate", "--recording", "-", "--format", "jsonl"],
        packed(&recording()),
    );
    let line = &piped.lines()[0];
    assert_eq!(
        (&line["i"], &line["steady"]["peak_backward"]),
        (&0.into(), &PEAK.into())
    );
}

#[test]
fn a_recording_is_told_in_words() {
    let ran = estimate(&packed(&recording()), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for words in [
        "Linear  1.05 M parameters",
        "recorded without a GPU for NVIDIA H200",
        "train.py --batch 2",
        "FITS",
        "Peak per phase",
        "Time of a step",
        "cuBLAS workspace",
        "workspaces · the library keeps it",
    ] {
        assert!(ran.stdout.contains(words), "{words:?} is missing:\n{}", ran.stdout);
    }
}

#[test]
fn a_smaller_card_of_the_same_kind_is_asked_about() {
    let ran = estimate(&packed(&recording()), &["--limit-gib", "0.05", "--format", "json"]);
    assert!(ran.stdout.contains("\"verdict\": \"oom\""), "{}", ran.stdout);
    let other = estimate(&packed(&recording()), &["--gpu", "RTX 4090"]);
    assert!(
        other.refused().contains("record again with `--gpu`"),
        "{}",
        other.stderr
    );
}

#[test]
fn files_that_are_no_whole_recording_are_refused() {
    let text = recording();
    let bytes = packed(&text);
    let cut: String = text.lines().take(12).map(|line| format!("{line}\n")).collect();
    let newer = text.replace("\"version\":1", "\"version\":9");
    let wrong = text.replace("\"f\":1", "\"f\":8");
    for (bytes, words) in [
        (bytes[..bytes.len() / 2].to_vec(), "cannot be unpacked beyond line"),
        (packed(&cut), "is cut: it stops after line 12"),
        (packed(&newer), "format version 9"),
        (packed(&wrong), "uses function 8"),
        (b"not a recording".to_vec(), "this is not a recording"),
        (Vec::new(), "this is not a recording"),
        (packed(""), "this is not a recording"),
    ] {
        let ran = estimate(&bytes, &[]);
        let message = ran.refused();
        assert!(
            message.contains(words) && message.contains("run.vram.gz"),
            "{words:?}: {message}"
        );
    }
}

#[test]
fn flags_that_a_recording_cannot_follow_are_refused() {
    for (flags, words) in [
        (&["--batch", "4"][..], "holds its own setup"),
        (&["--at", "batch=4"], "record --vary"),
        (&["--at", "batch"], "NAME=N"),
        (&["--ckpt", "full"], "holds its own setup"),
        (&["--strategy", "fsdp", "--world", "2"], "holds its own setup"),
        (&["--price-per-hour", "3"], "--samples"),
        (&["--phase", "generate"], "--phase"),
        (&["--config", "config.json"], "--config"),
    ] {
        let ran = estimate(&packed(&recording()), flags);
        assert!(ran.refused().contains(words), "{flags:?}: {}", ran.stderr);
    }
    let missing = run(["estimate", "--recording", "/nonexistent/run.vram.gz"]);
    assert!(missing.refused().contains("/nonexistent/run.vram.gz"));
}

/// Returns the path of the stored recording of all sizes.
fn sizes() -> String {
    concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/recordings/qwen2-4layers-bf16.sizes.gz"
    )
    .into()
}

#[test]
fn all_sizes_are_asked_about_by_name() {
    let path = sizes();
    let base = ["estimate", "--recording", &path];
    let peak = |further: &[&str]| {
        let ran = run(base.iter().chain(further).chain(&["--format", "json"]));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        (
            answer["peak_allocated"].as_u64().unwrap(),
            answer["recording"]["at"]["sizes"].clone(),
        )
    };
    let (first, at) = peak(&[]);
    assert_eq!(at, serde_json::json!([["batch", 2], ["seq", 256]]));
    let (larger, at) = peak(&["--at", "batch=4,seq=600"]);
    assert_eq!(at, serde_json::json!([["batch", 4], ["seq", 600]]));
    assert!(larger > first);
    assert_eq!(peak(&["--batch", "4", "--seq", "600"]).0, larger);
    let ran = run(base.iter().chain(&["--seq", "300"]));
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    assert!(
        words.join(" ").contains("seq 300 (exact for 256 to 640)"),
        "{}",
        ran.stdout
    );
    let refused = run(base.iter().chain(&["--batch", "64"]));
    assert!(
        refused.refused().contains("--vary batch:2,3,4,64"),
        "{}",
        refused.stderr
    );
    let unknown = run(base.iter().chain(&["--images", "1"]));
    assert!(unknown.refused().contains("it varies batch, seq"), "{}", unknown.stderr);
}

#[test]
fn several_sizes_are_a_line_each() {
    let path = sizes();
    let points = ["--at", "batch=2", "--at", "batch=3", "--at", "batch=9", "--seq", "512"];
    let ran = run(["estimate", "--recording", &path].iter().chain(&points));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines = ran.lines();
    assert_eq!(lines.len(), 3);
    assert!(lines[0]["steady"]["peak_backward"].as_u64() < lines[1]["steady"]["peak_backward"].as_u64());
    assert!(lines[2]["error"].as_str().unwrap().contains("batch 9, seq 512"));
}

#[test]
fn the_largest_recorded_batch_is_found() {
    let path = sizes();
    let found = |gib: &str, further: &[&str]| {
        let base = ["max-batch", "--recording", &path, "--limit-gib", gib];
        let ran = run(base.iter().chain(further));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    let answer: serde_json::Value = serde_json::from_str(&found("40", &["--format", "json", "--seq", "512"])).unwrap();
    assert_eq!(
        (&answer["max_batch"], &answer["recorded"]),
        (&4.into(), &serde_json::json!([2, 4]))
    );
    assert!(
        answer["record"].as_str().unwrap().contains("--vary batch:2,3,4,"),
        "{answer}"
    );
    let none = found("1", &[]);
    assert!(none.contains("not even the smallest recorded batch"), "{none}");
    for (flags, words) in [
        (&["--batch", "2"][..], "leave it out"),
        (&["--optim", "sgd"], "own setup"),
    ] {
        let base = ["max-batch", "--recording", &path, "--limit-gib", "4"];
        let ran = run(base.iter().chain(flags));
        assert!(ran.refused().contains(words), "{flags:?}: {}", ran.stderr);
    }
    let (_folder, one) = file(&packed(&recording()));
    let ran = run(["max-batch", "--recording", one.to_str().unwrap(), "--limit-gib", "4"]);
    assert!(ran.refused().contains("holds one batch"), "{}", ran.stderr);
}

/// Compares a GPU's snapshot of GPT-2 in bf16 with a recording of the same model.
#[test]
fn a_snapshot_is_held_against_a_recording() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/");
    let [snapshot, recording] =
        ["snapshots/gpt2-bf16.pickle.gz", "recordings/gpt2-bf16-adamw.vram.gz"].map(|path| format!("{folder}{path}"));
    let base = ["diagnose", &snapshot, "--recording", &recording];
    let ran = run(base.iter().chain(&["--format", "json"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let compared = &answer["recorded"][0];
    assert!(compared["recorded_peak"].as_u64().unwrap() > 0, "{compared}");
    let told = run(base);
    assert!(
        told.stdout.contains("Recorded without a GPU against what happened"),
        "{}",
        told.stdout
    );
    let log = run(["diagnose", &recording, "--recording", &recording]);
    assert!(log.refused().contains("memory snapshots"), "{}", log.stderr);
}
