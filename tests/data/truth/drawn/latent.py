"""Decoders with multi-head latent attention, alone and in vision-language models."""
from .common import R, V, ch, decoder, encoder, maybe, some
from .experts import chosen, moe

def latent(t, **keys):
    """What decoders with latent attention share: the sizes of its heads and latents."""
    c = moe(t, **keys); heads = ch(2, 4, 6, 8, 12); c.pop("head_dim", None); hidden = heads * 8 * ch(16, 24, 32)
    c.update(hidden_size=hidden, num_attention_heads=heads, num_key_value_heads=heads, qk_nope_head_dim=ch(32, 64, 96, 128, 192), qk_rope_head_dim=ch(16, 32, 64), v_head_dim=ch(32, 64, 96, 128, 192, 256),
             kv_lora_rank=ch(32, 64, 128, 512), q_lora_rank=ch(None, 64, 96, 256), **some(.3, attention_bias=[True]))
    return c

def turned(c): return dict(c, **some(.4, rope_interleave=[False]))

def grouped(t):
    """Those with DeepSeek-V3's router."""
    groups = ch(1, 1, 2, 4); experts = groups * ch(4, 8, 16)
    return dict(turned(latent(t)), n_routed_experts=experts, n_shared_experts=ch(1, 1, 2), num_experts_per_tok=min(chosen(8), experts), moe_intermediate_size=ch(64, 128, 256, 768), n_group=groups, topk_group=R.randint(1, groups),
                norm_topk_prob=maybe(.6), first_k_dense_replace=ch(0, 1, 1, 2), **some(.3, routed_scaling_factor=[2.5]))

def deepseek_v3(): return grouped("deepseek_v3")

def glm4_moe_lite():
    c = grouped("glm4_moe_lite"); layers = c["num_hidden_layers"]; del c["first_k_dense_replace"]
    return dict(c, **some(.5, mlp_layer_types=[[ch("dense", "sparse") for _ in range(layers)]]))

def youtu(): return turned(latent("youtu"))

def deepseek_v2():
    c = latent("deepseek_v2"); groups = ch(2, 4); experts = groups * ch(4, 8, 16); limited = dict(topk_method="group_limited_greedy", n_group=groups, topk_group=R.randint(1, groups)) if maybe(.5) else {}
    return dict(c, n_routed_experts=experts, n_shared_experts=ch(1, 2), num_experts_per_tok=min(chosen(8), experts), moe_intermediate_size=ch(64, 128, 256, 768), first_k_dense_replace=ch(0, 1, 2), **limited, **some(.3, mlp_bias=[True]))

def minicpm3():
    c = latent("minicpm3"); c["v_head_dim"] = ch(None, c["v_head_dim"])
    if c["v_head_dim"] is None: del c["v_head_dim"]
    return dict(c, **some(.5, scale_emb=[12.0, 3, 1.5]), **some(.3, scale_depth=[None, 1.0]), **some(.3, dim_model_base=[None, 128]))

def kimi_linear():
    c = latent("kimi_linear"); layers, groups = R.randint(1, 4), ch(1, 1, 2); experts = groups * ch(4, 8, 16)
    kinds = dict(layer_types=[ch("linear_attention", "linear_attention", "full_attention") for _ in range(layers)], mlp_layer_types=[ch("dense", "sparse") for _ in range(layers)])
    for key in ("rope_scaling", "max_position_embeddings", "attention_dropout", "mlp_layer_types"): c.pop(key, None)
    return dict(c, num_hidden_layers=layers, pad_token_id=0, num_experts=experts, num_shared_experts=ch(1, 2), num_experts_per_token=min(chosen(8), experts), moe_intermediate_size=ch(64, 128, 256), num_expert_group=groups,
                topk_group=R.randint(1, groups), moe_renormalize=maybe(.6), linear_head_dim=ch(16, 32, 64), linear_num_heads=ch(2, 4, 6), linear_conv_kernel_dim=ch(4, 4, 3), **some(.7, **{key: [value] for key, value in kinds.items()}))

def axk1(): return dict(grouped("axk1"), q_lora_rank=ch(64, 96, 256))

def mistral4():
    """Its rotary tables are as wide as a part of each head, and scaled ones only."""
    c = grouped("mistral4"); part = c["qk_rope_head_dim"] / (c["qk_nope_head_dim"] + c["qk_rope_head_dim"])
    c.pop("rope_scaling", None)
    return dict(c, rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=ch(4.0, 128.0), original_max_position_embeddings=ch(512, 8192), llama_4_scaling_beta=.1, partial_rotary_factor=part))

TEXT = dict(kimi_linear=kimi_linear, mistral4=mistral4, deepseek_v3=deepseek_v3, glm4_moe_lite=glm4_moe_lite, youtu=youtu, deepseek_v2=deepseek_v2, minicpm3=minicpm3, axk1=axk1)

def kimi_k25():
    """Its projector goes by a name that `freeze` does not know."""
    t, v, p, m, side = ch(grouped("deepseek_v3"), grouped("deepseek_v3"), decoder("llama", V), decoder("gemma", V)), encoder(), ch(14, 16), ch(2, 2, 1, 3), ch(8, 24, 64); grid = [m * R.randint(1, 24 // m), m * R.randint(1, 24 // m)]
    t["vocab_size"] = V
    vision = dict(patch_size=p, pos_emb_height=side, pos_emb_width=side, pos_emb_time=ch(2, 4), num_attention_heads=v["num_attention_heads"], num_hidden_layers=v["num_hidden_layers"], hidden_size=v["hidden_size"], intermediate_size=v["intermediate_size"], hidden_act=ch("gelu_pytorch_tanh", "gelu"), merge_kernel_size=[m, m])
    config = dict(text_config=t, vision_config=vision, projection_hidden_size=v["hidden_size"], image_token_id=32000, video_token_id=32001, vision_start_token_id=32002, vision_end_token_id=32003, tie_word_embeddings=maybe(.5))
    return config, dict(per=grid[0] * grid[1] // m ** 2, patch=p, n=ch(1, 1, 2, 3)), dict(grid=grid, freeze=ch("none", "none", "vision", "lora"))

IMAGES = dict(kimi_k25=kimi_k25)
ALONE = list(IMAGES)

def batch(config, given, case, ids, pixels):
    import torch
    (h, w), count = case["grid"], case["batch"] * given["n"]
    return dict(pixel_values=pixels(count * h * w, 3, given["patch"], given["patch"]), image_grid_thw=torch.tensor([[1, h, w]] * count, device="cuda"))
