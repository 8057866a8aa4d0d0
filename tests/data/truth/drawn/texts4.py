"""Language models older than Llama, with sparse attention by an indexer, or with layers of different heads."""
from .common import R, ch, decoder, encoder, maybe, some
from .experts import chosen
from .latent import grouped
from .texts3 import plain

def old(heads, layers, width, positions):
    """Sizes under the names that a class has for them."""
    e = encoder(); return {heads: e["num_attention_heads"], layers: min(e["num_hidden_layers"], 3), width: e["hidden_size"], positions: ch(512, 1024), "vocab_size": ch(1000, 30145)}

def openai_gpt(): return dict(old("n_head", "n_layer", "n_embd", "n_positions"), model_type="openai-gpt", afn=ch("gelu", "relu", "silu"), **some(.5, resid_pdrop=[0.0], embd_pdrop=[0.0], attn_pdrop=[0.0]), **some(.3, tie_word_embeddings=[False]))

def ctrl(): return dict(old("n_head", "n_layer", "n_embd", "n_positions"), model_type="ctrl", dff=ch(256, 704), **some(.5, resid_pdrop=[0.0], embd_pdrop=[0.0]), **some(.3, tie_word_embeddings=[False]))

def xlm():
    c = old("n_heads", "n_layers", "emb_dim", "max_position_embeddings")
    return dict(c, model_type="xlm", causal=maybe(.5), gelu_activation=maybe(.7), **some(.3, sinusoidal_embeddings=[True]), **some(.3, n_langs=[1, 4]), **some(.3, use_lang_emb=[False]), **some(.4, dropout=[0.0], attention_dropout=[0.0]), **some(.3, tie_word_embeddings=[False]))

def gpt_neox_japanese():
    c = plain("gpt_neox_japanese"); c.pop("num_key_value_heads"); c.pop("intermediate_size")
    return dict(c, intermediate_multiple_size=ch(2, 4), hidden_act=ch("gelu", "relu", "silu"), **some(.4, attention_dropout=[0.0, .1], hidden_dropout=[0.0, .1]), **some(.4, rotary_pct=[1.0, 1.0, .5]))

def doge():
    c = plain("doge"); return dict(c, keep_window_size=ch(8, 64, 2048), hidden_dropout=ch(0.0, 0.0, .1), **some(.3, attention_bias=[True]), **some(.3, mlp_bias=[True]), **some(.1, is_moe=[True]))

def laguna():
    c = decoder("llama"); layers = c["num_hidden_layers"] = R.randint(2, 4); kv = c["num_key_value_heads"]; heads = [kv * ch(1, 2) for _ in range(layers)]
    for key in ("rope_scaling", "mlp_bias", "attention_bias"): c.pop(key, None)
    return dict(c, model_type="laguna", head_dim=ch(32, 64), num_attention_heads_per_layer=heads, num_attention_heads=kv * 2, layer_types=[ch("full_attention", "sliding_attention") for _ in range(layers)], num_experts=ch(8, 16), num_experts_per_tok=chosen(8), moe_intermediate_size=ch(64, 128),
                shared_expert_intermediate_size=ch(64, 128), sliding_window=ch(16, 64, 512), **some(.4, gating=["per-element", "per-head", False]), **some(.4, mlp_layer_types=[[ch("dense", "sparse") for _ in range(layers)]]), **some(.3, attention_bias=[True]), **some(.3, moe_router_logit_softcapping=[8.0]))

def mimo_v2_flash():
    c = decoder("llama"); layers = c["num_hidden_layers"] = R.randint(1, 4); c["num_attention_heads"] = c["num_key_value_heads"] * 2 * ch(1, 1, 2); groups = ch(1, 1, 2); table = dict(rope_type="default", partial_rotary_factor=ch(.5, 1.0), rope_theta=10000.0)
    for key in ("rope_scaling", "mlp_bias", "attention_bias"): c.pop(key, None)
    return dict(c, model_type="mimo_v2_flash", head_dim=ch(32, 64, 96), v_head_dim=ch(32, 64), rope_parameters=dict(full_attention=table, sliding_attention=table), n_routed_experts=groups * ch(4, 8), num_experts_per_tok=chosen(), moe_intermediate_size=ch(64, 128), n_group=groups, topk_group=R.randint(1, groups),
                sliding_window=ch(16, 64, 512), **some(.4, layer_types=[[ch("full_attention", "sliding_attention") for _ in range(layers)]]), **some(.4, mlp_layer_types=[[ch("dense", "sparse") for _ in range(layers)]]), **some(.3, attention_bias=[True]), **some(.3, norm_topk_prob=[False]), **some(.3, attention_value_scale=[None, 1.0]))

def sparse(t):
    """Latent attention to the tokens that an indexer chooses."""
    c = grouped(t); layers = c["num_hidden_layers"] = min(c["num_hidden_layers"], 3)
    for key in ("rope_scaling", "rope_interleave"): c.pop(key, None)
    return dict(c, q_lora_rank=ch(64, 96, 256), index_n_heads=ch(2, 4), index_head_dim=ch(64, 128), index_topk=ch(8, 64, 512), **some(.4, mlp_layer_types=[[ch("dense", "sparse") for _ in range(layers)]]))

def shared(t):
    """The same with layers that take the choice of one before."""
    c = sparse(t); return dict(c, **some(.6, indexer_types=[["full"] + [ch("full", "shared") for _ in range(c["num_hidden_layers"] - 1)]]))

def hy_v4():
    c = shared("hy_v4"); c.pop("first_k_dense_replace", None); return dict(c, pad_token_id=0, **some(.4, hc_mult=[2, 3]), **some(.3, swiglu_limit=[0.0, 5.0]))

TEXT = {"openai-gpt": openai_gpt, "ctrl": ctrl, "xlm": xlm, "gpt_neox_japanese": gpt_neox_japanese, "doge": doge, "laguna": laguna, "mimo_v2_flash": mimo_v2_flash, "deepseek_v32": lambda: sparse("deepseek_v32"), "glm_moe_dsa": lambda: shared("glm_moe_dsa"), "hy_v4": hy_v4}
CASES = {t: dict(attn="eager") for t in ("openai-gpt", "xlm", "mimo_v2_flash", "hy_v4")}
CASES["openai-gpt"]["ckpt"] = CASES["xlm"]["ckpt"] = "none"; CASES["ctrl"] = dict(ckpt="none"); CASES["gpt_neox_japanese"] = dict(attn="eager", ckpt="none")
