//! Facts that follow from settings.

use std::sync::LazyLock;

use regex::Regex;

use super::{Fact, Facts, Place, Setting};

/// Names of models that take pictures.
static VISION_MODEL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)(qwen[\w.]*[-_]?vl|qwen[\w.]*omni|qvq|internvl|llava|minicpm-?[vo]|paligemma|idefics|smolvlm|pixtral|glm-?4(?:\.\d)?v|phi-?3(?:\.5)?-v|phi-?4-multimodal|gemma-?3-(?:4|12|27)b|gemma-?3n|llama-?3\.2-(?:11|90)b|vision-instruct|deepseek-?vl|ovis|molmo|kimi-vl|cogvlm|mplug|florence|blip|videollama|mllama|aria\b|qwen3\.5)",
    )
    .expect("tested")
});

/// Returns true for a value that switches a setting on: none at all, as of a flag, or one of these words (`unsloth` is
/// a form of checkpointing).
fn is_true(value: &str) -> bool {
    value.is_empty()
        || matches!(
            value.to_ascii_lowercase().as_str(),
            "true" | "1" | "yes" | "on" | "unsloth" | "y"
        )
}

/// Returns true for a value that switches a setting off.
fn is_false(value: &str) -> bool {
    matches!(
        value.to_ascii_lowercase().as_str(),
        "false" | "0" | "no" | "off" | "none" | "n"
    )
}

/// Adds the facts that settings show; `text` is the index of the text that they stand in.
pub fn derive(facts: &mut Facts, settings: &[Setting], text: usize) {
    for setting in settings {
        let place = Place {
            text,
            line: setting.line,
        };
        let mut add = |fact: Fact| facts.add(fact, place);
        let value = setting.value.as_str();
        let lower = value.to_ascii_lowercase();
        // Python writes 120_000 for 120000.
        let number = value.replace('_', "").parse::<u64>().ok();
        model_and_length(&setting.key, value, number, &mut add);
        memory(&setting.key, &lower, number, &mut add);
        parallel(&setting.key, &lower, number, &mut add);
        generation(&setting.key, &lower, &mut add);
        remember(facts, setting, number);
    }
    if facts.has(Fact::ManyCards) {
        facts.of.remove(&Fact::OneCard);
    }
}

fn model_and_length(key: &str, value: &str, number: Option<u64>, add: &mut impl FnMut(Fact)) {
    match key {
        "model"
        | "model_name_or_path"
        | "model_id_or_path"
        | "model_name"
        | "base_model"
        | "model_path"
        | "model_dir"
        | "model_id"
        | "pretrained_model_name_or_path"
        | "vla_path"
        | "model_type" => {
            if key != "model_type" && is_name(value) {
                add(Fact::HasModel);
            }
            if VISION_MODEL.is_match(value) {
                add(Fact::VisionModel);
            }
        }
        "max_length" | "max_seq_length" | "cutoff_len" | "model_max_length" | "max_seq_len" | "sequence_len" => {
            add(Fact::HasLength);
            if number.is_some_and(|length| length >= 8192) {
                add(Fact::LongLength);
            }
        }
        "max_pixels"
        | "image_max_pixels"
        | "size_factor"
        | "max_image_size"
        | "longest_edge"
        | "image_resolution"
        | "resized_height"
        | "image_max_token_num"
        | "image_max_resolution" => add(Fact::PixelCap),
        "video_max_pixels"
        | "nframes"
        | "fps_max_frames"
        | "video_maxlen"
        | "video_total_pixels"
        | "video_max_token_num"
        | "max_num_frames"
        | "num_frames"
        | "max_frames" => add(Fact::VideoCap),
        "packing" if is_true(value) => add(Fact::Packing),
        _ => {}
    }
}

