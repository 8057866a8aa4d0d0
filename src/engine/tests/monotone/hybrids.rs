//! Tiny configurations of decoders in which some layers scan a state, convolve, or mix positions linearly.

use serde_json::{Value, json};

use super::configurations::decoder;

/// Mixers of Mamba 2, by Bamba's keys.
fn with_mamba2(model_type: &str, w: u64) -> Value {
    let mut config = decoder(model_type, w);
    let sizes = [
        ("mamba_n_heads", 8 * w),
        ("mamba_d_state", 8),
        ("mamba_chunk_size", 16),
        ("mamba_d_ssm", 128 * w),
    ];
    for (key, size) in sizes {
        config[key] = size.into();
    }
    config
}

/// Bamba.
pub fn bamba(w: u64) -> Value {
    let mut config = with_mamba2("bamba", w);
    config["attn_layer_indices"] = json!([1]);
    config
}

/// Granite 4.
pub fn granitemoehybrid(w: u64) -> Value {
    let mut config = with_mamba2("granitemoehybrid", w);
    config["layer_types"] = json!(["mamba", "attention"]);
    config["num_local_experts"] = 4.into();
    config["shared_intermediate_size"] = (32 * w).into();
    config
}

/// Falcon H1.
pub fn falcon_h1(w: u64) -> Value {
    with_mamba2("falcon_h1", w)
}

/// Nemotron-H.
pub fn nemotron_h(w: u64) -> Value {
    let mut config = decoder("nemotron_h", w);
    config["hybrid_override_pattern"] = "M*-E".into();
    let sizes = [
        ("mamba_num_heads", 8 * w),
        ("mamba_head_dim", 16),
        ("n_groups", 2),
        ("ssm_state_size", 8),
        ("chunk_size", 16),
        ("n_routed_experts", 4),
        ("moe_intermediate_size", 32 * w),
        ("moe_shared_expert_intermediate_size", 32 * w),
    ];
    for (key, size) in sizes {
        config[key] = size.into();
    }
    config
}

/// Jamba.
pub fn jamba(w: u64) -> Value {
    let mut config = decoder("jamba", w);
    for (key, size) in [
        ("attn_layer_period", 2),
        ("attn_layer_offset", 1),
        ("num_experts", 4),
        ("mamba_d_state", 8),
    ] {
        config[key] = size.into();
    }
    config
}

/// OLMo Hybrid.
pub fn olmo_hybrid(w: u64) -> Value {
    let mut config = decoder("olmo_hybrid", w);
    config["pad_token_id"] = 0.into();
    config["layer_types"] = json!(["linear_attention", "full_attention"]);
    config["linear_num_key_heads"] = (2 * w).into();
    config["linear_num_value_heads"] = (4 * w).into();
    config["linear_key_head_dim"] = 16.into();
    config
}

/// LFM2-MoE.
pub fn lfm2_moe(w: u64) -> Value {
    json!({"model_type": "lfm2_moe", "vocab_size": 500, "hidden_size": 64 * w, "intermediate_size": 160 * w,
        "num_hidden_layers": 3, "num_attention_heads": 4 * w, "num_key_value_heads": 2 * w,
        "layer_types": ["conv", "conv", "full_attention"], "num_dense_layers": 1, "num_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 32 * w})
}
