//! Tiny configurations of families with mixtures of experts.

use serde_json::{Value, json};

use super::configurations::{decoder, delta, glm4v};

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

/// GLM-4.5V.
pub fn glm4v_moe(w: u64) -> Value {
    let mut config = glm4v("glm4v_moe", w);
    config["text_config"] = grouped("glm4v_moe_text", w);
    config["text_config"]["rope_parameters"] = json!({"rope_type": "default", "mrope_section": [1, 1, 2]});
    config
}

/// ERNIE 4.5 VL.
pub fn ernie_vl(w: u64) -> Value {
    let mut text = ernie(w);
    text["model_type"] = "ernie4_5_vl_moe_text".into();
    text["moe_intermediate_size"] = json!([32 * w, 16 * w]);
    text["rope_parameters"] = json!({"rope_type": "default", "mrope_section": [2, 2, 4]});
    json!({"model_type": "ernie4_5_vl_moe", "text_config": text, "vision_config": {"depth": 2, "hidden_size": 64 * w,
        "intermediate_size": 96 * w, "num_heads": 4, "patch_size": 14}})
}

/// MiniMax-M3's language model.
pub fn minimax_m3_text(w: u64) -> Value {
    let mut config = experts("minimax_m3_vl_text", w);
    config["num_local_experts"] = 4.into();
    config["intermediate_size"] = (32 * w).into();
    config["dense_intermediate_size"] = (160 * w).into();
    config["shared_intermediate_size"] = (32 * w).into();
    config["mlp_layer_types"] = json!(["dense", "sparse"]);
    config
}

/// MiniMax-M3.
pub fn minimax_m3(w: u64) -> Value {
    json!({"model_type": "minimax_m3_vl", "text_config": minimax_m3_text(w), "projector_hidden_size": 48 * w,
        "vision_config": {"num_hidden_layers": 2, "hidden_size": 64 * w, "intermediate_size": 96 * w,
            "num_attention_heads": 4, "patch_size": 14}})
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
