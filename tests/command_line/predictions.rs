//! Tests of `estimate` for one setup, in each output format.

use serde_json::Value;

use crate::program::{Ran, finish, run, run_on, vramscope};

const GPT2: [&str; 6] = ["estimate", "gpt2", "--batch", "8", "--seq", "1024"];

fn gpt2(more: &[&str]) -> Ran {
    let ran = run(GPT2.iter().chain(more));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    ran
}

fn bytes(value: &Value, key: &str) -> u64 {
    value[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} is a whole number in {value}"))
}

#[test]
fn a_prediction_line_keeps_its_contract() {
    let line = gpt2(&["--format", "jsonl"]).lines().remove(0);
    let keys: Vec<&str> = line
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "i",
        "params",
        "trainable",
        "after_model",
        "steady",
        "peak_allocated",
        "peak_reserved",
        "reserved",
        "outside_torch",
        "warnings",
        "ms",
        "grade",
        "not_this_run",
    ];
    assert_eq!(keys, expected);
    assert_eq!(bytes(&line, "params"), 124_439_808);
    let steady = &line["steady"];
    for mark in ["before_forward", "after_forward", "after_backward", "end"] {
        assert!(bytes(steady, mark) > 0, "{mark}");
    }
    let peaks = ["peak_forward", "peak_backward", "peak_optimizer"].map(|peak| bytes(steady, peak));
    assert_eq!(peaks.into_iter().max(), Some(bytes(&line, "peak_allocated")));
    assert!(bytes(&line, "peak_reserved") >= bytes(&line, "peak_allocated"));
}

#[test]
fn the_parts_of_the_breakdown_add_up_to_the_peak() {
    let answer: Value = serde_json::from_str(&gpt2(&["--format", "json"]).stdout).expect("a document");
    let breakdown = &answer["breakdown"];
    assert_eq!(breakdown["bytes"], answer["peak_allocated"]);
    assert_eq!(leaves(breakdown), bytes(&answer, "peak_allocated"));
}

/// Sum of the bytes of all leaves.
fn leaves(node: &Value) -> u64 {
    match node["children"].as_array().map(Vec::as_slice) {
        Some([]) | None => bytes(node, "bytes"),
        Some(children) => children.iter().map(leaves).sum(),
    }
}

#[test]
fn text_tells_the_figures_of_the_json() {
    let text = gpt2(&["--gpu", "RTX 4090"]).stdout;
    let answer: Value = serde_json::from_str(&gpt2(&["--gpu", "RTX 4090", "--format", "json"]).stdout).expect("json");
    let gib = |value: &Value| format!("{:.2} GiB", value.as_u64().expect("bytes") as f64 / f64::from(1 << 30));
    let (steady, target) = (&answer["steady"], &answer["target"]);
    for (label, figure) in [
        ("forward", &steady["peak_forward"]),
        ("backward", &steady["peak_backward"]),
        ("optimizer", &steady["peak_optimizer"]),
        ("reserved by PyTorch", &answer["peak_reserved"]),
        ("needs", &target["needed"]),
        ("on the card", &target["needed"]),
    ] {
        let figure = gib(figure);
        let told = text.lines().any(|line| line.contains(label) && line.contains(&figure));
        assert!(told, "no line tells {label} {figure}: {text}");
    }
}

#[test]
fn the_verdict_follows_the_card() {
    for (gpu, verdict) in [("B200", "fits"), ("RTX 3070", "oom")] {
        let answer: Value = serde_json::from_str(&gpt2(&["--gpu", gpu, "--format", "json"]).stdout).expect(gpu);
        assert_eq!(answer["target"]["verdict"], verdict, "{gpu}");
        assert_eq!(answer["target"]["name"], gpu);
    }
}

#[test]
fn a_limit_just_above_the_need_is_tight_and_one_below_the_tensors_is_out_of_memory() {
    let line = gpt2(&["--format", "jsonl"]).lines().remove(0);
    let gib = |bytes: u64, factor: f64| format!("{}", bytes as f64 * factor / f64::from(1 << 30));
    for (limit, verdict) in [
        (gib(bytes(&line, "peak_reserved"), 1.10), "fits"),
        (gib(bytes(&line, "peak_reserved"), 1.02), "tight"),
        (gib(bytes(&line, "peak_allocated"), 0.90), "oom"),
    ] {
        let answer = gpt2(&["--limit-gib", &limit, "--format", "json"]).stdout;
        let answer: Value = serde_json::from_str(&answer).expect("a document");
        assert_eq!(answer["target"]["verdict"], verdict, "{limit}");
    }
}

