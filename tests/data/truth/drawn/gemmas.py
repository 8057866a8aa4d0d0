"""Gemma's newer families."""
from .common import R, V, VOCABS, ch, maybe, some


def gemma3n_text():
    kv, d, layers = ch(1, 2, 4), ch(64, 96, 128, 256), R.randint(2, 6); heads = kv * ch(1, 2, 4); hidden = 4 * heads * ch(32, 48, 64)
    kinds = [ch("sliding_attention", "sliding_attention", "full_attention") for _ in range(layers)]
    shared = ch(0, 0, *(n for n in range(1, layers) if set(kinds[layers - n:]) <= set(kinds[:layers - n])))
    vocab, inputs, width = R.choice(VOCABS), ch(2, 3, 4), hidden * ch(2, 3, 4)
    return dict(model_type="gemma3n_text", vocab_size=vocab, hidden_size=hidden, intermediate_size=ch(width, [width * ch(1, 2) for _ in range(layers)]), num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv,
                head_dim=d, hidden_activation=ch("gelu_pytorch_tanh", "gelu", "silu"), max_position_embeddings=4096, tie_word_embeddings=maybe(.6), layer_types=kinds, sliding_window=ch(64, 256, 1024), num_kv_shared_layers=shared,
                vocab_size_per_layer_input=ch(vocab, vocab + 64), hidden_size_per_layer_input=ch(64, 96, 256), altup_num_inputs=inputs, altup_active_idx=ch(0, 0, inputs - 1), altup_correct_scale=maybe(.7), laurel_rank=ch(16, 64),
                **some(.3, attention_bias=[True], attention_dropout=[.1]), **some(.6, activation_sparsity_pattern=[[ch(0.0, .95) for _ in range(layers)]]))


def gemma4_text(unified=False, vocab=None):
    kv = ch(1, 2, 4); heads, d, layers = kv * ch(1, 2, 4), ch(64, 96, 128, 256), R.randint(2, 6); hidden = ch(512, 768, 1152, 1536)
    kinds = [ch("sliding_attention", "sliding_attention", "full_attention") for _ in range(layers - 1)] + ["full_attention"]
    # Layers that share keys and values need one of their kind before them.
    shared = ch(0, 0, *(n for n in range(1, layers) if set(kinds[layers - n:]) <= set(kinds[:layers - n])))
    c = dict(model_type="gemma4_unified_text" if unified else "gemma4_text", vocab_size=vocab or R.choice(VOCABS), hidden_size=hidden, intermediate_size=hidden * ch(2, 3, 4),
             num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv, head_dim=d, global_head_dim=ch(d, 2 * d, 64), hidden_activation=ch("gelu_pytorch_tanh", "gelu", "silu"),
             max_position_embeddings=4096, tie_word_embeddings=maybe(.6), layer_types=kinds, sliding_window=ch(64, 256, 1024), num_kv_shared_layers=shared, use_double_wide_mlp=maybe(.4),
             **some(.3, attention_bias=[True], attention_dropout=[.1]), **some(.4, attention_k_eq_v=[True], final_logit_softcapping=[30.0]))
    if c.get("attention_k_eq_v"): c.update(some(.6, num_global_key_value_heads=[1, kv]))
    if not unified: c.update(some(.4, enable_moe_block=[True]))
    if c.get("enable_moe_block"): c.update(num_experts=ch(4, 8, 16), top_k_experts=ch(1, 2, 4), moe_intermediate_size=ch(128, 256, 704))
    if not unified: c.update(hidden_size_per_layer_input=ch(0, 64, 96, 256), vocab_size_per_layer_input=c["vocab_size"])
    return c

def gemma4_unified():
    """The processor resizes a square image to 16 by 16 patches and pads them to 280."""
    t, width = gemma4_text(True, V), ch(256, 512, 768)
    t.update(some(.3, use_bidirectional_attention=[None]))
    vision = dict(model_type="gemma4_unified_vision", patch_size=ch(8, 14, 16), pooling_kernel_size=ch(2, 3), mm_embed_dim=width, output_proj_dims=width, mm_posemb_size=ch(280, 1120))
    # There is no tower, and no connector by the usual names.
    return dict(vision_config=vision, text_config=t, image_token_id=32000, video_token_id=32001, audio_token_id=32002, tie_word_embeddings=t["tie_word_embeddings"]), dict(per=256, n=ch(1, 1, 2)), dict(freeze=ch("none", "lora"))


def gemma4_vision():
    kv = ch(1, 2, 4, 4); heads, d, hidden = kv * ch(1, 1, 1, 2, 3), ch(32, 64, 72), ch(384, 768, 1152)
    return dict(model_type="gemma4_vision", hidden_size=hidden, intermediate_size=hidden * ch(2, 4), num_hidden_layers=R.randint(1, 4), num_attention_heads=heads, num_key_value_heads=kv, head_dim=d,
                position_embedding_size=ch(256, 1024), use_clipped_linears=maybe(.5), standardize=maybe(.5), **some(.3, attention_dropout=[.1], hidden_activation=["gelu", "silu"]))

def gemma4_audio():
    """Loaded, and not run without sound."""
    return dict(model_type="gemma4_audio", hidden_size=ch(128, 256), num_hidden_layers=R.randint(1, 3), num_attention_heads=4, subsampling_conv_channels=ch([128, 32], [32, 16]), output_proj_dims=ch(128, 384), use_clipped_linears=maybe(.7))

def gemma4():
    """The processor resizes a square image to 48 by 48 patches, of which nine are a token, and pads them to 2,520."""
    t = gemma4_text(vocab=V)
    t.update(some(.4, use_bidirectional_attention=["vision"]))
    if "vocab_size_per_layer_input" in t: t["vocab_size_per_layer_input"] = V
    return dict(vision_config=gemma4_vision(), audio_config=ch(None, gemma4_audio()), text_config=t, image_token_id=32000, video_token_id=32001, audio_token_id=32002, tie_word_embeddings=t["tie_word_embeddings"]), dict(per=256, n=ch(1, 1, 2)), dict(freeze=ch("none", "lora", "vision"))


TEXT = {"gemma3n_text": gemma3n_text, "gemma4_text": gemma4_text, "gemma4_unified_text": lambda: gemma4_text(True)}
IMAGES = {"gemma4": gemma4, "gemma4_unified": gemma4_unified}
ALONE = ["gemma4"]


def batch(config, given, case, ids, pixels):
    import torch
    images, v = case["batch"] * given["n"], config["vision_config"]
    if config["model_type"] == "gemma4": side, padded, elements = 48, 2520, 3 * 16**2
    else: side, padded, elements = 16, 280, 3 * (v["patch_size"] * v["pooling_kernel_size"]) ** 2
    places = torch.full((images, padded, 2), -1, device="cuda")
    grid = torch.arange(side**2, device="cuda")
    places[:, :side**2] = torch.stack([grid % side, grid // side], -1)
    return dict(mm_token_type_ids=(ids == 32000).long(), image_position_ids=places, pixel_values=pixels(images, padded, elements))
