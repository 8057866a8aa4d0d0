//! TRL's `SFTConfig` and `ModelConfig` (1.16), as `TrlParser` reads them.

use serde_json::json;

use super::{Exported, transformers, yaml};
use crate::setup::Freeze;

pub(super) fn yaml(of: &Exported<'_>) -> Result<String, String> {
    let setup = of.setup();
    let mut entries = vec![
        ("model_name_or_path", json!(of.plan.model)),
        ("dtype", json!(of.weights())),
        ("attn_implementation", json!(of.attn())),
    ];
    if of.has_adapters() {
        entries.push(("use_peft", json!(true)));
        entries.push(("lora_r", json!(setup.rank)));
        entries.push(("lora_alpha", json!(2 * setup.rank)));
        entries.push(("lora_dropout", json!(setup.lora_dropout)));
        entries.push(("lora_target_modules", json!(of.targets())));
    }
    if setup.freeze == Freeze::Qlora {
        entries.push(("load_in_4bit", json!(true)));
        entries.push(("bnb_4bit_quant_type", json!("nf4")));
        entries.push(("use_bnb_nested_quant", json!(true)));
    }
    entries.extend(transformers::arguments(of)?);
    entries.push(("max_length", json!(setup.seq)));
    let mut notes = of.notes(false);
    match setup.freeze {
        Freeze::Vision => notes.push("freeze the vision tower: requires_grad_(False) on its parameters".to_owned()),
        Freeze::AllButConnector => notes.push("freeze all but the connector".to_owned()),
        _ => {}
    }
    Ok(yaml::document(&notes, &entries))
}
