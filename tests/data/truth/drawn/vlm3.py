"""Vision-language models with experts, and others of no kin here."""
from . import grids
from .common import R, V, ch, clip_vision, decoder, encoder, maybe, siglip_vision, some
from .experts import chosen, moe
from .moe2 import grouped

FROZEN = "none", "none", "vision"  # peft adapts fused experts too, and fails with dropout

def glm4v_moe():
    config, given, more = grids.glm4v(); c = grouped("glm4v_moe_text", kinds=False); c["vocab_size"] = V
    if "attention_bias" in c: c["attention_bias"] = False
    share = ch(.5, .5, 1.0, .25)
    c["rope_parameters"] = dict(rope_type="default", rope_theta=1e4, mrope_section=grids.sections(-(-int(c["head_dim"] * share) // 2)), **({} if share == .5 else dict(partial_rotary_factor=share)))
    config["vision_config"].update(model_type="glm4v_moe_vision", out_hidden_size=c["hidden_size"])
    return dict(config, text_config=c, tie_word_embeddings=c["tie_word_embeddings"]), given, dict(more, freeze=ch(*FROZEN, "all-but-connector"))

def ernie4_5_vl_moe():
    c, e, p = moe("ernie4_5_vl_moe_text", kinds=False), encoder(), ch(14, 16); layers = c["num_hidden_layers"]; c["vocab_size"] = V
    c.pop("attention_dropout", None); c["head_dim"] += -c["head_dim"] % 8; same = c["head_dim"] // 8 + ch(0, 1)
    c.update(rope_parameters=dict(rope_type="default", rope_theta=5e5, mrope_section=[same, same, c["head_dim"] // 2 - 2 * same]), moe_num_experts=ch(8, 16, 60), moe_k=chosen(8), moe_intermediate_size=ch([64, 32], [256, 96]),
             **some(.4, mlp_layer_types=[[ch("sparse", "dense") for _ in range(layers)]], moe_num_shared_experts=[0, 1], use_bias=[True]))
    vision = dict(depth=e["num_hidden_layers"], hidden_size=e["hidden_size"], num_heads=e["num_attention_heads"], intermediate_size=e["intermediate_size"], patch_size=p, hidden_act=ch("quick_gelu", "gelu"))
    config = dict(text_config=c, vision_config=vision, image_token_id=32000, video_token_id=32001, image_start_token_id=32002, image_end_token_id=32003, tie_word_embeddings=maybe(.5))
    given, more = grids.inputs(p)
    return config, given, dict(more, freeze=ch(*FROZEN))  # measure.py knows no resampler by name

def minimax_m3_text(t="minimax_m3_vl_text", vocab=None):
    c = moe(t, kinds=False); layers, share = c["num_hidden_layers"], ch(1.0, .5, .25)
    for key in ("hidden_act",): c.pop(key)
    c.update(intermediate_size=ch(64, 128, 256), dense_intermediate_size=ch(512, 1000), shared_intermediate_size=ch(64, 704), num_local_experts=ch(4, 8, 32), num_experts_per_tok=chosen(4),
             rope_parameters=dict(rope_type="default", rope_theta=5e6, partial_rotary_factor=share), **some(.5, mlp_layer_types=[[ch("sparse", "dense") for _ in range(layers)]]), **some(.3, layer_types=[["full_attention"] * layers]))
    return dict(c, vocab_size=vocab) if vocab else c

def minimax_m3_vl():
    c, e, p = minimax_m3_text(vocab=V), encoder(), ch(14, 16)
    vision = dict(e, patch_size=p, hidden_act=ch("gelu", "gelu", "quick_gelu"), **some(.2, attention_dropout=[.1]))
    config = dict(text_config=c, vision_config=vision, image_token_index=32000, video_token_index=32001, projector_hidden_size=ch(256, 1000), tie_word_embeddings=maybe(.4))
    given, more = grids.inputs(p, 2)
    return config, given, dict(more, freeze=ch(*FROZEN, "all-but-connector"))

def granite4_vision():
    side, v = ch(8, 16), ch(clip_vision, siglip_vision)(); v["image_size"] = i = v["patch_size"] * side
    v.update(hidden_size=v["num_attention_heads"] * 64, intermediate_size=ch(512, 1024)); states = v["num_hidden_layers"]
    t = decoder("llama", V); t.pop("head_dim", None); t["model_type"] = ch("granite", "granite4_vision_text"); layers = t["num_hidden_layers"]; q = ch(1, 2, 4)
    qformer = {} if maybe(.5) else dict(qformer_config=dict(model_type="blip_2_qformer", hidden_size=v["hidden_size"], encoder_hidden_size=v["hidden_size"], num_attention_heads=8, intermediate_size=512, num_hidden_layers=R.randint(1, 2), cross_attention_frequency=1))
    pins, n = [[i, 2 * i], [2 * i, i], [2 * i, 2 * i]], side // 2; pixels = ch(2 * i, int(1.5 * i))
    config = dict(vision_config=v, text_config=t, image_token_index=32000, image_grid_pinpoints=pins, downsample_rate=f"{q}/{2 * q}", vision_feature_select_strategy="full" if v["model_type"].startswith("siglip") else "default",
                  deepstack_layer_map=[[ch(-1, -2, 1), R.randrange(layers)] for _ in range(R.randint(1, 3))], spatial_target_layers=[R.randrange(layers) for _ in range(ch(4, 4, 2))], spatial_vision_layer=ch(-1, -2),
                  tie_word_embeddings=maybe(.5), **some(.5, projector_dropout=[0.0, .2]), **qformer)
    # a square image fills the largest square
    return config, dict(per=n * n + 2 * n * (2 * n + 1), image=i, pixels=pixels, tiles=5), dict(image=pixels, freeze=ch("none", "none", "vision", "lora"))

TEXT = dict(minimax_m3_vl_text=minimax_m3_text)
IMAGES = dict(minimax_m3_vl=minimax_m3_vl, granite4_vision=granite4_vision, glm4v_moe=glm4v_moe, ernie4_5_vl_moe=ernie4_5_vl_moe)
ALONE = ["glm4v_moe", "ernie4_5_vl_moe", "minimax_m3_vl"]

def batch(config, given, case, ids, pixels):
    if config["model_type"] == "ernie4_5_vl_moe":
        per = given["per"]
        for i in range(given["n"]): ids[:, i * (per + 2)] = 32002; ids[:, i * (per + 2) + 1 + per] = 32003
        return dict(grids.batch(config, given, case, ids, pixels), moe_mm_token_type_ids=(ids > 31000).int())
    if config["model_type"] == "granite4_vision":
        import torch
        images = case["batch"] * given["n"]
        return dict(pixel_values=pixels(images, given["tiles"], 3, given["image"], given["image"]), image_sizes=torch.tensor([[given["pixels"]] * 2] * images, device="cuda"))
    made = grids.batch(config, given, case, ids, pixels)
    if config["model_type"] == "minimax_m3_vl": del made["mm_token_type_ids"]
    return made
