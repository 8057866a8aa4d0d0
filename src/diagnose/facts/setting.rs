//! Finds settings of a run in any text: flags of commands, variables, YAML, JSON, arguments in code, what tools print of
//! their arguments.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::paste::{Paste, is_quoted, masked};

/// A setting as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Key in lower case, with `_` for `-`.
    pub key: String,
    /// Its value; empty for a flag without one.
    pub value: String,
    /// Number of the line.
    pub line: usize,
}

/// Keys that say something of memory. Others are passed over.
const KNOWN: &str = "model model_name_or_path model_id_or_path model_name base_model model_path model_dir model_id \
    pretrained_model_name_or_path vla_path model_type per_device_train_batch_size per_gpu_train_batch_size batch_size \
    micro_batch_size train_micro_batch_size_per_gpu micro_batch_size_per_gpu ppo_micro_batch_size_per_gpu \
    per_device_eval_batch_size eval_batch_size max_length max_seq_length cutoff_len model_max_length max_seq_len \
    sequence_len max_model_len block_size train_type tuner_type sft_type finetuning_type use_lora lora_enable \
    lora_rank lora_r use_peft peft_type adapter adapter_name_or_path gradient_checkpointing \
    disable_gradient_checkpointing use_gradient_checkpointing vit_gradient_checkpointing activation_checkpointing \
    use_cache use_reentrant deepspeed stage zero_stage attn_impl attn_implementation _attn_implementation flash_attn \
    use_flash_attn use_flash_attention_2 flash_attention max_pixels image_max_pixels video_max_pixels nframes \
    fps_max_frames video_maxlen video_total_pixels size_factor max_image_size longest_edge image_resolution \
    resized_height image_max_token_num video_max_token_num video_fps fps max_num_frames num_frames max_frames \
    torch_dtype dtype bf16 fp16 load_in_4bit load_in_8bit quant_bits quant_method quantization_bit quantization use_vllm \
    vllm_mode vllm_gpu_memory_utilization gpu_memory_utilization sleep_level vllm_enable_sleep_mode vllm_sleep_enabled \
    enable_sleep_mode enforce_eager max_num_seqs tensor_parallel_size offload_model offload_optimizer offload_param \
    rlhf_type num_generations max_completion_length loss_type rl nproc_per_node num_processes num_gpus \
    cuda_visible_devices device_map packing dataloader_num_workers num_workers preprocessing_num_workers \
    dataset_num_proc streaming lazy_tokenize dataloader_pin_memory pin_memory eval_steps eval_strategy \
    evaluation_strategy do_eval eval_accumulation_steps predict_with_generate prediction_loss_only freeze_vit \
    freeze_vision_tower freeze_vision freeze_llm modules_to_save target_modules lora_target additional_target \
    use_liger_kernel use_liger enable_liger_kernel padding_free sequence_parallel_size optim group_by_length \
    pytorch_cuda_alloc_conf pytorch_alloc_conf fsdp compute_metrics save_steps save_only_model \
    stage3_gather_16bit_weights_on_model_save beam num_beams image_max_resolution min_pixels rope_scaling \
    resume_from_checkpoint save_strategy max_grad_norm truncation_strategy gradient_accumulation_steps memory_limit \
    shm_size max_steps fp32 precision prefetch_factor persistent_workers system_ram ulimit";

static KEYS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| KNOWN.split_ascii_whitespace().collect());

/// The keys as they may be written, to pass over lines without one: a log has metrics by the thousand, and no settings.
static SEARCH: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let written = KEYS.iter().flat_map(|key| [(*key).to_owned(), key.replace('_', "-")]);
    let written: BTreeSet<String> = written.collect();
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(written)
        .expect("a few hundred words")
});

/// Returns true if a line has one of the keys as a word of its own.
fn has_key(line: &str) -> bool {
    let is_of_word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = line.as_bytes();
    SEARCH
        .find_overlapping_iter(line)
        .any(|hit| !is_of_word(bytes[..hit.start()].last()) && !is_of_word(bytes.get(hit.end())))
}

