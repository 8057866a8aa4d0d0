"""Models whose layers scan a recurrent state: gated DeltaNet's (Qwen3.5, Qwen3-Next) and short convolutions (LFM2)."""
from .common import R, V, ch, encoder, maybe, some

VOCABS = [1000, 32000, 151936, 248320]

def layer_types(layers, linear, full):
    if maybe(.5): return dict(full_attention_interval=ch(2, 3, 4)) if linear == "linear_attention" else {}
    types = [ch(linear, linear, full) for _ in range(layers)]
    types[0 if maybe(.7) else -1] = full if maybe(.3) else linear
    return dict(layer_types=types)

def delta(vocab=None):
    """What the decoders with gated DeltaNet share."""
    kv, times, d = ch(1, 2, 4), ch(1, 2, 4), ch(32, 64, 96, 128, 256); heads, layers = kv * times, R.randint(1, 6)
    keys, more = ch(2, 4, 8, 16), ch(1, 1, 2, 3); dk = ch(16, 32, 64, 128); hidden = ch(256, 512, 768, 1024, 1536, 2048)
    return dict(vocab_size=vocab or ch(*VOCABS), hidden_size=hidden, intermediate_size=ch(hidden * 2, hidden * 3, hidden * 3 + 40), num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv, head_dim=d,
                linear_num_key_heads=keys, linear_num_value_heads=keys * more, linear_key_head_dim=dk, linear_value_head_dim=ch(dk, dk, 32, 128), linear_conv_kernel_dim=ch(4, 4, 2, 3),
                hidden_act=ch("silu", "silu", "silu", "gelu"), max_position_embeddings=ch(2048, 32768), tie_word_embeddings=maybe(.5), **layer_types(layers, "linear_attention", "full_attention"),
                **some(.25, attention_dropout=[.1]), **some(.3, attention_bias=[True]), **some(.4, partial_rotary_factor=[.5, 1.0]))

def qwen3_5_text():
    return dict(model_type="qwen3_5_text", **delta())

def qwen3_5():
    text, e, p = dict(delta(ch(V, 248320)), model_type="qwen3_5_text"), encoder(1), ch(14, 16)
    if maybe(.5):  # the sections of Qwen3.5's own heads, or of these
        half = int(text["head_dim"] * text.get("partial_rotary_factor", .25)) // 2; x = (half - half // 4) // 2
        text["rope_parameters"] = dict(rope_type="default", mrope_section=[half - 2 * x, x, x], rope_theta=1e7, mrope_interleaved=True, partial_rotary_factor=text.pop("partial_rotary_factor", .25))
    elif text["head_dim"] * text.get("partial_rotary_factor", .25) < 62: text.update(head_dim=256)
    vision = dict(depth=e["num_hidden_layers"], num_heads=e["num_attention_heads"], hidden_size=e["hidden_size"], intermediate_size=e["intermediate_size"], in_channels=3, patch_size=p, spatial_merge_size=2, temporal_patch_size=2,
                  out_hidden_size=text["hidden_size"], num_position_embeddings=ch(256, 2304), hidden_act=ch("gelu_pytorch_tanh", "gelu"))
    grid = [2 * R.randint(2, 14), 2 * R.randint(2, 14)]; last = text["vocab_size"]
    config = dict(text_config=text, vision_config=vision, image_token_id=last - 3, vision_start_token_id=last - 5, vision_end_token_id=last - 4, video_token_id=last - 2, tie_word_embeddings=text["tie_word_embeddings"])
    return config, dict(per=grid[0] * grid[1] // 4, token=last - 3, patch=6 * p * p, n=ch(1, 1, 2, 3)), dict(grid=grid)

def lfm2(vocab=None):
    kv, times, d = ch(1, 2, 4, 8), ch(1, 2, 4), ch(32, 64, 80, 128)
    while kv * times * d > 2048: d //= 2
    heads, layers = kv * times, R.randint(1, 6); hidden = heads * d; types = [ch("conv", "conv", "full_attention") for _ in range(layers)]; types[0 if maybe(.5) else -1] = "conv"
    which = ch(dict(layer_types=types), dict(full_attn_idxs=[i for i, kind in enumerate(types) if kind != "conv"]))
    return dict(model_type="lfm2", vocab_size=vocab or ch(1000, 32000, 65536), hidden_size=hidden, intermediate_size=ch(hidden * 2, hidden * 3, hidden * 4 + 40), num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv,
                max_position_embeddings=ch(2048, 128000), tie_word_embeddings=maybe(.6), conv_L_cache=ch(3, 3, 4, 2), **which, **some(.4, conv_bias=[True], block_multiple_of=[64, 128]), **some(.3, block_auto_adjust_ff_dim=[False], block_ffn_dim_multiplier=[1.5, .75]))

def batch(config, given, case, ids, pixels):
    import torch
    n, per, (h, w) = given["n"], given["per"], case["grid"]
    for i in range(n): ids[:, i * (per + 2)] = config["vision_start_token_id"]; ids[:, i * (per + 2) + 1 + per] = config["vision_end_token_id"]
    return dict(labels=ids.clone(), pixel_values=pixels(case["batch"] * n * h * w, given["patch"]), image_grid_thw=torch.tensor([[1, h, w]] * (case["batch"] * n), device="cuda"), mm_token_type_ids=(ids == given["token"]).int())

def lfm2_moe():
    c = lfm2(); layers = c["num_hidden_layers"]; experts = ch(4, 8, 16)
    for key in [key for key in c if key.startswith("block_") or key == "full_attn_idxs"]: del c[key]
    return dict(c, model_type="lfm2_moe", layer_types=[ch("conv", "conv", "full_attention") for _ in range(layers)], num_experts=experts, num_experts_per_tok=ch(1, 2, 4), moe_intermediate_size=ch(64, 128, 256), num_dense_layers=ch(0, 1, 2),
                **some(.3, use_expert_bias=[False]), **some(.3, norm_topk_prob=[False]))

TEXT = dict(lfm2_moe=lfm2_moe, qwen3_5_text=qwen3_5_text, lfm2=lfm2)
IMAGES = dict(qwen3_5=qwen3_5)