fn memory(key: &str, value: &str, number: Option<u64>, add: &mut impl FnMut(Fact)) {
    match key {
        "per_device_train_batch_size"
        | "per_gpu_train_batch_size"
        | "batch_size"
        | "micro_batch_size"
        | "train_micro_batch_size_per_gpu"
        | "micro_batch_size_per_gpu"
        | "ppo_micro_batch_size_per_gpu" => match number {
            Some(1) => add(Fact::BatchOne),
            Some(2..) => add(Fact::BatchMore),
            _ => {}
        },
        "train_type" | "tuner_type" | "sft_type" | "finetuning_type" | "adapter" => match value {
            "lora" | "qlora" | "adalora" | "longlora" | "dora" => add(Fact::Lora),
            "full" => add(Fact::Full),
            _ => {}
        },
        "use_lora" | "lora_enable" | "use_peft" if is_true(value) => add(Fact::Lora),
        "lora_rank" | "lora_r" | "peft_type" | "lora_target" | "target_modules" => add(Fact::Lora),
        "gradient_checkpointing" | "use_gradient_checkpointing" | "activation_checkpointing" if is_true(value) => {
            add(Fact::Checkpointing);
        }
        "gradient_checkpointing" | "use_gradient_checkpointing" if is_false(value) => add(Fact::NoCheckpointing),
        "disable_gradient_checkpointing" if is_true(value) => add(Fact::NoCheckpointing),
        "attn_impl"
        | "attn_implementation"
        | "_attn_implementation"
        | "flash_attn"
        | "use_flash_attn"
        | "use_flash_attention_2"
        | "flash_attention" => match value {
            "eager" | "disabled" | "false" => add(Fact::Eager),
            "sdpa" => add(Fact::Sdpa),
            "" | "flash_attn" | "flash_attention_2" | "flash_attention_3" | "fa2" | "true" => add(Fact::Flash),
            _ => {}
        },
        "torch_dtype" | "dtype" | "precision" => {
            let name = value.rsplit('.').next().unwrap_or(value);
            match name {
                "float32" | "fp32" | "float" | "32" => add(Fact::Fp32),
                "bfloat16" | "bf16" | "float16" | "fp16" | "half" => add(Fact::Half),
                _ => {}
            }
        }
        "load_in_4bit" | "load_in_8bit" if is_true(value) => add(Fact::Quantized),
        "quant_bits" | "quantization_bit" if number.is_some_and(|bits| bits > 0) => add(Fact::Quantized),
        "freeze_vit" | "freeze_vision_tower" | "freeze_vision" if is_true(value) => add(Fact::Frozen),
        "use_liger_kernel" | "use_liger" | "enable_liger_kernel" if is_true(value) => add(Fact::Liger),
        "pytorch_cuda_alloc_conf" | "pytorch_alloc_conf" if value.contains("expandable_segments:true") => {
            add(Fact::Expandable);
        }
        "eval_steps" | "predict_with_generate" => add(Fact::Evaluates),
        "eval_strategy" | "evaluation_strategy" if !is_false(value) => add(Fact::Evaluates),
        "compute_metrics" if !is_false(value) => add(Fact::Metrics),
        "dataloader_num_workers" | "num_workers" if number.is_some_and(|workers| workers > 0) => add(Fact::Workers),
        "pin_memory" | "dataloader_pin_memory" if is_true(value) => add(Fact::PinnedMemory),
        _ => {}
    }
}