/// `--key value`, `--key=value`, `key: value`, `"key": value`, `KEY=value`, `key="value"`.
static WRITTEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?P<flag>--)?["'`]?(?P<key>[A-Za-z_][A-Za-z0-9_-]{1,47})["'`]?(?:\s*(?P<sign>[=:])\s*|(?P<blank>\s+)|$)(?:"(?P<double>[^"]{0,200})"|'(?P<single>[^']{0,200})'|(?P<plain>[^\s"',;)}\]]{0,200}))?"#,
    )
    .expect("tested")
});

/// Longest line whose settings are read.
const LONGEST_LINE: usize = 20_000;
/// Largest number of settings: a sweep's log repeats its arguments without end.
const MOST: usize = 400;

/// Settings in a text, in order; a key may come several times.
pub fn settings(paste: &Paste<'_>) -> Vec<Setting> {
    let mut found: Vec<Setting> = Vec::new();
    for index in 0..paste.len() {
        let line = paste.line(index);
        if line.len() < 4 || !line.contains(['=', ':', '-']) {
            continue;
        }
        let line = crate::text::window(line, 0, LONGEST_LINE);
        if is_remark(line) || !has_key(line) {
            continue;
        }
        let mut at = 0;
        while let Some(written) = WRITTEN.captures_at(line, at) {
            let whole = written.get(0).map_or(at..line.len(), |whole| whole.range());
            let key = written["key"].to_ascii_lowercase().replace('-', "_");
            let is_flag = written.name("flag").is_some();
            let is_given = written.name("sign").is_some() || is_flag;
            // Within `ModelArguments(model='x', …)` the next key begins inside what was taken for a value.
            at = written.name("key").map_or(whole.end, |key| key.end()).max(at + 1);
            // `softmax(scores, dtype=torch.float32)` says nothing of the weights.
            let is_of_operation = key == "dtype" && line.contains('(') && !line.contains("from_pretrained");
            if !is_given || is_of_operation || !KEYS.contains(key.as_str()) || is_quoted(line, whole.start) {
                continue;
            }
            let value = ["double", "single", "plain"].iter().find_map(|name| written.name(name));
            let mut value = value.map_or("", |value| value.as_str());
            // The next option, or the end of a line that goes on.
            if written.name("sign").is_none() && value.starts_with("--") || value == "\\" {
                value = "";
            }
            let setting = Setting {
                key,
                value: masked(value.trim_end_matches(['\\', ','])),
                line: paste.number(index),
            };
            if !found
                .iter()
                .any(|known| known.key == setting.key && known.value == setting.value)
            {
                found.push(setting);
            }
            if found.len() == MOST {
                return found;
            }
        }
    }
    found
}

/// Returns true for a comment of a shell script or of YAML.
fn is_remark(line: &str) -> bool {
    let trimmed = line.trim_start();
    trimmed.starts_with("# ") || trimmed.starts_with('#') && trimmed[1..].trim_start().starts_with("--")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        let all = settings(&Paste::of(text));
        all.into_iter().map(|setting| (setting.key, setting.value)).collect()
    }

    #[test]
    fn settings_are_read_as_people_write_them() {
        for (text, key, value) in [
            ("swift sft --max_length 2048 \\", "max_length", "2048"),
            ("--gradient-checkpointing=true", "gradient_checkpointing", "true"),
            ("cutoff_len: 4096", "cutoff_len", "4096"),
            (
                "\"train_micro_batch_size_per_gpu\": 1,",
                "train_micro_batch_size_per_gpu",
                "1",
            ),
            ("MAX_PIXELS=602112 NPROC_PER_NODE=4 swift sft", "nproc_per_node", "4"),
            (
                "args = TrainingArguments(output_dir=\"x\", per_device_train_batch_size=8, bf16=True)",
                "bf16",
                "True",
            ),
            (
                "model = AutoModel.from_pretrained(name, attn_implementation='eager')",
                "attn_implementation",
                "eager",
            ),
            ("  --bf16 \\", "bf16", ""),
            (
                "SftArguments(model='Qwen/Qwen2-VL-7B', torch_dtype=torch.bfloat16)",
                "torch_dtype",
                "torch.bfloat16",
            ),
        ] {
            let all = read(text);
            assert!(all.contains(&(key.into(), value.into())), "{text}: {all:?}");
        }
        assert!(read("# --bf16 True").is_empty() && read("the model is large").is_empty());
    }
}
