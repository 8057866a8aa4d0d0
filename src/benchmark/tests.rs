//! Tests of records: schema, reading, and comparison with published numbers.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Recorded benchmarks in the repository, as pairs of file name and text.
fn kept() -> Vec<(String, String)> {
    let folder = repository().join("tests/data/records");
    let files = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|file| file.unwrap().path());
    let json = files.filter(|path| path.extension().is_some_and(|e| e == "json"));
    let named = json.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path));
    let mut records: Vec<_> = named
        .map(|(name, path)| (name, fs::read_to_string(path).unwrap()))
        .collect();
    records.sort();
    assert!(records.iter().any(|(name, _)| name == "example.json"));
    records
}

fn example() -> String {
    kept().into_iter().find(|(name, _)| name == "example.json").unwrap().1
}

fn faults(record: &Value) -> Vec<String> {
    let schema = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    validator
        .iter_errors(record)
        .map(|e| format!("{e} at {}", e.instance_path()))
        .collect()
}

/// `UPDATE_SCHEMA=1 cargo test -p vramscope-benchmark published` rewrites the schema.
#[test]
fn the_published_schema_is_that_of_the_types() {
    let mut schema = serde_json::to_value(schemars::schema_for!(Record)).unwrap();
    schema["title"] = json!("A record of `vramscope bench`");
    let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schema.json");
    if std::env::var("UPDATE_SCHEMA").is_ok() {
        fs::write(&path, &text).unwrap();
    }
    let published = fs::read_to_string(&path).unwrap();
    assert!(
        published == text,
        "the published schema is old: run with UPDATE_SCHEMA=1"
    );
}