#[test]
fn a_limit_below_a_cards_memory_counts_and_one_beyond_it_changes_nothing() {
    let target = |flags: &[&str]| {
        let answer = gpt2(&[&["--gpu", "RTX 4090", "--format", "json"], flags].concat()).stdout;
        serde_json::from_str::<Value>(&answer).expect("a document")["target"].clone()
    };
    let limited = target(&["--limit-gib", "2.5"]);
    assert_eq!(
        (&limited["name"], &limited["room"]),
        (&"allocator limit".into(), &(5u64 << 29).into())
    );
    assert_eq!(limited["outside"], Value::Array(Vec::new()));
    assert_eq!(target(&["--limit-gib", "900"]), target(&[]));
}

#[test]
fn flags_case_and_cases_are_three_ways_to_say_the_same() {
    let by_flags = gpt2(&["--optim", "sgd", "--ckpt", "full", "--format", "jsonl"]).stdout;
    let case = r#"{"model": "gpt2", "batch": 8, "seq": 1024, "optim": "sgd", "ckpt": "full"}"#;
    assert_eq!(run(["estimate", "--case", case, "--format", "jsonl"]).stdout, by_flags);
    assert_eq!(run_on(["estimate", "--cases", "-"], case).stdout, by_flags);
    let overridden = case.replace("\"batch\": 8", "\"batch\": 99");
    assert_eq!(
        run(["estimate", "--case", &overridden, "--batch", "8", "--format", "jsonl"]).stdout,
        by_flags
    );
}

#[test]
fn a_config_file_gives_the_bytes_of_the_catalogues_model() {
    let config = run(["models", "gpt2"]).stdout;
    let flags = ["--batch", "8", "--seq", "1024", "--format", "jsonl"];
    let by_config = run_on(["estimate", "--config", "-"].iter().chain(&flags), config);
    assert_eq!(by_config.stdout, gpt2(&["--format", "jsonl"]).stdout);
}

#[test]
fn colour_and_unicode_are_left_out_where_they_are_not_wanted() {
    let with = |env: &[(&str, &str)]| finish(vramscope().args(GPT2).envs(env.iter().copied()), b"").stdout;
    let (plain, forced) = (with(&[]), with(&[("CLICOLOR_FORCE", "1")]));
    assert!(!plain.contains('\u{1b}') && plain.contains('█'));
    assert!(forced.contains('\u{1b}'));
    assert_eq!(with(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]), plain);
    assert!(with(&[("LC_ALL", "C")]).is_ascii());
}

#[test]
fn several_gpus_are_a_case_and_flags() {
    let flags = [
        "--batch",
        "1",
        "--seq",
        "128",
        "--optim",
        "adamw_fused",
        "--format",
        "json",
    ];
    let by_flags = run(["estimate", "gpt2", "--strategy", "fsdp", "--world", "4"]
        .iter()
        .chain(&flags));
    assert_eq!(by_flags.code, Some(0), "{}", by_flags.stderr);
    let by_flags: serde_json::Value = serde_json::from_str(&by_flags.stdout).expect("JSON");
    let case = r#"{"model":"gpt2","batch":1,"seq":128,"optim":"adamw_fused","strategy":"fsdp","world":4}"#;
    let by_case = crate::program::run_on(["estimate", "--cases", "-"], case)
        .lines()
        .remove(0);
    assert_eq!(by_case["peak_allocated"], by_flags["peak_allocated"]);
    let alone = run(["estimate", "gpt2"].iter().chain(&flags)).stdout;
    let alone: serde_json::Value = serde_json::from_str(&alone).expect("JSON");
    assert!(by_case["peak_allocated"].as_u64() < alone["peak_allocated"].as_u64());
    assert!(
        run(["estimate", "gpt2", "--world", "4"])
            .refused()
            .contains("--strategy")
    );
}

/// A step is simulated as CUDA runs it: on other makers' cards the verdict says so.
#[test]
fn a_verdict_on_a_card_without_cuda_says_that_nothing_was_measured_there() {
    for (gpu, maker) in [("MI300X", Some("AMD")), ("M3 Max 64GB", Some("Apple")), ("H200", None)] {
        let said = run(["estimate", "gpt2", "--seq", "256", "--gpu", gpu]).stdout;
        assert!(said.contains("to spare"), "{said}");
        match maker {
            Some(maker) => assert!(
                said.contains(&format!("nothing was measured on {maker}'s GPUs")),
                "{said}"
            ),
            None => assert!(!said.contains("nothing was measured"), "{said}"),
        }
    }
}
