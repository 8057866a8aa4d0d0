//! Tiny configurations of families with latent attention.

use serde_json::{Value, json};

use super::configurations::tower;
use super::mixtures::grouped;

/// A decoder with DeepSeek's keys of attention and experts.
pub fn latent(model_type: &str, w: u64) -> Value {
    let mut config = grouped(model_type, w);
    let sizes = [
        ("num_key_value_heads", 4 * w),
        ("head_dim", 8),
        ("qk_nope_head_dim", 16),
        ("qk_rope_head_dim", 8),
        ("v_head_dim", 16),
        ("kv_lora_rank", 16 * w),
        ("q_lora_rank", 24 * w),
        ("n_group", 1),
        ("topk_group", 1),
    ];
    for (key, size) in sizes {
        config[key] = size.into();
    }
    config
}

/// Kimi-K2.5.
pub fn kimi_k25(w: u64) -> Value {
    json!({"model_type": "kimi_k25", "text_config": latent("deepseek_v3", w), "projection_hidden_size": 64 * w,
        "vision_config": tower("kimi_k25_vision", w)})
}
