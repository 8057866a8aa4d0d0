//! Tiny configurations that several families share, or that are long.

use serde_json::{Value, json};

pub fn decoder(model_type: &str, w: u64) -> Value {
    json!({"model_type": model_type, "vocab_size": 500, "hidden_size": 64 * w, "intermediate_size": 160 * w,
        "num_hidden_layers": 2, "num_attention_heads": 4 * w, "num_key_value_heads": 2 * w, "head_dim": 16,
        "max_position_embeddings": 1024, "sliding_window": 24, "sliding_window_pattern": 2})
}

/// Falcon, each of whose heads has keys and values: one head of them for all runs beside a mask as separate operations,
/// which take more than eager attention.
pub fn falcon(w: u64) -> Value {
    let mut config = decoder("falcon", w);
    config["multi_query"] = false.into();
    config
}

/// SAM's vision tower.
pub fn sam(w: u64) -> Value {
    json!({"hidden_size": 64 * w, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 128, "patch_size": 16,
        "window_size": 3, "global_attn_indexes": [1], "mlp_dim": 128 * w, "output_channels": 32})
}

pub fn got_ocr2(model_type: &str, w: u64) -> Value {
    json!({"model_type": model_type, "image_token_index": 499, "text_config": decoder("qwen2", w),
        "vision_config": sam(w)})
}

pub fn qwen3_vl(model_type: &str, w: u64) -> Value {
    let mut text = multimodal(w);
    text["model_type"] = "qwen3_vl_text".into();
    beside_qwen3_tower(model_type, text, w)
}

/// A model of the given text configuration and Qwen3-VL's tower.
pub fn beside_qwen3_tower(model_type: &str, text: Value, w: u64) -> Value {
    json!({"model_type": model_type, "text_config": text, "vision_config": {"depth": 2,
        "hidden_size": 64 * w, "intermediate_size": 96 * w, "out_hidden_size": 64 * w, "num_heads": 4,
        "patch_size": 16, "num_position_embeddings": 64, "deepstack_visual_indexes": [0]}})
}

pub fn gemma3(model_type: &str, w: u64) -> Value {
    json!({"model_type": model_type, "mm_tokens_per_image": 4, "text_config": decoder("gemma3_text", w),
        "vision_config": siglip_without_head(w)})
}

pub fn glm4v(model_type: &str, w: u64) -> Value {
    let mut text = decoder("glm4v_text", w);
    text["rope_parameters"] = json!({"rope_type": "default", "mrope_section": [2, 3, 3]});
    text.as_object_mut().map(|text| text.remove("head_dim"));
    json!({"model_type": model_type, "text_config": text, "vision_config": {"model_type": "glm4v_vision", "depth": 2,
        "hidden_size": 64 * w, "intermediate_size": 96 * w, "out_hidden_size": 64 * w, "num_heads": 4, "patch_size": 14}})
}

pub fn gemma4(model_type: &str, w: u64) -> Value {
    json!({"model_type": model_type, "vocab_size": 500, "hidden_size": 64 * w, "intermediate_size": 160 * w,
        "num_hidden_layers": 4, "num_attention_heads": 4 * w, "num_key_value_heads": 2 * w, "head_dim": 16,
        "global_head_dim": 32, "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
        "full_attention"], "num_kv_shared_layers": 2, "sliding_window": 24, "max_position_embeddings": 1024,
        "hidden_size_per_layer_input": 16, "vocab_size_per_layer_input": 500})
}

pub fn bart(model_type: &str, w: u64) -> Value {
    json!({"model_type": model_type, "vocab_size": 500, "d_model": 64 * w, "decoder_ffn_dim": 160 * w,
        "decoder_layers": 2, "decoder_attention_heads": 4, "max_position_embeddings": 1024,
        "max_target_positions": 1024, "pad_token_id": 1})
}

pub fn llama4_text(w: u64) -> Value {
    let mut config = decoder("llama4_text", w);
    config["num_local_experts"] = 2.into();
    config["intermediate_size_mlp"] = (160 * w).into();
    config["attention_chunk_size"] = 24.into();
    config
}

pub fn with_padding(mut config: Value) -> Value {
    config["pad_token_id"] = 0.into();
    config
}

pub fn glm(w: u64) -> Value {
    with_padding(decoder("glm", w))
}

pub fn glm4(w: u64) -> Value {
    let mut config = glm(w);
    config["model_type"] = "glm4".into();
    config
}

