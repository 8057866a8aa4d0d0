//! Exports TRL's `SFTConfig` and `ModelConfig` (1.16), as `TrlParser` reads them.

use serde_json::{Value, json};

use super::{Exported, targets, transformers, yaml};
use vramscope_engine::setup::{Freeze, Loss};

pub(super) fn yaml(of: &Exported<'_>) -> Result<String, String> {
    let setup = of.setup();
    let mut entries = vec![
        ("model_name_or_path", json!(of.model_id())),
        ("dtype", json!(of.weights())),
        ("attn_implementation", json!(of.attn())),
    ];
    entries.extend(of.noise());
    if of.has_adapters() {
        if targets::exclude_modules(&setup.lora_targets).is_some() {
            return Err(
                "TRL's ModelConfig can't leave the vision tower out of all-linear; plan with --lora-targets projections, \
                 or export ms-swift, llama-factory or hf-python"
                    .to_owned(),
            );
        }
        entries.push(("use_peft", json!(true)));
        entries.push(("lora_r", json!(setup.rank)));
        entries.push(("lora_alpha", json!(2 * setup.rank)));
        entries.push(("lora_dropout", json!(setup.lora_dropout)));
        entries.extend(setup.dora.then(|| ("use_dora", json!(true))));
        entries.extend(of.saved_modules().map(|names| ("lora_modules_to_save", json!(names))));
        entries.push((
            "lora_target_modules",
            json!(match targets::target_modules(&setup.lora_targets) {
                // `ModelConfig` unwraps a list of one name, and peft then reads it as a regular expression.
                Value::String(all) => json!([all]),
                names => names,
            }),
        ));
    }
    if setup.freeze == Freeze::Qlora {
        entries.push(("load_in_4bit", json!(true)));
        entries.push(("bnb_4bit_quant_type", json!("nf4")));
        entries.push(("use_bnb_nested_quant", json!(true)));
    }
    // `SFTTrainer` has its own chunked loss that never holds all logits, and refuses Liger's in addition.
    let arguments = transformers::arguments(of)?;
    entries.extend(arguments.into_iter().filter(|(key, _)| !key.contains("liger")));
    entries.extend((setup.loss == Loss::Dft).then(|| ("loss_type", json!("dft"))));
    entries.push(("max_length", json!(setup.seq)));
    Ok(yaml::document(&of.notes_with_lines(false), &entries))
}
