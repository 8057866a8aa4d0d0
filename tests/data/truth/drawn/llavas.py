"""Towers, projectors and decoders of LLaVA's kind."""
import math

from .common import R, V, ch, clip_vision, decoder, encoder, maybe, side, siglip_vision, some
from .dense import ministral3

GELUS = ("gelu", "relu", "silu")


def images(v, per): return dict(per=per, image=v["image_size"], n=ch(1, 1, 2))

def tied(text): return dict(tie_word_embeddings=text["tie_word_embeddings"])

def projector(): return dict(projector_hidden_act=ch(*GELUS), multimodal_projector_bias=maybe(.7))


def vipllava():
    v, t = clip_vision(), decoder(ch("llama", "mistral", "qwen2", "gemma"), V)
    return dict(vision_config=v, text_config=t, image_token_index=32000, vision_feature_layers=ch(-2, [-1], [-2, -1], [-2, -3, 1], [0, 2]), projector_hidden_act=ch(*GELUS), **tied(t)), images(v, side(v) ** 2), {}

def video_llava():
    """The vision tower goes by a name that `freeze` does not know."""
    v, t, select = clip_vision(), decoder(ch("llama", "mistral", "qwen2", "gemma"), V), ch("default", "default", "full")
    config = dict(vision_config=v, text_config=t, image_token_index=32000, video_token_index=32001, vision_feature_layer=ch(-2, -1, [-2], [-2, 1]), vision_feature_select_strategy=select, **projector(), **tied(t))
    return config, images(v, side(v) ** 2 + (select == "full")), dict(freeze=ch("none", "all-but-connector", "lora"))

