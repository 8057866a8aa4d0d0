//! Tests of the time in `estimate`: a step, several GPUs, data loading, and the cost of a run.

use serde_json::Value;

use crate::program::run;

const GPT2: [&str; 6] = ["estimate", "gpt2", "--batch", "4", "--seq", "512"];

fn answer(more: &[&str]) -> Value {
    let ran = run(GPT2.iter().chain(more).chain(&["--format", "json"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn what_a_step_waits_for_is_named_with_what_its_end_would_give() {
    let time = &answer(&["--strategy", "ddp", "--world", "4"])["time"];
    let step = number(&time["step_ms"]);
    let bottlenecks = time["bottlenecks"].as_array().expect("a list");
    let without: Vec<f64> = bottlenecks.iter().map(|b| number(&b["step_ms_without"])).collect();
    assert!(without.is_sorted() && without.iter().all(|ms| *ms <= step), "{time}");
    let named: Vec<&str> = bottlenecks.iter().filter_map(|b| b["resource"].as_str()).collect();
    for resource in ["host", "communication", "arithmetic", "memory"] {
        assert!(named.contains(&resource), "{named:?}");
    }
    let communication = &time["communication"];
    assert!(number(&communication["exposed_ms"]) <= number(&communication["total_ms"]));
    // 124,439,808 parameters in bf16: in a ring of four, each GPU sends 1.5 times that.
    assert!((number(&communication["bytes_sent"]) / (1.5 * 2.0 * 124_439_808.0) - 1.0).abs() < 0.01);
    // Four GPUs, four samples each.
    assert!((number(&time["samples_per_s"]) * step / 1e3 - 16.0).abs() < 1e-6);
    let roof = time["roofline"].as_array().expect("a list");
    assert!(roof.iter().all(|p| number(&p["share_of_roof"]) < 1.3), "{roof:?}");
}

#[test]
fn a_step_on_one_gpu_has_an_interval() {
    let ends = |card: &str| {
        let ran = run([
            "estimate", "gpt2", "--batch", "64", "--seq", "512", "--gpu", card, "--format", "json",
        ]);
        let told: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        let time = &told["time"];
        let [low, high] = [0, 1].map(|end| number(&time["step_ms_interval"][end]));
        let step = number(&time["step_ms"]);
        assert!(low < step && step < high, "{time}");
        [low / step, high / step]
    };
    // A card that was not measured is known less well than one that was, and one of another generation still less.
    let [h200, h100, a100] = ["h200", "h100", "a100-80g"].map(ends);
    assert!(
        h100[1] > h200[1] && a100[1] > h100[1] && h100[0] < h200[0],
        "{h200:?} {h100:?} {a100:?}"
    );
    let several = answer(&["--strategy", "ddp", "--world", "4"]);
    assert!(several["time"]["step_ms_interval"].is_null());
    let said = run(GPT2.iter().chain(&["--gpu", "h100"]));
    assert!(said.stdout.contains("nine times in ten"), "{}", said.stdout);
    assert!(said.stdout.contains("carried to H100 SXM"), "{}", said.stdout);
}

#[test]
fn a_slow_link_is_waited_for() {
    let exposed = |more: &[&str]| {
        let strategy = ["--strategy", "ddp", "--world", "8"];
        let flags: Vec<&str> = strategy.iter().chain(more).copied().collect();
        number(&answer(&flags)["time"]["communication"]["exposed_ms"])
    };
    assert!(exposed(&["--link", "3"]) > exposed(&[]) + 50.0);
}

#[test]
fn data_that_comes_too_slowly_is_the_bottleneck() {
    let slow = answer(&["--data", "read=20,decode=60,copy=1,workers=2"]);
    let (time, data) = (&slow["time"], &slow["time"]["data"]);
    // Two workers take 40 ms for each sample, with four samples per step.
    assert!((number(&data["interval_ms"]) - 160.0).abs() < 0.1, "{data}");
    assert!((number(&data["wait_ms"]) + number(&time["step_ms"]) - 160.0).abs() < 0.1);
    assert_eq!(time["bottlenecks"][0]["resource"], "data");
    let best = data["best_workers"].as_u64().expect("a number");
    let fed = answer(&["--data", &format!("read=20,decode=60,copy=1,workers={best}")]);
    assert!(
        number(&fed["time"]["data"]["idle_share"]) < 0.05,
        "{best}: {}",
        fed["time"]["data"]
    );

    let ran = run(GPT2.iter().chain(&["--data", "read=20,decode=60,copy=1,workers=2"]));
    for wanted in ["Bottleneck: data", "worker 2", "loop", "# step", "wait for data"] {
        assert!(ran.stdout.contains(wanted), "{wanted}: {}", ran.stdout);
    }
}

#[test]
fn a_run_is_hours_times_gpus_times_price() {
    let flags = [
        "--strategy",
        "ddp",
        "--samples",
        "1000000",
        "--price-per-hour",
        "2.5",
        "--watts",
        "700",
    ];
    let answer = answer(&flags);
    let (time, run) = (&answer["time"], &answer["time"]["run"]);
    let hours = 1e6 / number(&time["samples_per_s"]) / 3600.0;
    assert!((number(&run["hours"]) / hours - 1.0).abs() < 1e-9);
    assert!((number(&run["cost"]) / (hours * 2.0 * 2.5) - 1.0).abs() < 1e-9);
    assert!((number(&run["kwh_at_most"]) / (hours * 2.0 * 0.7) - 1.0).abs() < 1e-9);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (flags, says) in [
        (["--price-per-hour", "2"].as_slice(), "--samples"),
        (&["--link", "0"], "more than 0 GB/s"),
        (&["--data", "dekode=3"], "they are read, decode"),
        (&["--samples", "0"], "at least one"),
    ] {
        let ran = run(GPT2.iter().chain(flags));
        assert_eq!(ran.code, Some(2), "{flags:?}: {}", ran.stdout);
        assert!(ran.stderr.contains(says), "{flags:?}: {}", ran.stderr);
    }
}

#[test]
fn a_record_by_another_name_and_several_gpus_in_cases() {
    let case = r#"{"model": "gpt2", "batch": 2, "seq": 256, "strategy": "fsdp"}"#;
    let ran = run(["estimate", "--case", case, "--format", "jsonl"]);
    let line: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    for phase in ["forward", "backward", "optimizer"] {
        assert!(number(&line["ms"][phase]) > 0.0, "{line}");
    }
    let help = run(["estimate", "--help"]).stdout;
    assert!(help.contains("--record"), "{help}");
}
