"""Dense decoders near Llama."""
from .experts import chosen, moe
from .common import HEAD_DIMS, R, VOCABS, ch, maybe, rope, some

def dense(t, divides=False, acts=("silu", "silu", "gelu"), kinds=True):
    """What they share: sizes, heads, rotary positions."""
    kv, times = ch(1, 2, 4, 8), ch(1, 1, 2, 3, 4)
    while kv * times > 32: kv //= 2
    heads, d = kv * times, R.choice(HEAD_DIMS)
    while heads * d > 2048: d //= 2
    d -= d % 2; hidden = heads * d if divides else ch(256, 512, 576, 768, 1024, 1536); hidden = -(-hidden // (heads * 2)) * heads * 2
    return dict(model_type=t, vocab_size=R.choice(VOCABS), hidden_size=hidden, intermediate_size=ch(hidden * 2, hidden * 4, 704, 1408), num_hidden_layers=R.randint(1, 6), num_attention_heads=heads, num_key_value_heads=kv,
                max_position_embeddings=ch(1024, 2048, 4096), tie_word_embeddings=maybe(.4), hidden_act=ch(*acts), **({} if divides else dict(head_dim=d)), **some(.25, attention_dropout=[0.1]), **(rope() if kinds else {}))

def olmo2(): return dict(dense("olmo2", divides=True), **some(.3, attention_bias=[True]))

def exaone4():
    c = dense("exaone4"); layers = c["num_hidden_layers"]
    return dict(c, **some(.7, sliding_window=[128, 512], sliding_window_pattern=[2, 3, 4]) or dict(sliding_window=None, layer_types=["full_attention"] * layers))

def arcee(): return dict(dense("arcee", acts=("relu2", "relu2", "relu", "gelu")), **some(.3, attention_bias=[True]), **some(.3, mlp_bias=[True]))

def glm(t): return dict(dense(t), pad_token_id=0, **some(.3, attention_bias=[False]), **some(.4, partial_rotary_factor=[0.5, 1.0, 0.25]))

def cohere(t):
    c = dense(t, divides=t == "cohere2"); layers = c["num_hidden_layers"]
    return dict(c, **some(.3, attention_bias=[True]), **some(.5, logit_scale=[0.25, 1.0]), **(some(.6, sliding_window=[128, 512], layer_types=[["sliding_attention"] * layers]) if t == "cohere2" else {}))

def nemotron(): return dict(dense("nemotron", acts=("relu2", "relu2", "gelu")), **some(.3, attention_bias=[True]), **some(.3, mlp_bias=[True]), **some(.4, partial_rotary_factor=[0.5, 1.0]))

def multiplied(t): return dict(dense(t, divides=t == "granite"), **some(.3, attention_bias=[True]), **some(.3, mlp_bias=[True]), **some(.5, embedding_multiplier=[12.0]), **some(.5, residual_multiplier=[0.22]), **some(.5, logits_scaling=[8.0]),
                               **(some(.4, use_post_norm=[False]) if t == "hyperclovax" else {}))

def starcoder2(): return dict(dense("starcoder2", divides=True, acts=("gelu_pytorch_tanh", "gelu", "relu")), **some(.3, use_bias=[False]), **some(.4, sliding_window=[128, 512]))

def jais2(): return dict(dense("jais2", divides=True, acts=("relu2", "gelu")), **some(.3, attention_bias=[False]), **some(.3, mlp_bias=[False]))

def ministral():
    c = dense("ministral"); layers = c["num_hidden_layers"]
    return dict(c, **some(.6, sliding_window=[128, 512], layer_types=[[["sliding_attention", "full_attention"][i % 2] for i in range(layers)]]))

def ministral3(vocab=None):
    """Its class reads the rotary parameters for the number that queries are multiplied by."""
    c = dict(dense("ministral3", kinds=False), **some(.4, sliding_window=[128, 512]))
    if vocab: c["vocab_size"] = vocab
    return dict(c, pad_token_id=11, rope_parameters=dict(rope_type="yarn", rope_theta=1e6, factor=16.0, original_max_position_embeddings=ch(64, 16384), beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=.1))

def hunyuan(): return dict(dense("hunyuan_v1_dense"), **some(.3, attention_bias=[True]))

def olmo(): return dict(dense("olmo"), **some(.3, attention_bias=[True]))

def mixed(layers): return [ch("sliding_attention", "sliding_attention", "full_attention") for _ in range(layers)]

def olmo3():
    c = dense("olmo3"); types = mixed(c["num_hidden_layers"])
    if "rope_scaling" in c and c["rope_scaling"]["rope_type"] == "dynamic": c.pop("rope_scaling")
    if "sliding_attention" not in types: types[0] = "sliding_attention"
    return dict(c, **some(.3, attention_bias=[True]), **some(.6, sliding_window=[128, 512]), **some(.6, layer_types=[types]))

def bart(t):
    heads, d = ch(2, 4, 6, 8, 12), ch(32, 48, 64, 80); h = heads * d; v = ch(1000, 32000, 50265)
    return dict(model_type=t, vocab_size=v, d_model=h, decoder_attention_heads=heads, decoder_ffn_dim=ch(h * 2, h * 4, 704), decoder_layers=R.randint(1, 5), max_position_embeddings=ch(1024, 2048), tie_word_embeddings=maybe(.6), pad_token_id=ch(0, 1),
                activation_function=ch("gelu", "gelu", "gelu_new", "relu", "silu"), scale_embedding=maybe(.5), **some(.4, dropout=[0.0]), **some(.3, attention_dropout=[.1, 0.0]), **some(.3, activation_dropout=[.1]),
                **(dict(decoder_vocab_size=v) if t == "marian" else {}), **(some(.5, use_bias=[True]) if t == "bigbird_pegasus" else {}), **(dict(max_target_positions=1024) if t == "whisper" else {}), **(some(.3, layernorm_embedding=[False]) if t == "trocr" else {}))

BARTS = ("bart", "plbart", "mbart", "pegasus", "marian", "blenderbot", "blenderbot-small", "bigbird_pegasus", "mvp", "trocr", "whisper")

def mellum():
    c = moe("mellum", kinds=False); layers = c["num_hidden_layers"]; types = [ch("sliding_attention", "full_attention") for _ in range(layers)]; types[0] = "full_attention"
    return dict(c, num_local_experts=ch(8, 16, 60), num_experts_per_tok=chosen(8), moe_intermediate_size=ch(64, 128, 256, 768), norm_topk_prob=maybe(.5), **some(.3, attention_bias=[True]), **some(.6, layer_types=[types], sliding_window=[128, 512]))

def emu3():
    text = dict(dense("emu3_text_model"), pad_token_id=0, attention_dropout=ch(0.0, .1, .2), **some(.3, attention_bias=[True]), **some(.3, mlp_bias=[True]))
    return dict(model_type="emu3", vocab_size=text["vocab_size"], text_config=text)

TEXT = {"mellum": mellum, "emu3": emu3, **{t: (lambda t=t: bart(t)) for t in BARTS}, "olmo": olmo, "olmo3": olmo3, "olmo2": olmo2, "exaone4": exaone4, "arcee": arcee, "glm": lambda: glm("glm"), "glm4": lambda: glm("glm4"), "cohere": lambda: cohere("cohere"), "cohere2": lambda: cohere("cohere2"), "nemotron": nemotron,
        "granite": lambda: multiplied("granite"), "hyperclovax": lambda: multiplied("hyperclovax"),
        "starcoder2": starcoder2, "jais2": jais2, "ministral": ministral, "ministral3": ministral3, "hunyuan_v1_dense": hunyuan}

# Families that transformers gives no SDPA.
CASES = {t: dict(attn="eager") for t in ["bigbird_pegasus", "mvp", "trocr"]}
