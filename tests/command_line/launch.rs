//! Tests of `estimate --launch`: a tool's file gives the bytes of its setup, and what is not simulated is refused.

use serde_json::Value;

use crate::program::{run, run_on};

const FILE: &str = "model_name_or_path: Qwen/Qwen2.5-VL-3B-Instruct
stage: sft
finetuning_type: lora
lora_rank: 32
lora_target: q_proj,k_proj,v_proj,o_proj
cutoff_len: 1024
template: qwen2_vl
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
bf16: true
";

fn bytes(text: &str) -> u64 {
    let answer: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    answer["peak_allocated"].as_u64().unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn a_file_gives_the_bytes_of_its_setup() {
    let launched = run_on(["estimate", "--launch", "-", "--format", "json"], FILE);
    assert_eq!(launched.code, Some(0), "{}", launched.stderr);
    let flags = "estimate qwen2.5-vl-3b --batch 2 --accum 4 --seq 1024 --freeze lora --rank 32 --lora-targets attention \
                 --ckpt full --optim adamw_fused --clip --precision bf16-amp --trainer transformers --format json";
    let said = run(flags.split_ascii_whitespace());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(bytes(&launched.stdout), bytes(&said.stdout));
    // Flags override the file, and another model takes its setup.
    let smaller = run_on(["estimate", "--launch", "-", "--batch", "1", "--format", "json"], FILE);
    assert!(bytes(&smaller.stdout) < bytes(&launched.stdout));
    let other = run_on(["estimate", "qwen2.5-vl-7b", "--launch", "-", "--format", "json"], FILE);
    assert!(bytes(&other.stdout) > bytes(&launched.stdout), "{}", other.stderr);
}

#[test]
fn the_text_accounts_for_every_line() {
    let ran = run_on(["estimate", "--launch", "-"], FILE);
    for words in [
        "LLaMA-Factory 0.9.5",
        "cutoff_len: 1024",
        "defaults of the tool",
        "freeze_vision_tower: true",
        "template",
        "taken for granted",
        "--image-sizes 768x768",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
}

#[test]
fn what_is_not_simulated_is_refused_unless_it_may_be_ignored() {
    let file = FILE.to_owned() + "neat_packing: true\ncutof_len: 1\n";
    let ran = run_on(["estimate", "--launch", "-"], &file);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    for words in [
        "neat_packing: true",
        "cutof_len: 1: not known",
        "--ignore-not-simulated",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert!(ran.stdout.contains("cutof_len is cutoff_len"), "{}", ran.stdout);
    let ran = run_on(["estimate", "--launch", "-", "--ignore-not-simulated"], &file);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let none = run_on(["estimate", "--launch", "-"], "bf16: true\nstage: sft\n");
    assert!(none.stderr.contains("names no model"), "{}", none.stderr);
    let unknown = run_on(["estimate", "--launch", "-"], "learning_speed: 4\n");
    assert!(
        unknown.stderr.contains("of no tool that is known"),
        "{}",
        unknown.stderr
    );
}
