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
    let one = ["estimate", "--launch", "-", "--images", "1", "--format", "json"];
    let launched = run_on(one, FILE);
    assert_eq!(launched.code, Some(0), "{}", launched.stderr);
    let flags = "estimate qwen2.5-vl-3b --batch 2 --accum 4 --seq 1024 --freeze lora --rank 32 --lora-targets attention \
                 --ckpt trained --optim adamw_fused --clip --precision bf16-amp --trainer transformers --loading loaded \
                 --pad-to-multiple-of 8 --format json";
    let said = run(flags.split_ascii_whitespace());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(bytes(&launched.stdout), bytes(&said.stdout));
    // Where nobody says which images samples have, they are full of them.
    let full = run_on(["estimate", "--launch", "-", "--format", "json"], FILE);
    let full: Value = serde_json::from_str(&full.stdout).expect("JSON");
    assert_eq!(full["grade"], "between");
    assert!(
        full["least"]["peak_allocated"].as_u64() < Some(bytes(&launched.stdout)),
        "{full}"
    );
    assert!(
        full["peak_allocated"].as_u64() > Some(bytes(&launched.stdout)),
        "{full}"
    );
    // Flags override the file, and another model takes its setup.
    let smaller = run_on(one.iter().copied().chain(["--batch", "1"]), FILE);
    assert!(bytes(&smaller.stdout) < bytes(&launched.stdout));
    let other = run_on([&["estimate", "qwen2.5-vl-7b"], &one[1..]].concat(), FILE);
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
    assert_eq!(ran.code, Some(4), "{}", ran.stdout);
    for words in [
        "vramscope dry-run",
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
    assert!(unknown.stderr.contains("of no known tool"), "{}", unknown.stderr);
}

