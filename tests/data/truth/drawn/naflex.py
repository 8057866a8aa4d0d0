"""Vision-language models whose towers take images of any aspect ratio as packed patches."""
from .common import R, V, ch, encoder, maybe, some
from .scans import lfm2

GELUS = ["gelu", "gelu", "silu", "gelu_pytorch_tanh"]


def lfm2_vl():
    """Tiles of 512 pixels a side, without padding."""
    v, p, f = encoder(1), ch(16, 32, 64), ch(1, 2, 2, 4); t = lfm2(V); side = 512 // p
    v.update(model_type="siglip2_vision_model", patch_size=p, num_patches=ch(4, 16) ** 2, hidden_act=ch("gelu_pytorch_tanh", "gelu"), **some(.6, vision_use_head=[False]), **some(.2, attention_dropout=[.1]))
    config = dict(vision_config=v, text_config=t, image_token_id=32000, downsample_factor=f, projector_hidden_size=ch(512, 1000, 2560), projector_hidden_act=ch(*GELUS), projector_bias=maybe(.7), projector_use_layernorm=maybe(.6), tie_word_embeddings=t["tie_word_embeddings"])
    attends = "full_attention" in t.get("layer_types", []) or t.get("full_attn_idxs")  # what adapters are placed on
    return config, dict(per=(side // f) ** 2, n=ch(1, 1, 2), side=side, patch=3 * p * p), dict(freeze=ch("none", "none", "vision", "all-but-connector", *(["lora"] if attends else [])))


IMAGES = {"lfm2_vl": lfm2_vl}


def batch(config, given, case, ids, pixels):
    import torch
    t, count = config["model_type"], case["batch"] * given["n"]
    if t == "lfm2_vl":
        n = given["side"] ** 2
        return dict(spatial_shapes=torch.tensor([[given["side"]] * 2] * count, device="cuda"), pixel_attention_mask=torch.ones(count, n, dtype=torch.int32, device="cuda"), pixel_values=pixels(count, n, given["patch"]))
