//! Runs the examples of the help texts in a shell.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::program::run;

/// A folder with the files that the examples name.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // An earlier run may have left records and tokens.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for the examples");
    let config = run(["models", "llava-1.5-7b"]).stdout;
    std::fs::write(folder.join("config.json"), config).expect("config.json is written");
    let case = "{\"model\": \"gpt2\", \"batch\": 1, \"seq\": 64}\n";
    std::fs::write(folder.join("training_steps.jsonl"), case).expect("training_steps.jsonl is written");
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/traces");
    let trace = "gpt2-bf16.trace.json.gz";
    std::fs::copy(traces.join(trace), folder.join(trace)).expect("the trace is copied");
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/recordings");
    std::fs::copy(recordings.join("gpt2-bf16-adamw.vram.gz"), folder.join("run.vram.gz")).expect("it is copied");
    let sizes = "qwen2-4layers-bf16.sizes.gz";
    std::fs::copy(recordings.join(sizes), folder.join("run.sizes.gz")).expect("it is copied");
    let watched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/watch/loop_h100.jsonl");
    std::fs::copy(watched, folder.join("run.jsonl")).expect("it is copied");
    let snapshots = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/snapshots");
    std::fs::copy(snapshots.join("gpt2-bf16.pickle.gz"), folder.join("snapshot.pickle")).expect("it is copied");
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/records/example.json");
    for card in ["h200.json", "rtx-4090.json"] {
        std::fs::copy(&record, folder.join(card)).expect("the record is copied");
    }
    let yaml = "model_name_or_path: qwen2.5-0.5b\nstage: sft\nfinetuning_type: full\ncutoff_len: 512\nbf16: true\n";
    std::fs::write(folder.join("of_a.yaml"), yaml).expect("of_a.yaml is written");
    let command = "swift sft --model qwen2.5-0.5b --train_type lora --max_length 512 --torch_dtype bfloat16\n";
    std::fs::write(folder.join("of_b.sh"), command).expect("of_b.sh is written");
    let error = "CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already \
                 allocated; 1.89 GiB free; 21.50 GiB reserved in total by PyTorch)";
    let texts = [
        (
            "train.yaml",
            "model_name_or_path: Qwen/Qwen2.5-VL-3B-Instruct\nstage: sft\nfinetuning_type: lora\ncutoff_len: 1024\nbf16: true\n",
        ),
        (
            "train.jsonl",
            "{\"messages\": [{\"role\": \"user\", \"content\": \"Why?\"}, {\"role\": \"assistant\", \"content\": \"So.\"}]}\n",
        ),
        ("train.log", "step 1 mem 18.2 GiB\nstep 2 mem 18.2 GiB\n"),
        ("error.txt", error),
        ("prices.csv", "card,per_hour,currency,date\nH100,2.5,USD,2026-11-01\n"),
        ("prices.json", "[{\"card\": \"A100\", \"per_hour\": 1.3}]"),
        (
            "nvidia-smi.csv",
            "memory.used [MiB], memory.total [MiB]\n23000 MiB, 24576 MiB\n",
        ),
        (
            "trace.json.gz",
            r#"{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 0, "dur": 5}]}"#,
        ),
    ];
    for (name, text) in texts {
        std::fs::write(folder.join(name), text).expect("it is written");
    }
    folder
}

fn in_shell(line: &str, folder: &Path) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_vramscope"));
    let path = binary.parent().expect("the binary lies in a folder");
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", path)
        .output()
        .expect("a shell")
}

#[test]
#[cfg(unix)]
fn every_example_succeeds() {
    let folder = folder("examples");
    for help in [
        &["--help"][..],
        &["estimate", "--help"],
        &["export", "--help"],
        &["diagnose", "--help"],
        &["models", "--help"],
    ] {
        let text = run(help).stdout;
        let examples = text.lines().filter(|line| line.starts_with("  vramscope "));
        for example in examples {
            let ran = in_shell(example.trim(), &folder);
            let stderr = String::from_utf8_lossy(&ran.stderr);
            let quiet = stderr.lines().all(|line| line.starts_with("note: "));
            assert!(ran.status.success() && quiet, "{example}: {stderr}");
        }
    }
}
