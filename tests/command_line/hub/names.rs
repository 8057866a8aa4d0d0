//! Names that lead to a model without a question, and those that lead over another repository.

use std::path::Path;

use serde_json::json;

use super::stand_in::{Repo, StandIn};
use super::{SMALL, params, small};
use crate::program::{finish, run, vramscope};

fn of(name: &str) -> u64 {
    params(&run(["estimate", name, "--format", "json"]))
}

#[test]
fn what_is_said_of_a_model_is_in_its_json() {
    let remarks = |args: &[&str]| {
        let ran = run(args);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let line = ran.stdout.trim_end();
        let answer: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        for remark in answer["remarks"].as_array().into_iter().flatten() {
            let text = remark["text"].as_str().expect("it has a text");
            assert!(ran.stderr.contains(&format!("note: {text}")), "{}", ran.stderr);
        }
        answer["remarks"].clone()
    };
    let kind = |remarks: &serde_json::Value| remarks[0]["kind"].as_str().map(str::to_owned);
    let copy = "unsloth/Qwen2.5-0.5B-Instruct";
    for format in ["json", "jsonl"] {
        for args in [
            vec!["estimate", copy, "--format", format],
            vec!["estimate", copy, "--phase", "evaluate", "--format", format],
            vec!["max-batch", copy, "--limit-gib", "8", "--format", format],
            vec![
                "plan",
                copy,
                "--limit-gib",
                "8",
                "--keep",
                "optim,precision",
                "--format",
                format,
            ],
        ] {
            assert_eq!(kind(&remarks(&args)).as_deref(), Some("same_shape"), "{args:?}");
        }
    }
    let stored = remarks(&["estimate", "unsloth/Qwen2.5-0.5B-Instruct-bnb-4bit", "--format", "json"]);
    assert_eq!(kind(&stored).as_deref(), Some("stored_weights"));
    assert_eq!(remarks(&["estimate", "gpt2", "--format", "json"]), json!(null));

    // Each line of cases has the remarks on its own model.
    let cases = format!("{{\"model\": \"gpt2\"}}\n{{\"model\": \"{copy}\"}}\n");
    let ran = finish(vramscope().args(["estimate", "--cases", "-"]), cases.as_bytes());
    let lines: Vec<serde_json::Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines[0]["remarks"], json!(null));
    assert_eq!(kind(&lines[1]["remarks"]).as_deref(), Some("same_shape"));

    // A difference from what the hub states is there too.
    let repo = Repo::of_files(
        [("config.json", small())],
        json!({"safetensors": {"parameters": {"BF16": SMALL + 100}}}),
    );
    let hub = StandIn::start([("someone/model", repo)]);
    let home = tempfile::tempdir().expect("a folder");
    let ran = hub.run(home.path(), &["estimate", "someone/model", "--format", "json"]);
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    assert_eq!(kind(&answer["remarks"]).as_deref(), Some("parameters_differ"));
}

