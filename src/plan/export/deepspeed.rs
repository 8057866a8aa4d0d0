//! Exports DeepSpeed's configuration (0.19).

use serde_json::{Value, json};

use super::Exported;
use vramscope_engine::setup::{Checkpointing, Precision, Strategy};

/// Writes batch sizes, dtypes, clipping, and the ZeRO stage that shards what the plan shards.
pub(super) fn json(of: &Exported<'_>) -> Result<String, String> {
    let setup = of.setup();
    let strategy = of.parallel().map(|parallel| parallel.strategy);
    let stage = match strategy {
        Some(own) if own.is_deepspeeds() => own.zero_stage().unwrap_or_default(),
        Some(Strategy::Zero1) => 1,
        Some(Strategy::FsdpNoReshard) => 2,
        Some(Strategy::Fsdp) => 3,
        _ => 0,
    };
    let mut zero = json!({"stage": stage});
    if of.parallel().is_some_and(|parallel| parallel.offload.is_any()) {
        zero["offload_optimizer"] = json!({"device": "cpu"});
        if stage == 3 {
            zero["offload_param"] = json!({"device": "cpu"});
        }
    }
    let mut out = json!({
        "train_micro_batch_size_per_gpu": setup.batch,
        "gradient_accumulation_steps": setup.accum,
        "train_batch_size": setup.batch * setup.accum * of.plan.gpus,
        "gradient_clipping": of.max_grad_norm(),
        "zero_optimization": zero,
    });
    match setup.precision {
        Precision::Fp32 => {}
        Precision::Bf16 => out["bf16"] = json!({"enabled": true}),
        Precision::Bf16Amp | Precision::AmpBf16 => {
            out["torch_autocast"] = json!({"enabled": true, "dtype": "bfloat16"});
        }
        Precision::Fp16 => out["fp16"] = json!({"enabled": true}),
        Precision::AmpFp16 | Precision::Fp16Amp => out["torch_autocast"] = json!({"enabled": true, "dtype": "float16"}),
    }
    if setup.ckpt == Checkpointing::Full {
        out["activation_checkpointing"] = Value::Object(serde_json::Map::new());
    }
    let text = serde_json::to_string_pretty(&out).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}
