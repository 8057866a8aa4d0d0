"""Gemma's newer families."""
from .common import R, V, VOCABS, ch, maybe, some


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
    if not unified: c.update(hidden_size_per_layer_input=ch(0, 64, 96, 256), vocab_size_per_layer_input=c["vocab_size"])
    return c

def gemma4_unified():
    """The processor resizes a square image to 16 by 16 patches and pads them to 280."""
    t, width = gemma4_text(True, V), ch(256, 512, 768)
    t.update(some(.3, use_bidirectional_attention=[None]))
    vision = dict(model_type="gemma4_unified_vision", patch_size=ch(8, 14, 16), pooling_kernel_size=ch(2, 3), mm_embed_dim=width, output_proj_dims=width, mm_posemb_size=ch(280, 1120))
    # There is no tower, and no connector by the usual names.
    return dict(vision_config=vision, text_config=t, image_token_id=32000, video_token_id=32001, audio_token_id=32002, tie_word_embeddings=t["tie_word_embeddings"]), dict(per=256, n=ch(1, 1, 2)), dict(freeze=ch("none", "lora"))


def gemma4():
    """Without a tower; the recorded text is made from `vocab_size`."""
    t = gemma4_text()
    t.update(some(.4, use_bidirectional_attention=["vision"]))
    return dict(model_type="gemma4", text_config=t, vocab_size=min(t["vocab_size"], 32000), tie_word_embeddings=t["tie_word_embeddings"])


TEXT = {"gemma4": gemma4, "gemma4_text": gemma4_text, "gemma4_unified_text": lambda: gemma4_text(True)}
IMAGES = {"gemma4_unified": gemma4_unified}


def batch(config, given, case, ids, pixels):
    import torch
    images, v = case["batch"] * given["n"], config["vision_config"]
    places = torch.full((images, 280, 2), -1, device="cuda")
    grid = torch.arange(256, device="cuda")
    places[:, :256] = torch.stack([grid % 16, grid // 16], -1)
    return dict(mm_token_type_ids=(ids == 32000).long(), image_position_ids=places, pixel_values=pixels(images, 280, 3 * (v["patch_size"] * v["pooling_kernel_size"]) ** 2))