#[test]
fn a_launch_of_a_model_that_is_not_simulated_names_the_command_that_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("my run.sh");
    std::fs::write(&file, "swift sft --model allenai/Molmo-7B-D-0924 --tuner_type lora\n").expect("it is written");
    let file = file.display().to_string();
    let ran = run(["estimate", "--launch", &file]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("CLIP's tower"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains(&format!("vramscope dry-run '{file}'")),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_model_that_is_bounded_has_its_grade() {
    for name in ["openbmb/MiniCPM-Llama3-V-2_5", "/models/MiniCPM-V-2_6"] {
        let ran = run(["estimate", name, "--freeze", "lora", "--format", "json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let answer: serde_json::Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
        assert_eq!(answer["grade"], "at_most", "{}", ran.stdout);
        assert_eq!(answer["not_this_run"][0]["what"], "model");
        assert!(ran.stderr.contains("up to ten"), "{}", ran.stderr);
        let text = run(["estimate", name, "--freeze", "lora"]);
        assert!(text.stdout.contains("at most"), "{}", text.stdout);
    }
    // Its own file leads to the same bound.
    let config = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub/own_code/openbmb/MiniCPM-V-2_6.json"),
    );
    let config = serde_json::from_str(&config.expect("it is there")).expect("it is JSON");
    let hub = StandIn::start([("someone/MiniCPM", Repo::of_config(&config))]);
    let home = tempfile::tempdir().expect("a folder");
    let ran = hub.run(home.path(), &["estimate", "someone/MiniCPM", "--format", "json"]);
    assert!(ran.stdout.contains("\"at_most\""), "{}", ran.stderr);
}

#[test]
fn copies_and_paths_are_taken_for_the_model_with_a_remark() {
    let known = of("Qwen/Qwen2.5-VL-3B-Instruct");
    for name in [
        "unsloth/Qwen2.5-VL-3B-Instruct",
        "/models/Qwen2.5-VL-3B-Instruct",
        "Qwen2.5-VL-3B-Instruct",
        "/hub/models--Qwen--Qwen2.5-VL-3B-Instruct/snapshots/0123456789abcdef0123456789abcdef01234567",
        "https://huggingface.co/unsloth/Qwen2.5-VL-3B-Instruct/tree/main",
        "unsloth/Qwen2.5-VL-3B-Instruct-GGUF",
    ] {
        let ran = run(["estimate", name, "--format", "json"]);
        assert_eq!(params(&ran), known, "{name}");
        assert!(
            ran.stderr.contains("note: ") && ran.stderr.contains("Qwen2.5-VL-3B-Instruct"),
            "{}",
            ran.stderr
        );
    }
    let own = run(["estimate", "Qwen/Qwen2.5-VL-3B-Instruct", "--format", "json"]);
    assert!(!own.stderr.contains("note: "), "{}", own.stderr);
    // Another size is another model.
    let ran = run(["estimate", "/models/Qwen2.5-VL-4B-Instruct"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

#[test]
fn weights_in_four_bits_train_adapters_alone() {
    let ran = run(["estimate", "unsloth/Qwen2.5-7B-Instruct-bnb-4bit", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("adapters alone train") && ran.stderr.contains("--freeze qlora"),
        "{}",
        ran.stderr
    );
    let same = run([
        "estimate",
        "Qwen/Qwen2.5-7B-Instruct",
        "--freeze",
        "qlora",
        "--format",
        "json",
    ]);
    assert_eq!(params(&ran), params(&same));
    let full = run(["estimate", "unsloth/Qwen2.5-7B-Instruct-bnb-4bit", "--freeze", "none"]);
    assert_eq!(full.code, Some(2), "{}", full.stderr);
    let ran = run(["estimate", "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("GPTQ") && ran.stderr.contains("name Qwen/Qwen2.5-7B-Instruct"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_folder_beside_a_launch_file_comes_first() {
    let root = tempfile::tempdir().expect("a folder");
    let model = root.path().join("run/weights/mine");
    std::fs::create_dir_all(&model).expect("it is made");
    std::fs::write(model.join("config.json"), small().to_string()).expect("it is written");
    let launch = root.path().join("run/train.yaml");
    let file = "model_name_or_path: weights/mine\nstage: sft\nfinetuning_type: full\ntemplate: llama3\ncutoff_len: 64\nbf16: true\n";
    std::fs::write(&launch, file).expect("it is written");
    let launch = launch.to_str().expect("it is UTF-8");
    assert_eq!(
        params(&run(["estimate", "--launch", launch, "--format", "json"])),
        SMALL
    );
    // As a folder, as a file, and relative to the working folder.
    let mut command = vramscope();
    let here = command
        .current_dir(root.path())
        .args(["estimate", "run/weights/mine", "--format", "json"]);
    assert_eq!(params(&finish(here, b"")), SMALL);
    assert_eq!(of(model.join("config.json").to_str().expect("it is UTF-8")), SMALL);
    // A folder without a model, and a file that is none.
    for wrong in [root.path().to_owned(), launch.into()] {
        let ran = run(["estimate", wrong.to_str().expect("it is UTF-8")]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("config.json"), "{}", ran.stderr);
    }
}

#[test]
fn adapters_and_files_for_inference_lead_to_their_base() {
    let adapter = json!({"peft_type": "LORA", "base_model_name_or_path": "someone/model", "r": 16});
    let of_itself = json!({"peft_type": "LORA", "base_model_name_or_path": "someone/circle"});
    let base = |id: &str| json!({"cardData": {"base_model": [id]}});
    let hub = StandIn::start([
        ("someone/model", Repo::of_config(&small())),
        (
            "someone/adapter",
            Repo::of_files([("adapter_config.json", adapter)], json!({})),
        ),
        ("someone/model-GGUF", Repo::of_files([], base("someone/adapter"))),
        (
            "someone/circle",
            Repo::of_files([("adapter_config.json", of_itself)], json!({})),
        ),
    ]);
    let home = tempfile::tempdir().expect("a folder");
    let ran = hub.run(home.path(), &["estimate", "someone/adapter", "--format", "json"]);
    assert_eq!(params(&ran), SMALL);
    assert!(
        ran.stderr.contains("an adapter of someone/model") && ran.stderr.contains("--rank 16"),
        "{}",
        ran.stderr
    );
    let ran = hub.run(
        home.path(),
        &["estimate", "someone/model-GGUF:Q4_K_M", "--format", "json"],
    );
    assert_eq!(params(&ran), SMALL);
    assert!(ran.stderr.contains("GGUF files are for inference"), "{}", ran.stderr);
    let ran = hub.run(home.path(), &["estimate", "someone/circle"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("name each other"), "{}", ran.stderr);
}

#[test]
fn a_difference_of_parameters_is_said() {
    let stated = |count: u64| json!({"safetensors": {"parameters": {"BF16": count}}});
    let of = |count: u64| Repo::of_files([("config.json", small())], stated(count));
    let hub = StandIn::start([("someone/same", of(SMALL)), ("someone/other", of(SMALL + 1000))]);
    let home = tempfile::tempdir().expect("a folder");
    let same = hub.run(home.path(), &["estimate", "someone/same", "--format", "json"]);
    assert!(!same.stderr.contains("hold"), "{}", same.stderr);
    let other = hub.run(home.path(), &["estimate", "someone/other", "--format", "json"]);
    assert_eq!(params(&other), SMALL);
    let said = format!(
        "hold {} parameters; the simulated model has {SMALL}, 1000 (",
        SMALL + 1000
    );
    assert!(other.stderr.contains(&said), "{}", other.stderr);
}

#[test]
fn every_command_takes_an_id() {
    let hub = StandIn::start([("someone/model", Repo::of_config(&small()))]);
    let home = tempfile::tempdir().expect("a folder");
    let error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 23.64 GiB of \
                 which 512.00 MiB is free. Including non-PyTorch memory, this process has 23.12 GiB memory in use. Of the allocated \
                 memory 20.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.";
    for args in [
        &["max-batch", "someone/model", "--limit-gib", "1"][..],
        &["plan", "someone/model", "--limit-gib", "1"],
        &["estimate", "--case", "{\"model\": \"someone/model\", \"batch\": 2}"],
        &["estimate", "someone/model", "--phase", "evaluate"],
        &["diagnose", "-", "--model", "someone/model"],
    ] {
        let ran = finish(hub.command(home.path()).args(args), error.as_bytes());
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn ms_swift_asks_modelscope() {
    let hub = StandIn::start([("someone/model", Repo::of_config(&small()))]);
    let home = tempfile::tempdir().expect("a folder");
    let script = "swift sft --model someone/model --train_type lora --max_length 64 --torch_dtype bfloat16\n";
    let ask = |use_hf: bool| {
        let mut command = hub.command(home.path());
        command
            .env("MODELSCOPE_ENDPOINT", hub.address())
            .args(["estimate", "--launch", "-", "--format", "json"]);
        let script = if use_hf {
            format!("USE_HF=1 {script}")
        } else {
            script.to_owned()
        };
        finish(&mut command, script.as_bytes())
    };
    let ran = ask(false);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let requests = hub.take_requests();
    assert!(
        requests[0]
            .path
            .starts_with("/api/v1/models/someone/model/repo?Revision=master"),
        "{requests:?}"
    );
    assert!(
        requests
            .iter()
            .all(|request| !request.headers.contains_key("authorization"))
    );
    let ran = ask(true);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(hub.take_requests()[0].path.starts_with("/someone/model/resolve/main"));
}

/// The recorder gets a folder with the file, so that it needs no network.
#[cfg(unix)]
#[test]
fn the_recorder_gets_the_folder_of_a_name() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().expect("a folder");
    let python = home.path().join("python3");
    std::fs::write(&python, "#!/bin/sh\necho \"$@\"\n").expect("it is written");
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).expect("it can be run");
    let python = python.to_str().expect("it is UTF-8");
    let mut command = vramscope();
    command.env("HOME", home.path());
    let ran = finish(
        command.args([
            "record",
            "--python",
            python,
            "--model",
            "unsloth/Qwen2.5-VL-3B-Instruct",
            "--batch",
            "2",
        ]),
        b"",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let words: Vec<&str> = ran.stdout.split_ascii_whitespace().collect();
    let folder = words[words
        .iter()
        .position(|word| *word == "--model")
        .expect("it is passed on")
        + 1];
    assert!(Path::new(folder).join("config.json").is_file(), "{}", ran.stdout);
}
