//! Exports LLaMA-Factory's YAML (0.9.5).

use serde_json::{Value, json};

use super::{Exported, targets, yaml};
use vramscope_engine::dtype::DType;
use vramscope_engine::setup::{Attention, Freeze, Loss, Precision, Setup, Targets};

/// LLaMA-Factory's `lora_target`; its `all` is peft's `all-linear`.
fn lora_target(names: &[String]) -> String {
    names.join(",").replace("all-linear", "all")
}

/// Reason that LLaMA-Factory can't train the setup: it loads weights in 16 bits, and casts those that are trained to fp32
/// unless training is pure bf16 (`init_adapter`).
fn refusal(setup: &Setup) -> Option<&'static str> {
    if setup.has_frozen_weights() && setup.frozen_dtype() == DType::F32 {
        return Some("LLaMA-Factory keeps frozen weights in 16 bits; plan with --frozen-weights autocast");
    }
    match setup.precision {
        Precision::Fp16 => Some("LLaMA-Factory trains in fp16 under autocast alone; plan with --precision amp-fp16"),
        Precision::Fp16Amp if !matches!(setup.freeze, Freeze::Lora | Freeze::Qlora) => {
            Some("LLaMA-Factory trains in fp16 with fp32 weights; plan with --precision amp-fp16")
        }
        _ => None,
    }
}

pub(super) fn yaml(of: &Exported<'_>) -> Result<String, String> {
    let setup = of.setup();
    if let Some(why) = refusal(setup) {
        return Err(why.to_owned());
    }
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
        ("max_grad_norm", json!(of.max_grad_norm())),
        ("disable_gradient_checkpointing", json!(!of.checkpoints())),
        ("use_reentrant_gc", json!(setup.reentrant)),
    ];
    entries.extend(of.noise());
    entries.extend((setup.loss == Loss::Dft).then(|| ("use_dft_loss", json!(true))));
    entries.extend(of.smoothing());
    if of.has_adapters() {
        entries.push(("lora_rank", json!(setup.rank)));
        entries.push(("lora_alpha", json!(2 * setup.rank)));
        entries.push(("lora_dropout", json!(setup.lora_dropout)));
        entries.extend(setup.dora.then(|| ("use_dora", json!(true))));
        entries.extend(
            of.saved_modules()
                .map(|names| ("additional_target", json!(names.join(",")))),
        );
        entries.push(("lora_target", json!(lora_target(&targets::names(&setup.lora_targets)))));
    }
    entries.extend(freezing(setup));
    if of.has_liger() {
        entries.push(("enable_liger_kernel", json!(true)));
    }
    // `bf16` and `fp16` turn autocast on. LLaMA-Factory casts what trains to fp32 unless `pure_bf16` is set (`init_adapter`),
    // so full fine-tuning of weights in bf16 needs it even under autocast. Adapters train in fp32 under autocast: there
    // `bf16` alone loads the weights beside them in bf16. Without autocast only `pure_bf16` loads weights in bf16.
    let [bf16, fp16] = of.autocast();
    let pure = setup.precision.weights() == DType::Bf16 && (!bf16 || !of.has_adapters());
    let flags = [("bf16", bf16), ("fp16", fp16), ("pure_bf16", pure)];
    entries.extend(
        flags
            .into_iter()
            .filter(|(_, is_on)| *is_on)
            .map(|(key, _)| (key, json!(true))),
    );
    let notes = [of.notes_with_lines(false), of.liger_notes("enable_liger_kernel")].concat();
    Ok(yaml::document(&notes, &entries))
}

/// Entries for frozen parts, and for quantized weights.
fn freezing(setup: &Setup) -> Vec<(&'static str, Value)> {
    // LLaMA-Factory adds no adapters to frozen parts.
    let is_frozen = !matches!(setup.lora_targets, Targets::AllLinear | Targets::Named(_));
    let parts = [
        ("freeze_vision_tower", json!(is_frozen)),
        ("freeze_multi_modal_projector", json!(is_frozen)),
    ];
    match setup.freeze {
        // Both are frozen by default, the language model is not.
        Freeze::Parts(frozen) => [
            ("freeze_vision_tower", frozen.vision),
            ("freeze_multi_modal_projector", frozen.connector),
            ("freeze_language_model", frozen.language),
        ]
        .into_iter()
        .filter(|(key, is_frozen)| *is_frozen || *key != "freeze_language_model")
        .map(|(key, is_frozen)| (key, json!(is_frozen)))
        .collect(),
        Freeze::Lora => parts.to_vec(),
        Freeze::Qlora => {
            let quantized = [
                ("quantization_bit", json!(4)),
                ("quantization_method", json!("bnb")),
                ("double_quantization", json!(true)),
            ];
            [&parts[..], &quantized].concat()
        }
    }
}