/// The launch's estimate as JSON, with what is not simulated ignored.
fn ignoring(file: &str, more: &[&str]) -> Value {
    let args = [
        "estimate",
        "--launch",
        "-",
        "--ignore-not-simulated",
        "--format",
        "json",
    ];
    let ran = run_on(args.iter().chain(more).copied(), file);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[test]
fn what_is_left_out_stays_on_the_verdict() {
    let wide = FILE.to_owned() + "upcast_layernorm: true\n";
    assert_eq!(ignoring(&wide, &[])["grade"], "dry_run");
    let sizes = ["--seq", "1024", "--image-sizes", "480x640"];
    let answer = ignoring(&wide, &[&["--gpu", "H100"], &sizes[..]].concat());
    assert_eq!(answer["grade"], "at_least", "{answer}");
    assert_eq!(answer["not_this_run"][0]["what"], "precision");
    assert_eq!(answer["not_this_run"][0]["given"], "upcast_layernorm: true");
    let whole = [&["estimate", "--launch", "-", "--format", "json"], &sizes[..]].concat();
    let whole = run_on(whole.iter().copied(), FILE);
    let whole: Value = serde_json::from_str(&whole.stdout).expect("JSON");
    assert_eq!(
        (&whole["grade"], &whole["not_this_run"]),
        (&"exact".into(), &Value::Array(vec![]))
    );
    let args = ["estimate", "--launch", "-", "--ignore-not-simulated", "--gpu", "H100"];
    let text = run_on([&args[..], &sizes].concat(), &wide).stdout;
    let verdict = text.split_once("defaults of the tool").expect("the launch").1;
    for words in ["NOT KNOWN", "at least", "Not in this figure", "upcast_layernorm: true"] {
        assert!(verdict.contains(words), "{words}: {text}");
    }
    assert!(!verdict.contains("FITS"), "{text}");
    // What only saves leaves a bound, with and without the flag.
    let saving = FILE.to_owned() + "use_unsloth_gc: true\n";
    let plain = [&["estimate", "--launch", "-", "--gpu", "H100"], &sizes[..]].concat();
    let with = [&args[..], &sizes].concat();
    for args in [&with, &plain] {
        let ran = run_on(args.iter().copied(), &saving);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(
            ran.stdout.contains("FITS") && ran.stdout.contains("at most"),
            "{}",
            ran.stdout
        );
    }
}

/// Where nothing limits the length of samples a figure for the longest alone would be of no use.
#[test]
fn without_a_limit_of_lengths_the_least_and_the_longest_that_fit_are_said() {
    let file = "model_name_or_path: Qwen/Qwen2.5-0.5B\nper_device_train_batch_size: 2\noutput_dir: x\nbf16: true\n";
    let args = ["estimate", "--launch", "-", "--gpu", "RTX 4090"];
    let ran = run_on(args.iter().copied().chain(["--format", "json"]), file);
    let said: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr));
    assert_eq!(
        (&said["grade"], &said["target"]["verdict"]),
        (&"between".into(), &"oom".into()),
        "{said}"
    );
    let longest = said["length_that_fits"].as_u64().expect("some fit");
    for (seq, fits) in [(longest, true), (longest + 64, false)] {
        let seq = seq.to_string();
        let at = run_on(args.iter().copied().chain(["--seq", &seq, "--format", "json"]), file);
        let at: Value = serde_json::from_str(&at.stdout).expect("JSON");
        assert_eq!(at["target"]["verdict"] != "oom", fits, "{seq}: {at}");
        assert!(at["peak_reserved"].as_u64() > said["least"]["peak_reserved"].as_u64());
    }
    let text = run_on(args, file).stdout;
    for words in [
        "between",
        "samples of one position",
        &format!("up to {longest} positions"),
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// Tools start a process on each GPU of the machine, whose number is in no file.
#[test]
fn a_run_on_all_gpus_of_a_machine_is_told_for_a_few_numbers_of_them() {
    let recipe = "base_model: Qwen/Qwen2.5-0.5B\nsequence_len: 1024\nmicro_batch_size: 1\nbf16: true\nfsdp_version: 2\n\
                  fsdp_config:\n  reshard_after_forward: true\n";
    let args = ["estimate", "--launch", "-", "--format", "json"];
    let ran = run_on(args, recipe);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("how many GPUs share the run: give --world"),
        "{}",
        ran.stderr
    );
    let said: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let numbers = said["on_gpus"].as_array().expect("a list");
    assert_eq!(numbers.len(), 3, "{said}");
    for on in numbers {
        let gpus = on["gpus"].to_string();
        let alone = run_on(args.into_iter().chain(["--world", &gpus]), recipe);
        let alone: Value = serde_json::from_str(&alone.stdout).expect("JSON");
        for key in ["peak_allocated", "peak_reserved"] {
            assert_eq!(on[key], alone[key], "{key} on {gpus}");
        }
        assert_eq!(on["grade"], "at_most", "samples may be shorter than the limit");
    }
    assert!(
        ran.stderr.contains("Each GPU takes ") && ran.stderr.contains(" on 8"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_larger_step_bounds_another_loss() {
    let of = |stage: &str, more: &[&str]| {
        let file = FILE.replace("stage: sft", &format!("stage: {stage}"));
        let args = [&["estimate", "--launch", "-", "--format", "json"], more].concat();
        let ran = run_on(args, &file);
        assert!(ran.code != Some(4) || !more.is_empty(), "{stage}: {}", ran.stderr);
        serde_json::from_str::<Value>(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr))
    };
    let (plain, pairs, reward) = (of("sft", &[]), of("dpo", &[]), of("rm", &[]));
    assert_eq!(
        (&pairs["grade"], &pairs["setup"]["batch"]),
        (&"at_most".into(), &4.into())
    );
    assert!(pairs["setup"]["beside"].as_u64() > Some(0), "{pairs}");
    let peak = |said: &Value| said["peak_allocated"].as_u64();
    assert!(peak(&pairs) > peak(&reward) && peak(&reward) > peak(&plain));
    assert!(
        pairs["not_this_run"]
            .to_string()
            .contains("DPO: a larger step stands in"),
        "{pairs}"
    );
    // What is held beside is of the file's own batch.
    assert_eq!(of("dpo", &["--batch", "16"])["grade"], "dry_run");
}

#[test]
fn layers_over_several_cards_are_said_to_be() {
    let command = "CUDA_VISIBLE_DEVICES=0,1 swift sft --model Qwen/Qwen2.5-0.5B --max_length 512 --tuner_type lora\n";
    let ran = run_on(["estimate", "--launch", "-", "--format", "json"], command);
    let said: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr));
    assert_eq!(
        (&said["parallel"]["strategy"], &said["parallel"]["world"]),
        (&"device_map".into(), &2.into())
    );
    assert_eq!(said["grade"], "at_most");
}

