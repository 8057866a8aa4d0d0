//! Exports PyTorch Lightning's `Trainer` configuration (2.6), as `LightningCLI` reads it.

use serde_json::json;

use super::{Exported, yaml};
use vramscope_engine::setup::{Precision, Strategy};

pub(super) fn yaml(of: &Exported<'_>) -> Result<String, String> {
    let setup = of.setup();
    let precision = match setup.precision {
        Precision::Fp32 => "32-true",
        Precision::Bf16 => "bf16-true",
        Precision::Bf16Amp | Precision::AmpBf16 => "bf16-mixed",
        Precision::AmpFp16 | Precision::Fp16Amp => "16-mixed",
        Precision::Fp16 => "16-true",
    };
    let strategy = match of.parallel().map(|parallel| parallel.strategy) {
        None => "auto",
        Some(Strategy::Fsdp | Strategy::FsdpNoReshard) => "fsdp",
        Some(_) => "ddp",
    };
    let mut trainer = json!({
        "accelerator": "gpu",
        "devices": of.plan.gpus,
        "strategy": strategy,
        "precision": precision,
        "accumulate_grad_batches": setup.accum,
    });
    if setup.clip {
        trainer["gradient_clip_val"] = json!(1.0);
    }
    let mut notes = of.notes(true);
    notes.push(format!("batch_size {} in the DataLoader", setup.batch));
    notes.push(format!("optimizer {}", setup.optim.name()));
    if of.checkpoints() {
        notes.push("call model.gradient_checkpointing_enable in configure_model".to_owned());
    }
    Ok(yaml::document(&notes, &[("trainer", trainer)]))
}