fn parallel(key: &str, value: &str, number: Option<u64>, add: &mut impl FnMut(Fact)) {
    match key {
        "deepspeed" | "zero_stage" | "stage" => {
            let stage = [("3", Fact::Zero3), ("2", Fact::Zero2), ("1", Fact::Zero1)];
            let is_stage = |digit: &str| {
                value == digit
                    || ["zero", "z", "stage", "zero_", "zero-", "stage_"]
                        .iter()
                        .any(|name| value.contains(&format!("{name}{digit}")))
            };
            if let Some((_, fact)) = stage.into_iter().find(|(digit, _)| is_stage(digit)) {
                add(fact);
            }
            if key == "deepspeed" && !value.is_empty() {
                add(Fact::DeepSpeed);
            }
            if value.contains("offload") && !value.contains("no_offload") {
                add(Fact::Offload);
            }
        }
        // `{` begins a section of DeepSpeed's file, whose device is on another line.
        "offload_optimizer" | "offload_param" if !is_false(value) && value != "{" => add(Fact::Offload),
        "fsdp" if !is_false(value) && !value.is_empty() => add(Fact::Fsdp),
        "device_map" if value == "auto" || value.starts_with("balanced") => add(Fact::DeviceMap),
        "nproc_per_node" | "num_processes" | "num_gpus" => match number {
            Some(1) => add(Fact::OneCard),
            Some(2..) => add(Fact::ManyCards),
            _ => {}
        },
        "cuda_visible_devices" => match value.split(',').filter(|part| !part.is_empty()).count() {
            1 => add(Fact::OneCard),
            2.. => add(Fact::ManyCards),
            0 => {}
        },
        _ => {}
    }
}

fn generation(key: &str, value: &str, add: &mut impl FnMut(Fact)) {
    match key {
        "rlhf_type" | "rl" => match value {
            "grpo" | "ppo" | "gkd" | "rloo" => add(Fact::Reinforcement),
            "dpo" | "kto" | "orpo" | "simpo" | "cpo" => add(Fact::Preference),
            _ => {}
        },
        "num_generations" | "max_completion_length" => add(Fact::Reinforcement),
        "use_vllm" if is_true(value) => add(Fact::UsesVllm),
        "vllm_mode" if value == "colocate" => {
            add(Fact::UsesVllm);
            add(Fact::Colocated);
        }
        "vllm_gpu_memory_utilization" => add(Fact::UsesVllm),
        // vLLM's own arguments, which a server has too.
        "gpu_memory_utilization" | "max_model_len" => add(Fact::Vllm),
        "sleep_level" if value != "0" => add(Fact::Sleeps),
        "vllm_enable_sleep_mode" | "vllm_sleep_enabled" | "enable_sleep_mode" if is_true(value) => add(Fact::Sleeps),
        _ => {}
    }
}

/// Keeps a value for the gaps of phrases, the first that is given for each.
fn remember(facts: &mut Facts, setting: &Setting, number: Option<u64>) {
    let name = match setting.key.as_str() {
        "model" | "model_name_or_path" | "model_id_or_path" | "model_path" | "base_model" | "model_name"
            if is_name(&setting.value) =>
        {
            let value = setting.value.trim_end_matches('/');
            facts
                .values
                .entry("model_name".into())
                .or_insert_with(|| value.to_owned());
            return;
        }
        "per_device_train_batch_size" | "train_micro_batch_size_per_gpu" | "micro_batch_size" => "batch",
        "per_device_eval_batch_size" | "eval_batch_size" => "eval_batch",
        "max_length" | "cutoff_len" | "model_max_length" | "max_seq_length" | "sequence_len" => "max_length",
        "max_pixels" | "image_max_pixels" => "max_pixels",
        "num_generations" => "generations",
        "max_completion_length" => "completion",
        "nproc_per_node" | "num_processes" | "num_gpus" => "processes",
        "dataloader_num_workers" | "num_workers" => "workers",
        "max_model_len" => "max_model_len",
        "gpu_memory_utilization" | "vllm_gpu_memory_utilization" => {
            facts
                .values
                .entry("utilization".into())
                .or_insert_with(|| setting.value.clone());
            return;
        }
        _ => return,
    };
    if let Some(number) = number {
        facts.values.entry(name.into()).or_insert_with(|| number.to_string());
    }
}

/// Returns true for the name or path of a model, and not for what stands in its place in code or in a manual: a
/// variable, an expression, a placeholder such as `<model>`, the next flag.
fn is_name(value: &str) -> bool {
    value.len() > 2
        && !value.contains(['$', '{', '(', '<'])
        && value.contains(['-', '/', '_'])
        && !value.starts_with("--")
}
