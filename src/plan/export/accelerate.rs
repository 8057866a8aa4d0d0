//! Exports accelerate's configuration file (1.15): `accelerate launch --config_file FILE`.

use serde_json::{Value, json};

use super::{Exported, distributed_type, yaml};
use vramscope_engine::setup::{Checkpointing, Strategy};

/// Writes the file with one process per GPU, and FSDP2 if the plan shards parameters.
pub(super) fn any(of: &Exported<'_>) -> Result<String, String> {
    if of.is_sharded() {
        fsdp(of)
    } else {
        Ok(yaml::document(&of.notes(true), &common(of, "NO")))
    }
}

/// Writes the file for FSDP2 with the plan's strategy, or a general form if the plan uses one GPU or shards nothing.
pub(super) fn fsdp(of: &Exported<'_>) -> Result<String, String> {
    let strategy = of.parallel().map_or(Strategy::Fsdp, |parallel| parallel.strategy);
    let reshard = !matches!(strategy, Strategy::FsdpNoReshard | Strategy::Fsdp1NoReshard);
    let offload = of.parallel().is_some_and(|parallel| parallel.offload.is_any());
    let mut entries = common(of, "FSDP");
    if strategy.is_fsdp1() {
        let checkpoints = of.setup().ckpt == Checkpointing::Full;
        entries.push(("fsdp_config", fsdp1(reshard, offload, checkpoints)));
        return Ok(yaml::document(&of.notes(true), &entries));
    }
    entries.push((
        "fsdp_config",
        json!({
            "fsdp_version": 2,
            "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "fsdp_reshard_after_forward": reshard,
            "fsdp_offload_params": offload,
            "fsdp_cpu_ram_efficient_loading": true,
            "fsdp_state_dict_type": "SHARDED_STATE_DICT",
            "fsdp_activation_checkpointing": of.setup().ckpt == Checkpointing::Full,
        }),
    ));
    Ok(yaml::document(&of.notes(true), &entries))
}

/// Entries of FSDP1.
fn fsdp1(reshard: bool, offload: bool, checkpoints: bool) -> Value {
    json!({
        "fsdp_version": 1,
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_sharding_strategy": if reshard { "FULL_SHARD" } else { "SHARD_GRAD_OP" },
        "fsdp_backward_prefetch": "BACKWARD_PRE",
        "fsdp_forward_prefetch": false,
        "fsdp_use_orig_params": true,
        "fsdp_sync_module_states": true,
        "fsdp_offload_params": offload,
        "fsdp_cpu_ram_efficient_loading": true,
        "fsdp_state_dict_type": "SHARDED_STATE_DICT",
        "fsdp_activation_checkpointing": checkpoints,
    })
}

fn common(of: &Exported<'_>, alone: &'static str) -> Vec<(&'static str, Value)> {
    let [bf16, fp16] = of.autocast();
    let mp = of.parallel().is_some_and(|parallel| parallel.mp);
    let precision = match (bf16 || mp, fp16) {
        (true, _) => "bf16",
        (_, true) => "fp16",
        _ => "no",
    };
    let kind = of
        .parallel()
        .map_or(alone, |parallel| match distributed_type(parallel.strategy) {
            "FSDP" => "FSDP",
            other if alone == "NO" => other,
            _ => alone,
        });
    vec![
        ("compute_environment", json!("LOCAL_MACHINE")),
        ("distributed_type", json!(kind)),
        ("mixed_precision", json!(precision)),
        ("num_machines", json!(1)),
        ("num_processes", json!(of.plan.gpus)),
        ("machine_rank", json!(0)),
        ("main_training_function", json!("main")),
        ("rdzv_backend", json!("static")),
        ("same_network", json!(true)),
        ("use_cpu", json!(false)),
    ]
}
