//! Launch files as they stand in public repositories, rewritten (`tests/data/launch`): each line is accounted for, has the
//! value that the tool's own parser gives it, and the setup is the one that the tool would run.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;

/// Lines that a tool passes over in silence, so that they may be mistakes.
const PASSED_OVER: [(&str, &str); 1] = [("deepspeed_fp16_zero1.json", "cuda_visible_devices")];

/// Keys of transformers' older versions, which the parsers at the versions named no longer know.
const OLDER: [&str; 2] = ["warmup_ratio", "overwrite_output_dir"];

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/launch"))
}

#[expect(clippy::disallowed_methods, reason = "tests run where there are files")]
fn text(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn read_files(names: &[&str]) -> Launch {
    let texts: Vec<String> = names.iter().map(|name| text(name)).collect();
    let sources: Vec<Source<'_>> = std::iter::zip(names, &texts)
        .map(|(name, text)| Source { name, text })
        .collect();
    read(&sources).unwrap_or_else(|error| panic!("{names:?}: {error}"))
}

/// What a tool's own parser takes from a file, under dotted keys.
type Parsed = BTreeMap<String, Value>;

fn under_dotted_keys(file: &Value) -> Parsed {
    let mut entries = Vec::new();
    for (key, value) in file.as_object().expect("it is an object").clone() {
        flatten(&key, value, 1, &mut entries);
    }
    entries.into_iter().map(|entry| (entry.key, entry.value)).collect()
}

/// What the tools' own parsers take from each file (`tests/data/launch/parsed.py`).
fn parsed() -> Vec<(String, Parsed)> {
    let all: Value = serde_json::from_str(&text("parsed.json")).expect("it is JSON");
    let files = all.as_object().expect("it is an object");
    files
        .iter()
        .map(|(name, file)| (name.clone(), under_dotted_keys(file)))
        .collect()
}

/// Returns true for values that a tool does not tell apart: a number and its digits, a value and a list of it.
fn is_same(ours: &Value, theirs: &Value) -> bool {
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    match (ours, theirs) {
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && std::iter::zip(ours, theirs).all(|(a, b)| is_same(a, b))
        }
        (one, Value::Array(many)) => many.len() == 1 && is_same(one, &many[0]),
        (ours, Value::Bool(theirs)) => values::truth(ours).is_ok_and(|ours| ours == *theirs),
        (Value::Bool(ours), Value::String(theirs)) => theirs.eq_ignore_ascii_case(&ours.to_string()),
        (ours, theirs) => ours == theirs || number(ours).is_some_and(|n| Some(n) == number(theirs)),
    }
}

/// What differs between the lines of a launch and what the tool's own parser takes.
fn differences(launch: &Launch, theirs: &Parsed) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    let mut out = Vec::new();
    for line in &launch.lines {
        let key = line.entry.key.replace('-', "_");
        let ours = &line.entry.value;
        match theirs.get(&key) {
            None if OLDER.contains(&key.as_str()) => {}
            None => out.push(format!("{key} is {ours}, and they have none")),
            Some(theirs) if is_same(ours, theirs) => {}
            Some(theirs) => out.push(format!("{key} is {ours}, not {theirs}")),
        }
        seen.insert(key);
    }
    let missed = theirs.iter().filter(|(key, _)| !seen.contains(*key));
    out.extend(missed.map(|(key, value)| format!("{key} is missed: {value}")));
    out
}

#[test]
fn every_line_has_the_value_of_the_tools_own_parser() {
    let files = parsed();
    assert!(files.len() >= 20, "{}", files.len());
    for (name, theirs) in &files {
        assert_eq!(
            differences(&read_files(&[name]), theirs),
            Vec::<String>::new(),
            "{name}"
        );
    }
}

