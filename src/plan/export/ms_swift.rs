//! Exports ms-swift's YAML (4.6): `swift sft FILE`.

use serde_json::{Value, json};

use super::{Exported, targets, yaml};
use vramscope_engine::setup::{Freeze, Targets};

pub(super) fn yaml(of: &Exported<'_>) -> Result<String, String> {
    let setup = of.setup();
    if setup.frozen_dtype() != setup.precision.weights() {
        return Err(
            "ms-swift keeps frozen weights in the type of trained ones; plan with --frozen-weights as_trained"
                .to_owned(),
        );
    }
    let [bf16, fp16] = of.autocast();
    let mut entries = vec![
        ("model", json!(of.model_id())),
        ("tuner_type", json!(if of.has_adapters() { "lora" } else { "full" })),
        ("torch_dtype", json!(of.weights())),
        ("bf16", json!(bf16)),
        ("fp16", json!(fp16)),
        ("attn_impl", json!(of.attn())),
        ("max_length", json!(setup.seq)),
        ("output_dir", json!("output")),
        ("per_device_train_batch_size", json!(setup.batch)),
        ("gradient_accumulation_steps", json!(setup.accum)),
        ("optim", json!(of.optim()?)),
        ("max_grad_norm", json!(of.max_grad_norm())),
        ("gradient_checkpointing", json!(of.checkpoints())),
        (
            "gradient_checkpointing_kwargs",
            json!(json!({"use_reentrant": setup.reentrant}).to_string()),
        ),
    ];
    entries.extend(of.noise());
    if of.has_adapters() {
        entries.push(("lora_rank", json!(setup.rank)));
        entries.push(("lora_alpha", json!(2 * setup.rank)));
        entries.push(("lora_dropout", json!(setup.lora_dropout)));
        entries.extend(setup.dora.then(|| ("use_dora", json!(true))));
        entries.extend(of.saved_modules().map(|names| ("modules_to_save", json!(names))));
        match targets::target_modules(&setup.lora_targets) {
            Value::String(all) if all != "all-linear" => entries.push(("target_regex", json!(all))),
            names => entries.push(("target_modules", names)),
        }
    }
    let frozen = match setup.freeze {
        // A frozen tower, as it is by default, gets no adapters from `all-linear`.
        Freeze::Lora | Freeze::Qlora if setup.lora_targets == Targets::AllLinear => Some([false, false, false]),
        Freeze::Parts(frozen) => Some([frozen.language, frozen.vision, frozen.connector]),
        Freeze::Lora | Freeze::Qlora => None,
    };
    if let Some([llm, vit, aligner]) = frozen {
        entries.push(("freeze_llm", json!(llm)));
        entries.push(("freeze_vit", json!(vit)));
        entries.push(("freeze_aligner", json!(aligner)));
    }
    if setup.freeze == Freeze::Qlora {
        entries.push(("quant_method", json!("bnb")));
        entries.push(("quant_bits", json!(4)));
        entries.push(("bnb_4bit_quant_type", json!("nf4")));
        entries.push(("bnb_4bit_use_double_quant", json!(true)));
    }
    if of.has_liger() {
        entries.push(("use_liger_kernel", json!(true)));
    }
    // Its command line takes no `liger_kernel_config`: argparse can't make a dict of a text.
    let notes = [of.notes_with_lines(false), of.liger_notes("use_liger_kernel")].concat();
    Ok(yaml::document(&notes, &entries))
}
