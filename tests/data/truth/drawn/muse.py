"""Muse Glimmer, whose decoder and tower both have some blocks that see windows."""
from .common import R, V, ch, decoder, encoder, maybe, some

def muse_glimmer():
    """Its projector goes by names that `freeze` does not know."""
    t, v, p, m, side = decoder("llama", V, R.randint(2, 6)), encoder(), ch(14, 16), ch(2, 2, 1, 3), ch(4, 8, 32); grid = [m * R.randint(1, 24 // m), m * R.randint(1, 24 // m)]
    for key in ("rope_scaling", "mlp_bias", "model_type", "tie_word_embeddings"): t.pop(key, None)
    t.update(hidden_activation=t.pop("hidden_act"), head_dim=t.get("head_dim") or t["hidden_size"] // t["num_attention_heads"], sliding_window=ch(16, 64, 2048))
    vision = dict(v, patch_size=p, pos_emb_height=side, pos_emb_width=side, merge_size=m, hidden_act=ch("gelu", "gelu_pytorch_tanh"), **some(.3, layer_types=[[ch("window_attention", "full_attention") for _ in range(v["num_hidden_layers"])]]))
    config = dict(text_config=t, vision_config=vision, out_hidden_size=v["hidden_size"] * m * m, projector_hidden_size=ch(512, 1000), projector_hidden_act=ch("gelu", "silu"), image_token_id=32000, video_token_id=32001, tie_word_embeddings=maybe(.4))
    return config, dict(per=grid[0] * grid[1] // m ** 2, patch=6 * p * p, n=ch(1, 1, 2, 3)), dict(grid=grid, freeze=ch("none", "none", "vision", "lora"))

IMAGES = dict(muse_glimmer=muse_glimmer)
ALONE = list(IMAGES)

def batch(config, given, case, ids, pixels):
    import torch
    (h, w), count = case["grid"], case["batch"] * given["n"]
    return dict(pixel_values=pixels(count * h * w, given["patch"]), image_grid_thw=torch.tensor([[1, h, w]] * count, device="cuda"))
