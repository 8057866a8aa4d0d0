"""More decoders near Llama: other activations and norms, experts chosen by sigmoids."""
from .common import R, ch, maybe, some
from .dense import dense, mixed
from .experts import chosen, moe

def apertus(): return dict(dense("apertus", acts=("xielu", "xielu", "silu")), **some(.3, attention_bias=[True]))

def nanochat(): return dict(dense("nanochat", acts=("relu2", "relu2", "gelu")), **some(.3, attention_bias=[True]), **some(.4, final_logit_softcapping=[None, 30.0]))

def bitnet(): return dict(dense("bitnet", divides=True, acts=("relu2", "relu2", "silu")), **some(.3, attention_bias=[True]))

def granitemoe(t):
    c = moe(t); experts = ch(4, 8, 16)
    more = some(.7, shared_intermediate_size=[256, 704, 0]) if t == "granitemoeshared" else {}
    return dict(c, num_local_experts=experts, num_experts_per_tok=chosen(), intermediate_size=ch(64, 128, 256, 768), **some(.3, attention_bias=[True]), **some(.5, embedding_multiplier=[12.0]), **some(.5, residual_multiplier=[0.22]), **some(.5, logits_scaling=[8.0]), **more)

def minimax_m2():
    c = moe("minimax_m2", kinds=False); experts = ch(4, 8, 16, 60)
    return dict(c, num_local_experts=experts, num_experts_per_tok=min(chosen(8), experts), intermediate_size=ch(64, 128, 256, 768), **some(.5, partial_rotary_factor=[.25, .5]))

def hy_v3():
    c = moe("hy_v3"); layers = c["num_hidden_layers"]; experts = ch(4, 8, 16, 60)
    return dict(c, num_experts=experts, num_experts_per_tok=min(chosen(8), experts), moe_intermediate_size=ch(64, 128, 256, 768), num_shared_experts=ch(1, 1, 2), **some(.3, attention_bias=[True]), **some(.3, mlp_bias=[True]),
                **some(.4, enable_moe_fp32_combine=[False]), **some(.5, mlp_layer_types=[[ch("dense", "sparse") for _ in range(layers)]]))

def hunyuan_v1_moe():
    c = moe("hunyuan_v1_moe"); experts = ch(4, 8, 16)
    return dict(c, num_experts=experts, moe_topk=chosen(), intermediate_size=ch(64, 128, 256, 768), **some(.3, attention_bias=[True]))

def afmoe():
    c = moe("afmoe"); layers = c["num_hidden_layers"]; experts = ch(4, 8, 16, 60); types = mixed(layers); types[R.randrange(layers)] = "sliding_attention"
    return dict(c, num_experts=experts, num_experts_per_tok=min(chosen(8), experts), moe_intermediate_size=ch(64, 128, 256, 768), num_shared_experts=ch(1, 2), num_dense_layers=ch(0, 1, 2), mup_enabled=maybe(.5),
                **some(.3, attention_bias=[True]), **some(.6, sliding_window=[64, 256]), **some(.5, layer_types=[types]))

def cohere2_moe():
    c = moe("cohere2_moe", kinds=False); layers = c["num_hidden_layers"]; experts = ch(4, 8, 16); types = mixed(layers); types[R.randrange(layers)] = "sliding_attention"
    return dict(c, num_experts=experts, num_experts_per_tok=chosen(), intermediate_size=ch(64, 128, 256, 768), num_shared_experts=ch(0, 1, 2), layer_types=types, expert_selection_fn=ch("softmax", "sigmoid"),
                **some(.4, shared_expert_combination_strategy=["sum"]), **some(.4, norm_topk_prob=[False]), **some(.5, mlp_layer_types=[[ch("dense", "sparse") for _ in range(layers)]]), **some(.5, prefix_dense_intermediate_size=[704]),
                **some(.3, prefix_dense_sliding_window_pattern=[2]), **some(.4, rms_norm_eps=[1e-5]), **some(.6, sliding_window=[64, 256]), **some(.3, attention_bias=[True]))

def phimoe():
    c = moe("phimoe", heads_fill=True, kinds=False); experts = ch(4, 8, 16)
    return dict(c, num_local_experts=experts, intermediate_size=ch(64, 128, 256, 768), **some(.4, attention_bias=[True]), **some(.4, lm_head_bias=[True]), **some(.4, sliding_window=[64, 512]))

def diffllama():
    c = dict(dense("diffllama"), attention_dropout=0.0); kv = max(2, c["num_key_value_heads"])
    return dict(c, num_key_value_heads=kv, num_attention_heads=kv * max(1, c["num_attention_heads"] // kv), **some(.3, attention_bias=[True]))

def windowed(c):
    layers = c["num_hidden_layers"]; c.pop("sliding_window", None); c.pop("rope_scaling", None)
    return dict(c, sliding_window=ch(16, 64, 256), layer_types=mixed(layers), embedding_multiplier=ch(1.0, 12.0), residual_multiplier=.22, logits_scaling=8.0)

def granite_swa(): return dict(windowed(dense("granite_swa")), **some(.3, attention_bias=[True], mlp_bias=[True]))

def granitemoe_swa():
    c = windowed(granitemoe("granitemoeshared")); c["model_type"] = "granitemoe_swa"
    return c

def aria_text():
    c = dense("aria_text"); c.update(intermediate_size=ch(64, 128, 256), pad_token_id=0)
    return dict(c, moe_num_experts=ch(4, 8), moe_topk=ch(1, 2), moe_num_shared_experts=ch(1, 2), **some(.3, mlp_bias=[True]))

def jetmoe():
    return dict(model_type="jetmoe", vocab_size=ch(1000, 32000), hidden_size=ch(128, 256, 384), intermediate_size=ch(64, 128, 256), num_hidden_layers=R.randint(1, 3), num_key_value_heads=ch(2, 4), kv_channels=ch(32, 64),
                num_local_experts=ch(4, 8), num_experts_per_tok=ch(1, 2), max_position_embeddings=ch(1024, 4096), tie_word_embeddings=maybe(.5))

TEXT = {"aria_text": aria_text, "jetmoe": jetmoe, "afmoe": afmoe, "cohere2_moe": cohere2_moe, "phimoe": phimoe, "diffllama": diffllama, "apertus": apertus, "nanochat": nanochat, "bitnet": bitnet, "granitemoe": lambda: granitemoe("granitemoe"), "granitemoeshared": lambda: granitemoe("granitemoeshared"),
        "granite_swa": granite_swa, "granitemoe_swa": granitemoe_swa, "minimax_m2": minimax_m2, "hy_v3": hy_v3, "hunyuan_v1_moe": hunyuan_v1_moe}
CASES = {t: dict(attn="eager") for t in ("granite_swa", "granitemoe_swa")}
CASES["jetmoe"] = dict(ckpt="none")