#[test]
fn adapters_beside_weights_in_few_bits_need_at_most_what_those_in_16_bits_do() {
    let few = FILE.replace("Qwen/Qwen2.5-VL-3B-Instruct", "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4");
    let ran = run_on(["estimate", "--launch", "-", "--format", "json"], &few);
    let said: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr));
    assert!(
        said["not_this_run"].to_string().contains("GPTQ-Int4 in few bits"),
        "{said}"
    );
    assert_eq!(said["model"], "Qwen/Qwen2.5-7B-Instruct");
}

#[test]
fn another_run_gets_no_figure() {
    let dpo = FILE.replace("stage: sft", "stage: ppo");
    let ran = run_on(["estimate", "--launch", "-", "--ignore-not-simulated"], &dpo);
    assert_eq!(ran.code, Some(4), "{}", ran.stdout);
    for words in ["another run", "stage: ppo", "vramscope dry-run"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    let ran = run_on(["estimate", "--launch", "-"], &dpo);
    assert!(!ran.stderr.contains("--ignore-not-simulated"), "{}", ran.stderr);
}

#[test]
fn vllm_in_the_same_process_takes_its_share_of_the_card() {
    let grpo = |more: &str| {
        format!(
            "trl grpo --model_name_or_path Qwen/Qwen2.5-0.5B --max_completion_length 256 --bf16 --dtype bfloat16 \
             --per_device_train_batch_size 8 --num_generations 8 {more}\n"
        )
    };
    let with = ignoring(
        &grpo("--use_vllm True --vllm_gpu_memory_utilization 0.4"),
        &["--gpu", "H100", "--seq", "512"],
    );
    let without = ignoring(&grpo(""), &["--gpu", "H100", "--seq", "512"]);
    let needed = |answer: &Value| answer["target"]["needed"].as_u64().expect("bytes");
    let (share, room) = (
        needed(&with) - needed(&without),
        with["target"]["room"].as_u64().expect("bytes"),
    );
    assert!(share >= room / 3, "{share} of {room}");
    let term = with["target"]["outside"]
        .as_array()
        .expect("terms")
        .iter()
        .find(|term| term["name"] == "vllm");
    assert!(term.is_some(), "{with}");
    // Of the card all is known; without one the training's own part is a lower bound.
    let left_out = with["not_this_run"].as_array().expect("a list");
    assert!(left_out.iter().all(|left| left["what"] != "beside"), "{with}");
    let alone = ignoring(
        &grpo("--use_vllm True --vllm_gpu_memory_utilization 0.4"),
        &["--seq", "512"],
    );
    assert_eq!(
        (&alone["grade"], &alone["not_this_run"][0]["what"]),
        (&"at_least".into(), &"beside".into()),
        "{alone}"
    );
}

const OTHER: &str =
    "CUDA_VISIBLE_DEVICES=0 swift sft --model Qwen/Qwen2.5-VL-3B-Instruct --tuner_type lora --lora_rank 8 \\
    --target_modules q_proj v_proj --freeze_vit true --freeze_aligner true --torch_dtype bfloat16 --bf16 true \\
    --max_length 2048 --per_device_train_batch_size 1 --gradient_accumulation_steps 4 --gradient_checkpointing true
";

/// Writes files of a test's own, and returns their paths beside the folder, which has to live.
fn written(files: &[(&str, &str)]) -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder of the test's own");
    let paths = files.iter().map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file of the test's own");
        path.to_string_lossy().into_owned()
    });
    let paths = paths.collect();
    (folder, paths)
}

