//! Tiny configurations of families with mixtures of experts.

use serde_json::Value;

use super::configurations::{decoder, delta};

/// A decoder with Qwen's keys.
pub fn experts(model_type: &str, w: u64) -> Value {
    let mut config = decoder(model_type, w);
    config["num_experts"] = 4.into();
    config["num_experts_per_tok"] = 2.into();
    config["moe_intermediate_size"] = (32 * w).into();
    config
}

/// A decoder with DeepSeek's keys.
pub fn grouped(model_type: &str, w: u64) -> Value {
    let mut config = experts(model_type, w);
    config["n_routed_experts"] = 4.into();
    config["n_shared_experts"] = 1.into();
    config["first_k_dense_replace"] = 1.into();
    config
}

/// A decoder with ERNIE's keys.
pub fn ernie(w: u64) -> Value {
    let mut config = experts("ernie4_5_moe", w);
    config["moe_num_experts"] = 4.into();
    config["moe_k"] = 2.into();
    config["pad_token_id"] = 0.into();
    config
}

/// gpt-oss.
pub fn gpt_oss(w: u64) -> Value {
    let mut config = experts("gpt_oss", w);
    config["num_local_experts"] = 4.into();
    config["intermediate_size"] = (32 * w).into();
    config
}

/// A decoder whose experts are as wide as an MLP elsewhere.
pub fn inside(model_type: &str, w: u64) -> Value {
    let mut config = experts(model_type, w);
    config["num_local_experts"] = 4.into();
    config["moe_topk"] = 2.into();
    config["shared_intermediate_size"] = (32 * w).into();
    config
}

/// A decoder with gated DeltaNet.
pub fn delta_experts(model_type: &str, w: u64) -> Value {
    let mut config = delta(w);
    config["model_type"] = model_type.into();
    config["num_experts"] = 4.into();
    config["num_experts_per_tok"] = 2.into();
    config["moe_intermediate_size"] = (32 * w).into();
    config["shared_expert_intermediate_size"] = (32 * w).into();
    config
}