#[test]
fn every_kept_record_is_valid_and_survives() {
    for (name, text) in kept() {
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(faults(&value), Vec::<String>::new(), "{name}");
        let record = Record::read(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(unknown_fields(&text, &record), Vec::<String>::new(), "{name}");
        let again = Record::read(&serde_json::to_string(&record).unwrap()).expect("it was written by us");
        assert_eq!(record, again, "{name}");
    }
}

#[test]
fn every_summary_is_that_of_its_samples() {
    for (name, text) in kept() {
        let record = Record::read(&text).unwrap();
        for measured in record.results.iter().filter_map(Measurement::measured) {
            assert_eq!(measured.summary, Summary::of(&measured.samples_ns), "{name}");
        }
    }
}

#[test]
fn older_records_become_valid_ones_of_today() {
    let lines = fs::read_to_string(repository().join("tests/data/truth/attention.jsonl")).unwrap();
    let entries: Vec<&str> = lines.lines().filter(|line| line.contains("\"impl\"")).collect();
    let record = Record::read(&entries.join("\n")).expect("an older record");
    assert_eq!(record.results.len(), entries.len());
    assert_eq!(faults(&serde_json::to_value(&record).unwrap()), Vec::<String>::new());
    assert!(MeasuredPoint::all(&record).len() > 300);
}

/// Compares extra memory in the H200's record with PyTorch's allocator, for the same algorithms on the same card:
/// within 2%.
#[test]
fn extra_bytes_are_those_that_pytorch_measured() {
    let measured = kept()
        .into_iter()
        .find(|(name, _)| name == "h200.json")
        .expect("it is kept")
        .1;
    let measured = Record::read(&measured).unwrap();
    let lines = fs::read_to_string(repository().join("tests/data/truth/attention.jsonl")).unwrap();
    let entries: Vec<&str> = lines.lines().filter(|line| line.contains("\"impl\"")).collect();
    let truth = Record::read(&entries.join("\n")).unwrap();
    let peak = |m: &Measurement| m.measured()?.peak_extra_bytes;
    let mut compared = 0;
    for theirs in &truth.results {
        use vramscope_engine::attention::Algorithm::{Chunked, Sliding, TopK};
        // Algorithms that bench implements itself differ from PyTorch's: a threshold instead of sorted values and
        // indices; gradients of blocks accumulated in place instead of tensors as long as all keys.
        let trains = theirs.kernel.pass == Some(Pass::ForwardBackward);
        match theirs.kernel.algorithm {
            Some(TopK) => continue,
            Some(Sliding | Chunked) if trains => continue,
            _ => {}
        }
        let ours = measured.result_of(&theirs.kernel).and_then(peak);
        if let (Some(ours), Some(theirs)) = (ours, peak(theirs)) {
            let error = ours as f64 / theirs as f64 - 1.0;
            assert!(error.abs() < 0.02, "{ours} and {theirs}");
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared} compared");
}

#[test]
fn the_schema_refuses_what_is_no_record() {
    for broken in [
        json!({}),
        json!({"schema_version": 1, "tool": {"name": "v", "version": "1"}, "device": {"name": "x", "backend": "cuda"}}),
    ] {
        assert!(!faults(&broken).is_empty(), "{broken}");
    }
    let mut record: Value = serde_json::from_str(&example()).unwrap();
    record["results"][0]["kernel"]["class"] = json!("gem");
    assert!(!faults(&record).is_empty());
}

#[test]
fn what_a_newer_writer_added_is_named() {
    let mut value: Value = serde_json::from_str(&example()).unwrap();
    value["fleet"] = json!(3);
    value["results"][1]["kernel"]["sparsity"] = json!("2:4");
    let text = value.to_string();
    let record = Record::read(&text).expect("it is still a record");
    assert_eq!(unknown_fields(&text, &record), ["results[1].kernel.sparsity", "fleet"]);
}

#[test]
fn a_record_of_version_1_is_read_as_it_is() {
    let text = example();
    assert!(
        text.contains("\"schema_version\": 1"),
        "the kept example is of version 1"
    );
    let record = Record::read(&text).expect("an older record");
    let newer = Record::read(&text.replace("\"schema_version\": 1", "\"schema_version\": 2")).expect("today's");
    assert_eq!(record.results, newer.results);
}

#[test]
fn classes_have_names_of_their_own_and_the_record_s() {
    let mut names: Vec<_> = Class::ALL.iter().map(|class| class.name()).collect();
    for class in Class::ALL {
        assert_eq!(serde_json::to_value(class).unwrap(), json!(class.name()));
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Class::ALL.len());
}

/// Factors of nccl-tests, `doc/PERFORMANCE.md`: 2 · (n − 1) ÷ n for all-reduce, half of that for reduce-scatter and
/// all-gather.
#[test]
fn bus_bandwidth_is_what_passes_a_link() {
    let kernel = Kernel {
        shape: Shape {
            bytes: Some(1 << 30),
            devices: Some(8),
            ..Shape::default()
        },
        ..Kernel::of(Class::AllReduce)
    };
    let mut result = Record::read(&example()).unwrap().results[0].clone();
    let seconds = result.time().expect("it was measured").get();
    result.kernel = kernel;
    let algorithm = result.algorithm_bytes_per_s().expect("it has a size");
    assert!((algorithm * seconds - f64::from(1 << 30)).abs() < 1.0);
    assert_eq!(result.bus_bytes_per_s(), Some(algorithm * 1.75));
    assert_eq!(Class::AllGather.bus_share(8), 0.875);
    assert_eq!(Class::Broadcast.bus_share(8), 1.0);
}

#[test]
fn what_is_wrong_is_named() {
    let error = |text: &str| Record::read(text).expect_err("it is no record").0;
    assert!(error("hello").starts_with("line 1:"));
    assert!(error(r#"{"attention":3}"#).contains("invalid type"));
    assert!(error(r#"{"attention":[{"variant":"flush","length":1,"ms":1}]}"#).contains("no variant is called"));
    assert!(error(r#"{"attention":[{"variant":"flash","ms":1}]}"#).contains("entry 1: `length`"));
    assert!(error(r#"{"attention":[{"variant":"flash","length":9}]}"#).contains("neither `ms`"));
    assert!(error(r#"{"attention":[{"variant":"flash","length":9,"ms":-1}]}"#).contains("`ms` is no time"));

    let changed = |change: fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(&example()).unwrap();
        change(&mut value);
        error(&value.to_string())
    };
    assert!(changed(|v| v["schema_version"] = json!(5)).contains("reads up to 4: update it"));
    assert!(changed(|v| v["results"][0]["kernel"]["shape"]["n"] = Value::Null).contains("does not state its `n`"));
    let failed = |v: &mut Value| v["results"][0]["outcome"]["measured"]["check"]["passed"] = json!(false);
    assert!(changed(failed).contains("although its check failed"));
    assert!(changed(|v| v["device"] = Value::Null).contains("not as it should be"));
}

#[test]
fn a_result_replaces_the_one_of_the_same_kernel() {
    let mut record = Record::read(&example()).unwrap();
    let mut result = record.results[0].clone();
    result.bytes = Some(1);
    let count = record.results.len();
    record.put(result.clone());
    assert_eq!(record.results.len(), count);
    assert_eq!(record.result_of(&result.kernel).unwrap().bytes, Some(1));
    result.kernel.layout = Some(Layout::Tn);
    record.put(result);
    assert_eq!(record.results.len(), count + 1);
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in "\\PC{0,200}") {
        drop(Record::read(&text));
    }

    #[test]
    fn the_summary_lies_within_its_samples(samples in prop::collection::vec(0u64..1 << 40, 1..60)) {
        let summary = Summary::of(&samples).expect("there are samples");
        prop_assert!(summary.min_ns <= summary.median_ns && summary.median_ns <= summary.max_ns);
        let far = summary.outliers.expect("searched").places;
        prop_assert!(far.len() * 2 <= samples.len());
    }
}
