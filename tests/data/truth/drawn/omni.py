"""Models of images, sound and text, without sound."""
from .common import R, V, ch, decoder, encoder, maybe, some
from .experts import chosen, moe
from .grids import inputs, sections


def tokens(key):
    """Ids of the tokens that stand for images and sound, under the names that end with `key`."""
    return {f"image_token_{key}": 32000, f"video_token_{key}": 32001, f"audio_token_{key}": 32004, "vision_start_token_id": 32002, "vision_end_token_id": 32003, "audio_start_token_id": 32005}

def sound(**more):
    """An audio encoder, which no step here runs."""
    e = encoder()
    return dict(d_model=e["hidden_size"], encoder_attention_heads=e["num_attention_heads"], encoder_ffn_dim=e["intermediate_size"], encoder_layers=ch(1, 2), num_mel_bins=ch(80, 128), output_dim=ch(256, 512), max_source_positions=ch(200, 1500), **more)

def tower(text, p, least=1):
    e = encoder(least)
    return dict(depth=e["num_hidden_layers"], num_heads=e["num_attention_heads"], in_channels=3, patch_size=p, spatial_merge_size=2, temporal_patch_size=2, hidden_size=e["hidden_size"], intermediate_size=e["intermediate_size"], out_hidden_size=text["hidden_size"])

def qwen2_5_omni_thinker():
    text, p = decoder("qwen2", V), ch(14, 16); text.pop("rope_scaling", None)
    if "head_dim" in text: text["hidden_size"] = text["num_attention_heads"] * text.pop("head_dim")
    half = text["hidden_size"] // text["num_attention_heads"] // 2
    text.update(model_type="qwen2_5_omni_text", rope_parameters=dict(rope_type="default", rope_theta=1e6, mrope_section=sections(half)))
    vision = tower(text, p); layers = vision["depth"]
    vision.update(window_size=ch(112, 8 * p), fullatt_block_indexes=sorted(R.sample(range(layers), R.randint(0, min(2, layers)))), hidden_act=ch("silu", "silu", "gelu"))
    return dict(text_config=text, vision_config=vision, audio_config=sound(), tie_word_embeddings=maybe(.4), **tokens("index")), *inputs(p, 2)

def qwen3_omni_moe_thinker():
    text, p = moe("qwen3_omni_moe_text", kinds=False), ch(14, 16); layers = text["num_hidden_layers"]
    text.update(vocab_size=V, num_experts=ch(8, 16, 32, 60), num_experts_per_tok=chosen(8), moe_intermediate_size=ch(64, 128, 256, 768), norm_topk_prob=maybe(.5), **some(.3, attention_bias=[True]), **some(.3, decoder_sparse_step=[2]),
                **some(.3, mlp_only_layers=[[0], [layers - 1]]), rope_parameters=dict(rope_type="default", rope_theta=1e6, mrope_section=sections(text["head_dim"] // 2), interleaved=True))
    vision = tower(text, p, 3); depth = vision["depth"]
    vision.update(num_position_embeddings=ch(256, 2304), deepstack_visual_indexes=sorted(R.sample(range(depth - 1), R.randint(0, 2))), hidden_act=ch("gelu_pytorch_tanh", "gelu"))
    given, more = inputs(p, 2)
    # Adapters beside experts are not simulated.
    return dict(text_config=text, vision_config=vision, audio_config=sound(downsample_hidden_size=ch(32, 480)), tie_word_embeddings=maybe(.4), **tokens("id")), given, dict(more, freeze=ch("none", "none", "vision", "all-but-connector"))

IMAGES = dict(qwen2_5_omni_thinker=qwen2_5_omni_thinker, qwen3_omni_moe_thinker=qwen3_omni_moe_thinker)
ALONE = ["qwen2_5_omni_thinker"]


def batch(config, given, case, ids, pixels):
    import torch
    (h, w), count, per = case["grid"], case["batch"] * given["n"], given["per"]
    for i in range(given["n"]): ids[:, i * (per + 2)] = config["vision_start_token_id"]; ids[:, i * (per + 2) + 1 + per] = config["vision_end_token_id"]
    return dict(pixel_values=pixels(count * h * w, given["patch"]), image_grid_thw=torch.tensor([[1, h, w]] * count, device="cuda"))
