"""Language models that run blocks several times, gate their norms, route past experts, or are part of models of images and sound."""
from .common import R, ch, decoder, maybe, some
from .experts import chosen
from .latent import latent

def plain(t):
    """A decoder's sizes, without keys that these families do not read."""
    c = decoder("llama"); c["model_type"] = t; c["num_hidden_layers"] = R.randint(1, 3)
    for key in ("rope_scaling", "head_dim", "mlp_bias", "attention_bias"): c.pop(key, None)
    return c

def hrm_text():
    c = plain("hrm_text"); del c["num_key_value_heads"]; cycles, low = R.randint(1, 3), R.randint(1, 3)
    return dict(c, head_dim=ch(32, 64, 96), H_cycles=cycles, L_cycles=low, L_bp_cycles=[R.randint(0, low) for _ in range(R.randint(1, cycles))], **some(.3, attention_bias=[True]), **some(.3, mlp_bias=[True]))

def axk2():
    c = latent("axk2"); groups = ch(None, None, 1, 2); experts = (groups or 1) * ch(4, 8, 16); layers = c["num_hidden_layers"]
    for key in ("rope_scaling", "head_dim"): c.pop(key, None)
    of_groups = dict(n_group=groups, topk_group=R.randint(1, groups)) if groups else {}
    return dict(c, q_lora_rank=ch(64, 96, 256), n_routed_experts=experts, n_shared_experts=ch(1, 1, 2), num_experts_per_tok=min(chosen(8), experts), moe_intermediate_size=ch(64, 128, 256), norm_topk_prob=maybe(.6), gated_norm_rank=ch(8, 16, 24),
                index_n_heads=ch(2, 4), index_head_dim=ch(64, 128), index_topk=ch(16, 64, 512), mlp_layer_types=[ch("dense", "sparse") for _ in range(layers)], **of_groups)

def longcat_flash():
    c = latent("longcat_flash"); experts = ch(2, 4, 8); zero = ch(0, 1, 4); turned = c["qk_rope_head_dim"]
    for key in ("rope_scaling", "num_hidden_layers", "intermediate_size"): c.pop(key, None)
    return dict(c, num_layers=R.randint(1, 3), head_dim=turned, q_lora_rank=ch(64, 96, 256), ffn_hidden_size=ch(256, 704), expert_ffn_hidden_size=ch(64, 128, 256), n_routed_experts=experts, zero_expert_num=zero, moe_topk=R.randint(2, min(4, experts)))

def moshi():
    c = plain("moshi"); h = c["hidden_size"]; c.pop("intermediate_size")
    return dict(c, ffn_dim=ch(h * 2, 704), **some(.3, head_dim=[32, 64]))

def phi4_multimodal():
    c = decoder("phi3"); heads, wide = ch(2, 4), ch(32, 64); c.pop("head_dim", None); c["num_hidden_layers"] = R.randint(1, 3)
    return dict(c, model_type="phi4_multimodal", vision_config=dict(hidden_size=heads * wide, intermediate_size=96, num_hidden_layers=R.randint(1, 2), num_attention_heads=heads, image_size=ch(28, 56), crop_size=56, feature_layer=-1),
                audio_config=dict(hidden_size=heads * wide, intermediate_size=96, num_blocks=R.randint(1, 2), num_attention_heads=heads, ext_pw_out_channel=heads * wide, depthwise_separable_out_channel=heads * wide, nemo_conv_channels=ch(32, 64), input_size=ch(40, 80)))

def zamba():
    c = plain("zamba"); layers = R.randint(2, 4); hidden = c["num_attention_heads"] * 8 * ch(1, 2, 4)
    for key in ("num_key_value_heads", "tie_word_embeddings"): c.pop(key, None)
    return dict(c, hidden_size=hidden, intermediate_size=hidden * 2 + 40, num_hidden_layers=layers, num_key_value_heads=ch(1, c["num_attention_heads"]), layers_block_type=["hybrid", "hybrid"] + [ch("linear_attention", "hybrid") for _ in range(layers - 2)], n_mamba_heads=ch(1, 2, 4),
                mamba_expand=ch(2, 4), mamba_d_state=ch(8, 16, 33), mamba_d_conv=ch(2, 4, 4), **some(.4, mamba_dt_rank=[7, 32]), **some(.4, mamba_proj_bias=[True]), **some(.3, mamba_conv_bias=[False]), **some(.3, tie_word_embeddings=[False]))

TEXT = dict(hrm_text=hrm_text, axk2=axk2, longcat_flash=longcat_flash, moshi=moshi, phi4_multimodal=phi4_multimodal, zamba=zamba)
CASES = {"phi4_multimodal": dict(freeze="none"), "zamba": dict(seq=19, freeze="none")}
