//! Reads every format of `plan --export` with the tool that it is for.
//!
//! `cargo xtask test` creates the Python environment with the tools: `target/exports`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::run;

/// The formats as spelled on the command line.
pub const FORMS: [&str; 9] = [
    "hf-python",
    "hf-yaml",
    "accelerate",
    "deepspeed",
    "fsdp",
    "lightning",
    "trl",
    "llama-factory",
    "ms-swift",
];

/// Plans of different kinds: all parameters under autocast, checkpointing, adapters, 4-bit adapters, several GPUs.
const PLANS: [(&str, &str); 6] = [
    (
        "autocast",
        "llama3.2-1b --gpu 4090 --precision amp-bf16 --clip --loss full --ckpt none --seq 512",
    ),
    ("checkpointed", "gpt2 --limit-gib 4 --seq 512 --ckpt full --optim adamw"),
    (
        "adapters",
        "qwen2.5-vl-3b --gpu 4090 --effective 16 --freeze lora --precision bf16",
    ),
    (
        "chunked",
        "llama3.2-1b --gpu 4090 --precision amp-bf16 --loss fused_linear --seq 512",
    ),
    (
        "quantised",
        "qwen2.5-1.5b --seq 512 --limit-gib 7 --freeze qlora --optim adamw_8bit",
    ),
    (
        "two-gpus",
        "gpt2 --gpu 4090 --gpus 2 --effective 8 --seq 256 --keep strategy",
    ),
];

/// A plan with tensor parallelism, which only transformers' own formats support: one sample per step on two GPUs.
const SHARED_MAPS: &str = "llama3.2-1b --gpu 4090 --gpus 2 --effective 1 --seq 512";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn write(folder: &Path, name: &str, plan: &str, forms: &[&str]) -> usize {
    let args = |more: [&str; 2]| {
        let all = ["plan"].into_iter().chain(plan.split(' ')).chain(more);
        all.map(str::to_owned).collect::<Vec<_>>()
    };
    let json = run(args(["--format", "json"]));
    assert_eq!(json.code, Some(0), "{name}: {}", json.stderr);
    fs::write(folder.join(format!("{name}.json")), json.stdout).expect("the plan is written");
    for form in forms.iter().copied() {
        let exported = run(args(["--export", form]));
        assert_eq!(exported.code, Some(0), "{name} as {form}: {}", exported.stderr);
        let ending = match form {
            "hf-python" => "py",
            "deepspeed" => "txt",
            _ => "yaml",
        };
        let path = folder.join(format!("{form}-{name}.{ending}"));
        fs::write(path, exported.stdout).expect("the export is written");
    }
    forms.len()
}

#[test]
fn a_tool_that_cannot_share_maps_says_so() {
    for form in &FORMS[2..] {
        let args = ["plan"]
            .into_iter()
            .chain(SHARED_MAPS.split(' '))
            .chain(["--export", form]);
        let exported = run(args.map(str::to_owned).collect::<Vec<_>>());
        assert_ne!(exported.code, Some(0), "{form}");
        assert!(
            exported.stderr.contains("export hf-python"),
            "{form}: {}",
            exported.stderr
        );
    }
}

/// Runs a script of `tests/exports` on a folder and returns its output.
fn python(script: &str, folder: &Path) -> String {
    let python = root().join("target/exports/bin/python");
    assert!(
        python.exists(),
        "the tools are not there: `cargo xtask test` makes target/exports with them, and this test reads nothing without"
    );
    let output = Command::new(python)
        .arg(root().join("tests/exports").join(script))
        .arg(folder)
        .output()
        .expect("Python starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    said
}

fn lines_with(said: &str, begin: &str) -> usize {
    said.lines().filter(|line| line.starts_with(begin)).count()
}

/// Exports the plans of these names and has a script of `tests/exports` train a step with each file.
fn train(script: &str, names: &[&str], forms: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder for the exports");
    let chosen = PLANS.iter().filter(|(name, _)| names.contains(name));
    let written: usize = chosen.map(|(name, plan)| write(folder.path(), name, plan, forms)).sum();
    assert_eq!(written, names.len() * forms.len());
    let said = python(script, folder.path());
    assert_eq!(lines_with(&said, "trained "), written, "{said}");
}

/// Names of the plans on one GPU, for text and for images: two would need a launcher.
fn alone() -> Vec<&'static str> {
    let names = PLANS.iter().map(|(name, _)| *name);
    names.filter(|name| *name != "two-gpus").collect()
}

#[test]
fn trl_trains_a_step_of_each() {
    train("train_trl.py", &alone(), &["trl"]);
}

/// The same by transformers' Trainer and by Lightning's.
#[test]
fn trainers_train_a_step_of_each() {
    train("train_trainer.py", &alone(), &["hf-python", "hf-yaml", "lightning"]);
}

#[test]
fn llama_factory_trains_a_step_of_each() {
    train("train_llama_factory.py", &alone(), &["llama-factory"]);
}

#[test]
fn ms_swift_trains_a_step_of_each() {
    train("train_ms_swift.py", &alone(), &["ms-swift"]);
}

/// DeepSpeed trains as one rank of several too.
#[test]
fn deepspeed_trains_a_step_of_each() {
    let all = PLANS.map(|(name, _)| name);
    train("train_distributed.py", &all, &["deepspeed"]);
}

/// The files of plans on one GPU differ in `mixed_precision` alone.
#[test]
fn accelerate_trains_a_step_with_and_without_autocast() {
    train("train_distributed.py", &["autocast", "adapters"], &["accelerate"]);
}

#[test]
fn the_real_tools_read_them() {
    let folder = tempfile::tempdir().expect("a folder for the exports");
    let written = PLANS
        .iter()
        .map(|(name, plan)| write(folder.path(), name, plan, &FORMS));
    let written = written.sum::<usize>() + write(folder.path(), "shared-maps", SHARED_MAPS, &FORMS[..2]);
    let said = python("load.py", folder.path());
    assert_eq!(lines_with(&said, "read "), written, "{said}");
}

/// Launch files that are drawn, whose settings the tools' own parsers read.
#[test]
fn drawn_launch_files_are_read_as_the_tools_read_them() {
    let said = python("read_launches.py", Path::new(env!("CARGO_BIN_EXE_vramscope")));
    let compared = said.lines().find_map(|line| line.strip_prefix("compared "));
    assert_eq!(compared, Some("60 of 60"), "{said}");
    assert_eq!(lines_with(&said, "read "), 60, "{said}");
}
