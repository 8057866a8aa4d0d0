//! Tests of `bench` without a visible GPU: its messages, and its handling of existing records.

pub mod fake;
#[cfg(target_os = "linux")]
mod interrupted;
#[cfg(target_os = "linux")]
mod machines;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Ran, finish, vramscope};

/// Runs `bench` with every card hidden.
fn bench(args: &[&str]) -> Ran {
    finish(
        vramscope().arg("bench").args(args).env("CUDA_VISIBLE_DEVICES", "-1"),
        b"",
    )
}

fn record(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/records");
    folder.join(name).display().to_string()
}

fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn the_list_says_what_is_missing_and_what_would_run() {
    let ran = bench(&["--list"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    for told in [
        "No GPU can be measured here",
        "NVIDIA driver",
        "Vulkan, Metal or DirectX 12",
        "kernels would run; --all names each",
        "gemm",
        "bf16 fp16 tf32 fp32",
    ] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
    assert!(ran.stdout.lines().count() < 80, "a line for each class");
    let ran = bench(&["--list", "--all"]);
    for told in [
        "gemm bf16 8192x8192x8192 nt",
        "attention cudnn bf16 1x32x8192x128 backward",
        "layer_norm bf16 4096x4096 backward frozen",
    ] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
    let ran = bench(&["--list", "--quick", "adamw", "--format", "json"]);
    let seen: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(
        seen["kernels"],
        serde_json::json!(["adamw fp32 67108864", "adamw bf16 67108864"])
    );
    assert!(seen["device"].is_null() && seen["reason"].is_string());
}

#[test]
fn without_a_gpu_nothing_is_measured_and_no_file_is_left() {
    let path = scratch("none.json");
    let ran = bench(&["--quick", "--output", path.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(
        ran.stderr.starts_with("error: no GPU can be measured here"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("--list") && !path.exists());
}

#[test]
fn a_kernel_that_does_not_exist_is_refused() {
    let message = bench(&["gemm", "fourier"]);
    assert_eq!(message.code, Some(1), "gemm is one");
    let ran = bench(&["fourier"]);
    let message = ran.refused();
    assert!(message.contains("fourier") && message.contains("--list"), "{message}");
}

#[test]
fn a_record_is_shown_with_every_outcome() {
    let ran = bench(&["--show", &record("example.json")]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for told in [
        "NVIDIA H200, 140.40 GiB, 132 multiprocessors",
        "warning: the multiprocessors' clock fell",
        "The run was interrupted",
        "1.393 ms",
        "789.3 TFLOP/s",
        "does not fit: needs 768.00 GiB",
        "wrong result: its time does not count",
        "failed: the driver refused",
        "2 measured, 1 of them compared",
    ] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
}

#[test]
fn a_record_comes_out_as_json_and_as_lines() {
    let path = record("example.json");
    let ran = bench(&["--show", &path, "--format", "json"]);
    let given: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let shown: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(shown, given);
    let ran = bench(&["--show", &path, "--format", "csv"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 1 + given["results"].as_array().unwrap().len());
    assert!(lines[0].starts_with("kernel,class,precision,outcome,median_ns"));
    assert!(lines[1].starts_with("gemm bf16 8192x8192x8192 nt,gemm,bf16,measured,1393000,"));
    assert!(lines[1].contains("\"algorithm 66, tile 128x256, stages 36, split 1\""));
}

#[test]
fn a_comparison_names_what_changed_beyond_noise() {
    let path = scratch("slower.json");
    let text = std::fs::read_to_string(record("example.json")).unwrap();
    let mut slower: Value = serde_json::from_str(&text).unwrap();
    slower["results"][0]["outcome"]["measured"]["summary"]["median_ns"] = 1_600_000.into();
    slower["device"]["driver"] = "590.1".into();
    std::fs::write(&path, slower.to_string()).unwrap();
    let ran = bench(&["--show", path.to_str().unwrap(), "--compare", &record("example.json")]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for told in [
        "+14.9%",
        "1 changed, 5 as before",
        "driver: 580.159.04 before, 590.1 now",
    ] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
}

#[test]
fn what_is_no_record_is_refused() {
    let refused = |name: &str, text: &str, word: &str| {
        let path = scratch(name);
        std::fs::write(&path, text).unwrap();
        let ran = bench(&["--show", path.to_str().unwrap()]);
        assert!(ran.refused().contains(word), "{}", ran.stderr);
    };
    refused("newer.json", r#"{"schema_version": 9}"#, "update it");
    refused("words.json", "hello", "line 1");
    let ran = bench(&["--show", "nowhere.json"]);
    assert!(ran.refused().contains("cannot read nowhere.json"), "{}", ran.stderr);
}

#[test]
fn a_field_that_is_not_known_is_named() {
    let path = scratch("unknown.json");
    let text = std::fs::read_to_string(record("example.json")).unwrap();
    let mut newer: Value = serde_json::from_str(&text).unwrap();
    newer["device"]["fans"] = 3.into();
    std::fs::write(&path, newer.to_string()).unwrap();
    let ran = bench(&["--show", path.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("device.fans"), "{}", ran.stderr);
}
