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
