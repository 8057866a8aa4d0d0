//! Tiny configurations of models of images, sound and text.

use serde_json::{Value, json};

use super::configurations::{beside_qwen3_tower, decoder};
use super::mixtures::experts;

/// Adds an audio encoder, and the token before an image.
fn beside_sound(mut config: Value, w: u64) -> Value {
    config["vision_start_token_id"] = 498.into();
    config["audio_config"] = json!({"d_model": 64 * w, "encoder_layers": 1, "encoder_attention_heads": 4,
        "encoder_ffn_dim": 96 * w, "num_mel_bins": 16, "max_source_positions": 50, "output_dim": 64 * w,
        "downsample_hidden_size": 16 * w});
    config
}

pub fn qwen2_5_omni(w: u64) -> Value {
    let mut text = decoder("qwen2_5_omni_text", w);
    text["rope_parameters"] = json!({"rope_type": "default", "mrope_section": [2, 3, 3]});
    let config = json!({"model_type": "qwen2_5_omni_thinker", "text_config": text, "vision_config": {"depth": 2,
        "hidden_size": 64 * w, "intermediate_size": 96 * w, "out_hidden_size": 64 * w, "num_heads": 4,
        "patch_size": 14, "window_size": 56, "fullatt_block_indexes": [1]}});
    beside_sound(config, w)
}

pub fn qwen3_omni_moe(w: u64) -> Value {
    let text = experts("qwen3_omni_moe_text", w);
    beside_sound(beside_qwen3_tower("qwen3_omni_moe_thinker", text, w), w)
}
