//! Tests of `bench` on defective machines: each run reports the defect, and leaves a valid record of its measurements.
//! The machines consist of fake versions of NVIDIA's libraries.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use vramscope_benchmark::{Outcome, Record};

use super::fake::{Fake, Machine};
use crate::program::{Ran, finish};

/// A driver with its management library, and the runtime compiler.
pub(super) const WHOLE: [Fake; 3] = [Fake::Driver, Fake::Nvml, Fake::Nvrtc];

pub(super) fn ran(mut command: Command) -> Ran {
    finish(&mut command, b"")
}

/// Reads the record of a run.
pub(super) fn record(path: &Path) -> Record {
    let text = std::fs::read_to_string(path).expect("a record is there");
    Record::read(&text).expect("it is valid")
}

fn measured(record: &Record) -> usize {
    record
        .results
        .iter()
        .filter(|result| result.measured().is_some())
        .count()
}

/// Asserts that nothing was measured and no record written, for the reasons given.
fn refused(machine: &Machine, why: &[&str]) {
    let path = machine.file("record.json");
    let seen = ran(machine.bench(&["--quick", "--output", path.to_str().unwrap()]));
    assert_eq!((seen.code, seen.stdout.as_str()), (Some(1), ""), "{}", seen.stderr);
    assert!(!path.exists());
    for told in ["error: no GPU can be measured here", "--list"].iter().chain(why) {
        assert!(seen.stderr.contains(told), "{told}: {}", seen.stderr);
    }
    let listed = ran(machine.bench(&["--list"]));
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    for told in why {
        assert!(listed.stdout.contains(told), "{told}: {}", listed.stdout);
    }
}

#[test]
fn no_driver() {
    refused(
        &Machine::with("no-driver", &[]),
        &["not found: install NVIDIA's driver"],
    );
}

#[test]
fn a_driver_without_a_card() {
    let machine = Machine::with("no-card", &WHOLE);
    refused(&machine.set("FAKE_CARDS", 0), &["sees no card", "CUDA_VISIBLE_DEVICES"]);
}

#[test]
fn a_driver_that_does_not_start() {
    let machine = Machine::with("no-start", &WHOLE).set("FAKE_INIT", 100);
    refused(&machine, &["does not start: no CUDA-capable device is detected"]);
}

#[test]
fn a_driver_for_an_old_cuda() {
    let machine = Machine::with("old-cuda", &WHOLE).set("FAKE_CUDA", 10_020);
    refused(&machine, &["for CUDA 10.2; 11.0 or newer is needed: update it"]);
}

#[test]
fn a_driver_that_lacks_a_function() {
    let machine = Machine::with("old-driver", &[Fake::OldDriver, Fake::Nvml, Fake::Nvrtc]);
    refused(&machine, &["too old: `cuDeviceCanAccessPeer` is missing"]);
}

#[test]
fn missing_libraries_are_named_and_the_rest_is_measured() {
    let machine = Machine::with("missing", &[Fake::Driver, Fake::Nvrtc]);
    let path = machine.file("record.json");
    let names = [
        "=device_copy 64.0KiB",
        "=gemm bf16 256x256x256 nt",
        "=attention cudnn bf16 1x16x128x64 forward",
    ];
    let mut args = names.to_vec();
    args.extend(["--output", path.to_str().unwrap()]);
    let seen = ran(machine.bench(&args));
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    for told in ["cuBLASLt: not found", "cuDNN: not found", "LD_LIBRARY_PATH"] {
        assert!(seen.stdout.contains(told), "{told}: {}", seen.stdout);
    }
    let record = record(&path);
    assert!(record.run.complete && record.device.driver.is_none(), "without NVML");
    assert_eq!((record.results.len(), measured(&record)), (3, 1));
    for result in &record.results[1..] {
        assert!(matches!(result.outcome, Outcome::Unsupported { .. }), "{result:?}");
    }
}

