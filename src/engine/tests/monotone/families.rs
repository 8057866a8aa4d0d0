//! Tiny configurations of each family, with a width that scales.

use serde_json::json;

use super::configurations::{
    bart, bert, beside_qwen3_tower, blip_text, blip2, decoder, delta, falcon, gemma3, gemma4, glm, glm4, glm4v,
    got_ocr2, gpt, instructblip, lfm2, llama4_text, mllama, multimodal, opt, qwen3_vl, sam, siglip_without_head, tower,
    with_padding,
};
use super::family::{Family, beside_text, images, text};
use super::hybrids::{bamba, falcon_h1, granitemoehybrid, jamba, lfm2_moe, nemotron_h, olmo_hybrid};
use super::latent::{kimi_k25, latent};
use super::mixtures::{
    delta_experts, ernie, ernie_vl, experts, glm4v_moe, gpt_oss, grouped, inside, minimax_m3, minimax_m3_text,
};
use super::omni::{qwen2_5_omni, qwen3_omni_moe};
use super::own_code::{deepseek_vl_v2, ovis2_5};

/// Every family whose forward is simulated.
pub const FAMILIES: &[Family] = &[
    text("llama", |w| decoder("llama", w)),
    text("mistral", |w| decoder("mistral", w)),
    text("qwen2", |w| decoder("qwen2", w)),
    text("qwen3", |w| decoder("qwen3", w)),
    text("gemma", |w| decoder("gemma", w)),
    text("gemma2", |w| decoder("gemma2", w)),
    text("gemma3_text", |w| decoder("gemma3_text", w)),
    text("gemma3n_text", |w| {
        json!({"model_type": "gemma3n_text", "vocab_size": 500, "hidden_size": 64 * w, "intermediate_size": 160 * w,
            "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
            "num_kv_shared_layers": 2, "sliding_window": 24, "hidden_size_per_layer_input": 16,
            "altup_num_inputs": 4, "laurel_rank": 16,
            "vocab_size_per_layer_input": 500, "activation_sparsity_pattern": [0.95, 0.0, 0.0, 0.0]})
    }),
    text("gemma4_text", |w| gemma4("gemma4_text", w)),
    text("gemma4_unified_text", |w| gemma4("gemma4_unified_text", w)),
    text("qwen3_moe", |w| experts("qwen3_moe", w)),
    text("mixtral", |w| experts("mixtral", w)),
    text("qwen2_moe", |w| experts("qwen2_moe", w)),
    text("olmoe", |w| experts("olmoe", w)),
    text("flex_olmo", |w| {
        let mut config = experts("flex_olmo", w);
        config["pad_token_id"] = 0.into();
        config
    }),
    text("mellum", |w| {
        let mut config = experts("mellum", w);
        config["norm_topk_prob"] = true.into();
        config
    }),
    text("glm4_moe", |w| grouped("glm4_moe", w)),
    text("dots1", |w| grouped("dots1", w)),
    text("solar_open", |w| grouped("solar_open", w)),
    text("exaone_moe", |w| grouped("exaone_moe", w)),
    text("deepseek_v3", |w| latent("deepseek_v3", w)),
    text("deepseek_v2", |w| latent("deepseek_v2", w)),
    text("glm4_moe_lite", |w| latent("glm4_moe_lite", w)),
    text("youtu", |w| latent("youtu", w)),
    text("minicpm3", |w| latent("minicpm3", w)),
    text("kimi_linear", |w| {
        json!({"model_type": "kimi_linear", "vocab_size": 500, "hidden_size": 64 * w, "intermediate_size": 160 * w,
            "moe_intermediate_size": 32 * w, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 4,
            "kv_lora_rank": 16 * w, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "num_experts": 4,
            "num_experts_per_token": 2, "linear_head_dim": 8, "linear_num_heads": 2 * w, "pad_token_id": 0,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"]})
    }),
    text("axk1", |w| latent("axk1", w)),
    text("axk2", |w| latent("axk2", w)),
    text("longcat_flash", |w| {
        json!({"model_type": "longcat_flash", "vocab_size": 500, "hidden_size": 64 * w, "num_layers": 2,
            "num_attention_heads": 4, "ffn_hidden_size": 96 * w, "expert_ffn_hidden_size": 32 * w,
            "n_routed_experts": 4, "zero_expert_num": 2, "moe_topk": 2, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
            "head_dim": 8, "v_head_dim": 16, "kv_lora_rank": 16 * w, "q_lora_rank": 24 * w})
    }),
    text("mistral4", |w| latent("mistral4", w)),
    text("deepseek_v32", |w| latent("deepseek_v32", w)),
    text("glm_moe_dsa", |w| {
        let mut config = latent("glm_moe_dsa", w);
        config["indexer_types"] = json!(["full", "shared"]);
        config
    }),
    text("hy_v4", |w| {
        let mut config = latent("hy_v4", w);
        config["indexer_types"] = json!(["full", "shared"]);
        config["pad_token_id"] = 0.into();
        config
    }),
    text("laguna", |w| {
        let mut config = experts("laguna", w);
        config["num_attention_heads_per_layer"] = json!([4 * w, 2 * w]);
        config["layer_types"] = json!(["full_attention", "sliding_attention"]);
        config
    }),
    text("mimo_v2_flash", |w| {
        let mut config = grouped("mimo_v2_flash", w);
        let table = json!({"rope_type": "default", "partial_rotary_factor": 0.5});
        config["rope_parameters"] = json!({"full_attention": table, "sliding_attention": table});
        config["v_head_dim"] = 8.into();
        config
    }),
    text("doge", |w| {
        let mut config = decoder("doge", w);
        config["keep_window_size"] = 530.into();
        config
    }),
    text("ernie4_5_moe", ernie),
    text("gpt_oss", gpt_oss),
    text("minimax_m3_vl_text", minimax_m3_text),
    text("afmoe", |w| experts("afmoe", w)),
    text("cohere2_moe", |w| inside("cohere2_moe", w)),
    text("granitemoe", |w| inside("granitemoe", w)),
    text("granitemoeshared", |w| inside("granitemoeshared", w)),
    text("granite_swa", |w| decoder("granite_swa", w)),
    text("granitemoe_swa", |w| inside("granitemoe_swa", w)),
    text("hunyuan_v1_moe", |w| inside("hunyuan_v1_moe", w)),
    text("hy_v3", |w| experts("hy_v3", w)),
    text("minimax_m2", |w| inside("minimax_m2", w)),
    text("phimoe", |w| inside("phimoe", w)),
    text("apertus", |w| decoder("apertus", w)),
    text("bitnet", |w| decoder("bitnet", w)),
    text("diffllama", |w| decoder("diffllama", w)),
    text("nanochat", |w| decoder("nanochat", w)),
    text("internlm3", |w| decoder("internlm3", w)),
    text("iquestcoder", |w| decoder("iquestcoder", w)),
    text("falcon", falcon),
    text(
        "bloom",
        |w| json!({"model_type": "bloom", "vocab_size": 500, "hidden_size": 64 * w, "n_layer": 2, "n_head": 4}),
    ),
    text(
        "mpt",
        |w| json!({"model_type": "mpt", "vocab_size": 500, "d_model": 64 * w, "n_layers": 2, "n_heads": 4}),
    ),
    text("qwen3_5_moe_text", |w| delta_experts("qwen3_5_moe_text", w)),
    text("qwen3_next", |w| delta_experts("qwen3_next", w)),
    text(
        "emu3",
        |w| json!({"model_type": "emu3", "text_config": with_padding(decoder("emu3_text_model", w))}),
    ),
    text("olmo", |w| decoder("olmo", w)),
    text("olmo2", |w| decoder("olmo2", w)),
    text("olmo3", |w| decoder("olmo3", w)),
    text("bart", |w| bart("bart", w)),
    text("plbart", |w| bart("plbart", w)),
    text("mbart", |w| bart("mbart", w)),
    text("pegasus", |w| bart("pegasus", w)),
    text("marian", |w| bart("marian", w)),
    text("blenderbot", |w| bart("blenderbot", w)),
    text("blenderbot-small", |w| bart("blenderbot-small", w)),
    text("bigbird_pegasus", |w| bart("bigbird_pegasus", w)),
    text("mvp", |w| bart("mvp", w)),
    text("trocr", |w| bart("trocr", w)),
    text("whisper", |w| bart("whisper", w)),
    text("exaone4", |w| decoder("exaone4", w)),
    text("arcee", |w| decoder("arcee", w)),
    text("glm", glm),
    text("glm4", glm4),
    text("cohere", |w| decoder("cohere", w)),
    text("cohere2", |w| decoder("cohere2", w)),
    text("nemotron", |w| decoder("nemotron", w)),
    text("hyperclovax", |w| decoder("hyperclovax", w)),
    text("starcoder2", |w| decoder("starcoder2", w)),
    text("jais2", |w| decoder("jais2", w)),
    text("ministral", |w| decoder("ministral", w)),
    text("hunyuan_v1_dense", |w| decoder("hunyuan_v1_dense", w)),
    text("phi3", |w| decoder("phi3", w)),
    text("phi", |w| decoder("phi", w)),
    text("bert", |w| bert("bert", w)),
    text("roberta", |w| bert("roberta", w)),
    text("camembert", |w| bert("camembert", w)),
    text("xlm-roberta", |w| bert("xlm-roberta", w)),
    text("data2vec-text", |w| bert("data2vec-text", w)),
    text("electra", |w| bert("electra", w)),
    text("ernie", |w| bert("ernie", w)),
    text("megatron-bert", |w| bert("megatron-bert", w)),
    text("bert-generation", |w| bert("bert-generation", w)),
    text("roberta-prelayernorm", |w| bert("roberta-prelayernorm", w)),
    text("rembert", |w| bert("rembert", w)),
    text("xlm-roberta-xl", |w| bert("xlm-roberta-xl", w)),
    text("roc_bert", |w| bert("roc_bert", w)),
    text("roformer", |w| bert("roformer", w)),
    text("big_bird", |w| bert("big_bird", w)),
    text("xmod", |w| bert("xmod", w)),
    // One low cycle: transformers fails for autocast beside checkpoints where others, which keep no graph, come first.
    text("hrm_text", |w| {
        let mut config = decoder("hrm_text", w);
        config["L_cycles"] = 1.into();
        config
    }),
    text("moshi", |w| {
        json!({"model_type": "moshi", "vocab_size": 500, "hidden_size": 64 * w, "ffn_dim": 160 * w,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2})
    }),
    text("phi4_multimodal", |w| {
        let mut config = decoder("phi4_multimodal", w);
        let sizes = json!({"hidden_size": 16 * w, "intermediate_size": 32 * w, "num_hidden_layers": 1, "num_blocks": 1,
            "num_attention_heads": 2, "nemo_conv_channels": 16, "ext_pw_out_channel": 16 * w,
            "depthwise_separable_out_channel": 16 * w});
        config["vision_config"] = sizes.clone();
        config["audio_config"] = sizes;
        config["pad_token_id"] = 0.into();
        config
    }),
    text("zamba", |w| {
        json!({"model_type": "zamba", "vocab_size": 500, "hidden_size": 64 * w, "intermediate_size": 160 * w,
            "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 4, "n_mamba_heads": 2,
            "mamba_d_state": 8, "layers_block_type": ["mamba", "hybrid", "hybrid"]})
    }),
    text("zamba2", |w| {
        json!({"model_type": "zamba2", "vocab_size": 500, "hidden_size": 64 * w, "intermediate_size": 160 * w,
            "num_hidden_layers": 4, "num_attention_heads": 4, "n_mamba_heads": 4, "mamba_d_state": 16,
            "adapter_rank": 16, "chunk_size": 32, "num_mem_blocks": 2,
            "layers_block_type": ["mamba", "hybrid", "hybrid", "hybrid"]})
    }),
    text("jetmoe", |w| {
        json!({"model_type": "jetmoe", "vocab_size": 500, "hidden_size": 64 * w, "intermediate_size": 96 * w,
            "num_hidden_layers": 2, "num_key_value_heads": 2, "kv_channels": 16 * w, "num_local_experts": 4,
            "num_experts_per_tok": 2})
    }),
    text("recurrent_gemma", |w| {
        json!({"model_type": "recurrent_gemma", "vocab_size": 500, "hidden_size": 64 * w, "intermediate_size": 192 * w,
            "num_hidden_layers": 3, "num_attention_heads": 2, "attention_window_size": 16})
    }),
    text("aria_text", |w| {
        let mut config = decoder("aria_text", w);
        for (key, value) in [("moe_num_experts", 4), ("moe_topk", 2), ("moe_num_shared_experts", 1)] {
            config[key] = value.into();
        }
        config["pad_token_id"] = 0.into();
        config
    }),
    text("prophetnet", |w| {
        json!({"model_type": "prophetnet", "vocab_size": 500, "hidden_size": 64 * w, "decoder_ffn_dim": 160 * w,
            "num_decoder_layers": 2, "num_decoder_attention_heads": 4, "max_position_embeddings": 1024})
    }),
    text("minimax", |w| {
        let mut config = experts("minimax", w);
        config["block_size"] = 16.into();
        config["sliding_window"] = json!(null);
        config
    }),
    text("modernbert-decoder", |w| {
        json!({"model_type": "modernbert-decoder", "vocab_size": 500, "hidden_size": 64 * w,
            "intermediate_size": 160 * w, "num_hidden_layers": 4, "num_attention_heads": 4, "local_attention": 32})
    }),
    text("cpmant", |w| {
        json!({"model_type": "cpmant", "vocab_size": 500, "hidden_size": 64 * w, "dim_ff": 160 * w, "dim_head": 16 * w,
            "num_hidden_layers": 2, "num_attention_heads": 4, "prompt_length": 8, "segment_types": 4})
    }),
    text("biogpt", |w| bert("biogpt", w)),
    text("xglm", |w| {
        json!({"model_type": "xglm", "vocab_size": 500, "max_position_embeddings": 1024, "d_model": 64 * w,
            "ffn_dim": 160 * w, "num_layers": 2, "attention_heads": 4})
    }),
    text("gpt_bigcode", |w| gpt("gpt_bigcode", w)),
    text("gptj", |w| gpt("gptj", w)),
    text("openai-gpt", |w| gpt("openai-gpt", w)),
    text("xlm", |w| {
        json!({"model_type": "xlm", "vocab_size": 500, "emb_dim": 64 * w, "n_layers": 2, "n_heads": 4,
            "max_position_embeddings": 1024, "causal": true})
    }),
    text("ctrl", |w| {
        let mut config = gpt("ctrl", w);
        config["dff"] = (160 * w).into();
        config
    }),
    text("codegen", |w| gpt("codegen", w)),
    text("gpt_neo", |w| {
        json!({"model_type": "gpt_neo", "vocab_size": 500, "max_position_embeddings": 1024, "hidden_size": 64 * w,
            "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]], "window_size": 16})
    }),
    text("gpt_neox", |w| decoder("gpt_neox", w)),
    text("gpt_neox_japanese", |w| decoder("gpt_neox_japanese", w)),
    text("stablelm", |w| decoder("stablelm", w)),
    text("persimmon", |w| decoder("persimmon", w)),
    text("qwen3_5_text", delta),
    text("lfm2", lfm2),
    text("lfm2_moe", lfm2_moe),
    text("bamba", bamba),
    text("granitemoehybrid", granitemoehybrid),
    text("nemotron_h", nemotron_h),
    text("falcon_h1", falcon_h1),
    text("jamba", jamba),
    text("olmo_hybrid", olmo_hybrid),
    text(
        "mamba",
        |w| json!({"model_type": "mamba", "vocab_size": 500, "hidden_size": 32 * w, "num_hidden_layers": 2}),
    ),
    text(
        "falcon_mamba",
        |w| json!({"model_type": "falcon_mamba", "vocab_size": 500, "hidden_size": 32 * w, "num_hidden_layers": 2}),
    ),
    text("mamba2", |w| {
        json!({"model_type": "mamba2", "vocab_size": 500, "hidden_size": 64 * w, "num_heads": 8 * w, "head_dim": 16,
            "n_groups": 2, "state_size": 8, "chunk_size": 32, "num_hidden_layers": 2})
    }),
    text("opt", opt),
    text(
        "gpt2",
        |w| json!({"model_type": "gpt2", "vocab_size": 500, "n_positions": 1024, "n_embd": 64 * w, "n_layer": 2, "n_head": 4}),
    ),
    beside_text("gemma4", true, |w| {
        json!({"model_type": "gemma4", "image_token_id": 499, "text_config": gemma4("gemma4_text", w),
            "vision_config": {"hidden_size": 64 * w, "intermediate_size": 128 * w, "num_hidden_layers": 2,
                "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32 * w, "patch_size": 4,
                "position_embedding_size": 64, "use_clipped_linears": true},
            "audio_config": {"hidden_size": 64 * w, "num_hidden_layers": 2, "num_attention_heads": 2}})
    }),
    text("gemma4_text", |w| {
        let mut config = gemma4("gemma4_text", w);
        for (key, value) in [
            ("num_experts", 4),
            ("top_k_experts", 2),
            ("moe_intermediate_size", 32 * w),
        ] {
            config[key] = value.into();
        }
        config["enable_moe_block"] = true.into();
        config
    }),
    text("ministral3", |w| decoder("ministral3", w)),
    beside_text("gemma4_unified", true, |w| {
        json!({"model_type": "gemma4_unified", "image_token_id": 499, "text_config": gemma4("gemma4_unified_text", w),
            "vision_config": {"patch_size": 4, "mm_embed_dim": 64 * w, "output_proj_dims": 64 * w}})
    }),
    beside_text("llava", true, |w| {
        json!({"model_type": "llava", "image_token_index": 499, "text_config": decoder("llama", w),
            "vision_config": tower("clip_vision_model", w)})
    }),
    beside_text("llava_next", true, |w| {
        json!({"model_type": "llava_next", "image_token_index": 499, "text_config": decoder("mistral", w),
            "image_grid_pinpoints": [[28, 56], [56, 28], [56, 56]], "vision_config": tower("clip_vision_model", w)})
    }),
    beside_text("llava_next_video", true, |w| {
        json!({"model_type": "llava_next_video", "image_token_index": 499, "text_config": decoder("llama", w),
            "image_grid_pinpoints": [[28, 56], [56, 28], [56, 56]], "vision_config": tower("clip_vision_model", w)})
    }),
    beside_text("llava_onevision", true, |w| {
        json!({"model_type": "llava_onevision", "image_token_index": 499, "text_config": decoder("qwen2", w),
            "image_grid_pinpoints": [[28, 56], [56, 28], [56, 56]], "vision_aspect_ratio": "anyres_max_2",
            "vision_config": siglip_without_head(w)})
    }),
    beside_text("granite4_vision", true, |w| {
        json!({"model_type": "granite4_vision", "image_token_index": 499, "text_config": decoder("granite", w),
            "image_grid_pinpoints": [[28, 56], [56, 28], [56, 56]], "vision_config": siglip_without_head(w),
            "vision_feature_select_strategy": "full", "downsample_rate": "1/2", "deepstack_layer_map": [[-1, 0]],
            "spatial_target_layers": [0, 1, 0, 1]})
    }),
    beside_text("vipllava", true, |w| {
        json!({"model_type": "vipllava", "image_token_index": 499, "text_config": decoder("llama", w),
            "vision_feature_layers": [-2, -1], "vision_config": tower("clip_vision_model", w)})
    }),
    beside_text("video_llava", true, |w| {
        json!({"model_type": "video_llava", "image_token_index": 499, "text_config": decoder("llama", w),
            "vision_config": tower("clip_vision_model", w)})
    }),
    beside_text("aria", true, |w| {
        let mut text = decoder("aria_text", w);
        text["moe_num_experts"] = 4.into();
        json!({"model_type": "aria", "text_config": text, "projector_patch_to_query_dict": {"16": 4},
            "vision_config": {"hidden_size": 64 * w, "intermediate_size": 96 * w, "num_hidden_layers": 2,
            "num_attention_heads": 4, "image_size": 56, "patch_size": 14}})
    }),
    beside_text("aya_vision", true, |w| {
        json!({"model_type": "aya_vision", "image_token_index": 499, "text_config": decoder("cohere2", w),
            "vision_config": siglip_without_head(w)})
    }),
    beside_text("cohere2_vision", true, |w| {
        json!({"model_type": "cohere2_vision", "image_token_id": 499, "text_config": decoder("cohere2", w),
            "alignment_intermediate_size": 96 * w, "vision_config": siglip_without_head(w)})
    }),
    beside_text("fuyu", false, |w| {
        json!({"model_type": "fuyu", "image_token_id": 499, "hidden_size": 64 * w, "image_size": 56, "patch_size": 14,
            "text_config": decoder("persimmon", w)})
    }),
    beside_text("deepseek_vl_hybrid", true, |w| {
        let mut high_res = sam(w);
        high_res["model_type"] = "sam_vision_model".into();
        json!({"model_type": "deepseek_vl_hybrid", "image_token_id": 499, "text_config": decoder("llama", w),
            "vision_config": siglip_without_head(w), "high_res_vision_config": high_res})
    }),
    beside_text("got_ocr2", true, |w| got_ocr2("got_ocr2", w)),
    beside_text("pp_chart2table", true, |w| got_ocr2("pp_chart2table", w)),
    beside_text("deepseek_vl", true, |w| {
        json!({"model_type": "deepseek_vl", "image_token_id": 499, "text_config": decoder("llama", w),
            "vision_config": siglip_without_head(w)})
    }),
    beside_text("mistral3", true, |w| {
        json!({"model_type": "mistral3", "image_token_index": 499, "text_config": decoder("mistral", w),
            "vision_config": tower("pixtral", w)})
    }),
    beside_text("lighton_ocr", true, |w| {
        json!({"model_type": "lighton_ocr", "image_token_id": 499, "text_config": decoder("qwen3", w),
            "vision_config": tower("pixtral", w)})
    }),
    beside_text("qwen2_vl", true, |w| {
        json!({"model_type": "qwen2_vl", "text_config": multimodal(w), "vision_config": {"depth": 2, "embed_dim": 64 * w,
            "hidden_size": 64 * w, "num_heads": 4, "patch_size": 14}})
    }),
    beside_text("qwen2_5_vl", true, |w| {
        json!({"model_type": "qwen2_5_vl", "text_config": multimodal(w), "vision_config": {"depth": 2,
            "hidden_size": 64 * w, "intermediate_size": 96 * w, "out_hidden_size": 64 * w, "num_heads": 4,
            "patch_size": 14, "window_size": 56, "fullatt_block_indexes": [1]}})
    }),
    beside_text("qwen3_vl", true, |w| qwen3_vl("qwen3_vl", w)),
    beside_text("cosmos3_omni", true, |w| qwen3_vl("cosmos3_omni", w)),
    beside_text("cosmos3_edge", true, |w| {
        let mut text = decoder("cosmos3_edge_text", w);
        text["rope_parameters"] = json!({"rope_type": "default", "mrope_section": [2, 3, 3]});
        json!({"model_type": "cosmos3_edge", "projector_hidden_size": 96 * w, "text_config": text,
            "vision_config": {"num_hidden_layers": 2, "hidden_size": 64 * w, "intermediate_size": 96 * w,
            "num_attention_heads": 4, "patch_size": 16, "num_patches": 64}})
    }),
    beside_text("glm4v", true, |w| glm4v("glm4v", w)),
    beside_text("glm4v_moe", true, glm4v_moe),
    beside_text("ernie4_5_vl_moe", true, ernie_vl),
    beside_text("minimax_m3_vl", true, minimax_m3),
    beside_text("glm46v", true, |w| glm4v("glm46v", w)),
    beside_text("glmga", true, |w| glm4v("glmga", w)),
    beside_text("glm_ocr", true, |w| {
        let mut text = decoder("glm_ocr_text", w);
        text["rope_parameters"] = json!({"rope_type": "default", "mrope_section": [2, 3, 3]});
        json!({"model_type": "glm_ocr", "text_config": text, "vision_config": {"depth": 2, "hidden_size": 64 * w,
            "intermediate_size": 96 * w, "out_hidden_size": 64 * w, "num_heads": 4, "patch_size": 14}})
    }),
    beside_text("qwen3_5", true, |w| {
        json!({"model_type": "qwen3_5", "text_config": delta(w), "vision_config": {"depth": 2,
            "hidden_size": 64 * w, "intermediate_size": 96 * w, "out_hidden_size": 64 * w, "num_heads": 4,
            "patch_size": 16, "num_position_embeddings": 64}})
    }),
    beside_text("qwen3_vl_moe", true, |w| {
        beside_qwen3_tower("qwen3_vl_moe", experts("qwen3_vl_moe_text", w), w)
    }),
    beside_text("qwen3_5_moe", true, |w| {
        beside_qwen3_tower("qwen3_5_moe", delta_experts("qwen3_5_moe_text", w), w)
    }),
    beside_text("qwen2_5_omni_thinker", true, qwen2_5_omni),
    beside_text("qwen3_omni_moe_thinker", true, qwen3_omni_moe),
    beside_text("internvl", true, |w| {
        json!({"model_type": "internvl", "text_config": decoder("qwen2", w),
            "vision_config": tower("internvl_vision", w)})
    }),
    beside_text("qianfan_ocr", true, |w| {
        json!({"model_type": "qianfan_ocr", "text_config": decoder("qwen3", w),
            "vision_config": tower("qianfan_ocr_vision", w)})
    }),
    beside_text("janus", true, |w| {
        json!({"model_type": "janus", "image_token_id": 499, "text_config": decoder("llama", w),
            "vision_config": {"hidden_size": 64 * w, "num_hidden_layers": 2, "num_attention_heads": 4,
            "image_size": 28, "patch_size": 7, "projection_dim": 64 * w}, "vq_config": {"num_embeddings": 64,
            "base_channels": 32, "channel_multiplier": [1, 2], "latent_channels": 32, "projection_dim": 32}})
    }),
    text("mllama_text_model", |w| decoder("mllama_text_model", w)),
    text("llama4_text", llama4_text),
    beside_text("llama4", true, |w| {
        json!({"model_type": "llama4", "image_token_index": 499, "text_config": llama4_text(w), "vision_config": {
            "hidden_size": 64 * w, "intermediate_size": 256 * w, "num_hidden_layers": 2, "num_attention_heads": 4,
            "image_size": 28, "patch_size": 7, "projector_input_dim": 64 * w, "projector_output_dim": 64 * w,
            "vision_output_dim": 64 * w}})
    }),
    // KOSMOS-2 refuses checkpointed blocks with frozen embeddings: it has no parts to freeze here.
    text("kosmos-2", |w| {
        json!({"model_type": "kosmos-2", "latent_query_num": 4, "vision_config": tower("kosmos_2_vision_model", w),
            "text_config": {"vocab_size": 500, "embed_dim": 64 * w, "ffn_dim": 160 * w, "layers": 2,
            "attention_heads": 4, "max_position_embeddings": 1024}})
    }),
    text("kosmos-2.5", |w| {
        json!({"model_type": "kosmos-2.5", "latent_query_num": 4, "vision_config": {"hidden_size": 64 * w, "head_dim": 16,
            "intermediate_size": 96 * w, "num_hidden_layers": 2, "num_attention_heads": 4, "max_num_patches": 16,
            "patch_embed_hidden_size": 48}, "text_config": {"vocab_size": 500, "embed_dim": 64 * w, "ffn_dim": 160 * w,
            "layers": 2, "attention_heads": 4, "max_position_embeddings": 1024}})
    }),
    // IDEFICS has no connector that trains alone: it has no parts to freeze here.
    text("idefics", |w| {
        let mut vision = tower("idefics_vision", w);
        vision["embed_dim"] = (64 * w).into();
        let mut config = decoder("idefics", w);
        config["vision_config"] = vision;
        config["num_attention_heads"] = 4.into();
        config
    }),
    beside_text("idefics2", true, |w| {
        json!({"model_type": "idefics2", "image_token_id": 499, "text_config": decoder("mistral", w),
            "perceiver_config": {"resampler_n_latents": 4, "resampler_depth": 2, "resampler_n_heads": 4 * w,
            "num_key_value_heads": 2 * w, "resampler_head_dim": 16}, "vision_config": tower("idefics2_vision", w)})
    }),
    beside_text("idefics3", true, |w| {
        json!({"model_type": "idefics3", "image_token_id": 499, "text_config": decoder("llama", w),
            "vision_config": tower("idefics3_vision", w)})
    }),
    beside_text("lfm2_vl", true, |w| {
        json!({"model_type": "lfm2_vl", "text_config": lfm2(w), "projector_hidden_size": 96 * w,
            "vision_config": {"hidden_size": 64 * w, "intermediate_size": 96 * w, "num_hidden_layers": 2,
            "num_attention_heads": 4, "patch_size": 128, "num_patches": 16}})
    }),
    beside_text("ovis2", true, |w| {
        json!({"model_type": "ovis2", "image_token_id": 499, "visual_indicator_token_ids": [494, 495, 496, 497, 498],
            "vocab_size": 500, "hidden_size": 64 * w, "text_config": decoder("qwen2", w),
            "vision_config": tower("ovis2_vision", w)})
    }),
    beside_text("exaone4_5", true, |w| {
        json!({"model_type": "exaone4_5", "text_config": decoder("exaone4", w), "vision_config": {"depth": 2,
            "hidden_size": 64 * w, "intermediate_size": 96 * w, "out_hidden_size": 64 * w, "num_heads": 4,
            "num_key_value_heads": 2, "patch_size": 14, "window_size": 56, "fullatt_block_indexes": [1]}})
    }),
    beside_text("minicpmv4_6", true, |w| {
        json!({"model_type": "minicpmv4_6", "image_token_id": 499, "insert_layer_id": 1, "text_config": delta(w),
            "vision_config": tower("minicpmv4_6_vision", w)})
    }),
    beside_text("video_llama_3", true, |w| {
        json!({"model_type": "video_llama_3", "text_config": decoder("qwen2", w),
            "vision_config": tower("video_llama_3_vision", w)})
    }),
    beside_text("kimi_k25", true, kimi_k25),
    beside_text("muse_glimmer", true, |w| {
        json!({"model_type": "muse_glimmer", "text_config": decoder("muse_glimmer_text", w),
            "vision_config": tower("muse_glimmer_vision", w), "out_hidden_size": 4 * 64 * w,
            "projector_hidden_size": 48 * w})
    }),
    beside_text("ovis2_5", true, ovis2_5),
    beside_text("deepseek_vl_v2", true, |w| deepseek_vl_v2(false, w)),
    beside_text("deepseek_vl_v2 latent", true, |w| deepseek_vl_v2(true, w)),
    beside_text("paddleocr_vl", true, |w| {
        let mut text = decoder("paddleocr_vl_text", w);
        text["rope_scaling"] = json!({"type": "default", "mrope_section": [2, 3, 3]});
        json!({"model_type": "paddleocr_vl", "text_config": text, "vision_config": tower("paddleocr_vl_vision", w)})
    }),
    beside_text("paligemma", false, |w| {
        json!({"model_type": "paligemma", "image_token_index": 499, "projection_dim": 64 * w,
            "text_config": decoder("gemma", w), "vision_config": siglip_without_head(w)})
    }),
    beside_text("paligemma2", false, |w| {
        json!({"model_type": "paligemma", "image_token_index": 499, "projection_dim": 64 * w,
            "text_config": decoder("gemma2", w), "vision_config": siglip_without_head(w)})
    }),
    beside_text("gemma3", true, |w| gemma3("gemma3", w)),
    beside_text("shieldgemma2", true, |w| gemma3("shieldgemma2", w)),
    beside_text("mllama", false, mllama),
    beside_text("blip-2", false, blip2),
    beside_text("instructblip", false, |w| instructblip("instructblip", w)),
    beside_text("instructblipvideo", false, |w| instructblip("instructblipvideo", w)),
    // BLIP has no connector, and GIT's alone does not train with checkpointing: neither has parts to freeze here.
    text(
        "blip",
        |w| json!({"model_type": "blip", "text_config": blip_text(w), "vision_config": tower("blip_vision_model", w)}),
    ),
    text("git", |w| {
        let mut config = blip_text(w);
        config["model_type"] = "git".into();
        config["vision_config"] = tower("git_vision_model", w);
        config
    }),
    beside_text("pp_formulanet", false, |w| {
        let mut vision = sam(w);
        for (key, value) in [("post_conv_in_channels", 32), ("decoder_hidden_size", 64 * w)] {
            vision[key] = value.into();
        }
        json!({"model_type": "pp_formulanet", "vision_config": vision, "text_config": {"vocab_size": 500,
            "d_model": 64 * w, "decoder_ffn_dim": 160 * w, "decoder_layers": 2, "decoder_attention_heads": 4,
            "max_position_embeddings": 1024}})
    }),
    // Pix2Struct has no connector: it has no parts to freeze here.
    text("pix2struct", |w| {
        json!({"model_type": "pix2struct", "text_config": {"vocab_size": 500, "hidden_size": 64 * w, "d_kv": 16 * w,
            "d_ff": 96 * w, "num_layers": 2, "num_heads": 4}, "vision_config": {"hidden_size": 64 * w,
            "patch_embed_hidden_size": 48, "d_kv": 16 * w, "d_ff": 96 * w, "num_hidden_layers": 2,
            "num_attention_heads": 4}})
    }),
    images("clip", |w| {
        json!({"model_type": "clip", "projection_dim": 32 * w, "text_config": tower("clip_text_model", w),
            "vision_config": tower("clip_vision_model", w)})
    }),
    images("siglip", |w| {
        json!({"model_type": "siglip", "text_config": tower("siglip_text_model", w),
            "vision_config": tower("siglip_vision_model", w)})
    }),
    images("vit", |w| tower("vit", w)),
    images("videomae", |w| {
        let mut config = tower("videomae", w);
        config["num_frames"] = 4.into();
        config
    }),
    images("torchvision_video_resnet", |w| {
        json!({"model_type": "torchvision_video_resnet", "block": "BasicBlock", "stem": "BasicStem", "layers": [1, 1, 1, 1],
            "conv_makers": ["Conv3DSimple", "Conv2Plus1D", "Conv3DNoTemporal", "Conv3DSimple"], "num_classes": 10 * w,
            "num_frames": 4, "image_size": 32})
    }),
];
