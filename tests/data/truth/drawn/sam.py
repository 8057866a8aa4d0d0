"""SAM's vision tower in other models, and kin of Aya Vision and Persimmon."""
from . import llavas, plain
from .common import R, V, ch, decoder, maybe, side, siglip_vision, some


def cohere2_vision():
    """Aya Vision without the projector's norm, on the tower's output."""
    v = dict(siglip_vision(), vision_use_head=maybe(.4)); config, given, more = llavas.aya_vision(); t, f = config["text_config"], config["downsample_factor"]
    keys = dict(image_token_id=32000, downsample_factor=f, alignment_intermediate_size=ch(512, 1536, 200), tie_word_embeddings=config["tie_word_embeddings"])
    return dict(vision_config=v, text_config=t, **keys), llavas.images(v, (side(v) // f) ** 2), more

def fuyu():
    """Patches of a square image; its linear map goes by a name that `freeze` does not know, and its maps by none that LoRA's usual targets have."""
    t = dict(plain.persimmon(), vocab_size=V); p, n = ch(14, 16, 30), ch(4, 7, 12)
    config = dict(text_config=t, hidden_size=t["hidden_size"], vocab_size=V, patch_size=p, image_size=ch(p * n, 300), num_channels=3, image_token_id=32000, tie_word_embeddings=t["tie_word_embeddings"])
    return config, dict(per=n * n, n=1, patch=3 * p * p), dict(image=p * n, freeze="none", seq=n * (n + 1) + R.randint(4, 200))

def sam_tower(**more):
    """SAM's tower without its `model_type`, and its patches a side."""
    p, s, layers = ch(14, 16), ch(8, 14, 17, 20, 28), R.randint(1, 4); heads, d = ch(2, 4, 6), ch(32, 64, 80); h = heads * d
    return dict(hidden_size=h, num_attention_heads=heads, num_hidden_layers=layers, mlp_dim=ch(h * 2, h * 4, 328), output_channels=ch(32, 64, 256), image_size=p * s, patch_size=p, window_size=ch(7, 8, 14, 14, 0),
                global_attn_indexes=ch([1], [0, 2], [2, 5, 8, 11]), hidden_act=ch("gelu", "gelu", "relu"), **some(.3, qkv_bias=[False]), **some(.2, use_rel_pos=[False]), **some(.2, use_abs_pos=[False]), **some(.3, attention_dropout=[.1]), **more), s

def got_ocr2():
    """The tower has eager attention only."""
    (v, s), t = sam_tower(), decoder(ch("qwen2", "qwen2", "llama", "gemma"), V)
    return dict(vision_config=v, text_config=t, image_token_index=32000, tie_word_embeddings=t["tie_word_embeddings"]), llavas.images(v, (-(-s // 4)) ** 2), {}

def deepseek_vl_hybrid():
    """Its projector goes by a name that `freeze` does not know."""
    low, (high, s), t = dict(siglip_vision(), vision_use_head=maybe(.5)), sam_tower(), decoder(ch("llama", "qwen2", "mistral", "gemma"), V)
    low["image_size"] = low["patch_size"] * ch(4, 5, 8, 12)
    if maybe(.3): high["mlp_ratio"] = ch(2.0, 3.7); del high["mlp_dim"]
    high["global_attn_indexes"] = ch([0], [high["num_hidden_layers"] - 1, 0])
    return dict(vision_config=low, high_res_vision_config=dict(high, model_type="sam_vision_model"), text_config=t, image_token_id=32000, tie_word_embeddings=t["tie_word_embeddings"]), dict(llavas.images(low, side(low) ** 2), high=high["image_size"]), dict(freeze=ch("none", "none", "vision", "lora"))


ALONE = ["deepseek_vl_hybrid"]
CASES = {t: dict(attn="eager") for t in ["got_ocr2", "pp_chart2table"]}
IMAGES = {"cohere2_vision": cohere2_vision, "fuyu": fuyu, "got_ocr2": got_ocr2, "pp_chart2table": got_ocr2, "deepseek_vl_hybrid": deepseek_vl_hybrid}


def batch(config, given, case, ids, pixels):
    t, count, i = config["model_type"], case["batch"] * given["n"], given.get("image")
    if t == "fuyu":  # measure.py casts what it knows by the name of pixel_values
        x = pixels(count, given["per"], given["patch"])
        return dict(image_patches=x.bfloat16() if case["precision"] == "bf16" else x)
    if t == "deepseek_vl_hybrid":
        x = pixels(count, 3, given["high"], given["high"])
        return dict(high_res_pixel_values=x.bfloat16() if case["precision"] == "bf16" else x, pixel_values=pixels(count, 3, i, i))
    return dict(pixel_values=pixels(count, 3, i, i))