def aya_vision():
    v, t, f = siglip_vision(), decoder(ch("llama", "qwen2"), V), ch(1, 2); t = dict(t, model_type="cohere2", **some(.3, logit_scale=[.5])) if maybe(.7) else t
    for key in ("rope_scaling", "head_dim", "layer_types", "use_sliding_window", "max_window_layers", "mlp_bias"): t.pop(key, None)
    t["hidden_size"] = -(-t["hidden_size"] // (8 * t["num_attention_heads"])) * 8 * t["num_attention_heads"]
    if t["model_type"] == "cohere2": t["sliding_window"] = ch(64, 4096)
    config = dict(vision_config=v, text_config=t, image_token_index=32000, downsample_factor=f, vision_feature_layer=ch(-1, -1, -2, [-1]), **some(.6, alignment_intermediate_size=[512, 1536]), **tied(t))
    return config, images(v, (side(v) // f) ** 2), {}

def deepseek_vl():
    """Its projector goes by a name that `freeze` does not know."""
    v, t = dict(siglip_vision(), vision_use_head=maybe(.5)), decoder(ch("llama", "qwen2", "mistral", "gemma"), V)
    return dict(vision_config=v, text_config=t, image_token_id=32000, **tied(t)), images(v, side(v) ** 2), dict(freeze=ch("none", "none", "vision", "lora"))

def anyres(v, kept_by=None):
    """A square image, the allowed resolutions, and the tokens that it takes."""
    i = v["image_size"]; pins = [[i, 2 * i], [2 * i, i], [2 * i, 2 * i]] + ch([], [[3 * i, i], [i, 3 * i]], [[3 * i, 3 * i]]); pixels = ch(i, 2 * i, int(1.5 * i), i // 2, 3 * i)
    def kept(p): return min(int(pixels * min(p[0] / pixels, p[1] / pixels)) ** 2, pixels * pixels)
    best = max(pins, key=lambda p: (kept(p), kept(p) - p[0] * p[1])); rows, columns = (n // i * side(v) for n in best)
    if columns > rows: columns -= (columns - rows) // 2 * 2
    else: rows -= (rows - columns) // 2 * 2
    ratio = math.sqrt(rows * columns / (kept_by * side(v) ** 2)) if kept_by else 1
    if ratio > 1.1: rows, columns = int(rows // ratio), int(columns // ratio)
    return dict(image_grid_pinpoints=pins), dict(per=side(v) ** 2 + rows * (columns + 1), image=i, pixels=pixels, tiles=best[0] // i * (best[1] // i) + 1), dict(image=pixels)

def llava_next_video():
    v, t = clip_vision(), decoder(ch("llama", "mistral", "qwen2", "gemma", "gemma2"), V); pins, given, more = anyres(v)
    config = dict(vision_config=v, text_config=t, image_token_index=32000, video_token_index=32001, vision_feature_layer=ch(-2, -1, [-2, -1]), vision_feature_select_strategy="default", spatial_pool_mode=ch("average", "max", "conv"), spatial_pool_stride=ch(2, 2, 3),
                  **pins, **projector(), **tied(t))
    return config, given, more

def llava_onevision():
    v, t, most = dict(siglip_vision(), vision_use_head=maybe(.2)), decoder(ch("qwen2", "qwen2", "llama", "gemma"), V), ch(1, 2, 4, 9); pins, given, more = anyres(v, most)
    if maybe(.3): given, more = dict(given, per=side(v) ** 2 + 1, tiles=1, n=2), {}
    config = dict(vision_config=v, text_config=t, image_token_index=32000, video_token_index=32001, vision_feature_layer=ch(-1, -1, -2, [-2, -1]), vision_aspect_ratio=f"anyres_max_{most}", **pins, **projector(), **tied(t))
    return config, given, more

def pixtral():
    """A tower, the side of a square image, and what merges its patches."""
    p, m = ch(14, 16), ch(1, 2, 2, 3); heads, d = ch(4, 8, 12), ch(32, 64, 72, 80); s = m * ch(4, 7, 10)
    v = dict(model_type="pixtral", hidden_size=heads * d, num_attention_heads=heads, intermediate_size=heads * d * ch(2, 4) + ch(0, 40), num_hidden_layers=R.randint(1, 5), patch_size=p, image_size=p * s * ch(1, 2), hidden_act=ch("gelu", "silu"),
             **some(.2, attention_dropout=[.1]))
    return v, m, p * s, (s // m) ** 2

def mistral3():
    v, m, pixels, per = pixtral(); t, n = decoder(ch("mistral", "mistral", "llama", "qwen2", "gemma"), V), ch(1, 1, 2)
    if maybe(.4): t = ministral3(V)
    config = dict(vision_config=v, text_config=t, image_token_index=32000, spatial_merge_size=m, vision_feature_layer=ch(-1, -1, -2, [-1]), **projector(), **tied(t))
    if maybe(.4):  # images of several sizes, whose tokens are drawn as one run
        u = v["patch_size"] * m; sizes = [[u * R.randint(2, v["image_size"] // u) for _ in "hw"] for _ in range(n)]; per = sum(h * w for h, w in sizes) // u ** 2
        return config, dict(per=per, n=1, sizes=sizes), dict(image_sizes=sizes, images=n, seq=per + sum(h for h, _ in sizes) // u + 2 + R.randint(4, 200))
    return config, dict(per=per, n=n, pixels=pixels), dict(image=pixels, seq=n * (per + math.isqrt(per) + 2) + R.randint(4, 200))

def lighton_ocr():
    """Tower and projector go by names that `freeze` does not know."""
    v, m, pixels, per = pixtral(); t = decoder(ch("qwen3", "qwen3", "llama", "gemma"), V)
    return dict(vision_config=v, text_config=t, image_token_id=32000, spatial_merge_size=m, **tied(t)), dict(per=per, n=ch(1, 1, 2), pixels=pixels), dict(image=pixels, freeze=ch("none", "lora"))

def idefics2():
    """A perceiver of the language model's width."""
    p, heads = ch(14, 16), ch(4, 8); v = dict(model_type="idefics2_vision", **encoder(1), patch_size=p, image_size=p * ch(8, 14, 21), hidden_act=ch("gelu_pytorch_tanh", "gelu"), **some(.2, attention_dropout=[.1]))
    t = dict(decoder(ch("mistral", "mistral", "llama", "gemma"), V), pad_token_id=2); kv, latents = ch(1, 2, 4), ch(8, 30, 64)
    perceiver = dict(hidden_size=t["hidden_size"], resampler_n_latents=latents, resampler_depth=R.randint(1, 3), resampler_n_heads=kv * ch(1, 2, 4), resampler_head_dim=ch(32, 64, 96), num_key_value_heads=kv, hidden_act=ch("silu", "gelu"), **some(.3, attention_dropout=[.1]))
    config = dict(vision_config=v, perceiver_config=perceiver, text_config=t, image_token_id=32000, use_cache=False, **tied(t))
    return config, dict(per=latents, image=v["image_size"], n=ch(1, 1, 2)), dict(freeze=ch("none", "none", "vision", "lora", "all-but-connector"))

def qianfan_ocr():
    p, s = ch(14, 16), ch(16, 24); t = decoder(ch("qwen3", "qwen3", "llama", "qwen2"), V)
    vision = dict(model_type="qianfan_ocr_vision", **encoder(2), image_size=[p * s] * 2, patch_size=[p] * 2, use_mean_pooling=maybe(.6), norm_type=ch("layer_norm", "layer_norm", "rms_norm"),
                  **some(.3, attention_bias=[False], use_qk_norm=[True], drop_path_rate=[0.0, .3], use_absolute_position_embeddings=[False], hidden_dropout_prob=[.1], projection_dropout=[.1]))
    config = dict(vision_config=vision, text_config=t, image_token_id=32000, image_seq_length=(s // 2) ** 2, downsample_ratio=.5, projector_hidden_act=ch(*GELUS), **tied(t))
    return config, dict(per=(s // 2) ** 2, image=p * s, n=ch(1, 1, 2)), {}

def janus():
    """Its autoencoder does not run; its projector goes by a name that `freeze` does not know."""
    t = decoder(ch("llama", "llama", "qwen2", "mistral"), V); h = t["hidden_size"]; v = encoder(1); p, s = ch(14, 16), ch(8, 12, 16, 24)
    v = dict(model_type="janus_vision_model", **{k: v[k] for k in ("hidden_size", "num_attention_heads", "num_hidden_layers")}, mlp_ratio=ch(2.0, 4.0, 3.7), patch_size=p, image_size=p * s, hidden_act=ch("gelu", "silu", "gelu_pytorch_tanh"),
             projection_dim=ch(h, h, h // 2, 2 * h), depth=ch(1, 2, 3), **some(.3, attention_bias=[False], attention_dropout=[.1]))
    vq = dict(embed_dim=ch(8, 16), num_embeddings=ch(64, 500), latent_channels=ch(32, 64), base_channels=ch(32, 64), channel_multiplier=ch([1], [1, 2], [1, 1, 3]), num_res_blocks=ch(1, 2), double_latent=maybe(.3), projection_dim=ch(64, 128), num_hidden_layers=ch(1, 2, 3), image_token_embed_dim=ch(64, 96))
    return dict(vision_config=v, vq_config=vq, text_config=t, image_token_id=32000, **tied(t)), images(v, s * s * v["projection_dim"] // h), dict(freeze=ch("none", "none", "vision", "lora"))


IMAGES = {"vipllava": vipllava, "video_llava": video_llava, "aya_vision": aya_vision, "deepseek_vl": deepseek_vl, "llava_next_video": llava_next_video, "llava_onevision": llava_onevision, "mistral3": mistral3, "lighton_ocr": lighton_ocr, "idefics2": idefics2, "qianfan_ocr": qianfan_ocr, "janus": janus}

ALONE = ["vipllava", "video_llava", "deepseek_vl", "llava_next_video", "llava_onevision", "idefics2", "janus"]


def batch(config, given, case, ids, pixels):
    import torch
    t, n = config["model_type"], given["n"]; count, i = case["batch"] * n, given.get("image")
    if t == "video_llava":  # measure.py casts what it knows by the name of pixel_values
        x = pixels(count, 3, i, i)
        return dict(pixel_values_images=x.bfloat16() if case["precision"] == "bf16" else x)
    if t in ("llava_next_video", "llava_onevision"):
        several = dict(batch_num_images=[n] * case["batch"]) if n > 1 else {}
        return dict(several, pixel_values=pixels(count, given["tiles"], 3, i, i), image_sizes=torch.tensor([[given["pixels"]] * 2] * count, device="cuda"))
    if "sizes" in given: return dict(pixel_values=pixels(case["batch"] * len(given["sizes"]), 3, *(max(side) for side in zip(*given["sizes"]))), image_sizes=torch.tensor(given["sizes"] * case["batch"], device="cuda"))
    if "pixels" in given: return dict(pixel_values=pixels(count, 3, given["pixels"], given["pixels"]), image_sizes=torch.tensor([[given["pixels"]] * 2] * count, device="cuda"))
    if t == "idefics2": return dict(pixel_values=pixels(case["batch"], n, 3, i, i))
    return dict(pixel_values=pixels(count, 3, i, i))
