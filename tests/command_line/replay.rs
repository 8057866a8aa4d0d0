//! Tests of `vramscope replay`: its JSON format, and its messages for invalid traces.

use crate::program::{run, run_on};

const TRACE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/data/traces/gpt2-bf16.trace.json.gz"
);

const SNAPSHOT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/data/snapshots/gpt2-bf16.pickle.gz"
);

#[test]
fn a_gzipped_trace_gives_the_four_numbers() {
    let ran = run(["replay", TRACE, "--format", "jsonl"]);
    let expected =
        "{\"allocated_peak\":2013018112,\"reserved_peak\":2227175424,\"allocs\":2376,\"address_mismatches\":0}\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), expected), "{}", ran.stderr);
}

/// A snapshot of the run, written by `torch.cuda.memory._dump_snapshot`, gives the same numbers as its trace.
#[test]
fn a_snapshot_gives_the_same_numbers() {
    let ran = run(["replay", SNAPSHOT, "--format", "jsonl"]);
    let of_trace = run(["replay", TRACE, "--format", "jsonl"]);
    assert_eq!((ran.code, ran.stdout), (Some(0), of_trace.stdout), "{}", ran.stderr);
    let elsewhere = run(["replay", SNAPSHOT, "--device", "3"]);
    assert_eq!(elsewhere.code, Some(2));
    assert!(
        elsewhere.stderr.contains("devices with events: [0]"),
        "{}",
        elsewhere.stderr
    );
}

#[test]
fn a_pickle_that_runs_code_is_refused() {
    let ran = run_on(["replay", "-"], b"\x80\x04\x8c\x05posix\x8c\x06system\x93.");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("STACK_GLOBAL"), "{}", ran.stderr);
}

#[test]
fn people_are_told_whether_it_is_exact() {
    let ran = run(["replay", TRACE]);
    assert!(
        ran.stdout
            .contains("2376 allocations, every block where PyTorch put it"),
        "{}",
        ran.stdout
    );
    assert_eq!(ran.stdout.matches("as recorded").count(), 2, "{}", ran.stdout);
}

#[test]
fn a_block_elsewhere_is_counted() {
    let trace = r#"{"events":[["segment_alloc",4096,2097152,0],["alloc",4096,80,0],["alloc",8192,80,0]]}"#;
    let ran = run_on(["replay", "-", "--format", "jsonl"], trace);
    assert!(
        ran.stdout.contains(r#""allocs":2,"address_mismatches":1"#),
        "{}",
        ran.stdout
    );
}

#[test]
fn what_is_no_trace_is_refused() {
    for input in [
        "",
        "{}",
        "[1]",
        r#"{"events":[["alloc",1]]}"#,
        r#"{"events":[["explode",1,2,3]]}"#,
        "\u{1f}\u{8b}",
    ] {
        let ran = run_on(["replay", "-"], input);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{input:?}");
        assert!(
            ran.stderr.contains("[action, address, bytes, stream]"),
            "{input:?}: {}",
            ran.stderr
        );
    }
    let cut_short = run_on(["replay", "-"], [0x1f, 0x8b, 8]);
    assert_eq!(cut_short.code, Some(2), "{}", cut_short.stderr);
    let missing = run(["replay", "no-such-file"]);
    assert!(
        missing.code == Some(2) && missing.stderr.contains("no-such-file"),
        "{}",
        missing.stderr
    );
}