/// Files that `tests/data/launch/draw.py` drew: keys of the tools' classes, with values in the many spellings of bash, YAML
/// and JSON.
#[test]
fn drawn_files_have_the_values_of_the_tools_own_parsers() {
    let all = text("drawn.jsonl");
    assert!(all.lines().count() >= 60, "{}", all.lines().count());
    let mut wrong = Vec::new();
    for (number, line) in all.lines().enumerate() {
        let drawn: Value = serde_json::from_str(line).expect("it is JSON");
        let [name, text] = ["name", "text"].map(|key| drawn[key].as_str().expect("a text"));
        let file = Source { name, text };
        match read(&[file]) {
            Ok(launch) => {
                let theirs = under_dotted_keys(&drawn["parsed"]);
                let each = differences(&launch, &theirs);
                wrong.extend(each.into_iter().map(|one| format!("{number} {name}: {one}")));
            }
            Err(error) => wrong.push(format!("{number} {name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_line_is_accounted_for() {
    for (name, _) in parsed() {
        for line in read_files(&[&name]).lines {
            let is_passed_over = PASSED_OVER.contains(&(&*name, &*line.entry.key));
            let is_known = !matches!(line.fate, Fate::Unknown(_) | Fate::Wrong(_));
            assert_ne!(is_known, is_passed_over, "{name}: {line:?}");
        }
    }
}

/// A launch, the keys of its case that are compared, and what is open: a part of each line.
struct Found {
    files: &'static [&'static str],
    takes_images: bool,
    case: Value,
    open: &'static [&'static str],
}

fn found(files: &'static [&'static str], takes_images: bool, case: Value, open: &'static [&'static str]) -> Found {
    Found {
        files,
        takes_images,
        case,
        open,
    }
}

