"""Models whose images are given by their grids of patches, beside Qwen's."""
from .common import R, V, ch, decoder, encoder, maybe, some

def sections(half):
    x = (half - half // 4) // 2
    return [half - 2 * x, x, x]

def text(t):
    """A language model whose heads have a stated width."""
    c = decoder("llama", V); c.pop("rope_scaling", None)
    return dict(c, model_type=t, head_dim=c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"])

def inputs(p, frames=1, merge=2, token=32000):
    grid = [merge * R.randint(2, 14), merge * R.randint(2, 14)]
    return dict(per=grid[0] * grid[1] // merge ** 2, token=token, patch=3 * frames * p * p, n=ch(1, 1, 2, 3)), dict(grid=grid)

def cosmos3_edge():
    c, e, p = text("cosmos3_edge_text"), encoder(), ch(14, 16)
    c.update(rope_parameters=dict(rope_type="default", rope_theta=1e8, mrope_section=sections(c["head_dim"] // 2)), hidden_act=ch("relu2", "relu2", "silu", "gelu"))
    vision = dict(e, model_type="cosmos3_edge_vision", patch_size=p, num_patches=ch(64, 256, 1024), hidden_act=ch("gelu_pytorch_tanh", "gelu"))
    config = dict(text_config=c, vision_config=vision, projector_hidden_size=ch(512, 1000, 4096), image_token_id=32000, video_token_id=32001, vision_start_token_id=32002, vision_end_token_id=32003, tie_word_embeddings=maybe(.3))
    return config, *inputs(p)

def glm_ocr():
    c, e, p = text("glm_ocr_text"), encoder(), ch(14, 16)
    for key in ("attention_bias", "mlp_bias"): c.pop(key, None)
    share = ch(1.0, 1.0, .5); turned = int(c["head_dim"] * share)
    c["rope_parameters"] = dict(rope_type="default", rope_theta=1e4, mrope_section=sections(turned // 2), **({} if share == 1 else dict(partial_rotary_factor=share)))
    if c["head_dim"] * c["num_attention_heads"] == c["hidden_size"] and maybe(.5): del c["head_dim"]
    vision = dict(model_type="glm_ocr_vision", depth=e["num_hidden_layers"], hidden_size=e["hidden_size"], num_heads=e["num_attention_heads"], intermediate_size=e["intermediate_size"], patch_size=p,
                  out_hidden_size=c["hidden_size"], attention_bias=maybe(.7), hidden_act=ch("silu", "silu", "gelu"), spatial_merge_size=2, temporal_patch_size=2)
    config = dict(text_config=c, vision_config=vision, image_token_id=32000, video_token_id=32001, image_start_token_id=32002, image_end_token_id=32003, tie_word_embeddings=c["tie_word_embeddings"])
    return config, *inputs(p, 2)

def glm4v():
    config, given, more = glm_ocr(); c, vision = config["text_config"], config["vision_config"]
    # hidden_size is what the heads fill
    c["hidden_size"] = c.pop("head_dim", c["hidden_size"] // c["num_attention_heads"]) * c["num_attention_heads"]
    c.update(model_type="glm4v_text"); vision.update(model_type="glm4v_vision", image_size=vision["patch_size"] * ch(8, 24), attention_bias=maybe(.4), out_hidden_size=c["hidden_size"])
    return config, given, more

IMAGES = dict(cosmos3_edge=cosmos3_edge, glm_ocr=glm_ocr, glm4v=glm4v, glm46v=glm4v, glmga=glm4v)
ALONE = list(IMAGES)

def batch(config, given, case, ids, pixels):
    import torch
    (h, w), count = case["grid"], case["batch"] * given["n"]
    return dict(pixel_values=pixels(count * h * w, given["patch"]), image_grid_thw=torch.tensor([[1, h, w]] * count, device="cuda"), mm_token_type_ids=(ids == given["token"]).int())
