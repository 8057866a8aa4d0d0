//! Exports LLaMA-Factory's YAML (0.9.5).

use serde_json::{Value, json};

use super::{Exported, yaml};
use vramscope_engine::setup::{Attention, Freeze, Loss, Precision, Setup, Targets};

/// LLaMA-Factory's `lora_target`; its `all` is peft's `all-linear`.
fn lora_target(names: &[String]) -> String {
    names.join(",").replace("all-linear", "all")
}

pub(super) fn yaml(of: &Exported<'_>) -> Result<String, String> {
    let setup = of.setup();
    let attn = match setup.attn {
        Attention::Sdpa => "sdpa",
        Attention::Eager => "disabled",
        Attention::FlashAttention2 => "fa2",
    };
    let mut entries = vec![
        ("model_name_or_path", json!(of.model_id())),
        ("stage", json!("sft")),
        ("do_train", json!(true)),
        (
            "finetuning_type",
            json!(if of.has_adapters() { "lora" } else { "full" }),
        ),
        ("flash_attn", json!(attn)),
        ("cutoff_len", json!(setup.seq)),
        ("output_dir", json!("output")),
        ("per_device_train_batch_size", json!(setup.batch)),
        ("gradient_accumulation_steps", json!(setup.accum)),
        ("optim", json!(of.optim()?)),
        ("max_grad_norm", json!(of.clip())),
        ("disable_gradient_checkpointing", json!(!of.checkpoints())),
        ("use_reentrant_gc", json!(false)),
    ];
    if of.has_adapters() {
        entries.push(("lora_rank", json!(setup.rank)));
        entries.push(("lora_alpha", json!(2 * setup.rank)));
        entries.push(("lora_dropout", json!(setup.lora_dropout)));
        entries.push(("lora_target", json!(lora_target(&of.target_names()))));
    }
    entries.extend(freezing(setup));
    if setup.loss == Loss::FusedLinear {
        entries.push(("enable_liger_kernel", json!(true)));
    }
    match setup.precision {
        Precision::Fp32 => {}
        Precision::Bf16 => {
            entries.push(("bf16", json!(true)));
            entries.push(("pure_bf16", json!(!of.has_adapters())));
        }
        Precision::AmpBf16 => entries.push(("bf16", json!(true))),
        Precision::AmpFp16 => entries.push(("fp16", json!(true))),
    }
    Ok(yaml::document(&of.notes_with_lines(false), &entries))
}

/// What is frozen, and how frozen weights are quantized.
fn freezing(setup: &Setup) -> Vec<(&'static str, Value)> {
    // With `freeze_vision_tower`, LLaMA-Factory adds no adapters to the tower.
    let is_vision_frozen = setup.lora_targets != Targets::AllLinear;
    match setup.freeze {
        Freeze::None => vec![("freeze_vision_tower", json!(false))],
        Freeze::AllButConnector => vec![
            ("freeze_vision_tower", json!(true)),
            ("freeze_multi_modal_projector", json!(false)),
            ("freeze_language_model", json!(true)),
        ],
        Freeze::Vision => vec![
            ("freeze_vision_tower", json!(true)),
            ("freeze_multi_modal_projector", json!(false)),
        ],
        Freeze::Lora => vec![("freeze_vision_tower", json!(is_vision_frozen))],
        Freeze::Qlora => vec![
            ("freeze_vision_tower", json!(is_vision_frozen)),
            ("quantization_bit", json!(4)),
            ("quantization_method", json!("bnb")),
            ("double_quantization", json!(true)),
        ],
    }
}