#[test]
fn the_setups_are_those_that_the_tools_would_run() {
    let launches = of_llama_factory()
        .into_iter()
        .chain(of_ms_swift())
        .chain(of_axolotl())
        .chain(of_trl())
        .chain(of_deepspeed());
    let mut wrong = Vec::new();
    for launch in launches {
        let resolved = read_files(launch.files).resolve(ModelFacts {
            takes_images: launch.takes_images,
            ..ModelFacts::UNKNOWN
        });
        for (key, value) in launch.case.as_object().expect("it is an object") {
            if resolved.case.get(key) != Some(value) {
                wrong.push(format!("{:?}: {key} of {:?}", launch.files, resolved.case));
            }
        }
        let open = &resolved.not_simulated;
        let are_those = open.len() == launch.open.len()
            && std::iter::zip(open, launch.open).all(|(line, part)| line.to_string().contains(part));
        if !are_those {
            wrong.push(format!("{:?}: {open:#?}", launch.files));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn of_llama_factory() -> [Found; 6] {
    [
        found(
            &["llama_factory_qwen3_vl_lora.yaml"],
            true,
            json!({"model": "Qwen/Qwen3-VL-4B-Instruct", "batch": 1, "accum": 8, "seq": 2048, "rank": 8, "freeze": "lora",
                "lora_targets": "language-model", "ckpt": "trained", "precision": "bf16-amp", "trainer": "transformers",
                "use_cache": false, "clip": true}),
            &[],
        ),
        found(
            &["llama_factory_qwen3_vl_full.yaml", "llama_factory_zero3.json"],
            true,
            json!({"batch": 1, "accum": 2, "strategy": "deepspeed3", "world": 1, "freeze": "all-but-language"}),
            &["reduce_bucket_size", "prefetch", "persistence"],
        ),
        found(
            &["llama_factory_qwen3_lora.sh"],
            false,
            json!({"model": "Qwen/Qwen3-4B-Instruct-2507", "seq": 2048, "freeze": "lora", "lora_targets": "all-linear"}),
            &[],
        ),
        found(
            &["llama_factory_pretraining.yaml"],
            false,
            json!({"seq": 2048, "accum": 8}),
            &[],
        ),
        found(
            &["llama_factory_galore.yaml"],
            false,
            json!({"freeze": "none", "precision": "bf16"}),
            &["use_galore"],
        ),
        found(
            &["llama_factory_qwen3_lora.sh", "llama_factory_offload.json"],
            false,
            json!({"strategy": "deepspeed2", "offload": "optimizer", "accum": 8}),
            &[],
        ),
    ]
}

fn of_ms_swift() -> [Found; 5] {
    [
        found(
            &["ms_swift_ocr.sh"],
            true,
            json!({"batch": 1, "accum": 16, "seq": 4096, "precision": "bf16-amp", "lora_targets": "language-model"}),
            &[],
        ),
        found(
            &["ms_swift_zero2.sh"],
            false,
            json!({"world": 2, "accum": 8, "strategy": "deepspeed2", "lora_targets": "all-linear",
                "zero": {"reduce_bucket_size": 200_000_000, "allgather_bucket_size": 200_000_000, "overlap_comm": false}}),
            &[],
        ),
        found(
            &["ms_swift_qlora.sh"],
            false,
            json!({"freeze": "qlora", "rank": 8}),
            &["QLoRA"],
        ),
        found(
            &["ms_swift_video.sh"],
            true,
            json!({"world": 4, "batch": 4, "strategy": "deepspeed3", "freeze": "none", "loss": "fused_linear"}),
            &["padding_free", "reduce_bucket_size", "prefetch", "persistence"],
        ),
        found(
            &["ms_swift_two_nodes.sh"],
            false,
            json!({"world": 8, "accum": 4, "strategy": "deepspeed2", "freeze": "none", "seq": 8192}),
            &[],
        ),
    ]
}

fn of_axolotl() -> [Found; 5] {
    [
        found(
            &["axolotl_qwen2_5_vl.yaml"],
            true,
            json!({"batch": 1, "accum": 4, "seq": 8192, "rank": 32, "optim": "adamw_8bit", "attn": "flash_attention_2",
                "lora_targets": "projections", "lora_dropout": 0.05}),
            &[],
        ),
        found(
            &["axolotl_gemma3_qlora.yaml"],
            true,
            json!({"freeze": "qlora", "batch": 2}),
            &["QLoRA"],
        ),
        found(
            &["axolotl_llama_full.yaml"],
            false,
            json!({"freeze": "none", "optim": "paged_adamw_8bit", "ckpt": "full"}),
            &["sample_packing"],
        ),
        found(
            &["axolotl_llama_kernels.yaml"],
            false,
            json!({"freeze": "lora", "rank": 16}),
            &["sample_packing", "lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel"],
        ),
        found(
            &["axolotl_smolvlm2.yaml"],
            true,
            json!({"lora_targets": "projections"}),
            &[],
        ),
    ]
}

fn of_trl() -> [Found; 5] {
    [
        found(
            &["trl_sft_llava.sh", "trl_zero3.yaml"],
            true,
            json!({"model": "llava-hf/llava-1.5-7b-hf", "batch": 8, "accum": 8, "seq": 1024, "world": 8,
                "strategy": "deepspeed3", "precision": "bf16", "ckpt": "full", "trainer": "trl_sft"}),
            &[],
        ),
        found(
            &["trl_sft_gemma3.sh", "trl_zero3.yaml"],
            true,
            json!({"attn": "eager", "freeze": "lora", "lora_targets": "all-linear", "rank": 16}),
            &[],
        ),
        found(
            &["trl_dpo_qwen2_5_vl.sh", "trl_two_gpus.yaml"],
            true,
            json!({"world": 2, "strategy": "ddp", "batch": 2, "accum": 32, "trainer": "trl_dpo"}),
            &[],
        ),
        found(
            &["trl_sft.yaml"],
            false,
            json!({"model": "Qwen/Qwen2.5-0.5B", "trainer": "trl_sft", "precision": "amp-bf16", "batch": 8}),
            &[],
        ),
        found(
            &["trl_sft_gpt_oss.sh", "trl_zero3.yaml"],
            false,
            json!({"seq": 4096, "batch": 2}),
            &["packing", "attn_implementation"],
        ),
    ]
}

fn of_deepspeed() -> [Found; 4] {
    [
        found(
            &["deepspeed_zenflow.json"],
            false,
            json!({"batch": 8, "accum": 1, "strategy": "deepspeed2", "offload": "optimizer", "clip": true}),
            &["zenflow.", "zenflow.", "zenflow."],
        ),
        found(
            &["deepspeed_bf16_master.json"],
            false,
            json!({"batch": 4, "strategy": "deepspeed3", "optim": "adamw_fused"}),
            &[
                "bf16_master",
                "bf16_optimizer_states",
                "torch_autocast.enabled",
                "torch_autocast.dtype",
            ],
        ),
        found(
            &["deepspeed_fp16_zero1.json"],
            false,
            json!({"batch": 256, "strategy": "deepspeed1", "clip": false}),
            &["fp16.auto_cast", "cuda_visible_devices"],
        ),
        found(
            &["deepspeed_trainer.sh", "deepspeed_trainer.json"],
            false,
            json!({"batch": 8, "accum": 4, "world": 8, "strategy": "deepspeed2"}),
            &["autotp_size"],
        ),
    ]
}