#[test]
fn a_library_that_does_not_load_says_so() {
    let machine = Machine::with("broken", &[Fake::Driver, Fake::BrokenNvrtc]);
    let path = machine.file("record.json");
    let seen = ran(machine.bench(&["=device_copy 64.0KiB", "--output", path.to_str().unwrap()]));
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert!(
        seen.stdout.contains("NVRTC: found, but it does not load"),
        "{}",
        seen.stdout
    );
    assert_eq!(measured(&record(&path)), 0);
}

#[test]
fn a_compiler_that_does_not_know_the_card_says_so() {
    let machine = Machine::with("no-compile", &WHOLE).set("FAKE_NO_COMPILE", 1);
    let path = machine.file("record.json");
    let seen = ran(machine.bench(&["=add fp32 4096", "--output", path.to_str().unwrap()]));
    assert!(seen.stderr.contains("NVRTC: does not compile"), "{}", seen.stderr);
    assert!(matches!(record(&path).results[0].outcome, Outcome::Failed { .. }));
}

#[test]
fn a_card_of_two_gigabytes_measures_what_fits() {
    let machine = Machine::with("small", &WHOLE).set("FAKE_MEMORY", 2_u64 << 30);
    let listed = ran(machine.bench(&["--list", "--format", "json"]));
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let names: Vec<&str> = listed["kernels"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(Value::as_str)
        .collect();
    assert!(
        names.contains(&"device_copy 64.0KiB") && !names.contains(&"device_copy 1.00GiB"),
        "{names:?}"
    );
    assert!(names.contains(&"attention standard bf16 1x32x16384x128 forward"));
    let path = machine.file("record.json");
    let args = [
        "=device_copy 64.0MiB",
        "=attention flash bf16 1x32x16384x128 forward",
        "--output",
        path.to_str().unwrap(),
    ];
    let seen = ran(machine.bench(&args));
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let copied = record(&path).results[0].clone();
    assert!(copied.measured().is_some(), "{copied:?}");
}

#[test]
fn what_does_not_fit_is_a_result() {
    // This card only has memory for the smallest lengths of attention.
    let machine = Machine::with("tiny", &WHOLE).set("FAKE_MEMORY", 256_u64 << 20);
    let path = machine.file("record.json");
    let args = [
        "=attention standard bf16 1x32x16384x128 forward",
        "--output",
        path.to_str().unwrap(),
    ];
    let seen = ran(machine.bench(&args));
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert!(seen.stdout.contains("does not fit"), "{}", seen.stdout);
    let Outcome::OutOfMemory {
        needed_bytes,
        free_bytes,
    } = record(&path).results[0].outcome
    else {
        panic!("{:?}", record(&path).results[0].outcome);
    };
    assert!(needed_bytes > free_bytes && free_bytes < 256 << 20);
}

#[test]
fn wrong_results_give_no_time() {
    let machine = Machine::with("wrong", &WHOLE).set("FAKE_WRONG", 1);
    let path = machine.file("record.json");
    let seen = ran(machine.bench(&["=add fp32 4096", "=scale bf16 4096", "--output", path.to_str().unwrap()]));
    assert!(
        seen.stderr.contains("wrong result, its time does not count"),
        "{}",
        seen.stderr
    );
    let record = record(&path);
    assert_eq!((record.results.len(), measured(&record)), (2, 0));
    assert!(
        record
            .results
            .iter()
            .all(|r| matches!(&r.outcome, Outcome::FailedCheck(check) if !check.passed))
    );
}

#[test]
fn a_card_that_is_lost_ends_in_results_that_say_so() {
    let machine = Machine::with("lost", &WHOLE).set("FAKE_LOST", 1500);
    let path = machine.file("record.json");
    let seen = ran(machine.bench(&["=launch", "=add fp32 4096", "--output", path.to_str().unwrap()]));
    assert!(seen.stderr.contains("unspecified launch failure"), "{}", seen.stderr);
    let record = record(&path);
    assert_eq!(record.results.len(), 2);
    assert!(
        record
            .results
            .iter()
            .any(|result| matches!(result.outcome, Outcome::Failed { .. }))
    );
}

#[test]
fn other_processes_on_the_card_are_told() {
    let machine = Machine::with("shared", &WHOLE).set("FAKE_OTHERS", 2);
    let path = machine.file("record.json");
    let seen = ran(machine.bench(&["=device_copy 64.0KiB", "--output", path.to_str().unwrap()]));
    assert!(
        seen.stdout.contains("2 other processes computed on the card"),
        "{}",
        seen.stdout
    );
    assert_eq!(record(&path).conditions.other_processes, Some(2));
}

#[test]
fn one_card_says_that_two_are_needed() {
    let machine = Machine::with("alone", &[Fake::Driver, Fake::Nvml, Fake::Nvrtc, Fake::Nccl]);
    let path = machine.file("record.json");
    let seen = ran(machine.bench(&["all_reduce", "peer_copy", "--output", path.to_str().unwrap()]));
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert!(
        seen.stdout.contains("needs two GPUs; this process sees one"),
        "{}",
        seen.stdout
    );
    assert!(
        record(&path)
            .results
            .iter()
            .all(|r| matches!(r.outcome, Outcome::Unsupported { .. }))
    );
}

#[test]
fn collectives_and_copies_between_three_cards_are_right() {
    let libraries = [Fake::Driver, Fake::Nvml, Fake::Nvrtc, Fake::Nccl];
    let machine = Machine::with("three", &libraries).set("FAKE_CARDS", 3);
    let path = machine.file("record.json");
    let words = [
        "all_reduce bf16 16.0KiB",
        "all_reduce fp32 16.0KiB",
        "all_gather 16.0KiB",
        "reduce_scatter 16.0KiB",
        "broadcast 16.0KiB",
        "send_receive 16.0KiB",
        "peer_copy 1.0MiB",
    ];
    let mut args = words.to_vec();
    args.extend(["--output", path.to_str().unwrap()]);
    let seen = ran(machine.bench(&args));
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let record = record(&path);
    // Two cards and three sizes of each collective; three directions, with and without direct access between the cards.
    assert_eq!(
        (record.results.len(), measured(&record)),
        (6 * 2 + 6, 18),
        "{}",
        seen.stdout
    );
    assert!(
        record
            .results
            .iter()
            .all(|r| r.measured().is_some_and(|m| m.check.is_some()))
    );
    assert!(
        seen.stdout.contains("bus") && seen.stdout.contains("NCCL 2.28.9"),
        "{}",
        seen.stdout
    );
}

#[test]
fn cards_that_do_not_reach_each_other_are_copied_between_by_the_host() {
    let machine = Machine::with("apart", &WHOLE).set("FAKE_CARDS", 2).set("FAKE_PEERS", 0);
    let path = machine.file("record.json");
    let seen = ran(machine.bench(&[
        "peer_copy 1.0MiB forth",
        "all_reduce 16.0KiB",
        "--output",
        path.to_str().unwrap(),
    ]));
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    for told in ["do not reach each other's memory", "NCCL: not found"] {
        assert!(seen.stdout.contains(told), "{told}: {}", seen.stdout);
    }
    assert_eq!(measured(&record(&path)), 1);
}

#[test]
fn a_collective_library_that_fails_says_how_to_learn_more() {
    let libraries = [Fake::Driver, Fake::Nvrtc, Fake::Nccl];
    let machine = Machine::with("nccl", &libraries)
        .set("FAKE_CARDS", 2)
        .set("FAKE_NCCL_FAILS", 1);
    let path = machine.file("record.json");
    let seen = ran(machine.bench(&["all_reduce bf16 16.0KiB", "--output", path.to_str().unwrap()]));
    assert!(
        seen.stderr.contains("internal error") && seen.stderr.contains("NCCL_DEBUG=WARN"),
        "{}",
        seen.stderr
    );
}
