//! Tiny configurations of families whose repositories bring their own code.

use serde_json::{Value, json};

use super::configurations::decoder;

/// Ovis2.5.
pub fn ovis2_5(w: u64) -> Value {
    let mut text = decoder("qwen3", w);
    text["tie_word_embeddings"] = true.into();
    json!({"model_type": "ovis2_5", "visual_vocab_size": 200, "hidden_size": 64 * w, "llm_config": text,
        "vit_config": {"model_type": "siglip2_navit", "hidden_size": 64 * w, "intermediate_size": 96 * w,
            "num_hidden_layers": 2, "num_attention_heads": 4}})
}

/// DeepSeek-VL2, with latent attention or Llama's.
pub fn deepseek_vl_v2(latent: bool, w: u64) -> Value {
    let of_latent = |size: u64| if latent { size } else { 0 };
    let rank = if latent { json!(16 * w) } else { Value::Null };
    json!({"model_type": "deepseek_vl_v2", "tile_tag": "2D", "global_view_pos": "head",
        "candidate_resolutions": [[56, 56], [112, 56]],
        "language_config": {"model_type": "deepseek_v2", "vocab_size": 500, "hidden_size": 64 * w,
            "intermediate_size": 160 * w, "moe_intermediate_size": 32 * w, "num_hidden_layers": 2,
            "num_attention_heads": 4 * w, "num_key_value_heads": 4 * w, "n_shared_experts": 1, "n_routed_experts": 4,
            "num_experts_per_tok": 2, "first_k_dense_replace": 1, "topk_method": "greedy",
            "max_position_embeddings": 1024, "n_group": 1, "topk_group": 1, "use_mla": latent, "kv_lora_rank": rank,
            "q_lora_rank": null, "qk_nope_head_dim": of_latent(16), "qk_rope_head_dim": of_latent(8),
            "v_head_dim": of_latent(16)},
        "vision_config": {"model_type": "vision", "model_name": "siglip_so400m_patch14_384", "width": 64 * w,
            "layers": 2, "heads": 4, "mlp_ratio": 2.0, "patch_size": 14, "image_size": 56},
        "projector_config": {"model_type": "mlp_projector", "input_dim": 64 * w, "n_embed": 64 * w}})
}