pub fn multimodal(w: u64) -> Value {
    let mut config = decoder("qwen2", w);
    config["rope_scaling"] = json!({"type": "mrope", "mrope_section": [2, 3, 3]});
    config
}

pub fn delta(w: u64) -> Value {
    json!({"model_type": "qwen3_5_text", "vocab_size": 500, "hidden_size": 64 * w, "intermediate_size": 160 * w,
        "num_hidden_layers": 3, "num_attention_heads": 4 * w, "num_key_value_heads": 2 * w, "head_dim": 16,
        "full_attention_interval": 3, "linear_num_key_heads": 2 * w, "linear_num_value_heads": 4 * w,
        "linear_key_head_dim": 16, "linear_value_head_dim": 16})
}

pub fn lfm2(w: u64) -> Value {
    json!({"model_type": "lfm2", "vocab_size": 500, "hidden_size": 64 * w, "intermediate_size": 160 * w,
        "num_hidden_layers": 3, "num_attention_heads": 4 * w, "num_key_value_heads": 2 * w,
        "full_attn_idxs": [2], "block_multiple_of": 8})
}

pub fn bert(model_type: &str, w: u64) -> Value {
    json!({"model_type": model_type, "vocab_size": 500, "hidden_size": 64 * w, "embedding_size": 32 * w,
        "input_embedding_size": 32 * w, "output_embedding_size": 96 * w,
        "intermediate_size": 160 * w, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 1024})
}

pub fn gpt(model_type: &str, w: u64) -> Value {
    json!({"model_type": model_type, "vocab_size": 500, "n_positions": 1024, "n_embd": 64 * w, "n_layer": 2, "n_head": 4,
        "rotary_dim": 8})
}

pub fn opt(w: u64) -> Value {
    json!({"model_type": "opt", "vocab_size": 500, "hidden_size": 64 * w, "ffn_dim": 160 * w, "num_hidden_layers": 2,
        "num_attention_heads": 4, "word_embed_proj_dim": 64 * w, "max_position_embeddings": 1024})
}

pub fn tower(model_type: &str, w: u64) -> Value {
    json!({"model_type": model_type, "hidden_size": 64 * w, "intermediate_size": 96 * w, "num_hidden_layers": 3,
        "num_attention_heads": 4, "image_size": 28, "patch_size": 7, "projection_dim": 32 * w, "vocab_size": 500,
        "max_position_embeddings": 16, "num_labels": 10})
}

pub fn siglip_without_head(w: u64) -> Value {
    let mut config = tower("siglip_vision_model", w);
    config["vision_use_head"] = false.into();
    config
}

pub fn mllama(w: u64) -> Value {
    json!({"model_type": "mllama", "text_config": {"vocab_size": 500, "hidden_size": 64 * w, "intermediate_size": 160 * w,
        "num_hidden_layers": 3, "num_attention_heads": 4 * w, "num_key_value_heads": 2 * w, "cross_attention_layers": [1]},
        "vision_config": {"hidden_size": 64 * w, "intermediate_size": 96 * w, "num_hidden_layers": 3,
            "num_global_layers": 1, "attention_heads": 4, "image_size": 28, "patch_size": 7, "max_num_tiles": 2,
            "vision_output_dim": 64 * w * 3, "intermediate_layers_indices": [0, 1],
            "supported_aspect_ratios": [[1, 1], [1, 2]]}})
}

pub fn blip2(w: u64) -> Value {
    json!({"model_type": "blip-2", "num_query_tokens": 4, "text_config": opt(w),
        "vision_config": tower("blip_2_vision_model", w), "qformer_config": {"hidden_size": 32 * w,
            "intermediate_size": 64 * w, "num_hidden_layers": 2, "num_attention_heads": 4, "encoder_hidden_size": 64 * w}})
}

pub fn instructblip(model_type: &str, w: u64) -> Value {
    let mut config = blip2(w);
    config["model_type"] = model_type.into();
    config["qformer_config"]["vocab_size"] = 500.into();
    config["qformer_config"]["max_position_embeddings"] = 1024.into();
    config
}

pub fn blip_text(w: u64) -> Value {
    json!({"vocab_size": 500, "hidden_size": 64 * w, "intermediate_size": 96 * w, "num_hidden_layers": 2,
        "num_attention_heads": 4, "max_position_embeddings": 1024})
}
