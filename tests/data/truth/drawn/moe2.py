"""More mixture-of-experts decoders, alone and in vision-language models."""
from . import scans
from .common import R, V, ch, encoder, maybe, some
from .experts import chosen, moe

def delta_moe(t, vocab=None):
    c = dict(scans.delta(vocab), model_type=t, num_experts=ch(8, 16, 60), num_experts_per_tok=chosen(8), moe_intermediate_size=ch(64, 128, 256, 512), shared_expert_intermediate_size=ch(64, 256, 512))
    if t != "qwen3_next": del c["intermediate_size"]
    return c

def qwen3_5_moe_text(): return delta_moe("qwen3_5_moe_text")

def qwen3_next():
    c = delta_moe("qwen3_next"); layers = c["num_hidden_layers"]
    return dict(c, **some(.5, norm_topk_prob=[False]), **some(.3, decoder_sparse_step=[2]), **some(.3, mlp_only_layers=[[0], [layers - 1]]))

def qwen3_5_moe():
    config, inputs, more = scans.qwen3_5(); old = config["text_config"]
    text = {k: v for k, v in delta_moe("qwen3_5_moe_text").items() if k in ("num_experts", "num_experts_per_tok", "moe_intermediate_size", "shared_expert_intermediate_size")}
    del old["intermediate_size"]
    return dict(config, text_config=dict(old, model_type="qwen3_5_moe_text", **text)), inputs, more

def grid_batch(config, given, case, ids, pixels): return scans.batch(config, given, case, ids, pixels)

def qwen3_vl_moe():
    text, p, e = moe("qwen3_vl_moe_text", kinds=False), ch(14, 16), encoder(3); layers, depth = text["num_hidden_layers"], e["num_hidden_layers"]; text["vocab_size"] = ch(V, 151936)
    text.update(num_experts=ch(8, 16, 32, 60), num_experts_per_tok=chosen(8), moe_intermediate_size=ch(64, 128, 256, 768), **some(.3, attention_bias=[True]), **some(.3, decoder_sparse_step=[2]), **some(.3, mlp_only_layers=[[0], [layers - 1]]))
    half = text["head_dim"] // 2; x = (half - half // 4) // 2
    text["rope_parameters"] = dict(rope_type="default", mrope_section=[half - 2 * x, x, x], rope_theta=1e6, mrope_interleaved=True)
    vision = dict(depth=depth, num_heads=e["num_attention_heads"], in_channels=3, patch_size=p, spatial_merge_size=2, temporal_patch_size=2, hidden_size=e["hidden_size"], intermediate_size=e["intermediate_size"], out_hidden_size=text["hidden_size"],
                  num_position_embeddings=ch(256, 2304), deepstack_visual_indexes=sorted(R.sample(range(depth - 1), R.randint(1, 2))))
    grid = [2 * R.randint(2, 14), 2 * R.randint(2, 14)]; last = text["vocab_size"]
    config = dict(text_config=text, vision_config=vision, image_token_id=last - 3, vision_start_token_id=last - 5, vision_end_token_id=last - 4, video_token_id=last - 2, tie_word_embeddings=text["tie_word_embeddings"])
    return config, dict(per=grid[0] * grid[1] // 4, token=last - 3, patch=6 * p * p, n=ch(1, 1, 2, 3)), dict(grid=grid)

def grouped(t, **keys):
    """What decoders with DeepSeek's router share."""
    c = moe(t, **keys); groups = ch(1, 1, 2, 4); experts = groups * ch(4, 8, 16)
    return dict(c, n_routed_experts=experts, n_shared_experts=ch(1, 1, 2), num_experts_per_tok=min(chosen(8), experts), moe_intermediate_size=ch(64, 128, 256, 768), n_group=groups, topk_group=R.randint(1, groups),
                norm_topk_prob=maybe(.6), first_k_dense_replace=ch(0, 1, 1, 2), **some(.3, routed_scaling_factor=[2.5]), **some(.3, attention_bias=[True]))

def glm4_moe(): return dict(grouped("glm4_moe", kinds=False), **some(.5, use_qk_norm=[True]), **some(.5, partial_rotary_factor=[.25, 1.0]))

def dots1():
    c = grouped("dots1")
    return dict(c, **some(.4, sliding_window=[64, 256]), **some(.4, max_window_layers=[0, 1, 2]))

def ernie4_5_moe():
    c = moe("ernie4_5_moe"); layers = c["num_hidden_layers"]; c.pop("attention_dropout", None); experts = ch(4, 8, 16, 64)
    return dict(c, moe_num_experts=experts, moe_k=min(chosen(8), experts), moe_num_shared_experts=ch(0, 1, 2), moe_intermediate_size=ch(64, 128, 256, 768), **some(.4, use_bias=[True]), **some(.4, moe_layer_start_index=[0, 2]),
                **some(.3, moe_layer_end_index=[0, layers - 1]), **some(.3, moe_layer_interval=[2]))

def gpt_oss():
    c = moe("gpt_oss", kinds=False); layers = c["num_hidden_layers"]; experts = ch(4, 8, 32); del c["hidden_act"]
    return dict(c, num_local_experts=experts, num_experts_per_tok=min(chosen(), experts), intermediate_size=ch(64, 128, 256, 768), **some(.3, attention_bias=[False]), **some(.4, sliding_window=[64, 256]),
                **some(.4, layer_types=[[ch("full_attention", "sliding_attention") for _ in range(layers)]]), **some(.3, rope_parameters=[dict(rope_type="default", rope_theta=150000.0)]))

def solar_open():
    c = grouped("solar_open"); del c["intermediate_size"], c["first_k_dense_replace"]
    return c

def exaone_moe():
    c = grouped("exaone_moe"); layers = c["num_hidden_layers"]; c.pop("attention_bias", None); c.update(num_experts=c.pop("n_routed_experts"), num_shared_experts=c.pop("n_shared_experts"), pad_token_id=0)
    types = [ch("sliding_attention", "full_attention") for _ in range(layers)]; types[R.randrange(layers)] = "sliding_attention"
    return dict(c, sliding_window=ch(64, 256), layer_types=types, **some(.4, mlp_layer_types=[[ch("dense", "sparse") for _ in range(layers)]]))

def batch(config, given, case, ids, pixels): return grid_batch(config, given, case, ids, pixels)

TEXT = dict(qwen3_5_moe_text=qwen3_5_moe_text, qwen3_next=qwen3_next, glm4_moe=glm4_moe, dots1=dots1, ernie4_5_moe=ernie4_5_moe, gpt_oss=gpt_oss, solar_open=solar_open, exaone_moe=exaone_moe)
IMAGES = dict(qwen3_vl_moe=qwen3_vl_moe, qwen3_5_moe=qwen3_5_moe)
CASES = dict(gpt_oss=dict(attn="eager"))