/// Bytes of B without those of A.
fn more(both: &Value) -> i64 {
    let of = |run: usize| both[run].as_i64().unwrap_or_else(|| panic!("{both}"));
    of(1) - of(0)
}

#[test]
fn two_files_differ_by_what_their_tensors_and_the_rest_add_up_to() {
    let (_folder, paths) = written(&[("a.yaml", FILE), ("b.sh", OTHER)]);
    let args = [
        "estimate",
        "--launch",
        &paths[0],
        "--against",
        &paths[1],
        "--gpu",
        "RTX 4090",
    ];
    let ran = run(args.into_iter().chain(["--format", "json"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let difference = &answer["difference"];
    let of_a = run([
        "estimate", "--launch", &paths[0], "--gpu", "RTX 4090", "--format", "json",
    ]);
    let of_a: Value = serde_json::from_str(&of_a.stdout).expect("JSON");
    assert_eq!(answer["a"]["peak_allocated"], of_a["peak_allocated"]);
    for (run, side) in ["a", "b"].iter().enumerate() {
        assert_eq!(difference["allocated"][run], answer[side]["peak_allocated"]);
        assert_eq!(difference["needed"][run], answer[side]["target"]["needed"]);
    }
    let parts = difference["parts"].as_array().expect("parts");
    assert_eq!(
        parts.iter().map(|part| more(&part[1])).sum::<i64>(),
        more(&difference["needed"])
    );
    let tensors = difference["tensors"].as_array().expect("tensors");
    let held = |tensor: &Value, run: usize| tensor["held"][run]["bytes"].as_i64().unwrap_or_default();
    let sum: i64 = tensors.iter().map(|tensor| held(tensor, 1) - held(tensor, 0)).sum();
    assert_eq!(sum, more(&difference["allocated"]));
    assert!(sum != 0 && tensors.len() > 10, "{sum}, {}", tensors.len());
    let text = run(args);
    for words in [
        "Settings that differ",
        "Where the memory differs",
        "Tensor by tensor",
        "smaller differences",
        "rank",
    ] {
        assert!(text.stdout.contains(words), "{words}: {}", text.stdout);
    }
}

/// A row of several samples has the images of all of them. LLaMA-Factory's packed rows are full, so that a figure with those of one
/// sample is the least that they take; of other rows it bounds nothing.
#[test]
fn rows_of_several_samples_are_bounded_where_they_are_full_of_images() {
    let grade = |line: &str, more: &[&str]| {
        let file = FILE.to_owned() + line;
        let args = [
            "estimate",
            "--launch",
            "-",
            "--ignore-not-simulated",
            "--format",
            "json",
        ];
        let ran = run_on(args.iter().chain(more).copied(), &file);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr));
        answer["grade"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(grade("packing: true\n", &[]), "at_most");
    assert_eq!(grade("packing: true\n", &["--image-sizes", "252x252"]), "at_least");
    let neat = "neat_packing: true\nflash_attn: fa2\n";
    assert_eq!(grade(neat, &[]), "at_most");
    assert_eq!(grade(neat, &["--image-sizes", "252x252"]), "dry_run");
}

#[test]
fn the_file_of_a_run_stands_beside_its_error() {
    let error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of \
                 23.64 GiB of which 1.89 GiB is free. Of the allocated memory 20.45 GiB is allocated by PyTorch, and \
                 1.05 GiB is reserved by PyTorch but unallocated.";
    let file = FILE.to_owned() + "neat_packing: true\n";
    let (_folder, paths) = written(&[("error.txt", error), ("a.yaml", &file)]);
    let ran = run(["diagnose", &paths[0], "--launch", &paths[1], "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert!(
        answer["fixes"].as_array().is_some_and(|fixes| !fixes.is_empty()),
        "{answer}"
    );
    assert!(ran.stderr.contains("not simulated: neat_packing"), "{}", ran.stderr);
}
