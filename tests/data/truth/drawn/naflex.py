"""Vision-language models whose towers take images of any aspect ratio as packed patches."""
from .common import R, V, ch, decoder, encoder, maybe, some
from .dense import exaone4
from .scans import delta, lfm2

GELUS = ["gelu", "gelu", "silu", "gelu_pytorch_tanh"]


def lfm2_vl():
    """Tiles of 512 pixels a side, without padding."""
    v, p, f = encoder(1), ch(16, 32, 64), ch(1, 2, 2, 4); t = lfm2(V); side = 512 // p
    v.update(model_type="siglip2_vision_model", patch_size=p, num_patches=ch(4, 16) ** 2, hidden_act=ch("gelu_pytorch_tanh", "gelu"), **some(.6, vision_use_head=[False]), **some(.2, attention_dropout=[.1]))
    config = dict(vision_config=v, text_config=t, image_token_id=32000, downsample_factor=f, projector_hidden_size=ch(512, 1000, 2560), projector_hidden_act=ch(*GELUS), projector_bias=maybe(.7), projector_use_layernorm=maybe(.6), tie_word_embeddings=t["tie_word_embeddings"])
    attends = "full_attention" in t.get("layer_types", []) or t.get("full_attn_idxs")  # what adapters are placed on
    return config, dict(per=(side // f) ** 2, n=ch(1, 1, 2), side=side, patch=3 * p * p), dict(freeze=ch("none", "none", "vision", "all-but-connector", *(["lora"] if attends else [])))


def video_llama_3():
    """Its projector goes by a name that `freeze` does not know."""
    v, p = encoder(1), ch(14, 16); t = decoder(ch("qwen2", "qwen2", "llama", "gemma"), V); grid = [R.randint(3, 26), R.randint(3, 26)]
    v.update(model_type="video_llama_3_vision", patch_size=p, hidden_act=ch("gelu_pytorch_tanh", "gelu"), **some(.25, attention_dropout=[.1]))
    return dict(vision_config=v, text_config=t, image_token_id=32000, video_token_id=32001, tie_word_embeddings=t["tie_word_embeddings"]), dict(per=grid[0] * grid[1], n=ch(1, 1, 2, 3), patch=3 * p * p), dict(grid=grid, freeze=ch("none", "none", "vision", "lora"))


def ernie4_5(vocab):
    """Sizes of ERNIE 4.5 and of PaddleOCR-VL's language model, with the sections of its rope."""
    kv, times, d = ch(1, 2, 4), ch(1, 2, 4), ch(64, 96, 128); heads, half = kv * times, d // 2; x = (half - half // 4) // 2; hidden = ch(512, 768, 1024)
    return dict(vocab_size=vocab, hidden_size=hidden, intermediate_size=ch(hidden * 2, hidden * 3, hidden * 3 + 40), num_hidden_layers=R.randint(1, 6), num_attention_heads=heads, num_key_value_heads=kv, head_dim=d, hidden_act=ch("silu", "gelu"), max_position_embeddings=4096, tie_word_embeddings=maybe(.5),
                rope_parameters=dict(rope_type="default", rope_theta=5e5, mrope_section=[half - 2 * x, x, x]), **some(.4, use_bias=[True]))


def paddleocr_vl():
    """Its projector goes by a name that `freeze` does not know."""
    v, p, s = encoder(1), ch(14, 16), ch(8, 16, 27); t = ernie4_5(V); m = ch(2, 2, 1, 3); grid = [m * R.randint(2, 12), m * R.randint(2, 12)]
    v.update(model_type="paddleocr_vl_vision", patch_size=p, image_size=p * s + ch(0, 3), spatial_merge_size=m, hidden_act=ch("gelu_pytorch_tanh", "gelu"), **some(.25, attention_dropout=[.1]))
    config = dict(vision_config=v, text_config=dict(t, model_type="paddleocr_vl_text"), image_token_id=32000, video_token_id=32001, vision_start_token_id=31998, vision_end_token_id=31999, tie_word_embeddings=t["tie_word_embeddings"])
    return config, dict(per=grid[0] * grid[1] // m ** 2, n=ch(1, 1, 2, 3), patch=p), dict(grid=grid, freeze=ch("none", "none", "vision", "lora"))


def minicpmv4_6():
    """Images of one size; without a token for them, forward looks at none."""
    t, v, p = dict(delta(ch(V, 248320)), model_type="qwen3_5_text"), encoder(1), ch(14, 16); mode, times = ch("16x", "16x", "4x"), ch(1, 1, 2); m = 2 ** (times + (mode == "16x")); grid = [m * R.randint(1, 16 // m), m * R.randint(1, 16 // m)]
    v.update(patch_size=p, image_size=p * ch(8, 14, 32), hidden_act=ch("gelu_pytorch_tanh", "gelu"), **some(.25, attention_dropout=[.1])); token = ch(None, *[32000] * 7)
    config = dict(vision_config=v, text_config=t, image_token_id=token, insert_layer_id=R.randint(0, v["num_hidden_layers"] - 1), downsample_mode=mode, merger_times=times, tie_word_embeddings=t["tie_word_embeddings"])
    return config, dict(per=grid[0] * grid[1] // m ** 2, n=ch(1, 1, 2, 3), patch=p), dict(grid=grid, **({} if token else dict(freeze=ch("none", "vision", "lora"))))


def exaone4_5():
    """EXAONE 4 with windows in three layers of four, and Qwen2.5-VL's tower with shared heads of keys and values."""
    v, p, kv = encoder(3), ch(14, 16), ch(1, 2, 4); t = dict(exaone4(), vocab_size=V); layers = v["num_hidden_layers"]
    vision = dict(depth=layers, num_heads=v["num_attention_heads"], num_key_value_heads=kv, in_channels=3, patch_size=p, spatial_merge_size=2, temporal_patch_size=2, hidden_size=v["hidden_size"], intermediate_size=v["intermediate_size"], out_hidden_size=t["hidden_size"],
                  window_size=ch(112, 8 * p), fullatt_block_indexes=sorted(R.sample(range(layers), R.randint(0, 2))), hidden_act=ch("silu", "gelu")); grid = [2 * R.randint(2, 14), 2 * R.randint(2, 14)]
    return dict(text_config=t, vision_config=vision, image_token_id=32000, video_token_id=32001, tie_word_embeddings=t["tie_word_embeddings"]), dict(per=grid[0] * grid[1] // 4, n=ch(1, 1, 2, 3), patch=6 * p * p), dict(grid=grid)


def ovis2():
    """Its table of visual words goes by a name that `freeze` does not know. Three indicators stand around each image."""
    t = decoder(ch("qwen2", "qwen2", "llama", "gemma"), V); e, p, k = encoder(1), ch(14, 16), ch(1, 2); s = k * ch(6, 8, 12); n = ch(1, 1, 2); per = (s // k) ** 2
    v = dict(e, patch_size=p, image_size=p * s, hidden_act=ch("silu", "gelu"), vocab_size=ch(133, 517, 2053), hidden_stride=k, num_visual_indicator_tokens=5, tokenize_function="softmax", **some(.4, qkv_bias=[True], mlp_bias=[True], attention_dropout=[.1]))
    config = dict(vision_config=v, text_config=t, image_token_id=32000, visual_indicator_token_ids=[32001, 32002, 32003, 32004, 32005], vocab_size=V, hidden_size=t["hidden_size"], tie_word_embeddings=t["tie_word_embeddings"])
    return config, dict(per=per, image=v["image_size"], n=n), dict(seq=n * (per + 3) + R.randint(4, 200), freeze=ch("none", "none", "vision", "lora"))


IMAGES = {"ovis2": ovis2, "exaone4_5": exaone4_5, "lfm2_vl": lfm2_vl, "video_llama_3": video_llama_3, "paddleocr_vl": paddleocr_vl, "minicpmv4_6": minicpmv4_6}


def batch(config, given, case, ids, pixels):
    import torch
    t, count = config["model_type"], case["batch"] * given["n"]
    if "grid" in case: h, w = case["grid"]; grids = torch.tensor([[1, h, w]] * count, device="cuda")
    if t == "ovis2":
        n, per, i = given["n"], given["per"], given["image"]
        ids[:, :n * (per + 3)] = 32000
        for k in range(n):
            first = k * (per + 3); ids[:, first] = 32001; ids[:, first + per + 1] = 32002; ids[:, first + per + 2] = 32005
        return dict(pixel_values=pixels(count, 3, i, i))
    if t == "exaone4_5": return dict(pixel_values=pixels(count * h * w, given["patch"]), image_grid_thw=grids)
    if t == "video_llama_3": return dict(pixel_values=pixels(count * h * w, given["patch"]), image_grid_thw=grids, image_merge_sizes=torch.ones(count, dtype=torch.long, device="cuda"))
    if t == "minicpmv4_6": return dict(target_sizes=torch.tensor([[h, w]] * count, dtype=torch.int32, device="cuda"), pixel_values=pixels(1, 3, given["patch"], given["patch"] * count * h * w))
    if t == "paddleocr_vl":
        n, per = given["n"], given["per"]
        for i in range(n): ids[:, i * (per + 2)] = 31998; ids[:, i * (per + 2) + 1 + per] = 31999
        return dict(labels=ids.clone(), pixel_values=pixels(count * h * w, 3, given["patch"], given["patch"]), image_grid_thw=grids, mm_token_type_ids=(ids == 32000).int())
    if t == "lfm2_vl":
        n = given["side"] ** 2
        return dict(spatial_shapes=torch.tensor([[given["side"]] * 2] * count, device="cuda"), pixel_attention_mask=torch.ones(count, n, dtype=torch.int32, device="cuda"), pixel_values=pixels(count, n, given["patch"]))
